/* Every generation of Kineto, and traces of others, field by field. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/platform.h"
#include "base/rng.h"
#include "support/ingest.h"

static const tp_event_track *track_of(const tp_events *e, size_t i)
{
    return &e->tracks[e->track[i]];
}

static void kineto_of_2021(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("kineto_2021.json"));
    const tp_events *e = f->events;

    assert_int_equal(f->kind, TP_FILE_KINETO);
    assert_int_equal(e->counts.events, 6);
    assert_int_equal(e->counts.ph['X'], 5);
    assert_int_equal(ingest_count(e, "Kernel"), 1);
    assert_int_equal(e->info.time_form, TP_TIME_INTEGER_US);
    assert_int_equal(e->info.base_ns, 0);
    size_t i = ingest_row(e, "volta_sgemm_32x32_nn");
    assert_int_equal(e->kind[i], TP_EVENT_KERNEL);
    assert_int_equal(e->start[i], 1623143089861391000);
    assert_int_equal(e->dur[i], 25000);
    assert_int_equal(e->correlation[i], 900);
    assert_int_equal(e->external[i], 5);
    assert_int_equal(track_of(e, i)->device, 0);
    assert_int_equal(track_of(e, i)->stream, 7);
    assert_string_equal(tp_events_str(e, track_of(e, i)->tid_text), "stream 7");
    assert_string_equal(tp_events_str(e, track_of(e, i)->thread_name), "stream 7");
    assert_int_equal(e->counts.odd_numbers, 3);
    size_t op = ingest_row(e, "aten::mm");
    assert_int_equal(e->kind[op], TP_EVENT_CPU_OP);
    assert_string_equal(tp_events_str(e, tp_events_op(e, op)->dims), "[[8,4],[4,2]]");
    size_t copy = ingest_row(e, "Memcpy DtoH (Device -> Pageable)");
    assert_int_equal(e->kind[copy], TP_EVENT_MEMCPY);
    assert_int_equal(tp_events_copy(e, copy)->bytes, 4000);
    assert_int_equal(e->kind[ingest_row(e, "Memset (Device)")], TP_EVENT_MEMSET);
    assert_int_equal(e->kind[ingest_row(e, "cudaLaunchKernel")], TP_EVENT_RUNTIME);
    tp_trace_close(f);
}

static tp_trace_file *read_events(const char *list)
{
    char text[2048];
    int n = snprintf(text, sizeof text, "{\"schemaVersion\":1,\"traceEvents\":[%s]}", list);
    assert_true(n > 0 && (size_t)n < sizeof text);
    return ingest_text(text, (size_t)n, 0);
}

static void a_step_of_2021_is_an_annotation(void **state)
{
#define SPAN(name)                                        \
    "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"" name \
    "\",\"pid\":7,\"tid\":\"7\",\"ts\":1,\"dur\":2}"
    tp_trace_file *f = read_events(SPAN("ProfilerStep#5") "," SPAN("ProfilerStep#") "," SPAN(
        "ProfilerStep") ",{\"ph\":\"B\",\"cat\":\"Operator\",\"name\":\"ProfilerStep#6\",\"pid\":7,"
                        "\"tid\":7,\"ts\":4},{\"ph\":\"E\",\"pid\":7,\"tid\":7,\"ts\":6}");
    const tp_events *e = f->events;
    (void)state;
    assert_int_equal(e->kind[0], TP_EVENT_ANNOTATION);
    assert_int_equal(e->kind[1], TP_EVENT_CPU_OP);
    assert_int_equal(e->kind[2], TP_EVENT_CPU_OP);
    assert_int_equal(e->kind[3], TP_EVENT_ANNOTATION);
    assert_int_equal(e->counts.kind[TP_EVENT_ANNOTATION], 1);
    assert_string_equal(tp_events_category(e, 0), "Operator");
    tp_trace_close(f);
#undef SPAN
}

/* PyTorch 1.8 and 1.9 write the thread of operators as text, that of memory as a number. */
static void a_number_written_as_text_is_that_number(void **state)
{
#define ON(tid) "{\"ph\":\"i\",\"name\":\"a\",\"pid\":\"-3\",\"tid\":" tid ",\"ts\":1}"
    static const char *const texts[] = {
        "078", "0x4e", "78.0", "7e1", "-", "-0", "+78", "78 us", "99999999999999999999"};
    char list[2048] = ON("\"78\"") "," ON("78");
    for (size_t i = 0; i < TP_COUNTOF(texts); i++) {
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "," ON("\"%s\""), texts[i]);
    }
    tp_trace_file *f = read_events(list);
    const tp_events *e = f->events;
    (void)state;
    assert_int_equal(e->track[0], e->track[1]);
    assert_int_equal(track_of(e, 0)->tid, 78);
    assert_int_equal(track_of(e, 0)->pid, -3);
    for (size_t i = 0; i < TP_COUNTOF(texts); i++) {
        assert_int_equal(track_of(e, i + 2)->tid, TP_UNKNOWN);
        assert_string_equal(tp_events_str(e, track_of(e, i + 2)->tid_text), texts[i]);
    }
    tp_trace_close(f);
#undef ON
}

/* The "{}" that closes a list of TensorFlow's or JAX's is nothing. */
static void what_has_no_phase_is_no_event_of_an_unused_one(void **state)
{
    tp_trace_file *f = read_events("{\"ph\":\"i\",\"name\":\"a\",\"ts\":1},{\"a\":1},{ \n},{}");
    (void)state;
    assert_int_equal(f->events->counts.events, 2);
    assert_int_equal(f->events->counts.ph[0], 1);
    assert_int_equal(f->events->counts.not_kept, 0);
    assert_int_equal(f->notes.n, 1);
    assert_true(ingest_has_note(&f->notes, "1 event: without a phase"));
    tp_trace_close(f);
}

static void absolute_decimals_are_exact(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("kineto_2024_april.json"));
    const tp_events *e = f->events;

    assert_int_equal(e->info.time_form, TP_TIME_ABSOLUTE_DECIMAL);
    assert_int_equal(e->info.base_ns, 0);
    assert_int_equal(e->start[0], 1711964646123456001);
    assert_int_equal(e->dur[0], 250);
    assert_int_equal(e->start[1] - (e->start[0] + e->dur[0]), 1);
    tp_trace_close(f);
}

static void kineto_of_2025_main_table(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("kineto_2025.json.gz"));
    const tp_events *e = f->events;

    assert_true(f->is_gzip);
    assert_int_equal(f->rank, 1);
    assert_false(f->rank_is_guess);
    assert_int_equal(e->counts.events, 23);
    assert_int_equal(e->n, 13);
    assert_int_equal(e->info.time_form, TP_TIME_RELATIVE_DECIMAL);
    assert_int_equal(e->info.base_ns, 1711964646000000000);
    size_t i = ingest_row(e, "gemm");
    assert_int_equal(e->start[i], 4458676522720125);
    assert_int_equal(e->dur[i], 40375);
    assert_int_equal(e->correlation[i], 11);
    assert_int_equal(e->external[i], 2);
    assert_string_equal(tp_events_category(e, i), "kernel");
    size_t p = ingest_row(e, "train.py(3): \"step\"");
    assert_int_equal(e->correlation[p], TP_UNKNOWN);
    size_t end = ingest_row(e, "Record Window End");
    assert_int_equal(e->kind[end], TP_EVENT_INSTANT);
    assert_int_equal(e->phase[end], 'i');
    assert_int_equal(f->notes.n, 0);
    tp_trace_close(f);
}

static void kineto_of_2025_details(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("kineto_2025.json.gz"));
    const tp_events *e = f->events;

    const tp_event_op *op = tp_events_op(e, ingest_row(e, "aten::mm"));
    assert_string_equal(tp_events_str(e, op->types), "[\"float\",\"float\"]");
    const tp_event_sync *s = tp_events_sync(e, ingest_row(e, "Stream Wait Event"));
    assert_int_equal(s->wait_stream, 7);
    assert_int_equal(s->wait_correlation, 11);
    assert_int_equal(track_of(e, ingest_row(e, "Stream Wait Event"))->stream, 20);
    assert_null(tp_events_copy(e, ingest_row(e, "gemm")));
    tp_trace_close(f);
}

static void collectives_on_kernels_and_operators(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("kineto_2025.json.gz"));
    const tp_events *e = f->events;

    const tp_event_collective *c = tp_events_collective(
        e, ingest_row(e, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<"
                         "4096ul>)"));
    assert_non_null(c);
    assert_string_equal(tp_events_str(e, c->name), "allreduce");
    assert_string_equal(tp_events_str(e, c->dtype), "Float");
    assert_string_equal(tp_events_str(e, c->group), "0");
    assert_int_equal(c->in_elements, 1024);
    assert_int_equal(c->group_size, 2);
    assert_int_equal(c->sequence, 3);
    const tp_event_collective *host = tp_events_collective(e, ingest_row(e, "record_param_comms"));
    assert_int_equal(host->rank, 1);
    assert_null(tp_events_collective(e, ingest_row(e, "gemm")));
    tp_trace_close(f);
}

static void memory_flows_and_counters(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("kineto_2025.json.gz"));
    const tp_events *e = f->events;

    assert_int_equal(e->counts.memory_instants, 2);
    assert_int_equal(e->counts.alloc_bytes, 1024);
    assert_int_equal(e->counts.free_bytes, 1024);
    assert_int_equal(e->n_memory, 2);
    assert_int_equal(e->memory[1].bytes, -1024);
    assert_int_equal(e->memory[0].addr, 139926520725504);
    assert_int_equal(e->memory[0].allocated, 1024);
    assert_int_equal(e->memory[0].reserved, 2097152);
    assert_int_equal(e->memory[0].device, 0);
    assert_int_equal(e->memory[0].device_type, 1);
    assert_int_equal(e->memory[0].index, 12);
    assert_int_equal(e->n_flows, 2);
    assert_int_equal(e->flows[0].id, 11);
    assert_int_equal(e->flows[0].phase, 's');
    assert_int_equal(e->n_counters, 2);
    assert_string_equal(tp_events_str(e, e->counters[0].name), "GPU Utilization");
    assert_string_equal(tp_events_str(e, e->counters[1].series), "dram");
    assert_true(e->counters[0].value == 71.5);
    tp_trace_close(f);
}

static void metadata_around_the_events(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("kineto_2025.json.gz"));
    const tp_events *e = f->events;
    const tp_trace_info *info = &e->info;

    assert_int_equal(info->n_devices, 1);
    assert_string_equal(tp_events_str(e, info->devices[0].name), "NVIDIA H100 80GB HBM3");
    assert_int_equal(info->devices[0].sms, 132);
    assert_int_equal(info->rank, 1);
    assert_int_equal(info->world_size, 2);
    assert_string_equal(tp_events_str(e, info->backend), "nccl");
    assert_string_equal(tp_events_str(e, info->trace_name), "/tmp/a]b.json");
    const tp_event_track *host = track_of(e, ingest_row(e, "aten::mm"));
    assert_string_equal(tp_events_str(e, host->process_name), "python3");
    assert_string_equal(tp_events_str(e, host->process_labels), "CPU");
    assert_string_equal(tp_events_str(e, host->thread_name), "thread 100 (python3)");
    assert_int_equal(host->device, TP_UNKNOWN);
    tp_trace_close(f);
}

static void rocm_and_mtia(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("kineto_rocm_rank_6.json"));
    size_t i = ingest_row(f->events, "Cijk_Alik_Bljk_BBS_BH");
    char device[32];
    assert_int_equal(f->events->dur[i], 7321);
    assert_int_equal(track_of(f->events, i)->device, 2);
    tp_events_device_name(f->events, i, device, sizeof device);
    assert_string_equal(device, "2");
    assert_int_equal(f->rank, 6);
    assert_true(f->rank_is_guess);
    tp_trace_close(f);

    f = ingest_open(TP_SAMPLE("kineto_mtia.json"));
    i = ingest_row(f->events, "FC");
    assert_int_equal(f->kind, TP_FILE_KINETO);
    assert_int_equal(f->events->kind[i], TP_EVENT_DEVICE);
    assert_int_equal(track_of(f->events, i)->device, 1);
    assert_int_equal(f->events->counts.ph['M'], 6);
    assert_int_equal(f->rank, 0);
    tp_trace_close(f);
}

static void chrome_array_with_halves(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("chrome_array.json"));
    const tp_events *e = f->events;

    assert_int_equal(f->kind, TP_FILE_CHROME);
    assert_int_equal(e->counts.events, 7);
    assert_false(e->counts.truncated);
    size_t outer = ingest_row(e, "load"), inner = ingest_row(e, "parse");
    assert_int_equal(e->start[outer], 1500);
    assert_int_equal(e->dur[outer], 9000);
    assert_int_equal(e->dur[inner], 2500);
    assert_int_equal(e->counts.unpaired, 0);
    assert_int_equal(e->counts.not_kept, 1);
    assert_true(e->counters[0].value == 3);
    tp_trace_close(f);
}

static void a_trace_of_temper(void **state)
{
#define STEP                                                                                    \
    "\"traceEvents\":[\n{\"ph\":\"X\",\"name\":\"step\",\"cat\":\"user_annotation\",\"pid\":1," \
    "\"tid\":1,\"ts\":1.001,\"dur\":2.002}\n]}\n"
    static const char *const texts[] = {
        "{\"schemaVersion\":1,\"producer\":\"temper 0.2.0\",\"baseTimeNanoseconds\":5," STEP,
        "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"temper 0.1.0\"}," STEP};
    for (int i = 0; i < 2; i++) {
        tp_trace_file *f = ingest_text(texts[i], strlen(texts[i]), 0);
        assert_int_equal(f->kind, TP_FILE_TEMPER);
        assert_int_equal(f->events->start[0], 1001);
        assert_int_equal(f->events->dur[0], 2002);
        tp_trace_close(f);
    }
}

static void what_is_not_kept_is_counted(void **state)
{
    tp_trace_file *f = NULL;
    const tp_ingest_options options = {.keep = TP_KEEP_GPU};
    assert_int_equal(tp_trace_open(TP_SAMPLE("kineto_2025.json.gz"), &options, &f, NULL), TP_OK);
    const tp_events *e = f->events;

    assert_int_equal(e->n, 3);
    assert_int_equal(e->counts.events, 23);
    assert_int_equal(ingest_count(e, "cpu_op"), 2);
    assert_int_equal(e->counts.memory_instants, 2);
    assert_int_equal(e->n_memory, 0);
    assert_int_equal(e->n_flows, 0);
    assert_int_equal(tp_events_copy(e, ingest_row(e, "Memcpy HtoD (Pinned -> Device)"))->bytes,
                     65536);
    tp_trace_close(f);
}

static void arguments_as_text(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("kineto_2025.json.gz"));
    const tp_events *e = f->events;

    tp_slice args = tp_events_args(e, ingest_row(e, "Record Window End"));
    assert_int_equal(args.len, 0);
    args = tp_events_args(e, ingest_row(e, "cuLaunchKernelEx"));
    const char expected[] =
        "{\n      \"External id\": 3, \"cbid\": 652, \"correlation\": 12\n    }";
    assert_int_equal(args.len, sizeof expected - 1);
    assert_memory_equal(args.data, expected, args.len);
    tp_trace_close(f);
}

/* The text of an array, as a file of Chrome's. */
static tp_trace_file *events_of(const char *text) { return ingest_text(text, strlen(text), 0); }

static void halves_pair_by_thread_whatever_their_kind(void **state)
{
    (void)state;
    static const char text[] =
        "[{\"ph\":\"B\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":100,"
        "\"args\":{\"device\":0,\"stream\":7}},"
        "{\"ph\":\"B\",\"cat\":\"cpu_op\",\"name\":\"mm\",\"pid\":1,\"tid\":7,\"ts\":110},"
        "{\"ph\":\"E\",\"pid\":0,\"tid\":7,\"ts\":150},"
        "{\"ph\":\"E\",\"pid\":1,\"tid\":7,\"ts\":170}]";
    tp_trace_file *f = events_of(text);
    assert_int_equal(f->events->dur[ingest_row(f->events, "gemm")], 50000);
    assert_int_equal(f->events->dur[ingest_row(f->events, "mm")], 60000);
    assert_int_equal(f->events->counts.unpaired, 0);
    tp_trace_close(f);

    const tp_ingest_options options = {.keep = TP_KEEP_GPU};
    assert_int_equal(tp_trace_open_memory("t.json", text, strlen(text), &options, &f, NULL), TP_OK);
    assert_int_equal(f->events->n, 1);
    assert_int_equal(f->events->dur[0], 50000);
    tp_trace_close(f);
}

static void escaped_and_plain_names_are_the_same(void **state)
{
    (void)state;
    tp_trace_file *f = events_of(
        "[{\"\\u0070h\":\"X\",\"cat\":\"kernel\",\"name\":\"a\",\"ts\":1,\"dur\":2,"
        "\"args\":{\"str\\u0065am\":9}},"
        "{\"ph\":\"\\u0058\",\"cat\":\"kernel\",\"name\":\"b\",\"ts\":4,\"d\\u0075r\":3}]");
    const tp_events *e = f->events;
    assert_int_equal(e->counts.kind[TP_EVENT_KERNEL], 2);
    assert_int_equal(e->tracks[e->track[ingest_row(e, "a")]].stream, 9);
    assert_int_equal(e->dur[ingest_row(e, "b")], 3000);
    tp_trace_close(f);
}

static void what_has_no_duration_is_left_out_and_told(void **state)
{
    (void)state;
    tp_trace_file *f =
        events_of("[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\",\"ts\":1},"
                  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"b\",\"ts\":2,\"dur\":null},"
                  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"c\",\"ts\":3,\"dur\":0}]");
    assert_int_equal(f->events->n, 1);
    assert_int_equal(f->events->counts.missing_duration, 2);
    assert_true(ingest_has_note(&f->notes, "2 events: without a duration; left out"));
    tp_trace_close(f);
}

/* ---- what is remembered of one event must not change how the next one is read ---- */

static void add_odd_value(tp_buf *out, tp_rng *rng)
{
    static const char *const values[] = {"null",  "1",      "[]",        "{}",
                                         "\"t\"", "[{},2]", "{\"q\":1}", "true"};
    tp_buf_adds(out, values[tp_rng_below(rng, TP_COUNTOF(values))]);
}

static void add_arguments(tp_buf *out, tp_rng *rng, int number)
{
    static const char *const others[] = {"x", "s", "cat", "ph", "args", "ts"};
    tp_buf_adds(out, "\"args\":");
    if (tp_rng_below(rng, 4) == 0) {
        add_odd_value(out, rng);
        return;
    }
    bool is_first = tp_rng_below(rng, 2) == 0;
    tp_buf_addc(out, '{');
    if (is_first)
        tp_buf_addf(out, "\"correlation\":%d,", number + 1);
    tp_buf_addf(out, "\"%s\":", others[tp_rng_below(rng, TP_COUNTOF(others))]);
    add_odd_value(out, rng);
    if (!is_first)
        tp_buf_addf(out, ",\"correlation\":%d", number + 1);
    tp_buf_addc(out, '}');
}

static void add_event(tp_buf *out, tp_rng *rng, int number)
{
    enum { MEMBERS = 7 };
    int order[MEMBERS];
    for (int i = 0; i < MEMBERS; i++) {
        int at = (int)tp_rng_below(rng, (uint64_t)i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    tp_buf_addc(out, '{');
    for (int i = 0; i < MEMBERS; i++) {
        if (i)
            tp_buf_addc(out, ',');
        switch (order[i]) {
        case 0:
            tp_buf_adds(out, "\"ph\":\"X\"");
            break;
        case 1:
            tp_buf_addf(out, "\"cat\":\"%s\"", number % 2 ? "kernel" : "cuda_runtime");
            break;
        case 2:
            tp_buf_addf(out, "\"name\":\"n%d\"", number);
            break;
        case 3:
            tp_buf_addf(out, "\"ts\":%d", 10 * number);
            break;
        case 4:
            tp_buf_addf(out, "\"dur\":%d", number + 1);
            break;
        case 5:
            tp_buf_addf(out, "\"%s\":", tp_rng_below(rng, 2) ? "s" : "x");
            add_odd_value(out, rng);
            break;
        default:
            add_arguments(out, rng, number);
        }
    }
    tp_buf_addc(out, '}');
}

static void an_event_is_read_alike_alone_and_among_others(void **state)
{
    (void)state;
    enum { FILES = 60, EVENTS = 12 };
    for (uint64_t seed = 0; seed < FILES; seed++) {
        TP_OWN(tp_buf) all = {0};
        tp_rng rng = tp_rng_make(seed, 7);
        size_t from[EVENTS + 1];
        tp_buf_addc(&all, '[');
        for (int i = 0; i < EVENTS; i++) {
            if (i)
                tp_buf_addc(&all, ',');
            from[i] = all.len;
            add_event(&all, &rng, i);
        }
        from[EVENTS] = all.len + 1;
        tp_buf_addc(&all, ']');
        tp_trace_file *f = events_of(tp_buf_str(&all));
        assert_int_equal(f->events->n, EVENTS);
        for (int i = 0; i < EVENTS; i++) {
            char name[8], text[512];
            snprintf(text, sizeof text, "[%.*s]", (int)(from[i + 1] - from[i] - 1),
                     all.data + from[i]);
            snprintf(name, sizeof name, "n%d", i);
            tp_trace_file *alone = events_of(text);
            size_t row = ingest_row(f->events, name), own = ingest_row(alone->events, name);
            assert_int_equal(f->events->start[row], 10000 * i);
            assert_int_equal(f->events->dur[row], 1000 * (i + 1));
            assert_int_equal(f->events->kind[row], alone->events->kind[own]);
            if (f->events->correlation[row] != alone->events->correlation[own])
                fail_msg("seed %d: %s has another correlation in %s", (int)seed, name,
                         tp_buf_str(&all));
            tp_trace_close(alone);
        }
        tp_trace_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kineto_of_2021),
        cmocka_unit_test(a_step_of_2021_is_an_annotation),
        cmocka_unit_test(a_number_written_as_text_is_that_number),
        cmocka_unit_test(what_has_no_phase_is_no_event_of_an_unused_one),
        cmocka_unit_test(absolute_decimals_are_exact),
        cmocka_unit_test(kineto_of_2025_main_table),
        cmocka_unit_test(kineto_of_2025_details),
        cmocka_unit_test(collectives_on_kernels_and_operators),
        cmocka_unit_test(memory_flows_and_counters),
        cmocka_unit_test(metadata_around_the_events),
        cmocka_unit_test(rocm_and_mtia),
        cmocka_unit_test(chrome_array_with_halves),
        cmocka_unit_test(a_trace_of_temper),
        cmocka_unit_test(what_is_not_kept_is_counted),
        cmocka_unit_test(arguments_as_text),
        cmocka_unit_test(halves_pair_by_thread_whatever_their_kind),
        cmocka_unit_test(escaped_and_plain_names_are_the_same),
        cmocka_unit_test(what_has_no_duration_is_left_out_and_told),
        cmocka_unit_test(an_event_is_read_alike_alone_and_among_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
