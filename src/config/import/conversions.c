/* conversions.c - what of another trainer takes more than one key: batches, steps, schedules,
 * validation and checkpoints.  Names of roles are TRL's. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "config/import/import_rows.h"

static const char count_rows[] = "How many steps the run has is known with --rows N, the rows of "
                                 "the training data, or max_steps.";
static const char count_packed[] =
    "How many steps the run has is known with --tokens N and --rows N, "
    "or max_steps.";

static double or_else(double v, double other) { return isnan(v) ? other : v; }

/* A whole number from `least` on; else it is refused. */
static double whole(tp_import *im, const char *role, double fallback, double least)
{
    double v = or_else(tp_import_number(im, role), fallback);
    if (v >= least && v <= 1e12 && v == floor(v))
        return v;
    tp_import_mark(im, role, TP_IMPORT_REFUSED, "Expected a whole number from %g.", least);
    return fallback;
}

/* Processes that have a batch of their own: world_size // context // tensor, as Axolotl counts. */
static double processes(tp_import *im)
{
    double all = im->request.processes > 0 ? (double)im->request.processes : 1;
    double apart = floor(all / whole(im, "context_parallel_size", 1, 1));
    return fmax(1, floor(apart / whole(im, "tensor_parallel_size", 1, 1)));
}

/* Sequences of a step; in GRPO answers. */
static double batch(tp_import *im)
{
    return whole(im, "per_device_train_batch_size", 1, 1) *
           whole(im, "gradient_accumulation_steps", 1, 1) * processes(im);
}

/* ---- batches ---- */

static void make_rollout(tp_import *im)
{
    double all = batch(im), group = whole(im, "num_generations", 8, 1);
    double rounds =
        whole(im, "steps_per_generation", whole(im, "gradient_accumulation_steps", 1, 1), 1);
    double per_device = whole(im, "per_device_train_batch_size", 8, 1);
    double rollout = whole(im, "generation_batch_size", per_device * rounds * processes(im), 1);
    if (rollout != all) {
        const char *role = tp_import_given(im, "generation_batch_size") ? "generation_batch_size"
                                                                        : "steps_per_generation";
        tp_import_mark(im, role, TP_IMPORT_REFUSED,
                       "One rollout is one update here: %.0f answers, not %.0f.", all, rollout);
    }
    if (fmod(all, group) != 0)
        tp_import_mark(im, "num_generations", TP_IMPORT_REFUSED,
                       "A batch of %.0f answers has no whole groups of %.0f; TRL refuses it too.",
                       all, group);
    tp_import_put(im, "per_device_train_batch_size", "grpo.num_prompts_per_step", "%.0f",
                  fmax(1, floor(all / group)));
    tp_import_put(im, "num_generations", "grpo.num_generations_per_prompt", "%.0f", group);
}

/* A batch of packed rows: how many examples these are only the data knows. */
static bool counts_packed_rows(tp_import *im)
{
    return tp_import_flag(im, "packing") && !tp_import_is(im, "grpo");
}

/* Tokens of a packed row; NaN: unknown. */
static double row_tokens(tp_import *im)
{
    double tokens = NAN;
    return tp_json_f64(tp_config_find(im->recipe, "policy.max_total_sequence_length"), &tokens)
               ? tokens
               : NAN;
}

/* Examples of an update; 0: unknown. */
static double examples_of_batch(tp_import *im)
{
    double tokens = row_tokens(im) * batch(im) / im->request.tokens;
    if (!counts_packed_rows(im))
        return batch(im);
    return im->request.tokens > 0 && tokens > 0 ? fmax(1, round(tokens)) : 0;
}

static void make_packed_batch(tp_import *im)
{
    static const char target[] = "policy.train_global_batch_size";
    double length = row_tokens(im), examples = examples_of_batch(im);
    if (examples > 0) {
        tp_import_put(im, "packing", target, "%.0f", examples);
        tp_import_mark(im, "packing", TP_IMPORT_USED,
                       "A batch has %.0f tokens there, in rows of %.0f: about %.0f examples of %g "
                       "tokens.",
                       length * batch(im), length, examples, im->request.tokens);
        return;
    }
    tp_import_put(im, "packing", target, "???");
    if (length > 0)
        tp_import_mark(im, "packing", TP_IMPORT_OPEN,
                       "A batch has %.0f tokens there, in rows of %.0f, and examples here: with "
                       "--tokens N, the mean length of an example, which temper doctor says, it is "
                       "that many over N.",
                       length * batch(im), length);
    else
        tp_import_mark(im, "packing", TP_IMPORT_OPEN,
                       "A batch counts packed rows there, examples here.");
}

static void make_batch(tp_import *im)
{
    tp_import_put(im, "per_device_train_batch_size", "policy.train_global_batch_size", "%.0f",
                  batch(im));
    tp_import_put(im, "per_device_train_batch_size", "policy.train_micro_batch_size", "%.0f",
                  whole(im, "per_device_train_batch_size", 1, 1));
    if (tp_import_is(im, "grpo"))
        make_rollout(im);
    else if (counts_packed_rows(im))
        make_packed_batch(im);
}

/* ---- steps ---- */

/* Lines of a file that is here; 0: unknown. */
static double count_lines(const char *path)
{
    TP_OWN(tp_buf) text = {0};
    double n = 0;
    if (tp_file_read(path, 1u << 30, &text, NULL) == TP_OK) {
        for (const char *p = tp_buf_str(&text); *p;) {
            size_t len = strcspn(p, "\n");
            n += strspn(p, " \t\r") < len;
            p += len + (p[len] == '\n');
        }
    }
    return n;
}

static double rows_of(tp_import *im)
{
    const tp_json *path = tp_config_find(im->recipe, "data.train.data_path");
    const tp_json *share = tp_config_find(im->recipe, "data.train.split_validation_size");
    double kept = 0, n = (double)im->request.rows;
    if (n <= 0 && tp_json_str(path) && strcmp(tp_json_str(path), "???") != 0)
        n = count_lines(tp_json_str(path));
    if (!tp_json_f64(share, &kept) || !(kept >= 0 && kept < 1))
        kept = 0;
    return n - floor(n * kept);
}

/* Updates of an epoch, as transformers' Trainer counts them; 0: unknown. */
static double steps_of_epoch(tp_import *im)
{
    double n = rows_of(im), accumulate = whole(im, "gradient_accumulation_steps", 1, 1);
    if (!(n > 0) || !(examples_of_batch(im) > 0))
        return 0;
    if (counts_packed_rows(im))
        return ceil(n / examples_of_batch(im));
    if (tp_import_is(im, "grpo"))
        return fmax(1, floor(n * whole(im, "num_generations", 8, 1) / batch(im)));
    return fmax(1, ceil(ceil(n * accumulate / batch(im)) / accumulate));
}

/* All updates; 0: unknown. */
static double steps_of_run(tp_import *im)
{
    double most = tp_import_number(im, "max_steps");
    double epochs = or_else(tp_import_number(im, "num_train_epochs"), 1);
    return most > 0 ? most : ceil(epochs * steps_of_epoch(im));
}

/* What would say how many steps there are. */
static const char *what_counts(tp_import *im)
{
    return counts_packed_rows(im) ? count_packed : count_rows;
}

static void put_period(tp_import *im, const char *role, const char *target, double period)
{
    if (period >= 1)
        tp_import_put(im, role, target, "%.0f", floor(period));
    else {
        tp_import_put(im, role, target, "???");
        tp_import_mark(im, role, TP_IMPORT_OPEN, "%s", what_counts(im));
    }
}

static void make_length(tp_import *im)
{
    enum { NO_END = 1000000 };
    double most = tp_import_number(im, "max_steps");
    double epochs = or_else(tp_import_number(im, "num_train_epochs"), 1);
    double all = steps_of_run(im);
    if (most > 0) {
        tp_import_put(im, "max_steps", "@.max_num_epochs", "%d", NO_END);
        put_period(im, "max_steps", "@.max_num_steps", whole(im, "max_steps", 1, 1));
        if (tp_import_given(im, "num_train_epochs"))
            tp_import_mark(im, "num_train_epochs", TP_IMPORT_IDLE, "max_steps goes before.");
        return;
    }
    if (!(epochs > 0 && epochs <= NO_END)) {
        tp_import_mark(im, "num_train_epochs", TP_IMPORT_REFUSED, "Expected a number above 0.");
        return;
    }
    tp_import_put(im, "num_train_epochs", "@.max_num_epochs", "%.0f", ceil(epochs));
    if (all >= 1 || epochs != floor(epochs))
        put_period(im, "num_train_epochs", "@.max_num_steps", all);
    else
        tp_import_put(im, "num_train_epochs", "@.max_num_steps", "%d", NO_END);
}

/* ---- schedules ---- */

/* Steps of warm-up; NAN: a share of an unknown number. */
static double warmup(tp_import *im, double all)
{
    double steps = tp_import_number(im, "warmup_steps");
    double share = tp_import_number(im, "warmup_ratio");
    bool is_axolotl = !strcmp(im->source->name, "axolotl");
    if (is_axolotl && isnan(steps) && isnan(share))
        return all < 1 ? NAN : fmin(floor(0.03 * all), 100) == 1 ? 2 : fmin(floor(0.03 * all), 100);
    if (!(steps > 0) && share > 0)
        steps = share;
    if (!(steps > 0))
        return 0;
    if (steps >= 1)
        return floor(steps);
    double part = is_axolotl ? floor(steps * all) : ceil(steps * all);
    return all < 1 ? NAN : is_axolotl && part == 1 ? 2 : part;
}

static double least_rate(tp_import *im)
{
    const tp_import_key *key = tp_import_role(im, "lr_scheduler_kwargs");
    double v = 0, base = 0;
    if (key && tp_json_f64(tp_json_get(key->value, "min_lr"), &v))
        return v;
    if (key && tp_json_f64(tp_json_get(key->value, "min_lr_rate"), &v) &&
        tp_json_f64(tp_config_find(im->recipe, "policy.optimizer.kwargs.lr"), &base))
        return v * base;
    return NAN;
}

/* The part behind the warm-up, `n` steps long. */
static bool main_part(tp_import *im, const char *kind, double n, char out[256])
{
    char steps[32] = "???", least[32] = "0";
    if (n >= 1)
        snprintf(steps, sizeof steps, "%.0f", n);
    if (!strcmp(kind, "constant_with_warmup") || !strcmp(kind, "constant"))
        snprintf(out, 256, "{name: ConstantLR, kwargs: {factor: 1.0, total_iters: 1}}");
    else if (!strcmp(kind, "linear"))
        snprintf(out, 256,
                 "{name: LinearLR, kwargs: {start_factor: 1.0, end_factor: 0.0, total_iters: %s}}",
                 steps);
    else if (!strcmp(kind, "cosine") || !strcmp(kind, "cosine_with_min_lr")) {
        if (kind[6] && isnan(least_rate(im)))
            return false;
        if (kind[6])
            tp_json_f64_text(least_rate(im), least);
        snprintf(out, 256, "{name: CosineAnnealingLR, kwargs: {T_max: %s, eta_min: %s}}", steps,
                 least);
    } else
        return false;
    return true;
}

static bool takes_kwargs(tp_import *im, const char *kind)
{
    const tp_import_key *key = tp_import_role(im, "lr_scheduler_kwargs");
    if (key && key->value->type != TP_JSON_OBJECT && key->value->type != TP_JSON_NULL)
        return false; /* a text that holds JSON, as transformers takes it too */
    for (const tp_json *v = key ? key->value->child : NULL; v; v = v->next)
        if (strcmp(kind, "cosine_with_min_lr") != 0 ||
            (strcmp(v->key.data, "min_lr") != 0 && strcmp(v->key.data, "min_lr_rate") != 0))
            return false;
    return true;
}

static void make_schedule(tp_import *im)
{
    static const char role[] = "lr_scheduler_type", target[] = "policy.scheduler";
    const char *kind = tp_import_word(im, role);
    char after[256] = "";
    double all = steps_of_run(im), warm = warmup(im, all);
    if (!kind)
        kind = "constant";
    if (!strcmp(kind, "constant"))
        warm = 0;
    bool is_known = main_part(im, kind, isnan(warm) ? 0 : fmax(all - warm, all >= 1), after);
    if (!is_known || !takes_kwargs(im, kind)) {
        tp_import_mark(im, is_known ? "lr_scheduler_kwargs" : role, TP_IMPORT_REFUSED,
                       "Known here: constant, constant_with_warmup, linear, cosine, "
                       "cosine_with_min_lr with min_lr or min_lr_rate.");
        return;
    }
    if (isnan(warm) || strstr(after, "???"))
        tp_import_mark(im, role, TP_IMPORT_OPEN, "%s", what_counts(im));
    if (isnan(warm) && !tp_import_role(im, "warmup_ratio"))
        tp_import_mark(im, "warmup_steps", TP_IMPORT_OPEN, "%s", what_counts(im));
    else if (isnan(warm))
        tp_import_mark(im, "warmup_ratio", TP_IMPORT_OPEN, "%s", what_counts(im));
    /* torch has no factor of 0 to begin with. */
    if (isnan(warm))
        tp_import_put(im, role, target,
                      "[{name: LinearLR, kwargs: {start_factor: 1.0e-9, end_factor: 1.0, "
                      "total_iters: ???}}, %s, {milestones: [???]}]",
                      after);
    else if (warm > 0)
        tp_import_put(im, role, target,
                      "[{name: LinearLR, kwargs: {start_factor: 1.0e-9, end_factor: 1.0, "
                      "total_iters: %.0f}}, %s, {milestones: [%.0f]}]",
                      warm, after, warm);
    else if (!strncmp(kind, "constant", 8))
        tp_import_put(im, role, target, "null");
    else
        tp_import_put(im, role, target, "%s", after);
}

/* ---- validation ---- */

/* Steps between two times, from "steps", "epoch" and their numbers; 0: unknown. */
static double period(tp_import *im, const char *strategy, const char *steps, double fallback,
                     const char *per_epoch)
{
    double times = tp_import_number(im, per_epoch), n = tp_import_number(im, steps);
    if (times > 0)
        return ceil(steps_of_epoch(im) / times);
    if (!strcmp(strategy, "epoch"))
        return steps_of_epoch(im);
    n = or_else(n, fallback);
    return n > 0 && n < 1 ? ceil(n * steps_of_run(im)) : n;
}

/* Where Axolotl says neither strategy nor steps. */
static const char *strategy_of(tp_import *im, const char *role, const char *steps,
                               const char *per_epoch, const char *otherwise)
{
    const char *said = tp_import_word(im, role);
    bool has_steps = !isnan(tp_import_number(im, steps));
    if (said)
        return said;
    return !isnan(tp_import_number(im, per_epoch)) ? "epoch" : has_steps ? "steps" : otherwise;
}

static void make_validation(tp_import *im)
{
    bool rolls = tp_import_is(im, "grpo");
    double share = 0;
    bool has_share =
        tp_json_f64(tp_config_find(im->recipe, "data.train.split_validation_size"), &share) &&
        share > 0;
    const tp_json *path = tp_config_find(im->recipe, "data.validation.data_path");
    const char *strategy = strategy_of(im, "eval_strategy", "eval_steps", "evals_per_epoch",
                                       has_share || path ? "epoch" : "no");
    const char *role = tp_import_given(im, "evals_per_epoch") ? "evals_per_epoch"
                       : tp_import_given(im, "eval_steps")    ? "eval_steps"
                                                              : "eval_strategy";
    tp_import_put(im, "eval_on_start", "@.val_at_start", "%s",
                  tp_import_flag(im, "eval_on_start") ? "true" : "false");
    if (!tp_import_one_of(strategy, "no|false|steps|epoch")) {
        tp_import_mark(im, "eval_strategy", TP_IMPORT_REFUSED, "Known here: no, steps, epoch.");
        return;
    }
    if (tp_import_one_of(strategy, "no|false")) { /* a plain no is false in YAML 1.1 */
        tp_import_put(im, role, "@.val_period", "0");
        return;
    }
    double every = period(im, strategy, "eval_steps",
                          or_else(tp_import_number(im, "logging_steps"), 10), "evals_per_epoch");
    put_period(im, role, "@.val_period", every);
    tp_import_put(im, "per_device_eval_batch_size",
                  rolls ? "grpo.val_batch_size" : "@.val_global_batch_size", "%.0f",
                  whole(im, "per_device_eval_batch_size", 8, 1) * processes(im));
    tp_import_put(im, "eval_strategy", rolls ? "grpo.max_val_samples" : "@.val_batches", "0");
    if (tp_import_role(im, "test_split") && !path) {
        tp_import_put(im, "test_split", "data.validation.data_path", "???");
        tp_import_mark(im, "test_split", TP_IMPORT_OPEN, "A file of rows for validation.");
    }
}

/* ---- checkpoints ---- */

static void make_ranking(tp_import *im)
{
    const char *metric = tp_import_word(im, "metric_for_best_model");
    if (!tp_import_flag(im, "load_best_model_at_end") && !metric) {
        tp_import_put(im, "save_total_limit", "checkpointing.metric_name", "null");
        return;
    }
    bool is_loss = !metric || tp_import_one_of(metric, "loss|eval_loss");
    if (!is_loss || tp_import_flag(im, "greater_is_better") || tp_import_is(im, "grpo")) {
        tp_import_mark(im, "metric_for_best_model", TP_IMPORT_REFUSED,
                       "Known here: loss, of SFT and DPO; checkpointing.metric_name has others.");
        return;
    }
    tp_import_put(im, "load_best_model_at_end", "checkpointing.metric_name", "val:val_loss");
}

static void make_checkpoints(tp_import *im)
{
    enum { NEVER = 1000000000 };
    const char *strategy =
        strategy_of(im, "save_strategy", "save_steps", "saves_per_epoch", "epoch");
    const char *role = tp_import_given(im, "saves_per_epoch") ? "saves_per_epoch"
                       : tp_import_given(im, "save_steps")    ? "save_steps"
                                                              : "save_strategy";
    double keep = tp_import_number(im, "save_total_limit");
    if (!tp_import_one_of(strategy, "no|false|steps|epoch"))
        tp_import_mark(im, "save_strategy", TP_IMPORT_REFUSED, "Known here: no, steps, epoch.");
    else if (tp_import_one_of(strategy, "no|false"))
        tp_import_put(im, role, "checkpointing.save_period", "%d", NEVER);
    else
        put_period(im, role, "checkpointing.save_period",
                   period(im, strategy, "save_steps", 500, "saves_per_epoch"));
    if (keep > 0)
        tp_import_put(im, "save_total_limit", "checkpointing.keep_top_k", "%.0f",
                      fmax(1, floor(keep) - 1));
    else
        tp_import_put(im, "save_total_limit", "checkpointing.keep_top_k", "null");
    tp_import_put(im, "save_only_model", "checkpointing.save_optimizer", "%s",
                  tp_import_flag(im, "save_only_model") ? "false" : "true");
    make_ranking(im);
}

static void make_logs(tp_import *im)
{
    const tp_import_key *key = tp_import_role(im, "report_to");
    bool wants = tp_import_flag(im, "use_tensorboard");
    const tp_json *list = key ? key->value : NULL;
    for (const tp_json *v = list && list->type == TP_JSON_ARRAY ? list->child : list; v;
         v = list->type == TP_JSON_ARRAY ? v->next : NULL)
        wants |= tp_json_str(v) && tp_import_one_of(tp_json_str(v), "all|tensorboard");
    tp_import_put(im, key ? "report_to" : "use_tensorboard", "logger.tensorboard_enabled", "%s",
                  wants ? "true" : "false");
    if (key && key->line && !wants)
        tp_import_mark(im, "report_to", TP_IMPORT_IDLE,
                       "Nothing is sent over a network; tensorboard writes files.");
}

static void make_steps(tp_import *im)
{
    make_length(im);
    make_schedule(im);
    make_validation(im);
    make_checkpoints(im);
    make_logs(im);
}

void tp_import_convert(tp_import *im)
{
    tp_import_data(im);
    make_batch(im);
    tp_import_optimizer(im);
    tp_import_adapter(im);
    if (tp_import_is(im, "grpo"))
        tp_import_rewards(im);
    make_steps(im);
}
