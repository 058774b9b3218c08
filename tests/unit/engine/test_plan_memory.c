/* test_plan_memory.c - what may share memory and what must not, case by case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "property/check_plan.h"

static tp_arena arena;
static tp_graph g;

static int begin(void **state) { return tp_arena_init(&arena, 64 << 20, NULL) != TP_OK; }

static int end(void **state)
{
    tp_graph_release(&g);
    tp_arena_release(&arena);
    return 0;
}

/* A plan that the checker has found right. */
static tp_memory_plan plan_of(const char *text, bool share)
{
    tp_memory_plan plan;
    tp_error err;
    if (tp_graph_parse("t", text, strlen(text), &g, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(tp_plan_memory(&g, share, &arena, &plan, NULL), TP_OK);
    const char *complaint = check_plan(&g, &plan, &arena);
    if (complaint)
        fail_msg("%s", complaint);
    return plan;
}

static void elementwise_results_take_the_place_of_a_dying_operand(void **state)
{
    static const char text[] = "%1 = input f32[4,8] \"x\"\n%2 = silu %1\n%3 = gelu %2\n"
                               "%4 = add %3, %1\noutput %4\n";

    tp_memory_plan plan = plan_of(text, true);

    assert_int_equal(plan.arena_bytes, 128);
    assert_int_equal(plan.live_peak_bytes, 128);
    assert_int_equal(plan.places[4].root, 2);
}

static void without_sharing_everything_is_apart(void **state)
{
    static const char text[] = "%1 = input f32[4,8] \"x\"\n%2 = silu %1\n%3 = gelu %2\n"
                               "%4 = add %3, %1\noutput %4\n";

    tp_memory_plan plan = plan_of(text, false);

    assert_int_equal(plan.places[3].root, 3);
    assert_int_equal(plan.places[4].root, 4);
    assert_int_equal(plan.arena_bytes, 256); /* two alive at any time */
}

static void another_type_is_another_place(void **state)
{
    static const char text[] = "%1 = input f32[4,8] \"x\"\n%2 = silu %1 : bf16[4,8]\n"
                               "%3 = gelu %2 : f16[4,8]\n%4 = silu %3 : f32[4,8]\noutput %4\n";

    tp_memory_plan plan = plan_of(text, true);

    assert_int_equal(plan.places[3].root, 3);
    assert_int_equal(plan.places[4].root, 4);
}

static void parts_that_overlap_are_not_computed_in_place(void **state)
{
    static const char text[] = "%1 = input f32[4,8] \"x\"\n%2 = silu %1\n"
                               "%3, %4 = split %2 {n0=3, n1=5}\n%5, %6 = split %2 {n0=5, n1=3}\n"
                               "%7 = add %4, %5\noutput %7\n";

    tp_memory_plan plan = plan_of(text, true);

    assert_int_equal(plan.places[7].root, 7);
}

static void the_whole_is_kept_while_a_part_is_read(void **state)
{
    static const char text[] = "%1 = input f32[4,8] \"x\"\n%2 = silu %1\n"
                               "%3, %4 = split %2 {n0=4, n1=4}\n%5 = gelu %2\n"
                               "%6 = silu %4\noutput %5\noutput %6\n";

    tp_memory_plan plan = plan_of(text, true);

    assert_int_equal(plan.places[5].root, 5);
    assert_int_equal(plan.places[6].root, 2); /* the part itself may go */
    assert_int_equal(plan.places[6].offset, 16);
    assert_int_equal(plan.places[6].stride, 8);
}

static void a_part_is_kept_while_the_whole_is_read(void **state)
{
    static const char text[] = "%1 = input f32[4,8] \"x\"\n%2 = silu %1\n"
                               "%3, %4 = split %2 {n0=4, n1=4}\n%5 = gelu %4\n"
                               "%6 = silu %2\noutput %5\noutput %6\n";

    tp_memory_plan plan = plan_of(text, true);

    assert_int_equal(plan.places[5].root, 5);
}

static void a_part_of_a_part_is_kept_while_it_is_read(void **state)
{
    static const char text[] = "%1 = input f32[4,8] \"x\"\n%2 = silu %1\n"
                               "%3, %4 = split %2 {n0=2, n1=6}\n%5, %6 = split %4 {n0=3, n1=3}\n"
                               "%7 = gelu %4\n%8 = silu %6\noutput %7\noutput %8\n";

    tp_memory_plan plan = plan_of(text, true);

    assert_int_equal(plan.places[7].root, 7);
    assert_int_equal(plan.places[8].root, 2);
}

static void operands_are_written_into_the_columns_of_a_concat(void **state)
{
    static const char text[] = "%1 = input f32[4,2] \"x\"\n%2 = input f32[4,6] \"y\"\n"
                               "%3 = silu %1\n%4 = silu %2\n%5 = concat %3, %4\noutput %5\n";

    tp_memory_plan plan = plan_of(text, true);

    assert_true(plan.node_is_free[5]);
    assert_int_equal(plan.arena_bytes, 128);
    assert_int_equal(plan.places[4].root, 5);
    assert_int_equal(plan.places[4].offset, 8);
    assert_int_equal(plan.places[4].stride, 8);
}

static void concats_nest(void **state)
{
    static const char text[] = "%1 = input f32[4,2] \"x\"\n%2 = input f32[4,6] \"y\"\n"
                               "%3 = silu %2\n%4 = silu %1\n%5 = gelu %1\n%6 = concat %4, %5\n"
                               "%7 = concat %3, %6\noutput %7\n";

    tp_memory_plan plan = plan_of(text, true);

    assert_true(plan.node_is_free[6]);
    assert_int_equal(plan.places[5].root, 7);
    assert_int_equal(plan.places[5].offset, 32);
    assert_int_equal(plan.places[5].stride, 10);
}

static void a_concat_copies_what_others_read(void **state)
{
    static const char text[] = "%1 = input f32[4,2] \"x\"\n%2 = silu %1\n%3 = concat %2, %2\n"
                               "%4 = gelu %1\n%5 = concat %4, %1\n%6 = concat %3, %5\noutput %6\n";

    tp_memory_plan plan = plan_of(text, true);

    assert_false(plan.node_is_free[3]); /* twice the same */
    assert_false(plan.node_is_free[5]); /* an input */
    assert_true(plan.node_is_free[6]);
}

static void accumulators_keep_their_memory(void **state)
{
    static const char text[] = "%1 = input f32[4,8] \"x\"\n%2 = input f32[4,6] \"dy\"\n"
                               "%3 = state f32[6,8] \"acc\" role=gradient\n"
                               "%4 = linear_dw %1, %2, %3\n%5 = linear_dw %1, %2, %4\noutput %5\n";

    tp_memory_plan plan = plan_of(text, true);

    assert_int_equal(plan.places[5].kind, TP_PLACE_SOURCE);
    assert_int_equal(plan.places[5].root, 3);
    assert_int_equal(plan.arena_bytes, 0);
}

static void what_no_address_space_can_hold_is_refused(void **state)
{
    tp_memory_plan plan;
    tp_error err;
    tp_buf text = {0};
    tp_buf_adds(&text, "%1 = input f64[16777216,16777215] \"x\"\n"
                       "%2 = input f32[16777216,16777215] \"y\"\n");
    for (int i = 0; i < 16500; i++)
        tp_buf_addf(&text, "%%%d = silu %%2\n", i + 3);
    assert_int_equal(tp_graph_parse("t", text.data, text.len, &g, NULL), TP_OK);

    assert_int_equal(tp_plan_memory(&g, true, &arena, &plan, &err), TP_ERR_NOMEM);

    assert_string_equal(err.message, "the values of the graph exceed all address space");
    tp_buf_release(&text);
}

#define PLAN_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAN_TEST(elementwise_results_take_the_place_of_a_dying_operand),
        PLAN_TEST(without_sharing_everything_is_apart),
        PLAN_TEST(another_type_is_another_place),
        PLAN_TEST(parts_that_overlap_are_not_computed_in_place),
        PLAN_TEST(the_whole_is_kept_while_a_part_is_read),
        PLAN_TEST(a_part_is_kept_while_the_whole_is_read),
        PLAN_TEST(a_part_of_a_part_is_kept_while_it_is_read),
        PLAN_TEST(operands_are_written_into_the_columns_of_a_concat),
        PLAN_TEST(concats_nest),
        PLAN_TEST(a_concat_copies_what_others_read),
        PLAN_TEST(accumulators_keep_their_memory),
        PLAN_TEST(what_no_address_space_can_hold_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
