/* trace_compare.c - what changed between two traces, and whether that is shown. */
#include <math.h>
#include <string.h>

#include "api/trace_options.h"
#include "base/strings.h"
#include "instrument/analyze/compare.h"
#include "instrument/ingest/ingest.h"
#include "instrument/ingest/trace_paths.h"
#include "instrument/report/trace_report.h"

typedef struct {
    const tp_trace_file *files[2];
    const tp_selection *selections;
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
    TP_GRID_MEMBER(g, "p_adjusted", NULL, TP_CELL_REAL, tp_compare_row, e.p);
    TP_GRID_MEMBER(g, "p_permutation", NULL, TP_CELL_REAL, tp_compare_row, e.p_permutation);
    TP_GRID_MEMBER(g, "before_count", NULL, TP_CELL_COUNT, tp_compare_row, before_count);
    TP_GRID_MEMBER(g, "after_count", NULL, TP_CELL_COUNT, tp_compare_row, after_count);
    TP_GRID_MEMBER(g, "before_total_ns", NULL, TP_CELL_NS, tp_compare_row, before_ns);
    TP_GRID_MEMBER(g, "after_total_ns", NULL, TP_CELL_NS, tp_compare_row, after_ns);
    for (size_t i = 0; i < t->n; i++) {
        const tp_compare_row *r = &t->rows[i];
        double before = has_steps ? r->before_step : (double)r->before_ns;
        double after = has_steps ? r->after_step : (double)r->after_ns;
        put_time(g, before);
        put_time(g, after);
        put_time(g, after - before);
        tp_grid_real(g, before > 0 ? 100 * (after - before) / before : (double)NAN);
        put_time(g, r->e.lo);
        put_time(g, r->e.hi);
        tp_grid_text(g, tp_change_name(r->verdict));
        tp_grid_text(g, presence[r->presence]);
        tp_grid_textn(g, tp_string_get(&x->c->names, r->name),
                      tp_string_len(&x->c->names, r->name));
        tp_grid_row(g, r);
    }
}

static void put_file(const context *x, int side, tp_buf *out)
{
    const tp_selection *s = &x->selections[side];
    char time[32];
    tp_buf_addf(out, "%-7s %s (%zu step%s)\n", side ? "after" : "before", x->files[side]->path,
                s->steps.n, tp_plural((uint64_t)s->steps.n));
    if (s->steps.n && s->n_stepless)
        tp_buf_addf(out, "        " TP_NOTE_STEPLESS "\n", s->n_stepless,
                    tp_human_ns(s->stepless_ns, time));
}

static void put_head(const context *x, tp_buf *out)
{
    const tp_comparison *c = x->c;
    for (int side = 0; side < 2; side++)
        put_file(x, side, out);
    if (c->before_steps < TP_COMPARE_MIN_STEPS || c->after_steps < TP_COMPARE_MIN_STEPS)
        tp_buf_addf(
            out,
            "%s: differences are shown, verdicts need at least %d steps on both sides; what is "
            "equal is the same\n",
            c->before_steps && c->after_steps ? "few steps" : "no steps to compare by",
            TP_COMPARE_MIN_STEPS);
    else
        tp_buf_addf(out, "%s; intervals are of the mean change per step\n",
                    c->is_paired ? "steps are paired in order" : "steps are independent samples");
    if (c->before_devices > 1 || c->after_devices > 1)
        tp_buf_addf(
            out, "times of the device are those of all devices together: %zu before, %zu after\n",
            c->before_devices, c->after_devices);
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

static char *print(const context *x, const tp_trace_report_options *o)
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
    tp_grid_page page;
    bool is_json = o->form == TP_FORM_JSON, is_text = o->form == TP_FORM_TEXT;
    tp_grid_page_begin(&page, o->form, tp_trace_options_top(o, 10), o->width);
    if (is_json) {
        tp_json_w_begin(&page.w, '{');
        put_json_head(x, &page.w);
    } else if (o->form != TP_FORM_CSV)
        put_head(x, &page.out);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tp_compare_table *t = rows[i].table;
        TP_OWN(tp_grid) g = {.name = rows[i].key};
        fill(x, t, &g, rows[i].title, rows[i].what);
        if (t->n || !is_text)
            tp_grid_page_put(&page, &g, page.top, i || o->form != TP_FORM_CSV);
        if (t->n_untested && is_text)
            tp_buf_addf(&page.out, "  the %zu smallest changes of %zu were not judged\n",
                        t->n_untested, t->n);
    }
    if (is_json)
        tp_json_w_end(&page.w, '}');
    return tp_grid_page_end(&page);
}

static tp_status compare(const char *const *paths, const tp_trace_report_options *o,
                         const tp_select_options *select, char **ret, tp_error *err)
{
    const tp_ingest_options options = {.keep = TP_KEEP_FAST};
    tp_trace_file *files[2] = {NULL, NULL};
    tp_selection sel[2] = {0};
    TP_OWN(tp_comparison) c = {0};
    tp_status status = TP_OK;
    for (int k = 0; k < 2 && status == TP_OK; k++) {
        status = tp_trace_open(paths[k], &options, &files[k], err);
        if (status == TP_OK && !files[k]->events)
            status = tp_fail(err, TP_ERR_UNSUPPORTED, "'%s' is a %s: only traces of events compare",
                             paths[k], tp_file_kind_about(files[k]->kind));
        if (status != TP_OK)
            break;
        tp_selection_make(files[k]->events, select, &sel[k]);
        status = tp_selection_check_steps(&sel[k], files[k]->path, err);
    }
    if (status == TP_OK)
        status = tp_compare(&sel[0], &sel[1], &c, err);
    if (status == TP_OK && o->worse)
        *o->worse = tp_comparison_is_worse(&c);
    if (status == TP_OK)
        *ret = print(&(context){{files[0], files[1]}, sel, &c}, o);
    for (int k = 0; k < 2; k++) {
        tp_selection_release(&sel[k]);
        tp_trace_close(files[k]);
    }
    return status;
}

tp_status tp_trace_report_compare(const char *before, const char *after,
                                  const tp_trace_report_options *options, char **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(before && after && ret, err);
    tp_trace_report_options o;
    tp_select_options select;
    TP_OWN(tp_trace_paths) a = {0}, b = {0};
    TP_TRY(tp_trace_options_read(options, &o, &select, err));
    TP_TRY(tp_trace_paths_one(before, &a, err));
    TP_TRY(tp_trace_paths_one(after, &b, err));
    return compare((const char *const[]){a.v[0], b.v[0]}, &o, &select, ret, err);
}
