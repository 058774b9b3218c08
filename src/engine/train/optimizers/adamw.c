/* adamw.c - AdamW, as torch.optim.AdamW: the decay does not pass through the moments. */
#include <math.h>

#include "engine/train/optimizers/optimizer_rows.h"

typedef struct {
    double eps;
    tp_f64_list betas; /* two, below 1 */
} adamw_settings;
TP_OPTIMIZER_OWN(adamw_settings)

/* clang-format off */
#define HOLDER adamw_settings
static const tp_option keys[] = {
    OF_ALL("policy.optimizer.kwargs.lr", lr, "5.0e-6", "Learning rate, before the schedule.")
    OF_ALL("policy.optimizer.kwargs.weight_decay", weight_decay, "0.1", "Decoupled weight decay.")
    REALS("policy.optimizer.kwargs.betas", betas, "[0.9, 0.98]", 0, 1, "Decay of the first and second moments.")
    REAL("policy.optimizer.kwargs.eps", eps, "1.0e-5", 0, 1, "Added to the root of the second moment.")
    REFUSED("policy.optimizer.kwargs.amsgrad", NULL, "false|null", "The largest second moments so far are not kept.")
    REFUSED("policy.optimizer.kwargs.master_weights", NULL, "true|null", "Master weights are always float32.")
    REFUSED("policy.optimizer.kwargs.exp_avg_dtype", NULL, "torch.float32|null", "Moments are always float32.")
    REFUSED("policy.optimizer.kwargs.exp_avg_sq_dtype", NULL, "torch.float32|null", "Moments are always float32.")
    MUTE("policy.optimizer.kwargs.store_param_remainders", "Master weights are always float32.")
    {0}};
/* clang-format on */

static tp_status check(const tp_config *config, const tp_optimizer_settings *s, tp_error *err)
{
    const tp_f64_list *betas = &own(s)->betas;
    if (betas->n != 2 || betas->v[0] >= 1 || betas->v[1] >= 1)
        return tp_config_fail(config, "policy.optimizer.kwargs.betas", err,
                              "expected two numbers below 1, as in [0.9, 0.98]");
    return TP_OK;
}

static int states(const tp_optimizer_settings *s, const tp_optimizer_operands *x,
                  tp_optimizer_state ret[TP_OPTIMIZER_STATES])
{
    (void)s;
    ret[0] = tp_optimizer_state_like(x->weight.tensor, "adam_m");
    ret[1] = tp_optimizer_state_like(x->weight.tensor, "adam_v");
    return 2;
}

static void update(const tp_optimizer_settings *s, const tp_optimizer_operands *x, tp_graph *g,
                   const char *label)
{
    (void)s;
    tp_ref in[] = {x->p, x->grad, x->state[0], x->state[1], x->scalars};
    tp_attrs attrs = {.decay = 1.0f};
    tp_graph_op(g, TP_OP_adamw, &attrs, 5, in, label);
}

tp_optimizer_scalars tp_adamw_scalars(double lr, double beta1, double beta2, double eps,
                                      double weight_decay, int64_t t, double grad_factor)
{
    double n = (double)t;
    return (tp_optimizer_scalars){.v = {lr, beta1, beta2, eps, weight_decay, 1.0 - pow(beta1, n),
                                        1.0 - pow(beta2, n), grad_factor}};
}

static void scalars(const tp_optimizer_settings *s, const tp_optimizer_step *step,
                    tp_optimizer_scalars *ret)
{
    const double *betas = own(s)->betas.v;
    *ret = tp_adamw_scalars(step->lr, betas[0], betas[1], own(s)->eps, s->weight_decay, step->t,
                            step->grad_factor);
}

const tp_optimizer tp_optimizer_adamw = {.name = "AdamW",
                                         .options = keys,
                                         .check = check,
                                         .states = states,
                                         .update = update,
                                         .scalars = scalars};
