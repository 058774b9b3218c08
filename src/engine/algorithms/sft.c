/* sft.c - supervised fine-tuning: the loss is the mean negative log-likelihood over a
 * step's trained tokens. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/strings.h"
#include "engine/algorithms/algorithms.h"
#include "engine/data/dataset.h"
#include "engine/data/schema.h"
#include "engine/train/algorithm.h"
#include "engine/train/option_rows.h"

/* The keys that only SFT has. */
typedef struct {
    bool only_unmask_final;
} sft_options;
static_assert(sizeof(sft_options) <= TP_OWN_OPTION_BYTES, "see tp_train_options.own");

#define HOLDER sft_options
#define HOLDER_AT TP_OWN_OPTIONS
/* clang-format off */
static const tp_option keys[] = {
    LOOP_ROWS("sft", "1", "Passes over the training data.", "60",
              "Optimizer steps; whichever of the two limits comes first ends the run.", "10",
              "true")
    VALIDATION_ROWS("sft", "32", "Sequences per validation batch.")
    FLAG("sft.only_unmask_final", only_unmask_final, "false",
         "Learn the last message only, instead of all of the assistant's.")
    {0}};
/* clang-format on */

static const sft_options *options(const trainer *t)
{
    return (const sft_options *)(const void *)t->o->own.bytes;
}

typedef struct {
    tp_buf template_text;
    tp_dataset *data, *val_data; /* val_data: a file of its own, or NULL */
    tp_loader *val_loader;       /* NULL: nothing to validate with */
} sft;

/* ---- data ---- */

static tp_dataset_options dataset_options(const trainer *t, const tp_data_source_options *source,
                                          const char *template_text)
{
    double split = source->split_validation_size;
    return (tp_dataset_options){
        .data_path = source->data_path,
        .rows = source->rows,
        .chat_template = template_text,
        .template_variables = t->o->policy.template_variables,
        .only_unmask_final = options(t)->only_unmask_final,
        .learn_header = !t->o->data.add_generation_prompt,
        .add_bos = t->o->data.add_bos,
        .add_eos = t->o->data.add_eos,
        .max_seq_length = tp_trainer_longest(t),
        .split_validation_size = isfinite(split) ? split : 0,
        .seed = (uint64_t)t->o->seed,
        .skip_bad = t->o->data.skip_bad_rows,
        .cache_dir = t->o->data.cache_dir,
        .cache_limit = isfinite(t->o->data.cache_limit_bytes) ? t->o->data.cache_limit_bytes : 0,
        .fallback_dir = tp_run_dir(t->run),
        .progress = tp_trainer_keep_going,
        .user = (void *)(uintptr_t)t};
}

static tp_status send_example(const trainer *t, tp_error *err)
{
    const sft *s = t->own;
    TP_OWN(tp_buf) text = {0};
    tp_dataset_report report = *tp_dataset_get_report(s->data);
    if (s->val_data)
        report.n_validation = tp_dataset_get_report(s->val_data)->n_train;
    tp_dataset_report_text(&report, &text);
    TP_TRY(tp_dataset_show(s->data, TP_SPLIT_TRAIN, 0, &text, err));
    tp_train_event event = {.kind = TP_EVENT_EXAMPLE, .text = tp_buf_str(&text)};
    tp_trainer_send(t, &event);
    return TP_OK;
}

static tp_status open_source(trainer *t, const tp_dataset_options *options, tp_dataset **ret,
                             tp_error *err)
{
    tp_pool *pool = NULL;
    TP_TRY(tp_pool_create(&pool, tp_trainer_threads(t->o), err));
    tp_status status = tp_dataset_open(options, t->tokenizer, pool, ret, err);
    tp_pool_free(pool);
    return status;
}

static tp_status open_training_data(trainer *t, tp_error *err)
{
    sft *s = t->own = tp_new(1, sizeof(sft));
    const char *template_text;
    TP_TRY(tp_trainer_chat_template(t, &s->template_text, &template_text, err));
    tp_dataset_options options = dataset_options(t, &t->o->data.train, template_text);
    if (tp_trainer_is_arithmetic(t->o)) {
        options.arithmetic = &t->o->data.arithmetic.of;
        options.n_train = (uint64_t)t->o->data.arithmetic.n_examples;
        options.n_validation = (uint64_t)t->o->data.arithmetic.n_validation;
    } else if (!options.data_path)
        return tp_fail(err, TP_ERR_CONFIG,
                       "data.train.data_path=FILE is needed: a JSONL file "
                       "(or data.train.dataset_name=arithmetic)");
    return open_source(t, &options, &s->data, err);
}

static tp_status open_validation_data(trainer *t, tp_error *err)
{
    sft *s = t->own;
    const char *template_text;
    if (tp_trainer_is_arithmetic(t->o) || !t->o->data.validation.data_path)
        return TP_OK;
    TP_TRY(tp_trainer_chat_template(t, &s->template_text, &template_text, err));
    tp_dataset_options options = dataset_options(t, &t->o->data.validation, template_text);
    options.split_validation_size = 0;
    return open_source(t, &options, &s->val_data, err);
}

static void describe_training_data(const trainer *t, tp_buf *out)
{
    const sft *s = t->own;
    const char *path = t->o->data.train.data_path;
    tp_buf_addf(out, "%s: ", path && !tp_trainer_is_arithmetic(t->o) ? path : "generated");
    tp_dataset_report_line(tp_dataset_get_report(s->data), out);
}

static void describe_validation_data(const trainer *t, tp_buf *out)
{
    const sft *s = t->own;
    if (s->val_data) {
        tp_buf_addf(out, "%s: ", t->o->data.validation.data_path);
        tp_dataset_report_line(tp_dataset_get_report(s->val_data), out);
    } else if (s->data && tp_dataset_get_report(s->data)->n_validation)
        tp_buf_addf(out, "%llu example%s apart from those of training",
                    (unsigned long long)tp_dataset_get_report(s->data)->n_validation,
                    tp_plural((uint64_t)(tp_dataset_get_report(s->data)->n_validation)));
    else
        tp_buf_adds(out, "none (data.validation.data_path, data.train.split_validation_size)");
}

static tp_loader_options loader_options(const tp_train_options *o, bool validation)
{
    int64_t rows = o->policy.train_micro_batch_size;
    return (tp_loader_options){
        .pack = {.seed = (uint64_t)o->seed,
                 .shuffle = o->data.shuffle && !validation,
                 .batch_size = (uint64_t)(validation ? o->loop.val_global_batch_size
                                                     : o->policy.train_global_batch_size),
                 .packing = tp_trainer_is_packed(o),
                 .budget = (int32_t)tp_trainer_token_budget(o),
                 .micro_batch_size = (int32_t)rows,
                 .row_length = (int32_t)o->policy.max_total_sequence_length,
                 .rank = o->ranks.rank,
                 .ranks = o->ranks.ranks},
        .num_workers = (int)o->data.num_workers,
        .prefetch_factor = (int)o->data.prefetch_factor,
        .epochs = validation ? 1 : (uint64_t)o->loop.max_num_epochs};
}

/* A split holds one example back at least, so what is asked for is there. */
static bool validates(const tp_train_options *o)
{
    if (tp_trainer_is_arithmetic(o))
        return o->data.arithmetic.n_validation > 0;
    return o->data.validation.data_path || o->data.train.split_validation_size > 0;
}

static tp_status open_loaders(trainer *t, tp_error *err)
{
    sft *s = t->own;
    tp_loader_options options = loader_options(t->o, false);
    t->uses_template = !tp_trainer_is_arithmetic(t->o) &&
                       tp_dataset_get_report(s->data)->counts.schema != TP_SCHEMA_TEXT;
    TP_TRY(tp_dataset_loader(s->data, TP_SPLIT_TRAIN, options, &t->loader, err));
    uint64_t per_epoch = tp_loader_steps_per_epoch(t->loader);
    if (per_epoch == 0)
        return tp_fail(err, TP_ERR_CONFIG, "the training data has no examples to learn from");
    tp_trainer_count_steps(t, per_epoch, 1);
    const tp_dataset *v = s->val_data ? s->val_data : s->data;
    tp_split split = s->val_data ? TP_SPLIT_TRAIN : TP_SPLIT_VALIDATION;
    if (!validates(t->o))
        return TP_OK;
    tp_loader_options val_options = loader_options(t->o, true);
    return tp_dataset_loader(v, split, val_options, &s->val_loader, err);
}

/* What the order of the data depends on: a resumed run must have the same.  How a step is divided
 * into micro-batches is no part of it. */
static void fingerprint_data(trainer *t)
{
    const sft *s = t->own;
    tp_loader_options o = loader_options(t->o, false);
    const tp_dataset_report *report = tp_dataset_get_report(s->data);
    const char *cache = report->cache_path;
    const char *base = strrchr(cache, '/');
    TP_OWN(tp_buf) text = {0};
    tp_buf_addf(&text, "%s|%llu|%d|%llu|%d", base ? base + 1 : cache,
                (unsigned long long)o.pack.seed, o.pack.shuffle,
                (unsigned long long)o.pack.batch_size, o.pack.row_length);
    if (report->n_validation)
        tp_buf_addf(&text, "|%llu held out", (unsigned long long)report->n_validation);
    tp_trainer_fingerprint(t, text.data);
}

static tp_status open_steps(trainer *t, tp_error *err)
{
    TP_TRY(send_example(t, err));
    TP_TRY(open_loaders(t, err));
    const sft *s = t->own;
    const tp_dataset_report *r = tp_dataset_get_report(s->data);
    double n = (double)(r->n_train + r->n_validation);
    t->avg_context = n > 0 ? 0.5 * ((double)r->counts.n_tokens / n + 1) : 0;
    fingerprint_data(t);
    return TP_OK;
}

static const tp_trainer_stage stages[] = {
    {"training data", open_training_data, describe_training_data,
     TP_HAS_MODEL | TP_HAS_FOLDER | TP_HAS_TOKENIZER, TP_HAS_DATA},
    {"validation data", open_validation_data, describe_validation_data,
     TP_HAS_MODEL | TP_HAS_FOLDER | TP_HAS_TOKENIZER, 0},
    {"steps", open_steps, tp_trainer_describe_steps, TP_HAS_DATA, TP_HAS_STEPS},
    {0}};

static void rewind_data(trainer *t) { tp_loader_seek(t->loader, (uint64_t)t->state.step); }

static tp_status ready(trainer *t, tp_error *err)
{
    (void)err;
    rewind_data(t);
    return TP_OK;
}

/* Loaders of the new sizes. */
static tp_status resize(trainer *t, tp_error *err)
{
    sft *s = t->own;
    const tp_loader_stats before = tp_loader_get_stats(t->loader);
    tp_loader_close(t->loader);
    tp_loader_close(s->val_loader);
    t->loader = s->val_loader = NULL;
    TP_TRY(open_loaders(t, err));
    tp_loader_count_on(t->loader, &before);
    rewind_data(t);
    return TP_OK;
}

static void close_sft(trainer *t)
{
    sft *s = t->own;
    if (!s)
        return;
    tp_loader_close(s->val_loader);
    tp_dataset_close(s->data);
    tp_dataset_close(s->val_data);
    tp_buf_release(&s->template_text);
    free(s);
}

/* ---- one step ---- */

static tp_status next_micro_batch(trainer *t, const tp_microbatch **ret, tp_error *err)
{
    tp_phases_enter(&t->phases, TP_TIME_DATA);
    TP_TRY(tp_loader_next(t->loader, ret, err));
    if (!*ret)
        return tp_fail(err, TP_ERR_ARG, "the data ended before the last step");
    return TP_OK;
}

static tp_status run_micro_batch(trainer *t, const tp_microbatch *mb, step_result *r, tp_error *err)
{
    TP_ZONE("forward_backward");
    tp_batch_view batch = tp_trainer_view(mb);
    double loss;
    tp_trainer_stopwatch w = tp_trainer_begin_graph(t);
    tp_session_set_last(t->session, mb->index + 1 == mb->n_in_step);
    TP_TRY(tp_session_train(t->session, &batch, mb->index == 0, &loss, err));
    tp_trainer_end_graph(t, w);
    r->loss += loss;
    tp_trainer_count(t, mb, r);
    return TP_OK;
}

static tp_status step(trainer *t, step_result *r, tp_error *err)
{
    const tp_microbatch *mb;
    t->step_is_void = true; /* until something is learned */
    do {
        if (tp_trainer_should_stop(t))
            return TP_ERR_INTERRUPTED;
        TP_TRY(next_micro_batch(t, &mb, err));
        tp_trainer_stepping(t, NULL, mb->index, mb->n_in_step);
        r->wait_s += tp_loader_get_stats(t->loader).last_waited_s;
        TP_TRY(run_micro_batch(t, mb, r, err));
    } while (mb->index + 1 < mb->n_in_step);
    t->step_is_void = false;
    TP_TRY(tp_trainer_join(t, r, err));
    return tp_trainer_update(t, r, mb->n_in_step, err);
}

/* From the step's first on; behind its last the next step follows, as before. */
static tp_status replay(trainer *t, uint32_t i, tp_batch_view *ret, tp_error *err)
{
    const tp_microbatch *mb;
    if (i == 0)
        tp_loader_seek(t->loader, (uint64_t)t->state.step);
    TP_TRY(next_micro_batch(t, &mb, err));
    *ret = tp_trainer_view(mb);
    return TP_OK;
}

/* ---- validation ---- */

static tp_status validate(trainer *t, tp_error *err)
{
    const sft *s = t->own;
    if (!s->val_loader)
        return TP_OK;
    double start = tp_clock_s(), sum = 0;
    int64_t tokens = 0, batches = t->o->loop.val_batches;
    tp_loader_seek(s->val_loader, 0);
    for (;;) {
        const tp_microbatch *mb;
        double loss;
        TP_TRY(tp_loader_next(s->val_loader, &mb, err));
        if (!mb || (batches > 0 && mb->step >= (uint64_t)batches))
            break;
        tp_trainer_working(t, "validation", mb->step, batches > 0 ? (uint64_t)batches : 0);
        if (tp_trainer_should_stop(t))
            return TP_ERR_INTERRUPTED;
        tp_batch_view batch = tp_trainer_view(mb);
        TP_TRY(tp_session_eval(t->session, &batch, &loss, NULL, err));
        /* A step's losses are means over its trained tokens; weigh steps by theirs. */
        sum += loss * (double)mb->step_trained;
        if (mb->index == 0)
            tokens += (int64_t)mb->step_trained;
    }
    sum = tp_trainer_tells(t) ? sum : 0;
    TP_TRY(tp_comm_sum(t->comm, &sum, 1, err)); /* each rank has had its share of every step */
    t->val_loss = tokens ? sum / (double)tokens : NAN;
    tp_trainer_begin_validation(t);
    tp_metric_put(&t->metrics, "validation/val_loss", t->val_loss);
    tp_metric_put(&t->metrics, "validation/global_valid_toks", (double)tokens);
    tp_metric_put(&t->metrics, "timing/validation/total_validation_time", tp_clock_s() - start);
    tp_trainer_end_validation(t);
    return TP_OK;
}

static void record(trainer *t, const step_result *r)
{
    tp_metric_put(&t->metrics, "train/num_unmasked_tokens", (double)r->trained);
    tp_metric_put(&t->metrics, "timing/train/policy_training", r->seconds - r->wait_s);
}

static void result(trainer *t, tp_json_w *w) { tp_json_w_put_known(w, "val_loss", t->val_loss); }

static void needs(const tp_train_options *o, tp_algorithm_needs *ret)
{
    tp_loader_options train = loader_options(o, false), validation = loader_options(o, true);
    *ret = (tp_algorithm_needs){.sequences = o->policy.train_global_batch_size,
                                .loader_bytes = tp_loader_bytes(&train)};
    if (validates(o))
        ret->loader_bytes += tp_loader_bytes(&validation);
}

static const tp_algorithm_ranking rankings[] = {{"val:val_loss", TP_RANK_BY_VAL_LOSS},
                                                {"train:loss", TP_RANK_BY_TRAIN_LOSS},
                                                {NULL, TP_RANK_BY_AGE}};

static const char *const source_keys[] = {"input_key", "output_key", "prompt_key", "chat_key",
                                          "text_key",  "tool_key",   "system_key", NULL};

const tp_algorithm tp_algorithm_sft = {.name = "sft",
                                       .title = "SFT",
                                       .fixed = "data, share held out, tokenizer, chat template, "
                                                "batch size, longest sequence or shuffling",
                                       .runs_on_ranks = true,
                                       .shares_layers = true,
                                       .options = keys,
                                       .rankings = rankings,
                                       .source_keys = source_keys,
                                       .val_loss = "validation/val_loss",
                                       .sequences_per_unit = 1,
                                       .needs = needs,
                                       .stages = stages,
                                       .ready = ready,
                                       .step = step,
                                       .validate = validate,
                                       .replay = replay,
                                       .rewind = rewind_data,
                                       .resize = resize,
                                       .record = record,
                                       .result = result,
                                       .close = close_sft};
