/* report.c - results of a session in one arena. */
#include "instrument/bench/report.h"

#include <math.h>
#include <string.h>

#include "stats/stats.h"

static const size_t arena_bytes = (size_t)4 << 30; /* of address space */

tp_status tp_bench_report_init(tp_bench_report *r, tp_error *err)
{
    *r = (tp_bench_report){
        .tool = "temper", .version = TEMPER_VERSION, .started = "", .exit_status = -1};
    r->rule = (tp_rule){.alpha = 0.05, .tolerance = 0.05, .family = 1};
    return tp_arena_init(&r->arena, arena_bytes, err);
}

void tp_bench_report_release(tp_bench_report *r)
{
    tp_arena_release(&r->arena);
    *r = (tp_bench_report){0};
}

tp_bench_result *tp_bench_report_add(tp_bench_report *r, const char *name, size_t n_metrics)
{
    tp_bench_result *result = TP_ARENA_PUSH(&r->arena, r->results, r->n_results, r->capacity);
    *result = (tp_bench_result){.name = tp_arena_strdup(&r->arena, name),
                                .metrics = tp_arena_array(&r->arena, tp_bench_metric, n_metrics),
                                .n_metrics = n_metrics};
    return result;
}

tp_bench_result *tp_bench_report_find(const tp_bench_report *r, const char *name)
{
    for (size_t i = 0; i < r->n_results; i++) {
        if (strcmp(r->results[i].name, name) == 0)
            return &r->results[i];
    }
    return NULL;
}

/* Whether each line of `some` is one of `all`; "key:" says that there is none of the key. */
static bool holds_lines(const char *all, const char *some)
{
    for (size_t n; *some; some += n) {
        n = strcspn(some, "\n") + 1;
        bool is_none = n > 1 && some[n - 2] == ':';
        const char *line = all;
        while (*line && strncmp(line, some, n - is_none) != 0)
            line += strcspn(line, "\n") + 1;
        if ((*line == 0) != is_none)
            return false;
    }
    return true;
}

const tp_bench_result *tp_bench_report_match(const tp_bench_report *r,
                                             const tp_bench_report *others,
                                             const tp_bench_result *other)
{
    const tp_bench_result *found = tp_bench_report_find(r, other->name);
    if (found || !other->keys)
        return found;
    for (const tp_bench_result *a = r->results; a < r->results + r->n_results; a++)
        if (a->keys && holds_lines(a->keys, other->named) && holds_lines(other->keys, a->named) &&
            !tp_bench_report_find(others, a->name))
            return a;
    return NULL;
}

const tp_bench_result *tp_bench_report_worst(const tp_bench_report *r, const tp_bench_result *x)
{
    int v = x ? (int)x->verdict : TP_BENCH_COUNT - 1;
    for (size_t i = x ? (size_t)(x - r->results) + 1 : 0; v >= 0; v--, i = 0)
        for (; i < r->n_results; i++)
            if ((int)r->results[i].verdict == v)
                return &r->results[i];
    return NULL;
}

tp_bench_metric *tp_result_metric(const tp_bench_result *result, const char *name)
{
    for (size_t i = 0; i < result->n_metrics; i++) {
        if (strcmp(result->metrics[i].metric.name, name) == 0)
            return &result->metrics[i];
    }
    return NULL;
}

static bool units_agree(const tp_metric *a, const tp_metric *b)
{
    return !*a->unit || !*b->unit || strcmp(a->unit, b->unit) == 0;
}

bool tp_metrics_agree(const tp_metric *a, const tp_metric *b)
{
    return units_agree(a, b) &&
           (a->direction == b->direction || a->is_informative || b->is_informative);
}

const char *tp_bench_report_printf(tp_bench_report *r, const char *fmt, ...)
{
    TP_OWN(tp_buf) text = {0};
    TP_BUF_FORMAT(&text, fmt);
    return tp_arena_strndup(&r->arena, tp_buf_str(&text), text.len);
}

const double *tp_bench_report_values(tp_bench_report *r, const double *values, size_t n)
{
    double *copy = tp_arena_array(&r->arena, double, n ? n : 1);
    if (n)
        memcpy(copy, values, n * sizeof *copy);
    return copy;
}

tp_summary tp_summarise(const double *values, size_t n)
{
    tp_summary s = {.n = n,
                    .median = NAN,
                    .mean = NAN,
                    .sd = NAN,
                    .min = NAN,
                    .max = NAN,
                    .lower = NAN,
                    .upper = NAN};
    tp_description d;
    if (n == 0 || tp_describe(values, n, 0.95, &d, NULL) != TP_OK)
        return s;
    s.median = d.median;
    s.mean = d.mean;
    s.sd = d.sd;
    s.min = d.min;
    s.max = d.max;
    s.lower = d.median_ci.lo;
    s.upper = d.median_ci.hi;
    return s;
}

tp_bench_metric *tp_result_need(tp_bench_report *r, tp_bench_result *result,
                                const tp_metric *before)
{
    tp_bench_metric *m = tp_result_metric(result, before->name);
    if (m && tp_metrics_agree(before, &m->metric))
        return m;
    result->verdict = TP_BENCH_MISSING;
    if (!m)
        result->note = tp_bench_report_printf(r, "the metric %s of its baseline was not measured",
                                              before->name);
    else if (!units_agree(before, &m->metric))
        result->note = tp_bench_report_printf(
            r, "%s was in %s and is in %s: figures of different units are not compared",
            before->name, before->unit, m->metric.unit);
    else
        result->note = tp_bench_report_printf(
            r, "%s was better when %s and is better when %s: such figures are not compared",
            before->name, tp_direction_name(before->direction),
            tp_direction_name(m->metric.direction));
    return NULL;
}

void tp_result_fail(tp_bench_report *r, tp_bench_result *result, const char *fmt, ...)
{
    TP_OWN(tp_buf) text = {0};
    TP_BUF_FORMAT(&text, fmt);
    result->message = tp_arena_strndup(&r->arena, tp_buf_str(&text), text.len);
    result->verdict = TP_BENCH_FAILED;
}
