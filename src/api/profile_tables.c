/* profile_tables.c - rows of a recorded trace as tables and as JSON. */
#include "api/profile.h"

#include <math.h>
#include <string.h>

#include "api/tables.h"
#include "base/order.h"
#include "base/platform.h"
#include "base/strings.h"
#include "instrument/report/grid.h"

enum { OPERATORS = 20, RANGES = 12, OWNERS = 10 };

static bool row_is_operator(const tp_trace_row *row)
{
    return strcmp(row->category, "cpu_op") == 0;
}

static const char *row_name(const tp_trace_row *row)
{
    return tp_str_starts(row->name, "temper::") ? row->name + strlen("temper::") : row->name;
}

static tp_share share_of_roofline(const tp_train_event *e, const tp_machine *machine,
                                  const tp_trace_row *row)
{
    tp_dtype dtype = tp_session_get_options(e->session)->compile.passes.compute_dtype;
    return tp_machine_share(machine, dtype, row->flops, row->bytes, (double)row->self_ns * 1e-9);
}

/* ---- text ---- */

/* `work` per nanosecond. */
static void put_rate(tp_grid *g, double work, double ns)
{
    if (work > 0 && ns > 0)
        tp_grid_textf(g, "%.1f", work / ns);
    else
        tp_grid_unknown(g);
}

static void put_operator(const tp_train_event *e, const tp_machine *machine, const tp_trace_row *r,
                         double wall_ns, unsigned *seen, tp_grid *g)
{
    char taken[32];
    TP_OWN(tp_buf) limit = {0};
    double self = (double)r->self_ns;
    tp_share share = share_of_roofline(e, machine, r);
    *seen |= machine ? 1u << share.kind : 0;
    tp_share_put(share, 0, &limit);
    tp_grid_text(g, row_name(r));
    tp_grid_int(g, (int64_t)r->count);
    tp_grid_textf(g, "%.3f", self * 1e-6);
    tp_grid_textf(g, "%.1f%%", 100 * self / wall_ns);
    tp_grid_textf(g, "%.3f", (double)r->total_ns * 1e-6);
    tp_grid_textf(g, "%.1f", (double)r->total_ns * 1e-3 / (double)r->count);
    put_rate(g, r->flops, self);
    put_rate(g, r->bytes, self);
    tp_grid_text(g, tp_buf_str(&limit) + strspn(tp_buf_str(&limit), " "));
    tp_grid_text(g, r->n_taken ? tp_human_bytes((double)r->taken_bytes, taken) : NULL);
}

/* A row that is no operator; `n` 0: not counted. */
static void put_rest(tp_grid *g, const char *name, uint64_t n, double ns, double wall_ns)
{
    tp_grid_text(g, name);
    if (n)
        tp_grid_int(g, (int64_t)n);
    else
        tp_grid_unknown(g);
    tp_grid_textf(g, "%.3f", ns * 1e-6);
    tp_grid_textf(g, "%.1f%%", 100 * ns / wall_ns);
    for (int i = 0; i < 6; i++)
        tp_grid_text(g, "");
}

static void add_columns(tp_grid *g, bool has_limit)
{
    static const char *const figures[] = {"self ms", "share",   "total ms",
                                          "mean us", "GFLOP/s", "GB/s"};
    tp_grid_column(g, "name", "operator", TP_CELL_TEXT);
    tp_grid_column(g, "count", "count", TP_CELL_COUNT);
    for (size_t i = 0; i < TP_COUNTOF(figures); i++)
        tp_grid_column(g, figures[i], figures[i], TP_CELL_FIGURE);
    if (has_limit)
        tp_grid_column(g, "limit", "of limit", TP_CELL_FIGURE);
    else
        tp_grid_hidden(g, "limit", TP_CELL_FIGURE);
    tp_grid_column(g, "memory", "memory", TP_CELL_FIGURE);
}

static void add_operators(const tp_train_event *e, const tp_machine *machine,
                          const tp_trace_summary *s, double wall_ns, int width, tp_buf *out)
{
    int shown = 0;
    double rest = 0, all = 0;
    uint64_t n_rest = 0;
    unsigned seen = 0;
    TP_OWN(tp_grid) g = {0};
    add_columns(&g, machine != NULL);
    for (size_t i = 0; i < s->n_rows; i++) {
        if (!row_is_operator(&s->rows[i]))
            continue;
        all += (double)s->rows[i].self_ns;
        if (shown++ < OPERATORS) {
            put_operator(e, machine, &s->rows[i], wall_ns, &seen, &g);
            continue;
        }
        rest += (double)s->rows[i].self_ns;
        n_rest += s->rows[i].count;
    }
    if (n_rest)
        put_rest(&g, "others", n_rest, rest, wall_ns);
    put_rest(&g, "outside operators", 0, wall_ns - all, wall_ns);
    tp_grid_print(&g, 0, width, out);
    tp_share_put_notes(seen, out);
}

static void add_ranges(const tp_trace_summary *s, tp_buf *out)
{
    int shown = 0;
    for (size_t i = 0; i < s->n_rows && shown < RANGES; i++) {
        const tp_trace_row *r = &s->rows[i];
        if (row_is_operator(r))
            continue;
        if (shown++ == 0)
            tp_buf_addf(out, "\n%-18s %7s %10s %10s %10s\n", "range", "count", "self ms",
                        "total ms", "mean ms");
        tp_buf_addf(out, "%-18s %7llu %10.3f %10.3f %10.3f\n", r->name,
                    (unsigned long long)r->count, (double)r->self_ns * 1e-6,
                    (double)r->total_ns * 1e-6, (double)r->total_ns * 1e-6 / (double)r->count);
    }
}

TP_ORDER(by_taken, tp_trace_row *const, TP_COMPARE((*y)->taken_bytes, (*x)->taken_bytes))

/* Rows that took memory, most first; *ret is malloced. */
static size_t owners(const tp_trace_summary *s, const tp_trace_row ***ret)
{
    size_t n = 0;
    const tp_trace_row **rows = tp_new(s->n_rows + 1, sizeof *rows);
    for (size_t i = 0; i < s->n_rows; i++)
        if (s->rows[i].n_taken)
            rows[n++] = &s->rows[i];
    qsort(rows, n, sizeof *rows, by_taken);
    *ret = rows;
    return n;
}

static void add_memory(const tp_trace_summary *s, tp_buf *out)
{
    char a[32], b[32], c[32];
    const tp_trace_row **rows;
    size_t n = owners(s, &rows);
    tp_buf_addf(out, "\n%-18s %7s %11s %11s\n", "memory by operator", "times", "taken", "mean");
    for (size_t i = 0; i < n && i < OWNERS; i++)
        tp_buf_addf(out, "%-18s %7llu %11s %11s\n", row_name(rows[i]),
                    (unsigned long long)rows[i]->n_taken,
                    tp_human_bytes((double)rows[i]->taken_bytes, a),
                    tp_human_bytes((double)rows[i]->taken_bytes / (double)rows[i]->n_taken, b));
    free(rows);
    tp_buf_addf(out, "\n%-18s %7s %11s %11s %11s\n", "memory by kind", "times", "taken",
                "given back", "most alive");
    for (size_t i = 0; i < s->n_memory; i++) {
        const tp_trace_memory_row *m = &s->memory[i];
        tp_buf_addf(out, "%-18s %7llu %11s %11s %11s\n", m->kind, (unsigned long long)m->n_taken,
                    tp_human_bytes((double)m->taken_bytes, a),
                    tp_human_bytes((double)m->given_bytes, b),
                    tp_human_bytes((double)m->peak_bytes, c));
    }
    if (s->peak_allocated >= 0)
        tp_buf_addf(out, "peak: %s alive of %s reserved (%.1f %%)\n",
                    tp_human_bytes((double)s->peak_allocated, a),
                    tp_human_bytes((double)s->peak_reserved, b),
                    100 * (double)s->peak_allocated / (double)s->peak_reserved);
}

void tp_table_profile(const tp_train_event *e, const tp_machine *machine, const tp_trace_summary *s,
                      int width, tp_buf *out)
{
    const tp_profile *p = e->profile;
    double wall_ns = p->wall_s * 1e9;
    tp_buf_addf(out, "profile of steps %lld to %lld: %.3f s, %llu event%s", (long long)p->first,
                (long long)(p->first + p->steps - 1), p->wall_s, (unsigned long long)s->n_events,
                tp_plural((uint64_t)s->n_events));
    if (s->n_dropped)
        tp_buf_addf(out, " (%llu more were dropped)", (unsigned long long)s->n_dropped);
    tp_buf_addf(out, "\n\n");
    add_operators(e, machine, s, wall_ns, width, out);
    add_ranges(s, out);
    add_memory(s, out);
    tp_buf_addc(out, '\n');
    tp_table_phases(p->phase_s, out);
    tp_buf_addf(out, "\ntrace: %s\n", p->path);
}

/* ---- JSON ---- */

static void put_known(tp_json_w *w, const char *key, double v, bool is_known)
{
    tp_json_w_put_finite(w, key, is_known ? v : NAN);
}

static void put_row(const tp_train_event *e, const tp_machine *machine, const tp_trace_row *r,
                    tp_json_w *w)
{
    double self_s = (double)r->self_ns * 1e-9;
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, "name", r->name);
    tp_json_w_put_i64(w, "count", (int64_t)r->count);
    tp_json_w_put_i64(w, "self_ns", r->self_ns);
    tp_json_w_put_i64(w, "total_ns", r->total_ns);
    put_known(w, "mean_ns", (double)r->total_ns / (double)r->count, true);
    tp_json_w_put_i64(w, "least_ns", r->least_ns);
    tp_json_w_put_i64(w, "most_ns", r->most_ns);
    if (row_is_operator(r)) {
        put_known(w, "flops", r->flops, r->flops > 0);
        put_known(w, "bytes", r->bytes, r->bytes > 0);
        put_known(w, "flops_per_s", r->flops / self_s, r->flops > 0);
        put_known(w, "bytes_per_s", r->bytes / self_s, r->bytes > 0);
        put_known(w, "roofline_share", share_of_roofline(e, machine, r).share, true);
        tp_json_w_put_i64(w, "memory_events", (int64_t)r->n_taken);
        tp_json_w_put_i64(w, "memory_taken_bytes", r->taken_bytes);
    }
    tp_json_w_end(w, '}');
}

static void put_rows(const tp_train_event *e, const tp_machine *machine, const tp_trace_summary *s,
                     bool operators, tp_json_w *w)
{
    tp_json_w_begin(w, '[');
    for (size_t i = 0; i < s->n_rows; i++)
        if (row_is_operator(&s->rows[i]) == operators)
            put_row(e, machine, &s->rows[i], w);
    tp_json_w_end(w, ']');
}

static void put_memory(const tp_trace_summary *s, tp_json_w *w)
{
    tp_json_w_begin(w, '{');
    for (size_t i = 0; i < s->n_memory; i++) {
        const tp_trace_memory_row *m = &s->memory[i];
        tp_json_w_put_begin(w, m->kind, '{');
        tp_json_w_put_i64(w, "taken", (int64_t)m->n_taken);
        tp_json_w_put_i64(w, "given_back", (int64_t)m->n_given);
        tp_json_w_put_i64(w, "taken_bytes", m->taken_bytes);
        tp_json_w_put_i64(w, "given_back_bytes", m->given_bytes);
        tp_json_w_put_i64(w, "most_alive_bytes", m->peak_bytes);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, '}');
}

void tp_json_profile(const tp_train_event *e, const tp_machine *machine, const tp_trace_summary *s,
                     tp_json_w *w)
{
    const tp_profile *p = e->profile;
    tp_json_w_begin(w, '{');
    tp_json_w_put_i64(w, "first_step", p->first);
    tp_json_w_put_i64(w, "steps", p->steps);
    put_known(w, "wall_s", p->wall_s, true);
    tp_json_w_put_str(w, "trace", p->path);
    tp_json_w_put_i64(w, "events", (int64_t)s->n_events);
    tp_json_w_put_i64(w, "dropped_events", (int64_t)s->n_dropped);
    put_known(w, "zone_ns", tp_trace_get_cost().zone_ns, true);
    tp_json_w_key(w, "operators");
    put_rows(e, machine, s, true, w);
    tp_json_w_key(w, "ranges");
    put_rows(e, machine, s, false, w);
    tp_json_w_key(w, "memory");
    put_memory(s, w);
    put_known(w, "peak_allocated_bytes", (double)s->peak_allocated, s->peak_allocated >= 0);
    put_known(w, "peak_reserved_bytes", (double)s->peak_reserved, s->peak_reserved >= 0);
    tp_json_w_key(w, "phases_s");
    tp_json_phases(p->phase_s, w);
    tp_json_w_end(w, '}');
}
