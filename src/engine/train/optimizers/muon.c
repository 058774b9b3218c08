/* muon.c - Muon (Jordan et al. 2024), as torch.optim.Muon, for the matrices of the blocks; all
 * other parameters are AdamW's, as in the authors' MuonWithAuxAdam. */
#include <math.h>

#include "engine/train/optimizers/optimizer_rows.h"

typedef struct {
    double momentum, eps;
    tp_f64_list coefficients;
    int64_t steps;
    int adjust; /* see adjusted() */
    bool nesterov;
    tp_f64_list adamw_betas;
    double adamw_eps, adamw_weight_decay;
} muon_settings;
TP_OPTIMIZER_OWN(muon_settings)

/* clang-format off */
#define HOLDER muon_settings
static const tp_option keys[] = {
    OF_ALL("policy.optimizer.kwargs.lr", lr, "1.0e-3", "Muon: learning rate of matrices, before the schedule.")
    OF_ALL("policy.optimizer.kwargs.weight_decay", weight_decay, "0.1", "Muon: decoupled weight decay of matrices.")
    OF_ALL("policy.optimizer.kwargs.adamw_lr", rest_lr, "3.0e-4", "Muon: learning rate of all but matrices of blocks, before the schedule.")
    REAL("policy.optimizer.kwargs.momentum", momentum, "0.95", 0, 1, "Muon: what is kept of the gradients before.")
    FLAG("policy.optimizer.kwargs.nesterov", nesterov, "true", "Muon: Nesterov's momentum.")
    REALS("policy.optimizer.kwargs.ns_coefficients", coefficients, "[3.4445, -4.775, 2.0315]", -1000, 1000, "Muon: of the iteration of Newton and Schulz.")
    REAL("policy.optimizer.kwargs.eps", eps, "1.0e-7", 0, 1, "Muon: least norm that a matrix is divided by.")
    COUNT("policy.optimizer.kwargs.ns_steps", steps, "5", 1, 99, "Muon: iterations of Newton and Schulz.")
    WORD("policy.optimizer.kwargs.adjust_lr_fn", adjust, "original", "original|match_rms_adamw|spectral_unclamped", "Muon: how the shape of a matrix enters its learning rate.")
    REALS("policy.optimizer.kwargs.adamw_betas", adamw_betas, "[0.9, 0.95]", 0, 1, "Muon: betas of AdamW for all but matrices of blocks.")
    REAL("policy.optimizer.kwargs.adamw_eps", adamw_eps, "1.0e-10", 0, 1, "Muon: eps of AdamW for all but matrices of blocks.")
    REAL("policy.optimizer.kwargs.adamw_weight_decay", adamw_weight_decay, "0", 0, 1000, "Muon: decoupled weight decay of all but matrices of blocks.")
    {0}};
/* clang-format on */

static tp_status check(const tp_config *config, const tp_optimizer_settings *s, tp_error *err)
{
    const tp_f64_list *betas = &own(s)->adamw_betas;
    if (own(s)->coefficients.n != 3)
        return tp_config_fail(config, "policy.optimizer.kwargs.ns_coefficients", err,
                              "expected three numbers, as in [3.4445, -4.775, 2.0315]");
    if (betas->n != 2 || betas->v[0] >= 1 || betas->v[1] >= 1)
        return tp_config_fail(config, "policy.optimizer.kwargs.adamw_betas", err,
                              "expected two numbers below 1, as in [0.9, 0.95]");
    return TP_OK;
}

static int states(const tp_optimizer_settings *s, const tp_optimizer_operands *x,
                  tp_optimizer_state ret[TP_OPTIMIZER_STATES])
{
    if (!x->weight.is_hidden)
        return tp_optimizer_adamw.states(s, x, ret);
    ret[0] = tp_optimizer_state_like(x->weight.tensor, "muon_momentum");
    return 1;
}

static double adjusted(int how, const tp_tensor *weight)
{
    double rows = (double)weight->dim[0], columns = (double)weight->dim[1];
    return how == 1   ? 0.2 * sqrt(fmax(rows, columns))
           : how == 2 ? sqrt(rows / columns)
                      : sqrt(fmax(1, rows / columns));
}

static void update(const tp_optimizer_settings *s, const tp_optimizer_operands *x, tp_graph *g,
                   const char *label)
{
    if (!x->weight.is_hidden) {
        tp_optimizer_operands rest = *x;
        rest.scalars = x->rest;
        tp_optimizer_adamw.update(s, &rest, g, label);
        return;
    }
    tp_ref in[] = {x->p, x->grad, x->scalars, x->state[0]};
    tp_attrs attrs = {.nesterov = own(s)->nesterov,
                      .scale = (float)adjusted(own(s)->adjust, x->weight.tensor),
                      .steps = (int32_t)own(s)->steps};
    tp_graph_op(g, TP_OP_muon, &attrs, 4, in, label);
}

static void scalars(const tp_optimizer_settings *s, const tp_optimizer_step *step,
                    tp_optimizer_scalars *ret)
{
    const muon_settings *o = own(s);
    const double *abc = o->coefficients.v;
    *ret = tp_adamw_scalars(step->rest_lr, o->adamw_betas.v[0], o->adamw_betas.v[1], o->adamw_eps,
                            o->adamw_weight_decay, step->t, step->grad_factor);
    for (int i = 0; i < TP_OPTIMIZER_SCALARS; i++)
        ret->rest[i] = ret->v[i];
    const double own_scalars[TP_OPTIMIZER_SCALARS] = {
        step->lr, o->momentum, abc[0], o->eps, s->weight_decay, abc[1], abc[2], step->grad_factor};
    for (int i = 0; i < TP_OPTIMIZER_SCALARS; i++)
        ret->v[i] = own_scalars[i];
}

const tp_optimizer tp_optimizer_muon = {.name = "Muon",
                                        .looks_at_whole = true,
                                        .leaves_a_rest = true,
                                        .options = keys,
                                        .check = check,
                                        .states = states,
                                        .update = update,
                                        .scalars = scalars};
