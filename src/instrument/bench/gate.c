/* gate.c - comparisons judged together, as one family. */
#include "instrument/bench/gate.h"

#include <math.h>
#include <string.h>

#include "instrument/bench/formats.h"
#include "stats/order.h"
#include "stats/stats.h"
#include "temper/exit_status.h"

static bool is_judged(const tp_bench_metric *m)
{
    return m->is_compared && !m->metric.is_informative;
}

static bool is_in_family(const tp_bench_metric *m)
{
    return is_judged(m) && m->metric.kind == TP_METRIC_NOISY && !isnan(m->comparison.p);
}

size_t tp_gate_family(const tp_bench_report *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_results; i++)
        for (size_t k = 0; k < r->results[i].n_metrics; k++)
            n += is_in_family(&r->results[i].metrics[k]);
    return n;
}

/* p-values of the family in order; `adjusted` NULL: collect into p, else hand back. */
static void visit_family(tp_bench_report *r, double *p, const double *adjusted)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_results; i++) {
        for (size_t k = 0; k < r->results[i].n_metrics; k++) {
            tp_bench_metric *m = &r->results[i].metrics[k];
            if (!is_in_family(m))
                continue;
            if (adjusted)
                tp_rule_settle(&r->rule, adjusted[n], &m->comparison);
            else
                p[n] = m->comparison.p;
            n++;
        }
    }
}

static tp_bench_verdict gravest(const tp_bench_result *result)
{
    tp_bench_verdict v = result->verdict; /* NEW, MISSING and FAILED are set by who found them */
    for (size_t k = 0; k < result->n_metrics; k++) {
        if (is_judged(&result->metrics[k]) && result->metrics[k].comparison.verdict > v)
            v = result->metrics[k].comparison.verdict;
    }
    return v;
}

static void add_bootstrap(const tp_bench_report *r, tp_bench_result *result)
{
    for (size_t k = 0; k < result->n_metrics; k++) {
        tp_bench_metric *m = &result->metrics[k];
        if (m->is_compared && m->comparison.how == TP_COMPARED_PAIRED && m->a && m->b)
            tp_rule_bootstrap(&m->metric, m->a, m->b, m->n_b, r->seed, &m->comparison);
    }
}

static void take_point(tp_bench_comparison *c)
{
    if (c->point == TP_BENCH_NONE || c->point == c->verdict)
        return;
    c->verdict = c->point;
    snprintf(c->reason, sizeof c->reason, "by the plain rule");
}

static void judge_by_point(tp_bench_result *result)
{
    for (size_t k = 0; k < result->n_metrics; k++)
        if (is_judged(&result->metrics[k]))
            take_point(&result->metrics[k].comparison);
}

tp_status tp_gate_settle(tp_bench_report *r, tp_error *err)
{
    size_t n = tp_gate_family(r);
    TP_FREED double *p = tp_scratch(2 * n);
    r->rule.family = n > 0 ? n : 1;
    visit_family(r, p, NULL);
    tp_status status = n ? tp_adjust(TP_ADJUST_HOLM, p, n, p + n, err) : TP_OK;
    if (status == TP_OK)
        visit_family(r, p, p + n);
    for (size_t i = 0; i < r->n_results; i++) {
        add_bootstrap(r, &r->results[i]);
        if (r->rule.by_point)
            judge_by_point(&r->results[i]);
        r->results[i].verdict = gravest(&r->results[i]);
    }
    return status;
}

static bool is_point_regression(const tp_bench_result *result)
{
    for (size_t k = 0; k < result->n_metrics; k++) {
        if (is_judged(&result->metrics[k]) &&
            result->metrics[k].comparison.point == TP_BENCH_REGRESSION)
            return true;
    }
    return false;
}

tp_gate_summary tp_gate_conclude(const tp_bench_report *r, const tp_gate_options *options)
{
    tp_gate_summary s = {0};
    for (size_t i = 0; i < r->n_results; i++) {
        s.by_verdict[r->results[i].verdict]++;
        s.n_point_regressions += is_point_regression(&r->results[i]);
    }
    size_t missing = s.by_verdict[TP_BENCH_MISSING] + s.by_verdict[TP_BENCH_NEW];
    bool unclear = options->strict && s.by_verdict[TP_BENCH_INCONCLUSIVE];
    if (r->n_results == 0)
        s.exit_status = TP_EXIT_INPUT;
    else if (s.by_verdict[TP_BENCH_REGRESSION] > 0)
        s.exit_status = TP_EXIT_WORSE;
    else if (s.by_verdict[TP_BENCH_FAILED] > 0)
        s.exit_status = TP_EXIT_UNMEASURED;
    else if ((missing > 0 && (!options->allow_missing || options->strict)) || unclear)
        s.exit_status = TP_EXIT_WORSE;
    return s;
}

/* The smallest p that the ranks of so many rounds have: all of one side above the other. */
static double least_p(size_t n_a, size_t n_b)
{
    double a = (double)n_a, b = (double)n_b;
    return exp(lgamma(a + 1) + lgamma(b + 1) - lgamma(a + b + 1));
}

void tp_gate_say_counts(const tp_gate_summary *s, tp_buf *out)
{
    for (int v = TP_BENCH_COUNT - 1; v > TP_BENCH_NONE; v--) {
        if (s->by_verdict[v])
            tp_buf_addf(out, "%zu %s  ", s->by_verdict[v],
                        tp_bench_verdict_name((tp_bench_verdict)v));
    }
}

/* Holm steps down: the smallest p has to stand among all comparisons, the next among the rest. */
size_t tp_gate_too_short(const tp_bench_report *r, size_t *ret_rounds)
{
    double alpha = r->rule.alpha;
    size_t n = 0, shown = 0, rounds = 2;
    TP_FREED double *p = tp_scratch(tp_gate_family(r));
    for (size_t i = 0; i < r->n_results; i++)
        for (size_t k = 0; k < r->results[i].n_metrics; k++) {
            const tp_bench_metric *m = &r->results[i].metrics[k];
            bool is_of_ranks = m->comparison.how == TP_COMPARED_UNPAIRED;
            if (is_in_family(m))
                p[n++] = is_of_ranks ? least_p(m->n_a, m->n_b) : 0;
        }
    tp_sort(p, n);
    while (shown < n && (r->rule.by_point || p[shown] <= alpha / (double)(n - shown)))
        shown++;
    while (least_p(rounds, rounds) * (double)(n - shown) > alpha)
        rounds++;
    *ret_rounds = rounds;
    return n - shown;
}

void tp_gate_suspects(const tp_bench_report *r, double rate, tp_buf *out)
{
    size_t n = tp_gate_family(r), at = 0, listed = 0;
    TP_FREED double *p = tp_scratch(2 * n);
    if (n == 0)
        return;
    visit_family((tp_bench_report *)r, p, NULL);
    if (tp_adjust(TP_ADJUST_BH, p, n, p + n, NULL) != TP_OK)
        return;
    for (size_t i = 0; i < r->n_results; i++) {
        for (size_t k = 0; k < r->results[i].n_metrics; k++) {
            const tp_bench_metric *m = &r->results[i].metrics[k];
            if (!is_in_family(m))
                continue;
            if (p[n + at++] <= rate && m->comparison.verdict != TP_BENCH_REGRESSION)
                tp_buf_addf(out, "%s%s (%s)", listed++ ? ", " : "", r->results[i].name,
                            m->metric.name);
        }
    }
}

/* ---- stored reports ---- */

static bool has_zero(const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (values[i] == 0)
            return true;
    }
    return false;
}

/* A file of single values has no rounds that could be too few.  Of counts that are 0 in some
 * round the medians are compared: a ratio has no zero. */
static void compare_metric(tp_bench_report *r, tp_bench_result *result, tp_bench_metric *m)
{
    char why[200];
    bool single = m->n_b == 1 && (m->n_a <= 1 || m->is_median);
    size_t least = single ? 1 : 5;
    if (m->metric.is_informative)
        return;
    if (!tp_rule_check(&m->metric, m->b, m->n_b, least, why, sizeof why)) {
        tp_result_fail(r, result, "%s", why);
        return;
    }
    if (!tp_rule_check(&m->metric, m->a, m->n_a, 1, why, sizeof why)) {
        tp_result_fail(r, result, "baseline: %s", why);
        return;
    }
    m->is_compared = true;
    if (m->metric.kind == TP_METRIC_EXACT)
        tp_rule_exact(&r->rule, &m->metric, m->a[0], m->b[0], &m->comparison);
    else if (has_zero(m->a, m->n_a) || has_zero(m->b, m->n_b))
        tp_rule_exact(&r->rule, &m->metric, tp_summarise(m->a, m->n_a).median,
                      tp_summarise(m->b, m->n_b).median, &m->comparison);
    else if (m->n_a < 2 || m->n_b < 2)
        tp_rule_point_only(&r->rule, &m->metric, tp_summarise(m->a, m->n_a).median,
                           tp_summarise(m->b, m->n_b).median, &m->comparison);
    else
        tp_rule_unpaired(&r->rule, &m->metric, m->a, m->n_a, m->b, m->n_b, &m->comparison);
}

/* A file that holds nothing but times (pytest-benchmark) judges times, although we would
 * rather judge the speed, which says the same. */
static void judge_times_if_need_be(const tp_bench_result *base, tp_bench_result *result)
{
    tp_bench_metric *time = tp_result_metric(result, tp_bench_time_name);
    for (size_t k = 0; k < base->n_metrics; k++) {
        const tp_bench_metric *m = tp_result_metric(result, base->metrics[k].metric.name);
        if (m && m != time && !m->metric.is_informative && !base->metrics[k].metric.is_informative)
            return;
    }
    if (time && tp_result_metric(base, tp_bench_time_name))
        time->metric.is_informative = false;
}

/* What the file of side A knows of a metric holds for side B as well: a count that varies there
 * is not exact here, and what cannot be judged there cannot be judged here.  Which way is better
 * one of the two may say for both. */
static void agree(const tp_bench_metric *before, tp_bench_metric *m)
{
    if (before->is_median && !m->note)
        m->note = "only a median is in the file that it is compared with";
    if (before->metric.is_count && before->metric.kind == TP_METRIC_NOISY) {
        m->metric.is_count = true;
        m->metric.kind = TP_METRIC_NOISY;
    }
    if (m->is_undirected && !before->metric.is_informative) {
        m->is_undirected = m->metric.is_informative = false;
        m->metric.direction = before->metric.direction;
        m->note = NULL;
    }
    if (before->metric.is_informative && !before->is_undirected &&
        strcmp(m->metric.name, tp_bench_time_name) != 0) {
        m->metric.is_informative = true;
        m->note = m->note ? m->note : before->note;
    }
}

static void compare_result(const tp_bench_result *base, tp_bench_report *r, tp_bench_result *result)
{
    bool any = false, any_shown = false;
    judge_times_if_need_be(base, result);
    if (base->message) {
        tp_result_fail(r, result, "its baseline is a failed measurement: %s", base->message);
        return;
    }
    for (size_t k = 0; k < result->n_metrics; k++) {
        tp_bench_metric *m = &result->metrics[k];
        const tp_bench_metric *before = tp_result_metric(base, m->metric.name);
        if (!before || (before->n_b == 0 && !m->metric.is_informative) ||
            !tp_metrics_agree(&before->metric, &m->metric))
            continue;
        m->a = tp_bench_report_values(r, before->b, before->n_b);
        m->n_a = before->n_b;
        m->side_a = tp_summarise(m->a, m->n_a);
        agree(before, m);
        compare_metric(r, result, m);
        any |= m->is_compared;
        any_shown |= !m->is_compared;
    }
    for (size_t k = 0; k < base->n_metrics && result->verdict != TP_BENCH_FAILED; k++) {
        if (!base->metrics[k].metric.is_informative)
            tp_result_need(r, result, &base->metrics[k].metric);
    }
    if (!any && result->verdict == TP_BENCH_NONE) {
        result->verdict = TP_BENCH_NEW;
        result->note = any_shown ? "nothing that both have can be judged"
                                 : "the baseline has none of its metrics";
    }
}

tp_status tp_gate_compare_stored(const tp_bench_report *base, tp_bench_report *current,
                                 bool (*matches)(void *user, const char *name), void *user,
                                 tp_error *err)
{
    for (size_t i = 0; i < current->n_results; i++) {
        tp_bench_result *result = &current->results[i];
        const tp_bench_result *before = tp_bench_report_match(base, current, result);
        if (result->verdict == TP_BENCH_FAILED)
            continue;
        if (before)
            compare_result(before, current, result);
        else
            result->verdict = TP_BENCH_NEW;
    }
    for (size_t i = 0; i < base->n_results; i++) {
        const char *name = base->results[i].name;
        if ((matches && !matches(user, name)) ||
            tp_bench_report_match(current, base, &base->results[i]))
            continue;
        tp_bench_report_add(current, name, 0)->verdict = TP_BENCH_MISSING;
    }
    return tp_gate_settle(current, err);
}
