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
TP_OP(add, "a:f[..] b:f[..] -> y:f[..]", .traits = MAP, .flops = "T*C", .gradient = add_gradient,
      .splits = "C; T");

static void mul_gradient(tp_differ *d, const tp_node *n, const tp_ref *dy)
{
    for (int side = 0; side < 2; side++) {
        tp_ref in[] = {dy[0], n->in[!side]};
        if (tp_differ_wants(d, n->in[side]))
            tp_differ_add(d, n, n->in[side], tp_differ_emit(d, n, TP_OP_mul, NULL, 2, in));
    }
}

/* a * b */
TP_OP(mul, "a:f[..] b:f[..] -> y:f[..]", .traits = MAP | TP_OP_CHEAP, .flops = "T*C",
      .gradient = mul_gradient, .splits = "C; T");

/* x * sigmoid(x) */
TP_OP(silu, "x:f[..] -> y:f[..]", .traits = MAP | TP_OP_CHEAP, .flops = "5*T*C",
      .gradients = {TP_OP_silu_grad}, .splits = "C; T");

TP_OP(silu_grad, "x:f[..] dy:f[..] -> dx:f[..]", .traits = MAP, .flops = "8*T*C", .splits = "C; T");

/* gelu, by erf or by its tanh approximation */
TP_OP(gelu, "x:f[..] -> y:f[..]", .attributes = "tanh", .traits = MAP | TP_OP_CHEAP,
      .flops = "10*T*C", .gradients = {TP_OP_gelu_grad}, .splits = "C; T");

TP_OP(gelu_grad, "x:f[..] dy:f[..] -> dx:f[..]", .attributes = "tanh", .traits = MAP,
      .flops = "16*T*C", .splits = "C; T");

/* silu(gate) * up */
TP_OP(swiglu, "gate:f[T,F] up:f[T,F] -> y:f[T,F]", .traits = MAP | TP_OP_CHEAP, .flops = "6*T*F",
      .gradients = {TP_OP_swiglu_grad}, .splits = "F");

TP_OP(swiglu_grad, "gate:f[T,F] up:f[T,F] dy:f[T,F] -> dgate:f[T,F] dup:f[T,F]",
      .traits = TP_OP_ELEMENTWISE, .flops = "12*T*F", .splits = "F");

static void cast_gradient(tp_differ *d, const tp_node *n, const tp_ref *dy)
{
    tp_differ_add(d, n, n->in[0], tp_differ_emit(d, n, TP_OP_cast, NULL, 1, dy));
}

/* x in the dtype of y */
TP_OP(cast, "x:f[..] -> y:w[..]", .traits = TP_OP_ELEMENTWISE, .gradient = cast_gradient,
      .splits = "C; T");

/* y = x, unless the program that runs the graph writes something else there before the next
 * launch (exec.h): a loss in plain C between the log-probabilities and their gradient. */
TP_OP(host, "x:s[..] -> y:s[..]");

static void split_gradient(tp_differ *d, const tp_node *n, const tp_ref *dy)
{
    tp_differ_add(d, n, n->in[0], tp_differ_emit(d, n, TP_OP_concat, NULL, n->n_out, dy));
}

/* Columns side by side; no data moves. */
TP_OP(split, "x:f[T,n0+n1+n2] -> a:f[T,n0] b:f[T,n1] c:f[T,n2]?", .attributes = "n0, n1, n2",
      .traits = TP_OP_VIEW, .gradient = split_gradient, .splits = "n0+n1+n2");

/* Columns of all, side by side. */
TP_OP(concat, "a:f[T,K] b:f[T,N] c:f[T,F]? -> y:f[T,K+N+F]", .traits = TP_OP_CHEAP,
      .splits = "K+N+F");
