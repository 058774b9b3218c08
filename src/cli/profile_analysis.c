/* profile_analysis.c - from figures to bottlenecks: what, how bad, by which evidence, how many
 * seconds of a step, what to try. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/platform.h"
#include "cli/profile_data.h"
#include "stats/descriptive.h"
#include "stats/trend.h"

enum { LEAK_STEPS = 10 };

/* An operator below half of its limit is worth a look when that costs this share of a step. */
static const double share_low = 0.02, share_medium = 0.05, share_high = 0.20;
static const double busy_low = 0.8, busy_high = 0.5;

static tp_severity by_share(double share)
{
    return share >= share_high     ? TP_SEVERITY_HIGH
           : share >= share_medium ? TP_SEVERITY_MEDIUM
                                   : TP_SEVERITY_LOW;
}

typedef struct {
    tp_bottleneck *rows;
    int n, cap;
} list;

static TP_PRINTF(5, 6) void add(list *l, tp_severity severity, double cost_s, const char *what,
                                const char *evidence, ...)
{
    if (l->n == l->cap)
        return;
    va_list ap;
    tp_bottleneck *b = &l->rows[l->n++];
    *b = (tp_bottleneck){.severity = severity, .cost_s = cost_s};
    snprintf(b->what, sizeof b->what, "%s", what);
    va_start(ap, evidence);
    vsnprintf(b->evidence, sizeof b->evidence, evidence, ap);
    va_end(ap);
}

static void try(list *l, const char *remedy)
{
    tp_bottleneck *b = &l->rows[l->n - 1];
    if (!b->remedy[0])
        snprintf(b->remedy, sizeof b->remedy, "%s", remedy);
}

static double mean(const double *v, int64_t n) { return tp_mean(v, (size_t)n); }

static const char *remedy_for(const tp_profile_op *op)
{
    bool computes = op->flops > 20 * op->bytes;
    if (strncmp(op->name, "attention", 9) == 0)
        return "shorter or better packed sequences; the kernel is the place to work on";
    if (computes)
        return "larger micro-batches (policy.train_micro_batch_size); engine.isa=auto, and "
               "engine.threads for the cores that are free";
    return "a fused kernel, or larger micro-batches: launches this small are mostly overhead";
}

static void look_at_operators(const tp_profile_data *d, const tp_machine *m, double step_s, list *l)
{
    for (int i = 0; i < d->n_ops; i++) {
        const tp_profile_op *op = &d->ops[i];
        double s = mean(op->s, d->n_done), limit = tp_profile_op_limit(d, m, op);
        if (isnan(limit) || s <= 0)
            continue;
        double lost = s - limit, share = limit / s;
        if (share >= 0.5 || lost < share_low * step_s)
            continue;
        char what[80];
        bool is_plain = !op->part || strcmp(op->part, "train") == 0;
        snprintf(what, sizeof what, "operator %s%s%s%s below its limit", op->name,
                 is_plain ? "" : " (", is_plain ? "" : op->part, is_plain ? "" : ")");
        add(l, by_share(lost / step_s), lost, what,
            "%.3f ms a step in %.0f launches (%.1f %% of it); its work needs %.3f ms at this "
            "machine's ceilings, so it runs at %.0f %% of them",
            s * 1e3, op->launches, 100 * s / step_s, limit * 1e3, 100 * share);
        try(l, remedy_for(op));
    }
}

static void look_at_waiting(const tp_profile_data *d, double step_s, list *l)
{
    double wait = mean(d->wait_s, d->n_done);
    if (wait < 0.02 * step_s)
        return;
    add(l, by_share(wait / step_s), wait, "waiting for data",
        "the trainer waited %.3f ms a step (%.1f %%) for the next micro-batch", wait * 1e3,
        100 * wait / step_s);
    try(l, "data.num_workers and data.prefetch_factor; a tokenised cache on a faster disk");
}

static void look_at_processor(const tp_profile_data *d, double step_s, list *l)
{
    double busy = d->cpu_s / (d->wall_s * d->threads);
    if (!(busy < busy_low))
        return;
    add(l, busy < busy_high ? TP_SEVERITY_HIGH : TP_SEVERITY_MEDIUM, (1 - busy) * step_s,
        "processor not used", "%.0f %% of %d threads' time was used (%.3g of %.3g s)", 100 * busy,
        d->threads, d->cpu_s, d->wall_s * d->threads);
    try(l, "larger micro-batches, so that each launch keeps all threads busy; check for other "
           "load on the machine");
}

static void look_at_padding(const tp_profile_data *d, double step_s, list *l)
{
    double used = mean(d->used_tokens, d->n_done), padded = mean(d->padded_tokens, d->n_done);
    double share = padded / (used + padded);
    if (!(share > 0.1))
        return;
    add(l, share > 0.3 ? TP_SEVERITY_HIGH : TP_SEVERITY_MEDIUM, share * step_s, "padding",
        "%.0f of %.0f token places a step (%.1f %%) hold nothing", padded, used + padded,
        100 * share);
    try(l, "policy.sequence_packing.enabled=true, a larger train_mb_tokens, or a "
           "train_global_batch_size that fills whole micro-batches");
}

static void look_at_recomputation(const tp_profile_data *d, double step_s, list *l)
{
    double s = 0;
    for (int i = 0; i < d->n_ops; i++)
        if (tp_str_ends(d->ops[i].name, "(again)"))
            s += mean(d->ops[i].s, d->n_done);
    if (s < share_low * step_s)
        return;
    add(l, by_share(s / step_s), s, "recomputation",
        "%.3f ms a step (%.1f %%) make activations again (%.1f %% of the arithmetic)", s * 1e3,
        100 * s / step_s, 100 * d->recompute_share);
    try(l, "policy.recompute=selective or none, if 'temper plan' says that it fits");
}

static void look_at_phases(const tp_profile_data *d, double step_s, list *l)
{
    static const int others[] = {TP_TIME_LOGGING, TP_TIME_CHECKPOINT, TP_TIME_VALIDATION,
                                 TP_TIME_UNACCOUNTED};
    for (size_t i = 0; i < TP_COUNTOF(others); i++) {
        double s = mean(d->phase_s[others[i]], d->n_done);
        if (s < 0.05 * step_s)
            continue;
        char what[80];
        snprintf(what, sizeof what, "time in %s", tp_time_name((tp_time_phase)others[i]));
        add(l, by_share(s / step_s), s, what, "%.3f ms a step (%.1f %% of one)", s * 1e3,
            100 * s / step_s);
        try(l, others[i] == TP_TIME_LOGGING ? "a faster disk for run.dir, or longer steps"
                                            : "longer periods (val_period, save_period)");
    }
}

static void look_at_memory(const tp_profile_data *d, list *l)
{
    char a[32], b[32], c[32];
    tp_memory_trend leak = tp_profile_leak(d);
    if (leak.is_known && leak.grows) {
        double rate = leak.slope;
        add(l,
            rate > 100e6  ? TP_SEVERITY_HIGH
            : rate > 10e6 ? TP_SEVERITY_MEDIUM
                          : TP_SEVERITY_LOW,
            NAN, "memory grows", "%s a step [%s, %s], p = %.2g; most of it in %s",
            tp_human_bytes(leak.slope, a), tp_human_bytes(leak.lo, b), tp_human_bytes(leak.hi, c),
            leak.p, leak.owner);
        try(l, "'temper trace memory' on a longer trace names what survives");
    }
    double waste = (double)d->activation_bytes - (double)d->live_activation_bytes;
    if (waste > 0.15 * (double)d->activation_bytes) {
        add(l, TP_SEVERITY_LOW, NAN, "activation arena with holes",
            "%s reserved for %s that live at the worst moment",
            tp_human_bytes((double)d->activation_bytes, a),
            tp_human_bytes((double)d->live_activation_bytes, b));
        try(l, "policy.recompute changes what lives together");
    }
}

static int by_cost(const void *a, const void *b)
{
    const tp_bottleneck *x = a, *y = b;
    double p = isnan(x->cost_s) ? -1 : x->cost_s, q = isnan(y->cost_s) ? -1 : y->cost_s;
    return p < q ? 1 : p > q ? -1 : 0;
}

int tp_profile_bottlenecks(const tp_profile_data *d, const tp_machine *m, tp_bottleneck *ret,
                           int cap)
{
    list l = {ret, 0, cap};
    if (d->n_done == 0)
        return 0;
    double step_s = mean(d->step_s, d->n_done);
    look_at_operators(d, m, step_s, &l);
    look_at_waiting(d, step_s, &l);
    look_at_processor(d, step_s, &l);
    look_at_padding(d, step_s, &l);
    look_at_recomputation(d, step_s, &l);
    look_at_phases(d, step_s, &l);
    look_at_memory(d, &l);
    qsort(ret, (size_t)l.n, sizeof *ret, by_cost);
    return l.n;
}

/* ---- growth of memory ---- */

/* Bytes per step, 0 when flat (a constant series has no trend to speak of). */
static double slope_of(const double *v, size_t n, double level, double *lo, double *hi)
{
    tp_theil_sen_result r;
    if (tp_theil_sen(NULL, v, n, level, &r, NULL) != TP_OK || isnan(r.slope))
        return 0;
    if (lo)
        *lo = r.lo;
    if (hi)
        *hi = r.hi;
    return r.slope;
}

tp_memory_trend tp_profile_leak(const tp_profile_data *d)
{
    tp_memory_trend leak = {0};
    size_t n = (size_t)d->n_done;
    if (n < LEAK_STEPS) {
        leak.why = "fewer than ten timed steps";
        return leak;
    }
    /* What the process holds: accounted buffers and everything else. */
    const double *held = d->rss_bytes;
    tp_mann_kendall_result trend;
    if (tp_mann_kendall(NULL, held, n, 0.05, &trend, NULL) != TP_OK) {
        leak.why = "resident memory is not known";
        return leak;
    }
    leak.is_known = true;
    leak.slope = slope_of(held, n, 0.95, &leak.lo, &leak.hi);
    leak.p = n >= 30 && !isnan(trend.corrected_p_increasing) ? trend.corrected_p_increasing
                                                             : trend.p_increasing;
    /* More than a page a step, surely. */
    leak.grows = leak.p < 0.01 && leak.lo > TP_MAX(4096.0, 1e-6 * held[n - 1]);
    leak.owner = "outside the accounts (resident memory)";
    for (int k = 0; k < TP_MEM_KINDS; k++) {
        double s = slope_of(d->kind_bytes[k], n, 0.95, NULL, NULL);
        if (s > leak.owner_slope && s > 0.5 * leak.slope) {
            leak.owner_slope = s;
            leak.owner = tp_mem_kind_name((tp_mem_kind)k);
        }
    }
    return leak;
}
