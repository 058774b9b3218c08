/* test_arena.c - arenas: alignment, growth, rewinding, impossible reservations. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/platform.h"

enum { RESERVE = 1 << 20 };

static int make_arena(void **state)
{
    static tp_arena arena;
    *state = &arena;
    return tp_arena_init(&arena, RESERVE, NULL) != TP_OK;
}

static int release_arena(void **state)
{
    tp_arena_release(*state);
    tp_arena_release(*state); /* twice is fine */
    tp_arena_release(NULL);
    return 0;
}

static void objects_are_zeroed_aligned_and_apart(void **state)
{
    tp_arena *arena = *state;
    char *a = tp_arena_array(arena, char, 3);
    double *b = tp_arena_new(arena, double);
    char *c = tp_arena_alloc(arena, 1, 1, 4096);

    assert_int_equal((uintptr_t)b % _Alignof(double), 0);
    assert_int_equal((uintptr_t)c % 4096, 0);
    assert_true((char *)b >= a + 3);
    assert_true(c >= (char *)(b + 1));
    assert_int_equal(a[0] | a[1] | a[2] | *c, 0);
    assert_true(*b == 0);
}

static void pointers_stay_valid_as_the_arena_grows(void **state)
{
    tp_arena *arena = *state;
    int *first = tp_arena_new(arena, int);
    *first = 42;
    for (int i = 0; i < 1000; i++)
        memset(tp_arena_array(arena, char, 1000), 0xff, 1000);
    assert_int_equal(*first, 42);
}

static void rewound_memory_is_zero_again(void **state)
{
    tp_arena *arena = *state;
    char *kept = tp_arena_strdup(arena, "kept");
    size_t mark = tp_arena_mark(arena);
    char *gone = tp_arena_array(arena, char, 5000);
    memset(gone, 0xff, 5000);

    tp_arena_rewind(arena, mark);

    char *again = tp_arena_array(arena, char, 5000);
    assert_ptr_equal(again, gone);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(again[i], 0);
    assert_string_equal(kept, "kept");
}

static void rewinding_goes_back_over_blocks(void **state)
{
    (void)state;
    tp_arena arena;
    unsigned char *piece[100];
    assert_int_equal(tp_arena_init(&arena, 100 << 20, NULL), TP_OK);
    char *kept = tp_arena_strdup(&arena, "kept");
    size_t mark = tp_arena_mark(&arena);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++) {
            piece[i] = tp_arena_array(&arena, unsigned char, 50000);
            for (int j = 0; j < 50000; j++)
                assert_int_equal(piece[i][j], 0);
            memset(piece[i], i + 1, 50000);
        }
        for (int i = 0; i < 100; i++)
            assert_int_equal(piece[i][0] + piece[i][49999], 2 * (i + 1));
        assert_int_equal(tp_arena_mark(&arena), mark + 100 * 50000);
        tp_arena_rewind(&arena, mark);
        assert_int_equal(tp_arena_mark(&arena), mark);
    }
    assert_string_equal(kept, "kept");
    assert_int_equal(arena.high, mark + 100 * 50000);
    tp_arena_release(&arena);
}

/* With AddressSanitizer: who writes past an array is caught, whatever was taken next. */
static void objects_have_a_red_zone_behind_them(void **state)
{
#ifdef TP_ASAN
    int *a = tp_arena_array(*state, int, 3);
    int *b = tp_arena_array(*state, int, 3);
    assert_true(__asan_address_is_poisoned(a + 3));
    assert_false(__asan_address_is_poisoned(b));
    assert_true(__asan_address_is_poisoned(b + 3));
#else
    (void)state;
    skip();
#endif
}

static void text_is_copied(void **state)
{
    tp_arena *arena = *state;
    char text[] = "abcdef";

    char *whole = tp_arena_strdup(arena, text), *part = tp_arena_strndup(arena, text, 3);
    char *none = tp_arena_strndup(arena, NULL, 0);
    char *made = tp_arena_printf(arena, "%s-%d", text, 7);
    memset(text, '?', 6);

    assert_string_equal(whole, "abcdef");
    assert_string_equal(part, "abc");
    assert_string_equal(none, "");
    assert_string_equal(made, "abcdef-7");
}

static void trying_never_stops_the_program(void **state)
{
    tp_arena *arena = *state;
    assert_null(tp_arena_try_alloc(arena, RESERVE + 1, 1, 1));
    assert_null(tp_arena_try_alloc(arena, SIZE_MAX, SIZE_MAX, 8));
    assert_null(tp_arena_try_alloc(arena, 1, SIZE_MAX, 8));
    assert_int_equal(tp_arena_mark(arena), 0);
    assert_non_null(tp_arena_try_alloc(arena, RESERVE - 64, 1, 64));
    assert_null(tp_arena_try_alloc(arena, 65, 1, 1));
}

static void exhaust(tp_arena *arena, size_t count, size_t size)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(1);
        tp_arena_alloc(arena, count, size, 8);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

static tp_status take_too_much(tp_arena *arena, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_arena_alloc(arena, 1 << 20, 1 << 10, 8);
    return TP_OK;
}

static tp_status take_in_a_guard_within(tp_arena *arena, tp_error *err)
{
    tp_error inner;
    TP_MEMORY_GUARD(err);
    assert_int_equal(take_too_much(arena, &inner), TP_ERR_NOMEM);
    assert_non_null(strstr(inner.message, "do not fit in the 65536 bytes"));
    tp_arena_alloc(arena, 1 << 20, 1 << 10, 8); /* the outer one is in force again */
    return TP_OK;
}

static void exhaustion_ends_the_guarded_call(void **state)
{
    tp_arena arena;
    tp_error err = {0};
    assert_int_equal(tp_arena_init(&arena, 65536, NULL), TP_OK);

    assert_int_equal(take_in_a_guard_within(&arena, &err), TP_ERR_NOMEM);

    assert_int_equal(err.status, TP_ERR_NOMEM);
    tp_arena_release(&arena);
}

static void exhaustion_stops_the_program(void **state)
{
    exhaust(*state, RESERVE + 1, 1);
    exhaust(*state, SIZE_MAX / 2, 4);
    exhaust(*state, SIZE_MAX, 1);
}

static void impossible_reservations_fail(void **state)
{
    tp_arena arena = {.used = 7};
    tp_error err;
    assert_int_equal(tp_arena_init(&arena, (size_t)1 << 60, &err), TP_ERR_NOMEM);
    assert_non_null(strstr(err.message, "cannot reserve 1152921504606846976 bytes"));
    assert_int_equal(arena.used, 7); /* untouched */
}

#define ARENA_TEST(f) cmocka_unit_test_setup_teardown(f, make_arena, release_arena)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(objects_are_zeroed_aligned_and_apart),
        ARENA_TEST(pointers_stay_valid_as_the_arena_grows),
        ARENA_TEST(rewound_memory_is_zero_again),
        cmocka_unit_test(rewinding_goes_back_over_blocks),
        ARENA_TEST(objects_have_a_red_zone_behind_them),
        ARENA_TEST(text_is_copied),
        ARENA_TEST(trying_never_stops_the_program),
        cmocka_unit_test(exhaustion_ends_the_guarded_call),
        ARENA_TEST(exhaustion_stops_the_program),
        cmocka_unit_test(impossible_reservations_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
