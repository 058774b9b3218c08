/* embed.c - rows of a table by id, and the sums of gradients by id. */
#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"

TP_REF_KERNEL(embed)
{
    const tp_operand *ids = &launch->in[0], *table = &launch->in[1], *y = &launch->out[0];
    if (!is_bound(y))
        return;
    for (int64_t t = 0; t < y->dim[0]; t++) {
        int64_t id = ref_index(ids, t);
        bool known = id >= 0 && id < table->dim[0];
        for (int64_t c = 0; c < y->dim[1]; c++)
            ref_store(y, t, c, known ? ref_load(table, id, c) : 0);
    }
}

TP_REF_KERNEL(shift)
{
    const tp_operand *ids = &launch->in[0], *y = &launch->out[0];
    for (int64_t t = 0; is_bound(y) && t < y->dim[0]; t++) {
        int64_t id = ref_index(ids, t);
        int64_t shifted = id < 0 ? id : id - launch->attrs.n0;
        ((int32_t *)y->data)[t * y->stride] = (int32_t)shifted;
    }
}

static bool seen_before(const tp_operand *ids, int64_t t)
{
    for (int64_t earlier = 0; earlier < t; earlier++) {
        if (ref_index(ids, earlier) == ref_index(ids, t))
            return true;
    }
    return false;
}

/* The whole sum of a row is formed at the first token that has its id, so that it is rounded
 * once. */
TP_REF_KERNEL(embed_grad)
{
    const tp_operand *ids = &launch->in[0], *dy = &launch->in[1], *dtable = &launch->out[0];
    if (!is_bound(dtable))
        return;
    const tp_operand *squares = &launch->out[1];
    const int64_t skipped = (int64_t)launch->attrs.skip - 1;
    ref_each (dtable, v, c)
        ref_store(dtable, v, c, ref_accumulated(launch, 2, v, c));
    double change = 0; /* of squares: what has not changed is in them, NaN or not */
    for (int64_t t = 0; t < dy->dim[0]; t++) {
        int64_t id = ref_index(ids, t);
        if (id < 0 || id >= dtable->dim[0] || seen_before(ids, t) || id == skipped)
            continue;
        for (int64_t c = 0; c < dtable->dim[1]; c++) {
            double sum = ref_load(dtable, id, c);
            for (int64_t later = t; later < dy->dim[0]; later++) {
                if (ref_index(ids, later) == id)
                    sum += ref_load(dy, later, c);
            }
            change -= ref_load(dtable, id, c) * ref_load(dtable, id, c);
            ref_store(dtable, id, c, sum);
            change += ref_load(dtable, id, c) * ref_load(dtable, id, c);
        }
    }
    if (is_bound(squares))
        ref_store(squares, 0, 0, ref_accumulated(launch, 3, 0, 0) + change);
}
