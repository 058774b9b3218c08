/* bench_trace.c - reading a trace in the form of PyTorch's profiler: sequence_length events,
 * made up, from memory. */
#include "api/bench_subjects.h"
#include "engine/device/memory.h"
#include "instrument/ingest/ingest.h"

enum { THROUGHPUT, TIME, EVENTS, BYTES, OWN };

typedef struct {
    tp_bench_subject base;
    tp_buf text;
} trace_subject;

static tp_status set_up(tp_subject *subject, tp_error *err)
{
    trace_subject *s = (trace_subject *)subject;
    static const char *const names[] = {"aten::mm", "aten::add_", "aten::softmax", "aten::copy_"};
    (void)err;
    tp_buf_adds(&s->text, "{\"schemaVersion\": 1, \"traceEvents\": [\n");
    for (int64_t i = 0; i < s->base.c->sequence_length; i++)
        tp_buf_addf(
            &s->text,
            "%s{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"%s\", \"pid\": 7, \"tid\": "
            "%lld, \"ts\": %lld.%03lld, \"dur\": %lld.5, \"args\": {\"External id\": %lld}}",
            i ? ",\n" : "", names[i % 4], (long long)(7 + i % 2), (long long)(1000 + 10 * i),
            (long long)(i % 1000), (long long)(1 + i % 9), (long long)i);
    tp_buf_adds(&s->text, "\n]}\n");
    return TP_OK;
}

static tp_status run(tp_subject *subject, uint64_t work, tp_bench_sample *ret, tp_error *err)
{
    trace_subject *s = (trace_subject *)subject;
    tp_ingest_options options = {.one_thread = true};
    size_t n_events = 0;
    for (uint64_t i = 0; i < work; i++) {
        tp_trace_file *file;
        TP_TRY(tp_trace_open_memory("made up", s->text.data, s->text.len, &options, &file, err));
        n_events = file->events ? file->events->n : 0;
        tp_trace_close(file);
    }
    ret->amount[THROUGHPUT] = (double)work * (double)s->text.len;
    ret->values[EVENTS] = (double)n_events;
    ret->values[BYTES] = (double)s->text.len;
    tp_bench_fill_memory(ret, OWN, (double)tp_mem_get_stats().total_current);
    return TP_OK;
}

static void tear_down(tp_subject *subject)
{
    trace_subject *s = (trace_subject *)subject;
    tp_buf_release(&s->text);
    free(s);
}

static const tp_metric own[OWN] = {[THROUGHPUT] = TP_THROUGHPUT_ROW("bytes/s"),
                                   [TIME] = TP_RUN_TIME_ROW,
                                   [EVENTS] = {.name = "events",
                                               .unit = "events",
                                               .direction = TP_HIGHER_IS_BETTER,
                                               .kind = TP_METRIC_EXACT},
                                   [BYTES] = TP_BYTES_ROW};

const tp_bench_kind tp_bench_trace = {
    .name = "trace",
    .class = {.set_up = set_up, .run = run, .tear_down = tear_down},
    .size = sizeof(trace_subject),
    .metrics = own,
    .n_metrics = OWN,
    .work_unit = "traces",
};
