/* update.c - the optimizer's step: the sum of squares that clipping needs, AdamW and SGD. */
#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"

static void run_sumsq(const tp_launch *launch)
{
    const tp_operand *x = &launch->in[0], *out = &launch->out[0];
    double sum = ref_accumulated(launch, 1, 0, 0);
    for (int64_t r = 0; r < x->dim[0]; r++) {
        for (int64_t c = 0; c < x->dim[1]; c++)
            sum += ref_load(x, r, c) * ref_load(x, r, c);
    }
    if (is_bound(out))
        ref_store(out, 0, 0, sum);
}

/* As torch.optim.AdamW: the decay does not pass through the moments. */
static void run_adamw(const tp_launch *launch)
{
    const tp_operand *p = &launch->in[0], *g = &launch->in[1], *m = &launch->in[2];
    const tp_operand *v = &launch->in[3], *scalars = &launch->in[4];
    const tp_operand *p_out = &launch->out[0], *m_out = &launch->out[1];
    const tp_operand *v_out = &launch->out[2], *shadow = &launch->out[3];
    double lr = ref_load(scalars, 0, 0), beta1 = ref_load(scalars, 1, 0);
    double beta2 = ref_load(scalars, 2, 0), eps = ref_load(scalars, 3, 0);
    double weight_decay = ref_load(scalars, 4, 0) * (double)launch->attrs.decay;
    double correction1 = ref_load(scalars, 5, 0), correction2 = ref_load(scalars, 6, 0);
    double factor = ref_load(scalars, 7, 0);
    for (int64_t r = 0; r < p->dim[0]; r++) {
        for (int64_t c = 0; c < p->dim[1]; c++) {
            double gradient = ref_load(g, r, c) * factor;
            double first = beta1 * ref_load(m, r, c) + (1 - beta1) * gradient;
            double second = beta2 * ref_load(v, r, c) + (1 - beta2) * gradient * gradient;
            double decayed = ref_load(p, r, c) * (1 - lr * weight_decay);
            double step = lr / correction1 * first / (sqrt(second / correction2) + eps);
            double updated = ref_round(p->dtype, decayed - step);
            ref_store(m_out, r, c, first);
            ref_store(v_out, r, c, second);
            ref_store(p_out, r, c, updated);
            if (is_bound(shadow))
                ref_store(shadow, r, c, updated);
        }
    }
}

/* As torch.optim.SGD: the decay passes through the momentum. */
static void run_sgd(const tp_launch *launch)
{
    const tp_operand *p = &launch->in[0], *g = &launch->in[1], *scalars = &launch->in[2];
    const tp_operand *m = &launch->in[3], *p_out = &launch->out[0], *m_out = &launch->out[1];
    const tp_operand *shadow = &launch->out[2];
    double lr = ref_load(scalars, 0, 0), momentum = ref_load(scalars, 1, 0);
    double take = ref_load(scalars, 2, 0), weight_decay = ref_load(scalars, 4, 0);
    double factor = ref_load(scalars, 7, 0);
    for (int64_t r = 0; r < p->dim[0]; r++) {
        for (int64_t c = 0; c < p->dim[1]; c++) {
            double at = ref_load(p, r, c);
            double direction = ref_load(g, r, c) * factor + weight_decay * at;
            double next = momentum * ref_load(m, r, c) + take * direction;
            direction = launch->attrs.nesterov ? direction + momentum * next : next;
            ref_store(m_out, r, c, next);
            double updated = ref_round(p->dtype, at - lr * direction);
            ref_store(p_out, r, c, updated);
            if (is_bound(shadow))
                ref_store(shadow, r, c, updated);
        }
    }
}

TP_REF_KERNEL(sumsq);
TP_REF_KERNEL(adamw);
TP_REF_KERNEL(sgd);
