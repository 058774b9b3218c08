/* Memory: from instants, from snapshots, and the verdict on leaks. */
#include "support/draws.h"
#include "trace_text.h"

#include <math.h>

#include "base/rng.h"
#include "instrument/analyze/leak.h"
#include "instrument/analyze/memory_usage.h"
#include "instrument/analyze/snapshot_usage.h"
#include "instrument/analyze/survivors.h"
#include "stats/trend.h"

#define MEMORY(ts, addr, bytes, total, index)                                                    \
    "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":9,"   \
    "\"tid\":1,\"ts\":" #ts ",\"args\":{\"Addr\":" #addr ",\"Bytes\":" #bytes                    \
    ",\"Total Allocated\":" #total ",\"Total Reserved\":4096,\"Device Type\":1,\"Device Id\":0," \
    "\"Ev Idx\":" #index "}}"

static void instants_are_put_in_order(void **state)
{
    /* File order is not time order; two instants share a time and are told apart by Ev Idx. */
    tp_trace_file *file = read_trace(
        "memory.json",
        OP("aten::empty", 1, 5, 10) "," OP("aten::mm", 1, 20, 10) "," MEMORY(
            25, 2, 200, 1300, 3) "," MEMORY(10, 1, 100, 1100,
                                            1) "," MEMORY(40, 1, -100, 900,
                                                          6) "," MEMORY(25, 3, 50, 1350,
                                                                        4) "," MEMORY(30, 77, -350,
                                                                                      1000, 5));
    tp_selection s = select_all(file);
    tp_operators o;
    tp_memory_usage u;
    tp_error err = {0};

    tp_operators_make(&s, &o);
    assert_int_equal(tp_memory_usage_make(&s, &o, &u, &err), TP_OK);

    assert_int_equal(u.n, 1);
    const tp_memory_device *d = &u.devices[0];
    assert_string_equal(d->label, "CUDA 0");
    assert_int_equal(d->first_bytes, 1000);
    assert_int_equal(d->peak_bytes, 1350);
    assert_int_equal(d->peak_ts, 25000);
    assert_int_equal(d->peak_reserved, 4096);
    assert_int_equal(d->last_bytes, 900);
    assert_int_equal(d->alloc_bytes, 350);
    assert_int_equal(d->free_bytes, 450);
    assert_int_equal(d->never_freed, 2);
    assert_int_equal(d->never_freed_bytes, 250);
    assert_int_equal(d->older_frees, 1);
    assert_int_equal(d->older_free_bytes, 350);
    assert_int_equal(d->lifetime_p50_ns, 30000);
    assert_int_equal(d->n_at_peak, 2);
    assert_string_equal(tp_events_str(file->events, d->at_peak[0].op), "aten::mm");
    assert_int_equal(d->at_peak[0].bytes, 250);
    assert_string_equal(tp_events_str(file->events, d->at_peak[1].op), "aten::empty");
    assert_int_equal(d->at_peak[1].bytes, 100);
    assert_int_equal(d->leak.verdict, TP_LEAK_CANNOT_TELL);
    tp_memory_usage_release(&u);
    tp_operators_release(&o);
    tp_selection_release(&s);
    tp_trace_close(file);
}

/* ---- leaks ---- */

enum { STEPS = 40 };

static tp_leak test_of(const double *y, size_t n, double limit)
{
    tp_leak leak;
    tp_error err = {0};
    const tp_leak_options options = {.limit_bytes = limit};
    assert_int_equal(tp_leak_test(y, n, &options, &leak, &err), TP_OK);
    return leak;
}

static void a_leak_is_found_with_its_slope(void **state)
{
    double y[STEPS];
    tp_rng rng = tp_rng_make(1, 1);
    for (int i = 0; i < STEPS; i++)
        y[i] = 4e9 + 500000.0 * i + 100000 * draw_normal(&rng);

    tp_leak leak = test_of(y, STEPS, 8e9);

    assert_int_equal(leak.verdict, TP_LEAK_GROWING);
    assert_true(leak.slope > 490000 && leak.slope < 510000);
    assert_true(leak.lo < leak.slope && leak.slope < leak.hi);
    assert_true(leak.steps_to_limit > 7500 && leak.steps_to_limit < 8500);
}

/* 60 steps level, 10 of growth, 40 level: it rose once, and no stair has one step. */
static void what_rose_once_has_stopped(void **state)
{
    static const int level[] = {60, 45}, ramp[] = {10, 20}, end[] = {40, 35};
    double y[110];
    (void)state;
    for (int k = 0; k < 2; k++) {
        int n = level[k] + ramp[k] + end[k];
        for (int i = 0; i < n; i++) {
            int risen = i < level[k] ? 0 : i - level[k] + 1;
            y[i] = 4e9 + 1e7 * (risen < ramp[k] ? risen : ramp[k]);
        }
        assert_int_not_equal(test_of(y, (size_t)n, 0).verdict, TP_LEAK_GROWING);
    }
}

static void a_warm_up_is_no_leak(void **state)
{
    double y[STEPS];
    tp_rng rng = tp_rng_make(2, 1);
    for (int i = 0; i < STEPS; i++)
        y[i] = 4e9 + (i < 5 ? 5e8 * i : 2.5e9) + 1e6 * draw_normal(&rng);

    assert_int_equal(test_of(y, STEPS, 0).verdict, TP_LEAK_NONE);
}

/* A trend has a best split as well, and is as steep behind it as before. */
static void a_steady_leak_keeps_its_steps(void **state)
{
    int found = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 25; seed++) {
        double y[STEPS];
        tp_rng rng = tp_rng_make(seed, 5);
        for (int i = 0; i < STEPS; i++)
            y[i] = 4e9 + 1e6 * i + 12e6 * draw_normal(&rng);
        found += test_of(y, STEPS, 0).verdict == TP_LEAK_GROWING;
    }
    assert_true(found >= 20);
}

static void a_leak_every_ten_steps_is_one(void **state)
{
    double y[STEPS], stopped[STEPS];
    (void)state;
    for (int i = 0; i < STEPS; i++) {
        y[i] = 1e9 + 5e8 * (i / 10);
        stopped[i] = 1e9 + 5e8 * (i < 28 ? i / 4 : 7);
    }
    tp_leak leak = test_of(y, STEPS, 0);
    assert_int_equal(leak.verdict, TP_LEAK_GROWING);
    assert_int_equal(leak.n_dropped, TP_LEAK_MIN_WARM_UP);
    assert_int_not_equal(test_of(stopped, STEPS, 0).verdict, TP_LEAK_GROWING);
}

static void a_long_warm_up_is_dropped(void **state)
{
    double y[STEPS];
    tp_rng rng = tp_rng_make(4, 1);
    (void)state;
    for (int i = 0; i < STEPS; i++)
        y[i] = 4e9 + 1e8 * (i < 14 ? i : 14) + 1e6 * draw_normal(&rng);
    tp_leak leak = test_of(y, STEPS, 0);
    assert_true(leak.n_dropped >= 10);
    assert_int_equal(leak.verdict, TP_LEAK_NONE);
}

/* What alternates has a smaller variance of S by the correction, and no smaller p for it. */
static void alternation_makes_no_trend_surer(void **state)
{
    (void)state;
    double y[STEPS];
    for (int i = 0; i < STEPS; i++)
        y[i] = 1e9 + i * 2000.0 + (i % 2 ? 8e6 : 0);
    tp_leak leak = test_of(y, STEPS, 0);
    tp_mann_kendall_result mk;
    tp_error err;
    assert_int_equal(tp_mann_kendall(NULL, y + leak.n_dropped, leak.n_used, 0.05, &mk, &err),
                     TP_OK);
    assert_true(mk.corrected_p_increasing < mk.p_increasing);
    assert_false(leak.is_corrected);
    assert_true(leak.p_rising == mk.p_increasing);
}

static void constant_memory_is_no_leak(void **state)
{
    double y[STEPS];
    for (int i = 0; i < STEPS; i++)
        y[i] = 123456789;

    assert_int_equal(test_of(y, STEPS, 0).verdict, TP_LEAK_NONE);
}

static void a_cache_that_filled_is_told_apart(void **state)
{
    double y[60];
    for (int i = 0; i < 60; i++)
        y[i] = 1e9 + (i < 38 ? i * 1e6 : 38e6);

    tp_leak leak = test_of(y, 60, 0);

    assert_int_not_equal(leak.verdict, TP_LEAK_GROWING);
}

static void few_steps_give_no_verdict(void **state)
{
    double y[10];
    for (int i = 0; i < 10; i++)
        y[i] = 1e9 * i;

    tp_leak leak = test_of(y, 10, 0);

    assert_int_equal(leak.verdict, TP_LEAK_CANNOT_TELL);
    assert_true(isnan(leak.slope));
}

static void noise_seldom_raises_an_alarm(void **state)
{
    int alarms = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        double y[30];
        tp_rng rng = tp_rng_make(seed, 7);
        for (int i = 0; i < 30; i++)
            y[i] = 4e9 + 5e7 * draw_normal(&rng);
        alarms += test_of(y, 30, 0).verdict == TP_LEAK_GROWING;
    }
    assert_true(alarms <= 6); /* 1 % of 200 are 2 */
}

static void the_group_that_grows_is_named(void **state)
{
    enum { GROUPS = 3 };
    tp_allocation v[3 * STEPS];
    size_t n = 0;
    tp_survivors r;
    tp_error err = {0};
    for (uint32_t s = 0; s < STEPS; s++) {
        v[n++] = (tp_allocation){0, s, s + 1, 4096};    /* freed in the next step */
        v[n++] = (tp_allocation){1, s, STEPS, 5000};    /* never */
        v[n++] = (tp_allocation){2, s, s + 5, 1 << 20}; /* a window of five steps */
    }

    assert_int_equal(tp_survivors_make(v, n, GROUPS, STEPS, &r, &err), TP_OK);

    assert_int_equal(r.n, 2);
    assert_int_equal(r.rows[0].group, 1);
    assert_true(r.rows[0].is_growing);
    assert_true(fabs(r.rows[0].slope - 5000) < 1e-6);
    assert_int_equal(r.rows[0].last_bytes, (STEPS - 2) * 5000);
    assert_int_equal(r.rows[1].group, 2);
    assert_false(r.rows[1].is_growing);
    assert_int_equal(r.rows[1].last_bytes, 3 << 20);
    tp_survivors_release(&r);
}

#define BLIND(ts, bytes)                                                                       \
    "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":9," \
    "\"tid\":1,\"ts\":" #ts ",\"args\":{\"Bytes\":" #bytes ",\"Device Type\":12,\"Device Id\":0}}"

static void usage_of(const char *events, tp_memory_usage *ret)
{
    tp_trace_file *file = read_trace("memory.json", events);
    tp_selection s = select_all(file);
    tp_operators o;
    tp_error err = {0};
    tp_operators_make(&s, &o);
    assert_int_equal(tp_memory_usage_make(&s, &o, ret, &err), TP_OK);
    tp_operators_release(&o);
    tp_selection_release(&s);
    tp_trace_close(file);
}

static void without_addresses_what_was_freed_is_unknown(void **state)
{
    tp_memory_usage u;
    usage_of(BLIND(0, 100) "," BLIND(1, 200) "," BLIND(2, -100), &u);
    const tp_memory_device *d = &u.devices[0];
    assert_string_equal(d->label, "XPU 0");
    assert_int_equal(d->peak_bytes, 300);
    assert_int_equal(d->first_bytes, TP_UNKNOWN);
    assert_int_equal(d->last_bytes, TP_UNKNOWN);
    assert_int_equal(d->frees, 1);
    assert_int_equal(d->never_freed, TP_UNKNOWN);
    assert_int_equal(d->older_frees, TP_UNKNOWN);
    assert_int_equal(d->lifetime_p50_ns, TP_UNKNOWN);
    assert_int_equal(d->n_at_peak + d->n_kept, 0);
    tp_memory_usage_release(&u);
}

/* An address that is allocated again was freed; nothing is no free. */
static void a_lost_free_is_a_free(void **state)
{
    tp_memory_usage u;
    int64_t alive = 0;
    usage_of(MEMORY(1, 5, 100, 100, 1) "," MEMORY(2, 5, 200, 300, 2) "," MEMORY(3, 6, 0, 300, 3),
             &u);
    const tp_memory_device *d = &u.devices[0];
    for (size_t k = 0; k < TP_ALLOCATION_SIZES; k++)
        alive += d->allocations.sizes[k].never_freed;
    assert_int_equal(d->never_freed, 1);
    assert_int_equal(alive, 1);
    assert_int_equal(d->frees + d->older_frees, 0);
    tp_memory_usage_release(&u);
}

/* ---- snapshots ---- */

static void a_ring_that_lost_its_beginning(void **state)
{
    tp_snapshot s = {0};
    tp_string_table_init(&s.strings);
    uint32_t active = tp_string_add(&s.strings, "active_allocated", 16);
    uint32_t inactive = tp_string_add(&s.strings, "inactive", 8);
    uint32_t alloc = tp_string_add(&s.strings, "alloc", 5);
    uint32_t freed = tp_string_add(&s.strings, "free_completed", 14);
    tp_mem_segment segment = {.total = 4096, .allocated = 1536, .active = 1536, .requested = 1300};
    tp_mem_block blocks[] = {
        {.addr = 0x100,
         .size = 1024,
         .requested = 1000,
         .state = TP_BLOCK_ALLOCATED,
         .state_text = active},
        {.addr = 0x500,
         .size = 512,
         .requested = 300,
         .state = TP_BLOCK_ALLOCATED,
         .state_text = active},
        {.addr = 0x700, .size = 2560, .state = TP_BLOCK_INACTIVE, .state_text = inactive}};
    tp_mem_entry entries[] = {
        {.action = TP_MEM_FREE_COMPLETED,
         .action_text = freed,
         .addr = 0x900,
         .size = 700,
         .time_us = 10},
        {.action = TP_MEM_ALLOC, .action_text = alloc, .addr = 0x500, .size = 300, .time_us = 20},
        {.action = TP_MEM_ALLOC, .action_text = alloc, .addr = 0x700, .size = 2000, .time_us = 30},
        {.action = TP_MEM_FREE_COMPLETED,
         .action_text = freed,
         .addr = 0x700,
         .size = 2000,
         .time_us = 75}};
    size_t first[] = {0, 4};
    tp_mem_stack none = {0};
    s.segments = &segment;
    s.blocks = blocks;
    s.entries = entries;
    s.device_first = first;
    s.stacks = &none;
    s.n_segments = s.n_devices = s.n_stacks = 1;
    s.n_blocks = 3;
    s.n_entries = 4;
    tp_snapshot_usage u;

    tp_snapshot_usage_make(&s, &u);
    const tp_snapshot_device *d = &u.devices[0];
    tp_stack_bytes *peak;
    size_t n = tp_snapshot_at_peak(&s, d, &peak);

    assert_int_equal(u.requested, 1300);
    assert_int_equal(u.inactive_bytes, 2560);
    assert_int_equal(u.largest_inactive, 2560);
    assert_int_equal(u.rounding_bytes, 24 + 212);
    assert_int_equal(d->unmatched_frees, 1);
    assert_int_equal(d->unmatched_bytes, 700);
    assert_int_equal(d->net_bytes, -400);
    assert_int_equal(d->peak_net_bytes, 1600);
    assert_int_equal(d->initial_bytes, 1300 + 400);
    assert_int_equal(d->peak_bytes, 1700 + 1600);
    assert_int_equal(d->live, 1);
    assert_int_equal(d->live_bytes, 300);
    assert_int_equal(d->lifetime_us_median, 45);
    assert_int_equal(d->duration_us, 65);
    assert_int_equal(n, 1);
    assert_int_equal(peak[0].bytes, 3300);
    free(peak);
    tp_snapshot_usage_release(&u);
    tp_string_table_release(&s.strings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_addresses_what_was_freed_is_unknown),
        cmocka_unit_test(a_lost_free_is_a_free),
        cmocka_unit_test(instants_are_put_in_order),
        cmocka_unit_test(a_leak_is_found_with_its_slope),
        cmocka_unit_test(what_rose_once_has_stopped),
        cmocka_unit_test(a_warm_up_is_no_leak),
        cmocka_unit_test(a_steady_leak_keeps_its_steps),
        cmocka_unit_test(a_leak_every_ten_steps_is_one),
        cmocka_unit_test(a_long_warm_up_is_dropped),
        cmocka_unit_test(alternation_makes_no_trend_surer),
        cmocka_unit_test(constant_memory_is_no_leak),
        cmocka_unit_test(a_cache_that_filled_is_told_apart),
        cmocka_unit_test(few_steps_give_no_verdict),
        cmocka_unit_test(the_group_that_grows_is_named),
        cmocka_unit_test(noise_seldom_raises_an_alarm),
        cmocka_unit_test(a_ring_that_lost_its_beginning)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
