/* setup.c - from options to everything a run needs, in the order in which it can
 * fail cheapest: configuration, model, plan, data, memory, weights. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/affinity.h"
#include "base/files.h"
#include "base/platform.h"
#include "base/strings.h"
#include "engine/model/adapter.h"
#include "engine/train/fit.h"
#include "engine/train/trainer_internal.h"
#include "text/gguf/gguf.h"
#include "text/template/chat.h"

/* ---- tokenizer ---- */

bool tp_trainer_is_arithmetic(const tp_train_options *o)
{
    const char *name = o->data.train.dataset_name;
    return name && strcmp(name, "arithmetic") == 0;
}

/* A tokenizer of its own for a model made from scratch, kept in the run folder; a
 * resumed run finds it there. */
static tp_status train_tokenizer(trainer *t, tp_error *err)
{
    static const char *const special[] = {"<|endoftext|>"};
    snprintf(t->tokenizer_dir, sizeof t->tokenizer_dir, "%s/tokenizer", t->o->run_dir);
    if (tp_file_exists(tp_path_of("%s/tokenizer.json", t->tokenizer_dir).text))
        return TP_OK;
    snprintf(t->tokenizer_dir, sizeof t->tokenizer_dir, "%s/tokenizer", tp_run_dir(t->run));
    const tp_arithmetic_options *options = &t->o->data.arithmetic.of;
    TP_OWN(tp_buf) text = {0};
    TP_TRY(tp_arithmetic_check(options, err));
    tp_arithmetic_text(options, 20000, &text);
    tp_bpe_train_options bpe = {.pre_tokenizer = "smollm2",
                                .vocab_size = (int32_t)t->o->policy.tokenizer_train_vocab_size,
                                .special = special,
                                .n_special = 1,
                                .eos = special[0],
                                .pad = special[0]};
    TP_TRY(tp_dir_make(t->tokenizer_dir, err));
    const char *texts[] = {text.data};
    return tp_tokenizer_train(texts, &text.len, 1, &bpe, t->tokenizer_dir, err);
}

/* The folder of an adapter need have no tokenizer. */
static void use_the_base(const trainer *t, tp_buf *path)
{
    bool is_there = tp_file_exists(tp_path_of("%s/tokenizer.json", path->data).text);
    if (is_there || strcmp(path->data, t->model_folder) != 0)
        return;
    tp_buf_clear(path);
    tp_buf_adds(path, tp_model_base_folder(t->model));
}

/* The model's, or that of a folder, a run or a checkpoint. */
static tp_status find_tokenizer(trainer *t, const char *name, tp_error *err)
{
    TP_OWN(tp_buf) path = {0};
    const char *model = t->o->policy.model_name;
    if (model && t->model_folder[0] && strcmp(name, model) == 0)
        tp_buf_adds(&path, t->model_folder);
    else
        TP_TRY(tp_trainer_find_folder(name, "tokenizer.json", &path, err));
    if (tp_file_exists(path.data) && !tp_gguf_is_file(path.data)) {
        /* checkpoints take the whole folder */
        const char *slash = strrchr(path.data, '/'), *file = slash ? slash + 1 : path.data;
        size_t n = slash ? (size_t)TP_MAX(slash - path.data, 1) : 0;
        if (strcmp(file, "tokenizer.json") != 0)
            return tp_fail(err, TP_ERR_CONFIG,
                           "%s is '%s': name the folder, in which are config.json and "
                           "tokenizer.json",
                           model && strcmp(name, model) == 0 ? "policy.model_name"
                                                             : "policy.tokenizer.name",
                           name);
        tp_buf_clear(&path);
        tp_buf_addf(&path, "%.*s", n ? (int)n : 1, n ? name : ".");
    }
    if (tp_model_adapter_folder(t->model))
        use_the_base(t, &path);
    if (path.len >= sizeof t->tokenizer_dir)
        return tp_fail(err, TP_ERR_CONFIG, "policy.tokenizer.name is too long");
    memcpy(t->tokenizer_dir, path.data, path.len + 1);
    return TP_OK;
}

static tp_status open_tokenizer(trainer *t, tp_error *err)
{
    const tp_model_info *info = tp_model_get_info(t->model);
    const char *name = t->o->policy.tokenizer_name;
    if (t->o->policy.tokenizer_train_vocab_size != TP_OPT_UNSET_INT)
        TP_TRY(train_tokenizer(t, err));
    else if (name)
        TP_TRY(find_tokenizer(t, name, err));
    else
        return tp_fail(err, TP_ERR_CONFIG,
                       "policy.tokenizer.name=DIR is needed: a folder with "
                       "tokenizer.json");
    TP_TRY(tp_tokenizer_load(t->tokenizer_dir, &t->tokenizer, err));
    int32_t vocab = tp_tokenizer_vocab_size(t->tokenizer);
    if (vocab > info->vocab)
        return tp_fail(err, TP_ERR_CONFIG,
                       "the tokenizer '%s' has %d ids, the model's vocabulary is %lld: they do not "
                       "belong together",
                       t->tokenizer_dir, vocab, (long long)info->vocab);
    return TP_OK;
}

/* ---- data ---- */

/* A JSON value as Jinja writes it: it has other words for null, and none for NaN and infinities,
 * which are made of their texts. */
static void jinja_value(const tp_json *value, tp_buf *out)
{
    bool is_object = value->type == TP_JSON_OBJECT;
    double number;
    if (is_object || value->type == TP_JSON_ARRAY) {
        tp_buf_addc(out, is_object ? '{' : '[');
        for (const tp_json *v = value->child; v; v = v->next) {
            if (is_object)
                tp_json_quote(out, v->key.data, v->key.len);
            tp_buf_adds(out, is_object ? ":" : "");
            jinja_value(v, out);
            tp_buf_adds(out, v->next ? "," : "");
        }
        tp_buf_addc(out, is_object ? '}' : ']');
    } else if (value->type == TP_JSON_NULL) {
        tp_buf_adds(out, "none");
    } else {
        tp_json_text(value, out);
        tp_buf_adds(out, tp_json_f64(value, &number) && !isfinite(number) ? "|float" : "");
    }
}

/* The template with the variables that it was given here as defaults.  The line break ends at the
 * tag (trim_blocks), so the template begins a line, as it did. */
static void keep_template(trainer *t, const char *text)
{
    const tp_json *variables = t->o->policy.template_variables;
    tp_buf_clear(&t->chat_template);
    for (const tp_json *v = variables ? variables->child : NULL; v; v = v->next) {
        tp_buf_addf(&t->chat_template,
                    "{%% if %.*s is not defined %%}{%% set %.*s = ", (int)v->key.len, v->key.data,
                    (int)v->key.len, v->key.data);
        jinja_value(v, &t->chat_template);
        tp_buf_adds(&t->chat_template, " %}{% endif %}\n");
    }
    tp_buf_adds(&t->chat_template, text);
}

/* What whoever prompts the trained model has to do as well; nothing is kept where that is what
 * the tokenizer's own template says. */
static void note_template(trainer *t, const char *text)
{
    static const char joined[] =
        "{% for message in messages %}{{ message['content'] }}{% endfor %}";
    const char *own = tp_tokenizer_chat_template(t->tokenizer);
    const tp_json *variables = t->o->policy.template_variables;
    bool has_variables = variables && variables->child;
    t->uses_template = true;
    if (text && *text)
        keep_template(t, text);
    else if (text && own)
        keep_template(t, joined);
    else if (!text && own && has_variables)
        keep_template(t, own);
}

tp_status tp_trainer_chat_template(trainer *t, tp_buf *file, const char **ret, tp_error *err)
{
    TP_TRY(tp_chat_template_setting(t->o->policy.chat_template, file, ret, err));
    note_template(t, *ret);
    return TP_OK;
}

/* Tokenising may take minutes: a signal ends it too. */
bool tp_trainer_keep_going(void *user, const char *what, uint64_t done, uint64_t total)
{
    trainer *t = user;
    tp_trainer_working(t, what, done, total);
    return !(t->hooks->should_stop && t->hooks->should_stop(t->hooks->user));
}

size_t tp_trainer_longest(const trainer *t)
{
    int64_t input = t->o->data.max_input_seq_length, total = t->o->policy.max_total_sequence_length;
    return (size_t)(input < total ? input : total);
}

void tp_trainer_count_steps(trainer *t, uint64_t n, uint64_t each)
{
    uint64_t epochs = (uint64_t)t->o->loop.max_num_epochs;
    t->steps_per_epoch = (n + each - 1) / each;
    t->max_steps = t->o->loop.max_num_steps;
    if (epochs <= (uint64_t)t->max_steps / t->steps_per_epoch)
        t->max_steps = (int64_t)(t->steps_per_epoch * epochs);
}

void tp_trainer_count_draws(trainer *t, uint64_t n, uint64_t each)
{
    double steps = ceil((double)t->o->loop.max_num_epochs * (double)n / (double)each);
    t->prompts_per_epoch = n;
    t->steps_per_epoch = (n + each - 1) / each;
    t->max_steps = t->o->loop.max_num_steps;
    if (steps < (double)t->max_steps)
        t->max_steps = (int64_t)steps;
}

void tp_trainer_fingerprint(trainer *t, const char *text)
{
    tp_hash_bytes(text, strlen(text), t->state.data_fingerprint);
}

/* ---- weights ---- */

static void say_about_model(void *user, const char *text) { tp_trainer_notice(user, "%s", text); }

static tp_status load_pretrained(trainer *t, tp_error *err)
{
    tp_load_report report;
    TP_TRY(tp_model_load(t->model, tp_session_states(t->session), &report, err));
    t->file_dtype = report.file_dtype;
    memcpy(t->weights_fingerprint, report.fingerprint, sizeof report.fingerprint);
    if (tp_model_has_adapter(t->model))
        memcpy(t->state.base_fingerprint, report.fingerprint, sizeof report.fingerprint);
    tp_trainer_notice(t, "weights: %zu of %zu tensors, 0 missing, %zu unused (%s)", report.n_loaded,
                      report.n_expected, report.n_unused, tp_dtype_name(report.file_dtype));
    tp_model_say(t->model, &report, say_about_model, t);
    if (tp_model_get_info(t->model)->ignored_dropout > 0)
        tp_trainer_notice(t, "config.json asks for dropout %g: there is none",
                          tp_model_get_info(t->model)->ignored_dropout);
    if (report.has_nonfinite)
        return tp_fail(err, TP_ERR_NUMERIC, "'%s': tensor '%s' holds NaN or infinity",
                       t->o->policy.model_name, report.nonfinite_name);
    return TP_OK;
}

static tp_status draw_weights(const trainer *t, tp_session *session, tp_error *err)
{
    double std = t->o->policy.init_std;
    return tp_model_init_random(t->model, tp_session_states(session), (uint64_t)t->o->seed,
                                isfinite(std) ? std : 0, err);
}

/* The base is shared; an adapter that was trained before is there twice. */
static tp_status fill_shared_reference(trainer *t, tp_session *s, tp_error *err)
{
    const char *folder = tp_model_adapter_folder(t->model);
    return folder
               ? tp_adapter_load(t->model, folder, TP_ADAPTER_REFERENCE, tp_session_states(s), err)
               : TP_OK;
}

tp_status tp_trainer_fill_reference(trainer *t, tp_error *err)
{
    tp_session *s = t->graphs.reference;
    tp_load_report report;
    TP_ASSERT(s);
    tp_status status = tp_session_alloc(s, err);
    if (status == TP_OK && tp_model_has_adapter(t->model))
        status = fill_shared_reference(t, s, err);
    else if (status == TP_OK && t->o->policy.init == TP_INIT_RANDOM)
        status = draw_weights(t, s, err);
    else if (status == TP_OK)
        status = tp_model_load(t->model, tp_session_states(s), &report, err);
    if (status == TP_OK)
        status = tp_session_weights_changed(s, err);
    return status == TP_OK ? TP_OK
                           : tp_error_prefix(err, status, "while making the reference model: ");
}

static void tell_adapter(trainer *t)
{
    const tp_lora_settings *s = tp_model_adapter(t->model);
    const char *folder = tp_model_adapter_folder(t->model);
    size_t n;
    int64_t count = 0;
    const tp_param *params = tp_model_trained(t->model, &n);
    for (size_t i = 0; i < n; i++)
        count += params[i].dim[0] * params[i].dim[1];
    tp_trainer_notice(
        t,
        "adapter: %s%s of rank %lld%s, alpha %g%s, on %zu module%s; %lld parameters are "
        "trained%s%s, the base is frozen",
        s->uses_rslora ? "rs" : "", s->uses_dora ? "DoRA" : "LoRA", (long long)s->r,
        s->ranks.n ? " (others as rank_pattern says)" : "", s->alpha,
        s->alphas.n ? " (others as alpha_pattern says)" : "", tp_model_adapter_count(t->model),
        tp_plural((uint64_t)(tp_model_adapter_count(t->model))), (long long)count,
        folder ? ", from " : "", folder ? folder : "");
}

static tp_status fill_first_weights(trainer *t, tp_error *err)
{
    if (t->o->policy.init == TP_INIT_RANDOM)
        TP_TRY(draw_weights(t, t->session, err));
    else
        TP_TRY(load_pretrained(t, err));
    if (tp_model_has_adapter(t->model))
        tell_adapter(t);
    if (tp_model_has_adapter(t->model) && !tp_model_adapter_folder(t->model))
        TP_TRY(tp_adapter_init(t->model, tp_session_states(t->session), (uint64_t)t->o->seed, err));
    return TP_OK;
}

static tp_status fill_weights(trainer *t, tp_error *err)
{
    bool resumed = false, has_adapter = tp_model_has_adapter(t->model);
    t->file_dtype = TP_DTYPE_F32;
    if (has_adapter) /* its base is in no checkpoint */
        TP_TRY(fill_first_weights(t, err));
    if (t->hooks->resume)
        TP_TRY(tp_attempt_resume(t, &resumed, err));
    if (resumed)
        return TP_OK;
    if (!has_adapter)
        TP_TRY(fill_first_weights(t, err));
    return tp_session_weights_changed(t->session, err);
}

/* ---- all of it ---- */

static tp_status open_own_model(trainer *t, tp_error *err)
{
    TP_OWN(tp_buf) path = {0}, said = {0};
    TP_TRY(tp_run_model_open(t->o, &t->model, &path, err));
    TP_TRY(tp_run_check_positions(t->o, t->model, &said, err));
    if (said.len)
        tp_trainer_notice(t, "%s", said.data);
    if (t->o->policy.init != TP_INIT_RANDOM) {
        snprintf(t->model_folder, sizeof t->model_folder, "%s", path.data);
        if (strcmp(path.data, t->o->policy.model_name) != 0)
            tp_trainer_notice(t, "policy.model_name: the model of '%s' is '%s'",
                              t->o->policy.model_name, path.data);
    }
    return TP_OK;
}

/* There is a checkpoint to go on from. */
static bool resumes(const trainer *t)
{
    TP_OWN(tp_buf) path = {0};
    return t->hooks->resume &&
           tp_checkpoint_find(t->checkpoint_dir, NULL, &path, NULL, NULL) == TP_OK && path.len > 0;
}

/* max-autotune: kernels are measured before the run is planned, which then has their workspace. */
static tp_status tune(trainer *t, tp_error *err)
{
    tp_run_graphs graphs;
    const tp_run_graphs_options options = {.resumes = t->resumes, .measures_kernels = true};
    tp_tune_begin();
    if (t->o->policy.compile_mode != TP_COMPILE_MAX_AUTOTUNE || t->only_checks)
        return TP_OK;
    TP_TRY(tp_run_graphs_create(t->o, t->model, &options, &graphs, err));
    tp_run_graphs_release(&graphs);
    tp_tune_keep();
    tp_mem_reset_peak(); /* what measuring took is not the run's */
    return TP_OK;
}

/* What the run will take is known before it reads data or allocates anything. */
static tp_status plan_run(trainer *t, tp_error *err)
{
    t->resumes = t->a->resumes_with_reference && resumes(t);
    TP_TRY(tune(t, err));
    TP_TRY(tp_run_plan_compute(t->o, t->model, t->resumes, t->hooks->machine, &t->plan, err));
    tp_mem_set_limit((size_t)t->plan.allowance.bytes, t->plan.allowance.source);
    tp_levers_look(t->config, t->o, &t->levers);
    if (!t->only_checks && t->plan.fits)
        tp_levers_predict(t->config, t->o, t->model, &t->plan, t->resumes, t->hooks->machine,
                          &t->levers);
    return tp_run_plan_check(t->o, t->model, t->resumes, &t->plan, err);
}

static tp_status create_graphs(trainer *t, tp_error *err)
{
    tp_run_graphs_options options = {.avg_context = t->avg_context,
                                     .resumes = t->resumes,
                                     .tokenizer = t->tokenizer,
                                     .dump = t->hooks->dump,
                                     .dump_user = t->hooks->user};
    if (!t->only_checks) { /* of the whole process: not for a plan or a check */
        tp_niceness_raise((int)t->o->engine.niceness);
        tp_numa_interleave(t->o->engine.numa);
    }
    TP_TRY(tp_run_graphs_create(t->o, t->model, &options, &t->graphs, err));
    tp_trainer_take_graphs(t);
    tp_memory_watch_begin(t);
    TP_TRY(tp_session_alloc(t->session, err));
    tp_train_event event = tp_trainer_event(t, TP_EVENT_PLAN);
    tp_trainer_send(t, &event);
    return TP_OK;
}

/* ---- the stages ---- */

static tp_status open_settings(trainer *t, tp_error *err)
{
    const char *notice = tp_config_notice(t->config);
    snprintf(t->checkpoint_dir, sizeof t->checkpoint_dir, "%s", t->o->checkpointing.checkpoint_dir);
    TP_TRY(tp_trainer_unused_keys(t, err));
    TP_TRY(tp_schedule_parse(t->o->policy.scheduler, &t->schedule, err));
    if (notice)
        tp_trainer_notice(t, "%s", notice);
    if (t->o->said)
        tp_trainer_notice(t, "%s", t->o->said);
    return tp_train_options_check_files(t->config, t->o, err);
}

static tp_status open_the_model(trainer *t, tp_error *err)
{
    TP_TRY(open_own_model(t, err));
    tp_model_fingerprint(t->model, t->state.model_fingerprint);
    t->state.seed = (uint64_t)t->o->seed;
    snprintf(t->state.optimizer, sizeof t->state.optimizer, "%s",
             t->o->policy.optimizer.kind->name);
    return TP_OK;
}

static void describe_model(const trainer *t, tp_buf *out)
{
    int64_t n = tp_model_param_count(t->model);
    tp_buf_addf(out, "%s, %lld parameters (%s)", tp_model_get_info(t->model)->family, (long long)n,
                tp_human_count((double)n, TP_ROOM));
}

static void describe_memory(const trainer *t, tp_buf *out)
{
    char planned[32], limit[32];
    tp_buf_addf(out, "planned peak %s of %s allowed",
                tp_human_bytes((double)t->plan.peak_bytes, planned),
                tp_human_bytes(t->plan.allowance.bytes, limit));
}

static tp_status open_folder(trainer *t, tp_error *err)
{
    if (t->only_checks) {
        TP_TRY(tp_run_check(t->o->run_dir, t->hooks->resume, err));
        TP_TRY(tp_run_open_scratch(t->o->run_dir, t->hooks->resume, &t->run, err));
        tp_attempt_identify(t);
        return tp_attempt_check_claim(t, err);
    }
    if (!tp_trainer_is_first(t)) /* one rank writes */
        return tp_run_open_scratch(t->o->run_dir, t->hooks->resume, &t->run, err);
    TP_TRY(tp_run_open(t->o->run_dir, t->hooks->resume, &t->run, err));
    TP_TRY(tp_attempt_claim(t, err));
    tp_attempt_identify(t);
    return tp_attempt_compare(t, err);
}

static void describe_folder(const trainer *t, tp_buf *out)
{
    tp_buf_addf(out, "%s %s", t->o->run_dir,
                tp_dir_exists(t->o->run_dir) ? "can be written" : "can be made");
}

static void describe_tokenizer(const trainer *t, tp_buf *out)
{
    tp_buf_addf(out, "%s%d ids, %s", t->o->policy.tokenizer_name ? "" : "trained by the run, ",
                tp_tokenizer_vocab_size(t->tokenizer),
                tp_tokenizer_chat_template(t->tokenizer) ? "chat template" : "no chat template");
}

static void describe_weights(const trainer *t, tp_buf *out)
{
    if (t->last_checkpoint_step >= 0)
        tp_buf_addf(out, "of the checkpoint at step %lld", (long long)t->state.step);
    else if (t->o->policy.init == TP_INIT_RANDOM)
        tp_buf_adds(out, "drawn at random");
    else
        tp_buf_addf(out, "all there (%s)", tp_dtype_name(t->file_dtype));
}

static size_t checkpoint_bytes(const trainer *t)
{
    tp_session_plan plan;
    tp_session_get_plan(t->session, &plan);
    return plan.checkpoint_bytes;
}

static tp_status check_disk(trainer *t, tp_error *err)
{
    return t->o->checkpointing.enabled
               ? tp_checkpoint_check_space(t->checkpoint_dir, checkpoint_bytes(t), err)
               : TP_OK;
}

static void describe_disk(const trainer *t, tp_buf *out)
{
    if (t->o->checkpointing.enabled)
        tp_buf_addf(out, "room for a checkpoint of %s in %s",
                    tp_human_bytes((double)checkpoint_bytes(t), TP_ROOM), t->checkpoint_dir);
    else
        tp_buf_adds(out, "no checkpoints are asked for (checkpointing.enabled)");
}

static tp_status make_ready(trainer *t, tp_error *err)
{
    t->first_step = t->state.step;
    if (!t->a->ready || (t->only_checks && t->a->ready_is_work))
        return TP_OK;
    return t->a->ready(t, err);
}

void tp_trainer_describe_steps(const trainer *t, tp_buf *out)
{
    tp_buf_addf(out, "%lld, %llu in an epoch", (long long)t->max_steps,
                (unsigned long long)t->steps_per_epoch);
}

static const tp_trainer_stage first_stages[] = {
    {"settings", open_settings, NULL, 0, 0},
    {"model", open_the_model, describe_model, 0, TP_HAS_MODEL},
    {"memory", plan_run, describe_memory, TP_HAS_MODEL, TP_HAS_PLAN},
    {"run folder", open_folder, describe_folder, 0, TP_HAS_FOLDER},
    {"tokenizer", open_tokenizer, describe_tokenizer, TP_HAS_MODEL | TP_HAS_FOLDER,
     TP_HAS_TOKENIZER}};

static const tp_trainer_stage last_stages[] = {
    {"graphs", create_graphs, NULL, TP_HAS_PLAN, TP_HAS_SESSION},
    {"disk", check_disk, describe_disk, TP_HAS_SESSION, 0},
    {"weights", fill_weights, describe_weights, TP_HAS_SESSION, TP_HAS_WEIGHTS},
    {"start", make_ready, NULL, TP_HAS_WEIGHTS | TP_HAS_STEPS, TP_IS_READY}};

int tp_trainer_stages(const trainer *t, tp_trainer_stage ret[TP_STAGES])
{
    int n = 0;
    for (size_t i = 0; i < TP_COUNTOF(first_stages); i++)
        ret[n++] = first_stages[i];
    for (const tp_trainer_stage *s = t->a->stages; s->name; s++)
        ret[n++] = *s;
    for (size_t i = 0; i < TP_COUNTOF(last_stages); i++) {
        ret[n] = last_stages[i];
        if (t->hooks->resume && ret[n].gives == TP_HAS_WEIGHTS)
            ret[n].needs |= TP_HAS_FOLDER; /* whose checkpoints these are stands there */
        n++;
    }
    TP_ASSERT(n <= TP_STAGES);
    return n;
}

tp_status tp_trainer_open(trainer *t, tp_error *err)
{
    tp_trainer_stage stages[TP_STAGES];
    int n = tp_trainer_stages(t, stages);
    for (int i = 0; i < n; i++)
        TP_TRY(tp_ranks_open_stage(t, &stages[i], err));
    t->has_nothing_to_do = tp_attempt_has_nothing_to_do(t);
    TP_TRY(tp_comm_broadcast(t->comm, &t->has_nothing_to_do, sizeof t->has_nothing_to_do, 0, err));
    return t->has_nothing_to_do ? TP_OK
                                : tp_comm_agree(t->comm, tp_attempt_write_config(t, err), err);
}

void tp_trainer_close(trainer *t)
{
    tp_loader_close(t->loader);
    t->a->close(t);
    tp_tokenizer_free(t->tokenizer);
    tp_trace_release(); /* its sites are the session's */
    tp_run_graphs_release(&t->graphs);
    tp_memory_watch_end(t);
    tp_model_free(t->model);
    tp_attempt_let_go(t);
    tp_run_close(t->run);
    tp_buf_release(&t->chat_template);
    tp_buf_release(&t->changes);
}
