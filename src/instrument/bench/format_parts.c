/* format_parts.c - what the readers and writers of the file formats share. */
#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "instrument/bench/formats.h"
#include "instrument/bench/metric_rows.h"

const tp_bench_metric *tp_result_time(const tp_bench_result *result)
{
    const tp_bench_metric *m = tp_result_metric(result, tp_bench_time_name);
    return m && strcmp(m->metric.unit, "s") == 0 && m->n_b > 0 ? m : NULL;
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

bool tp_bench_decimal(const char *text, double *ret)
{
    return !strpbrk(text, "xX") && tp_str_to_f64(text, ret);
}

tp_status tp_bench_values(const char *file, const tp_json *list, tp_bench_report *r,
                          const double **ret, size_t *ret_n, tp_error *err)
{
    if (list && list->type != TP_JSON_ARRAY)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: samples have to be a list", file, list->line);
    if (list && list->n > TP_BENCH_MAX_SAMPLES)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: more than %d samples", file, list->line,
                       TP_BENCH_MAX_SAMPLES);
    size_t n = list ? list->n : 0, i = 0;
    double *values = tp_arena_array(&r->arena, double, n + 1);
    for (const tp_json *v = list ? list->child : NULL; v; v = v->next, i++) {
        if (!tp_bench_number(v, &values[i]))
            return tp_fail(err, TP_ERR_FORMAT, "%s:%u: a sample that is no number", file, v->line);
    }
    *ret = values;
    *ret_n = n;
    return TP_OK;
}

void tp_metric_write(const tp_metric *m, tp_json_w *w)
{
    tp_json_w_put_str(w, "name", m->name);
    tp_json_w_put_str(w, "unit", m->unit);
    tp_json_w_put_str(w, "direction", tp_direction_name(m->direction));
    tp_json_w_put_str(w, "class", tp_metric_class_name(m->kind));
    tp_json_w_put_bool(w, "informative", m->is_informative);
    if (m->is_count)
        tp_json_w_put_bool(w, "count", true);
    tp_json_w_put_finite(w, "floor", m->floor);
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

tp_status tp_bench_metric_add(tp_bench_report *r, tp_bench_metric *m, tp_sample_list *list,
                              double v, tp_error *err)
{
    if (list->n == TP_BENCH_MAX_SAMPLES)
        return tp_fail(err, TP_ERR_FORMAT, "more than %d samples of one metric",
                       TP_BENCH_MAX_SAMPLES);
    *TP_ARENA_PUSH(&r->arena, list->values, list->n, list->cap) = v;
    m->b = list->values;
    m->n_b = list->n;
    if (m->metric.is_count && v != m->b[0])
        m->metric.kind = TP_METRIC_NOISY;
    return TP_OK;
}

bool tp_bench_unit_counts(const char *unit)
{
    return strcmp(unit, "B/op") == 0 || strcmp(unit, "allocs/op") == 0;
}

void tp_bench_metric_unjudged(tp_bench_metric *m)
{
    m->is_undirected = true;
    m->metric.is_informative = true;
    m->note = "shown, not judged: the file does not say which way is better";
}

void tp_bench_judge_speed(tp_bench_result *result)
{
    const tp_bench_metric *speed = tp_result_metric(result, "throughput");
    tp_bench_metric *time = tp_result_metric(result, tp_bench_time_name);
    if (time && speed && !speed->metric.is_informative)
        time->metric.is_informative = true;
}

/* In the files that have no place for units and directions. */
const tp_metric *tp_bench_own_metric(const char *name)
{
    static const tp_metric own[] = {
        TP_NOISY_MEMORY_ROW(tp_bench_memory_name),
        TP_RESIDENT_ROW,
        TP_MEAN_MEMORY_ROW,
        TP_USER_TIME_ROW,
        TP_SYSTEM_TIME_ROW,
        TP_THROUGHPUT_ROW(""),
        TP_TOKENS_ROW,
        TP_ALLOCATIONS_ROW,
        TP_FLOPS_ROW,
        TP_BYTES_ROW,
        TP_INSTRUCTIONS_ROW,
        TP_SPEED_ROW("prefill", ""),
        TP_SPEED_ROW("decode", ""),
        TP_SPEED_ROW("generated", ""),
        TP_SPEED_ROW("samples_per_s", "samples/s"),
        TP_SPEED_ROW("bytes_per_s", "bytes/s"),
    };
    for (size_t i = 0; i < TP_COUNTOF(own); i++) {
        if (strcmp(own[i].name, name) == 0)
            return &own[i];
    }
    return NULL;
}

void tp_bench_metric_by_name(tp_bench_report *r, tp_bench_metric *m, const char *name, bool is_ours)
{
    const tp_metric *own = is_ours ? tp_bench_own_metric(name) : NULL;
    bool is_rate = tp_str_ends(name, "_per_second");
    tp_bench_metric_set(r, m, name,
                        own       ? own->unit
                        : is_rate ? "/s"
                                  : "",
                        own       ? own->direction
                        : is_rate ? TP_HIGHER_IS_BETTER
                                  : TP_LOWER_IS_BETTER,
                        own ? own->kind : TP_METRIC_NOISY, NULL, 0);
    m->metric.floor = own ? own->floor : 0;
    m->metric.is_count = own ? own->kind == TP_METRIC_EXACT : true;
    m->metric.is_informative = own && own->is_informative;
    if (!own && !is_rate)
        tp_bench_metric_unjudged(m);
}

void tp_bench_metric_median(tp_bench_metric *m)
{
    m->is_median = true;
    m->note = "only a median is in the file";
}

void tp_bench_note_left_out(tp_bench_report *r, tp_bench_result *result, const char *name)
{
    if (!result->note)
        result->note = tp_bench_report_printf(
            r, "'%.60s' is not read: at most %d figures beside the time, of different names", name,
            TP_BENCH_MAX_METRICS - 1);
}
