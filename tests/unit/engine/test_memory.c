/* test_memory.c - memory by kind, its limit and its peaks; element types. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/device/dtype.h"
#include "engine/device/memory.h"

enum { MIB = 1 << 20 };

static void *get(tp_mem_kind kind, size_t bytes)
{
    void *p;
    assert_int_equal(tp_mem_alloc(kind, bytes, &p, NULL), TP_OK);
    return p;
}

static void memory_is_zeroed_and_aligned(void **state)
{
    static const size_t sizes[] = {0, 1, 64, 100, 4096, 2 * MIB - 1, 2 * MIB, 5 * MIB + 3};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *p = get(TP_MEM_DATA, sizes[i]);
        assert_int_equal((uintptr_t)p % (sizes[i] >= 2 * MIB ? 2 * MIB : 64), 0);
        for (size_t k = 0; k < sizes[i]; k += 4095)
            assert_int_equal(p[k], 0);
        memset(p, 0xff, sizes[i]); /* all of it is there */
        tp_mem_free(p);
    }
    tp_mem_free(NULL);
}

static void kinds_are_counted_apart(void **state)
{
    tp_mem_stats before = tp_mem_get_stats();
    void *a = get(TP_MEM_WEIGHTS, 1000), *b = get(TP_MEM_KV_CACHE, 500);

    tp_mem_stats during = tp_mem_get_stats();
    assert_int_equal(during.current[TP_MEM_WEIGHTS] - before.current[TP_MEM_WEIGHTS], 1000);
    assert_int_equal(during.current[TP_MEM_KV_CACHE] - before.current[TP_MEM_KV_CACHE], 500);
    assert_int_equal(during.total_current - before.total_current, 1500);
    assert_int_equal(during.n_allocs - before.n_allocs, 2);
    tp_mem_free(a);
    tp_mem_free(b);
    assert_int_equal(tp_mem_get_stats().total_current, before.total_current);
}

static void peaks_are_those_since_the_reset(void **state)
{
    void *small = get(TP_MEM_WEIGHTS, 100);
    tp_mem_free(get(TP_MEM_WEIGHTS, 1000));
    assert_true(tp_mem_get_stats().peak[TP_MEM_WEIGHTS] >= 1100);

    tp_mem_reset_peak();
    assert_int_equal(tp_mem_get_stats().peak[TP_MEM_WEIGHTS], 100);
    tp_mem_free(get(TP_MEM_DATA, 50));

    tp_mem_stats stats = tp_mem_get_stats();
    assert_int_equal(stats.peak[TP_MEM_DATA], 50);
    assert_int_equal(stats.total_peak, 150);
    tp_mem_free(small);
}

static void the_limit_holds_for_all_kinds_together(void **state)
{
    tp_error err;
    void *p = NULL, *a = get(TP_MEM_WEIGHTS, 600);
    tp_mem_set_limit(tp_mem_get_stats().total_current + 400, "a test");

    assert_int_equal(tp_mem_alloc(TP_MEM_DATA, 401, &p, &err), TP_ERR_NOMEM);
    assert_null(p);
    assert_string_equal(err.message, "cannot allocate 401 B for data (600 B in use, limit 1000 B): "
                                     "over the limit: a test");
    tp_mem_free(get(TP_MEM_DATA, 400));
    tp_mem_set_limit(0, "");
    tp_mem_free(get(TP_MEM_DATA, 401));
    tp_mem_free(a);
}

static void what_fails_leaves_no_trace(void **state)
{
    tp_error err;
    void *p = NULL;
    tp_mem_reset_peak();
    tp_mem_stats before = tp_mem_get_stats();

    /* more than any address space; the second also overflows with the page */
    assert_int_equal(tp_mem_alloc(TP_MEM_DATA, (size_t)1 << 60, &p, &err), TP_ERR_NOMEM);
    assert_non_null(strstr(err.message, "cannot allocate 1024.0 PiB for data"));
    assert_int_equal(tp_mem_alloc(TP_MEM_DATA, SIZE_MAX, &p, &err), TP_ERR_NOMEM);
    assert_non_null(strstr(err.message, "limit none): size overflows"));

    tp_mem_stats after = tp_mem_get_stats();
    assert_null(p);
    assert_memory_equal(&after, &before, sizeof after);
}

static void *allocate_and_free(void *user)
{
    for (int i = 0; i < 200; i++) {
        void *p = NULL;
        if (tp_mem_alloc(TP_MEM_WORKSPACE, 100, &p, NULL) == TP_OK)
            tp_mem_free(p);
    }
    return user;
}

static void threads_may_allocate_at_once(void **state)
{
    pthread_t threads[4];
    tp_mem_stats before = tp_mem_get_stats();
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_free, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);

    tp_mem_stats after = tp_mem_get_stats();
    assert_int_equal(after.total_current, before.total_current);
    assert_int_equal(after.n_allocs - before.n_allocs, 800);
}

static void kinds_have_names(void **state)
{
    assert_string_equal(tp_mem_kind_name(TP_MEM_SHADOW), "shadow");
    assert_string_equal(tp_mem_kind_name(TP_MEM_KINDS), "unknown");
}

/* ---- dtypes ---- */

static void dtypes_have_names_and_sizes(void **state)
{
    static const size_t sizes[] = {4, 2, 2, 8, 4, 8, 1};
    for (int i = 0; i < TP_DTYPE_COUNT; i++) {
        tp_dtype d;
        assert_true(tp_dtype_parse(tp_dtype_name((tp_dtype)i), &d));
        assert_int_equal(d, i);
        assert_int_equal(tp_dtype_size((tp_dtype)i), sizes[i]);
    }
    tp_dtype d;
    assert_false(tp_dtype_parse("f8", &d));
    assert_int_equal(tp_dtype_size(TP_DTYPE_COUNT), 0);
}

static float of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void bf16_rounds_to_nearest_even(void **state)
{
    static const struct {
        uint32_t bits;
        tp_bf16 rounded;
    } cases[] = {
        {0x3f800000, 0x3f80}, /* 1 */
        {0x3f808000, 0x3f80}, /* a tie goes to even: down */
        {0x3f818000, 0x3f82}, /* and up */
        {0x3f808001, 0x3f81}, /* just above a tie */
        {0x3f807fff, 0x3f80}, /* just below */
        {0x80000000, 0x8000}, /* -0 */
        {0x00000001, 0x0000}, /* the smallest subnormal */
        {0x7f7fffff, 0x7f80}, /* the largest float overflows */
        {0x7f7f7fff, 0x7f7f}, /* this one does not */
        {0xff800000, 0xff80}, /* -infinity */
        {0x7f800001, 0x7fc0}, /* a NaN with its only bit below stays a NaN */
        {0xffffffff, 0xffff},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(tp_f32_to_bf16(of_bits(cases[i].bits)), cases[i].rounded);
    assert_true(tp_bf16_to_f32(0xc049) == -3.140625f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_aligned),
        cmocka_unit_test(kinds_are_counted_apart),
        cmocka_unit_test(peaks_are_those_since_the_reset),
        cmocka_unit_test(the_limit_holds_for_all_kinds_together),
        cmocka_unit_test(what_fails_leaves_no_trace),
        cmocka_unit_test(threads_may_allocate_at_once),
        cmocka_unit_test(kinds_have_names),
        cmocka_unit_test(dtypes_have_names_and_sizes),
        cmocka_unit_test(bf16_rounds_to_nearest_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
