/* recipe.h - a configuration file and overrides, bound to the options of a training. */
#ifndef TP_ENGINE_TRAIN_RECIPE_H
#define TP_ENGINE_TRAIN_RECIPE_H

#include "base/strings.h"
#include "engine/train/options.h"

typedef struct {
    tp_config *config;
    tp_train_options options; /* texts point into config */
    tp_buf said;              /* what was chosen for it, a sentence; empty: nothing */
} tp_recipe;

/* Read it, and the overrides, and no more. */
TP_CHECKED tp_status tp_recipe_load(const char *path, const char *const *overrides, size_t n,
                                    tp_config **ret, tp_error *err);
/* Bind what was read; `sizes_only` for a plan: no data need be named. */
TP_CHECKED tp_status tp_recipe_bind(tp_recipe *recipe, bool sizes_only, tp_error *err);
/* `path` NULL: defaults and overrides alone.  Unless set, run.name is the file's name.  In one of
 * several processes what a recipe leaves open is chosen when they have joined. */
TP_CHECKED tp_status tp_recipe_open(const char *path, const char *const *overrides, size_t n,
                                    tp_recipe *ret, tp_error *err);
/* The same for a plan: no data need be named. */
TP_CHECKED tp_status tp_recipe_open_sizes(const char *path, const char *const *overrides, size_t n,
                                          tp_recipe *ret, tp_error *err);
/* The same, and nothing is chosen for it (fit.h). */
TP_CHECKED tp_status tp_recipe_read_sizes(const char *path, const char *const *overrides, size_t n,
                                          tp_recipe *ret, tp_error *err);
/* Settings as a recipe that inherits from `parent`, NULL: from none (tp_config_heir()). */
TP_CHECKED tp_status tp_recipe_heir(const char *parent, const char *const *settings, size_t n,
                                    tp_buf *out, tp_error *err);
/* What no key says, as there: who trains together, and with what. */
void tp_recipe_place(tp_recipe *recipe, const tp_train_options *as);
/* Is it one of an evaluation? */
bool tp_recipe_is_evaluation(const tp_config *config);
void tp_recipe_close(tp_recipe *recipe);

#endif
