#include "engine/train/options.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/strings.h"
#include "engine/rl/loss_policy.h"
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

#define PART(key, meaning) ROW(key, TP_OPT_SECTION, TP_OPT_NOT_STORED, "null", meaning)

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
    IDLE(prefix ".system_prompt", TEXT, text("system_prompt"), "See system_prompt_file.")          \
    TEXT_OR_NULL(prefix ".system_prompt_file", member.system_prompt_file,                          \
                 text("system_prompt_file"), "File with the system prompt.")                       \
    TEXT_OR_NULL(prefix ".prompt_file", member.prompt_file, text("prompt_file"),                   \
                 "File with a template of the user's message; {} is the prompt.")                  \
    TEXT_OR_NULL(prefix ".separator", member.separator, text("separator"),                         \
                 "Text between prompt and answer where there is no chat template.")                \
    IDLE(prefix ".subset", TEXT, text("subset"), "A file has no subsets.")                         \
    TEXT_OR_NULL(prefix ".chosen_key", member.chosen_key, text("chosen_key"),                      \
                 "Preferences: member with the better answer.")                                    \
    TEXT_OR_NULL(prefix ".rejected_key", member.rejected_key, text("rejected_key"),                \
                 "Preferences: member with the worse answer.")                                     \
    TEXT_OR_NULL(prefix ".env_name", member.env_name, text("env_name"),                            \
                 "Rollouts: the environment that judges answers, a section of env.")               \
    MUTE(prefix ".processor", "Rows are recognised by their keys.")

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

/* Sections that only one algorithm has. */
static const struct {
    const char *prefix;
    tp_algorithm algorithm;
} own_sections[] = {{"sft.", TP_ALGORITHM_SFT},   {"dpo.", TP_ALGORITHM_DPO},
                    {"grpo.", TP_ALGORITHM_GRPO}, {"loss_fn.", TP_ALGORITHM_GRPO},
                    {"env", TP_ALGORITHM_GRPO},   {"policy.generation.", TP_ALGORITHM_GRPO}};

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
    static tp_option tables[N_ALGORITHMS]
                           [sizeof tp_train_option_table / sizeof *tp_train_option_table];
    tp_option *table = tables[algorithm];
    size_t n = 0;
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
    return check_loss(config, o, err);
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

tp_status tp_train_options_bind_sizes(tp_config *config, tp_train_options *ret, tp_error *err)
{
    tp_train_options o;
    memset(&o, 0, sizeof o);
    size_t n;
    TP_TRY(tp_train_algorithm(config, &o.algorithm, err));
    const tp_option *table = tp_train_options_of(o.algorithm, &n);
    TP_TRY(tp_config_bind(config, table, n, &o, err));
    choose_loop(&o);
    TP_TRY(read_recompute(config, &o, err));
    TP_TRY(tp_profile_bind(config, &o, err));
    TP_TRY(read_save_by(config, &o, err));
    TP_TRY(check_model(config, &o, err));
    TP_TRY(check_batches(config, &o, err));
    TP_TRY(check_optimizer(config, &o, err));
    TP_TRY(check_grpo(config, &o, err));
    TP_TRY(check_schedule(config, &o, err));
    *ret = o;
    return TP_OK;
}

tp_status tp_train_options_bind(tp_config *config, tp_train_options *ret, tp_error *err)
{
    tp_train_options o;
    TP_TRY(tp_train_options_bind_sizes(config, &o, err));
    TP_TRY(check_data(config, &o, err));
    *ret = o;
    return TP_OK;
}
