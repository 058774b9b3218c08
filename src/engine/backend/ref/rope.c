/* rope.c - rotary positions: the two halves of each head are the coordinates of
 * D/2 points, each turned by an angle of the table's row.  A row at a negative
 * position is padding and passes unchanged. */
#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"

static void rotate_head(const tp_launch *launch, int64_t t, int64_t first_column, int64_t position)
{
    const tp_operand *x = &launch->in[0], *table = &launch->in[2], *y = &launch->out[0];
    int64_t half = launch->attrs.head_dim / 2;
    for (int64_t d = 0; d < half; d++) {
        double cosine = 1, sine = 0;
        if (position >= 0) {
            TP_ASSERT(position < table->dim[0]);
            cosine = ref_load(table, position, d);
            sine = ref_load(table, position, half + d);
        }
        if (launch->attrs.inverse)
            sine = -sine;
        double x1 = ref_load(x, t, first_column + d);
        double x2 = ref_load(x, t, first_column + half + d);
        ref_store(y, t, first_column + d, x1 * cosine - x2 * sine);
        ref_store(y, t, first_column + half + d, x2 * cosine + x1 * sine);
    }
}

TP_REF_KERNEL(rope)
{
    const tp_operand *positions = &launch->in[1], *y = &launch->out[0];
    if (!is_bound(y))
        return;
    for (int64_t t = 0; t < y->dim[0]; t++) {
        for (int64_t c = 0; c < y->dim[1]; c += launch->attrs.head_dim)
            rotate_head(launch, t, c, ref_index(positions, t));
    }
}
