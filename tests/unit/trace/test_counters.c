#include "written.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

static void spin_us(long us)
{
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &from);
    do
        clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000 < us);
}

static void a_name_is_one_counter(void **state)
{
    assert_ptr_equal(tp_counter_get("one"), tp_counter_get("one"));
    assert_ptr_not_equal(tp_counter_get("one"), tp_counter_get("two"));
}

static void sums_counts_and_means(void **state)
{
    tp_counter *c = tp_counter_get("sum");
    assert_true(isnan(tp_counter_read(c).mean));
    assert_true(isnan(tp_counter_read(c).least));
    tp_counter_add(c, 1.5);
    tp_counter_add(c, -4);
    tp_counter_add(c, 10);
    tp_counter_stats s = tp_counter_read(c);
    assert_string_equal(s.name, "sum");
    assert_int_equal(s.count, 3);
    assert_true(s.total == 7.5);
    assert_true(s.mean == 2.5);
    assert_true(s.least == -4 && s.most == 10);
    tp_counter_reset(c);
    assert_int_equal(tp_counter_read(c).count, 0);
    tp_counter_add(c, 1);
    tp_counter_add(c, NAN); /* is neither the least nor the most */
    tp_counter_add(c, 5);
    s = tp_counter_read(c);
    assert_true(isnan(s.total) && s.least == 1 && s.most == 5);
    tp_counter_reset(c);
}

static double wall_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void a_reset_takes_back_the_time_before_it(void **state)
{
    tp_counter *c = tp_counter_get("reset");
    tp_counter_start(c);
    spin_us(20000);
    double begin = wall_s();
    tp_counter_reset(c);
    assert_int_equal(tp_counter_stop(c, NULL), TP_OK);
    assert_true(tp_counter_read(c).total <= wall_s() - begin + 1e-6);
    assert_int_equal(tp_counter_read(c).count, 1);
}

static void history_survives_being_started_again(void **state)
{
    tp_counter *c = tp_counter_get("again");
    double after_first;
    tp_counter_start(c);
    spin_us(2000);
    assert_int_equal(tp_counter_stop(c, NULL), TP_OK);
    after_first = tp_counter_read(c).total;
    assert_true(after_first >= 0.9 * 0.002);
    tp_counter_start(c);
    assert_true(tp_counter_read(c).total == after_first); /* still there while it runs */
    assert_int_equal(tp_counter_read(c).active, 1);
    spin_us(1000);
    assert_int_equal(tp_counter_stop(c, NULL), TP_OK);
    assert_int_equal(tp_counter_read(c).count, 2);
    assert_true(tp_counter_read(c).total >= after_first + 0.9 * 0.001);
    assert_int_equal(tp_counter_read(c).active, 0);
}

/* Lower and upper bounds leave 10 % for the calibration of the counter that tells the time. */
static void nested_time_counts_once(void **state)
{
    tp_counter *c = tp_counter_get("nested");
    double from = wall_s();
    tp_counter_start(c);
    tp_counter_start(c);
    spin_us(3000);
    tp_counter_start(c);
    assert_int_equal(tp_counter_stop(c, NULL), TP_OK);
    assert_int_equal(tp_counter_stop(c, NULL), TP_OK);
    assert_int_equal(tp_counter_stop(c, NULL), TP_OK);
    double outside = wall_s() - from;
    tp_counter_stats s = tp_counter_read(c);
    assert_int_equal(s.count, 3);
    assert_true(s.total >= 0.9 * 0.003);
    assert_true(s.total <= 1.1 * outside);
    assert_true(s.mean == s.total && s.least == s.total &&
                s.most == s.total); /* one from outside */
}

static void different_counters_overlap(void **state)
{
    tp_counter *outer = tp_counter_get("outer"), *inner = tp_counter_get("inner");
    tp_counter_start(outer);
    tp_counter_start(inner);
    spin_us(1000);
    assert_int_equal(tp_counter_stop(outer, NULL), TP_OK); /* not even in order */
    assert_int_equal(tp_counter_stop(inner, NULL), TP_OK);
    assert_true(tp_counter_read(outer).total >= 0.9 * 0.001);
    assert_true(tp_counter_read(inner).total >= 0.9 * 0.001);
}

static void stopping_what_does_not_run_is_an_error(void **state)
{
    tp_error err;
    tp_counter *c = tp_counter_get("never started");
    assert_int_equal(tp_counter_stop(c, &err), TP_ERR_ARG);
    assert_non_null(strstr(err.message, "never started"));
    assert_int_equal(tp_counter_read(c).count, 0);
}

static void *add_many(void *counter)
{
    for (int i = 0; i < 100000; i++)
        tp_counter_add(counter, 1);
    return NULL;
}

static void *time_some(void *counter)
{
    for (int i = 0; i < 100; i++) {
        tp_counter_start(counter);
        spin_us(10);
        if (tp_counter_stop(counter, NULL) != TP_OK)
            return counter;
    }
    return NULL;
}

static void threads_add_up(void **state)
{
    pthread_t threads[8];
    tp_counter *sum = tp_counter_get("threads"), *timer = tp_counter_get("thread timer");
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, i % 2 ? add_many : time_some, i % 2 ? sum : timer);
    for (int i = 0; i < 8; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        assert_null(bad);
    }
    assert_int_equal(tp_counter_read(sum).count, 400000);
    assert_true(tp_counter_read(sum).total == 400000);
    assert_int_equal(tp_counter_read(timer).count, 400);
    assert_true(tp_counter_read(timer).total >= 0.9 * 400 * 10e-6);
}

static void counters_are_listed_and_written(void **state)
{
    tp_counter_stats all[64];
    tp_counter_add(tp_counter_get("listed"), 2);
    size_t n = tp_counter_list(all, 64), at = 0;
    assert_true(n <= 64);
    while (at < n && strcmp(all[at].name, "listed") != 0)
        at++;
    assert_true(at < n);
    assert_true(all[at].total == 2);
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    const tp_json *written_ones = tp_json_get(tp_json_get(written(), "temper"), "counters");
    const tp_json *one = tp_json_at(written_ones, at);
    assert_string_equal(tp_json_str(tp_json_get(one, "name")), "listed");
    assert_string_equal(tp_json_get(one, "total")->text.data, "2");
}

#define TRACE_TEST(f) cmocka_unit_test_setup_teardown(f, written_begin, written_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(a_name_is_one_counter),
        TRACE_TEST(sums_counts_and_means),
        TRACE_TEST(a_reset_takes_back_the_time_before_it),
        TRACE_TEST(history_survives_being_started_again),
        TRACE_TEST(nested_time_counts_once),
        TRACE_TEST(different_counters_overlap),
        TRACE_TEST(stopping_what_does_not_run_is_an_error),
        TRACE_TEST(threads_add_up),
        TRACE_TEST(counters_are_listed_and_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
