/* adapter.c - what adapters need besides products: scale, dropout, the norms and columns of DoRA,
 * rows of several adapters. */
#include "engine/backend/dropout.h"
#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"

TP_REF_KERNEL(scale)
{
    const tp_operand *x = &launch->in[0], *y = &launch->out[0];
    ref_each (y, r, c)
        ref_store(y, r, c, (double)launch->attrs.scale * ref_load(x, r, c));
}

TP_REF_KERNEL(dropout)
{
    const tp_operand *x = &launch->in[0], *y = &launch->out[0];
    if (!is_bound(y))
        return;
    tp_dropout d = tp_dropout_of(launch);
    ref_each (y, r, c) {
        uint64_t i = (uint64_t)(r * y->dim[1] + c);
        float factors[4];
        tp_dropout_factors(&d, i / 4, factors);
        double kept = factors[i % 4] == 0 ? 0 : ref_load(x, r, c) * (double)factors[i % 4];
        ref_store(y, r, c, kept);
    }
}

TP_REF_KERNEL(dora_norm)
{
    const tp_operand *w = &launch->in[0], *a = &launch->in[1], *b = &launch->in[2];
    const tp_operand *norm = &launch->out[0];
    if (!is_bound(norm))
        return;
    for (int64_t n = 0; n < norm->dim[0]; n++) {
        double squares = 0;
        for (int64_t k = 0; k < a->dim[1]; k++) {
            double product = 0;
            for (int64_t r = 0; r < a->dim[0]; r++)
                product += ref_load(b, n, r) * ref_load(a, r, k);
            double weight = launch->attrs.transposed ? ref_load(w, k, n) : ref_load(w, n, k);
            weight += (double)launch->attrs.scale * product;
            squares += weight * weight;
        }
        ref_store(norm, n, 0, launch->attrs.part ? squares : sqrt(squares));
    }
}

TP_REF_KERNEL(root)
{
    const tp_operand *squares = &launch->in[0], *norm = &launch->out[0];
    ref_each (norm, n, c)
        ref_store(norm, n, c, sqrt(ref_load(squares, n, c)));
}

TP_REF_KERNEL(dora)
{
    const tp_operand *x = &launch->in[0], *m = &launch->in[1], *norm = &launch->in[2];
    const tp_operand *b = &launch->in[3], *y = &launch->out[0];
    ref_each (y, t, n) {
        double value = ref_load(x, t, n) * (ref_load(m, n, 0) / ref_load(norm, n, 0));
        ref_store(y, t, n, value + (is_bound(b) ? ref_load(b, n, 0) : 0));
    }
}

TP_REF_KERNEL(dora_dm)
{
    const tp_operand *x = &launch->in[0], *norm = &launch->in[1], *dy = &launch->in[2];
    const tp_operand *dm = &launch->out[0];
    if (!is_bound(dm))
        return;
    for (int64_t n = 0; n < dm->dim[0]; n++) {
        double sum = 0;
        for (int64_t t = 0; t < dy->dim[0]; t++)
            sum += ref_load(dy, t, n) * ref_load(x, t, n);
        ref_store(dm, n, 0, ref_accumulated(launch, 3, n, 0) + sum / ref_load(norm, n, 0));
    }
}

TP_REF_KERNEL(choose_rows)
{
    const tp_operand *y = &launch->out[0];
    const int32_t *which = launch->in[2].data, *place = launch->in[3].data;
    if (!is_bound(y))
        return;
    for (int64_t t = 0; t < y->dim[0]; t++) {
        bool is_other =
            which[t] == launch->attrs.n0 && place[t] >= 0 && place[t] < launch->in[1].dim[0];
        for (int64_t n = 0; n < y->dim[1]; n++)
            ref_store(y, t, n, ref_load(&launch->in[is_other], is_other ? place[t] : t, n));
    }
}
