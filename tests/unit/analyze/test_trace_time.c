/* Where time goes in traces small enough to work out by hand; literal nanoseconds. */
#include "trace_text.h"

#include <math.h>

#include "instrument/analyze/copies.h"
#include "instrument/analyze/critical_path.h"
#include "instrument/analyze/device_peaks.h"
#include "instrument/analyze/idle.h"
#include "instrument/analyze/launch.h"
#include "instrument/analyze/roofline.h"
#include "instrument/analyze/suspicious.h"
#include "instrument/report/trace_report.h"

/* stream 7   [gemm 100..150)            [relu 180..190)  [gemm 300..340)
 * stream 8        [nccl 120..170)
 * stream 9                              [copy 185..200)
 * host       launches at 90, 95, 100, 172, 290 */
static const char small[] =
    OP("aten::mm", 1, 80, 40) "," CALL("cudaLaunchKernel", 1, 90, 5, 1) "," CALL("cudaLaunchKernel", 1, 95, 5, 2) "," CALL(
        "cudaMemcpyAsync",
        1, 100,
        5,
        3) "," OP("aten::relu", 1, 170,
                  10) "," CALL("cudaLaunchKernel", 1, 172, 5,
                               4) "," OP("aten::linear", 1, 280,
                                         30) "," OP("aten::mm", 1, 285,
                                                    20) "," CALL("cudaLaunchKernel", 1, 290, 5,
                                                                 5) "," KERNEL("gemm", 7, 100, 50,
                                                                               1) "," KERNEL("ncclD"
                                                                                             "evKer"
                                                                                             "nel_"
                                                                                             "AllRe"
                                                                                             "duce",
                                                                                             8, 120,
                                                                                             50,
                                                                                             2) "," COPY("Memcpy HtoD (Pageable -> Device)",
                                                                                                         9,
                                                                                                         185,
                                                                                                         15,
                                                                                                         3,
                                                                                                         3000) "," KERNEL("relu",
                                                                                                                          7,
                                                                                                                          180,
                                                                                                                          10,
                                                                                                                          4) "," KERNEL("gemm",
                                                                                                                                        7,
                                                                                                                                        300,
                                                                                                                                        40,
                                                                                                                                        5);

static void parts_add_up_to_the_span(void **state)
{
    tp_trace_file *file = read_trace("small.json", small);
    tp_selection s = select_all(file);
    tp_breakdown b;

    assert_true(tp_breakdown_make(s.v, s.n, TP_ALL_DEVICES, &b));

    assert_int_equal(b.span_ns, 240000);
    assert_int_equal(b.compute_ns, 100000);
    assert_int_equal(b.comm_ns, 50000);
    assert_int_equal(b.overlap_ns, 30000);
    assert_int_equal(b.exposed_comm_ns, 20000);
    assert_int_equal(b.mem_ns, 15000);
    assert_int_equal(b.exposed_mem_ns, 10000);
    assert_int_equal(b.idle_ns, 110000);
    assert_int_equal(b.busy_ns, 130000);
    tp_selection_release(&s);
    tp_trace_close(file);
}

static void what_another_device_computes_hides_nothing(void **state)
{
    tp_trace_file *file = read_turns();
    tp_selection s = select_all(file);
    tp_breakdown sum, merged, each[2];
    (void)state;

    assert_int_equal(tp_breakdown_add_up(s.v, s.n, s.n_devices, each, &sum), 2);
    assert_true(tp_breakdown_make(s.v, s.n, TP_ALL_DEVICES, &merged));

    assert_int_equal(each[1].exposed_comm_ns, 100000);
    assert_int_equal(sum.exposed_comm_ns, 200000);
    assert_int_equal(sum.span_ns, 400000);
    assert_int_equal(sum.overlap_ns, 0);
    assert_int_equal(merged.exposed_comm_ns, 0);
    tp_selection_release(&s);
    tp_trace_close(file);
}

static void idle_has_causes(void **state)
{
    tp_trace_file *file = read_trace("small.json", small);
    tp_selection s = select_all(file);
    tp_idle_table t;

    tp_idle_make(&s, &t);

    /* 170..180 launched at 172; 200..300 launched at 290. */
    assert_int_equal(t.n, 1);
    assert_int_equal(t.rows[0].idle_ns, 110000);
    assert_int_equal(t.rows[0].host_ns, 2000 + 90000);
    assert_int_equal(t.rows[0].launch_ns, 8000 + 10000);
    assert_int_equal(t.rows[0].queued_ns, 0);
    assert_int_equal(t.rows[0].unknown_ns, 0);
    assert_int_equal(t.n_gaps, 2);
    assert_int_equal(t.gaps[0].end - t.gaps[0].start, 100000);
    tp_idle_release(&t);
    tp_selection_release(&s);
    tp_trace_close(file);
}

static const tp_operator_row *row_of(const tp_operators *o, const tp_events *e, const char *name)
{
    for (size_t i = 0; i < o->n; i++)
        if (strcmp(tp_events_str(e, o->rows[i].name), name) == 0)
            return &o->rows[i];
    fail_msg("no operator %s", name);
    return NULL;
}

static void operators_have_self_and_total(void **state)
{
    tp_trace_file *file = read_trace("small.json", small);
    tp_selection s = select_all(file);
    tp_operators o;

    tp_operators_make(&s, &o);
    const tp_operator_row *mm = row_of(&o, file->events, "aten::mm");
    const tp_operator_row *linear = row_of(&o, file->events, "aten::linear");

    assert_int_equal(mm->calls, 2);
    assert_int_equal(mm->total_union_ns, 60000);
    assert_int_equal(mm->device_self_ns, 50000 + 50000 + 15000 + 40000);
    assert_int_equal(mm->device_total_union_ns, 70000 + 15000 + 40000);
    assert_int_equal(linear->self_union_ns, 10000);
    assert_int_equal(linear->device_self_ns, 0);
    assert_int_equal(linear->device_total_sum_ns, 40000);
    assert_int_equal(o.n_unattributed, 0);
    tp_operators_release(&o);
    tp_selection_release(&s);
    tp_trace_close(file);
}

/* Its own work is never more than all of it. */
static void an_operator_has_the_time_of_every_device(void **state)
{
    tp_trace_file *file = read_turns();
    tp_selection s = select_all(file);
    tp_operators o;
    (void)state;
    tp_operators_make(&s, &o);
    const tp_operator_row *mm = row_of(&o, file->events, "aten::mm");
    assert_int_equal(mm->device_self_ns, 400000);
    assert_int_equal(mm->device_total_union_ns, 400000);
    tp_operators_release(&o);
    tp_selection_release(&s);
    tp_trace_close(file);
}

static void launches_have_delays_and_queues(void **state)
{
    tp_trace_file *file = read_trace("small.json", small);
    tp_selection s = select_all(file);
    tp_launch_table t;

    tp_launches_make(&s, &t);

    assert_int_equal(t.n, 3);
    const tp_launch_row *seven = &t.rows[0];
    assert_int_equal(file->events->tracks[seven->track].stream, 7);
    assert_int_equal(seven->launched, 3);
    assert_int_equal(seven->delay_p50_ns, 5000); /* 5, 3, 5 us after the calls returned */
    assert_int_equal(seven->delay_max_ns, 5000);
    assert_int_equal(seven->queue_max, 1);
    assert_int_equal(seven->queue_observed_ns, 210000); /* 90..300 */
    assert_int_equal(seven->queue_empty_ns, 72000 + 110000);
    assert_int_equal(t.all.launched, 5);
    tp_launches_release(&t);
    tp_selection_release(&s);
    tp_trace_close(file);
}

static void the_critical_path_adds_up(void **state)
{
    tp_trace_file *file = read_trace("small.json", small);
    tp_selection s = select_all(file);
    tp_operators o;
    tp_critical_path p;
    int64_t sum = 0;

    tp_operators_make(&s, &o);
    tp_critical_path_find(&s, &o, &p);

    for (int i = 0; i < TP_PATH_COUNT; i++)
        sum += p.ns[i];
    assert_int_equal(sum, 240000);
    /* gemm 300..340 was launched at 290; before that the host, down to the first start. */
    assert_int_equal(p.ns[TP_PATH_COMPUTE], 40000);
    assert_int_equal(p.ns[TP_PATH_LAUNCH], 10000);
    assert_int_equal(p.ns[TP_PATH_HOST], 190000);
    tp_critical_path_release(&p);
    tp_operators_release(&o);
    tp_selection_release(&s);
    tp_trace_close(file);
}

static void a_host_that_waits_is_not_on_the_path(void **state)
{
    tp_trace_file *file = read_trace(
        "sync.json",
        CALL("cudaLaunchKernel", 1, 0, 2, 1) "," KERNEL("a", 7, 5, 95, 1) "," CALL(
            "cudaDeviceSynchronize", 1, 10, 95, 90) "," CALL("cudaLaunchKernel", 1, 115, 2,
                                                             2) "," KERNEL("b", 7, 120, 10, 2));
    tp_selection s = select_all(file);
    tp_operators o;
    tp_critical_path p;

    tp_operators_make(&s, &o);
    tp_critical_path_find(&s, &o, &p);

    assert_int_equal(p.ns[TP_PATH_COMPUTE], 95000 + 10000);
    assert_int_equal(p.ns[TP_PATH_SYNC_GAP], 5000);
    assert_int_equal(p.ns[TP_PATH_HOST], 10000);
    assert_int_equal(p.ns[TP_PATH_LAUNCH], 5000);
    assert_int_equal(p.ns[TP_PATH_UNKNOWN], 0);
    tp_critical_path_release(&p);
    tp_operators_release(&o);
    tp_selection_release(&s);
    tp_trace_close(file);
}

/* The kernel belongs to the operator inside; both FLOPs and time to the one that was called. */
static void an_operator_has_the_time_of_those_inside(void **state)
{
    tp_trace_file *file = read_trace(
        "conv.json",
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::conv2d\",\"pid\":9,\"tid\":1,\"ts\":0,"
        "\"dur\":50,\"args\":{\"flops\":1000000,\"External id\":1}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add_\",\"pid\":9,\"tid\":1,\"ts\":5,"
        "\"dur\":40,\"args\":{\"flops\":10,\"External id\":2}}," CALL(
            "cudaLaunchKernel", 1, 10, 2, 1) "," KERNEL("conv", 7, 60, 100, 1));
    tp_selection s = select_all(file);
    tp_operators o;
    tp_roofline roofline;
    tp_operators_make(&s, &o);
    tp_roofline_make(&s, &o, &roofline);
    assert_int_equal(roofline.n, 1);
    assert_true(roofline.rows[0].flops == 1e6);
    assert_int_equal(roofline.rows[0].device_ns, 100000);
    assert_int_equal(roofline.covered_ns, roofline.device_ns);
    tp_roofline_release(&roofline);
    tp_operators_release(&o);
    tp_selection_release(&s);
    tp_trace_close(file);
}

#define ON_DEVICE(cat, name, device, stream, ts, dur, corr, more)                                  \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":" #device ",\"tid\":" #stream \
    ",\"ts\":" #ts ",\"dur\":" #dur ",\"args\":{\"device\":" #device ",\"stream\":" #stream        \
    ",\"correlation\":" #corr more "}}"

/* ---- what devices can do, and what operators did ---- */

static tp_trace_file *read_devices(const char *first, const char *second, const char *events)
{
    tp_buf text = {0};
    tp_error err = {0};
    tp_trace_file *file = NULL;
    const tp_ingest_options options = {.keep = 0};
    tp_buf_addf(&text,
                "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"%s\"},{\"id\":1,"
                "\"name\":\"%s\"}],\"traceEvents\":[%s]}",
                first, second, events);
    if (tp_trace_open_memory("devices.json", text.data, text.len, &options, &file, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_buf_release(&text);
    return file;
}

/* The memory's GB/s; 0: not known. */
static double memory_of(const char *first, const char *second, const char *events)
{
    tp_trace_file *file = read_devices(first, second, events);
    tp_selection s = select_all(file);
    const tp_device_peaks *peaks = tp_device_peaks_of(&s);
    double memory = peaks ? round(peaks->memory * 1e-9) : 0;
    tp_selection_release(&s);
    tp_trace_close(file);
    return memory;
}

/* Two threads of either process, by turns: from 0 to 8400 us here, from 6 to 8386 there. */
static void parts_of_processes_may_interleave(void **state)
{
    static const int parts[4][3] = {{1, 0, 5000}, {2, 6, 5010}, {1, 3000, 8400}, {2, 3010, 8386}};
    tp_buf text = {0};
    tp_steps steps;
    (void)state;
    for (int i = 0; i < 4; i++)
        tp_buf_addf(&text,
                    "%s{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\","
                    "\"pid\":%d,\"tid\":%d,\"ts\":%d,\"dur\":%d,\"args\":{}}",
                    i ? "," : "", parts[i][0], i / 2, parts[i][1], parts[i][2] - parts[i][1]);
    tp_trace_file *file = read_trace("steps.json", tp_buf_str(&text));
    tp_steps_find(file->events, &steps);
    assert_int_equal(steps.n, 1);
    assert_int_equal(steps.v[0].host_ns, 8400000);
    tp_steps_release(&steps);
    tp_buf_release(&text);
    tp_trace_close(file);
}

static void a_device_is_known_by_its_whole_name(void **state)
{
    static const char one[] = ON_DEVICE("kernel", "k", 0, 7, 0, 10, 1, "");
    static const char two[] = ON_DEVICE("kernel", "k", 0, 7, 0, 10, 1,
                                        "") "," ON_DEVICE("kernel", "k", 1, 7, 0, 10, 2, "");
    static const char *const unknown[] = {
        "NVIDIA RTX A1000 Laptop GPU",      "NVIDIA T400 4GB", "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA L400",     ""};
    (void)state;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_true(memory_of(unknown[i], "", one) == 0);
    assert_true(memory_of("NVIDIA L40", "", one) == 864);
    assert_true(memory_of("NVIDIA L4", "", one) == 300);
    assert_true(memory_of("NVIDIA GH200 480GB", "", one) == 4000);
    assert_true(memory_of("Tesla V100-SXM2-32GB", "", one) == 900);
    assert_true(memory_of("NVIDIA GeForce RTX 4090", "", one) == 1008);
    assert_true(memory_of("NVIDIA H100 PCIe", "NVIDIA H100 PCIe", two) == 2000);
    assert_true(memory_of("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", two) == 0);
}

#define SHAPED(name, dims, types, ts)                                                        \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":9,\"tid\":1,\"ts\":" #ts \
    ",\"dur\":50,\"args\":{\"Input Dims\":" dims ",\"Input type\":" types                    \
    "}}," CALL("cudaLaunchKernel", 1, ts, 2, ts) "," KERNEL("k", 7, ts, 10, ts)

static void products_are_known_by_their_shapes(void **state)
{
    static const char events[] = SHAPED(
        "aten::_scaled_mm", "[[2,3],[3,5],[],[]]",
        "[\"c10::Float8_e4m3fn\",\"c10::Float8_e4m3fn\",\"float\",\"float\"]",
        100) "," SHAPED("aten::addmm_", "[[2,5],[2,3],[3,5]]",
                        "[\"c10::Half\",\"c10::Half\",\"c10::Half\"]",
                        200) "," SHAPED("aten::_int_mm", "[[2,3],[3,5]]",
                                        "[\"signed char\",\"signed char\"]",
                                        300) "," SHAPED("aten::linear", "[[4,2,3],[5,3],[]]",
                                                        "[\"float\",\"float\",\"\"]",
                                                        400) "," SHAPED("aten::convolution",
                                                                        "[[1,1,8,8],[1,1,3,3]]",
                                                                        "[\"float\",\"float\"]",
                                                                        500);
    (void)state;
    tp_trace_file *file = read_devices("NVIDIA A100", "", events);
    tp_selection s = select_all(file);
    tp_operators o;
    tp_roofline r;
    tp_operators_make(&s, &o);
    tp_roofline_make(&s, &o, &r);
    assert_int_equal(r.n, 4);
    assert_true(r.has_shapes);
    for (size_t i = 0; i < r.n; i++) {
        const char *name = tp_events_str(file->events, r.rows[i].name);
        bool is_linear = strcmp(name, "aten::linear") == 0,
             is_half = strcmp(name, "aten::addmm_") == 0;
        assert_true(r.rows[i].flops == (is_linear ? 240 : 60));
        if (is_linear || is_half)
            assert_true(r.rows[i].peak == (is_linear ? 19.5e12 : 312e12));
        else
            assert_true(isnan(r.rows[i].peak));
    }
    tp_roofline_release(&r);
    tp_operators_release(&o);
    tp_selection_release(&s);
    tp_trace_close(file);
}

/* Ranks joined into one file: numbers of two processes say nothing about either. */
static void numbers_of_two_processes_link_nothing(void **state)
{
    tp_buf text = {0};
    tp_operators o;
    tp_suspicions found;
    bool is_told = false;
    (void)state;
    for (int i = 0; i < 2; i++)
        tp_buf_addf(
            &text,
            "%s{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::%s\",\"pid\":%d,\"tid\":1,"
            "\"ts\":0,\"dur\":50,\"args\":{\"External id\":1}},"
            "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":%d,"
            "\"tid\":1,\"ts\":10,\"dur\":5,\"args\":{\"External id\":1,\"correlation\":1}},"
            "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":%d,\"tid\":7,\"ts\":60,"
            "\"dur\":100,\"args\":{\"External id\":1,\"correlation\":1,\"device\":%d,"
            "\"stream\":7}}",
            i ? "," : "", i ? "add" : "mm", 90 + i, 90 + i, i, i);
    tp_trace_file *file = read_trace("joined.json", tp_buf_str(&text));
    tp_selection s = select_all(file);
    tp_operators_make(&s, &o);
    tp_suspicions_find(&s, &found);
    for (size_t i = 0; i < found.n; i++)
        is_told |= strcmp(found.list[i].what, "numbers of several processes") == 0 &&
                   found.list[i].count == 1 && found.list[i].is_serious;
    assert_true(is_told);
    for (size_t i = 0; i < found.n; i++)
        assert_null(strstr(found.list[i].meaning, "--scope linked"));
    assert_int_equal(s.n_linked, 0);
    assert_int_equal(o.n_unattributed, 2);
    assert_int_equal(row_of(&o, file->events, "aten::add")->device_self_ns, 0);
    tp_operators_release(&o);
    tp_selection_release(&s);
    tp_trace_close(file);
    tp_buf_release(&text);
}

/* Of the path of `events`: the time of a part. */
static int64_t path_part(const char *events, tp_path_part part)
{
    tp_trace_file *file = read_trace("path.json", events);
    tp_selection s = select_all(file);
    tp_operators o;
    tp_critical_path p;
    tp_operators_make(&s, &o);
    tp_critical_path_find(&s, &o, &p);
    int64_t ns = p.ns[part];
    tp_critical_path_release(&p);
    tp_operators_release(&o);
    tp_selection_release(&s);
    tp_trace_close(file);
    return ns;
}

static void a_launch_that_returns_late_did_not_wait(void **state)
{
    static const char events[] = CALL("cudaLaunchKernel", 1, 0, 100, 1) "," KERNEL(
        "k1", 7, 20, 10, 1) "," OP("slow", 1, 100, 400) "," CALL("cudaLaunchKernel", 1, 500, 10,
                                                                 2) "," KERNEL("k2", 7, 512, 88, 2);
    assert_int_equal(path_part(events, TP_PATH_SYNC_GAP), 0);
    assert_int_equal(path_part(events, TP_PATH_COMPUTE), 88000);
}

static void streams_of_two_devices_are_not_mistaken(void **state)
{
    static const char events[] =
        CALL("cudaLaunchKernel", 1, 0, 1, 1) "," ON_DEVICE("kernel", "side", 1, 20, 10, 50, 1, "") "," CALL(
            "cudaLaunchKernel",
            1, 2, 1,
            2) "," ON_DEVICE("kernel", "other", 0, 20, 5, 400, 2,
                             "") "," CALL("cudaEventRecord", 1, 4, 1,
                                          3) "," CALL("cudaStreamWaitEvent", 1, 6, 1,
                                                      4) "," ON_DEVICE("cuda_sync", "Stream Wait Event",
                                                                       1, 7,
                                                                       6, 1,
                                                                       4,
                                                                       ",\"wait_on_stream\":"
                                                                       "20,\"wait_on_cuda_"
                                                                       "event_record_corr_"
                                                                       "id\":3") "," CALL("cu"
                                                                                          "da"
                                                                                          "La"
                                                                                          "un"
                                                                                          "ch"
                                                                                          "Ke"
                                                                                          "rn"
                                                                                          "e"
                                                                                          "l",
                                                                                          1, 8,
                                                                                          1,
                                                                                          5) "," ON_DEVICE("kernel",
                                                                                                           "main",
                                                                                                           1,
                                                                                                           7,
                                                                                                           460,
                                                                                                           100,
                                                                                                           5,
                                                                                                           "");
    assert_int_equal(path_part(events, TP_PATH_COMPUTE), 150000);
}

/* "side" ends last, but the call waits for stream 7 alone; so says the device's row of it. */
#define TWO_STREAMS(row)                                                                 \
    CALL("cudaLaunchKernel", 1, 0, 1, 1)                                                 \
    "," KERNEL("main", 7, 5, 95, 1) "," CALL("cudaLaunchKernel", 1, 2, 1, 2) "," KERNEL( \
        "side", 20, 6, 99, 2) "," CALL("cudaStreamSynchronize", 1, 10, 100, 3) row       \
        "," CALL("cudaLaunchKernel", 1, 120, 1, 4) "," KERNEL("last", 7, 125, 50, 4)

static void a_call_waits_for_its_stream_alone(void **state)
{
    static const char known[] =
        TWO_STREAMS("," ON_DEVICE("cuda_sync", "Stream Sync", 0, 7, 10, 100, 3, ""));
    static const char unknown[] = TWO_STREAMS("");
    assert_int_equal(path_part(known, TP_PATH_SYNC_GAP), 10000);
    assert_int_equal(path_part(unknown, TP_PATH_SYNC_GAP), 5000);
}

static void a_copy_waits_for_itself(void **state)
{
    static const char events[] =
        CALL("cudaMemcpy", 1, 0, 100, 1) "," COPY("copy", 7, 10, 20, 1, 5) "," CALL(
            "cudaLaunchKernel", 2, 1, 1, 5) "," ON_DEVICE("kernel", "other", 1, 7, 12, 80, 5,
                                                          "") "," CALL("cudaLaunchKernel", 1, 110,
                                                                       1, 2) "," KERNEL("k", 7, 112,
                                                                                        20, 2);
    assert_int_equal(path_part(events, TP_PATH_COMPUTE), 20000);
    assert_int_equal(path_part(events, TP_PATH_MEM), 20000);
}

static void the_scope_changes_the_answer(void **state)
{
    tp_trace_file *file = read_trace(
        "scope.json",
        NOTE("ProfilerStep#3", 1, 100, 100) "," CALL("cudaLaunchKernel", 1, 90, 2, 1) "," CALL(
            "cudaLaunchKernel", 1, 150, 2,
            2) "," KERNEL("early", 7, 10, 5, 77) "," KERNEL("outside", 7, 120, 10,
                                                            1) "," KERNEL("inside", 7, 400, 30, 2));
    const struct {
        tp_scope scope;
        size_t n;
    } rows[] = {{TP_SCOPE_ALL, 3}, {TP_SCOPE_LINKED, 2}, {TP_SCOPE_STEPS, 1}};

    for (int i = 0; i < 3; i++) {
        tp_selection s;
        tp_selection_make(file->events, &(tp_select_options){.scope = rows[i].scope}, &s);
        assert_int_equal(s.n, rows[i].n);
        assert_int_equal(s.n_all, 3);
        assert_int_equal(s.n_linked, 2);
        tp_selection_release(&s);
    }
    tp_trace_close(file);
}

/* A trace of events that are given one by one. */
static tp_trace_file *read_parts(const char *const *parts, size_t n)
{
    tp_buf text = {0};
    for (size_t i = 0; i < n; i++)
        tp_buf_addf(&text, "%s%s", i ? "," : "", parts[i]);
    tp_trace_file *file = read_trace("parts.json", tp_buf_str(&text));
    tp_buf_release(&text);
    return file;
}
#define READ(...)                                  \
    read_parts((const char *const[]){__VA_ARGS__}, \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* The recording began behind the launch of "left", which runs into the first step. */
static void what_was_launched_before_is_of_no_step(void **state)
{
    tp_trace_file *file =
        READ(NOTE("ProfilerStep#3", 1, 100, 100), NOTE("ProfilerStep#4", 1, 200, 100),
             KERNEL("left", 7, 110, 40, 77), CALL("cudaLaunchKernel", 1, 150, 2, 1),
             KERNEL("three", 7, 210, 10, 1), CALL("cudaLaunchKernel", 1, 250, 2, 2),
             KERNEL("four", 7, 260, 20, 2));
    const tp_select_options steps[] = {{.scope = TP_SCOPE_STEPS}, {.has_step = true, .step = 3}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        tp_selection s;
        tp_selection_make(file->events, &steps[i], &s);
        assert_int_equal(s.n, i ? 1 : 2);
        assert_int_equal(s.v[0].end - s.v[0].start, 10000);
        assert_int_equal(tp_work_step(&s, 0), 0);
        assert_int_equal(s.n_stepless, 1);
        assert_int_equal(s.stepless_ns, 40000);
        tp_selection_release(&s);
    }
    tp_trace_close(file);
}

/* Nothing but the device was recorded: starts are all that there is. */
static void without_calls_work_is_of_the_step_that_it_starts_in(void **state)
{
    tp_trace_file *file = READ(NOTE("ProfilerStep#3", 1, 100, 100), KERNEL("a", 7, 110, 40, 1),
                               KERNEL("b", 7, 210, 40, 2));
    tp_selection s;
    (void)state;
    tp_selection_make(file->events, &(tp_select_options){.scope = TP_SCOPE_STEPS}, &s);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.stepless_ns, 40000);
    tp_selection_release(&s);
    tp_trace_close(file);
}

/* How many works `options` select, and how long those of no step take. */
static size_t select_from(const tp_trace_file *file, const tp_select_options *options,
                          int64_t *ret_stepless_ns)
{
    tp_selection s;
    tp_selection_make(file->events, options, &s);
    size_t n = s.n;
    *ret_stepless_ns = s.stepless_ns;
    tp_selection_release(&s);
    return n;
}

/* The call that has a number waits; those of the kernels were not recorded. */
static void a_call_that_launched_nothing_links_nothing(void **state)
{
    tp_trace_file *file = READ(NOTE("ProfilerStep#3", 1, 100, 100), KERNEL("a", 7, 110, 40, 1),
                               CALL("cudaDeviceSynchronize", 1, 160, 10, 900));
    int64_t stepless;
    (void)state;
    assert_int_equal(select_from(file, &(tp_select_options){.scope = TP_SCOPE_STEPS}, &stepless),
                     1);
    assert_int_equal(stepless, 0);
    tp_trace_close(file);
}

/* Ranks joined into one file, whose numbers repeat in part: 1 is of both, 2 of one, 3 of none. */
static void work_whose_number_is_shared_goes_by_its_start(void **state)
{
    static const char other[] = "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":"
                                "\"cudaLaunchKernel\",\"pid\":8,\"tid\":1,\"ts\":105,\"dur\":5,"
                                "\"args\":{\"correlation\":1}}";
    tp_trace_file *file =
        READ(NOTE("ProfilerStep#3", 1, 100, 100), other, CALL("cudaLaunchKernel", 1, 105, 5, 1),
             KERNEL("a", 7, 120, 10, 1), ON_DEVICE("kernel", "a", 1, 7, 120, 10, 1, ""),
             CALL("cudaLaunchKernel", 1, 150, 5, 2), KERNEL("b", 7, 300, 10, 2),
             KERNEL("before", 7, 101, 7, 3));
    int64_t stepless;
    (void)state;
    assert_int_equal(select_from(file, &(tp_select_options){.scope = TP_SCOPE_STEPS}, &stepless),
                     3);
    assert_int_equal(stepless, 7000);
    assert_int_equal(select_from(file, &(tp_select_options){.scope = TP_SCOPE_LINKED}, &stepless),
                     1);
    tp_trace_close(file);
}

/* A graph of three kernels, 30 us together, launched in 20 us; and one of 1 us on its own. */
static void a_call_of_many_works_is_one_call(void **state)
{
    tp_trace_file *file = READ(CALL("cudaGraphLaunch", 1, 100, 20, 1), KERNEL("a", 7, 130, 10, 1),
                               KERNEL("b", 7, 140, 10, 1), KERNEL("c", 8, 150, 10, 1),
                               CALL("cudaLaunchKernel", 1, 170, 5, 2), KERNEL("d", 7, 180, 1, 2));
    tp_selection s = select_all(file);
    tp_launch_table t;
    (void)state;
    tp_launches_make(&s, &t);
    assert_int_equal(t.all.launched, 4);
    assert_int_equal(t.all.calls, 2);
    assert_int_equal(t.all.call_sum_ns, 25000);
    assert_int_equal(t.all.delay_sum_ns, 10000 + 5000);
    assert_int_equal(t.all.short_works, 1);
    assert_int_equal(t.rows[0].calls, 2);
    assert_int_equal(t.rows[0].queue_max, 1);
    assert_int_equal(t.rows[1].call_sum_ns, 20000);
    tp_launches_release(&t);
    tp_selection_release(&s);
    tp_trace_close(file);
}

/* A stream or a name is shown; what the call launched beside it was launched all the same. */
static void filters_make_no_work_short(void **state)
{
    tp_trace_file *file = READ(CALL("cudaGraphLaunch", 1, 100, 25, 1), KERNEL("a", 7, 130, 10, 1),
                               KERNEL("a", 7, 140, 10, 1), KERNEL("c", 8, 150, 10, 1),
                               CALL("cudaLaunchKernel", 1, 170, 5, 2), KERNEL("a", 7, 180, 1, 2));
    const tp_select_options filters[] = {{.has_stream = true, .stream = 7}, {.name = "a"}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        tp_selection s;
        tp_launch_table t;
        tp_selection_make(file->events, &filters[i], &s);
        tp_launches_make(&s, &t);
        assert_int_equal(t.all.launched, 3);
        assert_int_equal(t.all.short_works, 1);
        tp_launches_release(&t);
        tp_selection_release(&s);
    }
    tp_trace_close(file);
}

static void calls_of_other_steps_are_not_counted(void **state)
{
    tp_trace_file *file = READ(NOTE("ProfilerStep#3", 1, 100, 100),
                               NOTE("ProfilerStep#4", 1, 200, 100), OP("aten::mm", 1, 110, 20),
                               CALL("cudaLaunchKernel", 1, 115, 2, 1), KERNEL("a", 7, 120, 30, 1),
                               OP("aten::mm", 1, 210, 25), CALL("cudaLaunchKernel", 1, 215, 2, 2),
                               KERNEL("b", 7, 220, 40, 2), OP("aten::add", 1, 160, 5));
    tp_selection s;
    tp_operators o;
    (void)state;
    tp_selection_make(file->events, &(tp_select_options){.has_step = true, .step = 4}, &s);
    tp_operators_make(&s, &o);
    const tp_operator_row *mm = row_of(&o, file->events, "aten::mm");
    assert_int_equal(o.n, 1);
    assert_int_equal(mm->calls, 1);
    assert_int_equal(mm->total_union_ns, 25000);
    assert_int_equal(mm->self_sum_ns, 25000);
    assert_int_equal(mm->device_total_sum_ns, 40000);
    tp_operators_release(&o);
    tp_selection_release(&s);
    tp_trace_close(file);
}

/* As PyTorch's key_averages() counts: only who has nothing but itself below. */
static void an_operator_that_calls_itself_is_called_once(void **state)
{
    tp_trace_file *file =
        READ(OP("aten::sum", 1, 0, 100), OP("aten::sum", 1, 10, 80), OP("aten::sum", 1, 20, 60),
             OP("aten::fill_", 1, 30, 10), OP("aten::to", 1, 200, 50), OP("aten::to", 1, 210, 10),
             OP("aten::copy_", 1, 230, 10));
    tp_selection s = select_all(file);
    tp_operators o;
    (void)state;
    tp_operators_make(&s, &o);
    const tp_operator_row *sum = row_of(&o, file->events, "aten::sum");
    assert_int_equal(sum->calls, 1);
    assert_int_equal(sum->total_sum_ns, 100000);
    assert_int_equal(sum->self_sum_ns, 90000);
    assert_int_equal(sum->self_union_ns, 90000);
    assert_int_equal(row_of(&o, file->events, "aten::to")->calls, 2);
    assert_int_equal(row_of(&o, file->events, "aten::to")->total_sum_ns, 60000);
    tp_operators_release(&o);
    tp_selection_release(&s);
    tp_trace_close(file);
}

/* Between the two, or beside the inner one, an annotation is something else below; not inside. */
static void an_annotation_ends_a_repeat(void **state)
{
    tp_trace_file *file =
        READ(OP("between", 1, 0, 100), NOTE("n", 1, 5, 90), OP("between", 1, 10, 30),
             OP("beside", 1, 200, 100), OP("beside", 1, 210, 30), NOTE("n", 1, 250, 20),
             OP("inside", 1, 400, 100), OP("inside", 1, 410, 80), NOTE("n", 1, 420, 20),
             OP("other", 2, 0, 500), OP("other", 2, 10, 400));
    tp_selection s = select_all(file);
    tp_operators o;
    (void)state;
    tp_operators_make(&s, &o);
    assert_int_equal(row_of(&o, file->events, "between")->calls, 2);
    assert_int_equal(row_of(&o, file->events, "beside")->calls, 2);
    assert_int_equal(row_of(&o, file->events, "inside")->calls, 1);
    assert_int_equal(row_of(&o, file->events, "other")->calls, 1);
    tp_operators_release(&o);
    tp_selection_release(&s);
    tp_trace_close(file);
}

#define LINEAR(ts, dur)                                                                          \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::linear\",\"pid\":9,\"tid\":1,\"ts\":" #ts \
    ",\"dur\":" #dur ",\"args\":{\"Input Dims\":[[4,3],[5,3]],\"Input type\":[\"float\","        \
    "\"float\"]}}"

/* The repeat's time by the host's clock is the outer one's, and so are its FLOPs. */
static void a_repeated_linear_keeps_its_flops(void **state)
{
    tp_trace_file *file = READ(LINEAR(0, 100), LINEAR(10, 80));
    tp_selection s = select_all(file);
    tp_operators o;
    tp_roofline r;
    (void)state;
    tp_operators_make(&s, &o);
    tp_roofline_make(&s, &o, &r);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.rows[0].calls, 1);
    assert_true(r.rows[0].flops == 120);
    assert_int_equal(r.rows[0].device_ns, 100000);
    tp_roofline_release(&r);
    tp_operators_release(&o);
    tp_selection_release(&s);
    tp_trace_close(file);
}

static void assert_screen_has(const tp_trace_file *file, const char *text)
{
    tp_trace_report report;
    TP_OWN(tp_buf) screen = {0};
    tp_trace_report_make(file, &(tp_select_options){.scope = TP_SCOPE_LINKED}, &report);
    tp_trace_report_screen(&report, 10, 200, &screen);
    if (!strstr(tp_buf_str(&screen), text))
        fail_msg("no '%s' in %s", text, tp_buf_str(&screen));
    tp_trace_report_release(&report);
}

/* Pages of unified memory: no call is missing, and no cause of the gap before them. */
static void pages_move_without_a_call(void **state)
{
    tp_trace_file *file = READ(CALL("cudaLaunchKernel", 1, 0, 2, 1), KERNEL("a", 7, 5, 10, 1),
                               COPY("Unified Memory Memcpy DtoH", 8, 40, 5, 0, 4096),
                               COPY("Unified Memory Memcpy HtoD", 8, 50, 5, 0, 8192));
    tp_suspicions found;
    tp_copy_table copies;
    tp_idle_table idle;
    (void)state;
    file->events->copies[0].copy_kind = 12;
    file->events->copies[1].copy_kind = 11;
    tp_selection s = select_all(file);
    tp_suspicions_find(&s, &found);
    tp_copies_make(&s, &copies);
    tp_idle_make(&s, &idle);
    for (size_t i = 0; i < found.n; i++)
        assert_string_not_equal(found.list[i].what, "work without a launch");
    assert_int_equal(copies.n, 2);
    assert_int_equal(copies.rows[0].direction, TP_COPY_HOST_TO_DEVICE);
    assert_int_equal(copies.rows[0].bytes, 8192);
    assert_int_equal(copies.rows[1].direction, TP_COPY_DEVICE_TO_HOST);
    assert_int_equal(idle.rows[0].unknown_ns, 0);
    assert_int_equal(idle.rows[0].host_ns, 25000 + 5000);
    tp_idle_release(&idle);
    tp_selection_release(&s);
    assert_screen_has(file, "1 of 3 (100.0 % of what calls launch have their launch here)");
    tp_trace_close(file);
}

static void copies_of_sycl_have_directions(void **state)
{
    tp_trace_file *file =
        READ(COPY("Memcpy M2D (MEMORY(Unknown) -> DEVICE)", 7, 0, 9, 1, 100),
             COPY("Memcpy D2M (DEVICE -> MEMORY(Unknown))", 7, 10, 8, 2, 200),
             COPY("Memcpy D2D (DEVICE -> DEVICE)", 7, 20, 7, 3, 300),
             COPY("Memcpy H2H (HOST -> HOST)", 7, 30, 1, 4, 1),
             COPY("Memcpy H2M (HOST -> MEMORY(Unknown))", 7, 32, 1, 5, 1),
             COPY("Memcpy M2H (MEMORY(Unknown) -> HOST)", 7, 34, 1, 6, 1),
             COPY("Memcpy M2M (MEMORY(Unknown) -> MEMORY(Unknown))", 7, 36, 1, 7, 1));
    const tp_copy_direction expected[] = {TP_COPY_HOST_TO_DEVICE, TP_COPY_DEVICE_TO_HOST,
                                          TP_COPY_DEVICE_TO_DEVICE, TP_COPY_HOST_TO_HOST};
    tp_selection s = select_all(file);
    tp_copy_table copies;
    (void)state;
    tp_copies_make(&s, &copies);
    assert_int_equal(copies.n, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(copies.rows[i].direction, expected[i]);
    assert_int_equal(copies.rows[3].count, 4);
    tp_selection_release(&s);
    tp_trace_close(file);
}

/* MTIA repeats calls on the rows of the device: with no work to link, nothing is mistaken. */
static void numbers_that_link_nothing_are_not_shared(void **state)
{
    tp_trace_file *file = READ(
        "{\"ph\":\"X\",\"cat\":\"mtia_runtime\",\"name\":\"synchronize\",\"pid\":865,\"tid\":1,"
        "\"ts\":0,\"dur\":5,\"args\":{\"correlation\":1}}",
        "{\"ph\":\"X\",\"cat\":\"mtia_runtime\",\"name\":\"synchronize\",\"pid\":17,\"tid\":2,"
        "\"ts\":1,\"dur\":3,\"args\":{\"correlation\":1,\"device\":17}}",
        "{\"ph\":\"X\",\"cat\":\"mtia_ccp_events\",\"name\":\"job\",\"pid\":17,\"tid\":2,\"ts\":2,"
        "\"dur\":1,\"args\":{\"correlation\":1,\"device\":17}}");
    tp_selection s = select_all(file);
    (void)state;
    assert_int_equal(s.n_shared, 0);
    tp_selection_release(&s);
    tp_trace_close(file);
}

static void doubtful_data_is_marked(void **state)
{
    tp_trace_file *file =
        read_trace("doubt.json",
                   KERNEL("a", 7, 100, 50, 1) "," KERNEL("b", 7, 120, -3, 2) "," KERNEL(
                       "c", 7, 130, 0, 3) "," CALL("cudaGraphLaunch", 1, 140, 5,
                                                   9) "," CALL("cudaLaunchKernel", 1, 300, 5,
                                                               4) "," KERNEL("d", 7, 290, 10, 4));
    tp_selection s = select_all(file);
    tp_suspicions found;
    int64_t overlaps = 0, graphs = 0, negative = 0, early = 0;

    tp_suspicions_find(&s, &found);
    for (size_t i = 0; i < found.n; i++) {
        const tp_suspicion *one = &found.list[i];
        if (strcmp(one->what, "overlaps on a stream") == 0)
            overlaps = one->count;
        if (strcmp(one->what, "graph launches without kernels") == 0)
            graphs = one->count;
        if (strcmp(one->what, "negative durations") == 0)
            negative = one->count;
        if (strcmp(one->what, "work before its launch") == 0)
            early = one->ns;
    }

    assert_int_equal(overlaps, 2);
    assert_int_equal(graphs, 1);
    assert_int_equal(negative, 1);
    assert_int_equal(early, 10000);
    tp_selection_release(&s);
    tp_trace_close(file);
}

static void expect_steps(const char *events, const char *expected)
{
    tp_trace_file *file = read_trace("steps.json", events);
    tp_buf text = {0};
    tp_steps steps;
    tp_steps_find(file->events, &steps);
    for (size_t i = 0; i < steps.n; i++)
        tp_buf_addf(&text, "%lld from %lld to %lld; ", (long long)steps.v[i].number,
                    (long long)steps.v[i].start / 1000, (long long)steps.v[i].end / 1000);
    assert_string_equal(tp_buf_str(&text), expected);
    tp_steps_release(&steps);
    tp_buf_release(&text);
    tp_trace_close(file);
}

static void a_step_inside_another_is_a_part_of_it(void **state)
{
    (void)state;
    expect_steps(
        NOTE("ProfilerStep#3", 1, 0, 100) "," NOTE("train_step 1003", 1, 5, 90) "," NOTE(
            "micro_step 0", 1, 5, 20) "," NOTE("ProfilerStep#4", 1, 100,
                                               100) "," NOTE("train_step 1004", 1, 90, 120),
        "3 from 0 to 100; 4 from 100 to 200; ");
    expect_steps(NOTE("micro_step 0", 2, 5, 20) "," NOTE("train_step 7", 1, 0, 100) "," NOTE(
                     "micro_step 1", 1, 30, 70) "," NOTE("train_step 8", 1, 100,
                                                         50) "," NOTE("train_step 8", 2, 120, 40),
                 "7 from 0 to 100; 8 from 100 to 160; ");
}

/* Two processes, 5 ms apart: each takes 10 ms, and so does a step. */
static void a_step_of_two_processes_is_no_longer_than_theirs(void **state)
{
    tp_buf text = {0};
    tp_steps steps;
    (void)state;
    for (int i = 0; i < 4; i++)
        tp_buf_addf(&text,
                    "%s{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%d\","
                    "\"pid\":%d,\"tid\":1,\"ts\":%d,\"dur\":%d,\"args\":{}}",
                    i ? "," : "", i / 2, i % 2, i / 2 * 10000 + i % 2 * 5000, 10000 - i % 2);
    tp_trace_file *file = read_trace("steps.json", tp_buf_str(&text));
    tp_steps_find(file->events, &steps);
    assert_int_equal(steps.n, 2);
    assert_int_equal(steps.v[0].end, 14999000);
    assert_int_equal(steps.v[0].host_ns, 10000000);
    assert_int_equal(steps.v[1].host_ns, 10000000);
    tp_steps_release(&steps);
    tp_buf_release(&text);
    tp_trace_close(file);
}

static void steps_are_found_by_their_names(void **state)
{
    int64_t n = 0;
    assert_true(tp_step_number("ProfilerStep#12", 15, &n));
    assert_int_equal(n, 12);
    assert_true(tp_step_number("train_step_7", 12, &n));
    assert_true(tp_step_number("Iteration: 8", 12, &n));
    assert_int_equal(n, 8);
    assert_true(tp_step_number("step3", 5, &n));
    assert_false(tp_step_number("aten::conv2", 11, &n));
    assert_false(tp_step_number("Optimizer.step#SGD.step", 23, &n));
    assert_false(tp_step_number("42", 2, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_add_up_to_the_span),
        cmocka_unit_test(what_another_device_computes_hides_nothing),
        cmocka_unit_test(an_operator_has_the_time_of_every_device),
        cmocka_unit_test(a_step_of_two_processes_is_no_longer_than_theirs),
        cmocka_unit_test(parts_of_processes_may_interleave),
        cmocka_unit_test(a_device_is_known_by_its_whole_name),
        cmocka_unit_test(products_are_known_by_their_shapes),
        cmocka_unit_test(numbers_of_two_processes_link_nothing),
        cmocka_unit_test(idle_has_causes),
        cmocka_unit_test(operators_have_self_and_total),
        cmocka_unit_test(launches_have_delays_and_queues),
        cmocka_unit_test(the_critical_path_adds_up),
        cmocka_unit_test(a_host_that_waits_is_not_on_the_path),
        cmocka_unit_test(an_operator_has_the_time_of_those_inside),
        cmocka_unit_test(a_launch_that_returns_late_did_not_wait),
        cmocka_unit_test(streams_of_two_devices_are_not_mistaken),
        cmocka_unit_test(a_call_waits_for_its_stream_alone),
        cmocka_unit_test(a_copy_waits_for_itself),
        cmocka_unit_test(the_scope_changes_the_answer),
        cmocka_unit_test(what_was_launched_before_is_of_no_step),
        cmocka_unit_test(without_calls_work_is_of_the_step_that_it_starts_in),
        cmocka_unit_test(a_call_that_launched_nothing_links_nothing),
        cmocka_unit_test(work_whose_number_is_shared_goes_by_its_start),
        cmocka_unit_test(a_call_of_many_works_is_one_call),
        cmocka_unit_test(filters_make_no_work_short),
        cmocka_unit_test(calls_of_other_steps_are_not_counted),
        cmocka_unit_test(an_operator_that_calls_itself_is_called_once),
        cmocka_unit_test(an_annotation_ends_a_repeat),
        cmocka_unit_test(a_repeated_linear_keeps_its_flops),
        cmocka_unit_test(pages_move_without_a_call),
        cmocka_unit_test(copies_of_sycl_have_directions),
        cmocka_unit_test(numbers_that_link_nothing_are_not_shared),
        cmocka_unit_test(doubtful_data_is_marked),
        cmocka_unit_test(a_step_inside_another_is_a_part_of_it),
        cmocka_unit_test(steps_are_found_by_their_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
