/* conversions_model.c - what of another trainer takes more than one key: precision, optimizers,
 * adapters, rewards. */
#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "config/import/import_rows.h"

/* ---- optimizers ---- */

static const struct {
    const char *words, *name;
} optimizers[] = {{"adamw_torch|adamw_torch_fused|adamw_torch_xla|adamw_hf|adamw|adamw_apex_fused|"
                   "adamw_anyprecision|paged_adamw_32bit|paged_adamw",
                   "torch.optim.AdamW"},
                  {"adamw_bnb_8bit|adamw_8bit|paged_adamw_8bit", "bitsandbytes.optim.AdamW8bit"},
                  {"sgd", "torch.optim.SGD"},
                  {"adafactor", "transformers.Adafactor"}};

static const char *optimizer_of(const char *word)
{
    for (size_t i = 0; word && i < TP_COUNTOF(optimizers); i++)
        if (tp_import_one_of(word, optimizers[i].words))
            return optimizers[i].name;
    return NULL;
}

static void put_number(tp_import *im, const char *role, const char *target)
{
    char text[32];
    double v = tp_import_number(im, role);
    if (isnan(v))
        return;
    tp_json_f64_text(v, text);
    tp_import_put(im, role, target, "%s", text);
}

static void put_adam(tp_import *im)
{
    char one[32], two[32];
    double first = tp_import_number(im, "adam_beta1"), second = tp_import_number(im, "adam_beta2");
    tp_json_f64_text(isnan(first) ? 0.9 : first, one);
    tp_json_f64_text(isnan(second) ? 0.999 : second, two);
    tp_import_put(im, "adam_beta1", "policy.optimizer.kwargs.betas", "[%s, %s]", one, two);
    put_number(im, "adam_epsilon", "policy.optimizer.kwargs.eps");
}

/* Where it says nothing, and where it is auto, both trainers take bfloat16 if they can. */
static bool is_bfloat16(tp_import *im)
{
    const char *word = tp_import_word(im, "bf16");
    return !word || tp_import_one_of(word, "auto|full") || tp_import_flag(im, "bf16");
}

static void put_precision(tp_import *im)
{
    const char *dtype = tp_import_word(im, "dtype");
    bool is_half = tp_import_flag(im, "fp16"), is_brief = is_bfloat16(im);
    bool is_cast = tp_import_flag(im, "dtype_bf16") && !is_brief; /* without bf16 too */
    const char *role = is_half ? "fp16" : is_cast ? "dtype_bf16" : "bf16";
    tp_import_put(im, role, "policy.precision", "%s",
                  is_half               ? "float16"
                  : is_brief || is_cast ? "bfloat16"
                                        : "float32");
    if (dtype && tp_import_one_of(dtype, "bfloat16|float16|auto"))
        tp_import_mark(im, "dtype", TP_IMPORT_USED,
                       "Products have policy.precision; master weights stay float32, which is "
                       "finer than there.");
    else if (dtype && strcmp(dtype, "float32") != 0)
        tp_import_mark(im, "dtype", TP_IMPORT_REFUSED,
                       "Known here: auto, float32, bfloat16, float16.");
}

void tp_import_optimizer(tp_import *im)
{
    const char *word = tp_import_word(im, "optim"), *name = optimizer_of(word);
    double decay = tp_import_number(im, "weight_decay"), clip;
    put_precision(im);
    if (!name) {
        tp_import_mark(im, "optim", TP_IMPORT_REFUSED,
                       "Known here: AdamW of torch and of 8 bits, sgd, adafactor.");
        return;
    }
    tp_import_put(im, "optim", "policy.optimizer.name", "%s", name);
    put_number(im, "weight_decay", "policy.optimizer.kwargs.weight_decay");
    if (decay > 0)
        tp_import_mark(im, "weight_decay", TP_IMPORT_USED,
                       "Of norms and biases too, which transformers leaves out.");
    if (strstr(name, "Adam"))
        put_adam(im);
    if (strstr(name, "Adafactor")) {
        tp_import_put(im, "optim", "policy.optimizer.kwargs.scale_parameter", "false");
        tp_import_put(im, "optim", "policy.optimizer.kwargs.relative_step", "false");
    }
    clip = tp_import_number(im, "max_grad_norm");
    if (clip > 0)
        put_number(im, "max_grad_norm", "policy.max_grad_norm");
    else if (!isnan(clip))
        tp_import_put(im, "max_grad_norm", "policy.max_grad_norm", "null");
    bool is_new = tp_import_word(im, "activation_checkpointing") != NULL;
    const char *role = is_new ? "activation_checkpointing" : "gradient_checkpointing";
    bool again = tp_import_flag(im, role);
    tp_import_put(im, role, "policy.recompute", "%s", again ? "full" : "none");
}

/* ---- adapters ---- */

static void leave_adapter_keys(tp_import *im)
{
    static const char *const roles[] = {"lora_r",
                                        "lora_alpha",
                                        "lora_dropout",
                                        "disable_dropout",
                                        "lora_target_modules",
                                        "use_dora",
                                        "use_rslora",
                                        "bnb_4bit_quant_type",
                                        "use_bnb_nested_quant",
                                        "lora_target_linear"};
    for (size_t i = 0; i < TP_COUNTOF(roles); i++)
        if (tp_import_given(im, roles[i]))
            tp_import_mark(im, roles[i], TP_IMPORT_IDLE, "All weights are trained, no adapter.");
}

static void put_dropout(tp_import *im)
{
    if (!tp_import_flag(im, "disable_dropout")) {
        put_number(im, "lora_dropout", "policy.peft.dropout");
        return;
    }
    tp_import_put(im, "disable_dropout", "policy.peft.dropout", "0.0");
    if (tp_import_given(im, "lora_dropout"))
        tp_import_mark(im, "lora_dropout", TP_IMPORT_IDLE, "disable_dropout is true.");
}

static void put_base(tp_import *im, bool is_axolotl)
{
    bool four = tp_import_flag(im, "load_in_4bit"), eight = tp_import_flag(im, "load_in_8bit");
    const char *kind = tp_import_word(im, "bnb_4bit_quant_type");
    if (four && kind && strcmp(kind, "nf4") != 0)
        tp_import_mark(im, "bnb_4bit_quant_type", TP_IMPORT_REFUSED, "4 bits are nf4.");
    if (four && !is_axolotl && !tp_import_flag(im, "use_bnb_nested_quant"))
        tp_import_mark(im, "load_in_4bit", TP_IMPORT_REFUSED,
                       "nf4 has double quantisation here: with use_bnb_nested_quant: true it is "
                       "the same.");
    else if (four)
        tp_import_put(im, "load_in_4bit", "policy.peft.base", "nf4");
    if (eight)
        tp_import_mark(im, "load_in_8bit", TP_IMPORT_REFUSED,
                       "8 bits are rounded otherwise: policy.peft.base=int8.");
}

static void put_modules(tp_import *im)
{
    static const char target[] = "policy.peft.target_modules";
    tp_import_key *key = tp_import_role(im, "lora_target_modules");
    const tp_json *v = key ? key->value : NULL;
    if (tp_import_flag(im, "lora_target_linear"))
        tp_import_put(im, "lora_target_linear", target, "all-linear");
    else if (v && v->type == TP_JSON_ARRAY && v->n == 1)
        tp_import_put_json(im, key, target, v->child);
    else if (v && v->type != TP_JSON_NULL)
        tp_import_put_json(im, key, target, v);
    else
        tp_import_put(im, "lora_target_modules", target, "[q_proj, v_proj]");
}

void tp_import_adapter(tp_import *im)
{
    const char *adapter = tp_import_word(im, "adapter");
    bool is_axolotl = tp_import_role(im, "adapter") != NULL;
    bool is_on = adapter || tp_import_flag(im, "use_peft");
    if (adapter && !tp_import_one_of(adapter, "lora|qlora"))
        tp_import_mark(im, "adapter", TP_IMPORT_REFUSED, "Known here: lora, qlora.");
    if (!is_on) {
        leave_adapter_keys(im);
        if (tp_import_flag(im, "load_in_4bit") || tp_import_flag(im, "load_in_8bit"))
            tp_import_mark(im, tp_import_flag(im, "load_in_4bit") ? "load_in_4bit" : "load_in_8bit",
                           TP_IMPORT_REFUSED, "Only the base of an adapter is rounded.");
        return;
    }
    tp_import_put(im, is_axolotl ? "adapter" : "use_peft", "policy.peft.enabled", "true");
    put_number(im, "lora_r", "policy.peft.dim");
    put_number(im, "lora_alpha", "policy.peft.alpha");
    put_dropout(im);
    put_modules(im);
    if (tp_import_flag(im, "use_rslora"))
        tp_import_put(im, "use_rslora", "policy.peft.use_rslora", "true");
    if (tp_import_flag(im, "use_dora"))
        tp_import_put(im, "use_dora", "policy.peft.use_dora", "true");
    put_base(im, is_axolotl);
}

/* ---- rewards ---- */

static void put_loss(tp_import *im, double longest)
{
    const char *kind = tp_import_word(im, "grpo_loss");
    if (!kind || !tp_import_one_of(kind, "dapo|grpo|dr_grpo")) {
        tp_import_mark(im, "grpo_loss", TP_IMPORT_REFUSED, "Known here: dapo, grpo, dr_grpo.");
        return;
    }
    tp_import_put(im, "grpo_loss", "loss_fn.token_level_loss", "%s",
                  strcmp(kind, "grpo") ? "true" : "false");
    if (!strcmp(kind, "dr_grpo"))
        tp_import_put(im, "grpo_loss", "loss_fn.length_divisor", "%.0f", longest);
}

/* Without a number TRL has no divergence. */
static void put_divergence(tp_import *im)
{
    static const char target[] = "loss_fn.reference_policy_kl_penalty";
    if (isnan(tp_import_number(im, "beta")))
        tp_import_put(im, "beta", target, "0.0");
    else
        put_number(im, "beta", target);
}

/* What TRL weighs by the ratio of a whole answer, or divides by the number of all of them. */
static void put_answers(tp_import *im)
{
    const char *kind = tp_import_word(im, "grpo_loss"), *level = tp_import_word(im, "ratio_level");
    bool is_of_answers = level && !strcmp(level, "sequence");
    bool is_masked = tp_import_flag(im, "mask_truncated");
    bool has_bias = tp_import_flag(im, "kl_bias");
    put_divergence(im);
    tp_import_put(im, "kl_bias", "loss_fn.use_bias_correction_kl", "%s",
                  has_bias ? "true" : "false");
    tp_import_put(im, "ratio_level", "loss_fn.sequence_level_importance_ratios", "%s",
                  is_of_answers ? "true" : "false");
    tp_import_put(im, "mask_truncated", "grpo.overlong_filtering", "%s",
                  is_masked ? "true" : "false");
    if (level && !tp_import_one_of(level, "token|sequence"))
        tp_import_mark(im, "ratio_level", TP_IMPORT_REFUSED, "Known here: token, sequence.");
    else if (is_of_answers && kind && strcmp(kind, "grpo") != 0)
        tp_import_mark(im, "ratio_level", TP_IMPORT_REFUSED,
                       "One ratio per answer goes with a mean over answers: loss_type: grpo.");
    else if (is_of_answers && has_bias && tp_import_number(im, "beta") > 0)
        tp_import_mark(im, "ratio_level", TP_IMPORT_REFUSED,
                       "TRL then weighs the divergence by the ratio of the answer, which is not "
                       "done here: use_bias_correction_kl: false, or beta: 0.");
    if (is_masked && kind && strcmp(kind, "dapo") != 0)
        tp_import_mark(im, "mask_truncated", TP_IMPORT_REFUSED,
                       "TRL's mean over answers counts those that are masked, which is not done "
                       "here: loss_type: dapo.");
}

static void put_scaling(tp_import *im)
{
    const char *scale = tp_import_word(im, "scale_rewards");
    bool is_on = scale && tp_import_one_of(scale, "group|true");
    if (scale && !tp_import_one_of(scale, "group|true|none|false"))
        tp_import_mark(im, "scale_rewards", TP_IMPORT_REFUSED, "Known here: group, none.");
    tp_import_put(im, "scale_rewards", "grpo.normalize_rewards", "%s", is_on ? "true" : "false");
    tp_import_put(im, "scale_rewards", "grpo.use_leave_one_out_baseline", "false");
}

static void put_judges(tp_import *im)
{
    const tp_import_key *key = tp_import_role(im, "reward_funcs");
    const tp_json *list = key ? key->value : NULL;
    const tp_json *one = list && list->type == TP_JSON_ARRAY && list->n == 1 ? list->child : list;
    const char *name = one ? tp_json_str(one) : NULL;
    const char *weights = tp_import_word(im, "reward_weights");
    bool is_weighted = weights && !tp_import_one_of(weights, "[]|[1.0]|[1]");
    if (is_weighted)
        tp_import_mark(im, "reward_weights", TP_IMPORT_OPEN,
                       "An answer has one reward: what a judge of the section env gives.");
    else if (weights)
        tp_import_mark(im, "reward_weights", TP_IMPORT_IDLE, "%s", "");
    if (name && !strcmp(name, "accuracy_reward") && !is_weighted) {
        tp_import_put(im, "reward_funcs", "env.math", "{}");
        return;
    }
    tp_import_put(im, "reward_funcs", "env", "???");
    tp_import_mark(im, "reward_funcs", TP_IMPORT_OPEN,
                   "Functions of Python are not run: a section env says how answers are judged; "
                   "accuracy_reward is env.math.");
}

void tp_import_rewards(tp_import *im)
{
    double longest = tp_import_number(im, "max_completion_length");
    double prompt = tp_import_number(im, "max_prompt_length");
    double high = tp_import_number(im, "epsilon_high");
    longest = longest >= 1 ? floor(longest) : 512;
    prompt = prompt >= 1 ? floor(prompt) : 512;
    tp_import_put(im, "max_completion_length", "policy.generation.max_new_tokens", "%.0f", longest);
    tp_import_put(im, "max_prompt_length", "policy.max_total_sequence_length", "%.0f",
                  longest + prompt);
    put_number(im, "epsilon", "loss_fn.ratio_clip_min");
    put_number(im, isnan(high) ? "epsilon" : "epsilon_high", "loss_fn.ratio_clip_max");
    tp_import_put(im, NULL, "loss_fn.kl_input_clamp_value", "null");
    tp_import_put(im, NULL, "loss_fn.kl_output_clamp_value", "null");
    put_loss(im, longest);
    put_answers(im);
    put_scaling(im);
    put_judges(im);
}
