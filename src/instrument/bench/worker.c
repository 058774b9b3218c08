/* worker.c - both ends of the pipe to a subject in another process, one line of JSON per
 * message. */
#include "instrument/bench/worker.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <sys/resource.h>

#include "base/clock.h"
#include "base/rng.h"
#include "instrument/bench/formats.h"
#include "instrument/bench/metric_rows.h"
#include "text/json/json.h"

enum { MESSAGE_ARENA = 64 << 20, MAX_MESSAGE = 1 << 20, START_STREAM = 0x737461 };

/* ---- our end ---- */

static tp_status exchange(tp_worker_subject *s, const char *line, tp_arena *arena,
                          const tp_json **ret, tp_error *err)
{
    TP_OWN(tp_buf) answer = {0};
    tp_json_options options = {.allow_nan = true, .max_bytes = MAX_MESSAGE};
    tp_status status = tp_pipe_send(&s->pipe, line, err);
    if (status == TP_OK)
        status = tp_pipe_receive(&s->pipe, s->timeout_s, &answer, err);
    if (status == TP_OK) {
        const char *text = tp_arena_strndup(arena, tp_buf_str(&answer), answer.len);
        status = tp_json_parse(arena, "the worker's answer", text, answer.len, &options, ret, err);
    }
    const char *complaint = status == TP_OK ? tp_json_str(tp_json_get(*ret, "error")) : NULL;
    return complaint ? tp_fail(err, TP_ERR_IO, "%s", complaint) : status;
}

static tp_status read_metric(tp_worker_subject *s, const tp_json *m, size_t i, tp_error *err)
{
    const char *name = tp_json_str(tp_json_get(m, "name"));
    const char *unit = tp_json_str(tp_json_get(m, "unit"));
    const char *class = tp_json_str(tp_json_get(m, "class"));
    tp_metric metric = {0};
    if (!name || !unit || !tp_metric_class_parse(class, &metric.kind) ||
        !tp_direction_parse(tp_json_str(tp_json_get(m, "direction")), &metric.direction))
        return tp_fail(err, TP_ERR_FORMAT,
                       "the worker's metric %zu lacks name, unit, direction (lower or higher) or "
                       "class (noisy or exact)",
                       i);
    for (size_t k = 0; k < i; k++) {
        if (strcmp(s->metrics[k].name, name) == 0)
            return tp_fail(err, TP_ERR_FORMAT,
                           "the worker names its metric '%.80s' twice; every metric needs a name "
                           "of its own",
                           name);
    }
    metric.name = tp_arena_strdup(s->arena, name);
    metric.unit = tp_arena_strdup(s->arena, unit);
    tp_json_bool(tp_json_get(m, "informative"), &metric.is_informative);
    tp_json_f64(tp_json_get(m, "floor"), &metric.floor);
    s->metrics[i] = metric;
    return TP_OK;
}

/* The time of a run, which every answer has: what other tools want to know. */
static void add_time(tp_worker_subject *s)
{
    static const tp_metric time = TP_RUN_TIME_ROW;
    for (size_t k = 0; k < s->n_named; k++) {
        if (strcmp(s->metrics[k].name, time.name) == 0)
            return;
    }
    if (s->n_named < TP_BENCH_MAX_METRICS)
        s->metrics[s->subject.n_metrics++] = time;
}

static tp_status read_ready(tp_worker_subject *s, const tp_json *ready, tp_error *err)
{
    const tp_json *metrics = tp_json_get(ready, "metrics");
    const char *unit = tp_json_str(tp_json_get(ready, "work_unit"));
    if (!metrics || metrics->type != TP_JSON_ARRAY || metrics->n == 0 ||
        metrics->n > TP_BENCH_MAX_METRICS)
        return tp_fail(err, TP_ERR_FORMAT, "the worker names no metrics, or more than %d",
                       TP_BENCH_MAX_METRICS);
    if (s->subject.n_metrics)
        return metrics->n == s->n_named
                   ? TP_OK
                   : tp_fail(err, TP_ERR_FORMAT, "the worker changed its metrics");
    size_t i = 0;
    for (const tp_json *m = metrics->child; m; m = m->next, i++)
        TP_TRY(read_metric(s, m, i, err));
    int64_t work;
    if (tp_json_i64(tp_json_get(ready, "work"), &work) && work > 0)
        s->subject.work = (uint64_t)work;
    s->subject.metrics = s->metrics;
    s->subject.n_metrics = s->n_named = metrics->n;
    add_time(s);
    s->subject.work_unit = unit ? tp_arena_strdup(s->arena, unit) : NULL;
    return TP_OK;
}

static tp_status set_up(tp_subject *subject, tp_error *err)
{
    tp_worker_subject *s = (tp_worker_subject *)subject;
    TP_OWN(tp_arena) arena = {0};
    const tp_json *answer;
    uint32_t draw[4];
    tp_philox(s->seed, START_STREAM, s->n_starts++, draw);
    tp_process_command command = {.argv = s->argv, .padding = draw[0] % 4096, .keep_output = true};
    TP_TRY(tp_arena_init(&arena, MESSAGE_ARENA, err));
    TP_TRY(tp_pipe_open(&command, &s->pipe, err));
    TP_TRY(exchange(s, s->request, &arena, &answer, err));
    return read_ready(s, answer, err);
}

static tp_status read_sample(tp_worker_subject *s, const tp_json *answer, tp_bench_sample *ret,
                             tp_error *err)
{
    int64_t elapsed;
    const tp_json *values = tp_json_get(answer, "values");
    const char *checksum = tp_json_str(tp_json_get(answer, "checksum"));
    if (!tp_json_i64(tp_json_get(answer, "elapsed_ns"), &elapsed) || elapsed <= 0)
        return tp_fail(err, TP_ERR_FORMAT, "the worker's answer has no elapsed_ns above 0");
    ret->elapsed_ns = (uint64_t)elapsed;
    ret->has_switches = tp_json_i64(tp_json_get(answer, "involuntary_switches"), &ret->switches) &&
                        ret->switches >= 0;
    for (size_t i = 0; i < s->subject.n_metrics; i++) {
        if (!tp_bench_number(tp_json_get(values, s->metrics[i].name), &ret->values[i]))
            ret->values[i] = NAN;
    }
    ret->has_checksum = checksum != NULL;
    ret->checksum = checksum ? strtoull(checksum, NULL, 16) : 0;
    return TP_OK;
}

static tp_status run(tp_subject *subject, uint64_t work, tp_bench_sample *ret, tp_error *err)
{
    tp_worker_subject *s = (tp_worker_subject *)subject;
    TP_OWN(tp_arena) arena = {0};
    const tp_json *answer;
    char line[64];
    snprintf(line, sizeof line, "{\"run\": %" PRIu64 "}", work);
    TP_TRY(tp_arena_init(&arena, MESSAGE_ARENA, err));
    TP_TRY(exchange(s, line, &arena, &answer, err));
    return read_sample(s, answer, ret, err);
}

static void tear_down(tp_subject *subject) { tp_pipe_close(&((tp_worker_subject *)subject)->pipe); }

static const tp_subject_class worker_class = {.set_up = set_up, .run = run, .tear_down = tear_down};

void tp_worker_subject_init(tp_worker_subject *s, const char *const *argv, const char *request,
                            double timeout_s, uint64_t seed, tp_arena *arena)
{
    *s = (tp_worker_subject){.subject = {.class = &worker_class},
                             .argv = argv,
                             .request = request,
                             .timeout_s = timeout_s,
                             .arena = arena,
                             .pipe = {.to = -1, .from = -1},
                             .seed = seed};
}

/* ---- the other end ---- */

static void answer(FILE *out, tp_buf *text)
{
    fprintf(out, "%s\n", tp_buf_str(text));
    fflush(out);
    tp_buf_clear(text);
}

static void answer_error(FILE *out, const tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    tp_json_w w = tp_json_w_open(&text, 0, '{');
    tp_json_w_put_str(&w, "error", err->message);
    tp_json_w_end(&w, '}');
    answer(out, &text);
}

static void answer_ready(FILE *out, const tp_subject *s)
{
    TP_OWN(tp_buf) text = {0};
    tp_json_w w = tp_json_w_open(&text, 0, '{');
    tp_json_w_put_bool(&w, "ready", true);
    tp_json_w_put_str(&w, "work_unit", s->work_unit);
    tp_json_w_put_i64(&w, "work", (int64_t)s->work);
    tp_json_w_put_begin(&w, "metrics", '[');
    for (size_t i = 0; i < s->n_metrics; i++) {
        tp_json_w_begin(&w, '{');
        tp_metric_write(&s->metrics[i], &w);
        tp_json_w_end(&w, '}');
    }
    tp_json_w_end(&w, ']');
    tp_json_w_end(&w, '}');
    answer(out, &text);
}

static void answer_sample(FILE *out, const tp_subject *s, const tp_bench_sample *sample)
{
    TP_OWN(tp_buf) text = {0};
    char checksum[24];
    tp_json_w w = tp_json_w_open(&text, 0, '{');
    tp_json_w_put_i64(&w, "elapsed_ns", (int64_t)sample->elapsed_ns);
    if (sample->has_switches)
        tp_json_w_put_i64(&w, "involuntary_switches", sample->switches);
    tp_json_w_put_begin(&w, "values", '{');
    for (size_t i = 0; i < s->n_metrics; i++)
        tp_json_w_put_f64(&w, s->metrics[i].name, sample->values[i]);
    tp_json_w_end(&w, '}');
    if (sample->has_checksum) {
        snprintf(checksum, sizeof checksum, "%016" PRIx64, sample->checksum);
        tp_json_w_put_str(&w, "checksum", checksum);
    }
    tp_json_w_end(&w, '}');
    answer(out, &text);
}

static tp_status serve_open(const tp_json *request, FILE *out, tp_worker_open open, void *context,
                            tp_subject **ret, tp_error *err)
{
    const char *name = tp_json_str(tp_json_get(request, "benchmark"));
    if (!name)
        return tp_fail(err, TP_ERR_FORMAT, "the first request has to name a benchmark");
    TP_TRY(open(context, name, tp_json_get(request, "options"), ret, err));
    tp_subject *s = *ret;
    tp_status status = s->class->set_up ? s->class->set_up(s, err) : TP_OK;
    if (status == TP_OK) {
        answer_ready(out, s);
        return TP_OK;
    }
    if (s->class->tear_down)
        s->class->tear_down(s);
    *ret = NULL;
    return status;
}

/* Of all threads of this process. */
static int64_t own_switches(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

static tp_status serve_run(const tp_json *request, FILE *out, tp_subject *s, tp_error *err)
{
    int64_t work;
    tp_bench_sample sample = {0};
    if (!tp_json_i64(tp_json_get(request, "run"), &work) || work < 1)
        return tp_fail(err, TP_ERR_FORMAT, "a request is {\"run\": N} with N at least 1");
    for (size_t i = 0; i < TP_BENCH_MAX_METRICS; i++)
        sample.values[i] = NAN;
    int64_t switches = own_switches();
    uint64_t start = tp_clock_ns();
    TP_TRY(s->class->run(s, (uint64_t)work, &sample, err));
    tp_bench_sample_finish(s, (uint64_t)work, tp_clock_ns() - start, &sample);
    sample.has_switches = true;
    sample.switches = own_switches() - switches;
    answer_sample(out, s, &sample);
    return TP_OK;
}

tp_status tp_worker_serve(FILE *in, FILE *out, tp_worker_open open, void *context, tp_error *err)
{
    TP_FREED char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    tp_subject *subject = NULL;
    TP_OWN(tp_arena) arena = {0};
    tp_json_options options = {.max_bytes = MAX_MESSAGE};
    TP_TRY(tp_arena_init(&arena, MESSAGE_ARENA, err));
    while ((n = getline(&line, &cap, in)) > 0) {
        tp_error failure = {0};
        const tp_json *request = NULL;
        size_t mark = tp_arena_mark(&arena);
        tp_status status =
            tp_json_parse(&arena, "the request", line, (size_t)n, &options, &request, &failure);
        if (status == TP_OK)
            status = subject ? serve_run(request, out, subject, &failure)
                             : serve_open(request, out, open, context, &subject, &failure);
        if (status != TP_OK)
            answer_error(out, &failure);
        /* What the subject was opened with stays: it may point into it. */
        if (!request || tp_json_get(request, "run"))
            tp_arena_rewind(&arena, mark);
    }
    if (subject && subject->class->tear_down)
        subject->class->tear_down(subject);
    return TP_OK;
}
