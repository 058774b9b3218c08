/* eval_job.h - what an evaluation needs, opened step by step: for `temper eval`, which goes on
 * from there, and `temper doctor`, which does not. */
#ifndef TP_CLI_EVAL_JOB_H
#define TP_CLI_EVAL_JOB_H

#include "cli/eval_options.h"
#include "engine/generate/engine.h"
#include "engine/reward/environment.h"

typedef struct {
    tp_config *config;
    tp_eval_options o;
    tp_environment *env;
    tp_prompts *prompts;
    tp_buf folder, template_file, data_text, env_text;
    tp_model *model;
    tp_tokenizer *tokenizer;
    tp_prompt_encoder *encoder;
    tp_device *device;
    tp_states states;
    tp_engine *engine;
    tp_pool *pool;
    int32_t *stop_ids;
    int64_t max_length;
    uint64_t n_too_long; /* questions that leave no room for an answer */
    char nonfinite[200]; /* the first tensor that holds NaN or infinity, or "" */
} tp_eval_job;

/* In this order; a zeroed job is closed. */
TP_CHECKED tp_status tp_eval_job_bind(tp_eval_job *j, char **words, int n, tp_error *err);
TP_CHECKED tp_status tp_eval_job_open_judge(tp_eval_job *j, tp_error *err);
TP_CHECKED tp_status tp_eval_job_open_questions(tp_eval_job *j, tp_error *err);
/* Model, tokenizer, memory and weights. */
TP_CHECKED tp_status tp_eval_job_open_model(tp_eval_job *j, tp_error *err);
void tp_eval_job_close(tp_eval_job *j);

#endif
