/* grpo_ranks.h - a rollout that several processes divide: each answers its share of the prompts and
 * judges its own answers, then all have all of them. */
#ifndef TP_ENGINE_ALGORITHMS_GRPO_RANKS_H
#define TP_ENGINE_ALGORITHMS_GRPO_RANKS_H

#include "engine/algorithms/grpo_internal.h"

/* Whether prompt i of a draw is answered here; its group stays whole. */
bool tp_grpo_answers(const trainer *t, uint32_t i);

/* Append the groups of all ranks to `to`, in the order of the draw's prompts; `prompt_of` says
 * which those of `mine` are.  *ret_left_out: prompts that nobody could answer. */
TP_CHECKED tp_status tp_grpo_share(trainer *t, const grpo_draw *draw, const grpo_rollout *mine,
                                   const uint32_t *prompt_of, const char *why, grpo_rollout *to,
                                   grpo_counts *counts, uint64_t *ret_left_out, tp_error *err);

/* A rank's micro-batches of the arrangement have been scored: all ranks have all scores then.
 * `scores_of` is the member of an answer that they are in, allocated for all. */
TP_CHECKED tp_status tp_grpo_share_scores(trainer *t, float *(*scores_of)(const grpo_sample *),
                                          tp_error *err);

/* An update's sums and figures, of all ranks. */
TP_CHECKED tp_status tp_grpo_join(trainer *t, tp_policy_sums *sums, step_result *part,
                                  tp_error *err);

/* grpo_answers.c */
void tp_grpo_reserve(grpo_rollout *r, uint32_t groups, uint32_t samples);
/* An answer with a reward is trained. */
bool tp_grpo_can_train(const trainer *t, const grpo_sample *s);
/* What follows from an answer's verdict, and is counted of it. */
void tp_grpo_settle(trainer *t, grpo_sample *s, const tp_reward *verdict, grpo_counts *counts);

#endif
