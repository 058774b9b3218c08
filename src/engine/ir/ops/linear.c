/* linear.c - products with a weight. */
#include "engine/ir/shapes.h"

/* b is added; transposed: the weight is w[K,N]. */
TP_OP(linear, "x:f[T,K] w:w[N,K]^ b:w[N]? -> y:f[T,N]", .attributes = "transposed",
      .traits = TP_OP_CONTRACTS, .flops = "2*T*N*K",
      .gradients = {TP_OP_linear_dx, TP_OP_linear_dw, TP_OP_linear_db}, .splits = "N; K");

TP_OP(linear_dx, "dy:f[T,N] w:w[N,K]^ dx_acc:f[T,K]? -> dx:f[T,K]", .attributes = "transposed",
      .splits = "N; K", .traits = TP_OP_CONTRACTS | TP_OP_ACCUMULATES, .flops = "2*T*N*K");

/* squares: the sum of the squares of dw, as it is afterwards; see passes/fuse_grad_norm.c. */
TP_OP(linear_dw, "x:f[T,K] dy:f[T,N] dw_acc:s[N,K]^? squares:d[1]? -> dw:s[N,K]^ squares:d[1]?",
      .attributes = "transposed", .splits = "N; K", .traits = TP_OP_CONTRACTS | TP_OP_ACCUMULATES,
      .flops = "2*T*N*K", .suffix = "dw");

TP_OP(linear_db, "dy:f[T,N] db_acc:s[N]? -> db:s[N]", .splits = "N", .traits = TP_OP_ACCUMULATES,
      .flops = "T*N", .suffix = "db");

/* act = gelu of the unrounded sum; pre is kept for the gradient. */
TP_OP(linear_gelu, "x:f[T,K] w:w[N,K]^ b:w[N]? -> act:f[T,N] pre:f[T,N]",
      .attributes = "transposed, tanh", .traits = TP_OP_CONTRACTS, .flops = "2*T*N*K");

static double even(double n) { return n + (double)((int64_t)n % 2); }

static double panels_of(double n) { return (double)(((int64_t)n + TP_PANEL - 1) / TP_PANEL); }

static void pack_panels_check(tp_shapes *s)
{
    s->letters.value['P'] = panels_of(s->letters.value['N']);
    s->letters.value['L'] = TP_PANEL * even(s->letters.value['K']);
}

/* The weight of linear_panels, P = ceil(N/64), L = 64*K': 64 outputs lie side by side for
 * every k, so that a product reads it in one stream.  K' is K rounded up to even.  The element
 * of output n and input k is column k/g*64*g + n%64*g + k%g of row n/64, with g = 2 for bf16
 * (pairs of k) and 1 otherwise; what has no weight is 0. */
TP_OP(pack_panels, "w:w[N,K]^ -> panels:w[P,L]", .attributes = "transposed",
      .check = pack_panels_check);

static void linear_panels_check(tp_shapes *s)
{
    const double *letters = s->letters.value;
    if (s->attrs->n0 <= 0 || letters['P'] != panels_of(s->attrs->n0))
        tp_shapes_refuse(s, "%g panels do not make %d outputs", letters['P'], s->attrs->n0);
    if (letters['L'] != TP_PANEL * even(letters['K']))
        tp_shapes_refuse(s, "x is %g wide, the panels have %g elements", letters['K'],
                         letters['L']);
}

/* activation 0: none, 1: gelu, 2: gelu by tanh.  Row t of y is a function of row t of x: the
 * same bits whatever T is. */
TP_OP(linear_panels, "x:f[T,K] panels:w[P,L] b:w[n0]? -> y:f[T,n0]", .attributes = "n0, activation",
      .traits = TP_OP_CONTRACTS, .flops = "2*T*n0*K", .check = linear_panels_check);
