/* linear.c - products with a weight, and their gradients: y[T,N] = x[T,K] w^T + b. */
#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"

/* The weight that leads from input k to output n, in either layout. */
static double weight(const tp_launch *launch, const tp_operand *w, int64_t n, int64_t k)
{
    return launch->attrs.transposed ? ref_load(w, k, n) : ref_load(w, n, k);
}

static double product(const tp_launch *launch, int64_t t, int64_t n)
{
    const tp_operand *x = &launch->in[0], *w = &launch->in[1], *b = &launch->in[2];
    double sum = is_bound(b) ? ref_load(b, n, 0) : 0;
    for (int64_t k = 0; k < x->dim[1]; k++)
        sum += ref_load(x, t, k) * weight(launch, w, n, k);
    return sum;
}

TP_REF_KERNEL(linear)
{
    const tp_operand *y = &launch->out[0];
    ref_each (y, t, n)
        ref_store(y, t, n, product(launch, t, n));
}

TP_REF_KERNEL(linear_gelu)
{
    const tp_operand *act = &launch->out[0], *pre = &launch->out[1];
    for (int64_t t = 0; t < act->dim[0]; t++) {
        for (int64_t n = 0; n < act->dim[1]; n++) {
            double sum = product(launch, t, n);
            if (is_bound(act))
                ref_store(act, t, n, tp_ref_gelu_of(sum, launch->attrs.tanh));
            if (is_bound(pre))
                ref_store(pre, t, n, sum);
        }
    }
}

TP_REF_KERNEL(linear_dx)
{
    const tp_operand *dy = &launch->in[0], *w = &launch->in[1], *dx = &launch->out[0];
    ref_each (dx, t, k) {
        double sum = ref_accumulated(launch, 2, t, k);
        for (int64_t n = 0; n < dy->dim[1]; n++)
            sum += ref_load(dy, t, n) * weight(launch, w, n, k);
        ref_store(dx, t, k, sum);
    }
}

TP_REF_KERNEL(linear_dw)
{
    const tp_operand *x = &launch->in[0], *dy = &launch->in[1], *dw = &launch->out[0];
    ref_each (dw, r, c) {
        int64_t k = launch->attrs.transposed ? r : c;
        int64_t n = launch->attrs.transposed ? c : r;
        double sum = ref_accumulated(launch, 2, r, c);
        for (int64_t t = 0; t < x->dim[0]; t++)
            sum += ref_load(x, t, k) * ref_load(dy, t, n);
        ref_store(dw, r, c, sum);
    }
    if (is_bound(&launch->out[1]))
        ref_store(&launch->out[1], 0, 0, ref_sum_of_squares(dw));
}

TP_REF_KERNEL(linear_db)
{
    const tp_operand *dy = &launch->in[0], *db = &launch->out[0];
    if (!is_bound(db))
        return;
    for (int64_t n = 0; n < db->dim[0]; n++) {
        double sum = ref_accumulated(launch, 1, n, 0);
        for (int64_t t = 0; t < dy->dim[0]; t++)
            sum += ref_load(dy, t, n);
        ref_store(db, n, 0, sum);
    }
}
