/* grpo_internal.h - learning from rewards, shared between its files.
 *
 *     grpo.c          opening, the step, validation
 *     grpo_rollout.c  prompts -> answers -> rewards
 *     grpo_update.c   advantages, log-probabilities, the updates of a step
 *     grpo_record.c   what a step says about itself
 *
 * A step:
 *
 *     prompts -> G answers each -> rewards -> scaled, shaped -> groups without spread before
 *     shaping left out (dynamic sampling) -> advantages -> [log p now, log p of the reference]
 *     -> one or more updates over the step's answers
 *
 * The generator reads the very weights that are trained, in the same memory. */
#ifndef TP_ENGINE_ALGORITHMS_GRPO_INTERNAL_H
#define TP_ENGINE_ALGORITHMS_GRPO_INTERNAL_H

#include <math.h>

#include "engine/algorithms/grpo_options.h"
#include "engine/generate/engine.h"
#include "engine/reward/judging.h"
#include "engine/train/algorithm.h"
#include "engine/train/batch.h"

/* One answer.  Arrays live in the step's arena; those of the answer have n_answer entries. */
typedef struct {
    uint64_t prompt;       /* index in the source */
    uint32_t group, index; /* of the step, and in its group */
    int32_t *ids;          /* prompt and answer, a stop token included */
    int32_t n_prompt, n_answer;
    float *gen;  /* the generator's log-probabilities */
    float *prev; /* before the step's first update; NULL: not needed */
    float *ref;  /* of the reference; NULL: there is none */
    double *advantage;
    const char *text; /* what was judged */
    size_t n_text;
    double raw_reward, scaled_reward, reward; /* as judged; scaled; and shaped.  NaN: none */
    tp_reward_status status;
    tp_correct correct;
    const char *verdict; /* what else the judge said: a JSON object; NULL: samples are not kept */
    tp_finish finish;
    bool is_valid;    /* has a reward: takes part in its group */
    bool is_trained;  /* and in the loss */
    bool is_expected; /* to be trained, before there was a verdict */
} grpo_sample;

/* G answers to one prompt, consecutive samples. */
typedef struct {
    uint32_t first, n;
    const char *id, *text, *truth; /* of the prompt */
    tp_group_stats raw, used;      /* of rewards as judged; scaled and shaped */
    bool is_flat;                  /* without spread: teaches nothing */
} grpo_group;

/* The answers to some prompts. */
typedef struct {
    grpo_sample *samples;
    grpo_group *groups;
    uint32_t n_samples, n_groups, cap_samples, cap_groups;
} grpo_rollout;

/* What is counted about a step. */
typedef struct {
    uint64_t draws, discarded_groups, flat_groups, all_groups, right_groups, wrong_groups;
    uint64_t samples, prompts_left_out;
    uint64_t by_status[TP_REWARD_KINDS], by_finish[TP_FINISH_KINDS];
    char why[400]; /* the first answer without a reward: its judge's reason, or "" */
    long double raw_reward_sum, reward_sum, reward_squares; /* of all groups drawn: mean of each */
    uint64_t rewarded;
    int64_t prompt_tokens, answer_tokens, longest_answer;
    double generation_s, reward_s, logprob_s, reference_s, advantage_s, training_s;
    double judged_beside_s; /* of judging, while something else was computed */
    int64_t masked_by_error, masked_correct, overlong_filtered;
    double worst_error, least_error, error_sum;
    tp_engine_stats engine;
} grpo_counts;

typedef struct {
    tp_engine *engine;
    tp_session *reference; /* NULL: none */
    tp_prompts *prompts, *val_prompts;
    tp_prompt_encoder *encoder;
    tp_buf template_text;
    tp_environment *env, *val_env; /* val_env: NULL: the same */
    uint64_t too_long;             /* training prompts that leave no room for an answer */
    tp_buf judged;                 /* what the question of a check was answered with */
    tp_pool *pool;
    tp_judging *judging; /* NULL until answers are judged beside generation */
    tp_ids stops;        /* end an answer */

    tp_policy_loss loss;
    tp_advantage_options advantage;

    /* Log-probabilities that were computed while judges worked: all before that micro-batch, of the
     * policy or the reference, of the answers from `first` on. */
    struct {
        uint32_t first, micro;
        bool is_reference;
    } ahead;

    tp_arena arena; /* of a step */
    grpo_rollout rollout;
    grpo_counts counts;
    tp_microbatch mb;

    /* the update at work */
    tp_batch arrangement;
    tp_batch_sequence *sequences;
    grpo_sample **trained; /* parallel to sequences */
    uint32_t n_trained;
    tp_policy_norm norm;
    tp_policy_sums sums;  /* of this update */
    tp_policy_sums total; /* of the step */
    double *gradient;     /* scratch of one sequence */
    uint32_t micro;
    bool is_idle; /* this rank has no micro-batch in the round: what it computes weighs nothing */
    int64_t n_updates;
    long double advantage_sum; /* over trained tokens */
    double advantage_min, advantage_max;
    double grad_norm_max;

    int64_t unrewarded_steps;                /* in a row, without one reward */
    uint64_t all_by_status[TP_REWARD_KINDS]; /* of this attempt's steps */
    double val_any;
} grpo;

/* The answer ended because there was no more room. */
static inline bool grpo_was_cut(const grpo_sample *s)
{
    return s->finish == TP_FINISH_LENGTH || s->finish == TP_FINISH_CAPACITY;
}

static inline double grpo_cut_share(const grpo_counts *c)
{
    uint64_t cut = c->by_finish[TP_FINISH_LENGTH] + c->by_finish[TP_FINISH_CAPACITY];
    return c->samples ? (double)cut / (double)c->samples : NAN;
}

static inline const tp_grpo_options *options(const trainer *t) { return tp_grpo_options_of(t->o); }

/* grpo_rollout.c */

typedef struct {
    tp_prompts *prompts;
    tp_environment *env;
    const uint64_t *indices;       /* n_prompts places in the source */
    uint32_t n_prompts, n_samples; /* samples of each */
    uint64_t stream;               /* number of the first prompt among all ever drawn */
    uint64_t seed;
    tp_sampling sampling;
} grpo_draw;
/* Append the groups of a draw to `to`.  TP_ERR_INTERRUPTED when asked to stop. */
TP_CHECKED tp_status tp_grpo_generate(trainer *t, const grpo_draw *draw, grpo_rollout *to,
                                      grpo_counts *counts, tp_error *err);
/* Fill the step's rollout: one draw, or several under dynamic sampling.  *ret_prompts says
 * how many prompts were drawn. */
TP_CHECKED tp_status tp_grpo_rollout(trainer *t, uint64_t *ret_prompts, tp_error *err);
/* Notices: where answers are drawn from another distribution than the one that is trained. */
void tp_grpo_tell_distribution(trainer *t);

/* grpo_judge.c */

/* Ask the environments one question each and look at the answer: for `temper doctor`. */
TP_CHECKED tp_status tp_grpo_ask_judge(trainer *t, tp_error *err);
void tp_grpo_describe_judge(const trainer *t, tp_buf *out);

/* How many answers have no verdict. */
uint64_t tp_grpo_unrewarded(const grpo_counts *c);
/* After a rollout: say when nobody judged, and end the run when it stays so. */
TP_CHECKED tp_status tp_grpo_watch_judge(trainer *t, tp_error *err);
/* The same of a validation, which never ends the run. */
void tp_grpo_note_validation(trainer *t, const grpo_counts *c);

/* grpo_update.c */
/* While others judge: one more micro-batch of the log-probabilities that the step will need if
 * every answer gets a reward.  *ret_any false: there are none. */
TP_CHECKED tp_status tp_grpo_score_ahead(trainer *t, bool *ret_any, tp_error *err);
TP_CHECKED tp_status tp_grpo_learn(trainer *t, step_result *r, tp_error *err);
TP_CHECKED tp_status tp_grpo_replay(trainer *t, uint32_t i, tp_batch_view *ret, tp_error *err);

/* grpo_record.c */
void tp_grpo_record(trainer *t, const step_result *r);
void tp_grpo_note_reward(trainer *t);
void tp_grpo_write_samples(trainer *t);

/* grpo_update.c: after the graphs are made, for the first time or with other options */
TP_CHECKED tp_status tp_grpo_take_graphs(trainer *t, tp_error *err);
TP_CHECKED tp_status tp_grpo_resize(trainer *t, tp_error *err);

#endif
