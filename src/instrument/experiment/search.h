/* search.h - the best point of a space: planned, raced, confirmed.
 *
 *     plan      every candidate is planned (`temper plan`); what is refused, does not fit or is far
 *               behind the best prediction goes.  More are planned than can race while planning is
 *               cheap beside running, and the best predicted race
 *     race      successive halving: a round runs the recipe and all that are left, each is judged
 *               by the median over rounds of its ratio to the recipe in the same round, the worse
 *               half goes; rounds 1, 1, 2, 4 ... until one is left.  Races follow one another:
 *               the winner meets its neighbours (one option changed) and new points at random
 *     confirm   recipe and winner alone, on fresh rounds: what the race was lucky with is not kept.
 *               Time is kept for these rounds; where no race had a winner most of that time is for
 *               more races
 *
 * The goal peak_memory ranks by planned bytes, which are exact, and by step time where they are
 * near (one per cent of step time counts as much as two hundredths of a per cent of memory).  A
 * setting has to gain half a per cent: of what is as good the one with fewer settings is kept. */
#ifndef TP_INSTRUMENT_EXPERIMENT_SEARCH_H
#define TP_INSTRUMENT_EXPERIMENT_SEARCH_H

#include "instrument/experiment/factor.h"
#include "instrument/experiment/rounds.h"
#include "instrument/experiment/space.h"
#include "temper/experiment.h"

typedef struct {
    bool is_known; /* else `why` */
    const char *why;
    bool fits;
    double peak_bytes, step_s; /* NaN: unknown */
} tp_search_plan;

enum { TP_SEARCH_LEAST_RACE = 4 }; /* candidates */
enum { TP_STAGE_TRIED, TP_STAGE_CONFIRM, TP_STAGE_RACES };

typedef struct {
    tp_goal goal;
    double memory_bytes;    /* planned peak at most; infinite: what the machine has */
    double race_share;      /* of the time that is left for races */
    size_t most_candidates; /* of a race */
    size_t most_confirming; /* rounds */
    tp_status (*plan)(void *user, const tp_variant *variant, tp_search_plan *ret, tp_error *err);
    /* Told before each round; may be NULL. */
    void (*progress)(void *user, const char *what, size_t left, double left_s);
    void *user;
} tp_search_options;

typedef struct {
    tp_space_point point;
    size_t variant;
    tp_search_plan plan;
    double score;  /* of its last race, what it is ranked by: less is better, the recipe's is 0 */
    double ratio;  /* of the goal's figure there to the recipe's, less is better; NaN: none */
    size_t rounds; /* that they are medians of */
} tp_candidate;

typedef struct {
    const tp_space *space;
    tp_search_options o;
    tp_experiment *x;
    tp_candidate *candidates; /* [0] is the recipe */
    size_t n, cap;
    size_t n_refused, n_too_large, n_too_slow; /* discarded by the plan */
    double best_step_s;                        /* of all plans that fit; NaN */
    size_t winner;                             /* candidate */
    size_t n_races;
    tp_factor tokens, memory, cost; /* winner over recipe, on the confirming rounds */
    bool is_confirmed;              /* better by the goal, and shown */
    const char *why_not;            /* NULL where it is */
} tp_search;

TP_CHECKED tp_status tp_search_init(tp_search *s, tp_experiment *x, const tp_space *space,
                                    const tp_search_options *options, tp_error *err);
void tp_search_release(tp_search *s);
TP_CHECKED tp_status tp_search_run(tp_search *s, double margin, tp_error *err);

#endif
