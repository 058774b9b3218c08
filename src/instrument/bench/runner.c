/* runner.c - calibration, warm-up and rounds of one subject or of two in turn. */
#include "instrument/bench/runner.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "instrument/bench/order.h"
#include "stats/stats.h"

/* Below LEAST rounds nothing can be said, whatever the budget: they are always run. */
enum { STEADY = 5, MAX_WORK_DOUBLINGS = 40, LEAST = 6 };
typedef struct {
    const tp_bench_plan *plan;
    tp_subject *subject[2]; /* A, B; A may be NULL */
    bool is_up[2];
    uint64_t work;
    size_t cap, n; /* rounds */
    double *values[2][TP_BENCH_MAX_METRICS];
    uint64_t *checksums[2];
    bool has_checksums;
    char *order;
    tp_round_conditions *attempts;
    size_t n_attempts, cap_attempts, n_disturbed;
    bool is_busy; /* disturbance is the rule: every round counts from here on */
    size_t warm_up;
    double start_s; /* of the rounds */
    tp_bench_comparison comparison;
    tp_summary summary;
    tp_bench_progress progress;
} session;

tp_bench_plan tp_bench_plan_default(void)
{
    return (tp_bench_plan){.min_rounds = 8,
                           .max_rounds = 60,
                           .warm_up = 2,
                           .warm_up_most = 20,
                           .warm_up_s = 2,
                           .budget_s = 60,
                           .precision = 0.01,
                           .min_round_s = 0.05,
                           .seed = 1,
                           .rule = {.alpha = 0.05, .tolerance = 0.05, .family = 1}};
}

static uint64_t now(const session *s)
{
    const tp_bench_clock *clock = &s->plan->clock;
    return clock->now_ns ? clock->now_ns(clock->user) : tp_clock_ns();
}

static double left_s(const session *s)
{
    const tp_bench_plan *plan = s->plan;
    double spent = s->progress.elapsed_s;
    if (s->progress.is_warming_up || s->n == 0)
        return NAN;
    if (plan->rounds)
        return spent / (double)s->n * (double)(plan->rounds - s->n);
    return plan->budget_s > 0 ? fmax(plan->budget_s - spent, 0) : (double)NAN;
}

static void observe(session *s)
{
    if (!s->plan->observe)
        return;
    s->progress.elapsed_s = (double)now(s) * 1e-9 - s->start_s;
    s->progress.left_s = left_s(s);
    s->plan->observe(s->plan->user, &s->progress);
}

/* ---- one run ---- */

static tp_status set_up(session *s, int side, tp_error *err)
{
    tp_subject *subject = s->subject[side];
    if (s->is_up[side] || !subject)
        return TP_OK;
    s->is_up[side] = true;
    return subject->class->set_up ? subject->class->set_up(subject, err) : TP_OK;
}

static void tear_down(session *s, int side)
{
    tp_subject *subject = s->subject[side];
    if (s->is_up[side] && subject->class->tear_down)
        subject->class->tear_down(subject);
    s->is_up[side] = false;
}

static tp_status run_once(session *s, int side, uint64_t work, tp_bench_sample *ret, tp_error *err)
{
    tp_subject *subject = s->subject[side];
    tp_bench_sample sample = {0};
    for (size_t i = 0; i < TP_BENCH_MAX_METRICS; i++)
        sample.values[i] = NAN;
    TP_TRY(set_up(s, side, err));
    uint64_t start = now(s);
    TP_TRY(subject->class->run(subject, work, &sample, err));
    tp_bench_sample_finish(subject, work, now(s) - start, &sample);
    *ret = sample;
    return TP_OK;
}

/* ---- before the rounds ---- */

/* Double the work until a run takes the least time, then scale to it.  Always on A, so
 * that the amount does not depend on what is examined. */
static tp_status calibrate(session *s, tp_error *err)
{
    int side = s->subject[0] ? 0 : 1;
    double least = s->plan->min_round_s;
    tp_bench_sample sample;
    s->work = s->subject[side]->work;
    if (s->work > 0)
        return TP_OK;
    s->work = 1;
    for (int i = 0; i < MAX_WORK_DOUBLINGS; i++) {
        TP_TRY(run_once(s, side, s->work, &sample, err));
        double seconds = (double)sample.elapsed_ns * 1e-9;
        if (seconds >= least)
            return TP_OK;
        if (seconds > least / 8) {
            s->work = (uint64_t)ceil((double)s->work * 1.05 * least / seconds);
            return TP_OK;
        }
        s->work *= 2;
    }
    return TP_OK;
}

static bool is_steady(const double *times, size_t n)
{
    double before, last;
    return n >= 2 * STEADY && tp_median(times + n - 2 * STEADY, STEADY, &before, NULL) == TP_OK &&
           tp_median(times + n - STEADY, STEADY, &last, NULL) == TP_OK &&
           fabs(last - before) < 0.01 * last;
}

static tp_status warm_up(session *s, tp_error *err)
{
    const tp_bench_plan *plan = s->plan;
    size_t most = plan->warm_up_most > plan->warm_up ? plan->warm_up_most : plan->warm_up;
    TP_FREED double *times = tp_new(2 * most + 2, sizeof *times);
    tp_status status = TP_OK;
    double start = (double)now(s) * 1e-9;
    while (status == TP_OK && s->warm_up < most) {
        double spent = (double)now(s) * 1e-9 - start;
        bool steady =
            (!s->subject[0] || is_steady(times, s->warm_up)) && is_steady(times + most, s->warm_up);
        if (s->warm_up >= plan->warm_up && (steady || spent > plan->warm_up_s))
            break;
        for (int side = 0; side < 2 && status == TP_OK; side++) {
            tp_bench_sample sample = {0};
            if (!s->subject[side])
                continue;
            status = run_once(s, side, s->work, &sample, err);
            times[(side ? most : 0) + s->warm_up] = (double)sample.elapsed_ns;
        }
        s->warm_up++;
        s->progress.round = s->warm_up;
        observe(s);
    }
    s->progress.is_warming_up = false;
    return status;
}

/* ---- the rounds ---- */

/* A side that has just been set up anew runs once for nothing. */
static tp_status refresh(session *s, tp_error *err)
{
    tp_bench_sample sample;
    if (s->plan->fresh == 0 || s->n == 0 || s->n % s->plan->fresh != 0)
        return TP_OK;
    for (int side = 0; side < 2; side++) {
        if (!s->subject[side])
            continue;
        tear_down(s, side);
        TP_TRY(run_once(s, side, s->work, &sample, err));
    }
    return TP_OK;
}

static void keep(session *s, int side, const tp_bench_sample *sample)
{
    for (size_t i = 0; i < s->subject[side]->n_metrics; i++)
        s->values[side][i][s->n] = sample->values[i];
    s->checksums[side][s->n] = sample->checksum;
    s->has_checksums = sample->has_checksum;
}

static tp_machine_reading begin_watching(const session *s)
{
    tp_machine_reading now = {TP_READING_UNKNOWN, TP_READING_UNKNOWN, TP_READING_UNKNOWN,
                              TP_READING_UNKNOWN};
    if (s->plan->read_machine)
        s->plan->read_machine(s->plan->machine, &now);
    return now;
}

/* Is the round to be measured again? */
static bool is_rejected(session *s, const tp_machine_reading *before, const int64_t switches[2],
                        const double seconds[2])
{
    if (!s->plan->read_machine)
        return false;
    tp_machine_reading after = begin_watching(s);
    TP_ASSERT(s->n_attempts < s->cap_attempts);
    tp_round_conditions *c = &s->attempts[s->n_attempts++];
    *c = tp_round_judge(before, &after, switches, seconds);
    s->n_disturbed += c->reason != TP_UNDISTURBED;
    s->is_busy |= tp_too_many_disturbed(s->n_disturbed, s->n_attempts);
    c->is_rejected = c->reason != TP_UNDISTURBED && !s->is_busy;
    return c->is_rejected;
}

static tp_status run_round(session *s, tp_error *err)
{
    char first = tp_order_first(s->plan->seed, s->n);
    tp_bench_sample sample;
    TP_TRY(refresh(s, err));
    s->order[s->n] = first;
    tp_machine_reading before = begin_watching(s);
    int64_t switches[2] = {TP_READING_UNKNOWN, TP_READING_UNKNOWN};
    double seconds[2] = {0, 0};
    for (int turn = 0; turn < 2; turn++) {
        int side = (first == 'B') != (turn == 1);
        if (!s->subject[side])
            continue;
        TP_TRY(run_once(s, side, s->work, &sample, err));
        keep(s, side, &sample);
        if (sample.has_switches)
            switches[side] = sample.switches;
        seconds[side] = (double)sample.elapsed_ns * 1e-9;
    }
    if (!is_rejected(s, &before, switches, seconds))
        s->n++; /* else the next round takes its place */
    return TP_OK;
}

/* The first metric so far: a comparison, or a summary of B. */
static bool is_enough(session *s)
{
    const tp_bench_plan *plan = s->plan;
    const tp_metric *metric = &s->subject[1]->metrics[0];
    char why[8];
    bool valid =
        tp_rule_check(metric, s->values[1][0], s->n, 1, why, sizeof why) &&
        (!s->subject[0] || tp_rule_check(metric, s->values[0][0], s->n, 1, why, sizeof why));
    s->progress.metric = metric;
    s->progress.summary = NULL;
    s->progress.comparison = NULL;
    if (!valid)
        return true; /* more rounds do not mend it */
    s->summary = tp_summarise(s->values[1][0], s->n);
    s->progress.summary = &s->summary;
    if (s->subject[0]) {
        tp_rule_paired(&plan->rule, metric, s->values[0][0], s->values[1][0], s->order, s->n,
                       &s->comparison);
        s->progress.comparison = &s->comparison;
    }
    if (plan->rounds > 0)
        return s->n >= plan->rounds;
    if (s->n < plan->min_rounds || s->n % 2 != 0)
        return false;
    if (s->subject[0])
        return tp_rule_decided(&plan->rule, &s->comparison);
    double half = (s->summary.upper - s->summary.lower) / 2;
    return metric->kind == TP_METRIC_EXACT || half <= plan->precision * s->summary.median;
}

static tp_status run_rounds(session *s, tp_error *err)
{
    const tp_bench_plan *plan = s->plan;
    s->start_s = (double)now(s) * 1e-9;
    s->progress.n_planned = plan->rounds;
    while (s->n < s->cap) {
        size_t n = s->n;
        TP_TRY(run_round(s, err));
        s->progress.round = s->n;
        /* Nothing new is no reason to look at the data once more. */
        bool is_new = s->n > n, enough = is_new && is_enough(s);
        observe(s);
        if (!is_new)
            continue;
        bool broke = plan->budget_s > 0 && plan->rounds == 0 && s->n >= LEAST && s->n % 2 == 0 &&
                     (double)now(s) * 1e-9 - s->start_s > plan->budget_s;
        if (enough || broke)
            break;
    }
    return TP_OK;
}

/* ---- the result ---- */

/* "steal 3, switches 1" */
static void put_reasons(const session *s, tp_buf *out)
{
    for (int k = TP_UNDISTURBED + 1; k < TP_DISTURBANCES; k++) {
        size_t n = 0;
        for (size_t i = 0; i < s->n_attempts; i++)
            n += s->attempts[i].reason == (tp_disturbance)k;
        if (n)
            tp_buf_addf(out, "%s%s %zu", out->len ? ", " : "",
                        tp_disturbance_name((tp_disturbance)k), n);
    }
}

static void report_disturbed(tp_bench_report *report, const session *s, tp_bench_result *result)
{
    TP_OWN(tp_buf) reasons = {0};
    put_reasons(s, &reasons);
    result->note = tp_bench_report_printf(
        report,
        s->is_busy ? "%zu of %zu rounds were disturbed (%s): the machine is busy throughout, so "
                     "they count, and the interval is as wide as that makes it"
                   : "%zu of %zu rounds measured again: %s",
        s->n_disturbed, s->n_attempts, tp_buf_str(&reasons));
}

static void judge(tp_bench_report *report, const session *s, tp_bench_result *result)
{
    char why[200];
    /* Fewer rounds than these can never show anything: a short measurement fails. */
    size_t least = s->plan->rounds ? s->plan->rounds : 5;
    for (size_t i = 0; i < result->n_metrics; i++) {
        tp_bench_metric *m = &result->metrics[i];
        m->side_b = tp_summarise(m->b, m->n_b);
        m->side_a = tp_summarise(m->a, m->n_a);
        /* What is only shown may be 0 or unknown. */
        bool is_shown = m->metric.is_informative;
        if (is_shown &&
            (!tp_rule_check(&m->metric, m->b, m->n_b, 1, why, sizeof why) ||
             (s->subject[0] && !tp_rule_check(&m->metric, m->a, m->n_a, 1, why, sizeof why))))
            continue;
        if (!tp_rule_check(&m->metric, m->b, m->n_b, least, why, sizeof why)) {
            tp_result_fail(report, result, "%s", why);
            return;
        }
        if (!s->subject[0])
            continue;
        if (!tp_rule_check(&m->metric, m->a, m->n_a, least, why, sizeof why)) {
            tp_result_fail(report, result, "side A: %s", why);
            return;
        }
        if (m->metric.kind == TP_METRIC_EXACT)
            tp_rule_exact(&s->plan->rule, &m->metric, m->a[0], m->b[0], &m->comparison);
        else
            tp_rule_paired(&s->plan->rule, &m->metric, m->a, m->b, s->order, s->n, &m->comparison);
        m->is_compared = true;
    }
    if (s->n_disturbed)
        report_disturbed(report, s, result);
    if (s->has_checksums && s->subject[0] &&
        memcmp(s->checksums[0], s->checksums[1], s->n * sizeof **s->checksums) != 0)
        result->note = "the two sides computed different results from the same work";
}

static void conclude(tp_bench_report *report, const char *name, const session *s,
                     const tp_error *failure, double seconds)
{
    tp_subject *b = s->subject[1];
    bool failed = failure->status != TP_OK;
    size_t n_metrics = failed && s->n == 0 ? 0 : b->n_metrics;
    tp_bench_result *result = tp_bench_report_add(report, name, n_metrics);
    result->work = s->work;
    result->work_unit = b->work_unit ? tp_arena_strdup(&report->arena, b->work_unit) : NULL;
    result->rounds = s->n;
    result->warm_up = s->warm_up;
    result->seed = s->plan->seed;
    result->seconds = seconds;
    result->is_sequential = s->subject[0] && s->plan->rounds == 0;
    result->n_attempts = s->n_attempts;
    result->n_disturbed = s->n_disturbed;
    if (s->n_attempts) {
        tp_round_conditions *copy =
            tp_arena_array(&report->arena, tp_round_conditions, s->n_attempts);
        memcpy(copy, s->attempts, s->n_attempts * sizeof *copy);
        result->attempts = copy;
    }
    if (s->subject[0])
        result->order = tp_arena_strndup(&report->arena, s->order, s->n);
    for (size_t i = 0; i < n_metrics; i++) {
        tp_bench_metric *m = &result->metrics[i];
        m->metric = b->metrics[i];
        m->metric.name = tp_arena_strdup(&report->arena, m->metric.name);
        m->metric.unit = tp_arena_strdup(&report->arena, m->metric.unit);
        m->n_b = s->n;
        m->b = tp_bench_report_values(report, s->values[1][i], s->n);
        m->n_a = s->subject[0] ? s->n : 0;
        m->a = s->subject[0] ? tp_bench_report_values(report, s->values[0][i], s->n) : NULL;
    }
    if (failed)
        tp_result_fail(report, result, "%s", failure->message);
    else
        judge(report, s, result);
}

static tp_status make_room(session *s, tp_error *err)
{
    const tp_bench_plan *plan = s->plan;
    s->cap = plan->rounds ? plan->rounds : plan->max_rounds;
    if (s->cap > TP_BENCH_MAX_SAMPLES)
        return tp_fail(err, TP_ERR_ARG, "%zu rounds are too many; at most %d", s->cap,
                       TP_BENCH_MAX_SAMPLES);
    size_t n = s->cap + 1;
    s->cap_attempts = 2 * n; /* fewer than 4, or a third of the rounds, are measured again */
    s->order = tp_new(n, 1);
    s->attempts = tp_new(s->cap_attempts, sizeof *s->attempts);
    for (int side = 0; side < 2; side++) {
        s->checksums[side] = tp_new(n, sizeof(uint64_t));
        for (size_t i = 0; i < TP_BENCH_MAX_METRICS; i++)
            s->values[side][i] = tp_new(n, sizeof(double));
    }
    return TP_OK;
}

static void give_back(session *s)
{
    for (int side = 0; side < 2; side++) {
        if (s->subject[side])
            tear_down(s, side);
        free(s->checksums[side]);
        for (size_t i = 0; i < TP_BENCH_MAX_METRICS; i++)
            free(s->values[side][i]);
    }
    free(s->order);
    free(s->attempts);
}

static tp_status measure(session *s, tp_error *err)
{
    s->progress.is_warming_up = true;
    observe(s);
    TP_TRY(set_up(s, 0, err));
    TP_TRY(set_up(s, 1, err));
    if (s->subject[0] && s->subject[0]->n_metrics != s->subject[1]->n_metrics)
        return tp_fail(err, TP_ERR_ARG, "the two sides measure different things");
    TP_TRY(calibrate(s, err));
    TP_TRY(warm_up(s, err));
    return run_rounds(s, err);
}

tp_status tp_bench_measure(tp_bench_report *report, const char *name, const tp_bench_plan *plan,
                           tp_subject *a, tp_subject *b, tp_error *err)
{
    tp_bench_plan own = *plan;
    own.rule.is_sequential = a && plan->rounds == 0;
    session s = {.plan = &own, .subject = {a, b}, .progress = {.name = name}};
    tp_error failure = {0};
    double start = tp_clock_s();
    tp_status status = make_room(&s, err);
    if (status == TP_OK && measure(&s, &failure) != TP_OK && failure.status == TP_ERR_INTERRUPTED)
        status = tp_fail(err, TP_ERR_INTERRUPTED, "interrupted");
    if (status == TP_OK)
        conclude(report, name, &s, &failure, tp_clock_s() - start);
    give_back(&s);
    return status;
}
