#include "trace/summary.h"

#include "written.h"

#include <time.h>

static const tp_trace_site outer = {.name = "outer"}, inner = {.name = "inner"},
                           op = {.name = "op", .category = "cpu_op", .flops = 10, .bytes = 4};

static void spin_us(long us)
{
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &from);
    do
        clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000 < us);
}

static void zone_around(const tp_trace_site *site, const tp_trace_site *inside, long us)
{
    tp_zone z = tp_zone_begin(site);
    spin_us(us);
    if (inside)
        zone_around(inside, NULL, us);
    tp_zone_end(&z);
}

static const tp_trace_row *row(const tp_trace_summary *s, const char *name)
{
    for (size_t i = 0; i < s->n_rows; i++)
        if (strcmp(s->rows[i].name, name) == 0)
            return &s->rows[i];
    fail_msg("no row %s", name);
    return NULL;
}

static void self_and_total_are_apart(void **state)
{
    tp_trace_summary s;
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    zone_around(&outer, &inner, 200);
    zone_around(&inner, NULL, 100);
    tp_trace_summarize(&s);
    const tp_trace_row *o = row(&s, "outer"), *i = row(&s, "inner");
    assert_int_equal(s.n_rows, 2);
    assert_int_equal(s.n_events, 3);
    assert_int_equal(o->count, 1);
    assert_int_equal(i->count, 2);
    assert_int_equal(i->self_ns, i->total_ns);
    /* 1 % for the calibration of the counter that tells the time. */
    assert_true(o->self_ns >= 198000 && i->self_ns >= 297000);
    assert_int_equal(i->least_ns + i->most_ns, i->total_ns);
    /* The one inside, whichever of the two was held up. */
    int64_t inside = o->total_ns - o->self_ns;
    assert_true(inside == i->most_ns || inside == i->least_ns);
    assert_string_equal(o->category, "user_annotation");
    tp_trace_summary_release(&s);
}

/* A name inside itself: its total is the outer one, its self times add up. */
static void nested_names_are_not_counted_twice(void **state)
{
    tp_trace_summary s;
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    zone_around(&outer, &outer, 200);
    tp_trace_summarize(&s);
    const tp_trace_row *o = row(&s, "outer");
    assert_int_equal(o->count, 2);
    assert_int_equal(o->total_ns, o->most_ns);
    assert_int_equal(o->self_ns, o->total_ns);
    tp_trace_summary_release(&s);
}

static void work_and_memory_belong_to_the_innermost(void **state)
{
    tp_trace_summary s;
    int a, b;
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    tp_trace_memory_totals(1000, 4000);
    /* A moment apart, so that no two times are the same. */
    TP_MEMORY("data", "outside", &a, 5);
    spin_us(1);
    tp_zone o = tp_zone_begin(&outer);
    TP_MEMORY("data", "x", &a, 7);
    spin_us(1);
    tp_zone z = tp_zone_begin(&op);
    TP_MEMORY("activations", "x", &b, 100);
    TP_MEMORY("activations", "x", &b, -100);
    TP_MEMORY("activations", "x", &b, 60);
    spin_us(1);
    tp_zone_end(&z);
    tp_zone_end(&o);
    tp_trace_summarize(&s);
    assert_int_equal(row(&s, "op")->taken_bytes, 160);
    assert_int_equal(row(&s, "op")->n_taken, 2);
    assert_true(row(&s, "op")->flops == 10 && row(&s, "op")->bytes == 4);
    assert_int_equal(row(&s, "outer")->taken_bytes, 7);
    assert_int_equal(s.n_memory, 2);
    assert_string_equal(s.memory[0].kind, "activations");
    assert_int_equal(s.memory[0].taken_bytes, 160);
    assert_int_equal(s.memory[0].given_bytes, 100);
    assert_int_equal(s.memory[0].peak_bytes, 100);
    assert_int_equal(s.memory[1].taken_bytes, 12);
    assert_int_equal(s.peak_allocated, 1112);
    assert_int_equal(s.peak_reserved, 4000);
    tp_trace_summary_release(&s);
}

static void nothing_recorded_is_an_empty_summary(void **state)
{
    tp_trace_summary s;
    tp_trace_summarize(&s);
    assert_int_equal(s.n_rows, 0);
    assert_int_equal(s.peak_allocated, -1);
    tp_trace_summary_release(&s);
}

#define TRACE_TEST(f) cmocka_unit_test_setup_teardown(f, written_begin, written_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(self_and_total_are_apart),
        TRACE_TEST(nested_names_are_not_counted_twice),
        TRACE_TEST(work_and_memory_belong_to_the_innermost),
        TRACE_TEST(nothing_recorded_is_an_empty_summary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
