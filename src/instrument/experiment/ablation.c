/* ablation.c - variants of an ablation, their rounds, which pairs are looked at, and effects. */
#include "instrument/experiment/ablation.h"

#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "base/vec.h"

const char *tp_loss_verdict_name(tp_loss_verdict verdict)
{
    static const char *const names[] = {"not shown", "bit-identical", "within rounding", "changed"};
    return names[verdict];
}

/* ---- losses ---- */

/* `tolerance`: the largest relative difference that is rounding.  A loss that is not finite on one
 * side only is a change. */
static tp_loss_effect compare_steps(const double *a, const double *b, size_t n, double tolerance)
{
    tp_loss_effect e = {.verdict = TP_LOSS_IDENTICAL, .n_steps = n, .n_rounds = 1};
    if (n == 0)
        return (tp_loss_effect){.largest = NAN};
    for (size_t i = 0; i < n; i++) {
        if (memcmp(&a[i], &b[i], sizeof a[i]) == 0)
            continue;
        double scale = fmax(fabs(a[i]), fabs(b[i]));
        double difference = scale > 0 ? fabs(a[i] - b[i]) / scale : 0;
        if (!isfinite(a[i]) && !isfinite(b[i]))
            continue;
        if (isnan(difference) || isinf(scale))
            difference = INFINITY;
        e.largest = fmax(e.largest, difference);
        e.verdict = TP_MAX(e.verdict, difference <= tolerance ? TP_LOSS_ROUNDING : TP_LOSS_CHANGED);
    }
    return e;
}

static tp_loss_effect compare_losses(const tp_ablation *a, size_t with, size_t without)
{
    tp_loss_effect worst = {.largest = NAN};
    for (size_t r = 0; r < tp_experiment_rounds(a->x, TP_STAGE_MAIN); r++) {
        const tp_trial *x = tp_experiment_trial(a->x, TP_STAGE_MAIN, r, with);
        const tp_trial *y = tp_experiment_trial(a->x, TP_STAGE_MAIN, r, without);
        if (!x || !y)
            continue;
        tp_loss_effect e = compare_steps(x->losses, y->losses, TP_MIN(x->n_steps, y->n_steps),
                                         a->plan.loss_tolerance);
        worst.verdict = TP_MAX(worst.verdict, e.verdict);
        worst.largest = fmax(worst.largest, e.largest);
        worst.n_steps = e.n_steps;
        worst.n_rounds++;
    }
    return worst;
}

/* ---- variants ---- */

static tp_put *all_on(size_t n)
{
    tp_put *put = tp_vec_new(n + 1, sizeof *put);
    for (size_t i = 0; i < n; i++)
        put[i] = TP_PUT_ON;
    return put;
}

static tp_status make_variant(tp_ablation *a, const char *name, const tp_put *put, size_t *ret,
                              tp_error *err)
{
    const char *const *settings;
    size_t n;
    TP_TRY(a->set->settings(a->set->user, put, &a->x->arena, &settings, &n, err));
    *ret = tp_experiment_variant(a->x, name, settings, n);
    return TP_OK;
}

tp_status tp_ablation_init(tp_ablation *a, tp_experiment *x, const tp_lever_set *set,
                           const tp_ablation_plan *plan, tp_error *err)
{
    *a = (tp_ablation){.set = set, .plan = *plan, .x = x};
    a->levers = tp_arena_array(&x->arena, tp_ablated_effect, set->n + 1);
    TP_FREED tp_put *put = all_on(set->n);
    TP_TRY(make_variant(a, "all", put, &a->all, err));
    for (size_t i = 0; i < set->n; i++) {
        put[i] = TP_PUT_OFF;
        TP_TRY(make_variant(a, tp_arena_printf(&x->arena, "without %s", set->levers[i].name), put,
                            &a->levers[i].variant, err));
        put[i] = TP_PUT_ON;
    }
    for (size_t i = 0; i < set->n; i++)
        put[i] = TP_PUT_OFF;
    TP_TRY(make_variant(a, "none", put, &a->none, err));
    a->all_off.variant = a->none;
    return TP_OK;
}

/* ---- rounds ---- */

static void add_new(size_t *which, size_t *n, size_t variant)
{
    for (size_t i = 0; i < *n; i++)
        if (which[i] == variant)
            return;
    which[(*n)++] = variant;
}

/* Without twins: levers that are put in the same way are measured once. */
static size_t main_variants(const tp_ablation *a, bool has_left_out, size_t *which)
{
    size_t n = 0;
    add_new(which, &n, a->all);
    add_new(which, &n, a->none);
    for (size_t k = 0; k < a->set->n; k++)
        if (has_left_out || !a->levers[k].is_left_out)
            add_new(which, &n, a->levers[k].variant);
    return n;
}

static size_t least_rounds(const tp_ablation *a)
{
    return TP_MIN(a->plan.most_rounds, (size_t)TP_FACTOR_LEAST);
}

size_t tp_ablation_runs(const tp_ablation *a)
{
    TP_FREED size_t *which = tp_vec_new(a->x->n_variants + 1, sizeof *which);
    return least_rounds(a) * main_variants(a, true, which);
}

/* Rather an answer for some levers than none for any: the last ones go until the rounds that an
 * interval needs fit.  Asked before the first round, when one run is known, and after it, when all
 * are. */
static void leave_out(tp_ablation *a, size_t rounds_to_go, size_t *which)
{
    double left_s = tp_experiment_left_s(a->x);
    size_t n = main_variants(a, true, which);
    a->whole_s = (double)least_rounds(a) * tp_experiment_expected_s(a->x, which, n);
    for (size_t k = a->set->n; k-- > 1;) {
        n = main_variants(a, false, which);
        if ((double)rounds_to_go * tp_experiment_expected_s(a->x, which, n) <= left_s)
            return;
        a->levers[k].is_left_out = true;
    }
}

static void tell(const tp_ablation *a, int stage, size_t round, const size_t *which, size_t n)
{
    size_t most = a->plan.most_rounds;
    double rounds_s = tp_experiment_expected_s(a->x, which, n) * (double)(most - round);
    if (a->plan.progress)
        a->plan.progress(a->plan.user, stage, round, most,
                         fmin(tp_experiment_left_s(a->x), rounds_s));
}

static tp_status run_main(tp_ablation *a, double share, tp_error *err)
{
    tp_experiment *x = a->x;
    double all_s = tp_experiment_left_s(x);
    TP_FREED size_t *which = tp_vec_new(x->n_variants + 1, sizeof *which);
    for (size_t r = 0; r < a->plan.most_rounds; r++) {
        bool has_enough = r >= TP_FACTOR_LEAST && tp_experiment_left_s(x) < (1 - share) * all_s;
        if (has_enough || tp_experiment_is_over(x) || x->variants[a->all].is_out)
            break;
        if (r < 2 && r < least_rounds(a))
            leave_out(a, least_rounds(a) - r, which);
        size_t n = main_variants(a, false, which);
        tell(a, TP_STAGE_MAIN, r, which, n);
        TP_TRY(tp_experiment_round(x, TP_STAGE_MAIN, r, which, n, err));
    }
    return TP_OK;
}

/* ---- pairs ---- */

static double size_of(const tp_ablated_effect *e)
{
    double time = fabs(log(e->figures[TP_FIGURE_STEP_TIME].ratio));
    double memory = fabs(log(e->figures[TP_FIGURE_PEAK_MEMORY].ratio));
    return fmax(isnan(time) ? 0 : time, isnan(memory) ? 0 : memory);
}

/* Levers by the size of their effect, the largest first; those without any are left out. */
static size_t rank_levers(const tp_ablation *a, size_t *rank)
{
    size_t n = 0;
    for (size_t i = 0; i < a->set->n; i++) {
        const tp_factor *e = a->levers[i].figures;
        tp_change time = e[TP_FIGURE_STEP_TIME].verdict, memory = e[TP_FIGURE_PEAK_MEMORY].verdict;
        bool has_effect = time == TP_CHANGE_BETTER || time == TP_CHANGE_WORSE ||
                          memory == TP_CHANGE_BETTER || memory == TP_CHANGE_WORSE;
        if (!has_effect || a->levers[i].variant == a->all)
            continue;
        size_t at = n++;
        for (; at > 0 && size_of(&a->levers[rank[at - 1]]) < size_of(&a->levers[i]); at--)
            rank[at] = rank[at - 1];
        rank[at] = i;
    }
    return n;
}

static tp_status make_pair(tp_ablation *a, size_t one, size_t other, tp_interaction *ret,
                           tp_error *err)
{
    TP_FREED tp_put *put = all_on(a->set->n);
    put[one] = put[other] = TP_PUT_OFF;
    *ret = (tp_interaction){.a = one,
                            .b = other,
                            .without_a = a->levers[one].variant,
                            .without_b = a->levers[other].variant};
    tp_status status =
        make_variant(a,
                     tp_arena_printf(&a->x->arena, "without %s and %s", a->set->levers[one].name,
                                     a->set->levers[other].name),
                     put, &ret->without_both, err);
    return status;
}

static size_t pair_variants(const tp_ablation *a, size_t n_pairs, size_t *which)
{
    size_t n = 0;
    add_new(which, &n, a->all);
    for (size_t i = 0; i < n_pairs; i++) {
        add_new(which, &n, a->pairs[i].without_a);
        add_new(which, &n, a->pairs[i].without_b);
        add_new(which, &n, a->pairs[i].without_both);
    }
    return n;
}

/* Pairs among the largest effects: (1,2), (1,3), (2,3), (1,4) ... as the budget allows. */
static tp_status choose_pairs(tp_ablation *a, size_t *which, tp_error *err)
{
    size_t *rank = tp_vec_new(a->set->n + 1, sizeof *rank), n = rank_levers(a, rank);
    size_t most = TP_MIN(a->plan.most_pairs, n * (n - (n > 0)) / 2);
    double left = tp_experiment_left_s(a->x);
    tp_status status = TP_OK;
    a->pairs = tp_arena_array(&a->x->arena, tp_interaction, most + 1);
    for (size_t j = 1; j < n && status == TP_OK && a->n_pairs < most; j++)
        for (size_t i = 0; i < j && status == TP_OK && a->n_pairs < most; i++) {
            status = make_pair(a, rank[i], rank[j], &a->pairs[a->n_pairs], err);
            size_t n_which = pair_variants(a, a->n_pairs + 1, which);
            double round_s = tp_experiment_expected_s(a->x, which, n_which);
            if (round_s * TP_FACTOR_LEAST > left)
                j = i = n; /* no further pair fits */
            else
                a->n_pairs++;
        }
    if (a->n_pairs == 0)
        a->why_no_pairs = n < 2 ? "fewer than two levers with an effect that is shown"
                                : "the budget has no six rounds for a pair";
    free(rank);
    return status;
}

static tp_status run_pairs(tp_ablation *a, tp_error *err)
{
    size_t most = a->set->n * a->set->n + a->set->n + 2;
    TP_FREED size_t *which = tp_vec_new(most, sizeof *which);
    TP_TRY(choose_pairs(a, which, err));
    size_t n = pair_variants(a, a->n_pairs, which);
    for (size_t r = 0; a->n_pairs && r < a->plan.most_rounds; r++) {
        if (tp_experiment_is_over(a->x))
            break;
        tell(a, TP_STAGE_PAIRS, r, which, n);
        TP_TRY(tp_experiment_round(a->x, TP_STAGE_PAIRS, r, which, n, err));
    }
    return TP_OK;
}

tp_status tp_ablation_run(tp_ablation *a, tp_error *err)
{
    bool wants_pairs = a->plan.most_pairs > 0 && a->set->n > 1;
    TP_TRY(run_main(a, wants_pairs ? a->plan.share : 1, err));
    if (!wants_pairs || tp_experiment_is_over(a->x) || a->x->variants[a->all].is_out)
        return TP_OK;
    TP_TRY(tp_ablation_conclude(a, err)); /* which of them have an effect? */
    return run_pairs(a, err);
}

/* ---- conclusions ---- */

static tp_status weigh_figure(const tp_ablation *a, size_t without, tp_trial_figure figure,
                              double *with, double *beside, tp_factor *ret, tp_error *err)
{
    const tp_variant *v = &a->x->variants[without];
    if (without == a->all) {
        *ret = (tp_factor){.n = a->n_rounds, .ratio = 1, .lo = 1, .hi = 1, .is_exact = true};
        ret->p = ret->p_adjusted = NAN;
        snprintf(ret->why, sizeof ret->why, "it is on and off with the same settings");
        return TP_OK;
    }
    size_t n = tp_experiment_pairs(a->x, TP_STAGE_MAIN, a->all, without, figure, with, beside);
    if (n == 0 && v->why) {
        tp_factor_unknown(ret, "the run %s failed: %.150s", v->name, v->why);
        return TP_OK;
    }
    return tp_factor_weigh(with, beside, n, figure == TP_FIGURE_PEAK_MEMORY, ret, err);
}

static tp_status weigh_lever(const tp_ablation *a, tp_ablated_effect *e, double *with,
                             double *beside, tp_error *err)
{
    for (int f = 0; f < TP_FIGURES; f++)
        if (e->is_left_out)
            tp_factor_unknown(&e->figures[f], "left out: the budget has no six rounds for it");
        else
            TP_TRY(
                weigh_figure(a, e->variant, (tp_trial_figure)f, with, beside, &e->figures[f], err));
    if (e->is_left_out)
        e->loss = (tp_loss_effect){.largest = NAN};
    else
        e->loss = compare_losses(a, a->all, e->variant);
    return TP_OK;
}

/* ln of the single effects, summed, less ln of all together, in rounds that have every variant. */
static tp_status weigh_sum(tp_ablation *a, double *with, double *beside, tp_error *err)
{
    size_t n = 0;
    for (size_t r = 0; r < a->n_rounds; r++) {
        const tp_trial *all = tp_experiment_trial(a->x, TP_STAGE_MAIN, r, a->all);
        const tp_trial *none = tp_experiment_trial(a->x, TP_STAGE_MAIN, r, a->none);
        double sum = 0;
        for (size_t i = 0; all && none && i < a->set->n; i++) {
            const tp_trial *t = tp_experiment_trial(a->x, TP_STAGE_MAIN, r, a->levers[i].variant);
            sum += t ? log(all->values[TP_FIGURE_STEP_TIME] / t->values[TP_FIGURE_STEP_TIME])
                     : (double)NAN;
        }
        if (!all || !none || isnan(sum))
            continue;
        with[n] = exp(sum);
        beside[n++] = all->values[TP_FIGURE_STEP_TIME] / none->values[TP_FIGURE_STEP_TIME];
    }
    return tp_factor_weigh(with, beside, n, false, &a->sum, err);
}

static tp_status weigh_pair(const tp_ablation *a, tp_interaction *p, tp_trial_figure figure,
                            double *with, double *beside, tp_factor *ret, tp_error *err)
{
    size_t n = 0;
    for (size_t r = 0; r < tp_experiment_rounds(a->x, TP_STAGE_PAIRS); r++) {
        const size_t four[] = {a->all, p->without_a, p->without_b, p->without_both};
        double v[4];
        bool is_whole = true;
        for (int i = 0; i < 4; i++) {
            const tp_trial *t = tp_experiment_trial(a->x, TP_STAGE_PAIRS, r, four[i]);
            v[i] = t ? t->values[figure] : (double)NAN;
            is_whole &= t != NULL;
        }
        if (!is_whole)
            continue;
        with[n] = v[0] / v[1];
        beside[n++] = v[2] / v[3];
    }
    p->rounds = n;
    return tp_factor_weigh(with, beside, n, figure == TP_FIGURE_PEAK_MEMORY, ret, err);
}

/* Every figure's effects are one family: the levers, and all of them together. */
static tp_status judge(tp_ablation *a, tp_error *err)
{
    size_t n = a->set->n;
    TP_FREED tp_factor **family = tp_vec_new(TP_MAX(n, a->n_pairs) + 2, sizeof(tp_factor *));
    for (int f = 0; f < TP_FIGURES; f++) {
        for (size_t i = 0; i < n; i++)
            family[i] = &a->levers[i].figures[f];
        family[n] = &a->all_off.figures[f];
        TP_TRY(tp_factors_judge(family, n + (n > 1), f != TP_FIGURE_TOKENS, a->plan.margin, err));
        if (n == 1) /* all of one */
            a->all_off.figures[f] = a->levers[0].figures[f];
    }
    for (size_t i = 0; i < a->n_pairs; i++)
        family[i] = &a->pairs[i].step_time;
    TP_TRY(tp_factors_judge(family, a->n_pairs, true, a->plan.margin, err));
    for (size_t i = 0; i < a->n_pairs; i++)
        family[i] = &a->pairs[i].peak_memory;
    TP_TRY(tp_factors_judge(family, a->n_pairs, true, a->plan.margin, err));
    family[0] = &a->sum;
    return tp_factors_judge(family, 1, true, a->plan.margin, err);
}

tp_status tp_ablation_conclude(tp_ablation *a, tp_error *err)
{
    a->n_rounds = tp_experiment_whole_rounds(a->x, TP_STAGE_MAIN);
    size_t room = TP_MAX(tp_experiment_rounds(a->x, TP_STAGE_MAIN),
                         tp_experiment_rounds(a->x, TP_STAGE_PAIRS)) +
                  1;
    double *with = tp_vec_new(room, sizeof *with), *beside = tp_vec_new(room, sizeof *beside);
    tp_status status = weigh_lever(a, &a->all_off, with, beside, err);
    for (size_t i = 0; i < a->set->n && status == TP_OK; i++)
        status = weigh_lever(a, &a->levers[i], with, beside, err);
    if (status == TP_OK)
        status = weigh_sum(a, with, beside, err);
    for (size_t i = 0; i < a->n_pairs && status == TP_OK; i++) {
        tp_interaction *p = &a->pairs[i];
        status = weigh_pair(a, p, TP_FIGURE_STEP_TIME, with, beside, &p->step_time, err);
        if (status == TP_OK)
            status = weigh_pair(a, p, TP_FIGURE_PEAK_MEMORY, with, beside, &p->peak_memory, err);
    }
    free(with);
    free(beside);
    return status == TP_OK ? judge(a, err) : status;
}
