/* eval_job.c - from a configuration to an evaluation that could begin, in the order in which it
 * can fail cheapest: configuration, judge, questions, model, memory, weights. */
#include "cli/eval_job.h"

#include <string.h>

#include "cli/cli.h"
#include "cli/recipe.h"
#include "engine/backend/backend.h"
#include "engine/train/checkpoint.h"
#include "text/template/chat.h"

tp_status tp_eval_job_bind(tp_eval_job *j, char **words, int n, tp_error *err)
{
    TP_TRY(tp_cli_load_recipe(words, n, &j->config, err));
    return tp_eval_options_bind(j->config, &j->o, err);
}

tp_status tp_eval_job_open_judge(tp_eval_job *j, tp_error *err)
{
    const tp_eval_options *o = &j->o;
    char name[TP_ENVIRONMENT_NAME];
    TP_TRY(tp_environment_choose(j->config, o->data.env_name, o->data.dataset_name, name, err));
    TP_TRY(tp_environment_open(j->config, name, &j->env, err));
    tp_environment_describe(j->env, &j->env_text);
    return TP_OK;
}

tp_status tp_eval_job_open_questions(tp_eval_job *j, tp_error *err)
{
    const tp_eval_options *o = &j->o;
    const tp_json *data = tp_config_find(j->config, "data");
    tp_prompts_options options = {
        .dataset_name = o->data.dataset_name,
        .data_path = o->data.data_path,
        .input_key = o->data.input_key,
        .output_key = o->data.output_key,
        .prompt_key = o->data.prompt_key,
        .chat_key = o->data.chat_key,
        .system_key = o->data.system_key,
        .separator = o->data.separator,
        .prompt_file = o->data.prompt_file,
        .system_prompt_file = o->data.system_prompt_file,
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

static tp_status open_tokenizer(tp_eval_job *j, tp_error *err)
{
    const char *name = j->o.tokenizer_name, *template_text;
    bool is_models = !name || strcmp(name, j->o.generation.model_name) == 0;
    TP_TRY(tp_tokenizer_load(is_models ? tp_buf_str(&j->folder) : name, &j->tokenizer, err));
    int64_t vocab = tp_model_get_info(j->model)->vocab;
    int32_t n_ids = tp_tokenizer_vocab_size(j->tokenizer);
    if (n_ids > vocab)
        return tp_fail(
            err, TP_ERR_CONFIG,
            "'%s': the tokenizer has %d ids, the model's vocabulary is %lld: they do not "
            "belong together",
            tp_buf_str(&j->folder), n_ids, (long long)vocab);
    TP_TRY(tp_chat_template_setting(j->o.chat_template, &j->template_file, &template_text, err));
    return tp_prompt_encoder_new(j->tokenizer, template_text, j->o.template_variables,
                                 j->o.data.add_bos, &j->encoder, err);
}

static tp_status choose_stops(tp_eval_job *j, tp_error *err)
{
    const tp_f64_list *ids = &j->o.generation.stop_token_ids;
    j->stop_ids = calloc(ids->n + 1, sizeof *j->stop_ids);
    TP_ASSERT(j->stop_ids);
    for (size_t i = 0; i < ids->n; i++) {
        j->stop_ids[i] = (int32_t)ids->v[i];
        if ((double)j->stop_ids[i] != ids->v[i] || j->stop_ids[i] < 0 ||
            j->stop_ids[i] >= tp_tokenizer_vocab_size(j->tokenizer))
            return tp_config_fail(j->config, "generation.stop_token_ids", err,
                                  "%g is no id of the tokenizer", ids->v[i]);
    }
    return TP_OK;
}

static int thread_count(const tp_eval_options *o)
{
    return o->threads != TP_OPT_UNSET_INT ? (int)o->threads : tp_cpu_count();
}

static void say_note(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "temper: %s\n", text);
}

tp_status tp_eval_job_open_model(tp_eval_job *j, tp_error *err)
{
    const tp_eval_options *o = &j->o;
    uint64_t too_long = 0;
    TP_TRY(tp_checkpoint_find_model(o->generation.model_name, &j->folder, err));
    TP_TRY(tp_model_open(tp_buf_str(&j->folder), &j->model, err));
    TP_TRY(open_tokenizer(j, err));
    TP_TRY(choose_stops(j, err));
    int64_t longest = tp_model_get_info(j->model)->max_positions;
    j->max_length = o->generation.max_model_len < longest ? o->generation.max_model_len : longest;
    if (j->prompts)
        TP_TRY(tp_prompts_check(j->prompts, j->encoder, j->max_length, NULL, NULL, &too_long, err));
    j->n_too_long = too_long;
    tp_dtype dtype = o->generation.precision ? TP_DTYPE_BF16 : TP_DTYPE_F32;
    const tp_device_options device = {.threads = thread_count(o)};
    TP_TRY(tp_device_open(&tp_backend_cpu, &device, &j->device, err));
    tp_engine_options options = {.device = j->device,
                                 .compute_dtype = dtype,
                                 .cache_dtype = dtype,
                                 .max_length = j->max_length,
                                 .max_running = o->generation.max_running,
                                 .cache_bytes = (size_t)(o->generation.cache_gib * 0x1p30),
                                 .n_tokens = tp_tokenizer_vocab_size(j->tokenizer),
                                 .tokenizer = j->tokenizer};
    TP_TRY(tp_states_init(&j->states, err));
    TP_TRY(tp_engine_create(j->model, &options, &j->states, &j->engine, err));
    TP_TRY(tp_engine_alloc(j->engine, err));
    tp_load_report report;
    TP_TRY(tp_model_load(j->model, &j->states, &report, err));
    tp_model_say(j->model, &report, say_note, NULL);
    if (report.has_nonfinite)
        snprintf(j->nonfinite, sizeof j->nonfinite, "%s", report.nonfinite_name);
    TP_TRY(tp_engine_weights_changed(j->engine, err));
    return tp_pool_create(&j->pool, thread_count(o), err);
}

void tp_eval_job_close(tp_eval_job *j)
{
    tp_pool_free(j->pool);
    tp_engine_free(j->engine);
    tp_states_release(&j->states);
    tp_device_close(j->device);
    tp_prompt_encoder_free(j->encoder);
    tp_tokenizer_free(j->tokenizer);
    tp_model_free(j->model);
    tp_prompts_close(j->prompts);
    tp_environment_close(j->env);
    tp_config_release(j->config);
    tp_buf_release(&j->folder);
    tp_buf_release(&j->template_file);
    tp_buf_release(&j->data_text);
    tp_buf_release(&j->env_text);
    free(j->stop_ids);
}
