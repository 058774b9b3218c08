/* plan.c - the planner's numbers as the plain struct of temper/plan.h. */
#include "temper/plan.h"

#include "api/training.h"
#include "base/sized.h"
#include "engine/train/plan.h"
#include "engine/train/recipe.h"

static tp_training_plan summarise(const tp_run_plan *p)
{
    const tp_session_plan *s = &p->session;
    tp_training_plan r = {.parameters = p->parameters,
                          .tokens_per_micro_batch = p->micro_tokens,
                          .micro_batches_per_step = (int64_t)p->micro_batches,
                          .peak_bytes = p->peak_bytes,
                          .weight_bytes = p->bytes[TP_MEM_WEIGHTS],
                          .shadow_bytes = p->bytes[TP_MEM_SHADOW],
                          .gradient_bytes = p->bytes[TP_MEM_GRADIENTS],
                          .optimizer_bytes = p->bytes[TP_MEM_OPTIMIZER],
                          .activation_bytes = p->bytes[TP_MEM_ACTIVATIONS],
                          .checkpoint_bytes = s->checkpoint_bytes,
                          .flops_per_micro_batch = s->train_flops,
                          .recompute_flops_per_micro_batch = s->recompute_flops,
                          .flops_per_step = p->flops,
                          .bytes_per_step = p->moved_bytes,
                          .step_s = p->step_s,
                          .generator_bytes = p->generator_bytes,
                          .reference_bytes = p->reference_bytes,
                          .limit_bytes = (uint64_t)p->allowance.bytes,
                          .fits = p->fits,
                          .generation_s = p->generation_s,
                          .logprob_s = p->logprob_s,
                          .reference_s = p->reference_s,
                          .training_s = p->training_s,
                          .update_s = p->update_s};
    for (int i = 0; i < TP_PLAN_PHASES; i++)
        r.phase_bytes[i] = tp_plan_phase_bytes(p, (tp_plan_phase)i);
    r.other_bytes = r.peak_bytes - r.weight_bytes - r.shadow_bytes - r.gradient_bytes -
                    r.optimizer_bytes - r.activation_bytes;
    return r;
}

static tp_status compute(const tp_train_options *o, tp_run_plan *ret, tp_error *err)
{
    tp_model *model;
    tp_machine machine;
    TP_OWN(tp_run_graphs) graphs = {0};
    tp_run_graphs_options more = {0};
    bool found = false;
    TP_TRY(tp_run_model_open(o, &model, NULL, err));
    tp_status status = tp_run_graphs_create(o, model, &more, &graphs, err);
    if (status == TP_OK) {
        if (tp_trainer_machine(o, &machine, &found, NULL) != TP_OK)
            found = false;
        status = tp_run_plan_make(o, model, &graphs, found ? &machine : NULL, ret, err);
    }
    tp_model_free(model);
    return status;
}

tp_status tp_training_plan_compute(const char *config, const char *const *overrides,
                                   size_t n_overrides, tp_training_plan *ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_CLEANUP(tp_recipe_close) tp_recipe recipe = {0};
    tp_run_plan plan;
    if (!ret)
        return tp_fail(err, TP_ERR_ARG, "tp_training_plan_compute: ret is NULL");
    TP_TRY(tp_sized_check(ret, "tp_training_plan", err));
    TP_TRY(tp_recipe_open_sizes(config, overrides, n_overrides, &recipe, err));
    TP_TRY(tp_training_check_rules(recipe.config, &recipe.options, err));
    TP_TRY(compute(&recipe.options, &plan, err));
    tp_training_plan own = summarise(&plan);
    tp_sized_write(ret, &own, sizeof own);
    return TP_OK;
}
