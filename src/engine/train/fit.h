/* fit.h - a run that does not fit: what would make it, and what a level may choose so that it does.
 */
#ifndef TP_ENGINE_TRAIN_FIT_H
#define TP_ENGINE_TRAIN_FIT_H

#include "engine/train/plan.h"
#include "engine/train/recipe.h"

/* A change that takes less, and what would be needed with it. */
typedef struct {
    char change[96]; /* "policy.recompute=full" */
    size_t peak_bytes;
    bool fits;
} tp_plan_remedy;
enum { TP_PLAN_REMEDIES = 3 };

typedef struct {
    tp_plan_remedy v[TP_PLAN_REMEDIES]; /* what saves most first */
    int n;
    tp_plan_remedy all; /* all of them at once */
} tp_plan_remedies;

/* Found by planning with each of them. */
void tp_run_plan_remedies(const tp_train_options *o, const tp_model *model, bool resumes,
                          const tp_run_plan *plan, tp_plan_remedies *ret);

/* "fits: needs 3.0 MiB, limit 21.2 GiB (engine.memory_fraction 0.9 of 23.5 GiB: physical
 * memory)"; when it does not fit, the levers behind it, each after `separator`. */
void tp_run_plan_verdict(const tp_run_plan *plan, const tp_plan_remedies *levers,
                         const char *separator, tp_buf *out);
/* TP_ERR_NOMEM with that sentence unless it fits. */
TP_CHECKED tp_status tp_run_plan_check(const tp_train_options *o, const tp_model *model,
                                       bool resumes, const tp_run_plan *plan, tp_error *err);

/* The next change that takes less than peak_bytes, at least a hundredth of them, what changes no
 * bit first; false: there is none. */
bool tp_run_plan_next_remedy(const tp_train_options *o, const tp_model *model, size_t peak_bytes,
                             tp_plan_remedy *ret);

/* Zero configuration: when a bound recipe does not fit, and its level is not basic, keys that it
 * leaves open are chosen so that it does, what changes no bit first; recipe->said is a sentence
 * then.  The choice is for the ranks of the options: a function of recipe, model, their number and
 * the limit alone, so that it is the same on each of them and in a plan.  A recipe whose model
 * cannot be opened stays as it is: whoever opens it says why. */
TP_CHECKED tp_status tp_recipe_fit(tp_recipe *recipe, bool sizes_only, tp_error *err);

#endif
