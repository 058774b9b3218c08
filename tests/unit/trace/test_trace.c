#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/json.h"
#include "trace/trace.h"

#ifdef TEMPER_TRACE_OFF
#define IS_COMPILED_OUT 1
#else
#define IS_COMPILED_OUT 0
#endif

static tp_arena arena;
static tp_buf text;

static int begin(void **state) { return tp_arena_init(&arena, 64 << 20, NULL) != TP_OK; }

static int end(void **state)
{
    tp_trace_release();
    tp_arena_release(&arena);
    tp_buf_release(&text);
    return 0;
}

static void start(uint32_t events)
{
    if (IS_COMPILED_OUT)
        skip();
    assert_int_equal(tp_trace_start(events, NULL), TP_OK);
}

/* What is written, read back. */
static const tp_json *written(void)
{
    char path[] = "/tmp/temper-trace-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    const tp_json *root;
    tp_error err = {0};
    assert_int_equal(tp_trace_write_chrome(path, "a \"process\"", &err), TP_OK);
    tp_buf_clear(&text);
    assert_int_equal(tp_file_read(path, 0, &text, &err), TP_OK);
    unlink(path);
    if (tp_json_parse(&arena, "trace", text.data, text.len, NULL, &root, &err) != TP_OK)
        fail_msg("%s", err.message);
    return root;
}

/* The k-th event of kind `ph` ("X", "M"), or NULL. */
static const tp_json *event(const tp_json *root, const char *ph, int k)
{
    const tp_json *events = tp_json_get(root, "traceEvents");
    for (const tp_json *e = events->child; e; e = e->next)
        if (strcmp(tp_json_str(tp_json_get(e, "ph")), ph) == 0 && k-- == 0)
            return e;
    return NULL;
}

static void nothing_is_recorded_when_off(void **state)
{
    assert_false(tp_trace_enabled());
    tp_trace_complete("c", "n", 1, 2, NULL);
    {
        TP_ZONE("c", "zone");
    }
    assert_null(event(written(), "X", 0));
    assert_int_equal(tp_trace_dropped(), 0);
}

static void events_have_exact_nanoseconds(void **state)
{
    start(64);
    tp_trace_complete("exec \"launch\"", "layers.0\nq\t\x01", 1234567890123, 1234567890123 + 45,
                      "{\"flops\":12}");

    const tp_json *e = event(written(), "X", 0);

    assert_string_equal(tp_json_str(tp_json_get(e, "cat")), "exec \"launch\"");
    assert_string_equal(tp_json_str(tp_json_get(e, "name")), "layers.0\nq\t\x01");
    assert_string_equal(tp_json_get(e, "ts")->text.data, "1234567890.123");
    assert_string_equal(tp_json_get(e, "dur")->text.data, "0.045");
    assert_string_equal(tp_json_get(tp_json_get(e, "args"), "flops")->text.data, "12");
    int64_t pid;
    assert_true(tp_json_i64(tp_json_get(e, "pid"), &pid));
    assert_int_equal(pid, getpid());
}

static void the_process_is_named(void **state)
{
    start(64);
    const tp_json *e = event(written(), "M", 0);
    assert_string_equal(tp_json_str(tp_json_get(e, "name")), "process_name");
    assert_string_equal(tp_json_str(tp_json_get(tp_json_get(e, "args"), "name")), "a \"process\"");
}

static void a_full_ring_keeps_the_newest(void **state)
{
    start(65); /* rounded up to 128 */
    for (uint64_t i = 0; i < 300; i++)
        tp_trace_complete("c", "n", i * 1000, i * 1000 + 1, NULL);

    const tp_json *root = written();

    assert_int_equal(tp_trace_dropped(), 172);
    assert_string_equal(tp_json_str(tp_json_get(tp_json_get(root, "otherData"), "dropped_events")),
                        "172");
    assert_string_equal(tp_json_get(event(root, "X", 0), "ts")->text.data, "172.000");
    assert_string_equal(tp_json_get(event(root, "X", 127), "ts")->text.data, "299.000");
    assert_null(event(root, "X", 128));
}

static void zones_nest_and_measure(void **state)
{
    start(64);
    {
        TP_ZONE("step", "outer");
        {
            TP_ZONE("step", "inner");
        }
    }

    const tp_json *root = written(), *inner = event(root, "X", 0), *outer = event(root, "X", 1);

    assert_string_equal(tp_json_str(tp_json_get(inner, "name")), "inner");
    assert_string_equal(tp_json_str(tp_json_get(outer, "name")), "outer");
    double start_of_inner, start_of_outer;
    assert_true(tp_json_f64(tp_json_get(inner, "ts"), &start_of_inner));
    assert_true(tp_json_f64(tp_json_get(outer, "ts"), &start_of_outer));
    assert_true(start_of_outer <= start_of_inner);
}

static void a_zone_that_began_when_off_is_not_recorded(void **state)
{
    tp_zone zone = tp_zone_begin("c", "n");
    start(64);
    tp_zone_end(&zone);
    assert_null(event(written(), "X", 0));
}

static void stopping_keeps_what_was_recorded(void **state)
{
    start(64);
    tp_trace_complete("c", "kept", 1, 2, NULL);
    tp_trace_stop();
    tp_trace_complete("c", "late", 3, 4, NULL);

    const tp_json *root = written();
    assert_string_equal(tp_json_str(tp_json_get(event(root, "X", 0), "name")), "kept");
    assert_null(event(root, "X", 1));

    start(64); /* a new recording begins empty */
    assert_null(event(written(), "X", 0));
    tp_trace_complete("c", "new", 5, 6, NULL);
    assert_string_equal(tp_json_str(tp_json_get(event(written(), "X", 0), "name")), "new");
}

static void sizes_out_of_range_are_refused(void **state)
{
    tp_error err;
    assert_int_equal(tp_trace_start(0, &err), TP_ERR_ARG);
    assert_int_equal(tp_trace_start(UINT32_MAX, &err), TP_ERR_ARG);
    assert_string_equal(err.message, "a trace ring of 4294967295 events is out of range");
}

static void *record_many(void *name)
{
    tp_trace_thread_name(name);
    for (uint64_t i = 0; i < 1000; i++)
        tp_trace_complete("thread", name, i, i + 1, NULL);
    return NULL;
}

static void threads_record_apart(void **state)
{
    static char names[4][40] = {"one", "two", "three", "a name that is too long for the record"};
    pthread_t threads[4];
    start(1024);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, record_many, names[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);

    const tp_json *root = written();

    int named = 0, counts[4] = {0};
    for (const tp_json *e = tp_json_get(root, "traceEvents")->child; e; e = e->next) {
        const char *name = tp_json_str(tp_json_get(e, "name"));
        named += strcmp(name, "thread_name") == 0;
        for (int i = 0; i < 4; i++)
            counts[i] += strcmp(name, names[i]) == 0;
    }
    assert_int_equal(named, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(counts[i], 1000);
    assert_int_equal(tp_trace_dropped(), 0);
}

static void a_name_given_before_recording_counts(void **state)
{
    tp_trace_thread_name("main");
    start(64);
    tp_trace_complete("c", "n", 1, 2, NULL);

    const tp_json *e = event(written(), "M", 1);

    assert_string_equal(tp_json_str(tp_json_get(tp_json_get(e, "args"), "name")), "main");
    tp_trace_thread_name("");
}

static void unwritable_paths_are_errors(void **state)
{
    tp_error err;
    assert_int_equal(tp_trace_write_chrome("/nowhere/at/all.json", "p", &err), TP_ERR_IO);
    assert_non_null(strstr(err.message, "/nowhere/at/all.json"));
}

#define TRACE_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(nothing_is_recorded_when_off),
        TRACE_TEST(events_have_exact_nanoseconds),
        TRACE_TEST(the_process_is_named),
        TRACE_TEST(a_full_ring_keeps_the_newest),
        TRACE_TEST(zones_nest_and_measure),
        TRACE_TEST(a_zone_that_began_when_off_is_not_recorded),
        TRACE_TEST(stopping_keeps_what_was_recorded),
        TRACE_TEST(sizes_out_of_range_are_refused),
        TRACE_TEST(threads_record_apart),
        TRACE_TEST(a_name_given_before_recording_counts),
        TRACE_TEST(unwritable_paths_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
