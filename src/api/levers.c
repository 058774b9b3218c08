/* levers.c - the levers of a configuration as the plain structs of temper/levers.h. */
#include "temper/levers.h"

#include <assert.h>
#include <stddef.h>

#include "base/platform.h"
#include "engine/train/levers.h"
#include "engine/train/recipe.h"

static tp_status report(const tp_recipe *recipe, tp_lever_reports *ret, tp_error *err)
{
    tp_model *model;
    tp_machine machine;
    tp_run_plan plan;
    const tp_train_options *o = &recipe->options;
    bool found = false;
    if (tp_trainer_machine(o, &machine, &found, NULL) != TP_OK)
        found = false;
    const tp_machine *measured = found ? &machine : NULL;
    TP_TRY(tp_run_model_open(o, &model, NULL, err));
    tp_status status = tp_run_plan_compute(o, model, false, measured, &plan, err);
    if (status == TP_OK) {
        tp_levers_look(recipe->config, o, ret);
        tp_levers_predict(recipe->config, o, model, &plan, false, measured, ret);
    }
    tp_model_free(model);
    return status;
}

/* The rows of plug-ins stand behind what is handed out, and go with that. */
static_assert(offsetof(tp_lever_reports, v) == 0, "tp_free(*ret) frees all of it");

tp_status tp_training_levers(const char *config, const char *const *overrides, size_t n_overrides,
                             tp_lever_report **ret, size_t *ret_n, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_CLEANUP(tp_recipe_close) tp_recipe recipe = {0};
    if (!ret || !ret_n)
        return tp_fail(err, TP_ERR_ARG, "tp_training_levers: ret is NULL");
    TP_TRY(tp_recipe_open_sizes(config, overrides, n_overrides, &recipe, err));
    TP_FREED tp_lever_reports *all = tp_new(1, sizeof *all);
    TP_TRY(report(&recipe, all, err));
    *ret = all->v;
    *ret_n = (size_t)all->n;
    all = NULL;
    return TP_OK;
}
