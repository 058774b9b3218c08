/* levers.c - the levers of a configuration as the plain structs of temper/levers.h. */
#include "temper/levers.h"

#include <string.h>

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

tp_status tp_training_levers(const char *config, const char *const *overrides, size_t n_overrides,
                             tp_lever_report **ret, size_t *ret_n, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_CLEANUP(tp_recipe_close) tp_recipe recipe = {0};
    tp_lever_reports reports;
    if (!ret || !ret_n)
        return tp_fail(err, TP_ERR_ARG, "tp_training_levers: ret is NULL");
    TP_TRY(tp_recipe_open_sizes(config, overrides, n_overrides, &recipe, err));
    TP_TRY(report(&recipe, &reports, err));
    size_t bytes = (size_t)reports.n * sizeof *reports.v;
    tp_lever_report *list = malloc(bytes);
    if (!list)
        return tp_fail(err, TP_ERR_NOMEM, "tp_training_levers: out of memory");
    memcpy(list, reports.v, bytes);
    *ret = list;
    *ret_n = (size_t)reports.n;
    return TP_OK;
}
