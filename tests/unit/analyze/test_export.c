/* What is exported reads back as what it was. */
#include "trace_text.h"

#include <math.h>
#include <stdlib.h>

#include "instrument/analyze/export.h"

static const char events[] =
    NOTE("ProfilerStep#1", 1, 0, 400) "," OP("aten::mm;\\\"x\\\"", 1, 80, 40) "," CALL(
        "cudaLaunchKernel", 1, 90, 5,
        1) "," KERNEL("gemm", 7, 100.125, 50.001,
                      1) "," KERNEL("ncclDevKernel_AllReduce", 7, 120, 50,
                                    2) "," COPY("Memcpy HtoD (Pageable -> Device)", 9, 185, 15, 3,
                                                3000);

static tp_status append(void *context, const void *bytes, size_t n, tp_error *err)
{
    (void)err;
    tp_buf_add(context, bytes, n);
    return TP_OK;
}

static void chrome_reads_back(void **state)
{
    tp_trace_file *file = read_trace("events.json", events), *again;
    tp_buf text = {0};
    tp_export_sink sink = {.write = append, .context = &text};
    tp_error err = {0};
    const tp_ingest_options options = {.keep = 0};

    assert_int_equal(tp_export_chrome(file->events, &sink, &err), TP_OK);
    assert_int_equal(
        tp_trace_open_memory("again.json", text.data, text.len, &options, &again, &err), TP_OK);

    assert_int_equal(again->events->n, file->events->n);
    for (size_t i = 0; i < file->events->n; i++) {
        assert_int_equal(again->events->start[i], file->events->start[i]);
        assert_int_equal(again->events->dur[i], file->events->dur[i]);
        assert_int_equal(again->events->correlation[i], file->events->correlation[i]);
        assert_int_equal(again->events->kind[i], file->events->kind[i]);
        assert_string_equal(tp_events_str(again->events, again->events->name[i]),
                            tp_events_str(file->events, file->events->name[i]));
    }
    tp_buf_release(&text);
    tp_buf_release(&sink.pending);
    tp_trace_close(again);
    tp_trace_close(file);
}

/* What JSON has no number for is a text. */
static void counters_that_are_no_numbers_stay(void **state)
{
    static const char samples[] =
        "{\"ph\":\"C\",\"name\":\"loss\",\"pid\":9,\"tid\":1,\"ts\":1,\"args\":{\"value\":\"NaN\","
        "\"low\":\"-Infinity\",\"unit\":\"s\"}},"
        "{\"ph\":\"C\",\"name\":\"loss\",\"pid\":9,\"tid\":1,\"ts\":2,\"args\":{\"value\":2.5}}";
    tp_trace_file *file = read_trace("counters.json", samples), *again;
    tp_buf text = {0};
    tp_export_sink sink = {.write = append, .context = &text};
    tp_error err = {0};
    const tp_ingest_options options = {.keep = 0};
    (void)state;
    assert_int_equal(tp_export_chrome(file->events, &sink, &err), TP_OK);
    assert_int_equal(
        tp_trace_open_memory("again.json", text.data, text.len, &options, &again, &err), TP_OK);
    assert_int_equal(file->events->n_counters, 3);
    assert_int_equal(again->events->n_counters, 3);
    for (int i = 0; i < 2; i++) {
        const tp_counter_sample *c = (i ? again : file)->events->counters;
        assert_true(isnan(c[0].value));
        assert_true(isinf(c[1].value) && c[1].value < 0);
        assert_true(c[2].value == 2.5);
    }
    tp_buf_release(&text);
    tp_buf_release(&sink.pending);
    tp_trace_close(again);
    tp_trace_close(file);
}

#define MEMORY(ts, args)                                                              \
    "{\"ph\":\"i\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":9,\"tid\":1,\"ts\":" #ts \
    ",\"args\":{" args "}}"

/* A line per event, memory too; -1 is the host, and no device is none. */
static void csv_has_memory(void **state)
{
    static const char device[] = MEMORY(3.5, "\"Bytes\":-64,\"Device Type\":1,\"Device Id\":2");
    static const char host[] = MEMORY(4, "\"Bytes\":8,\"Device Type\":0,\"Device Id\":-1");
    static const char unknown[] = MEMORY(5, "\"Bytes\":8");
    TP_OWN(tp_buf) both = {0};
    tp_buf_addf(&both, "%s,%s,%s,%s", OP("aten::empty", 1, 2, 3), device, host, unknown);
    tp_trace_file *file = read_trace("memory.json", tp_buf_str(&both));
    TP_OWN(tp_buf) text = {0};
    tp_export_sink sink = {.write = append, .context = &text};
    tp_error err = {0};
    (void)state;
    assert_int_equal(tp_export_csv(file->events, &sink, &err), TP_OK);
    assert_string_equal(strchr(tp_buf_str(&text), '\n') + 1,
                        "2000,3000,X,cpu_op,operator,9,1,,,,,,aten::empty\n"
                        "3500,0,i,,memory,9,1,2,,,,-64,[memory]\n"
                        "4000,0,i,,memory,9,1,-1,,,,8,[memory]\n"
                        "5000,0,i,,memory,9,1,,,,,8,[memory]\n");
    assert_int_equal(sink.n_written, 4);
    tp_buf_clear(&text);
    assert_int_equal(tp_export_chrome(file->events, &sink, &err), TP_OK);
    assert_non_null(strstr(tp_buf_str(&text), "\"Bytes\":8,\"Device Id\":-1,\"Device Type\":0}"));
    assert_non_null(strstr(tp_buf_str(&text), "\"Bytes\":8}"));
    tp_buf_release(&sink.pending);
    tp_trace_close(file);
}

static uint64_t varint(const uint8_t **p)
{
    uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
        uint8_t byte = *(*p)++;
        v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return v;
    }
}

typedef struct {
    int packets, begins, ends, descriptors, names;
    uint64_t first_begin;
} perfetto;

static void read_event(const uint8_t *p, const uint8_t *end, uint64_t time, perfetto *f)
{
    while (p < end) {
        uint64_t tag = varint(&p);
        uint64_t v = (tag & 7) == 1 ? 8 : varint(&p);
        if (tag >> 3 == 9 && v == 1 && f->begins++ == 0)
            f->first_begin = time;
        if (tag >> 3 == 9 && v == 2)
            f->ends++;
        if ((tag & 7) != 0)
            p += v;
    }
}

static void read_packet(const uint8_t *p, const uint8_t *end, perfetto *f)
{
    uint64_t time = 0;
    f->packets++;
    while (p < end) {
        uint64_t tag = varint(&p), v = varint(&p);
        if (tag >> 3 == 8)
            time = v;
        if (tag >> 3 == 60)
            f->descriptors++;
        if (tag >> 3 == 12)
            f->names++;
        if (tag >> 3 == 11)
            read_event(p, p + v, time, f);
        if ((tag & 7) == 2)
            p += v;
    }
    assert_ptr_equal(p, end);
}

static void perfetto_is_well_formed(void **state)
{
    tp_trace_file *file = read_trace("events.json", events);
    tp_buf bytes = {0};
    tp_export_sink sink = {.write = append, .context = &bytes};
    tp_error err = {0};
    perfetto found = {0};

    assert_int_equal(tp_export_perfetto(file->events, &sink, &err), TP_OK);
    const uint8_t *p = (const uint8_t *)bytes.data, *end = p + bytes.len;
    while (p < end) {
        assert_int_equal(varint(&p), 10); /* field 1, a message */
        uint64_t n = varint(&p);
        read_packet(p, p + n, &found);
        p += n;
    }

    assert_int_equal(found.begins, 6);
    assert_int_equal(found.ends, 6);
    /* host process and thread, device and its two streams, and a lane for the overlap */
    assert_int_equal(found.descriptors, 2 + 1 + 2 + 1);
    assert_int_equal(found.names, 6);
    assert_int_equal(found.packets, 12 + 6);
    tp_buf_release(&bytes);
    tp_buf_release(&sink.pending);
    tp_trace_close(file);
}

/* Memory is a counter there: without a total it has no value. */
static void perfetto_counts_what_it_wrote(void **state)
{
    static const char memory[] = OP("aten::empty", 1, 2, 3) "," MEMORY(
        3, "\"Bytes\":64") "," MEMORY(-4, "\"Bytes\":64,\"Total Allocated\":64");
    tp_trace_file *file = read_trace("memory.json", memory);
    TP_OWN(tp_buf) bytes = {0};
    tp_export_sink sink = {.write = append, .context = &bytes};
    (void)state;
    assert_int_equal(tp_export_perfetto(file->events, &sink, NULL), TP_OK);
    assert_int_equal(sink.n_written, 2);
    tp_buf_release(&sink.pending);
    tp_trace_close(file);
}

static void collapsed_stacks_have_clean_lines(void **state)
{
    tp_trace_file *file = read_trace("events.json", events);
    tp_selection s = select_all(file);
    tp_buf text = {0};
    tp_export_sink sink = {.write = append, .context = &text};
    tp_error err = {0};

    assert_int_equal(tp_export_collapsed(&s, TP_STACKS_HOST, &sink, &err), TP_OK);
    assert_string_equal(tp_buf_str(&text), "ProfilerStep 360000\n"
                                           "ProfilerStep;aten::mm:\"x\" 40000\n");
    tp_buf_clear(&text);
    assert_int_equal(tp_export_collapsed(&s, TP_STACKS_DEVICE, &sink, &err), TP_OK);
    assert_string_equal(tp_buf_str(&text), "ProfilerStep;aten::mm:\"x\";gemm 50001\n"
                                           "ncclDevKernel_AllReduce 50000\n"
                                           "Memcpy HtoD (Pageable -> Device) 15000\n");
    tp_buf_release(&text);
    tp_buf_release(&sink.pending);
    tp_selection_release(&s);
    tp_trace_close(file);
}

#define LAUNCH(name, ts, modules, phase)                                                     \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":9,\"tid\":1,\"ts\":" #ts \
    ",\"dur\":10,\"args\":{\"Module Hierarchy\":\"" modules "\",\"phase\":\"" phase "\"}}"

static void operators_hang_below_their_modules(void **state)
{
    tp_trace_file *file = read_trace(
        "modules.json",
        "[" NOTE("ProfilerStep#1", 1, 0, 100) "," LAUNCH(
            "temper::linear", 0, "layers.0.q_proj",
            "forward") "," LAUNCH("temper::linear_dx", 20, "layers.0.q_proj.dx",
                                  "backward") "," LAUNCH("temper::linear_dx", 40,
                                                         "layers.0.q_proj.dx",
                                                         "backward") "," LAUNCH("temper::adamw", 60,
                                                                                "model.norm.weight",
                                                                                "update") "]");
    tp_selection s = select_all(file);
    tp_buf text = {0};
    tp_export_sink sink = {.write = append, .context = &text};

    assert_int_equal(tp_export_collapsed(&s, TP_STACKS_HOST, &sink, NULL), TP_OK);
    assert_string_equal(tp_buf_str(&text),
                        "ProfilerStep 60000\n"
                        "ProfilerStep;forward;model;layers.0;q_proj;temper::linear 10000\n"
                        "ProfilerStep;backward;model;layers.0;q_proj;temper::linear_dx 20000\n"
                        "ProfilerStep;update;model;norm;weight;temper::adamw 10000\n");
    tp_buf_release(&text);
    tp_buf_release(&sink.pending);
    tp_selection_release(&s);
    tp_trace_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chrome_reads_back),
                                       cmocka_unit_test(counters_that_are_no_numbers_stay),
                                       cmocka_unit_test(csv_has_memory),
                                       cmocka_unit_test(perfetto_is_well_formed),
                                       cmocka_unit_test(perfetto_counts_what_it_wrote),
                                       cmocka_unit_test(collapsed_stacks_have_clean_lines),
                                       cmocka_unit_test(operators_hang_below_their_modules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
