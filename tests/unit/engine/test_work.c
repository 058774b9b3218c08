/* test_work.c - work that was done, and its share of what the machine can do. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/exec/machine.h"
#include "engine/exec/work.h"

static tp_operand f32(void *data, int64_t rows, int64_t columns)
{
    return (tp_operand){.span = {data, 0}, /* only whether it is there counts */
                        .dtype = TP_DTYPE_F32,
                        .rank = columns > 1 ? 2 : 1,
                        .dim = {rows, columns},
                        .stride = columns};
}

static void rows_of_weight_0_are_no_work(void **state)
{
    (void)state;
    float weights[4] = {0, 0.5f, 0, 0}, none[4] = {0}, x[8] = {0};
    tp_launch l = {.op = TP_OP_linear_ce_train, .n_in = 4, .n_out = 4};
    l.in[0] = l.out[2] = f32(x, 4, 2);
    l.in[1] = f32(x, 3, 2);
    l.in[3] = f32(weights, 4, 1);
    tp_cost planned = {.flops = 400, .bytes = 1000};
    tp_cost done = tp_work_of(&l, weights, planned, 0);
    assert_true(done.flops == 100);
    assert_true(done.bytes == 1000 - 0.75 * (32 + 32)); /* three of four rows of x and dx */
    done = tp_work_of(&l, none, planned, 0);
    assert_true(done.flops == 0);
    assert_true(done.bytes == 1000 - 64 - 24); /* nor the head */
}

static void a_loss_that_wants_every_row_does_all(void **state)
{
    (void)state;
    float weights[2] = {0, 0}, x[4] = {0};
    tp_launch l = {.op = TP_OP_linear_ce, .n_in = 4, .n_out = 3};
    l.in[0] = f32(x, 2, 2);
    l.in[1] = f32(x, 2, 2);
    l.in[3] = f32(weights, 2, 1);
    tp_cost planned = {.flops = 16, .bytes = 32};
    assert_true(tp_work_of(&l, weights, planned, 0).flops == 0);
    l.out[2] = f32(x, 2, 1);
    assert_true(tp_work_of(&l, weights, planned, 0).flops == 16);
}

static void attention_works_inside_sequences(void **state)
{
    (void)state;
    int32_t cu[5] = {0, 3, 5, 5, 5}; /* 3 and 2 tokens, 3 of padding: 6 + 3 pairs */
    float q[16] = {0};
    tp_launch l = {.op = TP_OP_attention, .n_in = 4, .n_out = 2};
    l.in[0] = f32(q, 8, 2);
    l.in[3] = (tp_operand){.dtype = TP_DTYPE_I32, .rank = 1, .dim = {5, 1}, .stride = 1};
    tp_cost planned = {.flops = 8 * 4.5 * 10, .bytes = 7}; /* 8 rows of 4.5 keys, 10 for a pair */
    assert_true(fabs(tp_work_of(&l, cu, planned, 4.5).flops - 90) < 1e-9);
    assert_true(tp_work_of(&l, cu, planned, 4.5).bytes == 7);
    l.op = TP_OP_attention_grad;
    l.in[6] = l.in[3];
    assert_true(fabs(tp_work_of(&l, cu, planned, 4.5).flops - 90) < 1e-9);
}

static void a_share_above_the_limit_says_why(void **state)
{
    (void)state;
    tp_machine m = {.unit_f32_flops = 100, .unit_bf16_flops = 200, .copy_bytes = 10};
    tp_share s = tp_machine_share(&m, TP_DTYPE_F32, 50, 1, 1);
    assert_int_equal(s.kind, TP_SHARE_KNOWN);
    assert_true(s.share == 0.5);
    s = tp_machine_share(&m, TP_DTYPE_F32, 104, 1, 1); /* as clocks vary */
    assert_int_equal(s.kind, TP_SHARE_KNOWN);
    s = tp_machine_share(&m, TP_DTYPE_F32, 50, 20, 1);
    assert_int_equal(s.kind, TP_SHARE_CACHED);
    s = tp_machine_share(&m, TP_DTYPE_F32, 106, 20, 1);
    assert_int_equal(s.kind, TP_SHARE_IMPOSSIBLE);
    assert_int_equal(tp_machine_share(NULL, TP_DTYPE_F32, 1, 1, 1).kind, TP_SHARE_UNKNOWN);
    assert_int_equal(tp_machine_share(&m, TP_DTYPE_F32, NAN, 1, 1).kind, TP_SHARE_UNKNOWN);
    assert_int_equal(tp_machine_share(&m, TP_DTYPE_F32, 1, 1, 0).kind, TP_SHARE_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_weight_0_are_no_work),
        cmocka_unit_test(a_loss_that_wants_every_row_does_all),
        cmocka_unit_test(attention_works_inside_sequences),
        cmocka_unit_test(a_share_above_the_limit_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
