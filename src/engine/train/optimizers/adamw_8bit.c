/* adamw_8bit.c - AdamW with moments in 8 bits, as bitsandbytes.optim.AdamW8bit.  As there, and with
 * transformers' Trainer, small tensors and embeddings keep moments in f32. */
#include "engine/device/dynamic_map.h"
#include "engine/train/optimizers/optimizer_rows.h"

typedef struct {
    double eps;
    tp_f64_list betas; /* two, below 1 */
    int64_t least;     /* elements of a tensor whose moments have 8 bits */
} adamw_8bit_settings;
TP_OPTIMIZER_OWN(adamw_8bit_settings)

/* clang-format off */
#define HOLDER adamw_8bit_settings
static const tp_option keys[] = {
    OF_ALL("policy.optimizer.kwargs.lr", lr, "1.0e-3", "AdamW8bit: learning rate, before the schedule.")
    OF_ALL("policy.optimizer.kwargs.weight_decay", weight_decay, "1.0e-2", "AdamW8bit: decoupled weight decay.")
    REALS("policy.optimizer.kwargs.betas", betas, "[0.9, 0.999]", 0, 1, "AdamW8bit: decay of the first and second moments.")
    REAL("policy.optimizer.kwargs.eps", eps, "1.0e-8", 0, 1, "AdamW8bit: added to the root of the second moment.")
    COUNT("policy.optimizer.kwargs.min_8bit_size", least, "4096", 1, 1e15, "AdamW8bit: tensors of fewer elements keep moments in float32, as embeddings do.")
    REFUSED("policy.optimizer.kwargs.amsgrad", NULL, "false|null", "The largest second moments so far are not kept.")
    REFUSED("policy.optimizer.kwargs.optim_bits", NULL, "32|null", "bitsandbytes takes no other value here; moments have 8 bits.")
    REFUSED("policy.optimizer.kwargs.percentile_clipping", NULL, "100|null", "Clipping is policy.percentile_clipping, of the norm of all gradients.")
    REFUSED("policy.optimizer.kwargs.block_wise", NULL, "true|null", "Every block of 256 elements has a scale.")
    REFUSED("policy.optimizer.kwargs.is_paged", NULL, "false|null", "State stays in memory.")
    {0}};
/* clang-format on */

static tp_status check(const tp_config *config, const tp_optimizer_settings *s, tp_error *err)
{
    const tp_f64_list *betas = &own(s)->betas;
    if (betas->n != 2 || betas->v[0] >= 1 || betas->v[1] >= 1)
        return tp_config_fail(config, "policy.optimizer.kwargs.betas", err,
                              "expected two numbers below 1, as in [0.9, 0.999]");
    return TP_OK;
}

static int64_t count(const tp_tensor *weight)
{
    return weight->dim[0] * (weight->rank == 2 ? weight->dim[1] : 1);
}

static bool is_small(const tp_optimizer_settings *s, const tp_optimizer_operands *x)
{
    return x->weight.is_embedding || count(x->weight.tensor) < own(s)->least;
}

static int states(const tp_optimizer_settings *s, const tp_optimizer_operands *x,
                  tp_optimizer_state ret[TP_OPTIMIZER_STATES])
{
    if (is_small(s, x))
        return tp_optimizer_adamw.states(s, x, ret);
    int64_t n = count(x->weight.tensor), blocks = (n + TP_DYNAMIC_BLOCK - 1) / TP_DYNAMIC_BLOCK;
    ret[0] =
        (tp_optimizer_state){.name = "adam_8bit", .dtype = TP_DTYPE_U8, .rank = 2, .dim = {2, n}};
    ret[1] = (tp_optimizer_state){
        .name = "adam_absmax", .dtype = TP_DTYPE_F32, .rank = 2, .dim = {2, blocks}};
    return 2;
}

static void update(const tp_optimizer_settings *s, const tp_optimizer_operands *x, tp_graph *g,
                   const char *label)
{
    if (is_small(s, x)) {
        tp_optimizer_adamw.update(s, x, g, label);
        return;
    }
    tp_ref in[] = {x->p, x->grad, x->scalars, x->state[0], x->state[1]};
    tp_attrs attrs = {.decay = 1.0f};
    tp_graph_op(g, TP_OP_adamw_8bit, &attrs, 5, in, label);
}

static void scalars(const tp_optimizer_settings *s, const tp_optimizer_step *step,
                    tp_optimizer_scalars *ret)
{
    const double *betas = own(s)->betas.v;
    *ret = tp_adamw_scalars(step->lr, betas[0], betas[1], own(s)->eps, s->weight_decay, step->t,
                            step->grad_factor);
}

const tp_optimizer tp_optimizer_adamw_8bit = {.looks_at_whole = true,
                                              .name = "AdamW8bit",
                                              .options = keys,
                                              .check = check,
                                              .states = states,
                                              .update = update,
                                              .scalars = scalars};
