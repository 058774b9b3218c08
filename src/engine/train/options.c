/* options.c - the options of an algorithm, and what must hold across keys. */
#include "engine/train/options.h"
#include "engine/train/graphs.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/platform.h"
#include "base/strings.h"
#include "engine/checkpoint/run_record.h"
#include "engine/train/algorithm.h"
#include "engine/train/levers.h"
#include "engine/train/option_rows.h"
#include "engine/train/profile.h"
#include "engine/train/schedule.h"
#include "engine/train/session.h"

#define OPTIMIZER_KEYS "policy.optimizer.kwargs."

#define HOLDER tp_train_options
#define HOLDER_AT 0
#define MEGATRON "policy.megatron_cfg.enabled"
/* The keys of one set of rows; `text` makes the default of each from its name. */
#define SOURCE_ROWS(prefix, member, text)                                                          \
    TEXT_OR_NULL(prefix ".dataset_name", member.dataset_name, text("dataset_name"),                \
                 "arithmetic = the generated corpus; any other name goes with data_path.")         \
    PATH(prefix ".data_path", member.data_path, text("data_path"),                                 \
         "JSONL file, or a folder that holds one.", .ending = ".jsonl")                            \
    MUTE(prefix ".split", "A file has no splits.")                                                 \
    REAL_OR_NULL(prefix ".split_validation_size", member.split_validation_size,                    \
                 text("split_validation_size"), 0, 0.999999,                                       \
                 "Share of the rows kept for validation.")                                         \
    IDLE(prefix ".seed", COUNT, text("seed"), "There is one seed.")                                \
    COUNT_OR_NULL(prefix ".max_samples", member.max_samples, text("max_samples"), 1, INFINITY,     \
                  "Prompts to use, the first so many; for rollouts.")                              \
    TEXT_OR_NULL(prefix ".input_key", member.rows.input_key, text("input_key"),                    \
                 "Member with the prompt.")                                                        \
    TEXT_OR_NULL(prefix ".output_key", member.rows.output_key, text("output_key"),                 \
                 "Member with the answer.")                                                        \
    TEXT_OR_NULL(prefix ".prompt_key", member.rows.prompt_key, text("prompt_key"),                 \
                 "Member with the prompt, beside a completion.")                                   \
    TEXT_OR_NULL(prefix ".chat_key", member.rows.chat_key, text("chat_key"),                       \
                 "Member with the messages.")                                                      \
    TEXT_OR_NULL(prefix ".text_key", member.rows.text_key, text("text_key"),                       \
                 "Member with plain text.")                                                        \
    TEXT_OR_NULL(prefix ".tool_key", member.rows.tool_key, text("tool_key"),                       \
                 "Member with the tools.")                                                         \
    TEXT_OR_NULL(prefix ".system_key", member.rows.system_key, text("system_key"),                 \
                 "Member with the system prompt.")                                                 \
    IDLE(prefix ".system_prompt", TEXT, text("system_prompt"),                                     \
         "The system prompt is read from system_prompt_file.")                                     \
    PATH(prefix ".system_prompt_file", member.rows.system_prompt_file, text("system_prompt_file"), \
         "File with the system prompt.")                                                           \
    PATH(prefix ".prompt_file", member.rows.prompt_file, text("prompt_file"),                      \
         "File with a template of the user's message; {} is the prompt.")                          \
    TEXT_OR_NULL(prefix ".separator", member.rows.separator, text("separator"),                    \
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

/* Where a row has no name the keys of the algorithm stand, where it is OPTIMIZER_KEYS those of the
 * optimizer. */
static const tp_option common[] = {
#include "engine/train/options.def"
};

/* ---- algorithms ---- */

static size_t count_keys(const tp_option *options)
{
    size_t n = 0;
    while (options[n].name)
        n++;
    return n;
}

/* A section that another algorithm has is known by name, so that whoever mixes two configurations
 * is told so. */
static size_t add_foreign(const tp_algorithm *own, const tp_algorithm *other, tp_option *table)
{
    size_t n = 0;
    for (const char *const *s = other->sections; s && *s; s++)
        table[n++] = (tp_option){.name = *s,
                                 .type = TP_OPT_SECTION,
                                 .offset = TP_OPT_NOT_STORED,
                                 .belongs_to = other->title,
                                 .present = own->name};
    return n;
}

/* Defaults of an algorithm are those of NeMo RL, whose optimizer is the first. */
static const char *default_of(const tp_option *option, const tp_algorithm *a,
                              const tp_optimizer *optimizer)
{
    const char *key = option->name;
    bool is_other = optimizer != tp_optimizer_at(0) && tp_str_starts(key, OPTIMIZER_KEYS);
    for (const tp_algorithm_default *d = a->defaults; d && d->key && !is_other; d++)
        if (strcmp(d->key, option->name) == 0)
            return d->text;
    return option->default_value;
}

static bool has_key(const tp_option *table, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (table[i].name && strcmp(table[i].name, name) == 0)
            return true;
    return false;
}

/* The keys of the optimizer, and those of others, which are known by name: arguments that torch
 * would refuse. */
static size_t add_optimizers(const tp_optimizer *own, tp_option *table)
{
    size_t n = 0;
    const tp_optimizer *o;
    for (const tp_option *k = own ? own->options : NULL; k && k->name; k++)
        table[n++] = *k;
    for (size_t i = 0; (o = tp_optimizer_at(i)); i++)
        for (const tp_option *k = o->options; k->name; k++) {
            if (has_key(table, n, k->name))
                continue;
            table[n] = *k;
            if (own)
                table[n] = (tp_option){.name = k->name,
                                       .type = TP_OPT_SECTION,
                                       .offset = TP_OPT_NOT_STORED,
                                       .belongs_to = o->name};
            n++;
        }
    for (size_t i = 0; i < n; i++)
        if (table[i].offset != TP_OPT_NOT_STORED)
            table[i].offset += offsetof(tp_train_options, policy.optimizer);
    return n;
}

/* Of policy.generation, which belongs to those that generate: elsewhere the whole section is
 * taken and left alone. */
static bool belongs(const tp_option *option, const tp_algorithm *a)
{
    const char *key = option->name;
    bool is_whole = strcmp(key, "policy.generation") == 0;
    return a->generates ? !is_whole : !tp_str_starts(key, "policy.generation.");
}

static size_t add_own(const tp_algorithm *own, tp_option *table)
{
    size_t n = 0;
    for (const tp_algorithm *const *a = tp_algorithms; *a; a++) {
        if (own && *a != own)
            continue;
        for (const tp_option *option = (*a)->options; option->name; option++)
            table[n++] = *option;
    }
    return n;
}

static size_t most_keys(void)
{
    size_t n = TP_COUNTOF(common);
    const tp_optimizer *o;
    for (size_t i = 0; (o = tp_optimizer_at(i)); i++)
        n += count_keys(o->options);
    for (const tp_algorithm *const *a = tp_algorithms; *a; a++) {
        n += count_keys((*a)->options);
        for (const char *const *section = (*a)->sections; section && *section; section++)
            n++;
    }
    return n;
}

tp_option *tp_train_options_of(const tp_algorithm *own, const tp_optimizer *optimizer,
                               size_t *ret_n)
{
    size_t n = 0;
    tp_option *table = tp_new(most_keys(), sizeof *table);
    for (const tp_algorithm *const *a = tp_algorithms; own && *a; a++)
        if (*a != own)
            n += add_foreign(own, *a, table + n);
    for (size_t i = 0; i < TP_COUNTOF(common); i++) {
        if (!common[i].name)
            n += add_own(own, table + n);
        else if (strcmp(common[i].name, OPTIMIZER_KEYS) == 0)
            n += add_optimizers(optimizer, table + n);
        else if (!own || belongs(&common[i], own))
            table[n++] = common[i];
    }
    for (size_t i = 0; own && i < n; i++)
        table[i].default_value = default_of(&table[i], own, optimizer);
    *ret_n = n;
    return table;
}

/* By its name before binding, as its keys follow from it. */
static const tp_optimizer *optimizer_of(const tp_config *config)
{
    const tp_json *value = tp_config_find(config, "policy.optimizer.name");
    const char *name = value ? tp_json_str(value) : NULL;
    for (const tp_optimizer_name *n = tp_optimizer_names; name && n->name; n++)
        if (strcmp(n->name, name) == 0)
            return n->kind;
    return tp_optimizer_at(0);
}

/* "sft, dpo or grpo" */
static void list_names(tp_buf *out)
{
    for (const tp_algorithm *const *a = tp_algorithms; *a; a++)
        tp_buf_addf(out, "%s%s", a == tp_algorithms ? "" : a[1] ? ", " : " or ", (*a)->name);
}

/* A recipe that says nothing about what to train is none; without one, SFT is the default. */
static tp_status no_algorithm(const tp_config *config, tp_error *err)
{
    TP_OWN(tp_buf) sections = {0}, names = {0};
    list_names(&names);
    for (const tp_json *v = tp_config_resolved(config)->child; v; v = v->next)
        if (!tp_slice_is(v->key, "run"))
            tp_buf_addf(&sections, "%s%.*s", sections.len ? ", " : "", (int)TP_MIN(v->key.len, 60),
                        v->key.data);
    bool is_evaluation = tp_config_find(config, "generation") || tp_config_find(config, "eval");
    bool is_model = tp_config_find(config, "model_type") || tp_config_find(config, "architectures");
    return tp_fail(err, TP_ERR_CONFIG, "%s: no section %s says what to train (%s%.200s%s); %s",
                   tp_config_file(config), tp_buf_str(&names),
                   sections.len ? "there are: " : "there is none", tp_buf_str(&sections),
                   sections.len > 200 ? " ..." : "",
                   is_evaluation ? "evaluations are run by temper eval"
                   : is_model    ? "it describes a model, whose folder is policy.model_name"
                                 : "add one; 'temper config import FILE' makes a recipe of a file "
                                   "of TRL or Axolotl");
}

static tp_status find_algorithm(const tp_config *config, const tp_algorithm **ret, tp_error *err)
{
    const tp_algorithm *found = NULL;
    for (const tp_algorithm *const *a = tp_algorithms; *a; a++) {
        if (!tp_config_find(config, (*a)->name))
            continue;
        if (found)
            return tp_config_fail(config, (*a)->name, err,
                                  "the configuration has a section %s as well; a run is one "
                                  "of the two",
                                  found->name);
        found = *a;
    }
    if (!found && tp_config_file(config))
        return no_algorithm(config, err);
    *ret = found ? found : tp_algorithms[0];
    return TP_OK;
}

static void take_unset(const char **text, const char *from)
{
    if (!*text)
        *text = from;
}

/* What a source says nothing about is as data.default has it. */
static void inherit(tp_data_source_options *source, const tp_data_source_options *from)
{
    enum { TEXTS = sizeof source->rows / sizeof(char *) };
    const char *texts[TEXTS], *usual[TEXTS];
    memcpy(texts, &source->rows, sizeof texts);
    memcpy(usual, &from->rows, sizeof usual);
    for (int i = 0; i < TEXTS; i++)
        take_unset(&texts[i], usual[i]);
    memcpy(&source->rows, texts, sizeof texts);
    take_unset(&source->chosen_key, from->chosen_key);
    take_unset(&source->rejected_key, from->rejected_key);
}

/* NeMo RL's nulls for "the usual". */
static void replace_nulls(tp_train_options *o)
{
    inherit(&o->data.train, &o->data.fallback);
    inherit(&o->data.validation, &o->data.fallback);
    if (o->data.max_input_seq_length == TP_OPT_UNSET_INT)
        o->data.max_input_seq_length = o->policy.max_total_sequence_length;
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

/* Bytes of a text such as 6GiB; INFINITY: none was given. */
static tp_status read_size(const tp_config *config, const char *key, const char *text, double *ret,
                           tp_error *err)
{
    *ret = INFINITY;
    if (text && !tp_str_to_bytes(text, ret))
        return tp_config_fail(config, key, err,
                              "\"%.60s\" is no size; write a number and a unit, as in 6GiB or "
                              "800MiB",
                              text);
    return TP_OK;
}

static tp_status read_sizes(const tp_config *config, tp_train_options *o, tp_error *err)
{
    TP_TRY(read_size(config, "engine.memory_limit", o->engine.memory_limit,
                     &o->engine.memory_limit_bytes, err));
    TP_TRY(read_size(config, "policy.train_mb_memory", o->policy.train_mb_memory,
                     &o->policy.train_mb_memory_bytes, err));
    return read_size(config, "data.cache_limit", o->data.cache_limit, &o->data.cache_limit_bytes,
                     err);
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
    const tp_data_source_options *train = &o->data.train;
    bool is_generated = train->dataset_name && !strcmp(train->dataset_name, "arithmetic");
    if (trains_tokenizer && !is_generated && (train->data_path || train->dataset_name))
        return tp_config_fail(config, "policy.tokenizer.train_vocab_size", err,
                              "works with the generated corpus; for text files run 'temper "
                              "tokenizer DIR FILE...' and set policy.tokenizer.name=DIR");
    return TP_OK;
}

static tp_status check_holds(const tp_config *config, const char *key, int64_t tokens,
                             int64_t length, tp_error *err)
{
    if (tokens >= length)
        return TP_OK;
    return tp_config_fail(config, key, err,
                          "%lld tokens do not hold a sequence of "
                          "policy.max_total_sequence_length, %lld",
                          (long long)tokens, (long long)length);
}

static tp_status check_batches(const tp_config *config, const tp_train_options *o, tp_error *err)
{
    int64_t length = o->policy.max_total_sequence_length;
    if (o->policy.packing.enabled && o->policy.dynamic_batching.enabled)
        return tp_config_fail(config, "policy.dynamic_batching.enabled", err,
                              "packing and dynamic batching exclude each other; set "
                              "policy.sequence_packing.enabled=false");
    if (o->policy.packing.enabled)
        TP_TRY(check_holds(config, "policy.sequence_packing.train_mb_tokens",
                           o->policy.packing.train_mb_tokens, length, err));
    if (o->policy.dynamic_batching.enabled)
        TP_TRY(check_holds(config, "policy.dynamic_batching.train_mb_tokens",
                           o->policy.dynamic_batching.train_mb_tokens, length, err));
    if (isfinite(o->policy.clip_grad_value) && isfinite(o->policy.adaptive_clip_factor))
        return tp_config_fail(config, "policy.adaptive_clip_factor", err,
                              "clipping by value and adaptive clipping exclude each other; set "
                              "policy.clip_grad_value=null");
    bool restores =
        o->train.nonfinite_policy == TP_BAD_RESTORE || o->train.spike_policy == TP_BAD_RESTORE + 1;
    if (restores && !o->checkpointing.enabled)
        return tp_config_fail(config, "checkpointing.enabled", err,
                              "must be true where a bad step goes back to a checkpoint "
                              "(train.nonfinite_policy, train.spike_policy)");
    return TP_OK;
}

static tp_status check_data(const tp_config *config, const tp_train_options *o, tp_error *err)
{
    const tp_data_source_options *train = &o->data.train;
    if (o->algorithm->takes_named_data && (train->data_path || train->dataset_name))
        return TP_OK; /* an environment may bring questions of its own */
    bool is_generated = train->dataset_name && !strcmp(train->dataset_name, "arithmetic");
    if (!train->data_path && !is_generated)
        return tp_config_fail(config, "data.train.data_path", err,
                              "must be set to a JSONL file, or data.train.dataset_name to "
                              "arithmetic%s",
                              train->dataset_name ? "; named data sets are not downloaded" : "");
    const char *operators = o->data.arithmetic.of.operators;
    if (!operators || !*operators || operators[strspn(operators, "+-*")])
        return tp_config_fail(config, "data.arithmetic.operators", err,
                              "expected one or more of + - *, as in \"+-\"");
    return TP_OK;
}

static tp_status check_dump(const tp_config *config, const tp_train_options *o, tp_error *err)
{
    for (size_t i = 0; i < o->engine.dump.n; i++) {
        TP_OWN(tp_buf) known = {0};
        const char *stage = o->engine.dump.v[i];
        if (!tp_program_is_stage(stage, &known))
            return tp_config_fail(config, "engine.dump", err,
                                  "there is no stage '%.100s'; known: %s", stage, known.data);
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

/* What may rank checkpoints: NeMo RL's names. */
static tp_status check_metric(const tp_config *config, tp_train_options *o, tp_error *err)
{
    const char *metric = o->checkpointing.metric_name;
    char known[160] = "";
    size_t used = 0;
    o->ranking = TP_RANK_BY_AGE;
    for (const tp_algorithm_ranking *r = o->algorithm->rankings; metric && r->name; r++) {
        if (strcmp(metric, r->name) == 0) {
            o->ranking = r->ranking;
            return TP_OK;
        }
        used +=
            (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", r->name);
    }
    return metric ? tp_config_fail(config, "checkpointing.metric_name", err,
                                   "\"%.100s\" ranks no checkpoints of %s; known: %s, or null for "
                                   "the newest",
                                   metric, o->algorithm->name, known)
                  : TP_OK;
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
    TP_TRY(find_algorithm(config, &o.algorithm, err));
    TP_TRY(tp_megatron_adopt(config, err));
    o.policy.optimizer.kind = optimizer_of(config);
    TP_FREED tp_option *table = tp_train_options_of(o.algorithm, o.policy.optimizer.kind, &n);
    TP_TRY(tp_level_apply(config, table, n, err));
    TP_TRY(tp_config_bind(config, table, n, &o, err));
    if (tp_optimizer_names[o.policy.optimizer.name].kind != o.policy.optimizer.kind)
        return tp_config_fail(config, "policy.optimizer.name", err,
                              "must be a name, no reference: its kwargs follow from it");
    TP_TRY(tp_megatron_read(config, &o, err));
    replace_nulls(&o);
    TP_TRY(check_name(config, &o, err));
    TP_TRY(read_recompute(config, &o, err));
    TP_TRY(tp_profile_bind(config, &o, err));
    TP_TRY(read_save_by(config, &o, err));
    TP_TRY(read_sizes(config, &o, err));
    TP_TRY(check_model(config, &o, err));
    TP_TRY(tp_peft_bind(config, &o, err));
    TP_TRY(check_batches(config, &o, err));
    TP_TRY(check_metric(config, &o, err));
    if (o.algorithm->generates)
        TP_TRY(tp_config_refuse_empty(config, "policy.generation.stop_strings",
                                      &o.generation.stop_strings, err));
    if (o.policy.optimizer.kind->check)
        TP_TRY(o.policy.optimizer.kind->check(config, &o.policy.optimizer, err));
    if (o.algorithm->check)
        TP_TRY(o.algorithm->check(config, &o, err));
    TP_TRY(check_schedule(config, &o, err));
    TP_TRY(check_dump(config, &o, err));
    *ret = o;
    return TP_OK;
}

tp_status tp_train_options_check_files(const tp_config *config, const tp_train_options *o,
                                       tp_error *err)
{
    size_t n;
    TP_FREED tp_option *table = tp_train_options_of(o->algorithm, o->policy.optimizer.kind, &n);
    bool is_random = o->policy.init == TP_INIT_RANDOM;
    TP_OWN(tp_buf) missing = {0};
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
            remedy = TP_MODEL_REMEDY;
        tp_config_check_path(config, name, remedy, &missing);
    }
    return missing.len ? tp_fail_list(err, TP_ERR_IO, missing.data) : TP_OK;
}

tp_status tp_train_options_bind(tp_config *config, tp_train_options *ret, tp_error *err)
{
    tp_train_options o;
    TP_TRY(tp_train_options_bind_sizes(config, &o, err));
    TP_TRY(check_data(config, &o, err));
    *ret = o;
    return TP_OK;
}
