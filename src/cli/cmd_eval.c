/* cmd_eval.c - from a configuration to an evaluation, in the order in which it can fail
 * cheapest: configuration, judge, questions, model, memory, weights. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/terminal.h"
#include "base/output.h"
#include "cli/cli.h"
#include "cli/eval_compare.h"
#include "cli/eval_report.h"
#include "cli/recipe.h"
#include "engine/backend/backend.h"
#include "engine/train/checkpoint.h"

typedef struct {
    bool json, keys, quiet;
    const char *out, *report;
    int64_t prompts;
    double level, threshold;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "the summary and the table of prompts as one JSON object"),
    TP_TEXT("out", 'o', "FILE", out, "write every answer with its verdict, as JSON"),
    TP_NUMBER("prompts", 0, "N", INT, prompts, 0, 1e9, "show the N hardest prompts (default 5)"),
    TP_NUMBER("level", 0, "P", FLOAT, level, 0.5, 0.9999,
              "summarize, compare: level of the intervals (default 0.95)"),
    TP_NUMBER("threshold", 0, "R", FLOAT, threshold, -1e9, 1e9,
              "summarize, compare: rewards from R on are right, where the file does not say "
              "(default 1)"),
    TP_TEXT("report", 0, "FILE", report,
            "compare: write the summaries as eval.before, eval.after and eval.paired too"),
    TP_SWITCH("quiet", 'q', quiet, "no progress on standard error"),
    TP_SWITCH("keys", 0, keys, "every key of a configuration, as Markdown"),
    {0}};

typedef struct {
    const flags *f;
    tp_config *config;
    tp_eval_options o;
    tp_environment *env;
    tp_prompts *prompts;
    tp_buf folder, template_file, data_text, env_text;
    tp_model *model;
    tp_tokenizer *tokenizer;
    tp_prompt_encoder *encoder;
    tp_states states;
    tp_engine *engine;
    tp_pool *pool;
    int32_t *stop_ids;
    int64_t max_length;
    double last_shown;
} job;

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    if (stop_signal)
        _exit(128 + number);
    stop_signal = number;
}

/* ---- setting up ---- */

static tp_status bind(job *j, char **words, int n, tp_error *err)
{
    TP_TRY(tp_cli_load_recipe(words, n, &j->config, err));
    TP_TRY(tp_eval_options_bind(j->config, &j->o, err));
    return TP_OK;
}

static tp_status open_questions(job *j, tp_error *err)
{
    const tp_eval_options *o = &j->o;
    char name[TP_ENVIRONMENT_NAME];
    TP_TRY(tp_environment_choose(j->config, o->data.env_name, o->data.dataset_name, name, err));
    TP_TRY(tp_environment_open(j->config, name, &j->env, err));
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
    tp_environment_describe(j->env, &j->env_text);
    return TP_OK;
}

/* "default": the tokenizer's own; null: none; a path of a .jinja file; or the text. */
static tp_status chat_template(job *j, const char **ret, tp_error *err)
{
    const char *text = j->o.chat_template;
    *ret = text;
    if (!text)
        *ret = "";
    else if (strcmp(text, "default") == 0)
        *ret = NULL;
    else if (tp_str_ends(text, ".jinja")) {
        TP_TRY(tp_file_read(text, 1 << 20, &j->template_file, err));
        *ret = tp_buf_str(&j->template_file);
    }
    return TP_OK;
}

static tp_status open_tokenizer(job *j, tp_error *err)
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
    TP_TRY(chat_template(j, &template_text, err));
    return tp_prompt_encoder_new(j->tokenizer, template_text, j->o.template_variables,
                                 j->o.data.add_bos, &j->encoder, err);
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

static tp_status open_model(job *j, tp_error *err)
{
    const tp_eval_options *o = &j->o;
    TP_TRY(tp_checkpoint_find_model(o->generation.model_name, &j->folder, err));
    TP_TRY(tp_model_open(tp_buf_str(&j->folder), &j->model, err));
    TP_TRY(open_tokenizer(j, err));
    int64_t longest = tp_model_get_info(j->model)->max_positions;
    j->max_length = o->generation.max_model_len < longest ? o->generation.max_model_len : longest;
    tp_dtype dtype = o->generation.precision ? TP_DTYPE_BF16 : TP_DTYPE_F32;
    tp_engine_options options = {.backend = &tp_backend_cpu,
                                 .threads = thread_count(o),
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
        fprintf(stderr,
                "temper eval: the weights have values that are not finite, the first in %s\n",
                report.nonfinite_name);
    tp_engine_weights_changed(j->engine);
    return tp_pool_create(&j->pool, thread_count(o), err);
}

static void close_job(job *j)
{
    tp_pool_free(j->pool);
    tp_engine_free(j->engine);
    tp_states_release(&j->states);
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

/* ---- running ---- */

static bool on_progress(void *user, const tp_evaluate_progress *p)
{
    job *j = user;
    double now = tp_clock_s();
    bool is_last = p->done == p->n;
    if (stop_signal)
        return false;
    if (j->f->quiet || !tp_cli_terminal(stderr) || (now - j->last_shown < 0.25 && !is_last))
        return true;
    j->last_shown = now;
    char rate[32], left[32];
    int64_t judged = (int64_t)p->done - p->excluded;
    fprintf(stderr, "%s%zu of %zu answers", tp_style(TP_LINE_BEGIN), p->done, p->n);
    if (judged > 0)
        fprintf(stderr, ", %.1f%% right", 100.0 * (double)p->correct / (double)judged);
    if (p->excluded)
        fprintf(stderr, ", %lld left out", (long long)p->excluded);
    fprintf(stderr, ", %s tokens/s", tp_human_count(p->tokens_per_s, rate));
    if (p->done && !is_last)
        fprintf(stderr, ", %s left",
                tp_human_seconds(p->seconds / (double)p->done * (double)(p->n - p->done), left));
    fputs(tp_style(TP_LINE_ERASE), stderr);
    if (is_last)
        tp_cli_erase_line(stderr);
    fflush(stderr);
    return true;
}

static tp_status evaluate(job *j, tp_evaluation *ret, tp_error *err)
{
    const tp_eval_options *o = &j->o;
    size_t n_stop = o->generation.stop_token_ids.n;
    j->stop_ids = calloc(n_stop + 1, sizeof *j->stop_ids);
    TP_ASSERT(j->stop_ids);
    for (size_t i = 0; i < n_stop; i++)
        j->stop_ids[i] = (int32_t)o->generation.stop_token_ids.v[i];
    int64_t top_k = o->generation.top_k == TP_OPT_UNSET_INT ? -1 : o->generation.top_k;
    tp_evaluate_options options = {.max_length = j->max_length,
                                   .n_samples = o->eval.num_tests_per_prompt,
                                   .max_new_tokens = o->generation.max_new_tokens,
                                   .sampling = {.temperature = o->generation.temperature,
                                                .top_k = top_k,
                                                .top_p = o->generation.top_p,
                                                .min_p = o->generation.min_p},
                                   .seed = (uint64_t)o->eval.seed,
                                   .stop_ids = j->stop_ids,
                                   .n_stop_ids = n_stop,
                                   .stop_strings = o->generation.stop_strings.v,
                                   .n_stop_strings = o->generation.stop_strings.n,
                                   .success_threshold = o->eval.success_threshold,
                                   .pool = j->pool,
                                   .on_progress = on_progress,
                                   .user = j};
    return tp_evaluate(j->engine, j->model, j->tokenizer, j->prompts, j->encoder, j->env, &options,
                       ret, err);
}

static tp_status write_out(const tp_eval_report *r, const char *path, tp_error *err)
{
    tp_buf text = {0};
    tp_eval_report_json(r, true, 1, &text);
    tp_status status = tp_output_put(path, text.data, text.len, err);
    tp_buf_release(&text);
    return status;
}

static void print_report(const tp_eval_report *r, const flags *f)
{
    tp_buf text = {0};
    if (f->json)
        tp_eval_report_json(r, false, 2, &text);
    else
        tp_eval_report_text(r, f->prompts, tp_cli_colour(stdout), &text);
    fwrite(text.data, 1, text.len, stdout);
    tp_buf_release(&text);
}

static tp_status report(job *j, const tp_evaluation *e, tp_error *err)
{
    tp_eval_summary summary;
    const tp_model_info *info = tp_model_get_info(j->model);
    TP_TRY(tp_eval_summarize(e->counts, e->n, j->o.k, j->o.n_k, j->o.eval.confidence_level,
                             &summary, err));
    tp_eval_report r = {.config = j->config,
                        .options = &j->o,
                        .model = tp_buf_str(&j->folder),
                        .family = info->family,
                        .n_parameters = tp_model_param_count(j->model),
                        .data = tp_buf_str(&j->data_text),
                        .env = tp_buf_str(&j->env_text),
                        .evaluation = e,
                        .summary = &summary,
                        .judges = tp_environment_get_counts(j->env)};
    print_report(&r, j->f);
    if (j->f->out)
        TP_TRY(write_out(&r, j->f->out, err));
    if (j->o.eval.save_path)
        TP_TRY(tp_eval_report_nemo(&r, j->o.eval.save_path, err));
    return TP_OK;
}

static void print_notices(const job *j)
{
    tp_cli_print_notice("eval", j->config);
    if (j->o.generation.temperature == 0 && j->o.eval.num_tests_per_prompt > 1)
        fprintf(stderr,
                "temper eval: generation.temperature is 0: the %lld answers to a question are all "
                "the same\n",
                (long long)j->o.eval.num_tests_per_prompt);
}

static tp_status run(job *j, char **words, int n, tp_error *err)
{
    tp_evaluation e = {0};
    TP_TRY(bind(j, words, n, err));
    TP_TRY(tp_output_check(j->f->out, err)); /* before the work, not after it */
    if (!tp_cli_force_isa(j->o.isa))
        return tp_fail(err, TP_ERR_CONFIG, "engine.isa cannot be had");
    TP_TRY(open_questions(j, err));
    print_notices(j);
    TP_TRY(open_model(j, err));
    TP_TRY(tp_output_check(j->f->out, err)); /* now that the inputs are known */
    tp_status status = evaluate(j, &e, err);
    if (status == TP_OK)
        status = report(j, &e, err);
    tp_evaluation_release(&e);
    return status;
}

static int print_keys(void)
{
    tp_buf out = {0};
    tp_eval_options_doc(&out);
    fwrite(out.data, 1, out.len, stdout);
    tp_buf_release(&out);
    return 0;
}

/* The words that work on files alone; -1: it was none of them. */
static int from_files(char **words, int n, const flags *f)
{
    tp_eval_file_options o = {
        .level = f->level, .threshold = f->threshold, .json = f->json, .report = f->report};
    bool is_compare = n > 0 && strcmp(words[0], "compare") == 0;
    bool is_summary = n > 0 && strcmp(words[0], "summarize") == 0;
    if ((f->report && !is_compare) || (f->out && (is_compare || is_summary))) {
        fprintf(stderr, "temper eval: %s\n",
                f->out ? "--out is for answers that are asked for here"
                       : "--report is for 'compare A B'");
        return TP_EXIT_INPUT;
    }
    if (is_compare && n == 3)
        return tp_eval_compare_files(words[1], words[2], &o);
    if (is_summary && n == 2)
        return tp_eval_is_run(words[1]) ? tp_eval_summarize_run(words[1], &o)
                                        : tp_eval_summarize_file(words[1], &o);
    if (is_compare)
        fprintf(stderr, "temper eval compare: expected two files, A.json B.json\n");
    if (is_summary)
        fprintf(stderr, "temper eval summarize: expected one file\n");
    return is_compare || is_summary ? 2 : -1;
}

int tp_cmd_eval(int argc, char **argv)
{
    flags f = {.prompts = 5, .level = 0.95, .threshold = 1};
    char *words[argc + 1];
    tp_error err = {0};
    job j = {.f = &f};
    const tp_usage usage = {
        .command = "eval",
        .arguments = "[CONFIG] [KEY=VALUE...]\nsummarize FILE\ncompare A B",
        .summary = "Ask a model a set of questions, several times each, judge the answers, and say "
                   "how good it is and how sure that is.  'summarize' says the same about what "
                   "--out wrote, NeMo RL's evaluation_data.json and val_data_step<N>.jsonl, or the "
                   "validations of a run folder; "
                   "'compare' pairs two of them by prompt.",
        .flags = flag_table,
        .details = "CONFIG has NeMo RL's names: generation.model_name, eval.num_tests_per_prompt, "
                   "eval.k_value, data.data_path, env.math ...; 'temper eval --keys' lists them.",
        .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    if (f.keys)
        return print_keys();
    int done = from_files(words, n, &f);
    if (done >= 0)
        return done;
    tp_cli_catch(SIGINT, on_signal);
    tp_cli_catch(SIGTERM, on_signal);
    tp_status status = run(&j, words, n, &err);
    close_job(&j);
    if (status == TP_OK)
        return 0;
    if (!f.quiet && tp_cli_terminal(stderr))
        tp_cli_erase_line(stderr);
    int exit_status = tp_cli_fail(&err);
    return stop_signal ? 128 + stop_signal : exit_status;
}
