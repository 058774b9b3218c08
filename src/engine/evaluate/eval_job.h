/* eval_job.h - what an evaluation needs, opened step by step: for `temper eval`, which goes on
 * from there, and `temper doctor`, which does not. */
#ifndef TP_ENGINE_EVALUATE_EVAL_JOB_H
#define TP_ENGINE_EVALUATE_EVAL_JOB_H

#include "engine/evaluate/eval_options.h"
#include "engine/evaluate/evaluate.h"
#include "engine/generate/text_model.h"
#include "engine/reward/environment.h"

typedef struct {
    tp_config *config;
    tp_eval_options o;
    tp_environment *env;
    tp_prompts *prompts;
    tp_buf template_file, data_text, env_text;
    tp_text_model m;
    tp_prompt_encoder *encoder;
    tp_pool *pool;
    int64_t max_length;
    uint64_t n_too_long; /* questions that leave no room for an answer */
} tp_eval_job;

/* In this order; a zeroed job is closed. */
/* `config` becomes the job's. */
TP_CHECKED tp_status tp_eval_job_bind(tp_eval_job *j, tp_config *config, tp_error *err);
TP_CHECKED tp_status tp_eval_job_open_judge(tp_eval_job *j, tp_error *err);
TP_CHECKED tp_status tp_eval_job_open_questions(tp_eval_job *j, tp_error *err);
/* Model, tokenizer, memory and weights.  (optional) `say` hears what a user should know. */
TP_CHECKED tp_status tp_eval_job_open_model(tp_eval_job *j, tp_model_note say, void *user,
                                            tp_error *err);
/* engine.isa, for the whole process. */
TP_CHECKED tp_status tp_eval_job_force_isa(const tp_eval_job *j, tp_error *err);
/* Ask and judge; everything is open.  on_progress, perturbation (or NULL): see evaluate.h. */
TP_CHECKED tp_status tp_eval_job_run(tp_eval_job *j, const tp_perturbation *perturbation,
                                     bool (*on_progress)(void *user,
                                                         const tp_evaluator_progress *progress),
                                     void *user, tp_evaluation *ret, tp_error *err);
void tp_eval_job_close(tp_eval_job *j);

#endif
