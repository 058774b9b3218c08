/* quantised.c - weights that are kept in 8 or 4 bits, as products read them; device/quantised.h has
 * the formats.  They are made from constants and large: a gradient makes them again. */
#include "engine/device/quantised.h"
#include "engine/ir/shapes.h"

static bool is_length(tp_shapes *s, char letter, int64_t want)
{
    if (s->letters.value[(int)letter] == (double)want)
        return true;
    tp_shapes_refuse(s, "%c is %g, but %d x %d weights have %lld", letter,
                     s->letters.value[(int)letter], s->attrs->n0, s->attrs->n1, (long long)want);
    return false;
}

static int64_t weights_of(const tp_shapes *s) { return (int64_t)s->attrs->n0 * s->attrs->n1; }

static void unpack_int8_check(tp_shapes *s)
{
    int64_t n = weights_of(s);
    if (is_length(s, 'P', n))
        is_length(s, 'Q', tp_int8_scales(n));
}

TP_OP(unpack_int8, "codes:codes[P] scales:w[Q] -> w:f[n0,n1]", .attributes = "n0, n1",
      .traits = TP_OP_UNPACKS, .check = unpack_int8_check);

static void unpack_nf4_check(tp_shapes *s)
{
    int64_t n = weights_of(s);
    if (is_length(s, 'P', tp_nf4_bytes(n)) && is_length(s, 'Q', tp_nf4_sizes(n)))
        is_length(s, 'D', tp_nf4_groups(n));
}

TP_OP(unpack_nf4, "codes:codes[P] sizes:codes[Q] groups:w[D] -> w:f[n0,n1]", .attributes = "n0, n1",
      .traits = TP_OP_UNPACKS, .check = unpack_nf4_check);
