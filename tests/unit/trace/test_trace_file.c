/* A trace that is flushed while it is recorded: whole at every flush, whatever happens. */
#include "written.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static const tp_trace_site plain = {.name = "plain"}, child = {.name = "child"};

static void zone(const tp_trace_site *site)
{
    tp_zone z = tp_zone_begin(site);
    tp_zone_end(&z);
}

static tp_status start_flushing(const char *path, uint32_t events, uint32_t ms)
{
    tp_trace_options options = {.size = sizeof options,
                                .events_per_thread = events,
                                .overflow = TP_TRACE_FLUSH,
                                .flush_ms = ms,
                                .path = path};
    tp_error err = {0};
    tp_status status = tp_trace_start(&options, &err);
    if (status == TP_ERR_UNSUPPORTED)
        skip();
    return status;
}

/* Before a fork: skipping in the child would run the other tests there. */
static void need_tracing(void)
{
    if (tp_trace_start(NULL, NULL) == TP_ERR_UNSUPPORTED)
        skip();
    tp_trace_release();
}

static void sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL); /* no verdict: between two looks */
}

/* Until the file has n events: its writer may be late, and a reader may see half a write. */
static void wait_for_events(const char *path, int n)
{
    const tp_json *root;
    do {
        sleep_ms(10);
        tp_arena_rewind(&arena, 0);
        tp_buf_clear(&text);
    } while (tp_file_read(path, 0, &text, NULL) != TP_OK ||
             tp_json_parse(&arena, path, text.data, text.len, NULL, &root, NULL) != TP_OK ||
             count_events(root, "X", "plain") < n);
}

/* A child that records n zones and then does nothing. */
static pid_t fork_recorder(const char *path, int n, uint32_t flush_ms)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    signal(SIGABRT, SIG_DFL);
    if (start_flushing(path, 1 << 12, flush_ms) != TP_OK)
        _exit(1);
    for (int i = 0; i < n; i++)
        zone(&plain);
    for (;;)
        pause();
}

static void the_file_is_whole_from_the_start(void **state)
{
    const char *path = new_path(".json");
    assert_int_equal(start_flushing(path, 0, 60000), TP_OK);
    assert_int_equal(count_events(read_trace(path), "M", "process_name"), 1);
    zone(&plain);
    assert_int_equal(tp_trace_write(NULL, NULL), TP_OK);
    assert_false(tp_trace_enabled());
    assert_int_equal(count_events(read_trace(path), "X", "plain"), 1);
    unlink(path);
}

static void everything_arrives_in_order_and_once(void **state)
{
    enum { N = 100000 };
    const char *path = new_path(".json");
    assert_int_equal(start_flushing(path, 1 << 18, 1), TP_OK);
    for (int i = 0; i < N; i++)
        zone(&plain);
    tp_trace_stop();
    assert_int_equal(tp_trace_dropped(), 0);
    const tp_json *root = read_trace(path);
    int64_t last = -1, n = 0;
    for (const tp_json *e = tp_json_get(root, "traceEvents")->child; e; e = e->next)
        if (strcmp(tp_json_str(tp_json_get(e, "ph")), "X") == 0) {
            assert_true(ns_of(e, "ts") >= last);
            last = ns_of(e, "ts") + ns_of(e, "dur");
            n++;
        }
    assert_int_equal(n, N);
    unlink(path);
}

/* A ring too small for what comes: what is there and what was dropped add up. */
static void drops_are_counted(void **state)
{
    enum { N = 300000, MOST_ROUNDS = 100 };
    const char *path = new_path(".json");
    uint64_t recorded = 0;
    assert_int_equal(start_flushing(path, 256, 5), TP_OK);
    for (int round = 0; round < MOST_ROUNDS && tp_trace_dropped() == 0; round++, recorded += N)
        for (int i = 0; i < N; i++)
            zone(&plain);
    tp_trace_stop();
    const tp_json *root = read_trace(path);
    int n = 0;
    for (const tp_json *e = tp_json_get(root, "traceEvents")->child; e; e = e->next)
        n += strcmp(tp_json_str(tp_json_get(e, "ph")), "X") == 0;
    assert_int_equal((uint64_t)n + tp_trace_dropped(), recorded);
    assert_true(tp_trace_dropped() > 0);
    unlink(path);
}

static void a_killed_process_leaves_what_was_flushed(void **state)
{
    need_tracing();
    const char *path = new_path(".json");
    pid_t pid = fork_recorder(path, 200, 20);
    wait_for_events(path, 200);
    kill(pid, SIGKILL);
    int status;
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status));

    const tp_json *root = read_trace(path); /* fails unless it is whole */

    assert_int_equal(count_events(root, "M", "process_name"), 1);
    assert_int_equal(count_events(root, "X", "plain"), 200);
    unlink(path);
}

static void an_aborted_process_too(void **state)
{
    need_tracing();
    const char *path = new_path(".json");
    pid_t pid = fork_recorder(path, 1, 5);
    wait_for_events(path, 1);
    kill(pid, SIGABRT);
    waitpid(pid, NULL, 0);
    assert_int_equal(count_events(read_trace(path), "X", "plain"), 1);
    unlink(path);
}

static void leaving_main_completes_the_file(void **state)
{
    need_tracing();
    const char *path = new_path(".json");
    pid_t pid = fork();
    if (pid == 0) {
        if (start_flushing(path, 1 << 12, 60000) != TP_OK)
            _exit(1);
        zone(&plain);
        exit(0); /* not _exit: destructors run */
    }
    waitpid(pid, NULL, 0);
    assert_int_equal(count_events(read_trace(path), "X", "plain"), 1);
    unlink(path);
}

static void a_fork_leaves_the_file_to_the_parent(void **state)
{
    const char *path = new_path(".json"), *own = new_path(".json");
    assert_int_equal(start_flushing(path, 1 << 12, 10), TP_OK);
    zone(&plain);
    pid_t pid = fork();
    if (pid == 0) {
        if (tp_trace_enabled())
            _exit(2);
        zone(&child); /* recorded nowhere */
        if (tp_trace_start(NULL, NULL) != TP_OK)
            _exit(3);
        zone(&child);
        if (tp_trace_write(own, NULL) != TP_OK)
            _exit(4);
        _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    zone(&plain);
    wait_for_events(path, 2);
    tp_trace_stop();
    const tp_json *root = read_trace(path);
    assert_int_equal(count_events(root, "X", "plain"), 2);
    assert_int_equal(count_events(root, "X", "child"), 0);
    root = read_trace(own);
    assert_int_equal(count_events(root, "X", "child"), 1);
    assert_int_equal(count_events(root, "X", "plain"), 0);
    unlink(path);
    unlink(own);
}

static void *few(void *unused)
{
    for (int i = 0; i < 10; i++)
        zone(&plain);
    return unused;
}

static void threads_come_and_go(void **state)
{
    const char *path = new_path(".json");
    assert_int_equal(start_flushing(path, 1 << 10, 1), TP_OK);
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, few, NULL), 0);
        pthread_join(thread, NULL);
    }
    tp_trace_stop();
    assert_int_equal(count_events(read_trace(path), "X", "plain"), 1000);
    unlink(path);
}

#define TRACE_TEST(f) cmocka_unit_test_setup_teardown(f, written_begin, written_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(the_file_is_whole_from_the_start),
        TRACE_TEST(everything_arrives_in_order_and_once),
        TRACE_TEST(drops_are_counted),
        TRACE_TEST(a_killed_process_leaves_what_was_flushed),
        TRACE_TEST(an_aborted_process_too),
        TRACE_TEST(leaving_main_completes_the_file),
        TRACE_TEST(a_fork_leaves_the_file_to_the_parent),
        TRACE_TEST(threads_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
