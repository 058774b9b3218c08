/* sgd.c - stochastic gradient descent, as torch.optim.SGD: the decay passes through the momentum,
 * and the first gradient is taken whole, whatever the dampening. */
#include "engine/train/optimizers/optimizer_rows.h"

typedef struct {
    double momentum, dampening;
    bool nesterov;
} sgd_settings;
TP_OPTIMIZER_OWN(sgd_settings)

/* clang-format off */
#define HOLDER sgd_settings
static const tp_option keys[] = {
    OF_ALL("policy.optimizer.kwargs.lr", lr, "1.0e-3", "SGD: learning rate, before the schedule.")
    OF_ALL("policy.optimizer.kwargs.weight_decay", weight_decay, "0", "SGD: times the weight, added to the gradient.")
    REAL("policy.optimizer.kwargs.momentum", momentum, "0", 0, 1, "SGD: what is kept of the gradients before.")
    REAL("policy.optimizer.kwargs.dampening", dampening, "0", 0, 1, "SGD: share of the gradient that does not enter the momentum.")
    FLAG("policy.optimizer.kwargs.nesterov", nesterov, "false", "SGD: Nesterov's momentum.")
    {0}};
/* clang-format on */

static tp_status check(const tp_config *config, const tp_optimizer_settings *s, tp_error *err)
{
    if (own(s)->nesterov && (own(s)->momentum == 0 || own(s)->dampening != 0))
        return tp_config_fail(config, "policy.optimizer.kwargs.nesterov", err,
                              "needs a momentum above 0, and no dampening");
    return TP_OK;
}

static int states(const tp_optimizer_settings *s, const tp_optimizer_operands *x,
                  tp_optimizer_state ret[TP_OPTIMIZER_STATES])
{
    (void)s;
    ret[0] = tp_optimizer_state_like(x->weight.tensor, "sgd_momentum");
    return 1;
}

static void update(const tp_optimizer_settings *s, const tp_optimizer_operands *x, tp_graph *g,
                   const char *label)
{
    tp_ref in[] = {x->p, x->grad, x->scalars, x->state[0]};
    tp_attrs attrs = {.nesterov = own(s)->nesterov};
    tp_graph_op(g, TP_OP_sgd, &attrs, 4, in, label);
}

static void scalars(const tp_optimizer_settings *s, const tp_optimizer_step *step,
                    tp_optimizer_scalars *ret)
{
    bool is_damped = step->t > 1 && own(s)->momentum != 0;
    double taken = is_damped ? 1 - own(s)->dampening : 1;
    *ret = (tp_optimizer_scalars){
        .v = {step->lr, own(s)->momentum, taken, 0, s->weight_decay, 0, 0, step->grad_factor}};
}

const tp_optimizer tp_optimizer_sgd = {.name = "SGD",
                                       .options = keys,
                                       .check = check,
                                       .states = states,
                                       .update = update,
                                       .scalars = scalars};
