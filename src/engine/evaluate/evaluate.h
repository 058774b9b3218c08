/* evaluate.h - ask a model a set of questions, several times each, and judge the answers.
 *
 * Questions go to the engine as places become free and answers to the environment as they
 * come, so neither waits for the other at the end of a wave.  What an answer is depends on
 * (weights, prompt, sampling, seed, index) alone: the same evaluation gives the same
 * answers whatever runs beside it, and two models are asked with the same random
 * numbers.
 *
 * A question that cannot be asked (longer than the window, or empty) and an answer that
 * cannot be given (weights with NaN) are left out with a reason, like answers without a
 * verdict. */
#ifndef TP_ENGINE_EVALUATE_EVALUATE_H
#define TP_ENGINE_EVALUATE_EVALUATE_H

#include "engine/evaluate/perturb.h"
#include "engine/generate/engine.h"
#include "engine/reward/environment.h"
#include "stats/eval_summary.h"
#include "temper/evaluate.h"

typedef struct {
    int64_t max_length;     /* prompt and answer, as the engine was made with */
    int64_t n_samples;      /* of each prompt; 0: 1 */
    int64_t max_new_tokens; /* 0: as many as fit */
    tp_sampling sampling;
    uint64_t seed;
    const int32_t *stop_ids; /* all of them */
    size_t n_stop_ids;
    const char *const *stop_strings;
    size_t n_stop_strings;
    double success_threshold; /* answers whose judge does not say are right from this reward on */
    tp_pool *pool;            /* for judging; may be NULL */
    /* (optional) questions are asked as this writes them, and judged as they are; those that it
     * leaves as they are, are left out */
    const tp_perturbation *perturbation;
    /* (optional) now and then; false ends the evaluation with TP_ERR_INTERRUPTED */
    bool (*on_progress)(void *user, const tp_evaluator_progress *progress);
    void *user;
} tp_evaluate_options;

/* One answer. */
typedef struct {
    char *text; /* NULL: it was never given */
    size_t n_text;
    int64_t n_tokens;
    tp_finish finish;
    tp_reward reward;
    bool is_correct; /* with a verdict only */
} tp_evaluation_sample;

typedef struct {
    char *id, *question, *truth; /* truth may be NULL */
    char *prompt;                /* the question as the model was given it */
    int64_t n_prompt_tokens;
    char *majority; /* the most frequent answer; NULL: none, or several as frequent */
    tp_evaluation_sample *samples; /* n_samples of the evaluation */
} tp_evaluation_prompt;

typedef struct {
    size_t n;
    int64_t n_samples;
    tp_evaluation_prompt *prompts;
    tp_eval_prompt *counts; /* n; ids and questions point into prompts: for
                                    tp_eval_summarize() */
    uint64_t statuses[TP_REWARD_KINDS];
    size_t n_unchanged;               /* prompts that the perturbation leaves as they are */
    uint64_t n_truncated;             /* answers cut off by the limit on tokens */
    uint64_t n_threshold;             /* answers judged right or wrong by success_threshold */
    uint64_t n_answers, n_new_tokens; /* generated */
    double seconds, generate_s, judge_s;
} tp_evaluation;

/* `engine` has the weights; nothing may be in flight.  `encoder` made for the same
 * tokenizer. */
TP_CHECKED tp_status tp_evaluate(tp_engine *engine, const tp_tokenizer *tokenizer,
                                 const tp_prompts *prompts, tp_prompt_encoder *encoder,
                                 tp_environment *env, const tp_evaluate_options *options,
                                 tp_evaluation *ret, tp_error *err);
void tp_evaluation_release(tp_evaluation *e); /* zeroed is a no-op */

/* TP_ERR_CONFIG when not one answer got a verdict, which says nothing about the model. */
TP_CHECKED tp_status tp_evaluation_check_verdicts(const tp_evaluation *e, tp_error *err);

#endif
