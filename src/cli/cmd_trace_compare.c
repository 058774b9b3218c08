/* `temper trace compare`: what changed between two traces, and whether that is shown. */
#include <string.h>

#include <math.h>

#include "base/terminal.h"
#include "cli/cli.h"
#include "instrument/report/grid.h"
#include "cli/trace_commands.h"
#include "instrument/ingest/trace_paths.h"
#include "instrument/analyze/compare.h"
#include "instrument/ingest/ingest.h"
#include "text/json/json.h"

typedef struct {
    bool json, csv, markdown;
    const char *scope, *name;
    int64_t top;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "as JSON: whole nanoseconds"),
    TP_SWITCH("csv", 0, csv, "all tables as comma-separated values"),
    TP_SWITCH("markdown", 0, markdown, "as Markdown"),
    TP_TEXT("scope", 0, "SCOPE", scope, "which device work counts: all (default), linked, steps"),
    TP_TEXT("name", 0, "PATTERN", name, "only device work whose name contains this"),
    TP_NUMBER("top", 0, "N", INT, top, 0, 1e9, "rows of a table (default 10; 0: all)"),
    {0}};

typedef struct {
    const flags *f;
    const tp_trace_file *files[2];
    const tp_comparison *c;
} context;

static void put_time(tp_grid *g, double ns)
{
    if (isnan(ns))
        tp_grid_unknown(g);
    else
        tp_grid_int(g, (int64_t)llround(ns));
}

static void fill(const context *x, const tp_compare_table *t, tp_grid *g, const char *title,
                 const char *what)
{
    static const char *const presence[] = {"", "appeared", "disappeared"};
    bool has_steps = x->c->before_steps && x->c->after_steps;
    g->title = title;
    tp_grid_column(g, "before_ns", has_steps ? "before/step" : "before", TP_CELL_NS);
    tp_grid_column(g, "after_ns", has_steps ? "after/step" : "after", TP_CELL_NS);
    tp_grid_column(g, "change_ns", "change", TP_CELL_NS);
    tp_grid_column(g, "change_pct", "%", TP_CELL_PERCENT);
    tp_grid_column(g, "lo_ns", "95 % from", TP_CELL_NS);
    tp_grid_column(g, "hi_ns", "to", TP_CELL_NS);
    tp_grid_column(g, "verdict", "verdict", TP_CELL_TEXT);
    tp_grid_column(g, "presence", "", TP_CELL_TEXT);
    tp_grid_column(g, "name", what, TP_CELL_TEXT);
    tp_grid_hidden(g, "p_adjusted", TP_CELL_REAL);
    tp_grid_hidden(g, "p_permutation", TP_CELL_REAL);
    tp_grid_hidden(g, "before_count", TP_CELL_COUNT);
    tp_grid_hidden(g, "after_count", TP_CELL_COUNT);
    tp_grid_hidden(g, "before_total_ns", TP_CELL_NS);
    tp_grid_hidden(g, "after_total_ns", TP_CELL_NS);
    for (size_t i = 0; i < t->n; i++) {
        const tp_compare_row *r = &t->rows[i];
        double before = has_steps ? r->before_step : (double)r->before_ns;
        double after = has_steps ? r->after_step : (double)r->after_ns;
        put_time(g, before);
        put_time(g, after);
        put_time(g, after - before);
        tp_grid_real(g, before > 0 ? 100 * (after - before) / before : (double)NAN);
        put_time(g, r->lo);
        put_time(g, r->hi);
        tp_grid_text(g, tp_change_name(r->verdict));
        tp_grid_text(g, presence[r->presence]);
        tp_grid_textn(g, tp_string_get(&x->c->names, r->name),
                      tp_string_len(&x->c->names, r->name));
        tp_grid_real(g, r->p);
        tp_grid_real(g, r->p_permutation);
        tp_grid_int(g, r->before_count);
        tp_grid_int(g, r->after_count);
        tp_grid_int(g, r->before_ns);
        tp_grid_int(g, r->after_ns);
    }
}

static void put_head(const context *x, tp_buf *out)
{
    const tp_comparison *c = x->c;
    tp_buf_addf(out, "before  %s (%zu steps)\nafter   %s (%zu steps)\n", x->files[0]->path,
                c->before_steps, x->files[1]->path, c->after_steps);
    if (c->before_steps < TP_COMPARE_MIN_STEPS || c->after_steps < TP_COMPARE_MIN_STEPS)
        tp_buf_addf(out,
                    "%s: differences are shown, verdicts need at least %d steps on both sides\n",
                    c->before_steps && c->after_steps ? "few steps" : "no steps to compare by",
                    TP_COMPARE_MIN_STEPS);
    else
        tp_buf_addf(out, "%s; intervals are of the mean change per step\n",
                    c->is_paired ? "steps are paired in order" : "steps are independent samples");
    tp_buf_adds(out,
                "these are two traces: a verdict says what they show, not what a third would\n");
}

static void put_json_head(const context *x, tp_json_w *w)
{
    static const char *const keys[] = {"before", "after"};
    for (int k = 0; k < 2; k++) {
        tp_json_w_put_begin(w, keys[k], '{');
        tp_json_w_put_str(w, "file", x->files[k]->path);
        tp_json_w_put_i64(w, "steps", (int64_t)(k ? x->c->after_steps : x->c->before_steps));
        tp_json_w_end(w, '}');
    }
    tp_json_w_put_bool(w, "is_paired", x->c->is_paired);
    tp_json_w_put_i64(w, "not_judged",
                      (int64_t)(x->c->totals.n_untested + x->c->phases.n_untested +
                                x->c->operators.n_untested + x->c->kernels.n_untested));
}

static void print(const context *x)
{
    const tp_comparison *c = x->c;
    const struct {
        const char *key, *title, *what;
        const tp_compare_table *table;
    } rows[] = {
        {"totals", "Totals", "what", &c->totals},
        {"phases", "Phases (annotations of the host)", "phase", &c->phases},
        {"operators",
         c->operators_by_host ? "Operators (host self time)" : "Operators (device self time)",
         "operator", &c->operators},
        {"kernels", "Device work", "name", &c->kernels}};
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 1);
    if (x->f->json) {
        tp_json_w_begin(&w, '{');
        put_json_head(x, &w);
    } else if (!x->f->csv) {
        put_head(x, &out);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tp_grid g = {.name = rows[i].key};
        fill(x, rows[i].table, &g, rows[i].title, rows[i].what);
        if (x->f->json) {
            tp_json_w_key(&w, rows[i].key);
            tp_grid_json(&g, &w);
        } else if (x->f->csv) {
            tp_buf_adds(&out, i ? "\n" : "");
            tp_grid_csv(&g, &out);
        } else if (x->f->markdown) {
            tp_buf_addc(&out, '\n');
            tp_grid_markdown(&g, (size_t)x->f->top, &out);
        } else if (rows[i].table->n) {
            tp_buf_addc(&out, '\n');
            tp_grid_print(&g, (size_t)x->f->top, tp_cli_width(), &out);
            if (rows[i].table->n_untested)
                tp_buf_addf(&out, "  the %zu smallest changes of %zu were not judged\n",
                            rows[i].table->n_untested, rows[i].table->n);
        }
        tp_grid_release(&g);
    }
    if (x->f->json) {
        tp_json_w_end(&w, '}');
        tp_buf_addc(&out, '\n');
    }
    fwrite(tp_buf_str(&out), 1, out.len, stdout);
    tp_buf_release(&out);
}

static tp_status compare(const flags *f, const char *const *paths, tp_error *err)
{
    const tp_ingest_options options = {.keep = TP_KEEP_FAST};
    tp_select_options select = {.name = f->name};
    tp_trace_file *files[2] = {NULL, NULL};
    tp_selection sel[2] = {0};
    tp_comparison c = {0};
    tp_status status = TP_OK;
    if (f->scope && !tp_scope_parse(f->scope, &select.scope))
        return tp_fail(err, TP_ERR_ARG, "--scope is all, linked or steps, not '%s'", f->scope);
    for (int k = 0; k < 2 && status == TP_OK; k++) {
        status = tp_trace_open(paths[k], &options, &files[k], err);
        if (status == TP_OK && !files[k]->events)
            status = tp_fail(err, TP_ERR_UNSUPPORTED, "'%s' is a %s: only traces of events compare",
                             paths[k], tp_file_kind_about(files[k]->kind));
        if (status == TP_OK)
            tp_selection_make(files[k]->events, &select, &sel[k]);
    }
    if (status == TP_OK)
        status = tp_compare(&sel[0], &sel[1], &c, err);
    if (status == TP_OK)
        print(&(context){.f = f, .files = {files[0], files[1]}, .c = &c});
    tp_comparison_release(&c);
    for (int k = 0; k < 2; k++) {
        tp_selection_release(&sel[k]);
        tp_trace_close(files[k]);
    }
    return status;
}

int tp_trace_compare_command(int argc, char **argv)
{
    flags f = {.top = 10};
    char *words[argc + 1];
    tp_error err = {0};
    const tp_usage usage = {
        .command = "trace compare",
        .arguments = "BEFORE AFTER",
        .summary = "What changed between two traces: in total, by phase, operator and kernel.",
        .flags = flag_table,
        .details =
            "BEFORE and AFTER are files, '-' (standard input), or folders with one trace each, "
            "as the folder of a run.\n"
            "Verdicts: better, worse, same (within 1 %), not shown.",
        .min_words = 2,
        .max_words = 2};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    if (f.csv)
        tp_terminal_pass_data();
    tp_trace_paths before = {0}, after = {0};
    tp_status status = strcmp(words[0], "-") == 0 && strcmp(words[1], "-") == 0
                           ? tp_fail(&err, TP_ERR_ARG, "standard input (-) can be read once only")
                           : tp_trace_paths_one(words[0], &before, &err);
    if (status == TP_OK)
        status = tp_trace_paths_one(words[1], &after, &err);
    if (status == TP_OK)
        status = compare(&f, (const char *const[]){before.v[0], after.v[0]}, &err);
    tp_trace_paths_release(&before);
    tp_trace_paths_release(&after);
    return status == TP_OK ? 0 : tp_cli_fail(&err);
}
