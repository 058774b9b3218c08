/* format_parts.c - what the readers and writers of the file formats share. */
#include <math.h>
#include <string.h>

#include "instrument/bench/formats.h"

const tp_bench_metric *tp_result_time(const tp_bench_result *result)
{
    const tp_bench_metric *m = tp_result_metric(result, tp_bench_time_name);
    return m && strcmp(m->metric.unit, "s") == 0 && m->n_b > 0 ? m : NULL;
}

tp_status tp_sample_list_add(tp_bench_report *r, tp_sample_list *list, double v, tp_error *err)
{
    if (list->n == TP_BENCH_MAX_SAMPLES)
        return tp_fail(err, TP_ERR_FORMAT, "more than %d samples of one metric",
                       TP_BENCH_MAX_SAMPLES);
    *TP_ARENA_PUSH(&r->arena, list->values, list->n, list->cap) = v;
    return TP_OK;
}

bool tp_bench_number(const tp_json *v, double *ret)
{
    const char *text = tp_json_str(v);
    if (v && v->type == TP_JSON_NULL) {
        *ret = NAN;
        return true;
    }
    if (text && (strcmp(text, "NaN") == 0 || strcmp(text, "nan") == 0)) {
        *ret = NAN;
        return true;
    }
    if (text && (strcmp(text, "Infinity") == 0 || strcmp(text, "-Infinity") == 0)) {
        *ret = *text == '-' ? -INFINITY : INFINITY;
        return true;
    }
    return tp_json_f64(v, ret);
}

void tp_bench_metric_set(tp_bench_report *r, tp_bench_metric *m, const char *name, const char *unit,
                         tp_direction direction, tp_metric_class kind, const double *values,
                         size_t n)
{
    m->metric = (tp_metric){.name = tp_arena_strdup(&r->arena, name),
                            .unit = tp_arena_strdup(&r->arena, unit),
                            .direction = direction,
                            .kind = kind};
    m->b = values;
    m->n_b = n;
}
