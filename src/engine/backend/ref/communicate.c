/* communicate.c - among one rank: every result is in its place already. */
#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"

static void keep(const tp_launch *launch)
{
    const tp_operand *x = &launch->in[0], *y = &launch->out[0];
    for (int64_t r = 0; is_bound(y) && y->data != x->data && r < y->dim[0]; r++)
        for (int64_t c = 0; c < y->dim[1]; c++)
            ref_store(y, r, c, ref_load(x, r, c));
}

/* Row r of y is row r + `by` of x; 0 where there is none. */
static void keep_rows(const tp_launch *launch, int64_t by)
{
    const tp_operand *x = &launch->in[0], *y = &launch->out[0];
    ref_each (y, r, c)
        ref_store(y, r, c, r + by >= 0 && r + by < x->dim[0] ? ref_load(x, r + by, c) : 0);
}

TP_REF_KERNEL(scatter_rows) { keep_rows(launch, launch->attrs.n1); }

TP_REF_KERNEL(gather_rows) { keep_rows(launch, -launch->attrs.n1); }

TP_REF_KERNEL(reduce_scatter_part)
{
    const tp_operand *x = &launch->in[0], *sum = &launch->out[0];
    ref_each (x, r, c)
        ref_store(sum, r, c, ref_load(x, r, c) + (launch->accumulate ? ref_load(sum, r, c) : 0));
}

TP_REF_KERNEL(all_reduce) { keep(launch); }
TP_REF_KERNEL(reduce_scatter) { keep(launch); }
TP_REF_KERNEL(all_gather) { keep(launch); }
TP_REF_KERNEL(all_gather_part) { keep(launch); }
TP_REF_KERNEL(all_reduce_part) { keep(launch); }
TP_REF_KERNEL(sum_tensor) { keep(launch); }
TP_REF_KERNEL(all_reduce_tensor) { keep(launch); }
TP_REF_KERNEL(broadcast) { keep(launch); }
TP_REF_KERNEL(wait) { keep(launch); }
