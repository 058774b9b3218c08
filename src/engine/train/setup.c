/* setup.c - from options to everything a run needs, in the order in which it can
 * fail cheapest: configuration, model, plan, data, memory, weights. */
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cpu.h"
#include "base/files.h"
#include "base/platform.h"
#include "engine/data/chat.h"
#include "engine/train/trainer_internal.h"
#include "engine/train/trainer_sources.h"

void tp_trainer_notice(const trainer *t, const char *fmt, ...)
{
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    tp_train_event event = {.kind = TP_EVENT_NOTICE, .text = text, .step = t->state.step};
    tp_trainer_send(t, &event);
}

/* ---- machine ---- */

int tp_trainer_threads(const tp_train_options *o)
{
    if (o->engine.threads != TP_OPT_UNSET_INT)
        return (int)o->engine.threads;
    return tp_cpu_count();
}

static tp_status limit_memory(const tp_train_options *o, tp_error *err)
{
    struct sysinfo info;
    if (sysinfo(&info) != 0)
        return tp_fail(err, TP_ERR_IO, "cannot tell how much memory the machine has");
    double total = (double)info.totalram * (double)info.mem_unit;
    tp_buf text = {0};
    double cgroup;
    if (tp_file_read("/sys/fs/cgroup/memory.max", 64, &text, NULL) == TP_OK &&
        sscanf(tp_buf_str(&text), "%lf", &cgroup) == 1)
        total = fmin(total, cgroup);
    tp_buf_release(&text);
    tp_mem_set_limit((size_t)(total * o->engine.memory_fraction));
    return TP_OK;
}

/* ---- session ---- */

bool tp_trainer_is_packed(const tp_train_options *o)
{
    return o->policy.packing.enabled || o->policy.dynamic_batching.enabled;
}

/* What attention computes at a time, see backend/cpu/attention_block.h. */
int32_t tp_trainer_alignment(const tp_train_options *o)
{
    return o->algorithm == TP_ALGORITHM_DPO && o->policy.precision == TP_PRECISION_BFLOAT16 ? 64
                                                                                            : 0;
}

static int64_t asked_budget(const tp_train_options *o)
{
    if (o->policy.packing.enabled)
        return o->policy.packing.train_mb_tokens;
    if (o->policy.dynamic_batching.enabled)
        return o->policy.dynamic_batching.train_mb_tokens;
    int64_t answers = o->algorithm == TP_ALGORITHM_DPO ? 2 : 1; /* a batch counts pairs */
    return answers * o->policy.train_micro_batch_size * o->policy.max_total_sequence_length;
}

/* An aligned pair that fits the budget asked for needs at most one gap more. */
int64_t tp_trainer_token_budget(const tp_train_options *o)
{
    return asked_budget(o) + tp_trainer_alignment(o);
}

static tp_status open_model(const tp_train_options *o, tp_model **ret, tp_error *err)
{
    bool random = o->policy.init == TP_INIT_RANDOM;
    const char *path = random ? o->policy.model_config : o->policy.model_name;
    if (!path)
        return tp_fail(err, TP_ERR_CONFIG,
                       random ? "policy.init=random needs policy.model_config=FILE (a config.json)"
                              : "policy.model_name=DIR is needed: a Hugging Face folder to start "
                                "from (or policy.init=random with policy.model_config)");
    return tp_model_open(path, ret, err);
}

static tp_status create_session(const tp_train_options *o, const tp_model *model,
                                double avg_context, bool forward_only, const tp_train_hooks *hooks,
                                tp_session **ret, tp_error *err)
{
    static const char *const every_pass[] = {"cse",      "dce",       "fuse",
                                             "schedule", "recompute", "autocast"};
    bool none = o->policy.compile_mode == TP_COMPILE_NONE;
    tp_session_options options = {
        .backend = &tp_backend_cpu,
        .threads = tp_trainer_threads(o),
        .tokens = tp_trainer_token_budget(o),
        .max_positions = o->policy.max_total_sequence_length,
        .compute_dtype =
            o->policy.precision == TP_PRECISION_BFLOAT16 ? TP_DTYPE_BF16 : TP_DTYPE_F32,
        .recompute = o->policy.recompute,
        .recompute_every = o->policy.recompute_every,
        /* Precision and recomputation are asked for by name, so they stay. */
        .disabled_passes = none ? every_pass : o->engine.disable_passes.v,
        .n_disabled_passes = none ? 4 : o->engine.disable_passes.n,
        .loss_chunk = (int32_t)o->engine.loss_chunk,
        .avg_context = avg_context,
        .weighed = o->algorithm != TP_ALGORITHM_SFT,
        .forward_only = forward_only,
        .share_memory = !none,
        .dump = hooks ? hooks->dump : NULL,
        .dump_stages = o->engine.dump.v,
        .n_dump_stages = o->engine.dump.n,
        .dump_user = hooks ? hooks->user : NULL};
    const tp_model_info *info = tp_model_get_info(model);
    if (info->rope_theta == 0 && options.max_positions > info->max_positions)
        return tp_fail(err, TP_ERR_CONFIG,
                       "policy.max_total_sequence_length is %lld, the model has %lld positions",
                       (long long)options.max_positions, (long long)info->max_positions);
    return tp_session_create(model, &options, ret, err);
}

static tp_status force_isa(const tp_train_options *o, tp_error *err)
{
    return o->engine.isa > 0 ? tp_cpu_force_isa((tp_isa)(o->engine.isa - 1), err) : TP_OK;
}

tp_engine_options tp_trainer_engine_options(const tp_train_options *o)
{
    double cache = o->generation.cache_mib;
    tp_dtype dtype = o->policy.precision == TP_PRECISION_BFLOAT16 ? TP_DTYPE_BF16 : TP_DTYPE_F32;
    return (tp_engine_options){.backend = &tp_backend_cpu,
                               .threads = tp_trainer_threads(o),
                               .compute_dtype = dtype,
                               .cache_dtype = dtype,
                               .max_length = o->policy.max_total_sequence_length,
                               .max_running = o->generation.max_running,
                               .cache_bytes = isfinite(cache) ? (size_t)(cache * 1048576.0) : 0};
}

/* Declare what a generator would share with the session, so that it is part of the plan. */
static tp_status plan_engine(const tp_train_options *o, const tp_model *model, tp_session *session,
                             tp_error *err)
{
    tp_engine *engine;
    tp_engine_options options = tp_trainer_engine_options(o);
    if (o->algorithm != TP_ALGORITHM_GRPO)
        return TP_OK;
    TP_TRY(tp_engine_create(model, &options, tp_session_states(session), &engine, err));
    tp_engine_free(engine);
    return TP_OK;
}

tp_status tp_train_plan(const tp_train_options *options, tp_model **ret_model,
                        tp_session **ret_session, tp_error *err)
{
    tp_model *model;
    TP_TRY(force_isa(options, err));
    TP_TRY(open_model(options, &model, err));
    tp_session *session = NULL;
    tp_status status = create_session(options, model, 0, false, NULL, &session, err);
    if (status == TP_OK)
        status = plan_engine(options, model, session, err);
    if (status != TP_OK) {
        tp_session_free(session);
        tp_model_free(model);
        return status;
    }
    *ret_model = model;
    *ret_session = session;
    return TP_OK;
}

/* ---- tokenizer ---- */

bool tp_trainer_is_arithmetic(const tp_train_options *o)
{
    const char *name = o->data.train.dataset_name;
    return name && strcmp(name, "arithmetic") == 0;
}

tp_arithmetic_options tp_trainer_arithmetic(const tp_train_options *o)
{
    return (tp_arithmetic_options){.seed = (uint64_t)o->data.arithmetic.seed,
                                   .digits = (int)o->data.arithmetic.digits,
                                   .operators = o->data.arithmetic.operators,
                                   .form = (tp_arithmetic_form)o->data.arithmetic.form,
                                   .negative = o->data.arithmetic.negative,
                                   .word_problems = o->data.arithmetic.word_problems,
                                   .mistakes = o->data.arithmetic.mistakes,
                                   .validation_share = o->data.arithmetic.validation_share};
}

/* A tokenizer of its own for a model made from scratch, kept in the run folder; a
 * resumed run finds it there. */
static tp_status train_tokenizer(trainer *t, tp_error *err)
{
    static const char *const special[] = {"<|endoftext|>"};
    char path[4096];
    snprintf(t->tokenizer_dir, sizeof t->tokenizer_dir, "%s/tokenizer", t->o->run_dir);
    snprintf(path, sizeof path, "%s/tokenizer.json", t->tokenizer_dir);
    if (tp_file_exists(path))
        return TP_OK;
    snprintf(t->tokenizer_dir, sizeof t->tokenizer_dir, "%s/tokenizer", tp_run_dir(t->run));
    if (!tp_trainer_is_arithmetic(t->o))
        return tp_fail(err, TP_ERR_CONFIG,
                       "policy.tokenizer.train_vocab_size works with the generated corpus; for "
                       "text files run 'temper tokenizer DIR FILE...' and set "
                       "policy.tokenizer.name=DIR");
    tp_arithmetic_options options = tp_trainer_arithmetic(t->o);
    tp_buf text = {0};
    TP_TRY(tp_arithmetic_check(&options, err));
    tp_arithmetic_text(&options, 20000, &text);
    tp_bpe_train_options bpe = {.pre_tokenizer = "smollm2",
                                .vocab_size = (int32_t)t->o->policy.tokenizer_train_vocab_size,
                                .special = special,
                                .n_special = 1,
                                .eos = special[0],
                                .pad = special[0]};
    tp_status status = tp_dir_make(t->tokenizer_dir, err);
    const char *texts[] = {text.data};
    if (status == TP_OK)
        status = tp_tokenizer_train(texts, &text.len, 1, &bpe, t->tokenizer_dir, err);
    tp_buf_release(&text);
    return status;
}

static tp_status open_tokenizer(trainer *t, tp_error *err)
{
    const tp_model_info *info = tp_model_get_info(t->model);
    if (t->o->policy.tokenizer_train_vocab_size != TP_OPT_UNSET_INT)
        TP_TRY(train_tokenizer(t, err));
    else if (t->o->policy.tokenizer_name)
        snprintf(t->tokenizer_dir, sizeof t->tokenizer_dir, "%s", t->o->policy.tokenizer_name);
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

tp_status tp_trainer_chat_template(const trainer *t, tp_buf *file, const char **ret, tp_error *err)
{
    return tp_chat_template_setting(t->o->policy.chat_template, file, ret, err);
}

/* Tokenising may take minutes: a signal ends it too. */
bool tp_trainer_keep_going(void *user, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    const trainer *t = user;
    return !(t->hooks->should_stop && t->hooks->should_stop(t->hooks->user));
}

size_t tp_trainer_longest(const trainer *t)
{
    int64_t input = t->o->data.max_input_seq_length, total = t->o->policy.max_total_sequence_length;
    return (size_t)(input < total ? input : total);
}

void tp_trainer_fingerprint(trainer *t, const char *text)
{
    XXH128_hash_t h = XXH3_128bits(text, strlen(text));
    snprintf(t->state.data_fingerprint, sizeof t->state.data_fingerprint, "%016llx%016llx",
             (unsigned long long)h.high64, (unsigned long long)h.low64);
}

/* ---- weights ---- */

static tp_status load_pretrained(trainer *t, tp_error *err)
{
    tp_load_report report;
    TP_TRY(tp_model_load(t->model, tp_session_states(t->session), &report, err));
    t->file_dtype = report.file_dtype;
    tp_trainer_notice(t, "weights: %zu of %zu tensors, 0 missing, %zu unused%s%s (%s)",
                      report.n_loaded, report.n_expected, report.n_unused,
                      report.n_unused ? ": " : "", report.n_unused ? report.unused_names : "",
                      tp_dtype_name(report.file_dtype));
    if (report.head_was_ignored)
        tp_trainer_notice(t, "the file has a head of its own that differs from the embedding, but "
                             "config.json ties them: the embedding is used");
    if (tp_model_get_info(t->model)->ignored_dropout > 0)
        tp_trainer_notice(t, "config.json asks for dropout %g: there is none",
                          tp_model_get_info(t->model)->ignored_dropout);
    if (report.has_nonfinite)
        return tp_fail(err, TP_ERR_NUMERIC, "'%s': tensor '%s' holds NaN or infinity",
                       t->o->policy.model_name, report.nonfinite_name);
    return TP_OK;
}

static tp_status check_resume(const trainer *t, const tp_train_state *saved, const char *path,
                              tp_error *err)
{
    if (strcmp(saved->model_fingerprint, t->state.model_fingerprint) != 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' was saved from another model: its weights have "
                       "other names or shapes",
                       path);
    if (saved->seed != t->state.seed)
        return tp_fail(err, TP_ERR_CONFIG, "'%s' was saved with seed %llu, this run has %llu", path,
                       (unsigned long long)saved->seed, (unsigned long long)t->state.seed);
    if (strcmp(saved->data_fingerprint, t->state.data_fingerprint) != 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' was saved with other data, tokenizer, batch size or packing: resuming "
                       "would repeat or miss examples. Start a new run from its model/ folder",
                       path);
    return TP_OK;
}

static tp_status resume(trainer *t, bool *ret_resumed, tp_error *err)
{
    tp_buf path = {0};
    tp_train_state saved = {0};
    tp_status status = tp_checkpoint_find(t->checkpoint_dir, &path, err);
    *ret_resumed = status == TP_OK && path.len > 0;
    if (*ret_resumed) {
        status = tp_checkpoint_read_state(path.data, &saved, err);
        if (status == TP_OK)
            status = check_resume(t, &saved, path.data, err);
        if (status == TP_OK)
            status = tp_checkpoint_load(path.data, t->session, &saved, err);
        if (status == TP_OK) {
            t->state = saved;
            t->file_dtype = saved.model_dtype;
            t->val_loss = saved.metric;
            t->last_checkpoint_step = saved.step;
            tp_trainer_notice(t, "resumed from '%s' at step %lld (no batches to skip)", path.data,
                              (long long)saved.step);
        }
    } else if (status == TP_OK)
        tp_trainer_notice(t, "there is no checkpoint to resume from: starting at step 0");
    tp_buf_release(&path);
    return status;
}

static void draw_weights(const trainer *t, tp_session *session)
{
    double std = t->o->policy.init_std;
    tp_model_init_random(t->model, tp_session_states(session), (uint64_t)t->o->seed,
                         isfinite(std) ? std : 0);
}

tp_status tp_trainer_plan_reference(trainer *t, size_t *ret_bytes, tp_error *err)
{
    tp_session *s;
    tp_session_plan plan;
    TP_TRY(create_session(t->o, t->model, t->avg_context, true, NULL, &s, err));
    tp_session_get_plan(s, &plan);
    *ret_bytes = plan.peak_bytes;
    tp_session_free(s);
    return TP_OK;
}

tp_status tp_trainer_reference(trainer *t, tp_session **ret, tp_error *err)
{
    tp_session *s;
    tp_load_report report;
    TP_TRY(create_session(t->o, t->model, t->avg_context, true, NULL, &s, err));
    tp_status status = tp_session_alloc(s, err);
    if (status == TP_OK && t->o->policy.init == TP_INIT_RANDOM)
        draw_weights(t, s);
    else if (status == TP_OK)
        status = tp_model_load(t->model, tp_session_states(s), &report, err);
    if (status != TP_OK) {
        tp_session_free(s);
        return tp_error_prefix(err, status, "while making the reference model: ");
    }
    tp_session_weights_changed(s);
    *ret = s;
    return TP_OK;
}

static tp_status fill_weights(trainer *t, tp_error *err)
{
    bool resumed = false;
    t->file_dtype = TP_DTYPE_F32;
    if (t->hooks->resume)
        TP_TRY(resume(t, &resumed, err));
    if (resumed)
        return TP_OK;
    if (t->o->policy.init == TP_INIT_RANDOM)
        draw_weights(t, t->session);
    else
        TP_TRY(load_pretrained(t, err));
    tp_session_weights_changed(t->session);
    return TP_OK;
}

/* ---- all of it ---- */

static tp_status write_config(trainer *t, tp_error *err)
{
    tp_buf text = {0};
    tp_config_write(t->config, &text);
    tp_status status = tp_run_write(t->run, "config.yaml", &text, err);
    tp_buf_release(&text);
    return status;
}

static tp_status plan_session(trainer *t, tp_error *err)
{
    tp_session_plan plan;
    TP_TRY(create_session(t->o, t->model, t->avg_context, false, t->hooks, &t->session, err));
    if (t->a->plan)
        TP_TRY(t->a->plan(t, err));
    tp_session_get_plan(t->session, &plan);
    t->planned_peak += plan.peak_bytes + tp_mem_get_stats().total_current;
    TP_TRY(tp_session_alloc(t->session, err));
    tp_train_event event = tp_trainer_event(t, TP_EVENT_PLAN);
    tp_trainer_send(t, &event);
    return TP_OK;
}

/* ---- the stages ---- */

static tp_status open_settings(trainer *t, tp_error *err)
{
    const char *notice;
    TP_TRY(tp_trainer_unused_keys(t, err));
    TP_TRY(force_isa(t->o, err));
    TP_TRY(limit_memory(t->o, err));
    TP_TRY(tp_schedule_parse(t->o->policy.scheduler, &t->schedule, err));
    for (size_t i = 0; (notice = tp_config_notice(t->config, i)); i++)
        tp_trainer_notice(t, "%s", notice);
    return TP_OK;
}

static tp_status open_the_model(trainer *t, tp_error *err)
{
    TP_TRY(open_model(t->o, &t->model, err));
    tp_model_fingerprint(t->model, t->state.model_fingerprint);
    t->state.seed = (uint64_t)t->o->seed;
    return TP_OK;
}

static void describe_model(const trainer *t, tp_buf *out)
{
    char count[32];
    int64_t n = tp_model_param_count(t->model);
    tp_buf_addf(out, "%s, %lld parameters (%s)", tp_model_get_info(t->model)->family, (long long)n,
                tp_human_count((double)n, count));
}

static tp_status open_folder(trainer *t, tp_error *err)
{
    snprintf(t->checkpoint_dir, sizeof t->checkpoint_dir, "%s", t->o->checkpointing.checkpoint_dir);
    if (t->only_checks) {
        TP_TRY(tp_run_check(t->o->run_dir, t->hooks->resume, err));
        return tp_run_open_scratch(t->o->run_dir, &t->run, err);
    }
    TP_TRY(tp_run_open(t->o->run_dir, t->hooks->resume, &t->run, err));
    return tp_checkpoint_clean(t->checkpoint_dir, err);
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

static void describe_memory(const trainer *t, tp_buf *out)
{
    char planned[32], limit[32];
    tp_buf_addf(out, "planned peak %s of %s allowed",
                tp_human_bytes((double)t->planned_peak, planned),
                tp_human_bytes((double)tp_mem_get_limit(), limit));
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

static tp_status check_disk(trainer *t, tp_error *err)
{
    tp_session_plan plan;
    tp_session_get_plan(t->session, &plan);
    return t->o->checkpointing.enabled
               ? tp_checkpoint_check_space(t->checkpoint_dir, plan.checkpoint_bytes, err)
               : TP_OK;
}

static void describe_disk(const trainer *t, tp_buf *out)
{
    tp_session_plan plan;
    char bytes[32];
    tp_session_get_plan(t->session, &plan);
    if (t->o->checkpointing.enabled)
        tp_buf_addf(out, "room for a checkpoint of %s in %s",
                    tp_human_bytes((double)plan.checkpoint_bytes, bytes), t->checkpoint_dir);
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
    {"settings", open_settings, NULL, 0, 0, false},
    {"model", open_the_model, describe_model, 0, TP_HAS_MODEL, false},
    {"run folder", open_folder, describe_folder, 0, TP_HAS_FOLDER, false},
    {"tokenizer", open_tokenizer, describe_tokenizer, TP_HAS_MODEL | TP_HAS_FOLDER,
     TP_HAS_TOKENIZER, false}};

static const tp_trainer_stage last_stages[] = {
    {"memory", plan_session, describe_memory, TP_HAS_MODEL, TP_HAS_SESSION, false},
    {"disk", check_disk, describe_disk, TP_HAS_SESSION, 0, false},
    {"weights", fill_weights, describe_weights, TP_HAS_SESSION, TP_HAS_WEIGHTS, false},
    {"start", make_ready, NULL, TP_HAS_WEIGHTS | TP_HAS_STEPS, 0, false}};

int tp_trainer_stages(const trainer *t, tp_trainer_stage ret[TP_STAGES])
{
    int n = 0;
    for (size_t i = 0; i < TP_COUNTOF(first_stages); i++)
        ret[n++] = first_stages[i];
    for (const tp_trainer_stage *s = t->a->stages; s->name; s++)
        ret[n++] = *s;
    for (size_t i = 0; i < TP_COUNTOF(last_stages); i++)
        ret[n++] = last_stages[i];
    /* What shares the session's memory has to be open by then. */
    if (t->a->plan)
        ret[n - (int)TP_COUNTOF(last_stages)].needs |= TP_HAS_TOKENIZER;
    TP_ASSERT(n <= TP_STAGES);
    return n;
}

tp_status tp_trainer_open(trainer *t, tp_error *err)
{
    tp_trainer_stage stages[TP_STAGES];
    int n = tp_trainer_stages(t, stages);
    for (int i = 0; i < n; i++)
        if (!stages[i].check_only)
            TP_TRY(stages[i].open(t, err));
    return write_config(t, err);
}

void tp_trainer_close(trainer *t)
{
    tp_loader_close(t->loader);
    t->a->close(t);
    tp_tokenizer_free(t->tokenizer);
    tp_trace_release(); /* its sites are the session's */
    tp_session_free(t->session);
    tp_model_free(t->model);
    tp_run_close(t->run);
}
