/* The forward meaning of ref: values that PyTorch 2 computes in double precision
 * for the same inputs.  Gradients are left to the finite differences of test_ops;
 * fused ops are compared with what they are made of. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/backend/ref/load.h"

static tp_operand matrix(void *data, tp_dtype dtype, int64_t rows, int64_t columns)
{
    return (tp_operand){
        .data = data, .dtype = dtype, .rank = 2, .dim = {rows, columns}, .stride = columns};
}

static tp_operand vector(void *data, tp_dtype dtype, int64_t n)
{
    return (tp_operand){.data = data, .dtype = dtype, .rank = 1, .dim = {n, 1}, .stride = 1};
}

static tp_operand f32(float *data, int64_t rows, int64_t columns)
{
    return matrix(data, TP_DTYPE_F32, rows, columns);
}

static tp_operand f32_vector(float *data, int64_t n) { return vector(data, TP_DTYPE_F32, n); }

static tp_operand i32(int32_t *data, int64_t n) { return vector(data, TP_DTYPE_I32, n); }

static void run(tp_launch *launch)
{
    static double workspace[1024];
    launch->kernel = tp_kernel_find_prepared(&tp_backend_ref, launch);
    assert_non_null(launch->kernel);
    if (launch->kernel->workspace)
        assert_true(tp_kernel_workspace(launch->kernel, launch) <= sizeof workspace);
    launch->workspace = workspace;
    launch->workspace_bytes = sizeof workspace;
    launch->kernel->run(launch);
}

static void assert_values(const float *actual, const double *expected, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!(fabs((double)actual[i] - expected[i]) <= 1e-6 * (1 + fabs(expected[i]))))
            fail_msg("element %zu is %.9g, expected %.9g", i, (double)actual[i], expected[i]);
    }
}

static const float points[6] = {-3, -1, -0.5f, 0, 0.25f, 2};

static void assert_activation(tp_op op, int use_tanh, const double *expected)
{
    float y[6];
    tp_launch launch = {.op = op,
                        .n_in = 1,
                        .n_out = 1,
                        .attrs.tanh = use_tanh,
                        .in = {f32((float *)points, 2, 3)},
                        .out = {f32(y, 2, 3)}};

    run(&launch);

    assert_values(y, expected, 6);
}

static void silu_is_x_times_its_sigmoid(void **state)
{
    assert_activation(
        TP_OP_silu, 0,
        (double[]){-0.142277620, -0.268941421, -0.188770334, 0, 0.140544125, 1.761594156});
}

static void gelu_has_two_kinds(void **state)
{
    assert_activation(
        TP_OP_gelu, 0,
        (double[]){-0.004049694, -0.158655254, -0.154268769, 0, 0.149676581, 1.954499736});
    assert_activation(
        TP_OP_gelu, 1,
        (double[]){-0.003637392, -0.158808009, -0.154285990, 0, 0.149675351, 1.954597694});
}

static void swiglu_gates_up(void **state)
{
    float gate[2] = {-1, 2}, up[2] = {10, 0.5f}, y[2];
    tp_launch launch = {.op = TP_OP_swiglu,
                        .n_in = 2,
                        .n_out = 1,
                        .in = {f32(gate, 1, 2), f32(up, 1, 2)},
                        .out = {f32(y, 1, 2)}};

    run(&launch);

    assert_values(y, (double[]){-2.68941421, 0.880797078}, 2);
}

static void cast_rounds_to_nearest_even(void **state)
{
    /* 1 + 2^-8 lies halfway between 1 and 1 + 2^-7; 1 + 3 * 2^-8 between odd and even. */
    float x[4] = {1.00390625f, 1.01171875f, -65520, NAN};
    tp_bf16 brain[4];
    uint16_t half[4];
    tp_launch launch = {.op = TP_OP_cast,
                        .n_in = 1,
                        .n_out = 1,
                        .in = {f32(x, 1, 4)},
                        .out = {matrix(brain, TP_DTYPE_BF16, 1, 4)}};

    run(&launch);
    launch.out[0] = matrix(half, TP_DTYPE_F16, 1, 4);
    run(&launch);

    assert_int_equal(brain[0], 0x3f80);
    assert_int_equal(brain[1], 0x3f82);
    assert_int_equal(brain[2], 0xc780);
    assert_true(isnan(tp_bf16_to_f32(brain[3])) != 0);
    assert_int_equal(half[0], 0x3c04);
    assert_int_equal(half[1], 0x3c0c);
    assert_int_equal(half[2], 0xfc00);
    assert_int_equal(half[3] & 0x7fff, 0x7e00);
}

static void every_f16_survives_a_round_trip(void **state)
{
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        if ((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0)
            continue; /* a NaN */
        assert_int_equal(ref_f64_to_f16(ref_f16_to_f64((uint16_t)bits)), bits);
    }
    assert_true(ref_f16_to_f64(0x0001) == 0x1p-24);
    assert_true(ref_f16_to_f64(0x7bff) == 65504);
    assert_true(ref_f16_to_f64(0xc000) == -2);
    assert_int_equal(ref_f64_to_f16(0x1p-25), 0);        /* halfway to the least: even */
    assert_int_equal(ref_f64_to_f16(0x1.8p-24), 2);      /* halfway between 1 and 2 quanta */
    assert_int_equal(ref_f64_to_f16(0x1.ffep0), 0x4000); /* halfway: carries into the exponent */
}

static void split_views_are_read_by_their_stride(void **state)
{
    float wide[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[4];
    tp_operand left = f32(wide, 2, 2), right = f32(wide + 2, 2, 2);
    left.stride = right.stride = 4;
    tp_launch launch = {
        .op = TP_OP_add, .n_in = 2, .n_out = 1, .in = {left, right}, .out = {f32(y, 2, 2)}};

    run(&launch);

    assert_values(y, (double[]){4, 6, 12, 14}, 4);
}

static void concat_joins_columns(void **state)
{
    float a[2] = {1, 2}, b[4] = {3, 4, 5, 6}, y[6];
    tp_launch launch = {.op = TP_OP_concat,
                        .n_in = 2,
                        .n_out = 1,
                        .in = {f32(a, 2, 1), f32(b, 2, 2)},
                        .out = {f32(y, 2, 3)}};

    run(&launch);

    assert_values(y, (double[]){1, 3, 4, 2, 5, 6}, 6);
}

static void embed_gives_zeros_for_unknown_ids(void **state)
{
    int32_t ids[4] = {1, -1, 2, 0};
    float table[4] = {1, 2, 3, 4}, y[8];
    tp_launch launch = {.op = TP_OP_embed,
                        .n_in = 2,
                        .n_out = 1,
                        .in = {i32(ids, 4), f32(table, 2, 2)},
                        .out = {f32(y, 4, 2)}};

    run(&launch);

    assert_values(y, (double[]){3, 4, 0, 0, 0, 0, 1, 2}, 8);
}

static float norm_x[8] = {1, 2, -3, 4, 0.5f, -0.5f, 1.5f, 0};
static float norm_w[4] = {1, 2, 0.5f, -1}, norm_b[4] = {0.1f, 0.2f, 0.3f, 0.4f};

static void rmsnorm_of_whole_rows(void **state)
{
    float y[8], rstd[2];
    tp_launch launch = {.op = TP_OP_rmsnorm,
                        .n_in = 2,
                        .n_out = 2,
                        .attrs.eps = 1e-5f,
                        .in = {f32(norm_x, 2, 4), f32_vector(norm_w, 4)},
                        .out = {f32(y, 2, 4), f32(rstd, 2, 1)}};

    run(&launch);

    assert_values(y,
                  (double[]){0.365148128, 1.460592513, -0.547722192, -1.460592513, 0.603018304,
                             -1.206036607, 0.904527455, 0},
                  8);
    assert_values(rstd, (double[]){0.365148128, 1.206036607}, 2);
}

static void rmsnorm_of_slices(void **state)
{
    float w[2] = {1, 2}, y[8], rstd[4];
    tp_launch launch = {.op = TP_OP_rmsnorm,
                        .n_in = 2,
                        .n_out = 2,
                        .attrs.eps = 1e-5f,
                        .in = {f32(norm_x, 2, 4), f32_vector(w, 2)},
                        .out = {f32(y, 2, 4), f32(rstd, 2, 2)}};

    run(&launch);

    assert_values(y,
                  (double[]){0.632454267, 2.529817069, -0.848527798, 2.262740795, 0.999980001,
                             -1.999960001, 1.414207277, 0},
                  8);
}

static void layernorm_centres_and_scales(void **state)
{
    float y[8], mean[2], rstd[2];
    tp_launch launch = {.op = TP_OP_layernorm,
                        .n_in = 3,
                        .n_out = 3,
                        .attrs.eps = 1e-5f,
                        .in = {f32(norm_x, 2, 4), f32_vector(norm_w, 4), f32_vector(norm_b, 4)},
                        .out = {f32(y, 2, 4), f32_vector(mean, 2), f32_vector(rstd, 2)}};

    run(&launch);

    assert_values(y,
                  (double[]){0.1, 0.984463937, -0.484463937, -0.776695906, 0.269029306,
                             -2.166410278, 1.060631875, 0.907087917},
                  8);
    assert_values(mean, (double[]){1, 0.375}, 2);
    assert_values(rstd, (double[]){0.392231969, 1.352234444}, 2);
}

static void add_rmsnorm_normalises_the_rounded_sum(void **state)
{
    float x[2] = {1, 3}, res[2] = {0x1p-10f, 0}, w[2] = {1, 1}, y[2], rstd[1];
    tp_bf16 sum[2];
    tp_launch launch = {.op = TP_OP_add_rmsnorm,
                        .n_in = 3,
                        .n_out = 3,
                        .in = {f32(x, 1, 2), f32(res, 1, 2), f32_vector(w, 2)},
                        .out = {matrix(sum, TP_DTYPE_BF16, 1, 2), f32(y, 1, 2), f32(rstd, 1, 1)}};

    run(&launch);

    assert_int_equal(sum[0], 0x3f80);                          /* 1: the residual is lost */
    assert_values(y, (double[]){0.447213595, 1.341640786}, 2); /* 1/sqrt(5), 3/sqrt(5) */
    assert_values(rstd, (double[]){0.447213595}, 1);
}

static void rope_rotates_halves_and_back(void **state)
{
    float x[12] = {1, 2, 3, 4, 1, 2, 3, 4, -1, 0.5f, 2, -2}, y[12], back[12];
    float table[16] = {1,
                       1,
                       0,
                       0,
                       0.540302306f,
                       0.999950000f,
                       0.841470985f,
                       0.009999833f,
                       -0.416146837f,
                       0.999800007f,
                       0.909297427f,
                       0.019998667f,
                       -0.989992497f,
                       0.999550034f,
                       0.141120008f,
                       0.029995500f};
    int32_t positions[3] = {0, 1, 3};
    tp_launch launch = {.op = TP_OP_rope,
                        .n_in = 3,
                        .n_out = 1,
                        .attrs.head_dim = 4,
                        .in = {f32(x, 3, 4), i32(positions, 3), f32(table, 4, 4)},
                        .out = {f32(y, 3, 4)}};

    run(&launch);

    assert_values(y,
                  (double[]){1, 2, 3, 4, -1.984110649, 1.959900667, 2.462377902, 4.019799668,
                             0.707752480, 0.559766017, -2.121105001, -1.984102317},
                  12);

    launch.in[0] = f32(y, 3, 4);
    launch.out[0] = f32(back, 3, 4);
    launch.attrs.inverse = 1;
    run(&launch);

    assert_values(back, (double[]){1, 2, 3, 4, 1, 2, 3, 4, -1, 0.5, 2, -2}, 12);
}

static void linear_takes_both_layouts(void **state)
{
    float x[2] = {1, 2}, w[6] = {1, 2, 3, 4, 5, 6}, b[3] = {10, 20, 30}, y[3];
    tp_launch launch = {.op = TP_OP_linear,
                        .n_in = 3,
                        .n_out = 1,
                        .in = {f32(x, 1, 2), f32(w, 3, 2), f32_vector(b, 3)},
                        .out = {f32(y, 1, 3)}};

    run(&launch);
    assert_values(y, (double[]){15, 31, 47}, 3);

    launch.attrs.transposed = 1;
    launch.in[1] = f32(w, 2, 3);
    run(&launch);
    assert_values(y, (double[]){19, 32, 45}, 3);
}

static void linear_gelu_keeps_what_its_gradient_needs(void **state)
{
    float x[1] = {2}, w[3] = {-0.5f, 0.125f, 1}, act[3], pre[3];
    tp_launch launch = {.op = TP_OP_linear_gelu,
                        .n_in = 3,
                        .n_out = 2,
                        .in = {f32(x, 1, 1), f32(w, 3, 1)},
                        .out = {f32(act, 1, 3), f32(pre, 1, 3)}};

    run(&launch);

    assert_values(act, (double[]){-0.158655254, 0.149676581, 1.954499736}, 3);
    assert_values(pre, (double[]){-1, 0.25, 2}, 3);
}

/* Two query heads of two dimensions share one key/value head. */
static float attention_q[12] = {1, 0, 0.5f, -1, 0, 1, 2, 0.5f, -1, 1, 0.25f, 1};
static float attention_k[6] = {1, 2, 0.5f, -1, 2, 0}, attention_v[6] = {1, -1, 3, 0.5f, -2, 4};
static const double attention_o[12] = {1,           -1,           1,           -1,
                                       1.364851048, -0.726361714, 1.445400278, -0.665949792,
                                       0.936156164, 0.023696483,  0.488855286, 0.474802581};

static void attention_is_causal_and_leaves_padding_zero(void **state)
{
    float q[16] = {0}, k[8] = {9, 9}, v[8] = {9, 9}, o[16], lse[8];
    int32_t cu[4] = {0, 3, 3, 3};
    for (int i = 0; i < 12; i++)
        q[i] = attention_q[i];
    for (int i = 0; i < 6; i++) {
        k[i] = attention_k[i];
        v[i] = attention_v[i];
    }
    tp_launch launch = {.op = TP_OP_attention,
                        .n_in = 4,
                        .n_out = 2,
                        .attrs = {.heads = 2, .kv_heads = 1, .head_dim = 2, .scale = 0.5f},
                        .in = {f32(q, 4, 4), f32(k, 4, 2), f32(v, 4, 2), i32(cu, 4)},
                        .out = {f32(o, 4, 4), f32(lse, 2, 4)}};

    run(&launch);

    assert_values(o, attention_o, 12);
    assert_values(o + 12, (double[]){0, 0, 0, 0}, 4);
    assert_values(
        lse, (double[]){0.5, 1.201413278, 0.911867871, 0, -0.75, 1.751929081, 1.611414117, 0}, 8);
}

static void attention_does_not_cross_sequences(void **state)
{
    float o[12], lse[6];
    int32_t cu[4] = {0, 1, 2, 3};
    tp_launch launch = {
        .op = TP_OP_attention,
        .n_in = 4,
        .n_out = 2,
        .attrs = {.heads = 2, .kv_heads = 1, .head_dim = 2, .scale = 0.5f},
        .in = {f32(attention_q, 3, 4), f32(attention_k, 3, 2), f32(attention_v, 3, 2), i32(cu, 4)},
        .out = {f32(o, 3, 4), f32(lse, 2, 3)}};

    run(&launch);

    assert_values(o, (double[]){1, -1, 1, -1, 3, 0.5, 3, 0.5, -2, 4, -2, 4}, 12);
}

/* Two sequences; the first row of the second is in block 1 already, then come its second,
 * padding, its third, and the first of the other, which clears block 0. */
static void paged_attention_continues_sequences(void **state)
{
    float q[16] = {0, 1, 2, 0.5f, 7, 7, 7, 7, -1, 1, 0.25f, 1, 5, 6, 7, 8}, o[16];
    float k[8] = {0.5f, -1, 7, 7, 2, 0, 3, 4}, v[8] = {3, 0.5f, 7, 7, -2, 4, -5, 6};
    /* blocks of two places: keys as [d][place], values as [place][d] */
    float cache_k[12] = {9, 9, 9, 9, 1, 9, 2, 9, 9, 9, 9, 9};
    float cache_v[12] = {9, 9, 9, 9, 1, -1, 9, 9, 9, 9, 9, 9};
    int32_t positions[4] = {1, -1, 2, 0}, slots[4] = {1, 0, 1, 0}, tables[4] = {0, 7, 1, 2};
    tp_operand table = i32(tables, 4);
    table.rank = 2;
    table.dim[0] = table.dim[1] = table.stride = 2;
    tp_launch launch = {.op = TP_OP_paged_attention,
                        .n_in = 8,
                        .n_out = 3,
                        .attrs = {.heads = 2, .kv_heads = 1, .head_dim = 2, .scale = 0.5f},
                        .in = {f32(q, 4, 4), f32(k, 4, 2), f32(v, 4, 2), f32(cache_k, 3, 4),
                               f32(cache_v, 3, 4), i32(positions, 4), i32(slots, 4), table},
                        .out = {f32(o, 4, 4), f32(cache_k, 3, 4), f32(cache_v, 3, 4)}};

    run(&launch);

    assert_values(o, attention_o + 4, 4);
    assert_values(o + 4, (double[]){0, 0, 0, 0}, 4);
    assert_values(o + 8, attention_o + 8, 4);
    assert_values(o + 12, (double[]){-5, 6, -5, 6}, 4);
    assert_values(cache_k, (double[]){3, 0, 4, 0, 1, 0.5, 2, -1, 2, 0, 0, 0}, 12);
    assert_values(cache_v, (double[]){-5, 6, 0, 0, 1, -1, 3, 0.5, -2, 4, 0, 0}, 12);
}

static void panels_hold_64_outputs_side_by_side(void **state)
{
    float w[6] = {1, 2, 3, 4, 5, 6}, panels[256], x[3] = {1, 10, 100}, b[2] = {0.5f, -0.5f}, y[2];
    tp_launch pack = {.op = TP_OP_pack_panels,
                      .n_in = 1,
                      .n_out = 1,
                      .in = {f32(w, 2, 3)},
                      .out = {f32(panels, 1, 256)}};
    tp_launch product = {.op = TP_OP_linear_panels,
                         .n_in = 3,
                         .n_out = 1,
                         .attrs = {.n0 = 2},
                         .in = {f32(x, 1, 3), f32(panels, 1, 256), f32_vector(b, 2)},
                         .out = {f32(y, 1, 2)}};

    run(&pack);
    run(&product);

    assert_values(panels, (double[]){1, 4, 0}, 3);
    assert_values(panels + 64, (double[]){2, 5, 0}, 3);
    assert_values(panels + 192, (double[]){0, 0, 0}, 3);
    assert_values(y, (double[]){321.5, 653.5}, 2);
}

static void panels_of_bf16_hold_pairs(void **state)
{
    float w[3] = {1, 2, 3}; /* K = 3, N = 1, transposed */
    tp_bf16 panels[256];
    tp_operand out = {
        .data = panels, .dtype = TP_DTYPE_BF16, .rank = 2, .dim = {1, 256}, .stride = 256};
    tp_launch pack = {.op = TP_OP_pack_panels,
                      .n_in = 1,
                      .n_out = 1,
                      .attrs = {.transposed = 1},
                      .in = {f32(w, 3, 1)},
                      .out = {out}};

    run(&pack);

    assert_int_equal(panels[0], 0x3f80); /* 1, 2 | 3, 0 */
    assert_int_equal(panels[1], 0x4000);
    assert_int_equal(panels[128], 0x4040);
    assert_int_equal(panels[129], 0);
}

/* Probabilities of the four ids: 0.1, 0.2, 0.3, 0.4. */
static void sample_cuts_and_draws(void **state)
{
    float logits[28], params[28] = {0,    0, 0,     0,    /* greedy: 3 */
                                    1,    0, 0,     0,    /* 0.25 of all: 1 */
                                    1,    2, 0,     0,    /* 0.4 of {2, 3}: 2 */
                                    1,    0, 0.65f, 0,    /* 0.5 of {2, 3}: 3 */
                                    1,    0, 0,     0.4f, /* 0.2 of {1, 2, 3}: 1 */
                                    0.5f, 0, 0,     0,    /* 0.16 of 1, 4, 9, 16 / 30: 1 */
                                    1,    3, 0.7f,  0};   /* 0.99 of {2, 3}: 3 */
    float logp[7], drawn[7];
    double draws[7] = {0.9, 0.25, 0.4, 0.5, 0.2, 0.16, 0.99};
    int32_t ids[7];
    for (int i = 0; i < 28; i++)
        logits[i] = logf(0.1f * (float)(i % 4 + 1)) + 3;
    tp_operand u = {.data = draws, .dtype = TP_DTYPE_F64, .rank = 1, .dim = {7, 1}, .stride = 1};
    tp_launch launch = {.op = TP_OP_sample,
                        .n_in = 3,
                        .n_out = 3,
                        .in = {f32(logits, 7, 4), f32(params, 7, 4), u},
                        .out = {i32(ids, 7), f32_vector(logp, 7), f32_vector(drawn, 7)}};

    run(&launch);

    static const int32_t wanted[7] = {3, 1, 2, 3, 1, 1, 3};
    assert_memory_equal(ids, wanted, sizeof ids);
    assert_values(logp, (double[]){-0.916291, -1.609438, -1.203973, -0.916291}, 4);
    assert_values(
        drawn, (double[]){0, -1.609438, -0.847298, -0.559616, -1.504077, -2.014903, -0.559616}, 7);

    launch.attrs.n0 = 3; /* the likeliest id has no token */
    logits[26] = NAN;
    run(&launch);
    assert_int_equal(ids[0], 2);
    assert_int_equal(ids[6], -1);
    assert_true(isnan(logp[6]) && isnan(drawn[6]));
}

static void cross_entropy_ignores_weightless_tokens(void **state)
{
    float logits[9] = {1, 2, 3, 0, 0, 0, -1, 4, 2}, weights[3] = {1, 0, 0.5f};
    float loss[1], logp[3], lse[3];
    int32_t targets[3] = {2, -100, 1};
    tp_launch launch = {.op = TP_OP_cross_entropy,
                        .n_in = 3,
                        .n_out = 3,
                        .in = {f32(logits, 3, 3), i32(targets, 3), f32_vector(weights, 3)},
                        .out = {f32_vector(loss, 1), f32_vector(logp, 3), f32_vector(lse, 3)}};

    run(&launch);

    assert_values(loss, (double[]){0.474028581}, 1);
    assert_values(logp, (double[]){-0.407605964, 0, -0.132845234}, 3);
    assert_values(lse, (double[]){3.407605964, 1.098612289, 4.132845234}, 3);
}

/* The same logits, as products of x with the unit vectors; a NaN where the weight is 0. */
static void linear_ce_is_cross_entropy_of_a_product(void **state)
{
    float x[9] = {1, 2, 3, NAN, NAN, 0, -1, 4, 2}, w[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    float weights[3] = {1, 0, 0.5f}, scale[1] = {2}, loss[1], logp[3], dx[9], dw[9];
    int32_t targets[3] = {2, -100, 1};
    tp_launch launch = {.op = TP_OP_linear_ce,
                        .n_in = 4,
                        .n_out = 3,
                        .in = {f32(x, 3, 3), f32(w, 3, 3), i32(targets, 3), f32_vector(weights, 3)},
                        .out = {f32_vector(loss, 1), f32_vector(logp, 3)}};

    run(&launch);
    assert_values(loss, (double[]){0.474028581}, 1);
    assert_values(logp, (double[]){-0.407605964, 0, -0.132845234}, 3);

    launch.op = TP_OP_linear_ce_train;
    launch.n_in = 5;
    launch.n_out = 4;
    launch.in[4] = f32_vector(scale, 1);
    launch.out[2] = f32(dx, 3, 3);
    launch.out[3] = f32(dw, 3, 3);
    loss[0] = logp[0] = 0;
    run(&launch);
    assert_values(loss, (double[]){0.474028581}, 1);
    assert_values(logp, (double[]){-0.407605964, 0, -0.132845234}, 3);
    /* 2 * weight * (softmax - one at the target), as the rows of w are unit vectors */
    assert_values(dx,
                  (double[]){0.180061147, 0.489456942, -0.669518089, 0, 0, 0, 0.005899750,
                             -0.124399195, 0.118499445},
                  9);
    for (int i = 0; i < 9; i++)
        assert_true(isnan(dw[i]) == 0);
}

static void sumsq_adds_to_its_accumulator(void **state)
{
    float x[3] = {1, -2, 3};
    double sum[1] = {100};
    tp_launch launch = {.op = TP_OP_sumsq,
                        .n_in = 2,
                        .n_out = 1,
                        .accumulate = true,
                        .in = {f32_vector(x, 3), vector(sum, TP_DTYPE_F64, 1)},
                        .out = {vector(sum, TP_DTYPE_F64, 1)}};

    run(&launch);
    assert_true(sum[0] == 114);

    launch.accumulate = false;
    run(&launch);
    assert_true(sum[0] == 14);
}

static void adamw_follows_torch(void **state)
{
    float p[3] = {1, -2, 0.5f}, m[3] = {0}, v[3] = {0};
    float gradients[2][3] = {{1, -2, 4}, {0.2f, 6, -2}}; /* twice torch's: the factor is 0.5 */
    double scalars[8] = {0.1, 0.9, 0.99, 1e-8, 0.2, 0.1, 0.01, 0.5};
    tp_bf16 shadow[3];
    tp_launch launch = {.op = TP_OP_adamw,
                        .n_in = 6,
                        .n_out = 4,
                        .attrs.decay = 1,
                        .in = {f32_vector(p, 3), f32_vector(gradients[0], 3), f32_vector(m, 3),
                               f32_vector(v, 3), vector(scalars, TP_DTYPE_F64, 8),
                               vector(shadow, TP_DTYPE_BF16, 3)},
                        .out = {f32_vector(p, 3), f32_vector(m, 3), f32_vector(v, 3),
                                vector(shadow, TP_DTYPE_BF16, 3)}};

    run(&launch);
    assert_values(p, (double[]){0.880000002, -1.860000001, 0.39}, 3);

    launch.in[1] = f32_vector(gradients[1], 3);
    scalars[5] = 0.19;
    scalars[6] = 0.0199;
    run(&launch);
    assert_values(p, (double[]){0.781927594, -1.872129816, 0.355530058}, 3);
    assert_values(m, (double[]){0.055, 0.21, 0.08}, 3);
    assert_values(v, (double[]){0.002575, 0.0999, 0.0496}, 3);
    assert_int_equal(shadow[0], 0x3f48); /* 0.78125 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silu_is_x_times_its_sigmoid),
        cmocka_unit_test(gelu_has_two_kinds),
        cmocka_unit_test(swiglu_gates_up),
        cmocka_unit_test(cast_rounds_to_nearest_even),
        cmocka_unit_test(every_f16_survives_a_round_trip),
        cmocka_unit_test(split_views_are_read_by_their_stride),
        cmocka_unit_test(concat_joins_columns),
        cmocka_unit_test(embed_gives_zeros_for_unknown_ids),
        cmocka_unit_test(rmsnorm_of_whole_rows),
        cmocka_unit_test(rmsnorm_of_slices),
        cmocka_unit_test(layernorm_centres_and_scales),
        cmocka_unit_test(add_rmsnorm_normalises_the_rounded_sum),
        cmocka_unit_test(rope_rotates_halves_and_back),
        cmocka_unit_test(linear_takes_both_layouts),
        cmocka_unit_test(linear_gelu_keeps_what_its_gradient_needs),
        cmocka_unit_test(attention_is_causal_and_leaves_padding_zero),
        cmocka_unit_test(attention_does_not_cross_sequences),
        cmocka_unit_test(paged_attention_continues_sequences),
        cmocka_unit_test(panels_hold_64_outputs_side_by_side),
        cmocka_unit_test(panels_of_bf16_hold_pairs),
        cmocka_unit_test(sample_cuts_and_draws),
        cmocka_unit_test(cross_entropy_ignores_weightless_tokens),
        cmocka_unit_test(linear_ce_is_cross_entropy_of_a_product),
        cmocka_unit_test(sumsq_adds_to_its_accumulator),
        cmocka_unit_test(adamw_follows_torch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
