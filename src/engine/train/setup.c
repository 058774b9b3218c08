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
#include "base/threads.h"
#include "engine/train/trainer_internal.h"

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

static int thread_count(const tp_train_options *o)
{
    if (o->engine.threads != TP_OPT_UNSET_INT)
        return (int)o->engine.threads;
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
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

static bool is_packed(const tp_train_options *o)
{
    return o->policy.packing.enabled || o->policy.dynamic_batching.enabled;
}

static int64_t token_budget(const tp_train_options *o)
{
    if (o->policy.packing.enabled)
        return o->policy.packing.train_mb_tokens;
    if (o->policy.dynamic_batching.enabled)
        return o->policy.dynamic_batching.train_mb_tokens;
    return o->policy.train_micro_batch_size * o->policy.max_total_sequence_length;
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
                                double avg_context, const tp_train_hooks *hooks, tp_session **ret,
                                tp_error *err)
{
    static const char *const every_pass[] = {"cse",      "dce",       "fuse",
                                             "schedule", "recompute", "autocast"};
    bool none = o->policy.compile_mode == TP_COMPILE_NONE;
    tp_session_options options = {
        .backend = &tp_backend_cpu,
        .threads = thread_count(o),
        .tokens = token_budget(o),
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
        .share_memory = !none,
        .dump = o->engine.dump.n && hooks ? hooks->dump : NULL,
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

tp_status tp_train_plan(const tp_train_options *options, tp_model **ret_model,
                        tp_session **ret_session, tp_error *err)
{
    tp_model *model;
    TP_TRY(force_isa(options, err));
    TP_TRY(open_model(options, &model, err));
    tp_status status = create_session(options, model, 0, NULL, ret_session, err);
    if (status != TP_OK) {
        tp_model_free(model);
        return status;
    }
    *ret_model = model;
    return TP_OK;
}

/* ---- tokenizer ---- */

static bool is_arithmetic(const tp_train_options *o)
{
    const char *name = o->data.train.dataset_name;
    return name && strcmp(name, "arithmetic") == 0;
}

static tp_arithmetic_options arithmetic_options(const tp_train_options *o)
{
    return (tp_arithmetic_options){.seed = (uint64_t)o->data.arithmetic.seed,
                                   .digits = (int)o->data.arithmetic.digits,
                                   .operators = o->data.arithmetic.operators,
                                   .form = (tp_arithmetic_form)o->data.arithmetic.form,
                                   .negative = o->data.arithmetic.negative,
                                   .word_problems = o->data.arithmetic.word_problems,
                                   .validation_share = o->data.arithmetic.validation_share};
}

/* A tokenizer of its own for a model made from scratch, kept in the run folder; a
 * resumed run finds it there. */
static tp_status train_tokenizer(trainer *t, tp_error *err)
{
    static const char *const special[] = {"<|endoftext|>"};
    char path[4096];
    snprintf(t->tokenizer_dir, sizeof t->tokenizer_dir, "%s/tokenizer", tp_run_dir(t->run));
    snprintf(path, sizeof path, "%s/tokenizer.json", t->tokenizer_dir);
    if (tp_file_exists(path))
        return TP_OK;
    if (!is_arithmetic(t->o))
        return tp_fail(err, TP_ERR_CONFIG,
                       "policy.tokenizer.train_vocab_size works with the generated corpus; for "
                       "text files run 'temper tokenizer DIR FILE...' and set "
                       "policy.tokenizer.name=DIR");
    tp_arithmetic_options options = arithmetic_options(t->o);
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
        return tp_fail(err, TP_ERR_CONFIG, "policy.tokenizer.name=DIR is needed: a folder with "
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

static const char *either(const char *a, const char *b)
{
    return a ? a : b;
}

/* "default": the tokenizer's own; null: none; a path of a .jinja file; or the text. */
static tp_status chat_template(const trainer *t, tp_buf *file, const char **ret, tp_error *err)
{
    const char *text = t->o->policy.chat_template;
    *ret = text;
    if (!text)
        *ret = "";
    else if (strcmp(text, "default") == 0)
        *ret = NULL;
    else if (tp_str_ends(text, ".jinja")) {
        TP_TRY(tp_file_read(text, 1 << 20, file, err));
        *ret = tp_buf_str(file);
    }
    return TP_OK;
}

/* Tokenising may take minutes: a signal ends it too. */
static bool keep_going(void *user, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    const trainer *t = user;
    return !(t->hooks->should_stop && t->hooks->should_stop(t->hooks->user));
}

static tp_dataset_options dataset_options(const trainer *t, const tp_data_source_options *source,
                                          const char *template_text)
{
    const tp_data_source_options *f = &t->o->data.fallback;
    double split = source->split_validation_size;
    return (tp_dataset_options){
        .data_path = source->data_path,
        .input_key = either(source->input_key, f->input_key),
        .output_key = either(source->output_key, f->output_key),
        .prompt_key = either(source->prompt_key, f->prompt_key),
        .chat_key = either(source->chat_key, f->chat_key),
        .text_key = either(source->text_key, f->text_key),
        .tool_key = either(source->tool_key, f->tool_key),
        .system_key = either(source->system_key, f->system_key),
        .prompt_file = either(source->prompt_file, f->prompt_file),
        .system_prompt_file = either(source->system_prompt_file, f->system_prompt_file),
        .separator = either(source->separator, f->separator),
        .chat_template = template_text,
        .only_unmask_final = t->o->sft.only_unmask_final,
        .add_bos = t->o->data.add_bos,
        .add_eos = t->o->data.add_eos,
        .max_seq_length = (size_t)(t->o->data.max_input_seq_length <
                                           t->o->policy.max_total_sequence_length
                                       ? t->o->data.max_input_seq_length
                                       : t->o->policy.max_total_sequence_length),
        .split_validation_size = isfinite(split) ? split : 0,
        .seed = (uint64_t)t->o->seed,
        .skip_bad = t->o->data.skip_bad_rows,
        .cache_dir = t->o->data.cache_dir,
        .fallback_dir = tp_run_dir(t->run),
        .progress = keep_going,
        .user = (void *)(uintptr_t)t};
}

static tp_status send_example(const trainer *t, tp_error *err)
{
    tp_buf text = {0};
    tp_dataset_report_text(tp_dataset_get_report(t->data), &text);
    tp_status status = tp_dataset_show(t->data, TP_SPLIT_TRAIN, 0, false, &text, err);
    tp_train_event event = {.kind = TP_EVENT_EXAMPLE, .text = tp_buf_str(&text)};
    if (status == TP_OK)
        tp_trainer_send(t, &event);
    tp_buf_release(&text);
    return status;
}

static tp_status open_data(trainer *t, tp_error *err)
{
    tp_arithmetic_options arithmetic = arithmetic_options(t->o);
    tp_buf file = {0};
    const char *template_text;
    TP_TRY(chat_template(t, &file, &template_text, err));
    tp_dataset_options options = dataset_options(t, &t->o->data.train, template_text);
    if (is_arithmetic(t->o)) {
        options.arithmetic = &arithmetic;
        options.n_train = (uint64_t)t->o->data.arithmetic.n_examples;
        options.n_validation = (uint64_t)t->o->data.arithmetic.n_validation;
    }
    tp_pool *pool = NULL;
    tp_status status = tp_pool_create(&pool, thread_count(t->o), err);
    if (status == TP_OK && !options.arithmetic && !options.data_path)
        status = tp_fail(err, TP_ERR_CONFIG, "data.train.data_path=FILE is needed: a JSONL file "
                                             "(or data.train.dataset_name=arithmetic)");
    if (status == TP_OK)
        status = tp_dataset_open(&options, t->tokenizer, pool, &t->data, err);
    if (status == TP_OK && !options.arithmetic && t->o->data.validation.data_path) {
        tp_dataset_options v = dataset_options(t, &t->o->data.validation, template_text);
        v.split_validation_size = 0;
        status = tp_dataset_open(&v, t->tokenizer, pool, &t->val_data, err);
    }
    tp_pool_free(pool);
    tp_buf_release(&file);
    return status == TP_OK ? send_example(t, err) : status;
}

static tp_loader_options loader_options(const trainer *t, bool validation)
{
    const tp_train_options *o = t->o;
    int64_t rows = o->policy.train_micro_batch_size;
    return (tp_loader_options){
        .pack = {.seed = (uint64_t)o->seed,
                 .shuffle = o->data.shuffle && !validation,
                 .batch_size = (uint64_t)(validation ? o->sft.val_global_batch_size
                                                     : o->policy.train_global_batch_size),
                 .packing = is_packed(o),
                 .budget = (int32_t)token_budget(o),
                 .micro_batch_size = (int32_t)rows,
                 .row_length = (int32_t)o->policy.max_total_sequence_length},
        .num_workers = (int)o->data.num_workers,
        .prefetch_factor = (int)o->data.prefetch_factor,
        .epochs = validation ? 1 : (uint64_t)o->sft.max_num_epochs};
}

static tp_status open_loaders(trainer *t, tp_error *err)
{
    tp_loader_options options = loader_options(t, false);
    TP_TRY(tp_dataset_loader(t->data, TP_SPLIT_TRAIN, options, &t->loader, err));
    uint64_t per_epoch = tp_loader_steps_per_epoch(t->loader);
    if (per_epoch == 0)
        return tp_fail(err, TP_ERR_CONFIG, "the training data has no examples to learn from");
    uint64_t all = per_epoch * (uint64_t)t->o->sft.max_num_epochs;
    t->max_steps = t->o->sft.max_num_steps;
    if (all / per_epoch == (uint64_t)t->o->sft.max_num_epochs && all < (uint64_t)t->max_steps)
        t->max_steps = (int64_t)all;
    const tp_dataset *v = t->val_data ? t->val_data : t->data;
    tp_split split = t->val_data ? TP_SPLIT_TRAIN : TP_SPLIT_VALIDATION;
    if (tp_dataset_set(v, split)->n == 0)
        return TP_OK;
    tp_loader_options val_options = loader_options(t, true);
    return tp_dataset_loader(v, split, val_options, &t->val_loader, err);
}

/* What the order of the data depends on: a resumed run must have the same. */
static void fingerprint_data(trainer *t)
{
    tp_loader_options o = loader_options(t, false);
    const char *cache = tp_dataset_get_report(t->data)->cache_path;
    const char *base = strrchr(cache, '/');
    char text[4096];
    int n = snprintf(text, sizeof text, "%s|%llu|%d|%llu|%d|%d|%d|%d", base ? base + 1 : cache,
                     (unsigned long long)o.pack.seed, o.pack.shuffle,
                     (unsigned long long)o.pack.batch_size, o.pack.packing, o.pack.budget,
                     o.pack.micro_batch_size, o.pack.row_length);
    XXH128_hash_t h = XXH3_128bits(text, (size_t)n);
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
        return tp_fail(err, TP_ERR_CONFIG, "'%s' was saved from another model: its weights have "
                                           "other names or shapes",
                       path);
    if (saved->seed != t->state.seed)
        return tp_fail(err, TP_ERR_CONFIG, "'%s' was saved with seed %llu, this run has %llu",
                       path, (unsigned long long)saved->seed, (unsigned long long)t->state.seed);
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

static tp_status fill_weights(trainer *t, tp_error *err)
{
    bool resumed = false;
    t->file_dtype = TP_DTYPE_F32;
    if (t->hooks->resume)
        TP_TRY(resume(t, &resumed, err));
    if (resumed)
        return TP_OK;
    if (t->o->policy.init == TP_INIT_RANDOM) {
        double std = t->o->policy.init_std;
        tp_model_init_random(t->model, tp_session_states(t->session), (uint64_t)t->o->seed,
                             isfinite(std) ? std : 0);
    } else
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

/* Mean number of keys a query sees, from the first step of the data. */
static double average_context(const trainer *t)
{
    const tp_dataset_report *r = tp_dataset_get_report(t->data);
    double n = (double)(r->n_train + r->n_validation);
    return n > 0 ? 0.5 * ((double)r->counts.n_tokens / n + 1) : 0;
}

static tp_status plan_session(trainer *t, tp_error *err)
{
    tp_session_plan plan;
    TP_TRY(create_session(t->o, t->model, average_context(t), t->hooks, &t->session, err));
    tp_session_get_plan(t->session, &plan);
    t->planned_peak = plan.peak_bytes + tp_mem_get_stats().total_current;
    TP_TRY(tp_session_alloc(t->session, err));
    tp_train_event event = tp_trainer_event(t, TP_EVENT_PLAN);
    tp_trainer_send(t, &event);
    return TP_OK;
}

tp_status tp_trainer_open(trainer *t, tp_error *err)
{
    const char *notice;
    TP_TRY(force_isa(t->o, err));
    TP_TRY(limit_memory(t->o, err));
    TP_TRY(tp_schedule_parse(t->o->policy.scheduler, &t->schedule, err));
    for (size_t i = 0; (notice = tp_config_notice(t->config, i)); i++)
        tp_trainer_notice(t, "%s", notice);
    TP_TRY(open_model(t->o, &t->model, err));
    TP_TRY(tp_run_open(t->o->run_dir, t->hooks->resume, &t->run, err));
    snprintf(t->checkpoint_dir, sizeof t->checkpoint_dir, "%s",
             t->o->checkpointing.checkpoint_dir);
    TP_TRY(tp_checkpoint_clean(t->checkpoint_dir, err));
    TP_TRY(open_tokenizer(t, err));
    TP_TRY(open_data(t, err));
    TP_TRY(open_loaders(t, err));
    tp_model_fingerprint(t->model, t->state.model_fingerprint);
    t->state.seed = (uint64_t)t->o->seed;
    fingerprint_data(t);
    TP_TRY(plan_session(t, err));
    TP_TRY(fill_weights(t, err));
    tp_loader_seek(t->loader, (uint64_t)t->state.step);
    t->first_step = t->state.step;
    return write_config(t, err);
}

void tp_trainer_close(trainer *t)
{
    tp_loader_close(t->loader);
    tp_loader_close(t->val_loader);
    tp_dataset_close(t->data);
    tp_dataset_close(t->val_data);
    tp_tokenizer_free(t->tokenizer);
    tp_trace_release(); /* its sites are the session's */
    tp_session_free(t->session);
    tp_model_free(t->model);
    tp_run_close(t->run);
}
