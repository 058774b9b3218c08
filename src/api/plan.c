/* plan.c - the planner's numbers as the plain struct of temper/plan.h. */
#include "temper/plan.h"

#include <math.h>

#include "api/sized.h"
#include "engine/data/pack.h"
#include "engine/ir/ops.h"
#include "engine/train/recipe.h"
#include "engine/train/trainer.h"

static double launches_seconds(const tp_exec *exec, const tp_machine *m, tp_dtype dtype)
{
    double s = 0;
    for (size_t i = 0; i < tp_exec_launch_count(exec); i++) {
        const tp_launch_info *l = tp_exec_launch(exec, i);
        bool contracts = (tp_ops[l->op]->traits & TP_OP_CONTRACTS) != 0;
        s +=
            contracts ? tp_machine_seconds(m, dtype, l->flops, l->bytes) : l->bytes / m->copy_bytes;
    }
    return s;
}

/* NaN when this machine was not measured. */
static double step_seconds(const tp_session *session, const tp_session_plan *plan,
                           double micro_batches)
{
    tp_machine m;
    bool found = false;
    const tp_session_options *so = tp_session_get_options(session);
    if (tp_machine_load(&tp_backend_cpu, so->threads, &m, &found, NULL) != TP_OK || !found)
        return NAN;
    return micro_batches *
               launches_seconds(tp_session_exec(session, "train"), &m, so->compute_dtype) +
           plan->update_bytes / m.update_bytes;
}

/* Batches that the loaders of training and validation hold. */
static size_t loader_bytes(const tp_train_options *o, int64_t tokens)
{
    int64_t each = o->data.num_workers * o->data.prefetch_factor + 1;
    return 2 * (size_t)each * tp_microbatch_bytes((int32_t)tokens);
}

static tp_training_plan summarise(const tp_train_options *o, const tp_model *model,
                                  const tp_session *session)
{
    tp_session_plan p;
    tp_session_get_plan(session, &p);
    int64_t tokens = tp_session_get_options(session)->tokens;
    double wanted =
        (double)o->policy.train_global_batch_size * (double)o->policy.max_total_sequence_length;
    double n = ceil(wanted / (double)tokens);
    tp_training_plan r = {.parameters = tp_model_param_count(model),
                          .tokens_per_micro_batch = tokens,
                          .micro_batches_per_step = (int64_t)n,
                          .peak_bytes = loader_bytes(o, tokens),
                          .weight_bytes = p.bytes[TP_MEM_WEIGHTS],
                          .shadow_bytes = p.bytes[TP_MEM_SHADOW],
                          .gradient_bytes = p.bytes[TP_MEM_GRADIENTS],
                          .optimizer_bytes = p.bytes[TP_MEM_OPTIMIZER],
                          .activation_bytes = p.bytes[TP_MEM_ACTIVATIONS],
                          .checkpoint_bytes = p.checkpoint_bytes,
                          .flops_per_micro_batch = p.train_flops,
                          .recompute_flops_per_micro_batch = p.recompute_flops,
                          .flops_per_step = p.train_flops * n,
                          .bytes_per_step = p.train_bytes * n + p.update_bytes,
                          .step_s = step_seconds(session, &p, n)};
    for (int k = 0; k < TP_MEM_KINDS; k++)
        r.peak_bytes += p.bytes[k];
    r.other_bytes = r.peak_bytes - r.weight_bytes - r.shadow_bytes - r.gradient_bytes -
                    r.optimizer_bytes - r.activation_bytes;
    return r;
}

tp_status tp_training_plan_compute(const char *config, const char *const *overrides,
                                   size_t n_overrides, tp_training_plan *ret, tp_error *err)
{
    tp_recipe recipe;
    tp_model *model;
    tp_session *session;
    if (!ret)
        return tp_fail(err, TP_ERR_ARG, "tp_training_plan_compute: ret is NULL");
    TP_TRY(tp_sized_check(ret, "tp_training_plan", err));
    TP_TRY(tp_recipe_open(config, overrides, n_overrides, &recipe, err));
    tp_status status = tp_train_plan(&recipe.options, &model, &session, err);
    if (status == TP_OK) {
        tp_training_plan own = summarise(&recipe.options, model, session);
        tp_sized_write(ret, &own, sizeof own);
        tp_session_free(session);
        tp_model_free(model);
    }
    tp_recipe_close(&recipe);
    return status;
}
