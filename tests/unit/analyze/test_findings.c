/* Bottlenecks, and the tables beside them, of a trace that is worked out by hand; literal figures.
 */
#include "trace_text.h"

#include "instrument/report/trace_report.h"

#define MEMORY(ts, addr, bytes, index)                                                         \
    "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":9," \
    "\"tid\":1,\"ts\":" #ts ",\"args\":{\"Addr\":" #addr ",\"Bytes\":" #bytes                  \
    ",\"Device Type\":1,\"Device Id\":0,\"Ev Idx\":" #index "}}"

/* stream 7  [gemm 100..3100)   [relu 5000..5100)   [gemm 8000..10000)
 * stream 9                        [copy 5200..5204)
 * The device is busy 5.104 of 9.9 ms.  aten::mm has both gemms, aten::relu the other. */
static const char trace[] =
    OP("aten::mm", 1, 80, 20) "," CALL("cudaLaunchKernel", 1, 90, 5, 1) "," OP("aten::relu", 1, 4000, 50) "," CALL(
        "cudaLaunchKernel", 1,
        4010, 5,
        2) "," OP("aten::mm", 1, 7000,
                  50) "," CALL("cudaLaunchKernel", 1, 7010, 5,
                               3) "," KERNEL("gemm", 7, 100, 3000,
                                             1) "," KERNEL("relu", 7, 5000, 100,
                                                           2) "," KERNEL("gemm", 7, 8000, 2000,
                                                                         3) "," COPY("Memcpy DtoD "
                                                                                     "(Device -> "
                                                                                     "Device)",
                                                                                     9, 5200,
                                                                                     4, 0,
                                                                                     1555000) "," MEMORY(85,
                                                                                                         1,
                                                                                                         1000,
                                                                                                         1) "," MEMORY(90,
                                                                                                                       2,
                                                                                                                       70000,
                                                                                                                       2) "," MEMORY(130,
                                                                                                                                     1,
                                                                                                                                     -1000,
                                                                                                                                     3) "," MEMORY(4020,
                                                                                                                                                   3,
                                                                                                                                                   500,
                                                                                                                                                   4) "," MEMORY(8000,
                                                                                                                                                                 3,
                                                                                                                                                                 -500,
                                                                                                                                                                 5);

static tp_trace_file *file;
static tp_trace_report report;

static void open_report(tp_finding_limits limits)
{
    const tp_select_options options = {.scope = TP_SCOPE_ALL};
    file = read_trace("made.json", trace);
    tp_trace_report_make(file, &options, &report);
    report.limits = limits;
}

static void close_report(void)
{
    tp_trace_report_release(&report);
    tp_trace_close(file);
}

/* NULL: there is none of this title. */
static const tp_finding *finding(const char *title)
{
    const tp_findings *f = tp_trace_report_findings(&report);
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->list[i].title, title) == 0)
            return &f->list[i];
    return NULL;
}

/* The rows of a view as JSON hold the text. */
static void view_has(void (*fill)(tp_trace_report *, tp_grid *), const char *const *texts, size_t n)
{
    TP_OWN(tp_grid) g = {.name = "rows"};
    TP_OWN(tp_buf) notes = {0};
    tp_grid_page page;
    fill(&report, &g);
    tp_buf_add(&notes, g.notes.len ? g.notes.data : "", g.notes.len);
    tp_grid_page_begin(&page, TP_FORM_JSON, 0, 110);
    tp_json_w_begin(&page.w, '{');
    tp_grid_page_put(&page, &g, 0, false);
    tp_json_w_end(&page.w, '}');
    char *text = tp_grid_page_end(&page);
    for (size_t i = 0; i < n; i++)
        if (!strstr(text, texts[i]) && !strstr(tp_buf_str(&notes), texts[i]))
            fail_msg("lacks '%s': %s%s", texts[i], text, tp_buf_str(&notes));
    free(text);
}
#define VIEW_HAS(fill, ...)                            \
    view_has(fill, (const char *const[]){__VA_ARGS__}, \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void a_device_that_idles_is_named(void **state)
{
    open_report(TP_FINDING_LIMITS);
    const tp_finding *use = finding("the device is not used");
    assert_non_null(use);
    assert_int_equal(use->severity, TP_SEVERITY_MEDIUM);
    assert_int_equal(use->cost_ns, 9900000 - 5104000);
    assert_string_equal(use->evidence, "busy 51.6 % of 9.900 ms on 1 device");
    close_report();
}

/* A graph that is traced as a whole hides its kernels. */
static void time_in_graphs_is_use(void **state)
{
    open_report(TP_FINDING_LIMITS);
    tp_idle_table *idle = (tp_idle_table *)tp_trace_report_idle(&report);
    idle->rows[0].graph_ns = 3000000;
    assert_null(finding("the device is not used"));
    close_report();

    open_report(TP_FINDING_LIMITS);
    idle = (tp_idle_table *)tp_trace_report_idle(&report);
    idle->rows[0].graph_ns = 1000000;
    const tp_finding *use = finding("the device is not used");
    assert_non_null(use);
    assert_int_equal(use->cost_ns, 9900000 - 5104000 - 1000000);
    assert_string_equal(use->evidence, "busy or in graphs 61.7 % of 9.900 ms on 1 device");
    close_report();
}

static void slow_kernels_are_named_from_the_limit_on(void **state)
{
    open_report(TP_FINDING_LIMITS);
    const tp_finding *slow = finding("slow kernels");
    assert_non_null(slow);
    assert_int_equal(slow->severity, TP_SEVERITY_HIGH);
    assert_int_equal(slow->cost_ns, 5000000);
    assert_string_equal(slow->evidence, "1 kernel in 2 launches take 1 ms or more on average; the "
                                        "slowest 2.500 ms: gemm");
    VIEW_HAS(tp_view_kernels, "slow: 1 of them take 1 ms or more on average (--slow-kernel)");
    close_report();
    open_report((tp_finding_limits){1000000, 2500001});
    assert_null(finding("slow kernels"));
    close_report();
}

static void operators_have_averages_memory_and_a_limit(void **state)
{
    open_report(TP_FINDING_LIMITS);
    VIEW_HAS(tp_view_operators, "\"mean_ns\": 2500000", "\"allocated_bytes\": 71000",
             "\"allocated_bytes\": 500", "\"is_bottleneck\": \"yes\"", "\"is_bottleneck\": \"no\"",
             "bottlenecks, 1 ms or more by themselves (--slow-operator): 1: aten::mm 5.000 ms");
    close_report();
    open_report((tp_finding_limits){50000, 1000000});
    VIEW_HAS(tp_view_operators, "0.05 ms or more by themselves (--slow-operator): 2: aten::mm "
                                "5.000 ms, aten::relu 100.000 us");
    close_report();
}

/* What two devices do is measured against the time of both. */
static void devices_are_measured_each_by_itself(void **state)
{
    const tp_select_options options = {.scope = TP_SCOPE_ALL};
    (void)state;
    file = read_turns();
    tp_trace_report_make(file, &options, &report);
    const tp_finding *comm = finding("communication is exposed");
    assert_non_null(comm);
    assert_int_equal(comm->cost_ns, 200000);
    assert_int_equal(comm->severity, TP_SEVERITY_HIGH); /* a half */
    const tp_finding *top = finding("one kernel dominates");
    assert_non_null(top);
    assert_int_equal(top->cost_ns, 200000);
    TP_OWN(tp_buf) screen = {0};
    tp_trace_report_screen(&report, 10, 110, &screen);
    assert_non_null(strstr(tp_buf_str(&screen), "0.0 % of it under compute; 200.000 us exposed"));
    close_report();
}

/* 1,555,000 bytes in 4 us, read and written, of 1,555 GB/s. */
static void copies_are_held_against_the_peak(void **state)
{
    open_report(TP_FINDING_LIMITS);
    VIEW_HAS(tp_view_bandwidth, "\"of_peak_pct\": 50", "data sheet of 'A100': memory 1555 GB/s");
    close_report();
}

static void open_text(const char *text)
{
    const tp_select_options select = {.scope = TP_SCOPE_ALL};
    const tp_ingest_options options = {.keep = 0};
    tp_error err = {0};
    if (tp_trace_open_memory("text.json", text, strlen(text), &options, &file, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_trace_report_make(file, &select, &report);
}

static bool note_has(void (*fill)(tp_trace_report *, tp_grid *), const char *text)
{
    TP_OWN(tp_grid) g = {.name = "rows"};
    fill(&report, &g);
    return strstr(tp_buf_str(&g.notes), text) != NULL;
}

/* Shapes that say nothing are there already, and Temper is no profiler of PyTorch. */
static void advice_is_what_was_not_done(void **state)
{
    (void)state;
    open_text(
        "{\"schemaVersion\":1,\"producer\":\"temper 0.1.0\",\"temper\":{},\"traceEvents\":["
        "{\"ph\":\"C\",\"name\":\"loss\",\"pid\":9,\"tid\":1,\"ts\":1,\"args\":{\"value\":1}}]}");
    assert_int_equal(file->kind, TP_FILE_TEMPER);
    assert_true(note_has(tp_view_operators, "no operators recorded"));
    assert_false(note_has(tp_view_operators, "profile with"));
    assert_false(note_has(tp_view_memory, "profile with"));
    close_report();

    open_text("{\"schemaVersion\":1,\"deviceProperties\":[],\"traceEvents\":[" NOTE(
        "gloo:barrier", 1, 0,
        10) ",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::convolution\",\"pid\":9,\"tid\":1,"
            "\"ts\":0,\"dur\":50,\"args\":{\"Input Dims\":[[1,1,8,8],[1,1,3,3]]}}]}");
    assert_true(note_has(tp_view_comm, "1 collectives of the host by Gloo are not analysed"));
    assert_false(note_has(tp_view_comm, "neither group nor size"));
    assert_true(note_has(tp_view_roofline, "no FLOPs known: shapes give those of products"));
    assert_false(note_has(tp_view_roofline, "profile with"));
    close_report();

    open_text(
        "{\"schemaVersion\":1,\"deviceProperties\":[],\"traceEvents\":["
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":9,\"tid\":1,\"ts\":0,"
        "\"dur\":50,\"args\":{\"Input Dims\":[[8,8],[8,8]]}}," KERNEL("gemm", 7, 5, 10, 1) "]}");
    assert_true(note_has(tp_view_roofline, "FLOPs are known, and no time of the device"));
    assert_false(note_has(tp_view_roofline, "there is none"));
    close_report();
}

/* Host activities are there: which of them launched what cannot be told. */
static void ranks_in_one_file_are_not_told_to_record_more(void **state)
{
    static const char text[] =
        "{\"schemaVersion\":1,\"deviceProperties\":[],\"traceEvents\":["
        "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":8,"
        "\"tid\":1,\"ts\":0,\"dur\":5,\"args\":{\"correlation\":1}}," CALL(
            "cudaLaunchKernel", 1, 0, 5, 1) "," KERNEL("k", 7, 10, 10, 1) "," KERNEL("k", 7, 90, 10,
                                                                                     1) "]}";
    (void)state;
    open_text(text);
    assert_true(note_has(tp_view_launch, "give the file of each rank by itself"));
    assert_false(note_has(tp_view_launch, "record host activities"));
    const tp_finding *idle = finding("idle without a known cause");
    assert_non_null(idle);
    assert_null(strstr(idle->advice, "record host"));
    assert_null(strstr(idle->evidence, "not in the file"));
    close_report();
}

/* 320 GB/s, and 100 GB in a millisecond. */
static void what_cannot_be_is_said(void **state)
{
    (void)state;
    open_text("{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"Tesla T4\"}],"
              "\"traceEvents\":[" COPY("Memcpy DtoD (Device -> Device)", 7, 0, 1000, 1,
                                       100000000000) "]}");
    assert_true(note_has(tp_view_bandwidth, "% of the peak: times or sizes of the file are wrong"));
    close_report();
}

static void allocations_have_sizes_and_lives(void **state)
{
    open_report(TP_FINDING_LIMITS);
    const tp_memory_usage *u = tp_trace_report_memory(&report);
    assert_int_equal(u->n, 1);
    const tp_allocation_size *small = &u->devices[0].allocations.sizes[0],
                             *middle = &u->devices[0].allocations.sizes[2];
    assert_int_equal(small->count, 2); /* 1000 bytes for 45 us, 500 for 3.98 ms */
    assert_int_equal(small->bytes, 1500);
    assert_int_equal(small->lived[0], 1);
    assert_int_equal(small->lived[1], 1);
    assert_int_equal(small->never_freed, 0);
    assert_int_equal(middle->count, 1);
    assert_int_equal(middle->never_freed, 1);
    assert_int_equal(middle->never_freed_bytes, 70000);
    VIEW_HAS(tp_view_memory_sizes, "\"size\": \"to 1 KiB\"", "\"size\": \"to 1 MiB\"");
    close_report();
}

static void severities_have_one_scale(void **state)
{
    tp_severity s;
    (void)state;
    assert_int_equal(tp_severity_of_growth(9e6), TP_SEVERITY_LOW);
    assert_int_equal(tp_severity_of_growth(11e6), TP_SEVERITY_MEDIUM);
    assert_int_equal(tp_severity_of_growth(101e6), TP_SEVERITY_HIGH);
    assert_false(tp_severity_of_use(0.8, &s));
    assert_true(tp_severity_of_use(0.79, &s));
    assert_int_equal(s, TP_SEVERITY_MEDIUM);
    assert_true(tp_severity_of_use(0.49, &s));
    assert_int_equal(s, TP_SEVERITY_HIGH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_that_idles_is_named),
        cmocka_unit_test(time_in_graphs_is_use),
        cmocka_unit_test(slow_kernels_are_named_from_the_limit_on),
        cmocka_unit_test(operators_have_averages_memory_and_a_limit),
        cmocka_unit_test(devices_are_measured_each_by_itself),
        cmocka_unit_test(copies_are_held_against_the_peak),
        cmocka_unit_test(advice_is_what_was_not_done),
        cmocka_unit_test(ranks_in_one_file_are_not_told_to_record_more),
        cmocka_unit_test(what_cannot_be_is_said),
        cmocka_unit_test(allocations_have_sizes_and_lives),
        cmocka_unit_test(severities_have_one_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
