/* bottlenecks.c - from figures of steps to findings: what, how bad, by which evidence, how many
 * seconds of a step, what to try. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "instrument/profile/profile.h"
#include "stats/descriptive.h"

/* An operator below half of its limit is worth a look when that costs this share of a step. */
static const double share_low = TP_FINDING_LEAST_SHARE;

static int64_t ns_of(double seconds) { return (int64_t)llround(seconds * 1e9); }

static tp_finding *add(tp_findings *f, const char *title, double cost_s, double step_s,
                       const char *advice)
{
    return tp_findings_add(f, title, ns_of(cost_s), cost_s / step_s, advice);
}

static double mean(const double *v, int64_t n) { return tp_mean(v, (size_t)n); }

#define LARGER "larger micro-batches (policy.train_micro_batch_size)"

static const char *remedy_for(const tp_profile_data *d, const tp_profile_op *op)
{
    static const char *const remedies[2][2] = {
        {LARGER "; engine.isa=auto, and engine.threads for the cores that are free",
         LARGER "; engine.isa=auto"},
        {LARGER "; engine.threads for the cores that are free", LARGER}};
    bool computes = op->flops > 20 * op->bytes;
    if (strncmp(op->name, "attention", 9) == 0)
        return "shorter or better packed sequences; the kernel is the place to work on";
    if (computes)
        return remedies[d->has_best_isa][d->has_all_threads];
    return "a fused kernel, or larger micro-batches: launches this small are mostly overhead";
}

static void look_at_operators(const tp_profile_data *d, double step_s, tp_findings *f)
{
    for (int i = 0; i < d->n_ops; i++) {
        const tp_profile_op *op = &d->ops[i];
        double s = mean(op->s, d->n_done), limit = op->limit_s;
        if (isnan(limit) || s <= 0)
            continue;
        double lost = s - limit, share = limit / s;
        if (share >= 0.5 || lost < share_low * step_s)
            continue;
        char what[80];
        bool is_plain = !op->part || strcmp(op->part, "train") == 0;
        snprintf(what, sizeof what, "operator %s%s%s%s below its limit", op->name,
                 is_plain ? "" : " (", is_plain ? "" : op->part, is_plain ? "" : ")");
        tp_finding *one = add(f, what, lost, step_s, remedy_for(d, op));
        tp_finding_evidence(one,
                            "%.3f ms a step in %.0f launches (%.1f %% of it); its work needs %.3f "
                            "ms at this machine's ceilings, so it runs at %.0f %% of them",
                            s * 1e3, op->launches, 100 * s / step_s, limit * 1e3, 100 * share);
    }
}

static void look_at_waiting(const tp_profile_data *d, double step_s, tp_findings *f)
{
    double wait = mean(d->wait_s, d->n_done);
    if (wait < 0.02 * step_s)
        return;
    tp_finding *one =
        add(f, "waiting for data", wait, step_s,
            "data.num_workers and data.prefetch_factor; a tokenised cache on a faster disk");
    tp_finding_evidence(one, "the trainer waited %.3f ms a step (%.1f %%) for the next micro-batch",
                        wait * 1e3, 100 * wait / step_s);
}

static void look_at_processor(const tp_profile_data *d, double step_s, tp_findings *f)
{
    double busy = d->cpu_s / (d->wall_s * d->threads);
    tp_severity severity;
    if (!tp_severity_of_use(busy, &severity))
        return;
    tp_finding *one = add(f, "processor not used", (1 - busy) * step_s, step_s,
                          "larger micro-batches, so that each launch keeps all threads busy; "
                          "check for other load on the machine");
    one->severity = severity;
    tp_finding_evidence(one, "%.0f %% of %d threads' time was used (%.3g of %.3g s)", 100 * busy,
                        d->threads, d->cpu_s, d->wall_s * d->threads);
}

static void look_at_padding(const tp_profile_data *d, double step_s, tp_findings *f)
{
    double used = mean(d->used_tokens, d->n_done), padded = mean(d->padded_tokens, d->n_done);
    double share = padded / (used + padded);
    if (!(share > 0.1))
        return;
    /* Without padding the last rows of a micro-batch are left, which kernels take together. */
    const char *advice = d->keeps_padding && !d->is_packed
                             ? "engine.padding_free=true, policy.sequence_packing.enabled=true"
                         : d->keeps_padding ? "engine.padding_free=true"
                         : d->is_packed ? LARGER ": kernels take rows together, and few fill them"
                                        : "policy.sequence_packing.enabled=true";
    tp_finding *one = add(f, "padding", share * step_s, step_s, advice);
    one->severity = share > 0.3 ? TP_SEVERITY_HIGH : TP_SEVERITY_MEDIUM;
    tp_finding_evidence(one, "%.0f of %.0f token places a step (%.1f %%) hold nothing", padded,
                        used + padded, 100 * share);
}

static void look_at_recomputation(const tp_profile_data *d, double step_s, tp_findings *f)
{
    double s = 0;
    for (int i = 0; i < d->n_ops; i++)
        if (d->ops[i].is_again)
            s += mean(d->ops[i].s, d->n_done);
    if (s < share_low * step_s)
        return;
    tp_finding *one =
        add(f, "recomputation", s, step_s,
            d->recomputes_selectively
                ? "policy.recompute=none, if 'temper plan' says that it fits"
                : "policy.recompute=selective or none, if 'temper plan' says that it fits");
    tp_finding_evidence(
        one, "%.3f ms a step (%.1f %%) make activations again (%.1f %% of the arithmetic)", s * 1e3,
        100 * s / step_s, 100 * d->recompute_share);
}

/* Beside the step's own time, so of all the time that passes, as in the table of phases. */
static void look_at_phases(const tp_profile_data *d, tp_findings *f)
{
    double wall_s = tp_profile_wall_s(d);
    for (int k = 0; k < d->n_phases; k++) {
        const tp_profile_phase *phase = &d->phases[k];
        double s = mean(phase->s, d->n_done);
        if (!phase->overhead || s < 0.05 * wall_s)
            continue;
        char what[80];
        snprintf(what, sizeof what, "time in %s", phase->name);
        tp_finding_evidence(add(f, what, s, wall_s, phase->overhead),
                            "%.3f ms a step (%.1f %% of the wall time)", s * 1e3, 100 * s / wall_s);
    }
}

static void look_at_memory(const tp_profile_data *d, tp_findings *f)
{
    char a[32], b[32], c[32];
    tp_profile_growth g = tp_profile_leak(d);
    if (g.leak.verdict == TP_LEAK_GROWING) {
        tp_finding *one = tp_findings_add(f, "memory grows", TP_UNKNOWN, 0,
                                          "'temper trace memory' on a longer trace names what "
                                          "survives");
        one->severity = tp_severity_of_growth(g.leak.slope);
        tp_finding_evidence(one, "%s a step [%s, %s], p = %.2g; most of it in %s",
                            tp_human_bytes(g.leak.slope, a), tp_human_bytes(g.leak.lo, b),
                            tp_human_bytes(g.leak.hi, c), g.leak.p_rising, g.owner->title);
    }
    double waste = (double)d->activation_bytes - (double)d->live_activation_bytes;
    if (waste > 0.15 * (double)d->activation_bytes)
        tp_finding_evidence(tp_findings_add(f, "activation arena with holes", TP_UNKNOWN, 0,
                                            "policy.recompute changes what lives together"),
                            "%s reserved for %s that live at the worst moment",
                            tp_human_bytes((double)d->activation_bytes, a),
                            tp_human_bytes((double)d->live_activation_bytes, b));
}

void tp_profile_bottlenecks(const tp_profile_data *d, tp_findings *ret)
{
    tp_findings f = {.n = 0};
    if (d->n_done > 0) {
        double step_s = mean(d->step_s, d->n_done);
        look_at_operators(d, step_s, &f);
        look_at_waiting(d, step_s, &f);
        look_at_processor(d, step_s, &f);
        look_at_padding(d, step_s, &f);
        look_at_recomputation(d, step_s, &f);
        look_at_phases(d, &f);
        look_at_memory(d, &f);
    }
    tp_findings_sort(&f);
    *ret = f;
}

/* ---- growth of memory ---- */

tp_profile_growth tp_profile_leak(const tp_profile_data *d)
{
    size_t n = (size_t)d->n_done;
    static const char outside[] = "outside the accounts (resident memory)";
    static const tp_profile_kind no_kind = {.name = outside, .title = outside};
    tp_profile_growth g = {.owner = &no_kind};
    const tp_leak_options options = {.is_warm = true, .grain_bytes = (double)sysconf(_SC_PAGESIZE)};
    double most = 0, p, slope;
    if (tp_leak_test(d->rss_bytes, n, &options, &g.leak, NULL) != TP_OK) {
        g.why = "resident memory is not known";
        g.leak.verdict = TP_LEAK_CANNOT_TELL;
        return g;
    }
    if (g.leak.verdict == TP_LEAK_CANNOT_TELL)
        g.why = "fewer than ten timed steps";
    for (int k = 0; k < d->n_kinds && g.leak.verdict == TP_LEAK_GROWING; k++)
        if (tp_leak_group(d->kinds[k].bytes, n, &p, &slope, NULL) == TP_OK && slope > most &&
            slope > 0.5 * g.leak.slope) {
            most = slope;
            g.owner = &d->kinds[k];
        }
    return g;
}
