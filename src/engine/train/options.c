/* options.c - the options of an algorithm, and what must hold across keys. */
#include "engine/train/options.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/platform.h"
#include "base/strings.h"
#include "engine/algorithms/loss_policy.h"
#include "engine/checkpoint/run_record.h"
#include "engine/train/megatron.h"
#include "engine/train/profile.h"
#include "engine/train/schedule.h"
#include "engine/train/session.h"

/* The offset of a member, which must have the type that the row stores. */
#define AT(member, type_name)             \
    (offsetof(tp_train_options, member) + \
     0 * sizeof(char[_Generic(((tp_train_options *)0)->member, type_name : 1)]))

#define ROW(key, row_type, place, text, meaning, ...) \
    {.name = key,                                     \
     .type = row_type,                                \
     .offset = place,                                 \
     .default_value = text,                           \
     .doc = meaning,                                  \
     __VA_ARGS__},

#define FLAG(key, member, text, meaning) ROW(key, TP_OPT_BOOL, AT(member, bool), text, meaning)
#define COUNT(key, member, text, least, most, meaning) \
    ROW(key, TP_OPT_INT, AT(member, int64_t), text, meaning, .min = least, .max = most)
#define REAL(key, member, text, least, most, meaning) \
    ROW(key, TP_OPT_FLOAT, AT(member, double), text, meaning, .min = least, .max = most)
#define COUNT_OR_NULL(key, member, text, least, most, meaning)                          \
    ROW(key, TP_OPT_INT, AT(member, int64_t), text, meaning, .min = least, .max = most, \
        .nullable = true)
#define REAL_OR_NULL(key, member, text, least, most, meaning)                            \
    ROW(key, TP_OPT_FLOAT, AT(member, double), text, meaning, .min = least, .max = most, \
        .nullable = true)
#define TEXT_OR_NULL(key, member, text, meaning) \
    ROW(key, TP_OPT_STRING, AT(member, const char *), text, meaning, .nullable = true)
#define REALS(key, member, text, least, most, meaning) \
    ROW(key, TP_OPT_FLOAT_LIST, AT(member, tp_f64_list), text, meaning, .min = least, .max = most)
#define TEXT(key, member, text, meaning) \
    ROW(key, TP_OPT_STRING, AT(member, const char *), text, meaning)
#define TEXTS(key, member, text, meaning) \
    ROW(key, TP_OPT_STRING_LIST, AT(member, tp_str_list), text, meaning)
#define REALS_OR_NULL(key, member, text, least, most, meaning)                                     \
    ROW(key, TP_OPT_FLOAT_LIST, AT(member, tp_f64_list), text, meaning, .min = least, .max = most, \
        .nullable = true)
#define TEXTS_OR_NULL(key, member, text, meaning) \
    ROW(key, TP_OPT_STRING_LIST, AT(member, tp_str_list), text, meaning, .nullable = true)
#define PATH(key, member, text, meaning)                                               \
    ROW(key, TP_OPT_STRING, AT(member, const char *), text, meaning, .nullable = true, \
        .is_path = true)
#define WORD(key, member, text, words, meaning) \
    ROW(key, TP_OPT_ENUM, AT(member, int), text, meaning, .choices = words)
#define WORD_OR_NULL(key, member, text, words, meaning) \
    ROW(key, TP_OPT_ENUM, AT(member, int), text, meaning, .choices = words, .nullable = true)
#define TREE(key, member, text, meaning) \
    ROW(key, TP_OPT_SECTION, AT(member, const tp_json *), text, meaning)

#define IDLE(key, kind, text, meaning) \
    ROW(key, TYPE_##kind, TP_OPT_NOT_STORED, text, meaning, .ignored = true, .nullable = true)
#define IDLE_WORD(key, text, words, meaning)                                                   \
    ROW(key, TP_OPT_ENUM, TP_OPT_NOT_STORED, text, meaning, .ignored = true, .nullable = true, \
        .choices = words)
#define MUTE(key, meaning)                                                        \
    ROW(key, TP_OPT_SECTION, TP_OPT_NOT_STORED, "null", meaning, .ignored = true, \
        .unannounced = true)

#define MEGATRON "policy.megatron_cfg.enabled"
#define UNDER(key, on, text, meaning) \
    ROW(key, TP_OPT_SECTION, TP_OPT_NOT_STORED, text, meaning, .ignored = true, .when = on)
#define REFUSED(key, on, values, meaning)                                       \
    ROW(key, TP_OPT_SECTION, TP_OPT_NOT_STORED, NULL, meaning, .ignored = true, \
        .accepted = values, .when = on)

#define PART(key, meaning) ROW(key, TP_OPT_SECTION, TP_OPT_NOT_STORED, "null", meaning)

#define TYPE_FLAG TP_OPT_BOOL
#define TYPE_COUNT TP_OPT_INT
#define TYPE_TEXT TP_OPT_STRING
#define TYPE_TREE TP_OPT_SECTION

/* The keys of one set of rows; `text` makes the default of each from its name. */
#define SOURCE_ROWS(prefix, member, text)                                                          \
    TEXT_OR_NULL(prefix ".dataset_name", member.dataset_name, text("dataset_name"),                \
                 "arithmetic = the generated corpus; any other name goes with data_path.")         \
    PATH(prefix ".data_path", member.data_path, text("data_path"), "JSONL file.")                  \
    MUTE(prefix ".split", "A file has no splits.")                                                 \
    REAL_OR_NULL(prefix ".split_validation_size", member.split_validation_size,                    \
                 text("split_validation_size"), 0, 0.999999,                                       \
                 "Share of the rows kept for validation.")                                         \
    IDLE(prefix ".seed", COUNT, text("seed"), "There is one seed.")                                \
    COUNT_OR_NULL(prefix ".max_samples", member.max_samples, text("max_samples"), 1, INFINITY,     \
                  "Prompts to use, the first so many; for rollouts.")                              \
    TEXT_OR_NULL(prefix ".input_key", member.input_key, text("input_key"),                         \
                 "Member with the prompt.")                                                        \
    TEXT_OR_NULL(prefix ".output_key", member.output_key, text("output_key"),                      \
                 "Member with the answer.")                                                        \
    TEXT_OR_NULL(prefix ".prompt_key", member.prompt_key, text("prompt_key"),                      \
                 "Member with the prompt, beside a completion.")                                   \
    TEXT_OR_NULL(prefix ".chat_key", member.chat_key, text("chat_key"),                            \
                 "Member with the messages.")                                                      \
    TEXT_OR_NULL(prefix ".text_key", member.text_key, text("text_key"), "Member with plain text.") \
    TEXT_OR_NULL(prefix ".tool_key", member.tool_key, text("tool_key"), "Member with the tools.")  \
    TEXT_OR_NULL(prefix ".system_key", member.system_key, text("system_key"),                      \
                 "Member with the system prompt.")                                                 \
    IDLE(prefix ".system_prompt", TEXT, text("system_prompt"),                                     \
         "The system prompt is read from system_prompt_file.")                                     \
    PATH(prefix ".system_prompt_file", member.system_prompt_file, text("system_prompt_file"),      \
         "File with the system prompt.")                                                           \
    PATH(prefix ".prompt_file", member.prompt_file, text("prompt_file"),                           \
         "File with a template of the user's message; {} is the prompt.")                          \
    TEXT_OR_NULL(prefix ".separator", member.separator, text("separator"),                         \
                 "Text between prompt and answer where there is no chat template.")                \
    IDLE(prefix ".subset", TEXT, text("subset"), "A file has no subsets.")                         \
    TEXT_OR_NULL(prefix ".chosen_key", member.chosen_key, text("chosen_key"),                      \
                 "Preferences: member with the better answer.")                                    \
    TEXT_OR_NULL(prefix ".rejected_key", member.rejected_key, text("rejected_key"),                \
                 "Preferences: member with the worse answer.")                                     \
    TEXT_OR_NULL(prefix ".env_name", member.env_name, text("env_name"),                            \
                 "Rollouts: the environment that judges answers, a section of env.")               \
    MUTE(prefix ".processor", "Rows are recognised by their keys.")                                \
    MUTE(prefix ".download_dir", "Nothing is downloaded.")                                         \
    REFUSED(prefix ".repeat", NULL, "1|null",                                                      \
            "Rows are not repeated: grpo.val_num_generations_per_prompt asks each several times.") \
    REFUSED(prefix ".min_generation_tokens", NULL, "0|null", "Answers have no least length.")      \
    REFUSED(prefix ".allowed_problem_types", NULL, "null|[]", "Rows are not filtered by a type.")  \
    MUTE(prefix ".num_frames", "Rows are text.")                                                   \
    MUTE(prefix ".video_sampling_style", "Rows are text.")                                         \
    MUTE(prefix ".video_target_num_patches", "Rows are text.")                                     \
    MUTE(prefix ".video_temporal_patch_size", "Rows are text.")                                    \
    MUTE(prefix ".video_maintain_aspect_ratio", "Rows are text.")

#define FROM_DEFAULT(key) "${data.default." key "}"
#define UNSET(key) NULL
#define SOURCE(prefix, member) SOURCE_ROWS(prefix, member, FROM_DEFAULT)
#define DEFAULT_SOURCE(prefix, member) SOURCE_ROWS(prefix, member, UNSET)

const tp_option tp_train_option_table[] = {
#include "engine/train/options.def"
};

const size_t tp_train_option_count = sizeof tp_train_option_table / sizeof *tp_train_option_table;

/* ---- algorithms ---- */

static const char *const algorithm_names[] = {"sft", "dpo", "grpo"};
enum { N_ALGORITHMS = sizeof algorithm_names / sizeof *algorithm_names };

const char *tp_algorithm_name(tp_algorithm algorithm) { return algorithm_names[algorithm]; }

/* Sections that only one algorithm has.  Elsewhere they are known by name, so that whoever
 * mixes two configurations is told so. */
#define GRPO_ONLY                                                  \
    {                                                              \
        "GRPO, and this configuration has a section sft",          \
            "GRPO, and this configuration has a section dpo", NULL \
    }
static const struct {
    const char *prefix, *name;
    tp_algorithm algorithm;
    const char *foreign[N_ALGORITHMS]; /* who else is told, and what; NULL: nobody */
} own_sections[] = {
    {"sft.", "sft", TP_ALGORITHM_SFT, {NULL}},
    {"dpo.", "dpo", TP_ALGORITHM_DPO, {NULL}},
    {"grpo.", "grpo", TP_ALGORITHM_GRPO, {NULL}},
    {"loss_fn.", "loss_fn", TP_ALGORITHM_GRPO, GRPO_ONLY},
    {"env", "env", TP_ALGORITHM_GRPO, GRPO_ONLY},
    {"async_rl", "async_rl", TP_ALGORITHM_GRPO, GRPO_ONLY},
    {"data_plane", "data_plane", TP_ALGORITHM_GRPO, GRPO_ONLY},
    {"reward_penalties", "reward_penalties", TP_ALGORITHM_GRPO, GRPO_ONLY},
    {"on_policy_distillation", "on_policy_distillation", TP_ALGORITHM_GRPO, GRPO_ONLY},
    {"policy.generation.", "policy.generation", TP_ALGORITHM_GRPO, {NULL}}};

static bool belongs(const char *key, tp_algorithm algorithm)
{
    for (size_t i = 0; i < sizeof own_sections / sizeof *own_sections; i++)
        if (tp_str_starts(key, own_sections[i].prefix))
            return own_sections[i].algorithm == algorithm;
    /* Elsewhere the whole section is taken and left alone. */
    return algorithm != TP_ALGORITHM_GRPO || strcmp(key, "policy.generation") != 0;
}

static const struct {
    tp_algorithm algorithm;
    const char *key, *text;
} defaults[] = {
#define DEFAULT(name, key, text) {TP_ALGORITHM_##name, key, text},
#include "engine/train/defaults.def"
#undef DEFAULT
};

static const char *default_of(const tp_option *option, tp_algorithm algorithm)
{
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        if (defaults[i].algorithm == algorithm && strcmp(defaults[i].key, option->name) == 0)
            return defaults[i].text;
    return option->default_value;
}

/* Made once; the first threads to come may make the same table, which does no harm. */
const tp_option *tp_train_options_of(tp_algorithm algorithm, size_t *ret_n)
{
    enum { N_ROWS = sizeof tp_train_option_table / sizeof *tp_train_option_table };
    static tp_option tables[N_ALGORITHMS][N_ROWS + sizeof own_sections / sizeof *own_sections];
    tp_option *table = tables[algorithm];
    size_t n = 0;
    for (size_t i = 0; i < sizeof own_sections / sizeof *own_sections; i++)
        if (own_sections[i].algorithm != algorithm && own_sections[i].foreign[algorithm])
            table[n++] = (tp_option){.name = own_sections[i].name,
                                     .type = TP_OPT_SECTION,
                                     .offset = TP_OPT_NOT_STORED,
                                     .belongs_to = own_sections[i].foreign[algorithm]};
    for (size_t i = 0; i < tp_train_option_count; i++) {
        if (!belongs(tp_train_option_table[i].name, algorithm))
            continue;
        tp_option row = tp_train_option_table[i];
        row.default_value = default_of(&row, algorithm);
        table[n++] = row;
    }
    *ret_n = n;
    return table;
}

/* A recipe that says nothing about what to train is none; without one, SFT is the default. */
static tp_status no_algorithm(const tp_config *config, tp_error *err)
{
    tp_buf sections = {0};
    for (const tp_json *v = tp_config_resolved(config)->child; v; v = v->next)
        if (!tp_slice_is(v->key, "run"))
            tp_buf_addf(&sections, "%s%.*s", sections.len ? ", " : "", (int)TP_MIN(v->key.len, 60),
                        v->key.data);
    bool is_evaluation = tp_config_find(config, "generation") || tp_config_find(config, "eval");
    tp_status status =
        tp_fail(err, TP_ERR_CONFIG,
                "%s: no section sft, dpo or grpo says what to train (there are: %.600s); %s",
                tp_config_file(config), tp_buf_str(&sections),
                is_evaluation ? "evaluations are run by temper eval"
                              : "add one, or the file is not meant for training");
    tp_buf_release(&sections);
    return status;
}

tp_status tp_train_algorithm(const tp_config *config, tp_algorithm *ret, tp_error *err)
{
    int found = -1;
    for (int a = 0; a < N_ALGORITHMS; a++) {
        if (!tp_config_find(config, algorithm_names[a]))
            continue;
        if (found >= 0)
            return tp_config_fail(config, algorithm_names[a], err,
                                  "the configuration has a section %s as well; a run is one "
                                  "of the two",
                                  algorithm_names[found]);
        found = a;
    }
    if (found < 0 && tp_config_file(config))
        return no_algorithm(config, err);
    *ret = found < 0 ? TP_ALGORITHM_SFT : (tp_algorithm)found;
    return TP_OK;
}

static void choose_loop(tp_train_options *o)
{
    tp_loop_options *l = &o->loop;
#define LOOP_OF(s)                                                                  \
    *l = (tp_loop_options)                                                          \
    {                                                                               \
        .max_num_epochs = o->s.max_num_epochs, .max_num_steps = o->s.max_num_steps, \
        .val_period = o->s.val_period, .val_at_start = o->s.val_at_start,           \
        .val_at_end = o->s.val_at_end                                               \
    }
    if (o->algorithm == TP_ALGORITHM_GRPO) {
        LOOP_OF(grpo);
        l->val_start_at = o->grpo.val_start_at;
        return;
    }
    if (o->algorithm == TP_ALGORITHM_DPO) {
        LOOP_OF(dpo);
        l->val_batches = o->dpo.val_batches;
        l->val_global_batch_size = o->dpo.val_global_batch_size;
        return;
    }
    LOOP_OF(sft);
#undef LOOP_OF
    l->val_batches = o->sft.val_batches;
    l->val_global_batch_size = o->sft.val_global_batch_size;
}

static bool megatron_recomputes(const tp_train_options *o)
{
    bool enabled = false, recomputes = false;
    return tp_json_bool(tp_json_get(o->policy.megatron, "enabled"), &enabled) && enabled &&
           tp_json_bool(tp_json_get(o->policy.megatron, "activation_checkpointing"), &recomputes) &&
           recomputes;
}

/* NeMo RL's nulls for "the usual". */
static void replace_nulls(tp_train_options *o)
{
    if (o->data.max_input_seq_length == TP_OPT_UNSET_INT)
        o->data.max_input_seq_length = o->policy.max_total_sequence_length;
    if (o->grpo.val_batch_size == TP_OPT_UNSET_INT)
        o->grpo.val_batch_size = 256;
    if (o->grpo.max_val_samples == TP_OPT_UNSET_INT)
        o->grpo.max_val_samples = 0;
}

static tp_status read_recompute(const tp_config *config, tp_train_options *o, tp_error *err)
{
    const char *text = o->policy.recompute_text;
    if (!text)
        text = o->policy.activation_checkpointing || megatron_recomputes(o) ? "full" : "none";
    tp_status status =
        tp_recompute_parse(text, &o->policy.recompute, &o->policy.recompute_every, err);
    if (status != TP_OK)
        return tp_error_prefix(
            err, status, "%s: policy.recompute: ", tp_config_origin(config, "policy.recompute"));
    return TP_OK;
}

/* Whole numbers separated by colons; false unless there are exactly n. */
static bool read_colons(const char *text, int64_t *v, int n)
{
    for (int i = 0; i < n; i++) {
        int used = 0;
        long long value = 0;
        if (sscanf(text, "%9lld%n", &value, &used) != 1 || value < 0 || *text == '+' ||
            *text == ' ')
            return false;
        text += used;
        if (*text != (i + 1 < n ? ':' : 0))
            return false;
        text += *text == ':';
        v[i] = value;
    }
    return true;
}

static tp_status read_save_by(const tp_config *config, tp_train_options *o, tp_error *err)
{
    int64_t v[4];
    o->checkpointing.must_save_by_s = NAN;
    const char *text = o->checkpointing.must_save_by_text;
    if (!text)
        return TP_OK;
    if (!read_colons(text, v, 4))
        return tp_config_fail(config, "checkpointing.checkpoint_must_save_by", err,
                              "\"%.60s\" is no duration; write days:hours:minutes:seconds, as in "
                              "00:03:50:00",
                              text);
    o->checkpointing.must_save_by_s =
        (double)(((v[0] * 24 + v[1]) * 60 + v[2]) * 60) + (double)v[3];
    return TP_OK;
}

static tp_status check_model(const tp_config *config, const tp_train_options *o, tp_error *err)
{
    if (o->policy.init == TP_INIT_PRETRAINED && !o->policy.model_name)
        return tp_config_fail(
            config, "policy.model_name", err,
            "must be set; add policy.model_name=FOLDER, or policy.init=random and "
            "policy.model_config=FILE for a model from scratch");
    if (o->policy.init == TP_INIT_RANDOM && !o->policy.model_config)
        return tp_config_fail(config, "policy.model_config", err,
                              "must be set when policy.init is random; give the path of a "
                              "config.json");
    const tp_json *variables = o->policy.template_variables;
    if (variables && variables->type != TP_JSON_OBJECT)
        return tp_config_fail(config, "policy.tokenizer.chat_template_kwargs", err,
                              "expected names with values, as {enable_thinking: false}");
    bool trains_tokenizer = o->policy.tokenizer_train_vocab_size != TP_OPT_UNSET_INT;
    if (!o->policy.tokenizer_name && !trains_tokenizer)
        return tp_config_fail(
            config, "policy.tokenizer.name", err,
            "must be set, or policy.tokenizer.train_vocab_size for a tokenizer of "
            "the run's own");
    if (o->policy.tokenizer_name && trains_tokenizer)
        return tp_config_fail(config, "policy.tokenizer.train_vocab_size", err,
                              "there is a tokenizer already, %.200s; set one of the two to null",
                              o->policy.tokenizer_name);
    return TP_OK;
}

static tp_status check_batches(const tp_config *config, const tp_train_options *o, tp_error *err)
{
    int64_t length = o->policy.max_total_sequence_length;
    if (o->policy.packing.enabled && o->policy.dynamic_batching.enabled)
        return tp_config_fail(config, "policy.dynamic_batching.enabled", err,
                              "packing and dynamic batching exclude each other; set "
                              "policy.sequence_packing.enabled=false");
    if (o->policy.packing.enabled && o->policy.packing.train_mb_tokens < length)
        return tp_config_fail(config, "policy.sequence_packing.train_mb_tokens", err,
                              "%lld tokens do not hold a sequence of "
                              "policy.max_total_sequence_length, %lld",
                              (long long)o->policy.packing.train_mb_tokens, (long long)length);
    if (o->policy.dynamic_batching.enabled && o->policy.dynamic_batching.train_mb_tokens < length)
        return tp_config_fail(config, "policy.dynamic_batching.train_mb_tokens", err,
                              "%lld tokens do not hold a sequence of "
                              "policy.max_total_sequence_length, %lld",
                              (long long)o->policy.dynamic_batching.train_mb_tokens,
                              (long long)length);
    bool is_plain = !o->policy.packing.enabled && !o->policy.dynamic_batching.enabled;
    if (is_plain && o->policy.train_global_batch_size % o->policy.train_micro_batch_size != 0)
        return tp_config_fail(config, "policy.train_micro_batch_size", err,
                              "%lld does not divide policy.train_global_batch_size, %lld",
                              (long long)o->policy.train_micro_batch_size,
                              (long long)o->policy.train_global_batch_size);
    return TP_OK;
}

static tp_status check_data(const tp_config *config, const tp_train_options *o, tp_error *err)
{
    const tp_data_source_options *train = &o->data.train;
    if (o->algorithm == TP_ALGORITHM_GRPO && (train->data_path || train->dataset_name))
        return TP_OK; /* an environment may bring questions of its own */
    bool is_generated = train->dataset_name && !strcmp(train->dataset_name, "arithmetic");
    if (!train->data_path && !is_generated)
        return tp_config_fail(config, "data.train.data_path", err,
                              "must be set to a JSONL file, or data.train.dataset_name to "
                              "arithmetic%s",
                              train->dataset_name ? "; named data sets are not downloaded" : "");
    const char *operators = o->data.arithmetic.operators;
    if (!operators || !*operators || operators[strspn(operators, "+-*")])
        return tp_config_fail(config, "data.arithmetic.operators", err,
                              "expected one or more of + - *, as in \"+-\"");
    return TP_OK;
}

static bool is_multiple(int64_t n, int64_t of) { return of > 0 && n % of == 0; }

/* What the loss of GRPO cannot be asked for. */
static tp_status check_loss(const tp_config *config, const tp_train_options *o, tp_error *err)
{
    if (o->loss.sequence_ratio && o->loss.token_level)
        return tp_config_fail(config, "loss_fn.sequence_level_importance_ratios", err,
                              "one ratio per answer goes with a mean over answers; set "
                              "loss_fn.token_level_loss=false");
    if (o->loss.sequence_ratio + o->loss.no_ratio + o->loss.on_policy_ratio > 1)
        return tp_config_fail(config, "loss_fn.disable_ppo_ratio", err,
                              "sequence_level_importance_ratios, disable_ppo_ratio and "
                              "force_on_policy_ratio exclude each other");
    bool truncates = o->loss.truncation != TP_OPT_UNSET_ENUM;
    if (truncates && (!o->loss.correction || isnan(o->loss.truncate_max)))
        return tp_config_fail(config, "loss_fn.truncated_importance_sampling_type", err,
                              "needs loss_fn.use_importance_sampling_correction=true and "
                              "loss_fn.truncated_importance_sampling_ratio");
    if (!truncates && !isnan(o->loss.truncate_max))
        return tp_config_fail(config, "loss_fn.truncated_importance_sampling_ratio", err,
                              "needs loss_fn.truncated_importance_sampling_type");
    if (truncates && o->loss.truncation + 1 != TP_TRUNCATE_CLAMP && isnan(o->loss.truncate_min))
        return tp_config_fail(config, "loss_fn.truncated_importance_sampling_type", err,
                              "needs loss_fn.truncated_importance_sampling_ratio_min");
    if (o->grpo.skip_reference && o->loss.kl_penalty != 0)
        return tp_config_fail(config, "grpo.skip_reference_policy_logprobs_calculation", err,
                              "the divergence needs them; set "
                              "loss_fn.reference_policy_kl_penalty=0");
    return TP_OK;
}

static tp_status check_goal(const tp_config *config, const tp_train_options *o, tp_error *err)
{
    bool has_metric = o->grpo.stop_metric != TP_OPT_UNSET_ENUM;
    if (has_metric && isnan(o->grpo.stop_threshold))
        return tp_config_fail(config, "grpo.stop_at_validation_threshold", err,
                              "must be set where grpo.stop_at_validation_metric is");
    if (!has_metric && !isnan(o->grpo.stop_threshold))
        return tp_config_fail(config, "grpo.stop_at_validation_threshold", err,
                              "of what? set grpo.stop_at_validation_metric to accuracy or pass_k");
    if (o->grpo.stop_metric == TP_STOP_PASS_K && o->grpo.val_generations == 1)
        return tp_config_fail(config, "grpo.stop_at_validation_metric", err,
                              "pass_k needs grpo.val_num_generations_per_prompt above 1");
    return TP_OK;
}

static tp_status check_shaping(const tp_config *config, const tp_train_options *o, tp_error *err)
{
    const tp_reward_shaping *s = &o->grpo.shaping;
    if (s->enabled && isnan(s->stop_properly_penalty_coef) &&
        (isnan(s->overlong_buffer_length) || isnan(s->overlong_buffer_penalty) ||
         isnan(s->max_response_length)))
        return tp_config_fail(config, "grpo.reward_shaping.enabled", err,
                              "needs overlong_buffer_length, overlong_buffer_penalty and "
                              "max_response_length, or stop_properly_penalty_coef");
    return TP_OK;
}

static tp_status check_grpo(const tp_config *config, const tp_train_options *o, tp_error *err)
{
    int64_t samples = o->grpo.num_prompts * o->grpo.num_generations;
    if (o->algorithm != TP_ALGORITHM_GRPO)
        return TP_OK;
    if (!is_multiple(samples, o->policy.train_global_batch_size))
        return tp_config_fail(config, "policy.train_global_batch_size", err,
                              "%lld does not divide the %lld answers of a rollout "
                              "(grpo.num_prompts_per_step x grpo.num_generations_per_prompt)",
                              (long long)o->policy.train_global_batch_size, (long long)samples);
    if (o->loss.on_policy_ratio && o->policy.train_global_batch_size != samples)
        return tp_config_fail(config, "loss_fn.force_on_policy_ratio", err,
                              "needs one update per rollout: policy.train_global_batch_size=%lld",
                              (long long)samples);
    if (o->grpo.scaling.enabled && !(o->grpo.scaling.source_max > o->grpo.scaling.source_min))
        return tp_config_fail(config, "grpo.reward_scaling.source_max", err,
                              "must be above grpo.reward_scaling.source_min");
    TP_TRY(check_goal(config, o, err));
    TP_TRY(check_shaping(config, o, err));
    return check_loss(config, o, err);
}

static tp_status check_dump(const tp_config *config, const tp_train_options *o, tp_error *err)
{
    for (size_t i = 0; i < o->engine.dump.n; i++) {
        tp_buf known = {0};
        const char *stage = o->engine.dump.v[i];
        tp_status status = TP_OK;
        if (!tp_program_is_stage(stage, &known))
            status = tp_config_fail(config, "engine.dump", err,
                                    "there is no stage '%.100s'; known: %s", stage, known.data);
        tp_buf_release(&known);
        TP_TRY(status);
    }
    return TP_OK;
}

static tp_status check_schedule(const tp_config *config, const tp_train_options *o, tp_error *err)
{
    tp_schedule schedule;
    tp_status status = tp_schedule_parse(o->policy.scheduler, &schedule, err);
    if (status != TP_OK)
        return tp_error_prefix(err, status, "%s: ", tp_config_origin(config, "policy.scheduler"));
    return TP_OK;
}

/* What may rank checkpoints, by algorithm: NeMo RL's names. */
static const struct {
    unsigned algorithms; /* one bit each */
    const char *name;
    tp_ranking ranking;
} rankings[] = {
    {1U << TP_ALGORITHM_SFT | 1U << TP_ALGORITHM_DPO, "val:val_loss", TP_RANK_BY_VAL_LOSS},
    {1U << TP_ALGORITHM_DPO, "val:validation-default_loss", TP_RANK_BY_VAL_LOSS},
    {1U << TP_ALGORITHM_DPO, "val:validation-default_accuracy", TP_RANK_BY_VAL_ACCURACY},
    {1U << TP_ALGORITHM_DPO | 1U << TP_ALGORITHM_GRPO, "val:accuracy", TP_RANK_BY_VAL_ACCURACY},
    {1U << TP_ALGORITHM_SFT | 1U << TP_ALGORITHM_DPO | 1U << TP_ALGORITHM_GRPO, "train:loss",
     TP_RANK_BY_TRAIN_LOSS},
};

static tp_status check_metric(const tp_config *config, tp_train_options *o, tp_error *err)
{
    const char *metric = o->checkpointing.metric_name;
    char known[160] = "";
    size_t used = 0;
    o->ranking = TP_RANK_BY_AGE;
    for (size_t i = 0; metric && i < TP_COUNTOF(rankings); i++) {
        if (!(rankings[i].algorithms >> o->algorithm & 1))
            continue;
        if (strcmp(metric, rankings[i].name) == 0) {
            o->ranking = rankings[i].ranking;
            return TP_OK;
        }
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                                 rankings[i].name);
    }
    return metric ? tp_config_fail(config, "checkpointing.metric_name", err,
                                   "\"%.100s\" ranks no checkpoints of %s; known: %s, or null for "
                                   "the newest",
                                   metric, tp_algorithm_name(o->algorithm), known)
                  : TP_OK;
}

static tp_status check_optimizer(const tp_config *config, tp_train_options *o, tp_error *err)
{
    const tp_f64_list *betas = &o->policy.adamw.betas;
    if (betas->n != 2 || betas->v[0] >= 1 || betas->v[1] >= 1)
        return tp_config_fail(config, "policy.optimizer.kwargs.betas", err,
                              "expected two numbers below 1, as in [0.9, 0.98]");
    return check_metric(config, o, err);
}

/* The name becomes a folder below runs/, and is printed. */
static tp_status check_name(const tp_config *config, const tp_train_options *o, tp_error *err)
{
    const char *name = o->run_name;
    bool is_path = strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    bool is_printable = true;
    for (const char *p = name; *p; p++)
        is_printable &= (unsigned char)*p >= 0x20 && *p != 0x7f;
    if (!*name || is_path)
        return tp_config_fail(config, "run.name", err,
                              "\"%.100s\" is no name of a folder; run.dir=PATH takes a path", name);
    if (!is_printable || strlen(name) >= TP_RUN_NAME)
        return tp_config_fail(config, "run.name", err,
                              "a name has at most %d bytes, and no control characters",
                              TP_RUN_NAME - 1);
    if (!*o->run_dir)
        return tp_config_fail(config, "run.dir", err, "the path is empty");
    if (o->checkpointing.enabled && !*o->checkpointing.checkpoint_dir)
        return tp_config_fail(config, "checkpointing.checkpoint_dir", err, "the path is empty");
    return TP_OK;
}

tp_status tp_train_options_bind_sizes(tp_config *config, tp_train_options *ret, tp_error *err)
{
    tp_train_options o;
    memset(&o, 0, sizeof o);
    size_t n;
    TP_TRY(tp_train_algorithm(config, &o.algorithm, err));
    const tp_option *table = tp_train_options_of(o.algorithm, &n);
    TP_TRY(tp_megatron_adopt(config, err));
    TP_TRY(tp_config_bind(config, table, n, &o, err));
    replace_nulls(&o);
    choose_loop(&o);
    TP_TRY(check_name(config, &o, err));
    TP_TRY(read_recompute(config, &o, err));
    TP_TRY(tp_profile_bind(config, &o, err));
    TP_TRY(read_save_by(config, &o, err));
    TP_TRY(check_model(config, &o, err));
    TP_TRY(check_batches(config, &o, err));
    TP_TRY(check_optimizer(config, &o, err));
    TP_TRY(check_grpo(config, &o, err));
    TP_TRY(check_schedule(config, &o, err));
    TP_TRY(check_dump(config, &o, err));
    *ret = o;
    return TP_OK;
}

tp_status tp_train_options_check_files(const tp_config *config, const tp_train_options *o,
                                       tp_error *err)
{
    size_t n;
    const tp_option *table = tp_train_options_of(o->algorithm, &n);
    bool is_random = o->policy.init == TP_INIT_RANDOM;
    tp_buf missing = {0};
    for (size_t i = 0; i < n; i++) {
        const char *name = table[i].name, *remedy = NULL;
        bool is_template = strcmp(name, "policy.tokenizer.chat_template") == 0;
        bool is_model = strcmp(name, "policy.model_name") == 0;
        bool is_config = strcmp(name, "policy.model_config") == 0;
        /* What comes from another key is looked at there. */
        if (!table[i].is_path || (is_model && is_random) || (is_config && !is_random) ||
            tp_config_is_derived(config, name) ||
            (is_template &&
             !tp_str_ends(o->policy.chat_template ? o->policy.chat_template : "", ".jinja")))
            continue;
        if (is_model || strcmp(name, "policy.tokenizer.name") == 0)
            remedy = "models are not downloaded: give a Hugging Face folder";
        tp_config_check_path(config, name, remedy, &missing);
    }
    tp_status status = missing.len ? tp_fail_list(err, TP_ERR_IO, missing.data) : TP_OK;
    tp_buf_release(&missing);
    return status;
}

tp_status tp_train_options_bind(tp_config *config, tp_train_options *ret, tp_error *err)
{
    tp_train_options o;
    TP_TRY(tp_train_options_bind_sizes(config, &o, err));
    TP_TRY(check_data(config, &o, err));
    *ret = o;
    return TP_OK;
}
