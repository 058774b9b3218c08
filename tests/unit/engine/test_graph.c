/* test_graph.c - graphs: building, printing, parsing, verifying. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/ir/graph.h"

static const int64_t ROWS[] = {4, 8}, VECTOR[] = {8};

static tp_graph new_graph(void)
{
    tp_graph g;
    assert_int_equal(tp_graph_init(&g, NULL), TP_OK);
    return g;
}

/* ---- text ---- */

static const char everything[] =
    "%1 = input i32[4] \"tokens\"\n"
    "%2 = input f32[1] \"scale\"\n"
    "%3 = state f32[10,8] \"embed \\\"quoted\\\" \\\\ \\n\" role=weight\n"
    "%4 = state f32[8] \"norm\" role=weight\n"
    "%5 = state bf16[10,8] \"head.bf16\" role=copy of \"head\"\n"
    "%6 = state f32[10,8] \"grad.head\" role=gradient\n"
    "%7 = embed %1, %3 : bf16[4,8] \"embed\"\n"
    "%8, %9 = rmsnorm %7, %4 {eps=1e-05} : bf16[4,8], f32[4,1] block=0 \"layers.0.norm\"\n"
    "%10 = linear %8, %5, _ : bf16[4,10] block=0\n"
    "%11, %12 = split %8 {n0=3, n1=5} : bf16[4,3], bf16[4,5] block=31 phase=backward clone\n"
    "%13 = linear_dw %8, %10, %6 : f32[10,8] phase=backward \"a \\\"label\\\"\"\n"
    "%14 = gelu %8 {tanh=1} : f16[4,8] phase=update\n"
    "output %13\n"
    "output %11\n"
    "output %11\n";

static void what_is_printed_is_parsed(void **state)
{
    tp_graph g;
    tp_buf text = {0};
    tp_error err;

    assert_int_equal(tp_graph_parse("t", everything, strlen(everything), &g, &err), TP_OK);
    tp_graph_print(&g, &text);

    assert_string_equal(tp_buf_str(&text), everything);
    tp_buf_release(&text);
    tp_graph_release(&g);
}

static void numbers_may_have_gaps_and_lines_comments(void **state)
{
    static const char text[] = "# a graph\n\n%7 = input f32[4,8] \"x\" # the input\r\n"
                               "   %3 =   silu %7\t\noutput %3";
    tp_graph g;
    tp_buf out = {0};

    assert_int_equal(tp_graph_parse("t", text, strlen(text), &g, NULL), TP_OK);
    tp_graph_print(&g, &out);

    assert_string_equal(tp_buf_str(&out), "%1 = input f32[4,8] \"x\"\n%2 = silu %1 : f32[4,8]\n"
                                          "output %2\n");
    tp_buf_release(&out);
    tp_graph_release(&g);
}

static void built_graphs_print(void **state)
{
    tp_graph g = new_graph();
    tp_ref x = tp_graph_input(&g, "x", TP_DTYPE_F32, 2, ROWS);
    tp_ref w = tp_graph_state(&g, &(tp_tensor){.name = "w", .rank = 1, .dim = {VECTOR[0]}});
    g.block = 2;
    tp_ref in[] = {x, w};
    tp_attrs attrs = {.eps = 1e-6f};
    tp_ref y = tp_graph_op(&g, TP_OP_rmsnorm, &attrs, 2, in, "norm");
    tp_graph_output(&g, y);
    tp_buf text = {0};

    tp_graph_print(&g, &text);

    assert_string_equal(tp_buf_str(&text),
                        "%1 = input f32[4,8] \"x\"\n"
                        "%2 = state f32[8] \"w\" role=weight\n"
                        "%3, %4 = rmsnorm %1, %2 {eps=1e-06} : f32[4,8], f32[4,1] block=2 "
                        "\"norm\"\n"
                        "output %3\n");
    tp_buf_release(&text);
    tp_graph_release(&g);
}

static void floats_read_back_the_same(void **state)
{
    tp_graph g = new_graph(), again;
    tp_ref x = tp_graph_input(&g, "x", TP_DTYPE_F32, 2, ROWS);
    tp_ref w = tp_graph_state(&g, &(tp_tensor){.name = "w", .rank = 1, .dim = {VECTOR[0]}});
    tp_ref in[] = {x, w};
    tp_attrs attrs = {.eps = 0.0883883461f};
    tp_graph_op(&g, TP_OP_rmsnorm, &attrs, 2, in, NULL);
    tp_buf text = {0};
    tp_graph_print(&g, &text);

    assert_int_equal(tp_graph_parse("t", text.data, text.len, &again, NULL), TP_OK);

    assert_true(again.nodes[3].attrs.eps == 0.0883883461f);
    tp_buf_release(&text);
    tp_graph_release(&again);
    tp_graph_release(&g);
}

static void bad_text_is_refused_with_its_line(void **state)
{
#define X "%1 = input f32[4,8] \"x\"\n"
#define W "%2 = state f32[6,8] \"w\" role=weight\n"
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"hello", "t:1: expected '%N = op ...' or 'output %N'"},
        {X "%2 = frobnicate %1", "t:2: unknown op"},
        {X "%2 = silu %3", "t:2: an operand is not defined above"},
        {X "%1 = silu %1", "t:2: a value is defined twice"},
        {X "%2, %3 = silu %1", "t:2: the op defines another number of values"},
        {X "%2, %3 = input f32[4] \"y\"", "t:2: a source defines one value"},
        {X "%2 = silu %1 : f32[4,9]", "t:2: the stated shape differs from the op's rule"},
        {X "%2 = silu %1 : f32[32]", "t:2: the stated shape differs from the op's rule"},
        {X "%2 = silu %1 {wings=2}", "t:2: expected {attribute=value, ...} with known attributes"},
        {X "%2 = silu %1 {n0=1.5}", "t:2: expected {attribute=value, ...} with known attributes"},
        {X "%2 = silu %1 {n0=9999999999}", "t:2: expected {attribute=value"},
        {X "%2 = gelu %1 {tanh=1", "t:2: expected '}' after the attributes"},
        {X "%2 = silu %1 \"label", "t:2: unterminated label"},
        {X "%2 = silu %1 \"a\\\nb\"", "t:2: unterminated label"},
        {X "%2 = silu %1 ?", "t:2: unexpected text at the end of the line"},
        {X "%2 = silu %1 phase=forward", "t:2: expected block=N, phase=backward|update, clone"},
        {X "%2 = silu %1 block=-1", "t:2: expected block=N, phase=backward|update, clone"},
        {X "%2 = silu %1 block=32767", "t:2: expected block=N, phase=backward|update, clone"},
        {X "output %2", "t:2: the output is not defined above"},
        {X "output", "t:2: expected a value such as %12"},
        {X "output %1 %1", "t:2: unexpected text at the end of the line"},
        {X "%0 = silu %1", "t:2: expected a value such as %12"},
        {X "%1048576 = silu %1", "t:2: expected a value such as %12"},
        {X "%2 = add %1, %1, %1, %1, %1, %1, %1, %1, %1", "t:2: too many operands"},
        {X "%2 = silu %1, %1", "t:2: op silu: 2 operands, at most 1"},
        {X "%2, %3, %4, %5, %6, %7 = silu %1", "t:2: too many values on the left"},
        {"%1 = input f33[4] \"x\"", "t:1: expected a type such as f32[64,32]"},
        {"%1 = input f32 \"x\"", "t:1: expected [rows] or [rows,columns] after the dtype"},
        {"%1 = input f32[4,] \"x\"", "t:1: expected a number of columns"},
        {"%1 = input f32[0] \"x\"", "t:1: a shape must be positive and below 2^48 elements"},
        {"%1 = input f32[-1,-1] \"x\"", "t:1: a shape must be positive"},
        {"%1 = input f32[16777216,16777216] \"x\"", "t:1: a shape must be positive and below"},
        {"%1 = input f32[9223372036854775807,3] \"x\"", "t:1: a shape must be positive"},
        {"%1 = input f32[4] x", "t:1: expected the source's name in quotes"},
        {"%1 = state f32[4] \"x\"", "t:1: expected role=weight|gradient|moment|"},
        {"%1 = state f32[4] \"x\" role=secret", "t:1: expected role=weight|gradient|"},
        {X "%2 = input f32[4] \"x\"", "t: two sources are called 'x'"},
        {X W "%3 = linear %1, %2 : i32[4,6]", "t: node 3 (linear): op linear: output 0 is i32, "
                                              "not a float"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tp_graph g;
        tp_error err = {0};
        tp_status status = tp_graph_parse("t", cases[i].text, strlen(cases[i].text), &g, &err);
        if (status != TP_ERR_FORMAT || !strstr(err.message, cases[i].message))
            fail_msg("case %zu: expected \"%s\", got \"%s\"", i, cases[i].message, err.message);
    }
}

/* ---- the rules of ops ---- */

static void wrong_operands_are_refused_by_name(void **state)
{
#define F "%1 = input f32[4,8] \"x\"\n%2 = input f32[4,6] \"y\"\n%3 = input i32[4] \"ids\"\n"
#define V "%4 = input f32[8] \"v\"\n%5 = input f32[4] \"t\"\n%6 = input f32[1] \"one\"\n"
#define M "%7 = input f32[6,8] \"w\"\n%8 = state f32[6,8] \"acc\" role=gradient\n"
#define SOURCES F V M
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"%9 = add %1", "op add: operand 1 is missing"},
        {"%9 = add %1, _", "op add: operand 1 is missing"},
        {"%9 = silu", "op silu: operand 0 is missing"},
        {"%9 = silu_grad %1", "op silu_grad: operand 1 is missing"},
        {"%9 = swiglu %1", "op swiglu: operand 1 is missing"},
        {"%9 = mul %1, %2", "op mul: operand 1, b[T,C], is 4x6, but C is 8"},
        {"%9 = silu %3", "op silu: operand 0 is i32, not a float"},
        {"%9 = rope %1, %3, %7 {head_dim=3}",
         "op rope: operand 2, table[P,head_dim], is 6x8, but head_dim is 3"},
        {"%9 = rope %1, %3, %7 {head_dim=4}",
         "op rope: operand 2, table[P,head_dim], is 6x8, but head_dim is 4"},
        {"%9 = rope %1", "op rope: operand 1 is missing"},
        {"%10 = input f32[6,3] \"t\"\n%9 = rope %1, %3, %10 {head_dim=3}",
         "op rope: head_dim 3 must be even and divide the width 8"},
        {"%9, %10 = split %1 {n0=3, n1=4}",
         "op split: operand 0, x[T,n0+n1+n2], is 4x8, but n0+n1+n2 is 7"},
        {"%9, %10 = split %1 {n0=10, n1=-2}", "op split: output 1 of 4x-2 is empty"},
        {"%9 = concat %1", "op concat: operand 1 is missing"},
        {"%9 = concat %1, %7", "op concat: operand 1, b[T,N], is 6x8, but T is 4"},
        {"%9 = embed %1, %7", "op embed: operand 0 is f32, not i32"},
        {"%9, %10 = rmsnorm %1, %5", ""},
        {"%9, %10 = rmsnorm %2, %5", "op rmsnorm: C/D is 1.5, not a whole number"},
        {"%9, %10, %11 = layernorm %1, %4", "op layernorm: operand 2 is missing"},
        {"%9, %10, %11 = layernorm %1, %4, %5", "op layernorm: operand 2, b[C], is 4, but C is 8"},
        {"%9, %10, %11 = add_rmsnorm %1, %1, %5",
         "op add_rmsnorm: operand 2, w[C], is 4, but C is 8"},
        {"%9 = linear %1", "op linear: operand 1 is missing"},
        {"%9 = linear %2, %7", "op linear: operand 1, w[N,K], is 6x8, but K is 6"},
        {"%9 = linear %1, %7 {transposed=1}", "op linear: operand 1, w[K,N], is 6x8, but K is 8"},
        {"%9 = linear %1, %7, %4", "op linear: operand 2, b[N], is 8, but N is 6"},
        {"%9, %10 = attention %1, %1, %1, %3",
         "op attention: operand 0, q[T,heads*head_dim], is 4x8, but heads*head_dim is 0"},
        {"%9, %10 = attention %1, %1, %1, %3 {heads=-2, kv_heads=-2, head_dim=-4}",
         "op attention: heads -2, kv_heads -2, head_dim -4 do not fit together"},
        {"%9, %10 = attention %1, %1, %1, %3 {heads=2, kv_heads=1, head_dim=4}",
         "op attention: operand 1, k[T,kv_heads*head_dim], is 4x8, but kv_heads*head_dim is 4"},
        {"%9, %10, %11 = cross_entropy %1, %5, %5", "op cross_entropy: operand 1 is f32, not i32"},
        {"%9, %10, %11 = cross_entropy %1, %3, %4",
         "op cross_entropy: operand 2, weights[T], is 8, but T is 4"},
        {"%9 = cross_entropy_grad %5, %3, %5, %5, %6",
         "op cross_entropy_grad: operand 0 has rank 1, not 2"},
        {"%9, %10, %11 = linear_ce %1, %7, %3, %5 {transposed=1}",
         "op linear_ce: there is no attribute 'transposed'"},
        {"%9 = linear_dx %1, %7", "op linear_dx: operand 1, w[N,K], is 6x8, but N is 8"},
        {"%9 = linear_dx %2, %7, %2", "op linear_dx: operand 2, dx_acc[T,K], is 4x6, but K is 8"},
        {"%10 = input i32[4,8] \"i\"\n%9 = linear_dx %2, %7, %10",
         "op linear_dx: operand 2 is i32, not a float"},
        {"%9 = linear_dw %1, %2, %1", "op linear_dw: operand 2, dw_acc[N,K], is 4x8, but N is 6"},
        {"%9 = linear_db %1, %5", "op linear_db: operand 1, db_acc[N], is 4, but N is 8"},
        {"%9 = embed_grad %3, %1", "op embed_grad: operand 2 is missing"},
        {"%9, %10 = rmsnorm_grad %1, %4, %2, %1",
         "op rmsnorm_grad: operand 2, rstd[T,C/D], is 4x6, but C/D is 1"},
        {"%9, %10, %11 = attention_grad %1, %1, %1, %1, %7, %1, %3 {heads=6, kv_heads=6, "
         "head_dim=2}",
         "op attention_grad: operand 0, q[T,heads*head_dim], is 4x8, but heads*head_dim is 12"},
        {"%12 = input f32[2,5] \"lse\"\n%9, %10, %11 = attention_grad %1, %1, %1, %1, %12, %1, %3 "
         "{heads=2, kv_heads=2, head_dim=4}",
         "op attention_grad: operand 4, lse[heads,T], is 2x5, but T is 4"},
        {"%9 = sumsq %1, %6", "op sumsq: operand 1 is f32, not f64"},
        {"%12 = input f64[8] \"s\"\n%9, %10, %11 = adamw %8, %8, %8, %8, %12",
         "reads %8 twice and overwrites it"},
        {"%12 = input f64[4] \"s\"\n%9, %10, %11 = adamw %8, %8, %8, %8, %12",
         "op adamw: operand 4, scalars[8], is 4"},
        {"%10 = input f32[16777216,1] \"a\"\n%11 = input f32[16777216,1] \"b\"\n%9 = linear %10, "
         "%11",
         "op linear: output 0 of 16777216x16777216 is too large"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s", SOURCES, cases[i].text);
        tp_graph g = {0};
        tp_error err = {.message = ""};
        tp_status status = tp_graph_parse("t", text, strlen(text), &g, &err);
        bool is_right = cases[i].message[0]
                            ? status == TP_ERR_FORMAT && strstr(err.message, cases[i].message)
                            : status == TP_OK;
        if (!is_right)
            fail_msg("case %zu: expected \"%s\", got \"%s\"", i, cases[i].message, err.message);
        tp_graph_release(&g);
    }
}

static void every_row_is_where_its_name_says(void **state)
{
    static const char *const names[] = {
#define OP(name) #name,
#include "engine/ir/ops.def"
    };
    for (int op = 0; op < TP_OP_COUNT; op++) {
        const tp_signature *sig = tp_op_signature((tp_op)op);
        assert_string_equal(tp_ops[op]->name, names[op]);
        for (int k = 0; k < sig->n_out; k++)
            assert_true(sig->alias[k] < sig->n_in);
    }
}

static void signatures_are_read(void **state)
{
    const tp_signature *sig = tp_op_signature(TP_OP_linear_dw);

    assert_int_equal(sig->n_in, 4);
    assert_int_equal(sig->n_out, 2);
    assert_string_equal(sig->in[2].name, "dw_acc");
    assert_string_equal(sig->out[1].name, "squares");
    assert_int_equal(sig->alias[1], 3);
    assert_int_equal(sig->in[2].kind, TP_KIND_s);
    assert_true(sig->in[2].is_optional && sig->in[2].swaps && !sig->in[0].is_optional);
    assert_string_equal(sig->in[2].dim[1], "K");
    assert_int_equal(sig->alias[0], 2);
    sig = tp_op_signature(TP_OP_attention);
    assert_string_equal(sig->in[1].dim[1], "kv_heads*head_dim");
    assert_true(sig->out[0].through_bf16);
    assert_int_equal(sig->alias[0], -1);
    assert_true(tp_op_has_attribute(TP_OP_attention, "heads"));
    assert_true(tp_op_has_attribute(TP_OP_attention, "head_dim"));
    assert_false(tp_op_has_attribute(TP_OP_attention, "head"));
}

static void outputs_are_versions_of_what_has_their_name(void **state)
{
    static const int adamw[] = {0, 2, 3, 5}, rmsnorm_grad[] = {-1, 4}, paged[] = {-1, 3, 4};

    for (int k = 0; k < 4; k++)
        assert_int_equal(tp_op_alias(TP_OP_adamw, k), adamw[k]);
    for (int k = 0; k < 2; k++)
        assert_int_equal(tp_op_alias(TP_OP_rmsnorm_grad, k), rmsnorm_grad[k]);
    for (int k = 0; k < 3; k++)
        assert_int_equal(tp_op_alias(TP_OP_paged_attention, k), paged[k]);
    assert_int_equal(tp_op_alias(TP_OP_linear_ce_train, 3), 5);
    assert_int_equal(tp_op_alias(TP_OP_sumsq, 0), 1);
    assert_int_equal(tp_op_alias(TP_OP_add, 0), -1);
}

static void expressions_are_read_from_left_to_right(void **state)
{
    tp_letters letters;
    for (char c = 'A'; c <= 'Z'; c++)
        letters.value[(int)c] = c == 'Z' ? NAN : c - 'A';
    tp_attrs attrs = {.heads = 12, .n0 = 5};

    assert_float_equal(tp_dimension("2*T*N", &letters, &attrs), 2 * 19 * 13, 0);
    assert_float_equal(tp_dimension("K+N*heads", &letters, &attrs), (10 + 13) * 12, 0);
    assert_float_equal(tp_dimension("n0/C", &letters, &attrs), 2.5, 0);
    assert_true(isnan(tp_dimension("Z+1", &letters, &attrs)));
}

/* ---- the verifier ---- */

typedef struct {
    tp_graph g;
    tp_ref x, w, acc, y, dw; /* y = linear x, w; dw = linear_dw x, y, acc */
} sample;

static sample new_sample(void)
{
    static const int64_t matrix[] = {6, 8};
    sample s = {.g = new_graph()};
    s.x = tp_graph_input(&s.g, "x", TP_DTYPE_F32, 2, ROWS);
    s.w = tp_graph_state(&s.g, &(tp_tensor){.name = "w", .rank = 2, .dim = {matrix[0], matrix[1]}});
    s.acc = tp_graph_state(&s.g, &(tp_tensor){.name = "acc",
                                              .role = TP_ROLE_GRADIENT,
                                              .rank = 2,
                                              .dim = {matrix[0], matrix[1]}});
    tp_ref product[] = {s.x, s.w};
    s.y = tp_graph_op(&s.g, TP_OP_linear, NULL, 2, product, "y");
    tp_ref gradient[] = {s.x, s.y, s.acc};
    s.dw = tp_graph_op(&s.g, TP_OP_linear_dw, NULL, 3, gradient, "dw");
    tp_graph_output(&s.g, s.dw);
    return s;
}

static void expect_violation(sample *s, const char *message)
{
    tp_error err = {0};
    assert_int_equal(tp_graph_verify(&s->g, &err), TP_ERR_FORMAT);
    assert_string_equal(err.message, message);
    tp_graph_release(&s->g);
}

static void a_sound_graph_verifies(void **state)
{
    sample s = new_sample();
    assert_int_equal(tp_graph_verify(&s.g, NULL), TP_OK);
    assert_int_equal(tp_graph_memory(&s.g, s.dw), s.acc);
    assert_int_equal(tp_graph_memory(&s.g, s.y), s.y);
    tp_graph_release(&s.g);
}

static void violations_name_the_node(void **state)
{
    sample s = new_sample();
    s.g.nodes[4].op = (tp_op)TP_OP_COUNT;
    char missing[64];
    snprintf(missing, sizeof missing, "node 4: op number %d does not exist", TP_OP_COUNT);
    expect_violation(&s, missing);

    s = new_sample();
    s.g.nodes[4].in[0] = 99;
    expect_violation(&s, "node 4 (linear y): operand %99 does not exist");

    s = new_sample();
    s.g.nodes[4].in[0] = s.dw;
    expect_violation(&s, "node 4 (linear y): operand %5 is not defined before its use");

    s = new_sample();
    s.g.nodes[4].n_in = 9;
    expect_violation(&s, "node 4 (linear y): 9 operands and 1 outputs are out of range");

    s = new_sample();
    s.g.nodes[4].n_in = 4;
    expect_violation(&s, "node 4 (linear y): op linear: 4 operands, at most 3");

    s = new_sample();
    s.g.nodes[4].n_out = 6;
    expect_violation(&s, "node 4 (linear y): 2 operands and 6 outputs are out of range");

    s = new_sample();
    s.g.nodes[4].out[0] = 99;
    expect_violation(&s, "node 4 (linear y): output %99 does not exist");

    s = new_sample();
    s.g.nodes[5].out[0] = s.y;
    expect_violation(&s, "node 5 (linear_dw dw): output %4 is recorded at node 4");

    s = new_sample();
    s.g.nodes[4].n_out = 2;
    s.g.nodes[4].out[1] = s.g.n_values++;
    s.g.values[s.g.nodes[4].out[1]] = (tp_value){.node = 4, .out = 1, .rank = 1, .dim = {1, 1}};
    expect_violation(&s, "node 4 (linear y): op linear: defines 1 values, not 2");
}

static void shapes_and_types_follow_the_rules(void **state)
{
    sample s = new_sample();
    s.g.values[s.y].dim[1] = 7;
    expect_violation(&s, "node 4 (linear y): op linear: output 0 is 4x7, not 4x6");

    s = new_sample();
    s.g.values[s.y].rank = 1;
    expect_violation(&s, "node 4 (linear y): op linear: output 0 is 4x6, not 4x6");

    s = new_sample();
    s.g.values[s.y].dtype = TP_DTYPE_I32;
    expect_violation(&s, "node 4 (linear y): op linear: output 0 is i32, not a float");

    s = new_sample();
    s.g.values[s.dw].dtype = TP_DTYPE_BF16;
    expect_violation(&s, "node 5 (linear_dw dw): op linear_dw: output 0 is bf16, not f32");

    s = new_sample();
    tp_attrs attrs = {.n0 = 2, .n1 = 6};
    tp_ref part = tp_graph_op(&s.g, TP_OP_split, &attrs, 1, &s.x, NULL);
    s.g.values[part].dtype = TP_DTYPE_BF16;
    expect_violation(&s, "node 6 (split): op split: a view cannot change dtype");

    s = new_sample();
    s.g.values[s.y].dtype = TP_DTYPE_BF16; /* activations may be of any float type */
    assert_int_equal(tp_graph_verify(&s.g, NULL), TP_OK);
    tp_graph_release(&s.g);
}

static void sources_have_names_and_shapes(void **state)
{
    sample s = new_sample();
    s.g.values[s.x].name = NULL;
    expect_violation(&s, "node 1 (input x): a source needs a name and a shape");

    s = new_sample();
    s.g.values[s.x].dim[0] = 0;
    expect_violation(&s, "node 1 (input x): a source needs a name and a shape");

    s = new_sample();
    s.g.values[s.acc].name = "w";
    expect_violation(&s, "two sources are called 'w'");
}

static void outputs_are_defined(void **state)
{
    sample s = new_sample();
    tp_graph_output(&s.g, 0);
    expect_violation(&s, "graph output %0 is not defined");

    s = new_sample();
    tp_graph_output(&s.g, 77);
    expect_violation(&s, "graph output %77 is not defined");

    s = new_sample();
    tp_graph_output(&s.g, s.y);
    s.g.nodes[4].is_dead = true;
    s.g.nodes[5].is_dead = true;
    tp_graph_compact(&s.g);
    expect_violation(&s, "graph output %5 is not defined");
}

static void overwritten_versions_are_not_read(void **state)
{
    sample s = new_sample();
    tp_graph_op(&s.g, TP_OP_silu, NULL, 1, &s.acc, NULL);
    expect_violation(&s, "node 6 (silu): reads %3, which node 5 has overwritten");

    s = new_sample();
    tp_graph_output(&s.g, s.acc);
    expect_violation(&s, "graph output %3 is overwritten by node 5");

    s = new_sample();
    tp_ref again[] = {s.x, s.y, s.dw};
    tp_graph_op(&s.g, TP_OP_linear_dw, NULL, 3, again, NULL);
    expect_violation(&s, "graph output %5 is overwritten by node 6");
}

static void views_of_overwritten_versions_are_not_read(void **state)
{
    static const char before[] = "%1 = input f32[4,8] \"x\"\n%2 = input f32[4,6] \"dy\"\n"
                                 "%3 = state f32[6,8] \"w\" role=weight\n"
                                 "%4 = linear_dx %2, %3\n%5, %6 = split %4 {n0=4, n1=4}\n"
                                 "%7 = linear_dx %2, %3, %4\n%8 = silu %6\noutput %8\n";
    static const char whole[] = "%1 = input f32[4,16] \"x\"\n%2 = input f32[4,6] \"dy\"\n"
                                "%3 = state f32[6,8] \"w\" role=weight\n"
                                "%4 = silu %1\n%5, %6 = split %4 {n0=8, n1=8}\n"
                                "%7 = linear_dx %2, %3, %6\n%8 = silu %4\noutput %8\n";
    tp_graph g;
    tp_error err;

    assert_int_equal(tp_graph_parse("t", before, strlen(before), &g, &err), TP_ERR_FORMAT);
    assert_string_equal(err.message, "t: node 7 (silu): reads %6, which node 6 has overwritten");
    assert_int_equal(tp_graph_parse("t", whole, strlen(whole), &g, &err), TP_ERR_FORMAT);
    assert_string_equal(err.message, "t: node 7 (silu): reads %4, which node 6 has overwritten");
}

static void inputs_and_operands_are_not_overwritten(void **state)
{
    static const char input[] = "%1 = input f32[4,8] \"x\"\n%2 = input f32[4,6] \"dy\"\n"
                                "%3 = input f32[6,8] \"acc\"\n%4 = linear_dw %1, %2, %3\n";
    static const char twice[] = "%1 = state f32[4,8] \"x\" role=weight\n"
                                "%2 = state f32[8,8] \"w\" role=weight\n%3 = linear_dx %1, %2, %1";
    tp_graph g;
    tp_error err;

    assert_int_equal(tp_graph_parse("t", input, strlen(input), &g, &err), TP_ERR_FORMAT);
    assert_string_equal(err.message, "t: node 4 (linear_dw): overwrites %3, which is an input");
    assert_int_equal(tp_graph_parse("t", twice, strlen(twice), &g, &err), TP_ERR_FORMAT);
    assert_string_equal(err.message, "t: node 3 (linear_dx): reads %1 twice and overwrites it");
}

/* ---- editing ---- */

static void uses_are_counted_with_outputs(void **state)
{
    sample s = new_sample();
    tp_graph_output(&s.g, s.y);

    tp_graph_count_uses(&s.g);

    assert_int_equal(s.g.values[s.x].n_uses, 2);
    assert_int_equal(s.g.values[s.w].n_uses, 1);
    assert_int_equal(s.g.values[s.y].n_uses, 2);
    assert_int_equal(s.g.values[0].n_uses, 0);
    tp_graph_release(&s.g);
}

static void compacting_forgets_names(void **state)
{
    sample s = new_sample();
    s.g.n_outputs = 0;
    s.g.nodes[2].is_dead = s.g.nodes[4].is_dead = s.g.nodes[5].is_dead = true;

    tp_graph_compact(&s.g);

    assert_int_equal(s.g.n_nodes, 3);
    assert_int_equal(tp_graph_find(&s.g, "w"), 0);
    assert_int_equal(tp_graph_find(&s.g, "acc"), s.acc);
    assert_int_equal(s.g.values[s.acc].node, 2);
    assert_int_equal(tp_graph_verify(&s.g, NULL), TP_OK);
    tp_graph_release(&s.g);
}

static void many_nodes_fit(void **state)
{
    tp_graph g = new_graph();
    tp_ref x = tp_graph_input(&g, "x", TP_DTYPE_F32, 2, ROWS);
    for (int i = 0; i < 20000; i++)
        x = tp_graph_op(&g, TP_OP_silu, NULL, 1, &x, "layer");
    tp_graph_output(&g, x);

    assert_int_equal(tp_graph_verify(&g, NULL), TP_OK);

    assert_int_equal(g.n_nodes, 20002);
    tp_graph_release(&g);
}

/* ---- gradients that do not exist ---- */

static const char model[] = "%1 = input f32[4,8] \"x\"\n%2 = input i32[4] \"targets\"\n"
                            "%3 = input f32[4] \"weights\"\n%4 = input f32[1] \"scale\"\n"
                            "%5 = state f32[8,8] \"w\" role=weight\n"
                            "%6 = state f32[8] \"n\" role=weight\n";

static void expect_no_gradient(const char *rest, const char *message)
{
    char text[1024];
    tp_graph g;
    tp_error err = {0};
    snprintf(text, sizeof text, "%s%s", model, rest);
    assert_int_equal(tp_graph_parse("t", text, strlen(text), &g, &err), TP_OK);
    tp_ref params[] = {tp_graph_find(&g, "w"), tp_graph_find(&g, "n")};

    tp_status status =
        tp_graph_autodiff(&g, g.outputs[0], tp_graph_find(&g, "scale"), params, 2, &err);

    assert_int_not_equal(status, TP_OK);
    assert_string_equal(err.message, message);
    tp_graph_release(&g);
}

static void missing_gradients_are_errors(void **state)
{
    expect_no_gradient("%7 = linear %1, %5\noutput %7\n",
                       "the loss must be the first output of a cross_entropy");
    expect_no_gradient("%7 = linear %1, %5\n%8, %9, %10 = cross_entropy %7, %2, %3\noutput %9\n",
                       "the loss must be the first output of a cross_entropy");
    expect_no_gradient("%7 = linear %1, %5\n%8, %9 = split %7 {n0=2, n1=6}\n"
                       "%10, %11, %12 = cross_entropy %8, %2, %3\noutput %10\n",
                       "op split (unlabelled) has a part that does not lead to the loss");
    expect_no_gradient("%7 = linear %1, %5\n%8 = concat %7, %1 \"join\"\n"
                       "%10, %11, %12 = cross_entropy %8, %2, %3\noutput %10\n",
                       "op concat (join) has no gradient");
    expect_no_gradient("%7 = mul %5, %5\n%8 = linear %1, %7\n%9 = add %7, %5\n"
                       "%10, %11, %12 = cross_entropy %8, %2, %3\noutput %10\n",
                       "op state (w) is a weight in a place where weights have no gradient");
    expect_no_gradient("%7 = linear %1, %5\n%8, %9 = rmsnorm %7, %6 {eps=1} \"norm\"\n"
                       "%10, %11, %12 = cross_entropy %9, %2, %3\noutput %10\n",
                       "op rmsnorm (norm) leads to the loss by its statistics alone");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_is_parsed),
        cmocka_unit_test(numbers_may_have_gaps_and_lines_comments),
        cmocka_unit_test(built_graphs_print),
        cmocka_unit_test(floats_read_back_the_same),
        cmocka_unit_test(bad_text_is_refused_with_its_line),
        cmocka_unit_test(wrong_operands_are_refused_by_name),
        cmocka_unit_test(every_row_is_where_its_name_says),
        cmocka_unit_test(signatures_are_read),
        cmocka_unit_test(outputs_are_versions_of_what_has_their_name),
        cmocka_unit_test(expressions_are_read_from_left_to_right),
        cmocka_unit_test(a_sound_graph_verifies),
        cmocka_unit_test(violations_name_the_node),
        cmocka_unit_test(shapes_and_types_follow_the_rules),
        cmocka_unit_test(sources_have_names_and_shapes),
        cmocka_unit_test(outputs_are_defined),
        cmocka_unit_test(overwritten_versions_are_not_read),
        cmocka_unit_test(views_of_overwritten_versions_are_not_read),
        cmocka_unit_test(inputs_and_operands_are_not_overwritten),
        cmocka_unit_test(uses_are_counted_with_outputs),
        cmocka_unit_test(compacting_forgets_names),
        cmocka_unit_test(many_nodes_fit),
        cmocka_unit_test(missing_gradients_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
