/* tables.c - the closing tables of a run. */
#include "api/tables.h"
#include "engine/train/algorithm.h"

#include <math.h>
#include <string.h>

#include "base/order.h"
#include "base/platform.h"

enum { MAX_ROWS = 256 };

typedef struct {
    tp_op op;
    const char *kernel;
    bool is_clone;
    double ns, flops, bytes; /* flops, bytes: NaN where the work is not known */
    uint64_t launches;
} row;

static row *find_row(row *rows, int *n, const tp_launch_info *l)
{
    int k = 0;
    while (k < *n && !(rows[k].op == l->op && strcmp(rows[k].kernel, l->kernel) == 0 &&
                       rows[k].is_clone == l->is_clone))
        k++;
    if (k == MAX_ROWS)
        return NULL;
    if (k == *n)
        rows[(*n)++] = (row){.op = l->op, .kernel = l->kernel, .is_clone = l->is_clone};
    return &rows[k];
}

static void collect(const tp_exec *e, row *rows, int *n)
{
    for (size_t i = 0; i < tp_exec_launch_count(e); i++) {
        const tp_launch_info *l = tp_exec_launch(e, i);
        row *r = l->count ? find_row(rows, n, l) : NULL;
        if (!r)
            continue;
        double known = tp_launch_is_counted(l) ? 1 : NAN;
        r->ns += (double)l->ns;
        r->flops += known * l->done_flops;
        r->bytes += known * l->done_bytes;
        r->launches += l->count;
    }
}

TP_ORDER(by_time, row, TP_COMPARE(y->ns, x->ns))

/* What ran in steps, of all programs. */
static int collect_all(const tp_train_event *e, row *rows, double *total_ns)
{
    int n = 0;
    for (int i = 0; i < e->n_programs; i++)
        collect(e->programs[i].exec, rows, &n);
    qsort(rows, (size_t)n, sizeof *rows, by_time);
    *total_ns = 0;
    for (int i = 0; i < n; i++)
        *total_ns += rows[i].ns;
    return n;
}

static tp_share share_of(const tp_session *s, const tp_machine *m, const row *r)
{
    tp_dtype dtype = tp_session_get_options(s)->compile.passes.compute_dtype;
    return tp_machine_share(m, dtype, r->flops, r->bytes, r->ns * 1e-9);
}

/* A kernel's name begins with that of its operator: a narrow screen shows only the kernel. */
static void add_names(const char *operator, const char * kernel, bool is_clone, int width,
                      tp_buf *out)
{
    enum { WIDE = 100 };
    char name[64];
    snprintf(name, sizeof name, "%s%s", operator, is_clone ? " (again)" : "");
    if (width >= WIDE)
        tp_buf_addf(out, "%-22s %-27s", name, kernel);
    else if (is_clone)
        tp_buf_addf(out, "%-17.17s (again)  ", kernel);
    else
        tp_buf_addf(out, "%-27s", *kernel ? kernel : name);
}

/* Work per nanosecond. */
static void add_rate(double work, double ns, int width, tp_buf *out)
{
    if (isnan(work))
        tp_buf_addf(out, " %*s", width, "-");
    else
        tp_buf_addf(out, " %*.1f", width, work / ns);
}

static void add_row(const tp_train_event *e, const tp_machine *machine, const row *r, double total,
                    int width, unsigned *seen, tp_buf *out)
{
    double steps = (double)e->counted_steps;
    add_names(tp_ops[r->op]->name, r->kernel, r->is_clone, width, out);
    tp_buf_addf(out, " %8.0f %9.3f %5.1f%%", (double)r->launches / steps, r->ns * 1e-6 / steps,
                100 * r->ns / total);
    add_rate(r->flops, r->ns, 8, out);
    add_rate(r->bytes, r->ns, 7, out);
    if (machine) {
        tp_share share = share_of(e->session, machine, r);
        tp_share_put(share, 7, out);
        *seen |= 1u << share.kind;
    }
    tp_buf_addc(out, '\n');
}

bool tp_table_operators(const tp_train_event *e, const tp_machine *machine, int limit, int width,
                        tp_buf *out)
{
    row rows[MAX_ROWS];
    double total, rest = 0;
    unsigned seen = 0;
    bool any_unknown = false;
    int n = collect_all(e, rows, &total);
    add_names("operator", "kernel", false, width, out);
    tp_buf_addf(out, " %8s %9s %6s %8s %7s %s\n", "launches", "ms/step", "share", "GFLOP/s", "GB/s",
                machine ? "of limit" : "");
    for (int i = 0; i < n && i < limit && rows[i].ns > 0; i++) {
        add_row(e, machine, &rows[i], total, width, &seen, out);
        any_unknown |= isnan(rows[i].bytes);
    }
    for (int i = limit; i < n; i++)
        rest += rows[i].ns;
    if (rest > 0) {
        add_names("others", "", false, width, out);
        tp_buf_addf(out, " %8s %9.3f %5.1f%%\n", "", rest * 1e-6 / (double)e->counted_steps,
                    100 * rest / total);
    }
    tp_share_put_notes(seen, out);
    if (any_unknown)
        tp_buf_adds(out, TP_SHARE_VARIES);
    return !(seen & 1u << TP_SHARE_IMPOSSIBLE);
}

void tp_json_operators(const tp_train_event *e, tp_json_w *w)
{
    row rows[MAX_ROWS];
    double total, steps = (double)TP_MAX(e->counted_steps, 1);
    int n = collect_all(e, rows, &total);
    tp_json_w_begin(w, '[');
    for (int i = 0; i < n; i++) {
        tp_json_w_begin(w, '{');
        tp_json_w_put_str(w, "operator", tp_ops[rows[i].op]->name);
        tp_json_w_put_str(w, "kernel", rows[i].kernel);
        tp_json_w_put_bool(w, "recomputed", rows[i].is_clone);
        tp_json_w_put_f64(w, "launches_per_step", (double)rows[i].launches / steps);
        tp_json_w_put_f64(w, "ms_per_step", rows[i].ns * 1e-6 / steps);
        tp_json_w_put_known(w, "flops_per_step", rows[i].flops / steps);
        tp_json_w_put_known(w, "bytes_per_step", rows[i].bytes / steps);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}

void tp_table_memory(const tp_run_plan *plan, const tp_mem_stats *measured, tp_buf *out)
{
    char a[32], b[32];
    tp_buf_addf(out, "%-16s %12s%s\n", "memory", "planned", measured ? "     measured" : "");
    for (int k = 0; k < TP_MEM_KINDS; k++) {
        size_t got = measured ? measured->peak[k] : 0;
        if (plan->bytes[k] == 0 && got == 0)
            continue;
        tp_buf_addf(out, "%-16s %12s", tp_mem_kind_title((tp_mem_kind)k),
                    tp_human_bytes((double)plan->bytes[k], a));
        if (measured)
            tp_buf_addf(out, " %12s", tp_human_bytes((double)got, b));
        tp_buf_addc(out, '\n');
    }
    tp_buf_addf(out, "%-16s %12s", "peak", tp_human_bytes((double)plan->peak_bytes, a));
    if (measured)
        tp_buf_addf(out, " %12s   (planned / measured %.4f)",
                    tp_human_bytes((double)measured->total_peak, b),
                    (double)plan->peak_bytes / (double)measured->total_peak);
    tp_buf_addc(out, '\n');
}

void tp_table_step(const tp_train_event *e, tp_buf *out)
{
    char a[32], b[32];
    double planned = e->plan->step_s, measured = e->mean_step_s;
    if (isnan(measured))
        return;
    tp_buf_addf(out, "%-16s %12s %12s", "step on average",
                isnan(planned) ? "unknown" : tp_human_seconds(planned, a),
                tp_human_seconds(measured, b));
    if (isnan(planned))
        tp_buf_adds(out, "   (planned: run 'temper doctor' once to measure this machine)\n");
    else
        tp_buf_addf(out,
                    "   (planned / measured %.4f)\n(planned: full sequences, at the ceilings)\n",
                    planned / measured);
}

static void put_kinds(tp_json_w *w, const char *key, const size_t bytes[TP_MEM_KINDS])
{
    tp_json_w_put_begin(w, key, '{');
    for (int k = 0; k < TP_MEM_KINDS; k++)
        tp_json_w_put_i64(w, tp_mem_kind_name((tp_mem_kind)k), (int64_t)bytes[k]);
    tp_json_w_end(w, '}');
}

void tp_json_memory(const tp_train_event *e, tp_json_w *w)
{
    tp_json_w_begin(w, '{');
    tp_json_w_put_i64(w, "planned_peak_bytes", (int64_t)e->plan->peak_bytes);
    tp_json_w_put_i64(w, "measured_peak_bytes", (int64_t)e->memory.total_peak);
    put_kinds(w, "planned_bytes_by_kind", e->plan->bytes);
    put_kinds(w, "peak_bytes_by_kind", e->memory.peak);
    tp_json_w_end(w, '}');
}

static void add_custom(tp_custom_metric m, double v, tp_buf *out)
{
    char text[32];
    if (m == TP_CUSTOM_PROCESSOR || m == TP_CUSTOM_ACCELERATOR || m == TP_CUSTOM_PADDING)
        tp_buf_addf(out, " %11.0f%%", 100 * v);
    else if (m == TP_CUSTOM_RESIDENT || m == TP_CUSTOM_ALLOCATED ||
             m == TP_CUSTOM_ACCELERATOR_MEMORY)
        tp_buf_addf(out, " %12s", tp_human_bytes(v, text));
    else
        tp_buf_addf(out, " %12.6g", v);
}

/* Micro-batches that steps do not fill, where all of their places are computed. */
static void add_padding_advice(const tp_train_event *e, tp_buf *out)
{
    static const double much = 0.2;
    const tp_custom_stat *tokens = &e->custom->stats[TP_CUSTOM_TOKENS];
    const tp_custom_stat *padding = &e->custom->stats[TP_CUSTOM_PADDING];
    const tp_session_options *options = tp_session_get_options(e->session);
    double share = padding->sum / (double)padding->n;
    if (share < much || !options->keeps_padding)
        return;
    tp_buf_addf(
        out,
        "\n%.0f %% of what was computed was padding: steps have %.0f tokens (%lld at most), "
        "micro-batches hold %lld.\nengine.padding_free=true would leave it out.\n",
        100 * share, tokens->sum / (double)tokens->n, (long long)tokens->most,
        (long long)options->tokens);
}

void tp_table_custom(const tp_train_event *e, tp_buf *out)
{
    const tp_custom_metrics *c = e->custom;
    if (!c || c->stats[TP_CUSTOM_LR].n == 0)
        return;
    tp_buf_addf(out, "\n%-30s %12s %12s %12s\n", "per step", "mean", "most", "last");
    for (int m = 0; m < TP_CUSTOM_METRICS; m++) {
        const tp_custom_stat *s = &c->stats[m];
        const char *why = tp_custom_why(c, (tp_custom_metric)m);
        if (s->n == 0 && why && m == TP_CUSTOM_ACCELERATOR)
            tp_buf_addf(out, "%-30s unknown: %s\n", tp_custom_name((tp_custom_metric)m), why);
        if (s->n == 0)
            continue;
        tp_buf_addf(out, "%-30s", tp_custom_name((tp_custom_metric)m));
        add_custom((tp_custom_metric)m, s->sum / (double)s->n, out);
        add_custom((tp_custom_metric)m, s->most, out);
        add_custom((tp_custom_metric)m, s->last, out);
        tp_buf_addc(out, '\n');
    }
    if (e->session && e->is_packed)
        add_padding_advice(e, out);
}

void tp_table_phases(const double phase_s[TP_TIME_COUNT], tp_buf *out)
{
    double wall = 0;
    for (int i = 0; i < TP_TIME_COUNT; i++)
        wall += phase_s[i];
    tp_buf_addf(out, "%-16s %10s %7s\n", "phase", "seconds", "share");
    for (int i = 0; i < TP_TIME_COUNT; i++)
        if (phase_s[i] > 0)
            tp_buf_addf(out, "%-16s %10.3f %6.1f%%\n", tp_time_name((tp_time_phase)i), phase_s[i],
                        100 * phase_s[i] / wall);
    tp_buf_addf(out, "%-16s %10.3f %6.1f%%\n", "wall", wall, 100.0);
}

void tp_json_phases(const double phase_s[TP_TIME_COUNT], tp_json_w *w)
{
    tp_json_w_begin(w, '{');
    for (int i = 0; i < TP_TIME_COUNT; i++)
        tp_json_w_put_f64(w, tp_time_name((tp_time_phase)i), phase_s[i]);
    tp_json_w_end(w, '}');
}
