#include "engine/train/options.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/train/profile.h"
#include "engine/train/schedule.h"

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
#define WORD(key, member, text, words, meaning) \
    ROW(key, TP_OPT_ENUM, AT(member, int), text, meaning, .choices = words)
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

#define TYPE_FLAG TP_OPT_BOOL
#define TYPE_COUNT TP_OPT_INT
#define TYPE_TEXT TP_OPT_STRING
#define TYPE_TREE TP_OPT_SECTION

/* The keys of one set of rows; `text` makes the default of each from its name. */
#define SOURCE_ROWS(prefix, member, text)                                                          \
    TEXT_OR_NULL(prefix ".dataset_name", member.dataset_name, text("dataset_name"),                \
                 "arithmetic = the generated corpus; any other name goes with data_path.")         \
    TEXT_OR_NULL(prefix ".data_path", member.data_path, text("data_path"), "JSONL file.")          \
    MUTE(prefix ".split", "A file has no splits.")                                                 \
    REAL_OR_NULL(prefix ".split_validation_size", member.split_validation_size,                    \
                 text("split_validation_size"), 0, 0.999999,                                       \
                 "Share of the rows kept for validation.")                                         \
    IDLE(prefix ".seed", COUNT, text("seed"), "See seed.")                                         \
    IDLE(prefix ".max_samples", COUNT, text("max_samples"), "All rows are used.")                  \
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
    IDLE(prefix ".system_prompt", TEXT, text("system_prompt"), "See system_prompt_file.")          \
    TEXT_OR_NULL(prefix ".system_prompt_file", member.system_prompt_file,                          \
                 text("system_prompt_file"), "File with the system prompt.")                       \
    TEXT_OR_NULL(prefix ".prompt_file", member.prompt_file, text("prompt_file"),                   \
                 "File with a template of the user's message; {} is the prompt.")                  \
    TEXT_OR_NULL(prefix ".separator", member.separator, text("separator"),                         \
                 "Text between prompt and answer where there is no chat template.")                \
    IDLE(prefix ".subset", TEXT, text("subset"), "A file has no subsets.")                         \
    IDLE(prefix ".chosen_key", TEXT, text("chosen_key"), "For preferences, not SFT.")              \
    IDLE(prefix ".rejected_key", TEXT, text("rejected_key"), "For preferences, not SFT.")          \
    MUTE(prefix ".env_name", "For reinforcement learning, not SFT.")                               \
    MUTE(prefix ".processor", "Rows are recognised by their keys.")

#define FROM_DEFAULT(key) "${data.default." key "}"
#define UNSET(key) NULL
#define SOURCE(prefix, member) SOURCE_ROWS(prefix, member, FROM_DEFAULT)
#define DEFAULT_SOURCE(prefix, member) SOURCE_ROWS(prefix, member, UNSET)

const tp_option tp_train_option_table[] = {
#include "engine/train/options.def"
};

const size_t tp_train_option_count = sizeof tp_train_option_table / sizeof *tp_train_option_table;

static tp_status read_recompute(const tp_config *config, tp_train_options *o, tp_error *err)
{
    const char *text = o->policy.recompute_text;
    if (!text)
        text = o->policy.activation_checkpointing ? "full" : "none";
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
    /* Ignoring this one would train something else than was asked for. */
    bool wants_lora = false;
    const char *lora = "policy.dtensor_cfg.lora_cfg";
    if (tp_json_bool(tp_json_get(tp_config_find(config, lora), "enabled"), &wants_lora) &&
        wants_lora) {
        tp_config_fail(config, lora, err,
                       "adapters are not supported; set enabled: false to train "
                       "all weights");
        return err ? (err->status = TP_ERR_UNSUPPORTED) : TP_ERR_UNSUPPORTED;
    }
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

static tp_status check_schedule(const tp_config *config, const tp_train_options *o, tp_error *err)
{
    tp_schedule schedule;
    tp_status status = tp_schedule_parse(o->policy.scheduler, &schedule, err);
    if (status != TP_OK)
        return tp_error_prefix(err, status, "%s: ", tp_config_origin(config, "policy.scheduler"));
    return TP_OK;
}

static tp_status check_optimizer(const tp_config *config, const tp_train_options *o, tp_error *err)
{
    const tp_f64_list *betas = &o->policy.adamw.betas;
    if (betas->n != 2 || betas->v[0] >= 1 || betas->v[1] >= 1)
        return tp_config_fail(config, "policy.optimizer.kwargs.betas", err,
                              "expected two numbers below 1, as in [0.9, 0.98]");
    const char *metric = o->checkpointing.metric_name;
    if (metric && strncmp(metric, "val:", 4) != 0 && strncmp(metric, "train:", 6) != 0)
        return tp_config_fail(config, "checkpointing.metric_name", err,
                              "\"%.100s\" does not begin with val: or train:, as in val:val_loss",
                              metric);
    return TP_OK;
}

tp_status tp_train_options_bind(tp_config *config, tp_train_options *ret, tp_error *err)
{
    tp_train_options o;
    memset(&o, 0, sizeof o);
    TP_TRY(tp_config_bind(config, tp_train_option_table, tp_train_option_count, &o, err));
    TP_TRY(read_recompute(config, &o, err));
    TP_TRY(tp_profile_bind(config, &o, err));
    TP_TRY(read_save_by(config, &o, err));
    TP_TRY(check_model(config, &o, err));
    TP_TRY(check_batches(config, &o, err));
    TP_TRY(check_data(config, &o, err));
    TP_TRY(check_optimizer(config, &o, err));
    TP_TRY(check_schedule(config, &o, err));
    *ret = o;
    return TP_OK;
}
