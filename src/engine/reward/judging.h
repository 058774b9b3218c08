/* judging.h - answers judged on a thread of their own, while others are still generated.
 *
 *     tp_judging_begin(j, env, pool, n, &err);
 *     ... tp_judging_give(j, &completion, place) ...    as answers end, n in all
 *     tp_judging_look(j, &err);                         now and then: has it failed?
 *     tp_judging_wait(j, &rewards, &err);               verdicts by place
 *
 * The environment's watch is asked, and told, on the thread that calls these functions; until
 * waiting has ended or tp_judging_drop() nobody else may use environment and pool.  The thread
 * lives as long as the object: programs that are started anew on it would end with it. */
#ifndef TP_ENGINE_REWARD_JUDGING_H
#define TP_ENGINE_REWARD_JUDGING_H

#include "engine/reward/environment.h"

typedef struct tp_judging tp_judging;

TP_CHECKED tp_status tp_judging_create(tp_judging **ret, tp_error *err);
/* After the environments have been closed that it judged for; NULL is a no-op. */
void tp_judging_free(tp_judging *j);

TP_CHECKED tp_status tp_judging_begin(tp_judging *j, tp_environment *env, tp_pool *pool, size_t n,
                                      tp_error *err);
/* What the completion points to stays until the end. */
void tp_judging_give(tp_judging *j, const tp_completion *completion, size_t place);
/* Why judging has failed, if it has. */
TP_CHECKED tp_status tp_judging_look(tp_judging *j, tp_error *err);
/* Whether waiting would take no time. */
bool tp_judging_is_done(tp_judging *j);
/* All n have been given.  (optional) *ret_beside_s: seconds of judging up to this call.  Fails as
 * tp_environment_score() does. */
TP_CHECKED tp_status tp_judging_wait(tp_judging *j, tp_rewards *ret, double *ret_beside_s,
                                     tp_error *err);
/* Give up what is not judged yet; nothing where nothing has begun. */
void tp_judging_drop(tp_judging *j);

#endif
