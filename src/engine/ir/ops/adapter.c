/* adapter.c - what low-rank adapters (LoRA, DoRA) need besides products. */
#include "engine/ir/differ.h"

static void scale_gradient(tp_differ *d, const tp_node *n, const tp_ref *dy)
{
    tp_attrs attrs = {.scale = n->attrs.scale};
    if (tp_differ_wants(d, n->in[0]))
        tp_differ_add(d, n, n->in[0], tp_differ_emit(d, n, TP_OP_scale, &attrs, 1, dy));
}

/* scale * x */
TP_OP(scale, "x:f[..] -> y:f[..]", .attributes = "scale",
      .traits = TP_OP_ELEMENTWISE | TP_OP_INPLACE | TP_OP_CHEAP, .flops = "T*C",
      .gradient = scale_gradient);

static void dropout_gradient(tp_differ *d, const tp_node *n, const tp_ref *dy)
{
    tp_attrs attrs = {.probability = n->attrs.probability, .stream = n->attrs.stream};
    tp_ref in[] = {dy[0], n->in[1]};
    if (tp_differ_wants(d, n->in[0]))
        tp_differ_add(d, n, n->in[0], tp_differ_emit(d, n, TP_OP_dropout, &attrs, 2, in));
}

/* x / (1 - probability), or 0 with that probability: a function of the seed, the stream and the
 * element's place, so that the gradient and a recomputation drop the same ones. */
TP_OP(dropout, "x:f[T,C] seed:seed[2] -> y:f[T,C]", .attributes = "probability, stream",
      .traits = TP_OP_ELEMENTWISE | TP_OP_INPLACE | TP_OP_CHEAP, .flops = "2*T*C",
      .gradient = dropout_gradient);

/* The Euclidean norm of every output's weights in w + scale * b a.  DoRA takes it for a constant:
 * it has no gradient. */
TP_OP(dora_norm, "w:w[N,K]^ a:w[R,K] b:w[N,R] -> norm:positive[N]",
      .attributes = "transposed, scale, part", .flops = "2*N*K*R+2*N*K", .splits = "N; K");

/* Of sums of squares. */
TP_OP(root, "squares:positive[N] -> norm:positive[N]");

static void dora_gradient(tp_differ *d, const tp_node *n, const tp_ref *dy)
{
    tp_ref in[] = {dy[0], n->in[1], n->in[2]};
    if (tp_differ_wants(d, n->in[0]))
        tp_differ_add(d, n, n->in[0], tp_differ_emit(d, n, TP_OP_dora, NULL, 3, in));
}

/* x * m / norm + b, column by column: the product with a weight whose rows have the length m. */
TP_OP(dora, "x:f[T,N] m:w[N] norm:positive[N] b:w[N]? -> y:f[T,N]", .traits = TP_OP_INPLACE,
      .flops = "2*T*N", .gradient = dora_gradient, .gradients = {TP_OP_dora_dm, TP_OP_linear_db},
      .splits = "N; T");

TP_OP(dora_dm, "x:f[T,N] norm:positive[N] dy:f[T,N] dm_acc:s[N]? -> dm:s[N]",
      .traits = TP_OP_ACCUMULATES, .flops = "2*T*N", .splits = "N; T", .suffix = "dm");

/* Row place[t] of `other` where which[t] is n0, row t of x elsewhere: texts with adapters of their
 * own in one batch, each computed for its own rows.  Generation alone has it, so it needs no
 * gradient. */
TP_OP(choose_rows, "x:f[T,N] other:f[R,N] which:ids[T] place:ids[T] -> y:f[T,N]",
      .attributes = "n0", .traits = TP_OP_INPLACE);
