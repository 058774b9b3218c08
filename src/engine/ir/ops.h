/* ops.h - the vocabulary of the graph.
 *
 * T tokens of a packed micro-batch; C width; K, N contraction and output widths;
 * H heads, G key/value heads, D head dimension; F feed-forward width; V
 * vocabulary.  "f" is f32 or bf16; statistics, losses and accumulators are f32.
 * Every op computes in f32 whatever its operands are and rounds once on output.
 * A gradient accumulator ("acc") is added to and is the same memory as the
 * output; without it the output is fresh.  Rows of an operand are `stride`
 * elements apart (split makes views); everything inside a row is contiguous.
 *
 *   add a[..] b[..] -> y            mul likewise; operands may differ in dtype
 *   silu x; gelu x {tanh}           y = x*sigmoid(x); gelu
 *   swiglu gate[T,F] up[T,F] -> y   silu(gate) * up
 *   cast x -> y                     to the dtype of y
 *   host x -> y                     y = x, unless the program that runs the graph writes
 *                 something else there before the next launch (exec.h): a loss in plain C
 *                 between the log-probabilities and their gradient
 *   split x[T,n0+n1+n2] -> views    columns; no data moves
 *   concat a b c -> [T,n0+n1+n2]
 *   embed ids i32[T] table[V,C] -> y[T,C]       ids outside 0..V-1 give zeros
 *   rmsnorm x[T,C] w[D] {eps} -> y[T,C] rstd[T,C/D]
 *                 normalises each D-wide slice of a row (C = D but for qk-norm)
 *   layernorm x[T,C] w[C] b[C] {eps} -> y mean[T] rstd[T]
 *   add_rmsnorm x res w -> sum[T,C] y rstd      sum = x + res (rounded), y = norm(sum)
 *   add_layernorm x res w b -> sum y mean rstd
 *   rope x[T,n*D] positions i32[T] table f32[P,D] {head_dim, inverse} -> y
 *                 table row p = cos of D/2 angles, then sin of D/2; rotate-half
 *                 layout: (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin) with x1, x2
 *                 the two halves of each head; inverse negates sin
 *   linear x[T,K] w[N,K] b[N]? {transposed: w[K,N]} -> y[T,N]
 *   linear_gelu x w b? {transposed, tanh} -> act[T,N] pre[T,N]
 *                 act = gelu of the unrounded sum; pre is kept for the gradient
 *   attention q[T,H*D] k[T,G*D] v[T,G*D] cu i32[S+1] {heads, kv_heads, head_dim, scale}
 *                 -> o[T,H*D] lse f32[H,T]
 *                 causal inside each sequence cu[s]..cu[s+1]; cu does not decrease,
 *                 trailing entries repeat its end; rows at or past cu[S] give o = 0, lse = 0.
 *                 lse is the natural log of the sum of exp of scaled logits
 *   pack_panels w[N,K] {transposed: w[K,N]} -> panels[ceil(N/64), 64*K']
 *                 the weight of linear_panels: 64 outputs lie side by side for every k, so
 *                 that a product reads it in one stream.  K' is K rounded up to even.  The
 *                 element of output n and input k is column k/g*64*g + n%64*g + k%g of row
 *                 n/64, with g = 2 for bf16 (pairs of k) and 1 otherwise; what has no weight
 *                 is 0
 *   linear_panels x[T,K] panels b[N]? {n0 = N, activation} -> y[T,N]
 *                 activation 0: none, 1: gelu, 2: gelu by tanh.  Row t of y is a function of
 *                 row t of x: the same bits whatever T is
 *   paged_attention q[T,H*D] k[T,G*D] v[T,G*D] cache_k[N,G*D'*B] cache_v[N,G*D'*B]
 *                 positions i32[T] slots i32[T] tables i32[S,M] -> o cache_k cache_v
 *                 many sequences, each with a row of `tables`: its position p lies in block
 *                 tables[slot, p/B], place p%B.  Row t is stored at positions[t] of slots[t]
 *                 (clearing the block when the place is 0), then attends to positions
 *                 0..positions[t] of that slot, as rows of this launch may just have stored
 *                 them; a negative position marks padding.  D' is D rounded up to even.  In a
 *                 block of kv head h, element d of place j is, from h*D'*B on, element
 *                 d/g*B*g + j*g + d%g of cache_k and j/g*D'*g + d*g + j%g of cache_v, g = 2
 *                 for bf16, else 1.  Row t of o depends on its own q, k, v and cache alone:
 *                 the same bits whatever else is in the launch
 *   sample logits[R,V] params f32[R,4] draws f64[R] {n0} -> ids i32[R] logp f32[R] drawn f32[R]
 *                 params: temperature, top_k, top_p, min_p; ids from n0 on (if n0 > 0) are
 *                 never chosen.  temperature 0: the likeliest, lowest id among equals.  Else
 *                 ids are cut by top_k (0: all), then top_p (outside 0..1: all), then min_p,
 *                 ties to lower ids; of those left, in the order of ids, the first whose
 *                 cumulated probability exceeds draws[r].  logp: of the id under
 *                 softmax(logits), all V of them; drawn: under what it was drawn from.  A row
 *                 with a NaN or +infinity gives id -1 and NaNs
 *   cross_entropy logits[T,V] targets i32[T] weights f32[T] {temperature} -> loss[1] logp[T]
 *                 lse[T]
 *                 loss = sum_t -weights[t] * logp[t]; where weights[t] is 0 the target is
 *                 not looked at, logp is 0
 *   linear_ce x[T,C] w[V,C] targets weights {chunk, temperature} -> loss logp lse
 *   linear_ce_train x w targets weights scale f32[1] acc? -> loss[1] logp[T] dx[T,C] dw f32[V,C]
 *                 the same loss together with d(scale*loss)/dx and /dw; logits exist for
 *                 `chunk` rows at a time
 *   linear_dx dy[T,N] w acc? -> dx[T,K];  linear_dw x dy acc? -> dw f32 (shape of w)
 *   linear_db dy acc? -> db f32[N]
 *   silu_grad x dy; gelu_grad x dy {tanh}; swiglu_grad gate up dy -> dgate dup
 *   embed_grad ids dy acc {skip} -> dtable f32[V,C]    (acc gives the shape; required)
 *   rmsnorm_grad x w rstd dy dw_acc? dres? -> dx dw f32[D]       dx += dres
 *   layernorm_grad x w mean rstd dy dw_acc? db_acc? dres? -> dx dw db
 *   attention_grad q k v o lse do cu -> dq dk dv
 *   cross_entropy_grad logits targets weights lse scale -> dlogits
 *   sumsq x acc f64[1]? -> f64[1]               sum of squares, added to acc
 *   adamw p f32 g f32 m f32 v f32 scalars f64[8] shadow bf16? {decay} -> p m v shadow
 *                 in place.  scalars: lr, beta1, beta2, eps, weight_decay,
 *                 1-beta1^t, 1-beta2^t, gradient factor (clip and unscale).
 *                 As torch.optim.AdamW: p *= 1 - lr*wd*decay; m, v; then
 *                 p -= lr/c1 * m / (sqrt(v)/sqrt(c2) + eps)                         */
#ifndef TP_ENGINE_IR_OPS_H
#define TP_ENGINE_IR_OPS_H

#include <stdint.h>

enum { TP_PANEL = 64 }; /* outputs of a weight that lie together in pack_panels */

typedef enum {
#define OP(name, inputs, outputs, shape, gradient, traits) TP_OP_##name,
#include "engine/ir/ops.def"
#undef OP
    TP_OP_COUNT
} tp_op;

enum {
    TP_OP_SOURCE = 1 << 0,      /* has no inputs; bound before the run            */
    TP_OP_ELEMENTWISE = 1 << 1, /* output element i depends on input elements i   */
    TP_OP_COMMUTES = 1 << 2,    /* the two inputs may be swapped                  */
    TP_OP_INPLACE = 1 << 3,     /* output 0 may share input 0's memory            */
    TP_OP_CHEAP = 1 << 4,       /* selective recompute may repeat it              */
    TP_OP_FUSED = 1 << 5,       /* made by `fuse`, not by models                  */
    TP_OP_CONTRACTS = 1 << 6,   /* dominated by multiply-adds                     */
    TP_OP_VIEW = 1 << 7,        /* outputs are views of input 0; nothing runs     */
    TP_OP_GRAD = 1 << 8,        /* made by autodiff                               */
    TP_OP_ACCUMULATES = 1 << 9, /* has an optional accumulator input              */
    TP_OP_UPDATE = 1 << 10      /* belongs to the optimizer's graph               */
};

typedef struct {
#define ATTR(type, name) type name;
#include "engine/ir/attrs.def"
#undef ATTR
} tp_attrs;

typedef struct {
    const char *name;
    uint8_t max_in, max_out;
    uint32_t traits;
} tp_op_info;

extern const tp_op_info tp_ops[TP_OP_COUNT];

/* Which input an output must share memory with (accumulators, caches, in-place
 * state), or -1.  Independent of TP_OP_INPLACE, which only permits sharing. */
int tp_op_alias(tp_op op, int output);

#endif
