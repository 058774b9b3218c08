/* trace_stats.c - recordings of the same work: mean, spread and interval of every figure, and of
 * two groups the difference. */
#include "instrument/report/trace_stats.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "instrument/report/trace_report.h"
static tp_cell_kind kind_of(uint8_t unit)
{
    return unit == TP_FIGURE_BYTES ? TP_CELL_BYTES
           : unit == TP_FIGURE_NS  ? TP_CELL_NS
                                   : TP_CELL_REAL;
}

static const char *unit_name(uint8_t unit)
{
    static const char *const names[] = {"ns", "count", "bytes"};
    return names[unit];
}

/* "1.23 ms", "12.5 MiB", "17.5". */
static const char *human(double v, uint8_t unit, char out[32])
{
    if (isnan(v))
        snprintf(out, 32, "-");
    else if (kind_of(unit) == TP_CELL_NS && fabs(v) < 9e18)
        tp_human_ns((int64_t)llround(v), out);
    else if (kind_of(unit) == TP_CELL_BYTES && v >= 1024 * 1024)
        strcat(tp_human_value(v / (1024 * 1024), 2, out), " MiB");
    else if (kind_of(unit) == TP_CELL_BYTES)
        strcat(tp_human_value(v, 0, out), " B");
    else
        snprintf(out, 32, "%.6g", v);
    return out;
}

/* A cell of a table whose rows have units of their own: text for people, exact when hidden. */
static void put(tp_grid *g, double v, uint8_t unit)
{
    char text[32];
    if (isnan(v))
        tp_grid_unknown(g);
    else
        tp_grid_text(g, human(v, unit, text));
}

static void put_name(tp_grid *g, const tp_repeats *r, const tp_repeat_row *row)
{
    tp_grid_textn(g, tp_string_get(&r->names, row->name), tp_string_len(&r->names, row->name));
}

static void put_file(tp_grid *g, int file)
{
    char text[16];
    snprintf(text, sizeof text, "#%d", file + 1);
    tp_grid_text(g, file == TP_NO_FILE ? "" : text);
}

static void put_seen(tp_grid *g, const tp_repeat_summary *s, size_t n)
{
    char text[48];
    snprintf(text, sizeof text, "%zu of %zu", s->n, n);
    tp_grid_text(g, text);
}

static void put_ratio(tp_grid *g, double v)
{
    char text[32];
    tp_grid_text(g, isnan(v) ? NULL : tp_human_value(v, 3, text));
}

/* ---- tables for people: each cell in its own unit ---- */

static void columns(tp_grid *g, const char *const titles[])
{
    for (int k = 0; titles[k]; k++)
        tp_grid_column(g, titles[k], titles[k], TP_CELL_TEXT);
}

static void put_percent(tp_grid *g, double v)
{
    char text[32];
    tp_grid_text(g, isnan(v) ? NULL : tp_human_value(v, 2, text));
}

static void show_totals(const tp_repeats *r, const tp_repeat_table *t, tp_grid *g)
{
    static const char *const titles[] = {"figure", "files", "mean", "95 % from", "to", "cv %",
                                         "median", "min",   "max",  "outlier",   NULL};
    columns(g, titles);
    for (size_t i = 0; i < t->n; i++) {
        const tp_repeat_row *row = &t->rows[i];
        const tp_repeat_summary *s = &row->of[0];
        put_name(g, r, row);
        put_seen(g, s, r->n_group[0]);
        put(g, s->mean, row->unit);
        put(g, s->t_ci.lo, row->unit);
        put(g, s->t_ci.hi, row->unit);
        put_percent(g, 100 * s->cv);
        put(g, s->median, row->unit);
        put(g, s->min, row->unit);
        put(g, s->max, row->unit);
        put_file(g, row->outlier[0]);
    }
}

static void show_names(const tp_repeats *r, const tp_repeat_table *t, tp_grid *g, const char *what)
{
    const char *const titles[] = {"files", "calls", "per call", "total", "95 % from",
                                  "to",    "cv %",  "outlier",  what,    NULL};
    columns(g, titles);
    for (size_t i = 0; i < t->n; i++) {
        const tp_repeat_row *row = &t->rows[i];
        const tp_repeat_summary *s = &row->of[0];
        put_seen(g, s, r->n_group[0]);
        put(g, row->calls_of[0].mean, TP_FIGURE_COUNT);
        put(g, row->mean_of[0].mean, TP_FIGURE_NS);
        put(g, s->mean, row->unit);
        put(g, s->t_ci.lo, row->unit);
        put(g, s->t_ci.hi, row->unit);
        put_percent(g, 100 * s->cv);
        put_file(g, row->outlier[0]);
        put_name(g, r, row);
    }
}

static void show_comparison(const tp_repeats *r, const tp_repeat_table *t, tp_grid *g,
                            const char *what)
{
    const char *const titles[] = {"files", "before",  "after", "ratio", "95 % from",
                                  "to",    "verdict", what,    NULL};
    columns(g, titles);
    for (size_t i = 0; i < t->n; i++) {
        const tp_repeat_row *row = &t->rows[i];
        char seen[64];
        snprintf(seen, sizeof seen, "%zu, %zu", row->of[0].n, row->of[1].n);
        tp_grid_text(g, seen);
        put(g, row->of[0].mean, row->unit);
        put(g, row->of[1].mean, row->unit);
        put_ratio(g, row->ratio);
        put_ratio(g, row->lo);
        put_ratio(g, row->hi);
        tp_grid_text(g, tp_change_name(row->verdict));
        put_name(g, r, row);
    }
}

/* ---- tables for machines: numbers in the unit of the row ---- */

static void numbers(tp_grid *g, const char *const keys[])
{
    for (int k = 0; keys[k]; k++)
        tp_grid_column(g, keys[k], keys[k], TP_CELL_REAL);
}

static void put_numbers(tp_grid *g, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tp_grid_real(g, v[i]);
}

static void put_reason(tp_grid *g, const tp_interval *i)
{
    tp_grid_text(g, isnan(i->lo) ? i->why : NULL);
}

static void write_one(const tp_repeats *r, const tp_repeat_table *t, bool has_calls, tp_grid *g)
{
    static const char *const keys[] = {"mean", "sd", "cv",     "median", "min",       "max",
                                       "lo",   "hi", "bca_lo", "bca_hi", "outlier_p", NULL};
    static const char *const call_keys[] = {
        "calls_mean", "calls_sd", "call_mean_ns", "call_sd_ns", "call_lo_ns", "call_hi_ns", NULL};
    tp_grid_column(g, "name", "name", TP_CELL_TEXT);
    tp_grid_column(g, "unit", "unit", TP_CELL_TEXT);
    tp_grid_column(g, "n", "n", TP_CELL_COUNT);
    tp_grid_column(g, "files", "files", TP_CELL_COUNT);
    numbers(g, keys);
    tp_grid_column(g, "outlier", "outlier", TP_CELL_COUNT);
    tp_grid_column(g, "undefined", "undefined", TP_CELL_TEXT);
    tp_grid_column(g, "bca_undefined", "bca_undefined", TP_CELL_TEXT);
    if (has_calls)
        numbers(g, call_keys);
    for (size_t i = 0; i < t->n; i++) {
        const tp_repeat_row *row = &t->rows[i];
        const tp_repeat_summary *s = &row->of[0], *each = &row->mean_of[0];
        const double values[] = {s->mean,          s->sd,      s->cv,      s->median, s->min,
                                 s->max,           s->t_ci.lo, s->t_ci.hi, s->bca.lo, s->bca.hi,
                                 row->outlier_p[0]};
        const double calls[] = {row->calls_of[0].mean, row->calls_of[0].sd, each->mean, each->sd,
                                each->t_ci.lo,         each->t_ci.hi};
        put_name(g, r, row);
        tp_grid_text(g, unit_name(row->unit));
        tp_grid_int(g, (int64_t)s->n);
        tp_grid_int(g, (int64_t)r->n_group[0]);
        put_numbers(g, values, sizeof values / sizeof *values);
        if (row->outlier[0] == TP_NO_FILE)
            tp_grid_unknown(g);
        else
            tp_grid_int(g, row->outlier[0] + 1);
        put_reason(g, &s->t_ci);
        put_reason(g, &s->bca);
        if (has_calls)
            put_numbers(g, calls, sizeof calls / sizeof *calls);
    }
}

static void write_two(const tp_repeats *r, const tp_repeat_table *t, tp_grid *g)
{
    static const char *const keys[] = {"before_mean",    "before_sd", "after_mean", "after_sd",
                                       "ratio",          "ratio_lo",  "ratio_hi",   "p_adjusted",
                                       "p_mann_whitney", NULL};
    tp_grid_column(g, "name", "name", TP_CELL_TEXT);
    tp_grid_column(g, "unit", "unit", TP_CELL_TEXT);
    tp_grid_column(g, "verdict", "verdict", TP_CELL_TEXT);
    tp_grid_column(g, "before_n", "before_n", TP_CELL_COUNT);
    tp_grid_column(g, "after_n", "after_n", TP_CELL_COUNT);
    numbers(g, keys);
    tp_grid_column(g, "undefined", "undefined", TP_CELL_TEXT);
    for (size_t i = 0; i < t->n; i++) {
        const tp_repeat_row *row = &t->rows[i];
        const tp_repeat_summary *a = &row->of[0], *b = &row->of[1];
        const double values[] = {a->mean, a->sd,   b->mean, b->sd,       row->ratio,
                                 row->lo, row->hi, row->p,  row->p_ranks};
        put_name(g, r, row);
        tp_grid_text(g, unit_name(row->unit));
        tp_grid_text(g, tp_change_name(row->verdict));
        tp_grid_int(g, (int64_t)a->n);
        tp_grid_int(g, (int64_t)b->n);
        put_numbers(g, values, sizeof values / sizeof *values);
        tp_grid_text(g, isnan(row->lo) ? row->why : NULL);
    }
}

/* ---- files, and every value ---- */

static int64_t outliers_of(const tp_repeats *r, size_t file)
{
    const tp_repeat_table *t = &r->tables[TP_FIGURES_TOTALS];
    int64_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += t->rows[i].outlier[r->files[file].group] == (int)file;
    return n;
}

static void fill_files(const tp_repeats *r, tp_grid *g)
{
    bool has_groups = r->n_group[1] > 0;
    tp_grid_column(g, "number", "#", TP_CELL_COUNT);
    if (has_groups)
        tp_grid_column(g, "group", "group", TP_CELL_TEXT);
    tp_grid_column(g, "steps", "steps", TP_CELL_COUNT);
    tp_grid_column(g, "step_mean_ns", "step", TP_CELL_NS);
    tp_grid_column(g, "step_sd_ns", "sd within", TP_CELL_NS);
    tp_grid_column(g, "outlier_totals", "outlier in", TP_CELL_COUNT);
    tp_grid_column(g, "file", "file", TP_CELL_TEXT);
    for (size_t i = 0; i < r->n_files; i++) {
        const tp_repeat_file *f = &r->files[i];
        const double times[] = {f->step_mean_ns, f->step_sd_ns};
        tp_grid_int(g, (int64_t)i + 1);
        if (has_groups)
            tp_grid_text(g, f->group ? "after" : "before");
        tp_grid_int(g, (int64_t)f->steps);
        for (int k = 0; k < 2; k++)
            if (isnan(times[k]))
                tp_grid_unknown(g);
            else
                tp_grid_int(g, llround(times[k]));
        tp_grid_int(g, outliers_of(r, i));
        tp_grid_text(g, f->path);
    }
}

static const char *const table_keys[TP_FIGURE_TABLES] = {"totals", "phases", "operators",
                                                         "kernels"};

static void fill_values(const tp_repeats *r, tp_grid *g)
{
    tp_grid_column(g, "table", "table", TP_CELL_TEXT);
    tp_grid_column(g, "name", "name", TP_CELL_TEXT);
    tp_grid_column(g, "file", "file", TP_CELL_COUNT);
    tp_grid_column(g, "value", "value", TP_CELL_REAL);
    tp_grid_column(g, "calls", "calls", TP_CELL_REAL);
    for (int k = 0; k < TP_FIGURE_TABLES; k++)
        for (size_t i = 0; i < r->tables[k].n; i++)
            for (size_t f = 0; f < r->n_files; f++) {
                const tp_repeat_row *row = &r->tables[k].rows[i];
                if (isnan(row->values[f]))
                    continue;
                tp_grid_text(g, table_keys[k]);
                put_name(g, r, row);
                tp_grid_int(g, (int64_t)f + 1);
                tp_grid_real(g, row->values[f]);
                tp_grid_real(g, row->calls[f]);
            }
}

void tp_trace_stats_grid(const tp_repeats *r, tp_trace_stats_table table, bool for_people,
                         tp_grid *g)
{
    bool by_host = r->files[0].n_devices == 0;
    const struct {
        const char *title, *what;
    } words[TP_FIGURE_TABLES] = {
        {r->per_step ? "Totals per step" : "Totals", "figure"},
        {"Phases (annotations of the host)", "phase"},
        {by_host ? "Operators (host self time)" : "Operators (device self time)", "operator"},
        {"Device work", "name"}};
    if (table == TP_TRACE_STATS_FILES) {
        *g = (tp_grid){.name = "files", .title = "Files"};
        fill_files(r, g);
        return;
    }
    if (table == TP_TRACE_STATS_VALUES) {
        *g = (tp_grid){.name = "values", .title = "Values"};
        fill_values(r, g);
        return;
    }
    tp_figure_table k = (tp_figure_table)(table - TP_TRACE_STATS_TOTALS);
    const tp_repeat_table *t = &r->tables[k];
    *g = (tp_grid){.name = table_keys[k], .title = words[k].title};
    if (r->n_group[1] && for_people)
        show_comparison(r, t, g, words[k].what);
    else if (r->n_group[1])
        write_two(r, t, g);
    else if (!for_people)
        write_one(r, t, k != TP_FIGURES_TOTALS, g);
    else if (k == TP_FIGURES_TOTALS)
        show_totals(r, t, g);
    else
        show_names(r, t, g, words[k].what);
}

/* ---- sentences ---- */

/* The step where every file marks it, else the device, else the first figure there is. */
static const tp_repeat_row *most_important(const tp_repeats *r)
{
    static const char *const names[] = {"step (host), mean", "device span", "window of the file"};
    const tp_repeat_table *t = &r->tables[TP_FIGURES_TOTALS];
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        for (size_t i = 0; i < t->n; i++)
            if (strcmp(tp_string_get(&r->names, t->rows[i].name), names[k]) == 0 &&
                t->rows[i].of[0].n + t->rows[i].of[1].n == r->n_files)
                return &t->rows[i];
    return t->n ? &t->rows[0] : NULL;
}

static void describe(const tp_repeats *r, const tp_repeat_row *row, tp_buf *out)
{
    const tp_repeat_summary *s = &row->of[0];
    char mean[32], lo[32], hi[32];
    tp_buf_addf(out, "%s: %s on average", tp_string_get(&r->names, row->name),
                human(s->mean, row->unit, mean));
    if (isnan(s->t_ci.lo))
        tp_buf_addf(out, "; its interval is undefined (%s)\n", s->why ? s->why : s->t_ci.why);
    else
        tp_buf_addf(out, ", 95 %% interval %s to %s, cv %.2f %%, n = %zu files\n",
                    human(s->t_ci.lo, row->unit, lo), human(s->t_ci.hi, row->unit, hi), 100 * s->cv,
                    s->n);
    if (!isnan(s->bca.lo))
        tp_buf_addf(out, "bootstrap (BCa) interval of the same: %s to %s\n",
                    human(s->bca.lo, row->unit, lo), human(s->bca.hi, row->unit, hi));
}

static void judge(const tp_repeats *r, const tp_repeat_row *row, tp_buf *out)
{
    double percent = 100 * (row->ratio - 1);
    tp_buf_addf(out, "%s: %s", tp_string_get(&r->names, row->name), tp_change_name(row->verdict));
    if (row->ratio == 1)
        tp_buf_adds(out, "; after is what before is");
    else if (!isnan(row->ratio))
        tp_buf_addf(out, "; after is %.2f %% %s than before", fabs(percent),
                    percent < 0 ? "lower" : "higher");
    if (!isnan(row->lo))
        tp_buf_addf(out, ", 95 %% interval %+.2f to %+.2f %%", 100 * (row->lo - 1),
                    100 * (row->hi - 1));
    else if (row->why)
        tp_buf_addf(out, "; no interval (%s)", row->why);
    tp_buf_addf(out, ", n = %zu and %zu files\n", row->of[0].n, row->of[1].n);
}

void tp_trace_stats_headline(const tp_repeats *r, tp_buf *out)
{
    const tp_repeat_row *row = most_important(r);
    if (!row)
        tp_buf_adds(out, "no figure is known of these files\n");
    else if (r->n_group[1])
        judge(r, row, out);
    else
        describe(r, row, out);
}

bool tp_trace_stats_is_worse(const tp_repeats *r)
{
    const tp_repeat_row *row = most_important(r);
    return row && row->verdict == TP_CHANGE_WORSE;
}

static void note_few(const tp_repeats *r, tp_buf *out)
{
    size_t least = r->n_group[0];
    if (r->n_group[1] && r->n_group[1] < least)
        least = r->n_group[1];
    if (r->n_group[1] && least < TP_REPEATS_MIN_VERDICT)
        tp_buf_addf(out, "few files: better and worse need at least %d a side\n",
                    TP_REPEATS_MIN_VERDICT);
    else if (!r->n_group[1] && least == 1)
        tp_buf_adds(out, "one file shows no spread between runs: record the same work again\n");
}

static void note_windows(const tp_repeats *r, tp_buf *out)
{
    size_t least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < r->n_files; i++) {
        least = r->files[i].steps < least ? r->files[i].steps : least;
        most = r->files[i].steps > most ? r->files[i].steps : most;
    }
    if (least != most && !r->per_step)
        tp_buf_addf(out,
                    "the files hold %zu to %zu steps: totals are of windows of different "
                    "lengths%s\n",
                    least, most, least ? "; --per-step divides them" : "");
    char time[32];
    if (r->per_step && r->n_stepless)
        tp_buf_addf(out, TP_NOTE_STEPLESS "\n", r->n_stepless, tp_human_ns(r->stepless_ns, time));
}

static void note_files(const tp_repeats *r, tp_buf *out)
{
    bool has_ranks = false, is_mixed = false;
    size_t least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < r->n_files; i++) {
        const tp_repeat_file *f = &r->files[i];
        has_ranks |=
            f->rank != TP_UNKNOWN && r->files[0].rank != TP_UNKNOWN && f->rank != r->files[0].rank;
        is_mixed |= !f->n_devices != !r->files[0].n_devices;
        least = TP_MIN(least, f->n_devices);
        most = TP_MAX(most, f->n_devices);
        if (f->twin != TP_NO_FILE)
            tp_buf_addf(out,
                        "#%zu agrees with #%d in every total to the last digit: a copy is no "
                        "repeat\n",
                        i + 1, f->twin + 1);
    }
    if (has_ranks)
        tp_buf_adds(out, "the files are of different ranks: ranks of one job are not repeats of "
                         "it, see the view 'ranks'\n");
    if (most > 1)
        tp_buf_addf(out,
                    "times of the device are those of all devices of a file together: %zu to %zu "
                    "devices\n",
                    least, most);
    if (is_mixed)
        tp_buf_adds(out, "some files have no device work: operators are of those that are like "
                         "the first\n");
}

static void note_outliers(const tp_repeats *r, tp_buf *out)
{
    const tp_repeat_table *t = &r->tables[TP_FIGURES_TOTALS];
    for (size_t f = 0; f < r->n_files; f++) {
        int64_t n = outliers_of(r, f);
        int group = r->files[f].group;
        char value[32], mean[32];
        if (n == 0)
            continue;
        tp_buf_addf(out, "outlier: #%zu %s in %" PRId64 " of %zu totals", f + 1, r->files[f].path,
                    n, t->n);
        for (size_t i = 0; i < t->n; i++) {
            const tp_repeat_row *row = &t->rows[i];
            if (row->outlier[group] != (int)f)
                continue;
            double others = (row->of[group].mean * (double)row->of[group].n - row->values[f]) /
                            (double)(row->of[group].n - 1);
            tp_buf_addf(out, ", such as %s: %s, the others %s\n",
                        tp_string_get(&r->names, row->name),
                        human(row->values[f], row->unit, value), human(others, row->unit, mean));
            break;
        }
    }
}

void tp_trace_stats_notes(const tp_repeats *r, tp_buf *out)
{
    note_few(r, out);
    note_windows(r, out);
    note_files(r, out);
    note_outliers(r, out);
}
