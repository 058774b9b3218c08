/* ablate.c - `temper ablate`: open, measure, conclude, keep. */
#include "instrument/experiment/ablation.h"

#include <math.h>
#include <string.h>

#include "instrument/experiment/study.h"

enum { MOST_ROUNDS = 40, PAIRS_WITHOUT_BUDGET = 3 };
static const double MAIN_SHARE = 0.75, NO_BUDGET = 1e9;

/* The largest relative difference of a loss that counts as rounding: the unit roundoff of the
 * coarsest numbers that a run keeps between operations, once for bfloat16 (2^-8) and float16
 * (2^-11); of float32 2^-14, a thousand of them, since steps add up what rounding begins.
 * NULL: bfloat16's. */
static double loss_rounding(const char *precision)
{
    if (precision && strcmp(precision, "float32") == 0)
        return 0x1p-14;
    return precision && strcmp(precision, "float16") == 0 ? 0x1p-11 : 0x1p-8;
}

static void show_progress(void *user, int stage, size_t round, size_t most, double left_s)
{
    tp_study_stage(user, left_s, "%s, round %zu of %s%zu",
                   stage == TP_STAGE_PAIRS ? "pairs" : "levers", round + 1,
                   most == MOST_ROUNDS ? "at most " : "", most);
}

static tp_ablation_plan make_plan(const tp_ablate_options *o, tp_study *s)
{
    bool has_time = s->o.budget_s < NO_BUDGET;
    tp_ablation_plan plan = {.most_rounds = o->rounds > 0 ? (size_t)o->rounds : MOST_ROUNDS,
                             .most_pairs = o->no_pairs         ? 0
                                           : o->most_pairs > 0 ? (size_t)o->most_pairs
                                           : has_time          ? SIZE_MAX
                                                               : PAIRS_WITHOUT_BUDGET,
                             .share = MAIN_SHARE,
                             .margin = s->o.margin,
                             .loss_tolerance = o->loss_rounding > 0
                                                   ? o->loss_rounding
                                                   : loss_rounding(tp_study_precision(s)),
                             .progress = show_progress,
                             .user = s};
    return plan;
}

/* What was measured is concluded and kept, whatever ended it. */
static tp_status finish(tp_ablation *a, const tp_study *s, char **ret, tp_error *err)
{
    tp_buf text = {0};
    TP_TRY(tp_ablation_conclude(a, err));
    TP_TRY(tp_ablation_save(a, s, err));
    if (s->o.form == TP_FORM_JSON)
        tp_ablation_json(a, s, &text);
    else {
        tp_ablation_text(a, s, TP_FORM_TEXT, &text);
        tp_buf_addf(&text, "Evidence: %s\n", s->folder);
    }
    *ret = text.data;
    return TP_OK;
}

static tp_status measure(tp_study *s, const tp_ablate_options *o, const tp_lever_set *set,
                         char **ret, tp_error *err)
{
    tp_ablation a;
    tp_ablation_plan plan = make_plan(o, s);
    TP_TRY(tp_ablation_init(&a, &s->x, set, &plan, err));
    for (size_t i = 0; i < s->x.n_variants; i++)
        TP_TRY(tp_trainings_check(&s->trainings, &s->x.variants[i], &s->x.arena, err));
    size_t runs = tp_ablation_runs(&a);
    TP_TRY(tp_study_pilot(s, a.all, TP_STAGE_PILOT, runs, runs, err));
    tp_status status = tp_ablation_run(&a, err);
    tp_study_end(s);
    return status == TP_OK ? finish(&a, s, ret, err) : status;
}

tp_status tp_ablate(const char *config, const char *const *overrides, size_t n,
                    const tp_ablate_options *options, const tp_lever_set *set, char **ret,
                    tp_error *err)
{
    TP_CLEANUP(tp_study_close) tp_study s = {0};
    tp_ablate_options o = *options;
    /* Rounds that are counted have the time that they take. */
    if (o.rounds > 0 && !(o.common.budget_s > 0))
        o.common.budget_s = NO_BUDGET;
    TP_TRY(tp_study_open(&s, "ablate", &o.common, config, overrides, n, err));
    return measure(&s, &o, set, ret, err);
}
