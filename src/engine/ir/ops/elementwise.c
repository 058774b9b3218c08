/* elementwise.c - ops whose output element depends on the input elements at its place, and
 * layout. */
#include "engine/ir/differ.h"

enum { MAP = TP_OP_ELEMENTWISE | TP_OP_INPLACE };

static void add_gradient(tp_differ *d, const tp_node *n, const tp_ref *dy)
{
    tp_differ_add(d, n, n->in[0], dy[0]);
    tp_differ_add(d, n, n->in[1], dy[0]);
}

/* a + b.  The sum of the residual stream: it is kept, as computing it again would go back to
 * the first block. */
const tp_op_def tp_op_add = {
    .name = "add",
    .signature = "a:f[..] b:f[..] -> y:f[..]",
    .traits = MAP,
    .flops = "T*C",
    .gradient = add_gradient,
    .splits = "C; T",
};

static void mul_gradient(tp_differ *d, const tp_node *n, const tp_ref *dy)
{
    for (int side = 0; side < 2; side++) {
        tp_ref in[] = {dy[0], n->in[!side]};
        if (tp_differ_wants(d, n->in[side]))
            tp_differ_add(d, n, n->in[side], tp_differ_emit(d, n, TP_OP_mul, NULL, 2, in));
    }
}

/* a * b */
const tp_op_def tp_op_mul = {
    .name = "mul",
    .signature = "a:f[..] b:f[..] -> y:f[..]",
    .traits = MAP | TP_OP_CHEAP,
    .flops = "T*C",
    .gradient = mul_gradient,
    .splits = "C; T",
};

/* x * sigmoid(x) */
const tp_op_def tp_op_silu = {
    .name = "silu",
    .signature = "x:f[..] -> y:f[..]",
    .traits = MAP | TP_OP_CHEAP,
    .flops = "5*T*C",
    .gradients = {TP_OP_silu_grad},
    .splits = "C; T",
};

const tp_op_def tp_op_silu_grad = {
    .name = "silu_grad",
    .signature = "x:f[..] dy:f[..] -> dx:f[..]",
    .traits = MAP,
    .flops = "8*T*C",
    .splits = "C; T",
};

/* gelu, by erf or by its tanh approximation */
const tp_op_def tp_op_gelu = {
    .name = "gelu",
    .signature = "x:f[..] -> y:f[..]",
    .attributes = "tanh",
    .traits = MAP | TP_OP_CHEAP,
    .flops = "10*T*C",
    .gradients = {TP_OP_gelu_grad},
    .splits = "C; T",
};

const tp_op_def tp_op_gelu_grad = {
    .name = "gelu_grad",
    .signature = "x:f[..] dy:f[..] -> dx:f[..]",
    .attributes = "tanh",
    .traits = MAP,
    .flops = "16*T*C",
    .splits = "C; T",
};

/* silu(gate) * up */
const tp_op_def tp_op_swiglu = {
    .name = "swiglu",
    .signature = "gate:f[T,F] up:f[T,F] -> y:f[T,F]",
    .traits = MAP | TP_OP_CHEAP,
    .flops = "6*T*F",
    .gradients = {TP_OP_swiglu_grad},
    .splits = "F",
};

const tp_op_def tp_op_swiglu_grad = {
    .name = "swiglu_grad",
    .signature = "gate:f[T,F] up:f[T,F] dy:f[T,F] -> dgate:f[T,F] dup:f[T,F]",
    .traits = TP_OP_ELEMENTWISE,
    .flops = "12*T*F",
    .splits = "F",
};

static void cast_gradient(tp_differ *d, const tp_node *n, const tp_ref *dy)
{
    tp_differ_add(d, n, n->in[0], tp_differ_emit(d, n, TP_OP_cast, NULL, 1, dy));
}

/* x in the dtype of y */
const tp_op_def tp_op_cast = {
    .name = "cast",
    .signature = "x:f[..] -> y:w[..]",
    .traits = TP_OP_ELEMENTWISE,
    .gradient = cast_gradient,
    .splits = "C; T",
};

/* y = x, unless the program that runs the graph writes something else there before the next
 * launch (exec.h): a loss in plain C between the log-probabilities and their gradient. */
const tp_op_def tp_op_host = {.name = "host", .signature = "x:s[..] -> y:s[..]"};

static void split_gradient(tp_differ *d, const tp_node *n, const tp_ref *dy)
{
    tp_differ_add(d, n, n->in[0], tp_differ_emit(d, n, TP_OP_concat, NULL, n->n_out, dy));
}

/* Columns side by side; no data moves. */
const tp_op_def tp_op_split = {
    .name = "split",
    .signature = "x:f[T,n0+n1+n2] -> a:f[T,n0] b:f[T,n1] c:f[T,n2]?",
    .attributes = "n0, n1, n2",
    .traits = TP_OP_VIEW,
    .gradient = split_gradient,
    .splits = "n0+n1+n2",
};

/* Columns of all, side by side. */
const tp_op_def tp_op_concat = {
    .name = "concat",
    .signature = "a:f[T,K] b:f[T,N] c:f[T,F]? -> y:f[T,K+N+F]",
    .traits = TP_OP_CHEAP,
    .splits = "K+N+F",
};
