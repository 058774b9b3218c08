/* format_gobench.c - the text of Go benchmarks, as benchstat reads it.
 *
 *     commit: 0123abcd
 *     Unit tokens/s better=higher assume=nothing
 *     BenchmarkTrain/llama/f32-2 10 12345678 ns/op 4096 tokens/s
 *
 * One line per round.  Go wants a capital after "Benchmark", so a leading small letter is
 * raised and, for our own files, lowered again; a name that has a capital or _ itself gets a _ in
 * front.  Blanks become %20.  A Unit line of ours also says what has no place in Go's:
 * judged=no, floor=1048576 in the metric's own unit. */
#include "instrument/bench/formats.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/platform.h"
#include "base/vec.h"

/* ---- writing ---- */

/* Blanks end a word of Go's lines; what `also` holds has a meaning there. */
static void put_escaped(tp_buf *out, const char *text, const char *also)
{
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (isspace(c) || c == '%' || strchr(also, c))
            tp_buf_addf(out, "%%%02X", c);
        else
            tp_buf_addc(out, *p);
    }
}

static void put_name(tp_buf *out, const char *name, int processors)
{
    unsigned char first = (unsigned char)*name;
    tp_buf_adds(out, "Benchmark");
    if (isupper(first) || first == '_')
        tp_buf_addc(out, '_');
    size_t at = out->len;
    put_escaped(out, name, "");
    if (out->len > at)
        out->data[at] = (char)toupper((unsigned char)out->data[at]);
    tp_buf_addf(out, "-%d", processors > 0 ? processors : 1);
}

static bool is_own_time(const tp_metric *m)
{
    return strcmp(m->name, tp_bench_time_name) == 0 && strcmp(m->unit, "s") == 0;
}

/* The unit that a metric is written in: "tokens/s", "peak_memory-bytes", "ns/op". */
static void put_unit(tp_buf *out, const tp_metric *m)
{
    if (is_own_time(m)) {
        tp_buf_adds(out, "ns/op");
        return;
    }
    if (strcmp(m->name, "throughput") != 0 || !*m->unit) {
        put_escaped(out, m->name, "");
        tp_buf_addc(out, '-');
    }
    put_escaped(out, m->unit, "-");
}

/* A unit has one line for all benchmarks: it is judged where one of them judges it, from the
 * smallest floor on, and exact where it is so in all. */
static void add_to_unit(tp_metric *unit, const tp_metric *m)
{
    unit->is_informative &= m->is_informative;
    unit->floor = fmin(unit->floor, m->floor);
    if (m->kind == TP_METRIC_NOISY)
        unit->kind = TP_METRIC_NOISY;
}

static void put_units(const tp_bench_report *r, tp_buf *out)
{
    tp_metric *units = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < r->n_results; i++) {
        for (size_t k = 0; k < r->results[i].n_metrics; k++) {
            const tp_metric *m = &r->results[i].metrics[k].metric;
            size_t u = 0;
            while (u < n && (strcmp(units[u].name, m->name) || strcmp(units[u].unit, m->unit)))
                u++;
            if (u < n)
                add_to_unit(&units[u], m);
            else
                *TP_VEC_PUSH(units, n, cap) = *m;
        }
    }
    for (size_t u = 0; u < n; u++) {
        tp_buf_adds(out, "Unit ");
        put_unit(out, &units[u]);
        tp_buf_addf(out, " better=%s assume=%s judged=%s floor=%.17g\n",
                    tp_direction_name(units[u].direction),
                    units[u].kind == TP_METRIC_EXACT ? "exact" : "nothing",
                    units[u].is_informative ? "no" : "yes", units[u].floor);
    }
    free(units);
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
        TP_OWN(tp_buf) line = {0};
        for (size_t k = 0; k < result->n_metrics; k++) {
            const tp_bench_metric *m = &result->metrics[k];
            if (i >= m->n_b || !isfinite(m->b[i]))
                continue;
            put_number(&line, is_own_time(&m->metric) ? m->b[i] * 1e9 : m->b[i]);
            tp_buf_addc(&line, ' ');
            put_unit(&line, &m->metric);
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
    double floor;
    bool has_direction; /* the file or the unit says which way is better */
    bool is_shown;      /* and not judged */
    bool says_judged;   /* its line says which, as those of our files do */
    bool is_count;      /* no Unit line says more: exact while all rounds agree */
} unit_rule;

/* "goarch: arm64": it holds for the lines that follow.  One that is another for some of the
 * benchmarks is part of their names: they are not rounds of one. */
typedef struct {
    const char *key, *value; /* NULL: it has none */
    const char *first;       /* of the first benchmark */
    bool varies;
} setting;

typedef struct {
    const char *file;
    tp_bench_report *report;
    unit_rule units[64];
    size_t n_units;
    bool is_ours;
    setting settings[1000];
    size_t n_settings;
    size_t n_bad, first_bad; /* lines that are none of benchmarks; where */
    tp_sample_list *lists;   /* n_lists blocks of TP_BENCH_MAX_METRICS, by result */
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
        if (tp_str_starts(word, "judged=")) {
            rule.says_judged = true;
            rule.is_shown = strcmp(word + 7, "no") == 0;
        }
        if (tp_str_starts(word, "floor="))
            tp_str_to_f64(word + 6, &rule.floor);
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

/* "a%20b" -> "a b" */
static void unescape(const char *text, size_t n, tp_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        bool is_escaped = text[i] == '%' && n - i > 2 && isxdigit((unsigned char)text[i + 1]) &&
                          isxdigit((unsigned char)text[i + 2]);
        if (is_escaped && sscanf(text + i + 1, "%2x", &byte) == 1 && byte != 0) {
            tp_buf_addc(out, (char)byte);
            i += 2;
        } else
            tp_buf_addc(out, text[i]);
    }
}

/* "Train/llama-2" -> "train/llama", "_Train-2" -> "Train": without what our own files add.  In
 * those of others "Sort/n-1000" may be all name. */
static void plain_name(const char *word, tp_buf *out)
{
    size_t n = strlen(word), digits = n;
    while (digits > 0 && isdigit((unsigned char)word[digits - 1]))
        digits--;
    if (digits > 1 && digits < n && word[digits - 1] == '-')
        n = digits - 1;
    bool keeps_case = *word == '_' && n > 1;
    size_t at = out->len;
    unescape(word + keeps_case, n - keeps_case, out);
    if (!keeps_case && out->len > at)
        out->data[at] = (char)tolower((unsigned char)out->data[at]);
}

static bool is_package(const setting *s) { return strcmp(s->key, "pkg") == 0; }

/* "Sort-8", or "example.org/lists.Sort-8 goarch:arm64" where the file has several packages and
 * architectures. */
static void name_of(const reader *in, const char *word, tp_buf *out)
{
    for (const setting *s = in->settings; s < in->settings + in->n_settings; s++)
        if (s->varies && s->value && is_package(s))
            tp_buf_addf(out, "%s.", s->value);
    if (in->is_ours)
        plain_name(word, out);
    else
        tp_buf_adds(out, word);
    for (const setting *s = in->settings; s < in->settings + in->n_settings; s++)
        if (s->varies && s->value && !is_package(s))
            tp_buf_addf(out, " %s:%s", s->key, s->value);
}

/* The lines that tell benchmarks of two files apart: of all keys, or of those in the name. */
static const char *lines_of(const reader *in, const char *word, bool all)
{
    TP_OWN(tp_buf) lines = {0};
    tp_buf_addf(&lines, "%s\n", word);
    for (const setting *s = in->settings; s < in->settings + in->n_settings; s++)
        if (all ? s->value != NULL : s->varies)
            tp_buf_addf(&lines, "%s:%s\n", s->key, s->value ? s->value : "");
    return tp_arena_strdup(&in->report->arena, tp_buf_str(&lines));
}

static tp_status result_of(reader *in, const char *name, const char *word, tp_bench_result **ret)
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
    (*ret)->keys = lines_of(in, word, true);
    (*ret)->named = lines_of(in, word, false);
    return TP_OK;
}

/* Which metric a unit stands for: in our own files "resident-bytes" is the metric resident
 * in bytes, and a unit that names none is the throughput. */
static void metric_of(const reader *in, const char *unit, tp_buf *name, tp_buf *plain_unit)
{
    const char *dash = in->is_ours ? strrchr(unit, '-') : NULL;
    if (is_time(unit)) {
        tp_buf_adds(name, tp_bench_time_name);
        tp_buf_adds(plain_unit, "s");
    } else if (!in->is_ours) {
        tp_buf_adds(name, unit);
        tp_buf_adds(plain_unit, unit);
    } else {
        if (dash)
            unescape(unit, (size_t)(dash - unit), name);
        else
            tp_buf_adds(name, "throughput");
        unescape(dash ? dash + 1 : unit, strlen(dash ? dash + 1 : unit), plain_unit);
    }
}

static void begin_metric(const reader *in, tp_bench_metric *m, const char *name, const char *unit,
                         const char *plain_unit)
{
    unit_rule rule = rule_of(in, unit);
    bool is_of_name = in->is_ours && !rule.says_judged; /* as older files of ours have it */
    const tp_metric *own = is_of_name ? tp_bench_own_metric(name) : NULL;
    tp_bench_metric_set(in->report, m, name, plain_unit,
                        is_time(unit) ? TP_LOWER_IS_BETTER : rule.direction, rule.kind, NULL, 0);
    m->metric.is_count = rule.is_count;
    m->metric.floor = own && !rule.floor ? own->floor : rule.floor;
    m->metric.is_informative = rule.is_shown || (own && own->is_informative);
    if (!rule.has_direction)
        tp_bench_metric_unjudged(m);
}

static tp_status add_value(reader *in, tp_bench_result *result, const char *unit, double v)
{
    TP_OWN(tp_buf) name = {0}, plain_unit = {0};
    metric_of(in, unit, &name, &plain_unit);
    tp_bench_metric *m = tp_result_metric(result, tp_buf_str(&name));
    if (!m && result->n_metrics == TP_BENCH_MAX_METRICS)
        return tp_fail(in->err, TP_ERR_FORMAT, "%s: '%s' has more than %d units", in->file,
                       result->name, TP_BENCH_MAX_METRICS);
    if (!m) {
        m = &result->metrics[result->n_metrics++];
        begin_metric(in, m, tp_buf_str(&name), unit, tp_buf_str(&plain_unit));
    }
    size_t index = (size_t)(result - in->report->results), at = (size_t)(m - result->metrics);
    tp_sample_list *list = &in->lists[index * TP_BENCH_MAX_METRICS + at];
    return tp_bench_metric_add(in->report, m, list, strcmp(unit, "ns/op") == 0 ? v * 1e-9 : v,
                               in->err);
}

/* Pairs of value and unit. */
static bool are_pairs(const char *text)
{
    TP_OWN(tp_buf) copy = {0};
    char *rest = NULL;
    double v;
    tp_buf_adds(&copy, text);
    char *value = strtok_r(copy.data, " \t", &rest);
    for (; value; value = strtok_r(NULL, " \t", &rest))
        if (!strtok_r(NULL, " \t", &rest) || !tp_bench_decimal(value, &v))
            return false;
    return true;
}

/* A line of a log may begin like that of a benchmark: it is left out, and counted. */
static tp_status read_line(reader *in, char *line, size_t number)
{
    char *rest = NULL, *word = strtok_r(line, " \t", &rest);
    char *count = word ? strtok_r(NULL, " \t", &rest) : NULL;
    TP_OWN(tp_buf) name = {0};
    double v;
    tp_bench_result *result;
    if (!count || !tp_bench_decimal(count, &v))
        return TP_OK; /* "BenchmarkX" alone announces a run */
    if (!word[strlen("Benchmark")])
        return TP_OK;
    if (!are_pairs(rest)) {
        in->first_bad = in->n_bad++ ? in->first_bad : number;
        return TP_OK;
    }
    name_of(in, word + strlen("Benchmark"), &name);
    TP_TRY(result_of(in, tp_buf_str(&name), word, &result));
    result->work = v >= 1 && v < 1e18 ? (uint64_t)v : 0;
    for (char *value; (value = strtok_r(NULL, " \t", &rest));) {
        char *unit = strtok_r(NULL, " \t", &rest);
        tp_bench_decimal(value, &v);
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

/* "key: value", and "key:", which has none from here on; false: another line. */
static bool is_setting(const char *line, size_t *ret_key, const char **ret_value)
{
    size_t n = 0;
    while (line[n] && line[n] != ':' && !isspace((unsigned char)line[n]) &&
           !isupper((unsigned char)line[n]))
        n++;
    const char *value = line + n + 1;
    if (!islower((unsigned char)*line) || line[n] != ':' || (*value && !strchr(" \t", *value)))
        return false;
    *ret_key = n;
    *ret_value = value + strspn(value, " \t");
    return true;
}

static tp_status read_setting(reader *in, const char *line, size_t number)
{
    size_t n, i = 0;
    const char *value;
    tp_arena *arena = &in->report->arena;
    if (!is_setting(line, &n, &value))
        return TP_OK;
    while (i < in->n_settings &&
           (strncmp(in->settings[i].key, line, n) != 0 || in->settings[i].key[n]))
        i++;
    if (i == TP_COUNTOF(in->settings))
        return tp_fail(in->err, TP_ERR_FORMAT, "%s:%zu: more than %zu keys, as '%.*s:'", in->file,
                       number, i, (int)TP_MIN(n, 40), line);
    setting *s = &in->settings[i];
    if (i == in->n_settings)
        in->settings[in->n_settings++] = (setting){.key = tp_arena_strndup(arena, line, n)};
    if (!*value)
        s->value = NULL;
    else if (!s->value || strcmp(s->value, value) != 0)
        s->value = tp_arena_strdup(arena, value);
    return TP_OK;
}

static bool differ(const char *a, const char *b) { return a && b ? strcmp(a, b) != 0 : a != b; }

/* What holds for all lines, wherever it stands: units, and which settings vary. */
static tp_status survey(reader *in, const char *text, size_t n)
{
    TP_OWN(tp_buf) line = {0};
    size_t number = 0;
    bool is_first = true;
    for (size_t at = 0; next_line(text, n, &at, &line);) {
        number++;
        if (tp_str_starts(line.data, "Unit "))
            TP_TRY(read_unit(in, line.data + 5, number));
        TP_TRY(read_setting(in, line.data, number));
        if (!tp_str_starts(line.data, "Benchmark"))
            continue;
        for (setting *s = in->settings; s < in->settings + in->n_settings; s++) {
            s->first = is_first ? s->value : s->first;
            s->varies |= differ(s->value, s->first);
        }
        is_first = false;
    }
    for (size_t i = 0; i < in->n_settings; i++)
        in->settings[i].value = NULL;
    return TP_OK;
}

/* What is left out is said; where nothing else is there, it is refused. */
static tp_status check_bad_lines(const reader *in)
{
    static const char *const wanted = "expected pairs of value and unit behind the count";
    if (!in->n_bad)
        return TP_OK;
    if (!in->report->n_results)
        return tp_fail(in->err, TP_ERR_FORMAT, "%s:%zu: %s", in->file, in->first_bad, wanted);
    tp_log(TP_LOG_NOTICE, "bench", "%s:%zu: not read: %s (%zu line%s)", in->file, in->first_bad,
           wanted, in->n_bad, tp_plural((uint64_t)in->n_bad));
    return TP_OK;
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
        if (strcmp(line.data, "tool: temper") == 0)
            in.is_ours = true;
        if (tp_str_starts(line.data, "Benchmark"))
            status = read_line(&in, line.data, number);
        else
            status = read_setting(&in, line.data, number);
    }
    if (status == TP_OK)
        status = check_bad_lines(&in);
    bool is_time_told = rule_of(&in, "ns/op").says_judged;
    for (size_t i = 0; in.is_ours && !is_time_told && i < ret->n_results; i++)
        tp_bench_judge_speed(&ret->results[i]);
    if (status == TP_OK && ret->n_results == 0)
        status =
            tp_fail(err, TP_ERR_FORMAT,
                    "%s: neither JSON nor benchmark lines (\"BenchmarkName 10 12 ns/op\")", name);
    return status;
}
