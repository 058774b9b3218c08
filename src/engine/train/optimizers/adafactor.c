/* adafactor.c - Adafactor (Shazeer and Stern, arXiv 1804.04235), as torch.optim.Adafactor and as
 * transformers.Adafactor, which differ: see the op. */
#include <math.h>

#include "engine/train/optimizers/optimizer_rows.h"

typedef struct {
    tp_f64_list eps; /* of squares, of the parameter's size */
    double d, beta2_decay;
    double beta1; /* NaN: no first moment.  From here on of transformers alone. */
    bool scale_parameter, relative_step, warmup_init;
} adafactor_settings;
TP_OPTIMIZER_OWN(adafactor_settings)

/* clang-format off */
#define HOLDER adafactor_settings
static const tp_option torch_keys[] = {
    OF_ALL("policy.optimizer.kwargs.lr", lr, "1.0e-2", "Adafactor: at most this, and 1/sqrt(step), times the size of the parameter.")
    OF_ALL("policy.optimizer.kwargs.weight_decay", weight_decay, "0", "Adafactor: decoupled weight decay.")
    REALS("policy.optimizer.kwargs.eps", eps, "[1.1920928955078125e-07, 1.0e-3]", 0, 1, "Adafactor: least root of a second moment, least size of a parameter.")
    REAL("policy.optimizer.kwargs.d", d, "1", 1e-30, 1e30, "Adafactor: an update larger than this, by its root mean square, is made smaller.")
    REAL("policy.optimizer.kwargs.beta2_decay", beta2_decay, "-0.8", -1000, 0, "Adafactor: of new squares step^beta2_decay is taken.")
    {0}};

static const tp_option transformers_keys[] = {
    OF_ALL_OR_NULL("policy.optimizer.kwargs.lr", lr, "null", "transformers' Adafactor: learning rate, before the schedule, where relative_step is false.")
    OF_ALL("policy.optimizer.kwargs.weight_decay", weight_decay, "0", "transformers' Adafactor: times the step's size.")
    REALS("policy.optimizer.kwargs.eps", eps, "[1.0e-30, 1.0e-3]", 0, 1, "transformers' Adafactor: added to squares, least size of a parameter.")
    REAL("policy.optimizer.kwargs.clip_threshold", d, "1", 1e-30, 1e30, "transformers' Adafactor: an update larger than this, by its root mean square, is made smaller.")
    REAL("policy.optimizer.kwargs.decay_rate", beta2_decay, "-0.8", -1000, 0, "transformers' Adafactor: of new squares step^decay_rate is taken.")
    REAL_OR_NULL("policy.optimizer.kwargs.beta1", beta1, "null", 0, 1, "transformers' Adafactor: decay of a running average of updates; null = none is kept.")
    FLAG("policy.optimizer.kwargs.scale_parameter", scale_parameter, "true", "transformers' Adafactor: steps are relative to the size of the parameter.")
    FLAG("policy.optimizer.kwargs.relative_step", relative_step, "true", "transformers' Adafactor: the step is 1/sqrt(step), at most 0.01; lr has to be null.")
    FLAG("policy.optimizer.kwargs.warmup_init", warmup_init, "false", "transformers' Adafactor: the most that relative_step takes is 1e-6 * step.")
    {0}};
/* clang-format on */

static tp_status check_eps(const tp_config *config, const tp_optimizer_settings *s, tp_error *err)
{
    if (own(s)->eps.n == 2)
        return TP_OK;
    return tp_config_fail(config, "policy.optimizer.kwargs.eps", err,
                          "expected two numbers, as in [1.0e-30, 1.0e-3]");
}

static tp_status check_transformers(const tp_config *config, const tp_optimizer_settings *s,
                                    tp_error *err)
{
    const adafactor_settings *o = own(s);
    TP_TRY(check_eps(config, s, err));
    if (o->relative_step && isfinite(s->lr))
        return tp_config_fail(config, "policy.optimizer.kwargs.lr", err,
                              "is not used with relative_step, which has to be false");
    if (!o->relative_step && !isfinite(s->lr))
        return tp_config_fail(config, "policy.optimizer.kwargs.lr", err,
                              "is needed where relative_step is false");
    if (o->warmup_init && !o->relative_step)
        return tp_config_fail(config, "policy.optimizer.kwargs.warmup_init", err,
                              "needs relative_step: true");
    const tp_json *schedule = tp_config_find(config, "policy.scheduler");
    if (o->relative_step && schedule && schedule->type != TP_JSON_NULL)
        return tp_config_fail(config, "policy.scheduler", err,
                              "has no effect on transformers.Adafactor with relative_step: leave "
                              "it out, or set policy.optimizer.kwargs.relative_step: false and lr");
    return TP_OK;
}

static bool has_moment(const tp_optimizer_settings *s)
{
    return s->kind == &tp_optimizer_adafactor_transformers && isfinite(own(s)->beta1);
}

static int states(const tp_optimizer_settings *s, const tp_optimizer_operands *x,
                  tp_optimizer_state ret[TP_OPTIMIZER_STATES])
{
    const tp_tensor *weight = x->weight.tensor;
    int64_t n = weight->dim[0];
    ret[0] = (tp_optimizer_state){.name = "adafactor_squares",
                                  .dtype = TP_DTYPE_F32,
                                  .rank = 1,
                                  .dim = {weight->rank == 2 ? n + weight->dim[1] : n, 1}};
    ret[1] = tp_optimizer_state_like(x->weight.tensor, "adafactor_m");
    return has_moment(s) ? 2 : 1;
}

static void update(const tp_optimizer_settings *s, const tp_optimizer_operands *x, tp_graph *g,
                   const char *label)
{
    bool is_torch = s->kind == &tp_optimizer_adafactor;
    tp_ref in[] = {x->p, x->grad, x->scalars, x->state[0], x->state[1]};
    tp_attrs attrs = {.scaled = is_torch || own(s)->scale_parameter, .transformers = !is_torch};
    if (has_moment(s))
        tp_graph_op(g, TP_OP_adafactor_moment, &attrs, 5, in, label);
    else
        tp_graph_op(g, TP_OP_adafactor, &attrs, 4, in, label);
}

static void torch_scalars(const tp_optimizer_settings *s, const tp_optimizer_step *step,
                          tp_optimizer_scalars *ret)
{
    const adafactor_settings *o = own(s);
    double t = (double)step->t, taken = pow(t, o->beta2_decay);
    *ret = (tp_optimizer_scalars){.v = {fmin(step->lr, 1 / sqrt(t)), 0, taken, o->eps.v[0],
                                        step->lr * s->weight_decay, o->eps.v[1], o->d,
                                        step->grad_factor}};
}

static void transformers_scalars(const tp_optimizer_settings *s, const tp_optimizer_step *step,
                                 tp_optimizer_scalars *ret)
{
    const adafactor_settings *o = own(s);
    double t = (double)step->t, most = o->warmup_init ? 1e-6 * t : 1e-2;
    double rate = o->relative_step ? fmin(most, 1 / sqrt(t)) : step->lr;
    *ret = (tp_optimizer_scalars){.v = {rate, has_moment(s) ? o->beta1 : 0, pow(t, o->beta2_decay),
                                        o->eps.v[0], s->weight_decay, o->eps.v[1], o->d,
                                        step->grad_factor}};
}

const tp_optimizer tp_optimizer_adafactor = {.name = "Adafactor",
                                             .looks_at_whole = true,
                                             .options = torch_keys,
                                             .check = check_eps,
                                             .states = states,
                                             .update = update,
                                             .scalars = torch_scalars};
const tp_optimizer tp_optimizer_adafactor_transformers = {.name = "transformers.Adafactor",
                                                          .looks_at_whole = true,
                                                          .options = transformers_keys,
                                                          .check = check_transformers,
                                                          .states = states,
                                                          .update = update,
                                                          .scalars = transformers_scalars};
