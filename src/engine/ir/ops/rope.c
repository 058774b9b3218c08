/* rope.c - rotary position embedding. */
#include "engine/ir/differ.h"
#include "engine/ir/shapes.h"

static void rope_check(tp_shapes *s)
{
    int32_t D = s->attrs->head_dim;
    long long width = tp_shapes_in(s, 0)->dim[1];
    if (D <= 0 || D % 2 != 0 || width % D != 0)
        tp_shapes_refuse(s, "head_dim %d must be even and divide the width %lld", D, width);
}

static void rope_gradient(tp_differ *d, const tp_node *n, const tp_ref *dy)
{
    tp_attrs attrs = n->attrs;
    attrs.inverse = !attrs.inverse;
    tp_ref in[] = {dy[0], n->in[1], n->in[2]};
    tp_differ_add(d, n, n->in[0], tp_differ_emit(d, n, TP_OP_rope, &attrs, 3, in));
}

/* Table row p = cos of D/2 angles, then sin of D/2, D = head_dim; rotate-half layout:
 * (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin) with x1, x2 the two halves of each head;
 * inverse negates sin.  Only the result is needed by gradients, not the operand: keeping one
 * for the other saves nothing. */
TP_OP(rope, "x:f[T,C] positions:positions[T] table:table[P,head_dim] -> y:f[T,C]",
      .attributes = "head_dim, inverse", .traits = TP_OP_INPLACE, .flops = "3*T*C",
      .check = rope_check, .gradient = rope_gradient, .splits = "C");
