/* test_trace.c - the recorder: its clock, zones, rings and file. */
#include "written.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include "trace/internal.h"

static const tp_trace_site plain = {.name = "plain"};

static void zone(const tp_trace_site *site)
{
    tp_zone z = tp_zone_begin(site);
    tp_zone_end(&z);
}

static void spin_ns(int64_t ns)
{
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &from);
    do
        clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000 + now.tv_nsec - from.tv_nsec < ns);
}

/* ---- the clock ---- */

static void a_counter_that_linux_does_not_list_is_not_used(void **state)
{
    assert_true(tp_clock_is_listed("tsc hpet acpi_pm \n", "tsc"));
    assert_true(tp_clock_is_listed("kvm-clock tsc acpi_pm \n", "tsc"));
    assert_true(tp_clock_is_listed("kvm-clock tsc", "tsc"));
    assert_false(tp_clock_is_listed("hpet acpi_pm \n", "tsc"));
    assert_false(tp_clock_is_listed("hyperv_clocksource_tsc_page acpi_pm \n", "tsc"));
    assert_false(tp_clock_is_listed("tsc-early hpet \n", "tsc"));
    assert_false(tp_clock_is_listed("\n", "tsc"));
}

static void a_counter_that_disagrees_is_not_used(void **state)
{
    /* 2.6 GHz over two milliseconds */
    tp_anchor steady[3] = {{1000, 0}, {2601000, 1000000}, {5201000, 2000000}};
    tp_anchor noisy[3] = {{1000, 0}, {2601000, 1000000}, {5202000, 2000000}};
    tp_anchor faster[3] = {{1000, 0}, {2601000, 1000000}, {5211000, 2000000}};
    tp_anchor backwards[3] = {{5000000, 0}, {2601000, 1000000}, {201000, 2000000}};
    tp_anchor stopped[3] = {{1000, 0}, {1000, 1000000}, {1000, 2000000}};
    tp_anchor jumped[3] = {{1000, 0}, {2601000, 1000000}, {9000000000, 2000000}};
    tp_anchor slow[3] = {{1000, 0}, {1100, 1000000}, {1200, 2000000}};
    assert_true(tp_clock_is_steady(steady));
    assert_true(tp_clock_is_steady(noisy));
    assert_false(tp_clock_is_steady(faster));
    assert_false(tp_clock_is_steady(backwards));
    assert_false(tp_clock_is_steady(stopped));
    assert_false(tp_clock_is_steady(jumped));
    assert_false(tp_clock_is_steady(slow));
}

/* ---- what is recorded ---- */

static void nothing_is_recorded_when_off(void **state)
{
    assert_false(tp_trace_enabled());
    {
        TP_ZONE("off");
    }
    TP_MARK("off", NULL);
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    assert_null(event(written(), "X", NULL, 0));
    assert_null(event(written(), "i", NULL, 0));
    assert_int_equal(tp_trace_dropped(), 0);
}

static void zones_nest_and_measure(void **state)
{
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    {
        TP_ZONE_IN("step", "outer");
        spin_ns(20000);
        {
            TP_ZONE("inner");
            spin_ns(50000);
        }
    }

    const tp_json *root = written();
    const tp_json *inner = event(root, "X", "inner", 0), *outer = event(root, "X", "outer", 0);

    assert_string_equal(tp_json_str(tp_json_get(inner, "cat")), "user_annotation");
    assert_string_equal(tp_json_str(tp_json_get(outer, "cat")), "step");
    assert_true(tp_str_starts(tp_json_str(arg(outer, "source")), "test_trace.c:"));
    assert_true(ns_of(inner, "dur") >= 49500);
    assert_true(ns_of(outer, "ts") + 19800 <= ns_of(inner, "ts"));
    assert_true(ns_of(inner, "ts") + ns_of(inner, "dur") <=
                ns_of(outer, "ts") + ns_of(outer, "dur"));
    int64_t pid, tid;
    assert_true(tp_json_i64(tp_json_get(outer, "pid"), &pid));
    assert_true(tp_json_i64(tp_json_get(outer, "tid"), &tid));
    assert_int_equal(pid, getpid());
    assert_int_equal(tid, syscall(SYS_gettid));
}

static void time_is_that_of_the_kernel(void **state)
{
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    {
        TP_ZONE("long");
        spin_ns(30000000);
    }
    int64_t ns = ns_of(event(written(), "X", "long", 0), "dur");
    /* A thousandth: the spin's own error is far below; being scheduled away adds. */
    assert_true(ns >= 29970000);
}

static void both_clocks_agree(void **state)
{
    tp_trace_options options = {.size = sizeof options, .clock = TP_TRACE_CLOCK_MONOTONIC};
    if (tp_trace_start(&options, NULL) != TP_OK)
        skip();
    {
        TP_ZONE("slow clock");
        spin_ns(100000);
    }
    const tp_json *root = written();
    assert_string_equal(tp_json_str(tp_json_get(tp_json_get(root, "temper"), "clock")),
                        "CLOCK_MONOTONIC_RAW");
    assert_true(ns_of(event(root, "X", "slow clock", 0), "dur") >= 100000);
    /* Times count from the start, not from the clock's own zero: hours, not days. */
    assert_true(ns_of(event(root, "X", "slow clock", 0), "ts") < 3600 * INT64_C(1000000000));
}

static void a_zone_that_began_when_off_is_not_recorded(void **state)
{
    tp_zone early = tp_zone_begin(&plain);
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    tp_zone_end(&early);
    assert_null(event(written(), "X", NULL, 0));
}

static void a_zone_of_an_earlier_recording_is_not_recorded(void **state)
{
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    tp_zone early = tp_zone_begin(&plain);
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    tp_zone_end(&early);
    zone(&plain);
    assert_int_equal(count_events(written(), "X", "plain"), 1);
}

static void metadata_of_zones_and_marks_is_copied(void **state)
{
    start_keeping(256, TP_TRACE_KEEP_NEWEST);
    char json[600] = "{\"step\":7,\"why\":\"";
    memset(json + strlen(json), 'x', 500);
    strcat(json, "\"}");
    static const tp_trace_site site = {.name = "marked \"so\"\n", .args = "{ \"fixed\": 1 }"};
    tp_trace_mark(&site, json);
    tp_zone z = tp_zone_begin(&site);
    tp_zone_end_with(&z, "{\"bytes\":12}");
    tp_trace_mark(&plain, "no JSON at all");
    memset(json, 0, sizeof json);

    const tp_json *root = written();

    const tp_json *mark = event(root, "i", "marked \"so\"\n", 0);
    assert_string_equal(arg(mark, "step")->text.data, "7");
    assert_string_equal(arg(mark, "fixed")->text.data, "1");
    assert_int_equal(arg(mark, "why")->text.len, 500);
    assert_string_equal(tp_json_str(tp_json_get(mark, "s")), "t");
    assert_string_equal(arg(event(root, "X", "marked \"so\"\n", 0), "bytes")->text.data, "12");
    assert_string_equal(tp_json_str(arg(event(root, "i", "plain", 0), "text")), "no JSON at all");
}

static void sites_made_at_run_time_are_shared(void **state)
{
    char name[32] = "ProfilerStep#3";
    const tp_trace_site *a = tp_trace_site_make("user_annotation", name, NULL);
    name[13] = '4';
    const tp_trace_site *b = tp_trace_site_make("user_annotation", name, NULL);
    name[13] = '3';
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    assert_ptr_equal(tp_trace_site_make("user_annotation", name, NULL), a);
    assert_ptr_not_equal(a, b);
    zone(a);
    zone(b);
    assert_non_null(event(written(), "X", "ProfilerStep#3", 0));
    assert_non_null(event(written(), "X", "ProfilerStep#4", 0));
}

static void operators_look_like_kinetos(void **state)
{
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    static const tp_trace_site op = {
        .name = "temper::linear", .category = "cpu_op", .args = "{\"Input Dims\":[[2,3],[]]}"};
    zone(&op);
    zone(&op);
    const tp_json *root = written(), *second = event(root, "X", "temper::linear", 1);
    assert_string_equal(tp_json_str(tp_json_get(second, "cat")), "cpu_op");
    assert_string_equal(arg(second, "External id")->text.data, "1");
    assert_string_equal(arg(second, "Ev Idx")->text.data, "1");
    assert_string_equal(tp_json_at(tp_json_at(arg(second, "Input Dims"), 0), 1)->text.data, "3");
    assert_string_equal(tp_json_get(root, "schemaVersion")->text.data, "1");
}

static void what_goes_on_beside_a_thread_has_a_row_of_its_own(void **state)
{
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    static const tp_trace_site sum = {
        .name = "all_reduce", .category = "collective_comm", .track = 2};
    zone(&sum);
    zone(&sum);
    const tp_json *root = written();
    int64_t tid;
    assert_true(tp_json_i64(tp_json_get(event(root, "X", "all_reduce", 1), "tid"), &tid));
    assert_int_equal(tid, (1 << 30) + 2);
    int k = 0; /* once, behind the thread's own if that has a name */
    const tp_json *name = event(root, "M", "thread_name", k);
    while (name && strcmp(tp_json_str(arg(name, "name")), "collective_comm 2") != 0)
        name = event(root, "M", "thread_name", ++k);
    assert_non_null(name);
    assert_null(event(root, "M", "thread_name", k + 1));
}

static void memory_events_keep_totals(void **state)
{
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    int a, b;
    tp_trace_memory_totals(1000, 5000);
    TP_MEMORY("weights", "layers.0", &a, 64);
    TP_MEMORY("activations", "layers.1", &b, 100);
    TP_MEMORY("weights", "layers.0", &a, -64);

    const tp_json *root = written();

    static const char *const totals[] = {"1064", "1164", "1100"};
    static const char *const bytes[] = {"64", "100", "-64"};
    for (int i = 0; i < 3; i++) {
        const tp_json *e = event(root, "i", "[memory]", i);
        assert_string_equal(tp_json_str(tp_json_get(e, "cat")), "cpu_instant_event");
        assert_string_equal(arg(e, "Total Allocated")->text.data, totals[i]);
        assert_string_equal(arg(e, "Total Reserved")->text.data, "5000");
        assert_string_equal(arg(e, "Bytes")->text.data, bytes[i]);
        assert_string_equal(arg(e, "Device Type")->text.data, "0");
        assert_string_equal(arg(e, "Device Id")->text.data, "-1");
    }
    assert_string_equal(tp_json_str(arg(event(root, "i", "[memory]", 1), "Kind")), "activations");
    assert_string_equal(tp_json_str(arg(event(root, "i", "[memory]", 1), "Owner")), "layers.1");
}

static void unknown_totals_are_left_out(void **state)
{
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    TP_MEMORY("data", "here", NULL, 64);
    const tp_json *e = event(written(), "i", "[memory]", 0);
    assert_null(arg(e, "Total Reserved"));
    assert_string_equal(arg(e, "Total Allocated")->text.data, "64");
}

static void values_and_flows(void **state)
{
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    TP_COUNTER("queue", 3.5);
    TP_COUNTER("queue", 0.0 / 0.0);
    uint64_t flow = tp_trace_flow_new();
    tp_trace_flow_begin(&plain, flow);
    tp_trace_flow_end(&plain, flow);

    const tp_json *root = written();

    assert_string_equal(arg(event(root, "C", "queue", 0), "value")->text.data, "3.5");
    assert_string_equal(tp_json_str(arg(event(root, "C", "queue", 1), "value")), "NaN");
    const tp_json *s = event(root, "s", "plain", 0), *f = event(root, "f", "plain", 0);
    assert_string_equal(tp_json_get(s, "id")->text.data, tp_json_get(f, "id")->text.data);
    assert_string_equal(tp_json_str(tp_json_get(f, "bp")), "e");
}

static void ranges_push_and_pop(void **state)
{
    start_keeping(512, TP_TRACE_KEEP_NEWEST);
    tp_range_pop(); /* of nothing */
    TP_PUSH("a");
    TP_PUSH("b");
    TP_POP();
    TP_POP();
    for (int i = 0; i < 70; i++)
        TP_PUSH("deep");
    for (int i = 0; i < 70; i++)
        TP_POP();
    TP_PUSH("after");
    TP_POP();
    const tp_json *root = written();
    assert_int_equal(count_events(root, "X", "a"), 1);
    assert_int_equal(count_events(root, "X", "b"), 1);
    assert_int_equal(count_events(root, "X", "deep"), 64);
    assert_int_equal(count_events(root, "X", "after"), 1);
}

/* ---- rings ---- */

static void a_full_ring_keeps_the_newest(void **state)
{
    start_keeping(65, TP_TRACE_KEEP_NEWEST); /* rounded up to 128 */
    for (int i = 0; i < 172; i++)
        zone(&plain);
    static const tp_trace_site late = {.name = "late"};
    for (int i = 0; i < 128; i++)
        zone(&late);

    const tp_json *root = written();

    assert_int_equal(tp_trace_dropped(), 172);
    assert_string_equal(tp_json_get(tp_json_get(root, "temper"), "dropped_events")->text.data,
                        "172");
    assert_int_equal(count_events(root, "X", "late"), 128);
    assert_int_equal(count_events(root, "X", "plain"), 0);
}

static void a_full_ring_keeps_the_oldest(void **state)
{
    start_keeping(128, TP_TRACE_KEEP_OLDEST);
    static const tp_trace_site early = {.name = "early"};
    for (int i = 0; i < 128; i++)
        zone(&early);
    for (int i = 0; i < 72; i++)
        zone(&plain);
    assert_int_equal(tp_trace_dropped(), 72);
    assert_int_equal(count_events(written(), "X", "early"), 128);
    assert_int_equal(count_events(written(), "X", "plain"), 0);
}

static void events_of_several_records_are_counted_once(void **state)
{
    start_keeping(128, TP_TRACE_KEEP_NEWEST);
    for (int i = 0; i < 100; i++)
        tp_trace_mark(&plain, "{\"a\":\"0123456789\"}"); /* two records each */
    assert_int_equal(count_events(written(), "i", "plain"), 64);
    assert_int_equal(tp_trace_dropped(), 36);
    zone(&plain); /* half of a mark is overwritten: that mark is gone */
    assert_int_equal(count_events(written(), "i", "plain"), 63);
    assert_int_equal(tp_trace_dropped(), 37);
}

static void stopping_keeps_what_was_recorded(void **state)
{
    static const tp_trace_site late = {.name = "late"};
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    zone(&plain);
    tp_trace_stop();
    zone(&late);
    const tp_json *root = written();
    assert_non_null(event(root, "X", "plain", 0));
    assert_null(event(root, "X", "late", 0));

    start_keeping(64, TP_TRACE_KEEP_NEWEST); /* a new recording begins empty */
    assert_null(event(written(), "X", NULL, 0));
    zone(&late);
    assert_non_null(event(written(), "X", "late", 0));
}

static void pausing_leaves_a_gap(void **state)
{
    static const tp_trace_site unseen = {.name = "unseen"};
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    zone(&plain);
    tp_trace_pause(true);
    assert_false(tp_trace_enabled());
    zone(&unseen);
    tp_trace_pause(false);
    zone(&plain);
    tp_trace_stop();
    tp_trace_pause(false); /* nothing to go on with */
    assert_false(tp_trace_enabled());
    assert_int_equal(count_events(written(), "X", "plain"), 2);
    assert_int_equal(count_events(written(), "X", "unseen"), 0);
}

static void *record_many(void *name)
{
    tp_trace_thread_name(name);
    for (int i = 0; i < 1000; i++)
        zone(&plain);
    return NULL;
}

static void threads_record_apart(void **state)
{
    static char names[4][40] = {"one", "two", "three", "a name that is too long for the record"};
    pthread_t threads[4];
    start_keeping(1024, TP_TRACE_KEEP_NEWEST);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, record_many, names[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);

    const tp_json *root = written();

    assert_int_equal(count_events(root, "M", "thread_name"), 4);
    assert_int_equal(count_events(root, "X", "plain"), 4000);
    assert_int_equal(tp_trace_dropped(), 0);
    bool cut = false;
    for (int i = 0; i < 4; i++)
        cut = cut || strcmp(tp_json_str(arg(event(root, "M", "thread_name", i), "name")),
                            "a name that is too long for the") == 0;
    assert_true(cut);
}

static _Atomic bool go_on;

static void *record_until_told(void *arg_)
{
    static const tp_trace_site with_text = {.name = "busy mark"};
    while (go_on) {
        zone(&plain);
        tp_trace_mark(&with_text, "{\"payload\":\"0123456789abcdef0123456789abcdef\"}");
        TP_COUNTER("busy", 1);
        TP_MEMORY("data", "busy", &plain, 1);
    }
    return NULL;
}

/* Whatever is read while a ring is overwritten is whole. */
static void writing_while_recording_sees_whole_events(void **state)
{
    pthread_t threads[2];
    start_keeping(128, TP_TRACE_KEEP_NEWEST);
    go_on = true;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, record_until_told, NULL);
    for (int round = 0; round < 50; round++) {
        const tp_json *root = written();
        for (const tp_json *e = tp_json_get(root, "traceEvents")->child; e; e = e->next) {
            const char *name = tp_json_str(tp_json_get(e, "name"));
            if (strcmp(name, "busy mark") == 0)
                assert_string_equal(tp_json_str(arg(e, "payload")),
                                    "0123456789abcdef0123456789abcdef");
        }
    }
    go_on = false;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void a_name_given_before_recording_counts(void **state)
{
    tp_trace_thread_name("main");
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    zone(&plain);
    assert_string_equal(tp_json_str(arg(event(written(), "M", "thread_name", 0), "name")), "main");
    tp_trace_thread_name("");
}

/* ---- the file ---- */

static void the_file_says_what_it_is(void **state)
{
    tp_trace_options options = {.size = sizeof options, .process_name = "a \"process\""};
    if (tp_trace_start(&options, NULL) != TP_OK)
        skip();
    assert_int_equal(tp_trace_metadata("distributedInfo", "{\"rank\":1,\"world_size\":2}", NULL),
                     TP_OK);
    assert_int_equal(tp_trace_metadata("note", "not JSON", NULL), TP_OK);
    const tp_json *root = written(), *about = tp_json_get(root, "temper");
    assert_string_equal(tp_json_str(arg(event(root, "M", "process_name", 0), "name")),
                        "a \"process\"");
    assert_string_equal(tp_json_get(tp_json_get(root, "distributedInfo"), "rank")->text.data, "1");
    assert_string_equal(tp_json_str(tp_json_get(root, "note")), "not JSON");
    double zone_ns, read_ns, base;
    assert_true(tp_json_f64(tp_json_get(about, "zone_ns"), &zone_ns));
    assert_true(tp_json_f64(tp_json_get(about, "clock_read_ns"), &read_ns));
    assert_true(tp_json_f64(tp_json_get(root, "baseTimeNanoseconds"), &base));
    assert_true(zone_ns > 0 && read_ns > 0);
    assert_true(base > 1.7e18);
    assert_string_equal(tp_json_str(tp_json_get(about, "overflow")), "keep newest");
}

/* Every member that a file has without a program's own is refused as one of those. */
static void members_of_the_file_are_its_own(void **state)
{
    tp_error err = {0};
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    zone(&plain);
    int n = 0;
    for (const tp_json *m = written()->child; m; m = m->next) {
        if (strcmp(m->key.data, "distributedInfo") == 0 || strcmp(m->key.data, "note") == 0)
            continue; /* of the test before */
        assert_int_equal(tp_trace_metadata(m->key.data, "[]", &err), TP_ERR_ARG);
        assert_non_null(strstr(err.message, m->key.data));
        n++;
    }
    assert_int_equal(n, 11);
}

static void traces_can_be_compressed(void **state)
{
    start_keeping(0, TP_TRACE_KEEP_NEWEST);
    for (int i = 0; i < 20000; i++)
        zone(&plain);
    char command[200];
    char *path = new_path(".json.gz"), *plain_path = new_path(".json");
    assert_int_equal(tp_trace_write(path, NULL), TP_OK);
    snprintf(command, sizeof command, "gzip -t %s && gzip -dc %s > %s", path, path, plain_path);
    assert_int_equal(system(command), 0);
    assert_int_equal(count_events(read_trace(plain_path), "X", "plain"), 20000);
    assert_true(tp_file_size(path) * 4 < tp_file_size(plain_path));
    unlink(path);
    unlink(plain_path);
}

static void what_cannot_be_is_refused(void **state)
{
    tp_error err;
    tp_trace_options huge = {.size = sizeof huge, .events_per_thread = UINT32_MAX};
    if (tp_trace_start(&huge, &err) == TP_ERR_UNSUPPORTED)
        skip();
    assert_string_equal(err.message,
                        "a trace ring of 4294967295 events is out of range; 67108864 is the most");
    struct {
        tp_trace_options known;
        uint64_t more;
    } newer = {.known = {.size = sizeof newer}, .more = 1};
    assert_int_equal(tp_trace_start(&newer.known, &err), TP_ERR_UNSUPPORTED);
    newer.more = 0;
    assert_int_equal(tp_trace_start(&newer.known, &err), TP_OK);
    tp_trace_stop();
    tp_trace_options small = {.size = 1};
    assert_int_equal(tp_trace_start(&small, &err), TP_ERR_ARG);
    tp_trace_options no_path = {.size = sizeof no_path, .overflow = TP_TRACE_FLUSH};
    assert_int_equal(tp_trace_start(&no_path, &err), TP_ERR_ARG);
    tp_trace_options zipped = {
        .size = sizeof zipped, .overflow = TP_TRACE_FLUSH, .path = "/tmp/x.json.gz"};
    assert_int_equal(tp_trace_start(&zipped, &err), TP_ERR_ARG);
    tp_trace_options nowhere = {
        .size = sizeof nowhere, .overflow = TP_TRACE_FLUSH, .path = "/nowhere/at/all.json"};
    assert_int_equal(tp_trace_start(&nowhere, &err), TP_ERR_OUTPUT);
    assert_non_null(strstr(err.message, "/nowhere/at/all.json"));
    assert_false(tp_trace_enabled());
    assert_int_equal(tp_trace_write("/nowhere/at/all.json", &err), TP_ERR_OUTPUT);
    assert_int_equal(tp_trace_write(NULL, &err), TP_ERR_ARG);
}

#define TRACE_TEST(f) cmocka_unit_test_setup_teardown(f, written_begin, written_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_counter_that_linux_does_not_list_is_not_used),
        cmocka_unit_test(a_counter_that_disagrees_is_not_used),
        TRACE_TEST(nothing_is_recorded_when_off),
        TRACE_TEST(zones_nest_and_measure),
        TRACE_TEST(time_is_that_of_the_kernel),
        TRACE_TEST(both_clocks_agree),
        TRACE_TEST(a_zone_that_began_when_off_is_not_recorded),
        TRACE_TEST(a_zone_of_an_earlier_recording_is_not_recorded),
        TRACE_TEST(metadata_of_zones_and_marks_is_copied),
        TRACE_TEST(sites_made_at_run_time_are_shared),
        TRACE_TEST(operators_look_like_kinetos),
        TRACE_TEST(what_goes_on_beside_a_thread_has_a_row_of_its_own),
        TRACE_TEST(memory_events_keep_totals),
        TRACE_TEST(unknown_totals_are_left_out),
        TRACE_TEST(values_and_flows),
        TRACE_TEST(ranges_push_and_pop),
        TRACE_TEST(a_full_ring_keeps_the_newest),
        TRACE_TEST(a_full_ring_keeps_the_oldest),
        TRACE_TEST(events_of_several_records_are_counted_once),
        TRACE_TEST(stopping_keeps_what_was_recorded),
        TRACE_TEST(pausing_leaves_a_gap),
        TRACE_TEST(threads_record_apart),
        TRACE_TEST(writing_while_recording_sees_whole_events),
        TRACE_TEST(a_name_given_before_recording_counts),
        TRACE_TEST(the_file_says_what_it_is),
        TRACE_TEST(members_of_the_file_are_its_own),
        TRACE_TEST(traces_can_be_compressed),
        TRACE_TEST(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
