/* attention.c - of packed sequences, and of sequences in a paged cache. */
#include "engine/ir/shapes.h"

static void check_heads(tp_shapes *s)
{
    const tp_attrs *a = s->attrs;
    if (a->heads <= 0 || a->kv_heads <= 0 || a->head_dim <= 0 || a->heads % a->kv_heads != 0)
        tp_shapes_refuse(s, "heads %d, kv_heads %d, head_dim %d do not fit together", a->heads,
                         a->kv_heads, a->head_dim);
}

/* Causal inside each sequence cu[s]..cu[s+1]; cu does not decrease, trailing entries repeat
 * its end; rows at or past its end give o = 0, lse = 0.  lse is the natural log of the sum of
 * exp of scaled logits. */
TP_OP(attention,
      "q:f[T,heads*head_dim] k:f[T,kv_heads*head_dim] v:f[T,kv_heads*head_dim] cu:cu[S+1] "
      "-> o:f[T,heads*head_dim]~ lse:s[heads,T]",
      .attributes = "heads, kv_heads, head_dim, scale", .traits = TP_OP_CONTRACTS,
      .flops = "4*A*heads*head_dim", /* q.k and p.v */
      .check = check_heads, .gradients = {TP_OP_attention_grad}, .splits = "heads+kv_heads");

TP_OP(attention_grad,
      "q:f[T,heads*head_dim] k:f[T,kv_heads*head_dim] v:f[T,kv_heads*head_dim] "
      "o:f[T,heads*head_dim] lse:s[heads,T] do:f[T,heads*head_dim] cu:cu[S+1] "
      "-> dq:f[T,heads*head_dim]~ dk:f[T,kv_heads*head_dim]~ dv:f[T,kv_heads*head_dim]~",
      .attributes = "heads, kv_heads, head_dim, scale", .traits = TP_OP_CONTRACTS,
      .flops = "10*A*heads*head_dim", /* s again, dp, dv, dk, dq */
      .check = check_heads, .suffix = "dqkv", .splits = "heads+kv_heads");

static void paged_attention_check(tp_shapes *s)
{
    check_heads(s);
    int64_t D = s->attrs->head_dim, per_place = s->attrs->kv_heads * (D + D % 2);
    long long block = tp_shapes_in(s, 3)->dim[1];
    if (s->status == TP_OK && block % (2 * per_place) != 0)
        tp_shapes_refuse(s, "blocks of %lld elements do not hold an even number of places of %lld",
                         block, (long long)per_place);
    if (tp_shapes_in(s, 3)->dtype != tp_shapes_in(s, 4)->dtype)
        tp_shapes_refuse(s, "the caches differ in dtype");
}

/* Each row reads the keys and values it attends to. */
static double paged_attention_bytes(const tp_graph *g, const tp_node *n, double avg_context)
{
    const tp_value *q = &g->values[n->in[0]], *k = &g->values[n->in[1]];
    double row = (double)(k->dim[1] * (int64_t)tp_dtype_size(g->values[n->in[3]].dtype));
    return 2.0 * (double)tp_value_bytes(q) + 2.0 * (double)q->dim[0] * avg_context * row;
}

/* Many sequences, each with a row of `tables`: its position p lies in block tables[slot, p/B],
 * place p%B.  Row t is stored at positions[t] of slots[t] (clearing the block when the place
 * is 0), then attends to positions 0..positions[t] of that slot, as rows of this launch may
 * just have stored them; a negative position marks padding.  G = kv_heads, D = head_dim, D' is
 * D rounded up to even, L = G*D'*B.  In a block of kv head h, element d of place j is, from
 * h*D'*B on, element d/g*B*g + j*g + d%g of cache_k and j/g*D'*g + d*g + j%g of cache_v, g = 2
 * for bf16, else 1.  Row t of o depends on its own q, k, v and cache alone: the same bits
 * whatever else is in the launch. */
TP_OP(paged_attention,
      "q:f[T,heads*head_dim] k:f[T,kv_heads*head_dim] v:f[T,kv_heads*head_dim] "
      "cache_k:f[N,L] cache_v:f[N,L] positions:places[T] slots:slots[T] "
      "tables:tables[S,M] -> o:f[T,heads*head_dim]~ cache_k:f[N,L] cache_v:f[N,L]",
      .attributes = "heads, kv_heads, head_dim, scale", .traits = TP_OP_CONTRACTS,
      .flops = "4*A*heads*head_dim", .bytes = paged_attention_bytes,
      .check = paged_attention_check);
