/* search.c - candidates, races between them, and the confirmation of the winner. */
#include "instrument/experiment/search.h"

#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "base/rng.h"
#include "base/vec.h"
#include "stats/stats.h"

enum { POINT_STREAM = 0x74756e, MOST_TRIES = 400, MOST_RACES = 64 };

/* A plan this much behind the best one cannot win: predictions are within this of each other. */
static const double HOPELESS = 1.5;
static const double CHANGE_SHARE = 0.3; /* of the options of a random point */
/* More points are planned than race while planning takes less than this share of the time left. */
static const double PLAN_SHARE = 0.1;
enum { PLANNED_PER_RACER = 4 };
static const double SETTING_COST = 0.005; /* ln of what one more has to gain */

/* ---- candidates ---- */

static bool is_same(const tp_space *s, const tp_space_point *a, const tp_space_point *b)
{
    return memcmp(a->option, b->option, s->n) == 0;
}

/* The candidate at a point; s->n: none. */
static size_t find_point(const tp_search *s, const tp_space_point *p)
{
    size_t i = 0;
    while (i < s->n && !is_same(s->space, &s->candidates[i].point, p))
        i++;
    return i;
}

static tp_status add_candidate(tp_search *s, const tp_space_point *p, tp_error *err)
{
    const char *const *settings;
    size_t n;
    tp_arena *arena = &s->x->arena;
    tp_candidate c = {.point = *p, .score = NAN, .ratio = NAN};
    TP_TRY(tp_space_settings(s->space, p, arena, &settings, &n, err));
    c.variant = tp_experiment_variant(s->x, tp_space_name(s->space, p, arena), settings, n);
    TP_TRY(s->o.plan(s->o.user, &s->x->variants[c.variant], &c.plan, err));
    *TP_VEC_PUSH(s->candidates, s->n, s->cap) = c;
    if (c.plan.is_known && c.plan.fits && c.plan.step_s > 0)
        s->best_step_s = fmin(s->best_step_s, c.plan.step_s); /* fmin leaves a NaN out */
    return TP_OK;
}

/* By its plan; what is out is counted once, when it is made. */
static bool is_out(tp_search *s, const tp_candidate *c, bool counts)
{
    const tp_search_plan *p = &c->plan;
    bool is_large = p->is_known && (!p->fits || p->peak_bytes > s->o.memory_bytes);
    double most = s->candidates[0].plan.peak_bytes;
    bool is_slow = p->is_known && !is_large &&
                   (s->o.goal == TP_GOAL_PEAK_MEMORY ? p->peak_bytes > most
                                                     : p->step_s > HOPELESS * s->best_step_s);
    s->n_refused += counts && !p->is_known;
    s->n_too_large += counts && is_large;
    s->n_too_slow += counts && is_slow;
    return !p->is_known || is_large || is_slow;
}

/* ---- new points ---- */

static tp_space_point random_point(const tp_search *s, tp_rng *rng)
{
    tp_space_point p = {0};
    for (size_t i = 0; i < s->space->n; i++)
        if (tp_rng_uniform(rng) < CHANGE_SHARE)
            p.option[i] = (unsigned char)tp_rng_below(rng, s->space->dimensions[i].n);
    return p;
}

/* One option of `from` changed; sometimes two. */
static tp_space_point neighbour(const tp_search *s, const tp_space_point *from, tp_rng *rng)
{
    tp_space_point p = *from;
    int changes = tp_rng_uniform(rng) < 0.3 ? 2 : 1;
    for (int i = 0; i < changes; i++) {
        size_t at = tp_rng_below(rng, s->space->n);
        p.option[at] = (unsigned char)tp_rng_below(rng, s->space->dimensions[at].n);
    }
    return p;
}

/* What either of two has, option by option. */
static tp_space_point crossing(const tp_search *s, const tp_space_point *a, const tp_space_point *b,
                               tp_rng *rng)
{
    tp_space_point p = *a;
    for (size_t i = 0; i < s->space->n; i++)
        if (tp_rng_u32(rng) & 1)
            p.option[i] = b->option[i];
    return p;
}

/* The best that a race left behind the winner: partners of crossings. */
static size_t runner_up(const tp_search *s)
{
    size_t best = 0;
    for (size_t i = 1; i < s->n; i++)
        if (i != s->winner && !isnan(s->candidates[i].score) &&
            (best == 0 || s->candidates[i].score < s->candidates[best].score))
            best = i;
    return best;
}

/* Where points for a race are collected: more are planned than can race. */
typedef struct {
    size_t *racers, n, most;
    double until_left_s; /* planning takes time, too */
} collection;

/* Try a point: planned if it is new, and collected unless it has raced or its plan rules it out. */
static tp_status try_point(tp_search *s, const tp_space_point *p, collection *c, tp_error *err)
{
    size_t at = find_point(s, p);
    bool is_new = at == s->n, is_there = false;
    if (is_new)
        TP_TRY(add_candidate(s, p, err));
    for (size_t i = 0; i < c->n; i++)
        is_there |= c->racers[i] == at;
    if (at > 0 && !is_there && isnan(s->candidates[at].score) &&
        !is_out(s, &s->candidates[at], is_new))
        c->racers[c->n++] = at;
    return TP_OK;
}

static bool is_full(const tp_search *s, const collection *c)
{
    return c->n >= c->most || tp_experiment_left_s(s->x) <= c->until_left_s;
}

/* Each option by itself. */
static tp_status collect_options(tp_search *s, collection *c, tp_error *err)
{
    for (size_t i = 0; i < s->space->n; i++)
        for (size_t k = 1; k < s->space->dimensions[i].n; k++) {
            tp_space_point p = {0};
            p.option[i] = (unsigned char)k;
            if (is_full(s, c))
                return TP_OK;
            TP_TRY(try_point(s, &p, c, err));
        }
    return TP_OK;
}

/* The first race: each option by itself, then points at random.  Later ones: around the winner. */
static tp_status collect(tp_search *s, collection *c, tp_error *err)
{
    tp_rng rng = tp_rng_make(s->x->seed, POINT_STREAM + s->n_races);
    if (s->n_races == 0)
        TP_TRY(collect_options(s, c, err));
    for (int i = 0; i < MOST_TRIES && s->space->n > 0 && !is_full(s, c); i++) {
        const tp_space_point *best = &s->candidates[s->winner].point;
        double kind = s->n_races == 0 ? 1 : tp_rng_uniform(&rng);
        tp_space_point p = kind < 0.6 ? neighbour(s, best, &rng)
                           : kind < 0.8
                               ? crossing(s, best, &s->candidates[runner_up(s)].point, &rng)
                               : random_point(s, &rng);
        TP_TRY(try_point(s, &p, c, err));
    }
    return TP_OK;
}

static double predicted(const tp_search *s, size_t candidate)
{
    const tp_search_plan *p = &s->candidates[candidate].plan;
    double v = s->o.goal == TP_GOAL_PEAK_MEMORY ? p->peak_bytes : p->step_s;
    return isnan(v) ? INFINITY : v;
}

/* The least first, by insertion, as they are few; what is alike keeps its order. */
static void rank(const tp_search *s, size_t *racers, size_t n,
                 double (*by)(const tp_search *s, size_t candidate))
{
    for (size_t i = 1; i < n; i++) {
        size_t it = racers[i], at = i;
        for (; at > 0 && by(s, racers[at - 1]) > by(s, it); at--)
            racers[at] = racers[at - 1];
        racers[at] = it;
    }
}

/* As many as can race, then more while planning is cheap: of all the best predicted are taken.
 * `racers` has room for PLANNED_PER_RACER times `most`. */
static tp_status choose_racers(tp_search *s, double until_left_s, size_t most, size_t *racers,
                               size_t *ret_n, tp_error *err)
{
    double left = tp_experiment_left_s(s->x);
    collection c = {.racers = racers, .most = most, .until_left_s = until_left_s};
    TP_TRY(collect(s, &c, err));
    c.most = PLANNED_PER_RACER * most;
    c.until_left_s = fmax(until_left_s, (1 - PLAN_SHARE) * left);
    TP_TRY(collect(s, &c, err));
    rank(s, racers, c.n, predicted);
    *ret_n = TP_MIN(c.n, most);
    return TP_OK;
}

/* ---- a race ---- */

/* ln of the goal's figure, less is better. */
static double figure_of(const tp_search *s, const tp_trial *t)
{
    return s->o.goal == TP_GOAL_PEAK_MEMORY ? log(t->values[TP_FIGURE_PEAK_MEMORY])
           : s->o.goal == TP_GOAL_COST      ? log(t->values[TP_FIGURE_COST])
                                            : -log(t->values[TP_FIGURE_TOKENS]);
}

/* The same, and of memory what decides where it is alike. */
static double rank_of(const tp_search *s, const tp_trial *t)
{
    double time = s->o.goal == TP_GOAL_PEAK_MEMORY ? log(t->values[TP_FIGURE_STEP_TIME]) : 0;
    return figure_of(s, t) + 0.02 * time;
}

/* Over the recipe in the rounds of a race so far, the median; infinite when it has not run in any.
 */
static double over_recipe(const tp_search *s, int stage, const tp_candidate *c,
                          double (*of)(const tp_search *s, const tp_trial *t), size_t *ret_rounds)
{
    size_t rounds = tp_experiment_rounds(s->x, stage), n = 0;
    TP_FREED double *d = tp_vec_new(rounds + 1, sizeof *d);
    double median;
    for (size_t r = 0; r < rounds; r++) {
        const tp_trial *recipe = tp_experiment_trial(s->x, stage, r, s->candidates[0].variant);
        const tp_trial *t = tp_experiment_trial(s->x, stage, r, c->variant);
        double v = recipe && t ? of(s, t) - of(s, recipe) : (double)NAN;
        if (!isnan(v))
            d[n++] = v;
    }
    *ret_rounds = n;
    return n > 0 && tp_median(d, n, &median, NULL) == TP_OK ? median : INFINITY;
}

static void score(tp_search *s, int stage, size_t candidate)
{
    tp_candidate *c = &s->candidates[candidate];
    double ratio = exp(over_recipe(s, stage, c, figure_of, &c->rounds));
    c->ratio = isinf(ratio) ? (double)NAN : ratio;
    c->score = over_recipe(s, stage, c, rank_of, &c->rounds) +
               SETTING_COST * (double)s->x->variants[c->variant].n_settings;
}

static double raced(const tp_search *s, size_t candidate) { return s->candidates[candidate].score; }

static void rank_racers(tp_search *s, int stage, size_t *racers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        score(s, stage, racers[i]);
    rank(s, racers, n, raced);
}

static size_t variants_of(const tp_search *s, const size_t *racers, size_t n, size_t *which)
{
    size_t n_which = 0;
    which[n_which++] = s->candidates[0].variant;
    for (size_t i = 0; i < n; i++) {
        size_t v = s->candidates[racers[i]].variant;
        bool is_there = false;
        for (size_t k = 0; k < n_which; k++)
            is_there |= which[k] == v;
        if (!is_there)
            which[n_which++] = v;
    }
    return n_which;
}

static tp_status race(tp_search *s, double until_left_s, size_t *racers, size_t n, tp_error *err)
{
    int stage = TP_STAGE_RACES + (int)s->n_races++;
    size_t *which = tp_vec_new(n + 2, sizeof *which), round = 0, rounds = 1;
    tp_status status = TP_OK;
    while (status == TP_OK && n > 1) {
        for (size_t i = 0; i < rounds && status == TP_OK; i++) {
            if (tp_experiment_is_over(s->x) || tp_experiment_left_s(s->x) < until_left_s)
                break;
            if (s->o.progress)
                s->o.progress(s->o.user, "racing", n, tp_experiment_left_s(s->x));
            size_t n_which = variants_of(s, racers, n, which);
            status = tp_experiment_round(s->x, stage, round++, which, n_which, err);
        }
        rank_racers(s, stage, racers, n);
        bool is_over = tp_experiment_is_over(s->x) || tp_experiment_left_s(s->x) < until_left_s;
        n = is_over ? 1 : (n + 1) / 2;
        rounds = round; /* as many again: 1, 1, 2, 4 ... */
    }
    if (status == TP_OK && n > 0 && s->candidates[racers[0]].score < INFINITY) {
        bool beats_recipe =
            s->candidates[racers[0]].score < 0 || is_out(s, &s->candidates[0], false);
        s->winner = beats_recipe ? racers[0] : 0;
    }
    free(which);
    return status;
}

/* How many can race in this time: n and the recipe once, half of them once, a quarter twice ... */
static size_t racers_for(const tp_search *s, double seconds)
{
    double run_s = tp_experiment_expected_s(s->x, &s->candidates[0].variant, 1);
    size_t n = TP_SEARCH_LEAST_RACE;
    for (; n < s->o.most_candidates; n++) {
        double runs = (double)n + 1 + ((double)n / 2 + 1) * ceil(log2((double)n));
        if (runs * run_s > seconds)
            break;
    }
    return n;
}

static tp_status run_races(tp_search *s, double until_left_s, tp_error *err)
{
    TP_FREED size_t *racers =
        tp_vec_new(PLANNED_PER_RACER * s->o.most_candidates + 2, sizeof *racers);
    tp_status status = TP_OK;
    while (status == TP_OK && s->n_races < MOST_RACES && !tp_experiment_is_over(s->x)) {
        double left = tp_experiment_left_s(s->x) - until_left_s;
        double run_s = tp_experiment_expected_s(s->x, &s->candidates[0].variant, 1);
        /* A recipe over the limit needs another, or the word what is needed: that is planned. */
        bool is_too_large = is_out(s, &s->candidates[0], false) && s->n == 1;
        if (left < run_s * 2 * TP_SEARCH_LEAST_RACE && !is_too_large)
            break;
        /* The first race looks at everything by itself; later ones are small and many. */
        size_t n = 0, most = racers_for(s, s->n_races == 0 ? left * 0.5 : left * 0.35);
        status = choose_racers(s, is_too_large ? 0 : until_left_s, most, racers, &n, err);
        if (status != TP_OK || n == 0)
            break;
        if (s->winner != 0)
            racers[n++] = s->winner; /* it has to win again */
        else if (!is_out(s, &s->candidates[0], false))
            racers[n++] = 0;
        status = race(s, until_left_s, racers, n, err);
    }
    return status;
}

/* ---- the confirmation ---- */

static tp_status weigh(tp_search *s, tp_trial_figure figure, tp_factor *ret, tp_error *err)
{
    size_t room = tp_experiment_rounds(s->x, TP_STAGE_CONFIRM) + 1;
    double *a = tp_vec_new(room, sizeof *a), *b = tp_vec_new(room, sizeof *b);
    size_t n = tp_experiment_pairs(s->x, TP_STAGE_CONFIRM, s->candidates[s->winner].variant,
                                   s->candidates[0].variant, figure, a, b);
    tp_status status = tp_factor_weigh(a, b, n, figure == TP_FIGURE_PEAK_MEMORY, ret, err);
    free(a);
    free(b);
    return status;
}

static tp_status conclude(tp_search *s, double margin, tp_error *err)
{
    tp_factor *tokens = &s->tokens, *memory = &s->memory, *cost = &s->cost;
    TP_TRY(weigh(s, TP_FIGURE_TOKENS, tokens, err));
    TP_TRY(weigh(s, TP_FIGURE_PEAK_MEMORY, memory, err));
    TP_TRY(weigh(s, TP_FIGURE_COST, cost, err));
    TP_TRY(tp_factors_judge(&tokens, 1, false, margin, err));
    TP_TRY(tp_factors_judge(&memory, 1, true, margin, err));
    TP_TRY(tp_factors_judge(&cost, 1, true, margin, err));
    const tp_factor *by_goal = s->o.goal == TP_GOAL_PEAK_MEMORY ? memory
                               : s->o.goal == TP_GOAL_COST      ? cost
                                                                : tokens;
    s->is_confirmed = by_goal->verdict == TP_CHANGE_BETTER;
    s->why_not = s->is_confirmed ? NULL
                 : by_goal->verdict == TP_CHANGE_NOT_SHOWN
                     ? "the race's winner was not shown to be better on fresh rounds"
                     : "the race's winner was not better on fresh rounds";
    return TP_OK;
}

static tp_status confirm(tp_search *s, double margin, tp_error *err)
{
    const size_t both[] = {s->candidates[0].variant, s->candidates[s->winner].variant};
    for (size_t r = 0; r < s->o.most_confirming && !tp_experiment_is_over(s->x); r++) {
        if (s->o.progress)
            s->o.progress(s->o.user, "confirming", s->o.most_confirming - r,
                          tp_experiment_left_s(s->x));
        TP_TRY(tp_experiment_round(s->x, TP_STAGE_CONFIRM, r, both, 2, err));
    }
    return conclude(s, margin, err);
}

/* ---- the whole ---- */

tp_status tp_search_init(tp_search *s, tp_experiment *x, const tp_space *space,
                         const tp_search_options *options, tp_error *err)
{
    tp_space_point recipe = {0};
    *s = (tp_search){.space = space, .o = *options, .x = x, .best_step_s = NAN};
    tp_factor_unknown(&s->tokens, "nothing was confirmed");
    s->memory = s->cost = s->tokens;
    TP_TRY(add_candidate(s, &recipe, err));
    const tp_search_plan *plan = &s->candidates[0].plan;
    if (!plan->is_known)
        return tp_fail(err, TP_ERR_CONFIG, "%s", plan->why);
    return TP_OK;
}

void tp_search_release(tp_search *s) { free(s->candidates); }

tp_status tp_search_run(tp_search *s, double margin, tp_error *err)
{
    double left = tp_experiment_left_s(s->x);
    double pair_s = 2 * tp_experiment_expected_s(s->x, &s->candidates[0].variant, 1);
    double least = 1.1 * TP_FACTOR_LEAST * pair_s;
    double reserve = fmax((1 - s->o.race_share) * left, 1.5 * least);
    TP_TRY(run_races(s, fmin(reserve, left), err));
    if (s->winner == 0) /* nothing to confirm yet: what was kept for it looks for more */
        TP_TRY(run_races(s, fmin(least, left), err));
    if (s->winner != 0)
        return confirm(s, margin, err);
    s->why_not = s->n_races == 0 ? "there was no time for a race, or nothing that could win"
                                 : "no setting won against the recipe";
    return TP_OK;
}
