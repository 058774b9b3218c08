/* format_hyperfine.c - the JSON export of hyperfine: one result per command. */
#include "instrument/bench/formats.h"

#include <math.h>
#include <string.h>

/* The mean of one side; a file without the member is one that does not know it. */
static void put_mean(tp_json_w *w, const char *key, const tp_bench_result *result,
                     const char *metric, bool is_a)
{
    const tp_bench_metric *m = tp_result_metric(result, metric);
    if (m && (is_a ? m->n_a : m->n_b))
        tp_json_w_put_known(w, key, is_a ? m->side_a.mean : m->side_b.mean);
}

static void put_list(tp_json_w *w, const char *key, const double *values, size_t n, bool whole)
{
    tp_json_w_put_begin(w, key, '[');
    for (size_t i = 0; i < n; i++) {
        if (whole)
            tp_json_w_i64(w, isfinite(values[i]) && values[i] < 9e18 ? (int64_t)values[i] : 0);
        else
            tp_json_w_f64(w, values[i]);
    }
    tp_json_w_end(w, ']');
}

/* One side of a result; `command` is what it is called.  Exit codes are not kept. */
static void put_side(tp_json_w *w, const tp_bench_result *result, const char *command,
                     const double *times, size_t n, const tp_summary *s, bool is_a)
{
    const tp_bench_metric *memory = tp_result_metric(result, tp_bench_memory_name);
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, "command", command);
    tp_json_w_put_known(w, "mean", s->mean);
    tp_json_w_put_known(w, "stddev", s->sd);
    tp_json_w_put_known(w, "median", s->median);
    put_mean(w, "user", result, "user_time", is_a);
    put_mean(w, "system", result, "system_time", is_a);
    tp_json_w_put_known(w, "min", s->min);
    tp_json_w_put_known(w, "max", s->max);
    put_list(w, "times", times, n, false);
    if (memory)
        put_list(w, "memory_usage_byte", is_a ? memory->a : memory->b,
                 is_a ? memory->n_a : memory->n_b, true);
    tp_json_w_put_begin(w, "parameters", '{');
    tp_json_w_end(w, '}');
    tp_json_w_end(w, '}');
}

void tp_write_hyperfine(const tp_bench_report *r, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, 2, '{');
    tp_json_w_put_begin(&w, "results", '[');
    for (size_t i = 0; i < r->n_results; i++) {
        const tp_bench_result *result = &r->results[i];
        const tp_bench_metric *time = tp_result_time(result);
        /* A single comparison of two commands is two commands to hyperfine. */
        bool both = time && time->n_a > 0 && r->n_results == 1 && r->side_a && r->side_b;
        if (!time || result->verdict == TP_BENCH_FAILED)
            continue;
        if (both)
            put_side(&w, result, r->side_a, time->a, time->n_a, &time->side_a, true);
        put_side(&w, result, both ? r->side_b : result->name, time->b, time->n_b, &time->side_b,
                 false);
    }
    tp_json_w_end(&w, ']');
    tp_json_w_close(&w, '}');
}

/* ---- reading ---- */

bool tp_is_hyperfine(const tp_json *root)
{
    const tp_json *list = tp_json_get(root, "results");
    return list && list->type == TP_JSON_ARRAY;
}

static const tp_json *list_of(const tp_json *result, const char *key)
{
    const tp_json *list = tp_json_get(result, key);
    return list && list->type == TP_JSON_ARRAY ? list : NULL;
}

static bool is_shared(const tp_json *list, const tp_json *result, const char *command)
{
    for (const tp_json *x = list->child; x; x = x->next) {
        const char *other = tp_json_str(tp_json_get(x, "command"));
        if (x != result && other && strcmp(other, command) == 0)
            return true;
    }
    return false;
}

/* "command", and its parameters when several results share the command. */
static const char *name_of(const tp_json *list, const tp_json *result, tp_bench_report *r)
{
    const char *command = tp_json_str(tp_json_get(result, "command"));
    const tp_json *parameters = tp_json_get(result, "parameters");
    if (!command || !parameters || !is_shared(list, result, command))
        return command;
    TP_OWN(tp_buf) text = {0};
    tp_buf_adds(&text, command);
    for (const tp_json *p = parameters->child; p; p = p->next) {
        const char *value = tp_json_str(p);
        tp_buf_addf(&text, " %s=%s", p->key.data, value ? value : "?");
    }
    return tp_arena_strdup(&r->arena, tp_buf_str(&text));
}

/* A program that crashed is fast. */
static void look_at_exits(const tp_json *codes, tp_bench_report *r, tp_bench_result *result)
{
    size_t i = 1;
    int64_t code;
    for (const tp_json *x = codes ? codes->child : NULL; x; x = x->next, i++) {
        if (!tp_json_i64(x, &code) || code == 0)
            continue;
        tp_result_fail(r, result,
                       "the command returned %lld in run %zu; --ignore-failure compares it anyway",
                       (long long)code, i);
        result->has_bad_exit = true;
        return;
    }
}

static tp_status read_result(const char *file, const tp_json *list, const tp_json *result,
                             tp_bench_report *r, tp_error *err)
{
    const double *times, *memory;
    size_t n, n_memory;
    const char *name = name_of(list, result, r);
    double median;
    bool is_median = false;
    if (!name)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: a result without a command", file, result->line);
    if (tp_bench_report_find(r, name))
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s:%u: a second result of '%.80s' with the same parameters; take one out",
                       file, result->line, name);
    TP_TRY(tp_bench_values(file, list_of(result, "times"), r, &times, &n, err));
    TP_TRY(tp_bench_values(file, list_of(result, "memory_usage_byte"), r, &memory, &n_memory, err));
    if (n == 0) {
        if (!tp_bench_number(tp_json_get(result, "median"), &median))
            return tp_fail(err, TP_ERR_FORMAT, "%s:%u: neither times nor a median", file,
                           result->line);
        times = tp_bench_report_values(r, &median, n = 1);
        is_median = true;
    }
    tp_bench_result *added = tp_bench_report_add(r, name, n_memory ? 2 : 1);
    added->rounds = n;
    tp_bench_metric_set(r, &added->metrics[0], tp_bench_time_name, "s", TP_LOWER_IS_BETTER,
                        TP_METRIC_NOISY, times, n);
    if (is_median)
        tp_bench_metric_median(&added->metrics[0]);
    if (n_memory) {
        tp_bench_metric_set(r, &added->metrics[1], tp_bench_memory_name, "bytes",
                            TP_LOWER_IS_BETTER, TP_METRIC_NOISY, memory, n_memory);
        added->metrics[1].metric.floor = 1 << 20;
    }
    look_at_exits(list_of(result, "exit_codes"), r, added);
    return TP_OK;
}

tp_status tp_read_hyperfine(const char *name, const tp_json *root, tp_bench_report *ret,
                            tp_error *err)
{
    const tp_json *list = tp_json_get(root, "results");
    if (!list || list->type != TP_JSON_ARRAY || list->n > TP_BENCH_MAX_RESULTS)
        return tp_fail(err, TP_ERR_FORMAT, "%s: \"results\" has to be a list of at most %d", name,
                       TP_BENCH_MAX_RESULTS);
    ret->tool = "hyperfine";
    for (const tp_json *x = list->child; x; x = x->next)
        TP_TRY(read_result(name, list, x, ret, err));
    return TP_OK;
}
