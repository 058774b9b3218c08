/* format_gobench.c - the text of Go benchmarks, as benchstat reads it.
 *
 *     commit: 0123abcd
 *     Unit tokens/s better=higher assume=nothing
 *     BenchmarkTrain/llama/f32-2 10 12345678 ns/op 4096 tokens/s
 *
 * One line per round.  Go wants a capital after "Benchmark", so a leading small letter is
 * raised and, for our own files, lowered again. */
#include "instrument/bench/formats.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/platform.h"

/* ---- writing ---- */

static void put_name(tp_buf *out, const char *name, int processors)
{
    tp_buf_adds(out, "Benchmark");
    for (const char *p = name; *p; p++) {
        char c = *p;
        if (p == name)
            c = (char)toupper((unsigned char)c);
        tp_buf_addc(out, isspace((unsigned char)c) ? '_' : c);
    }
    tp_buf_addf(out, "-%d", processors > 0 ? processors : 1);
}

/* The unit that a metric is written in: "tokens/s", "peak_memory-bytes". */
static void unit_of(const tp_bench_metric *m, char *out, size_t cap)
{
    if (strcmp(m->metric.name, "throughput") == 0)
        snprintf(out, cap, "%s", m->metric.unit);
    else
        snprintf(out, cap, "%s-%s", m->metric.name, m->metric.unit);
    for (char *p = out; *p; p++)
        *p = isspace((unsigned char)*p) ? '_' : *p;
}

static void put_units(const tp_bench_report *r, tp_buf *out)
{
    TP_OWN(tp_buf) seen = {0};
    for (size_t i = 0; i < r->n_results; i++) {
        for (size_t k = 0; k < r->results[i].n_metrics; k++) {
            const tp_bench_metric *m = &r->results[i].metrics[k];
            char unit[128], quoted[136];
            unit_of(m, unit, sizeof unit);
            snprintf(quoted, sizeof quoted, "|%s|", unit);
            if (m == tp_result_time(&r->results[i]) || strstr(tp_buf_str(&seen), quoted))
                continue;
            tp_buf_adds(&seen, quoted);
            tp_buf_addf(out, "Unit %s better=%s assume=%s\n", unit,
                        tp_direction_name(m->metric.direction),
                        m->metric.kind == TP_METRIC_EXACT ? "exact" : "nothing");
        }
    }
}

static void put_number(tp_buf *out, double v)
{
    char text[32];
    tp_json_f64_text(v, text);
    tp_buf_addf(out, " %s", text);
}

static void put_rounds(const tp_bench_report *r, const tp_bench_result *result, tp_buf *out)
{
    for (size_t i = 0; i < result->rounds; i++) {
        const tp_bench_metric *time = tp_result_time(result);
        TP_OWN(tp_buf) line = {0};
        for (size_t k = 0; k < result->n_metrics; k++) {
            const tp_bench_metric *m = &result->metrics[k];
            char unit[128];
            unit_of(m, unit, sizeof unit);
            if (i >= m->n_b || !isfinite(m->b[i]))
                continue;
            put_number(&line, m == time ? m->b[i] * 1e9 : m->b[i]);
            tp_buf_addf(&line, " %s", m == time ? "ns/op" : unit);
        }
        if (line.len) {
            put_name(out, result->name, r->host.processors);
            tp_buf_addf(out, " %llu%s\n", (unsigned long long)(result->work ? result->work : 1),
                        line.data);
        }
    }
}

void tp_write_gobench(const tp_bench_report *r, tp_buf *out)
{
    tp_buf_addf(out, "tool: temper\nversion: %s\n", r->version);
    if (r->has_commit)
        tp_buf_addf(out, "commit: %s%s\n", r->commit.id, r->commit.is_dirty ? "+dirty" : "");
    if (r->is_host_known)
        tp_buf_addf(out, "cpu: %s\nhost: %s\n", r->host.cpu, r->host.fingerprint);
    put_units(r, out);
    for (size_t i = 0; i < r->n_results; i++) {
        if (r->results[i].verdict != TP_BENCH_FAILED)
            put_rounds(r, &r->results[i], out);
    }
}

/* ---- reading ---- */

typedef struct {
    char unit[128];
    tp_direction direction;
    tp_metric_class kind;
    bool has_direction; /* the file or the unit says which way is better */
    bool is_count;      /* no Unit line says more: exact while all rounds agree */
} unit_rule;

typedef struct {
    const char *file;
    tp_bench_report *report;
    unit_rule units[64];
    size_t n_units;
    bool is_ours;
    bool has_packages;     /* more than one: each is part of the names of its benchmarks */
    char *package;         /* of the lines that follow, or NULL */
    tp_sample_list *lists; /* n_lists blocks of TP_BENCH_MAX_METRICS, by result */
    size_t n_lists;
    tp_error *err;
} reader;

static bool is_time(const char *unit)
{
    return strcmp(unit, "ns/op") == 0 || strcmp(unit, "sec/op") == 0;
}

static unit_rule rule_of(const reader *in, const char *unit)
{
    bool is_rate = tp_str_ends(unit, "/s"), is_count = tp_bench_unit_counts(unit);
    unit_rule rule = {.direction = is_rate ? TP_HIGHER_IS_BETTER : TP_LOWER_IS_BETTER,
                      .kind = is_count ? TP_METRIC_EXACT : TP_METRIC_NOISY,
                      .has_direction = is_rate || is_count || is_time(unit),
                      .is_count = is_count};
    for (size_t i = 0; i < in->n_units; i++) {
        if (strcmp(in->units[i].unit, unit) == 0)
            rule = in->units[i];
    }
    return rule;
}

static tp_status read_unit(reader *in, char *text, size_t number)
{
    char *rest = NULL, *unit = strtok_r(text, " \t", &rest);
    if (!unit)
        return TP_OK;
    size_t slot = 0;
    while (slot < in->n_units && strcmp(in->units[slot].unit, unit) != 0)
        slot++;
    if (slot == TP_COUNTOF(in->units))
        return tp_fail(in->err, TP_ERR_FORMAT, "%s:%zu: more than %zu units", in->file, number,
                       in->n_units);
    unit_rule rule = rule_of(in, unit);
    snprintf(rule.unit, sizeof rule.unit, "%s", unit);
    for (char *word; (word = strtok_r(NULL, " \t", &rest));) {
        bool is_better = tp_str_starts(word, "better="), is_assume = tp_str_starts(word, "assume=");
        bool is_exact = is_assume && strcmp(word + 7, "exact") == 0;
        if ((is_better && !tp_direction_parse(word + 7, &rule.direction)) ||
            (is_assume && !is_exact && strcmp(word + 7, "nothing") != 0))
            return tp_fail(in->err, TP_ERR_FORMAT,
                           "%s:%zu: '%.40s' of unit '%.40s': better is higher or lower, assume is "
                           "nothing or exact",
                           in->file, number, word, unit);
        rule.has_direction |= is_better;
        if (is_assume) {
            rule.kind = is_exact ? TP_METRIC_EXACT : TP_METRIC_NOISY;
            rule.is_count = false;
        }
    }
    in->units[slot] = rule;
    in->n_units += slot == in->n_units;
    return TP_OK;
}

/* "Train/llama-2" -> "train/llama": without the capital and the number of processors that our own
 * files have.  In those of others "Sort/n-1000" may be all name. */
static void plain_name(const char *word, tp_buf *out)
{
    size_t n = strlen(word), digits = n;
    while (digits > 0 && isdigit((unsigned char)word[digits - 1]))
        digits--;
    if (digits > 1 && digits < n && word[digits - 1] == '-')
        n = digits - 1;
    tp_buf_addf(out, "%c%.*s", tolower((unsigned char)*word), (int)n - 1, word + 1);
}

/* "Sort-8", or "example.org/lists.Sort-8" where the file has several packages. */
static void name_of(const reader *in, const char *word, tp_buf *out)
{
    if (in->has_packages && in->package)
        tp_buf_addf(out, "%s.", in->package);
    if (in->is_ours)
        plain_name(word, out);
    else
        tp_buf_adds(out, word);
}

static tp_status result_of(reader *in, const char *name, tp_bench_result **ret)
{
    tp_bench_report *r = in->report;
    *ret = tp_bench_report_find(r, name);
    if (*ret)
        return TP_OK;
    if (r->n_results == TP_BENCH_MAX_RESULTS)
        return tp_fail(in->err, TP_ERR_FORMAT, "%s: more than %d benchmarks", in->file,
                       TP_BENCH_MAX_RESULTS);
    if (r->n_results == in->n_lists) {
        size_t n = in->n_lists ? 2 * in->n_lists : 16;
        tp_sample_list *grown = tp_arena_array(&r->arena, tp_sample_list, n * TP_BENCH_MAX_METRICS);
        if (in->n_lists)
            memcpy(grown, in->lists, in->n_lists * TP_BENCH_MAX_METRICS * sizeof *grown);
        in->lists = grown;
        in->n_lists = n;
    }
    *ret = tp_bench_report_add(r, name, TP_BENCH_MAX_METRICS);
    (*ret)->n_metrics = 0;
    return TP_OK;
}

/* Which metric a unit stands for: in our own files "resident-bytes" is the metric resident
 * in bytes, and a unit that names none is the throughput. */
static void metric_of(const reader *in, const char *unit, char *name, size_t cap,
                      const char **ret_unit)
{
    const char *dash = in->is_ours ? strrchr(unit, '-') : NULL;
    *ret_unit = dash ? dash + 1 : unit;
    if (is_time(unit)) {
        snprintf(name, cap, "%s", tp_bench_time_name);
        *ret_unit = "s";
    } else if (dash)
        snprintf(name, cap, "%.*s", (int)(dash - unit), unit);
    else
        snprintf(name, cap, "%s", in->is_ours ? "throughput" : unit);
}

static tp_status add_value(reader *in, tp_bench_result *result, const char *unit, double v)
{
    char name[128];
    const char *plain_unit;
    metric_of(in, unit, name, sizeof name, &plain_unit);
    tp_bench_metric *m = tp_result_metric(result, name);
    if (!m && result->n_metrics == TP_BENCH_MAX_METRICS)
        return tp_fail(in->err, TP_ERR_FORMAT, "%s: '%s' has more than %d units", in->file,
                       result->name, TP_BENCH_MAX_METRICS);
    if (!m) {
        unit_rule rule = rule_of(in, unit);
        m = &result->metrics[result->n_metrics++];
        tp_bench_metric_set(in->report, m, name, plain_unit,
                            is_time(unit) ? TP_LOWER_IS_BETTER : rule.direction, rule.kind, NULL,
                            0);
        m->metric.is_count = rule.is_count;
        if (!rule.has_direction)
            tp_bench_metric_unjudged(m);
    }
    size_t index = (size_t)(result - in->report->results), at = (size_t)(m - result->metrics);
    tp_sample_list *list = &in->lists[index * TP_BENCH_MAX_METRICS + at];
    return tp_bench_metric_add(in->report, m, list, strcmp(unit, "ns/op") == 0 ? v * 1e-9 : v,
                               in->err);
}

static tp_status read_line(reader *in, char *line, size_t number)
{
    char *rest = NULL, *word = strtok_r(line, " \t", &rest);
    char *count = word ? strtok_r(NULL, " \t", &rest) : NULL;
    TP_OWN(tp_buf) name = {0};
    double v;
    tp_bench_result *result;
    if (!count || !tp_str_to_f64(count, &v))
        return TP_OK; /* "BenchmarkX" alone announces a run */
    if (!word[strlen("Benchmark")])
        return TP_OK;
    name_of(in, word + strlen("Benchmark"), &name);
    TP_TRY(result_of(in, tp_buf_str(&name), &result));
    result->work = v >= 1 && v < 1e18 ? (uint64_t)v : 0;
    for (char *value; (value = strtok_r(NULL, " \t", &rest));) {
        char *unit = strtok_r(NULL, " \t", &rest);
        if (!unit || !tp_str_to_f64(value, &v))
            return tp_fail(in->err, TP_ERR_FORMAT, "%s:%zu: expected pairs of value and unit",
                           in->file, number);
        TP_TRY(add_value(in, result, unit, v));
    }
    result->rounds++;
    return TP_OK;
}

/* The next line without its end; false: there is none. */
static bool next_line(const char *text, size_t n, size_t *at, tp_buf *line)
{
    if (*at >= n)
        return false;
    const char *end = memchr(text + *at, '\n', n - *at);
    size_t length = end ? (size_t)(end - text) - *at : n - *at;
    tp_buf_clear(line);
    tp_buf_add(line, text + *at, length);
    tp_buf_addc(line, 0);
    line->data[strcspn(line->data, "\r")] = 0;
    *at += length + 1;
    return true;
}

/* What holds for all lines, wherever it stands: units, and whether there are several packages. */
static tp_status survey(reader *in, const char *text, size_t n)
{
    TP_OWN(tp_buf) line = {0}, first = {0};
    size_t number = 0;
    for (size_t at = 0; next_line(text, n, &at, &line);) {
        number++;
        if (tp_str_starts(line.data, "Unit "))
            TP_TRY(read_unit(in, line.data + 5, number));
        if (!tp_str_starts(line.data, "pkg:"))
            continue;
        in->has_packages |= first.len && strcmp(first.data, line.data) != 0;
        if (!first.len)
            tp_buf_adds(&first, line.data);
    }
    return TP_OK;
}

static void read_package(reader *in, const char *text)
{
    in->package = tp_arena_strdup(&in->report->arena, text + strspn(text, " \t"));
}

tp_status tp_read_gobench(const char *name, const char *text, size_t n, tp_bench_report *ret,
                          tp_error *err)
{
    reader in = {.file = name, .report = ret, .err = err};
    TP_OWN(tp_buf) line = {0};
    tp_status status = survey(&in, text, n);
    size_t number = 0;
    ret->tool = "go test";
    for (size_t at = 0; status == TP_OK && next_line(text, n, &at, &line);) {
        number++;
        if (tp_str_starts(line.data, "Benchmark"))
            status = read_line(&in, line.data, number);
        else if (tp_str_starts(line.data, "pkg:"))
            read_package(&in, line.data + 4);
        else if (strcmp(line.data, "tool: temper") == 0)
            in.is_ours = true;
    }
    if (status == TP_OK && ret->n_results == 0)
        status =
            tp_fail(err, TP_ERR_FORMAT,
                    "%s: neither JSON nor benchmark lines (\"BenchmarkName 10 12 ns/op\")", name);
    return status;
}
