/* eval_job.c - from a configuration to an evaluation that could begin, in the order in which it
 * can fail cheapest: configuration, judge, questions, model, memory, weights. */
#include "engine/evaluate/eval_job.h"

#include <string.h>

#include "base/cpu.h"
#include "base/platform.h"
#include "engine/data/token_ids.h"
#include "engine/evaluate/eval_report.h"
#include "text/template/chat.h"

tp_status tp_eval_job_bind(tp_eval_job *j, tp_config *config, tp_error *err)
{
    j->config = config;
    TP_TRY(tp_eval_options_bind(config, &j->o, err));
    return tp_eval_report_check_nemo(j->o.eval.save_path, err);
}

tp_status tp_eval_job_open_judge(tp_eval_job *j, tp_error *err)
{
    const tp_eval_options *o = &j->o;
    char name[TP_ENVIRONMENT_NAME];
    TP_TRY(tp_environment_choose(j->config, o->data.env_name, o->data.dataset_name, "data.env_name",
                                 name, err));
    TP_TRY(tp_environment_open(j->config, name, &j->env, err));
    tp_environment_describe(j->env, &j->env_text);
    return TP_OK;
}

static tp_status check_files(const tp_config *config, tp_error *err)
{
    static const char *const keys[] = {"data.data_path", "data.prompt_file",
                                       "data.system_prompt_file"};
    TP_OWN(tp_buf) missing = {0};
    for (size_t i = 0; i < TP_COUNTOF(keys); i++)
        tp_config_check_path(config, keys[i], NULL, &missing);
    return missing.len ? tp_fail_list(err, TP_ERR_IO, missing.data) : TP_OK;
}

tp_status tp_eval_job_open_questions(tp_eval_job *j, tp_error *err)
{
    const tp_eval_options *o = &j->o;
    TP_TRY(check_files(j->config, err));
    const tp_json *data = tp_config_find(j->config, "data");
    tp_prompts_options options = {
        .dataset_name = o->data.dataset_name,
        .data_path = o->data.data_path,
        .rows = o->data.rows,
        .split = o->data.split && strcmp(o->data.split, "train") == 0 ? TP_SPLIT_TRAIN
                                                                      : TP_SPLIT_VALIDATION,
        .split_validation_size = o->data.split_validation_size,
        .seed = (uint64_t)o->data.seed,
        .max_samples = o->data.max_samples == TP_OPT_UNSET_INT ? 0 : (uint64_t)o->data.max_samples,
        .config = j->config,
        .generator = o->data.dataset_name ? tp_json_get(data, o->data.dataset_name) : NULL};
    TP_TRY(tp_prompts_open(&options, &j->prompts, err));
    tp_prompts_describe(j->prompts, &j->data_text);
    return TP_OK;
}

static tp_status open_folder(tp_eval_job *j, tp_error *err)
{
    const char *model = j->o.generation.model_name, *name = j->o.tokenizer_name, *template_text;
    bool is_models = !name || strcmp(name, model) == 0;
    TP_TRY(tp_text_model_open(&j->m, model, is_models ? NULL : name, err));
    TP_TRY(tp_text_model_need_tokenizer(&j->m, err));
    TP_TRY(tp_chat_template_setting(j->o.chat_template, &j->template_file, &template_text, err));
    return tp_prompt_encoder_new(j->m.tokenizer, template_text, j->o.template_variables,
                                 j->o.data.add_bos, &j->encoder, err);
}

static int thread_count(const tp_eval_options *o)
{
    return o->threads != TP_OPT_UNSET_INT ? (int)o->threads : tp_cpu_count();
}

tp_status tp_eval_job_open_model(tp_eval_job *j, tp_model_note say, void *user, tp_error *err)
{
    const tp_eval_options *o = &j->o;
    uint64_t too_long = 0;
    TP_TRY(open_folder(j, err));
    TP_TRY(tp_token_ids_read(j->config, "generation.stop_token_ids", &o->generation.stop_token_ids,
                             j->m.tokenizer, &j->m.stops, err));
    int64_t longest = tp_model_get_info(j->m.model)->max_positions;
    j->max_length = o->generation.max_model_len < longest ? o->generation.max_model_len : longest;
    if (j->prompts)
        TP_TRY(tp_prompts_check(j->prompts, j->encoder, j->max_length, NULL, NULL, &too_long, err));
    j->n_too_long = too_long;
    static const char *const bases[] = {NULL, "int8", "nf4"};
    tp_dtype dtype = o->generation.precision ? TP_DTYPE_BF16 : TP_DTYPE_F32;
    TP_TRY(tp_text_model_keep_base(&j->m, bases[o->generation.base], dtype, err));
    const tp_engine_options options = {.compute_dtype = dtype,
                                       .cache_dtype = dtype,
                                       .max_length = j->max_length,
                                       .max_running = o->generation.max_running,
                                       .cache_bytes = (size_t)(o->generation.cache_gib * 0x1p30)};
    TP_TRY(tp_text_model_start(&j->m, &options, thread_count(o), say, user, err));
    return tp_pool_create(&j->pool, thread_count(o), err);
}

tp_status tp_eval_job_force_isa(const tp_eval_job *j, tp_error *err)
{
    tp_isa isa;
    if (!j->o.isa)
        return TP_OK;
    if (!tp_isa_parse(j->o.isa, &isa))
        return tp_config_fail(j->config, "engine.isa", err,
                              "expected portable, avx2, avx512, avx512_bf16 or amx, not '%s'",
                              j->o.isa);
    return tp_cpu_force_isa(isa, err);
}

/* ---- running ---- */

tp_status tp_eval_job_run(tp_eval_job *j, const tp_perturbation *perturbation,
                          bool (*on_progress)(void *user, const tp_evaluator_progress *progress),
                          void *user, tp_evaluation *ret, tp_error *err)
{
    const tp_eval_options *o = &j->o;
    int64_t top_k = o->generation.top_k == TP_OPT_UNSET_INT ? -1 : o->generation.top_k;
    tp_evaluate_options options = {.max_length = j->max_length,
                                   .n_samples = o->eval.num_tests_per_prompt,
                                   .max_new_tokens = o->generation.max_new_tokens,
                                   .sampling = {.temperature = o->generation.temperature,
                                                .top_k = top_k,
                                                .top_p = o->generation.top_p,
                                                .min_p = o->generation.min_p},
                                   .seed = (uint64_t)o->eval.seed,
                                   .stop_ids = j->m.stops.data,
                                   .n_stop_ids = j->m.stops.len,
                                   .stop_strings = o->generation.stop_strings.v,
                                   .n_stop_strings = o->generation.stop_strings.n,
                                   .success_threshold = o->eval.success_threshold,
                                   .pool = j->pool,
                                   .perturbation = perturbation,
                                   .on_progress = on_progress,
                                   .user = user};
    return tp_evaluate(j->m.engine, j->m.tokenizer, j->prompts, j->encoder, j->env, &options, ret,
                       err);
}

void tp_eval_job_close(tp_eval_job *j)
{
    tp_pool_free(j->pool);
    tp_prompt_encoder_free(j->encoder);
    tp_text_model_close(&j->m);
    tp_prompts_close(j->prompts);
    tp_environment_close(j->env);
    tp_config_release(j->config);
    tp_buf_release(&j->template_file);
    tp_buf_release(&j->data_text);
    tp_buf_release(&j->env_text);
}
