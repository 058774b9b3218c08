/* megatron.c - Megatron's optimizer and schedule in the words of torch.optim.
 *
 * The rate of Megatron's scheduler at step t, W = lr_warmup_iters, D = lr_decay_iters:
 *
 *     t < W    lr_warmup_init + (lr - lr_warmup_init) t / W       LinearLR, from 0 behind a
 *                                                                 ConstantLR of one step
 *     after    constant: lr                                       ConstantLR
 *              linear:   from lr to min_lr at D, then min_lr      LinearLR
 *              cosine:   half a cosine to min_lr at D, then min_lr  CosineAnnealingLR, ConstantLR
 *
 * The values stay references into policy.megatron_cfg, so that overrides of it count. */
#include "engine/train/options.h"

#include <math.h>
#include <string.h>

#include "base/platform.h"

#define OPTIMIZER "policy.megatron_cfg.optimizer"
#define SCHEDULER "policy.megatron_cfg.scheduler"

static bool is_true(const tp_config *config, const char *path)
{
    bool value = false;
    const tp_json *v = tp_config_find(config, path);
    return v && tp_json_bool(v, &value) && value;
}

static bool is_enabled(const tp_config *config)
{
    return is_true(config, "policy.megatron_cfg.enabled");
}

static bool is_null(const tp_config *config, const char *path)
{
    const tp_json *v = tp_config_find(config, path);
    return v && v->type == TP_JSON_NULL;
}

/* Something below `v` was said on the command line. */
static bool is_from_command_line(const tp_config *config, const char *path)
{
    const tp_json *v = tp_config_find(config, path);
    if (!v)
        return false;
    if (strcmp(tp_config_origin(config, path), "command line") == 0)
        return true;
    for (const tp_json *child = v->child; v->type == TP_JSON_OBJECT && child; child = child->next) {
        TP_OWN(tp_buf) below = {0};
        tp_buf_addf(&below, "%s.%.*s", path, (int)child->key.len, child->key.data);
        if (is_from_command_line(config, below.data))
            return true;
    }
    return false;
}

/* A whole number that is there as such. */
static tp_status read_steps(const tp_config *config, const char *path, int64_t *ret, tp_error *err)
{
    const tp_json *v = tp_config_find(config, path);
    if (!v || !tp_json_i64(v, ret) || *ret < 0)
        return tp_config_fail(config, path, err, "must be a whole number of steps");
    return TP_OK;
}

static tp_status adopt_optimizer(tp_config *config, tp_error *err)
{
    const tp_json *clip = tp_config_find(config, OPTIMIZER ".clip_grad");
    double norm = 0;
    char text[100];
    const char *origin = tp_config_origin(config, OPTIMIZER);
    TP_TRY(tp_config_set(config,
                         "policy.optimizer={_override_: true, name: adamw, kwargs: {"
                         "lr: \"${" OPTIMIZER ".lr}\", "
                         "weight_decay: \"${" OPTIMIZER ".weight_decay}\", "
                         "betas: [\"${" OPTIMIZER ".adam_beta1}\", \"${" OPTIMIZER
                         ".adam_beta2}\"], eps: \"${" OPTIMIZER ".adam_eps}\"}}",
                         origin, err));
    if (!clip || !tp_json_f64(clip, &norm))
        return TP_OK; /* ${policy.max_grad_norm}, as everywhere */
    snprintf(text, sizeof text,
             norm > 0 ? "policy.max_grad_norm=%.17g" : "policy.max_grad_norm=null", norm);
    return tp_config_set(config, text, origin, err);
}

/* Parts of the schedule and the steps from which the second, third ... count. */
typedef struct {
    tp_buf parts, milestones;
} schedule_text;

static void schedule_text_release(schedule_text *s)
{
    tp_buf_release(&s->parts);
    tp_buf_release(&s->milestones);
}

static void add_part(schedule_text *s, int64_t from, const char *fmt, ...) TP_PRINTF(3, 4);
static void add_part(schedule_text *s, int64_t from, const char *fmt, ...)
{
    char text[512];
    TP_FORMAT(text, fmt);
    if (s->parts.len)
        tp_buf_addf(&s->milestones, "%s%lld", s->milestones.len ? ", " : "", (long long)from);
    tp_buf_addf(&s->parts, "%s{name: %s}", s->parts.len ? ", " : "", text);
}

static const char least_factor[] = "\"${div:${" OPTIMIZER ".min_lr}, ${" OPTIMIZER ".lr}}\"";

static tp_status add_decay(const tp_config *config, const char *style, int64_t warmup,
                           schedule_text *s, tp_error *err)
{
    int64_t end = 0;
    if (strcmp(style, "constant") == 0) {
        add_part(s, warmup, "ConstantLR, kwargs: {factor: 1.0, total_iters: 1}");
        return TP_OK;
    }
    if (strcmp(style, "linear") != 0 && strcmp(style, "cosine") != 0)
        return tp_config_fail(config, SCHEDULER ".lr_decay_style", err,
                              "\"%.60s\" is not one of constant, linear, cosine", style);
    TP_TRY(read_steps(config, SCHEDULER ".lr_decay_iters", &end, err));
    if (end <= warmup)
        return tp_config_fail(config, SCHEDULER ".lr_decay_iters", err,
                              "must be above lr_warmup_iters");
    if (*style == 'l') {
        add_part(s, warmup,
                 "LinearLR, kwargs: {start_factor: 1.0, end_factor: %s, total_iters: %lld}",
                 least_factor, (long long)(end - warmup));
        return TP_OK;
    }
    add_part(s, warmup,
             "CosineAnnealingLR, kwargs: {T_max: %lld, eta_min: \"${" OPTIMIZER ".min_lr}\"}",
             (long long)(end - warmup));
    add_part(s, end, "ConstantLR, kwargs: {factor: %s, total_iters: 1000000000}", least_factor);
    return TP_OK;
}

/* torch's LinearLR does not begin at 0: that step has a schedule of its own then. */
static void add_warmup(const tp_config *config, int64_t warmup, schedule_text *s)
{
    double init = NAN;
    const tp_json *v = tp_config_find(config, SCHEDULER ".lr_warmup_init");
    if (v && tp_json_f64(v, &init) && init == 0) {
        add_part(s, 0, "ConstantLR, kwargs: {factor: 0.0, total_iters: 1}");
        if (warmup > 1)
            add_part(s, 1,
                     "LinearLR, kwargs: {start_factor: %.17g, end_factor: 1.0, total_iters: %lld}",
                     1 / (double)warmup, (long long)warmup - 1);
        return;
    }
    add_part(s, 0,
             "LinearLR, kwargs: {start_factor: \"${div:${" SCHEDULER ".lr_warmup_init}, "
             "${" OPTIMIZER ".lr}}\", end_factor: 1.0, total_iters: %lld}",
             (long long)warmup);
}

static tp_status make_schedule(const tp_config *config, schedule_text *s, tp_error *err)
{
    int64_t warmup = 0;
    const tp_json *style = tp_config_find(config, SCHEDULER ".lr_decay_style");
    const char *name = style ? tp_json_str(style) : NULL;
    if (tp_config_find(config, SCHEDULER ".lr_warmup_iters"))
        TP_TRY(read_steps(config, SCHEDULER ".lr_warmup_iters", &warmup, err));
    if (warmup > 0)
        add_warmup(config, warmup, s);
    return add_decay(config, name ? name : "constant", warmup, s, err);
}

static tp_status adopt_scheduler(tp_config *config, tp_error *err)
{
    if (!tp_config_find(config, SCHEDULER) || is_null(config, SCHEDULER))
        return tp_config_set(config, "policy.scheduler=null", "default", err);
    TP_OWN(schedule_text) s = {0};
    TP_OWN(tp_buf) text = {0};
    TP_TRY(make_schedule(config, &s, err));
    tp_buf_addf(&text, "policy.scheduler=[%s%s%s%s]", tp_buf_str(&s.parts),
                s.milestones.len ? ", {milestones: [" : "", tp_buf_str(&s.milestones),
                s.milestones.len ? "]}" : "");
    return tp_config_set(config, tp_buf_str(&text), tp_config_origin(config, SCHEDULER), err);
}

tp_status tp_megatron_adopt(tp_config *config, tp_error *err)
{
    static const char *const own[] = {"policy.optimizer", "policy.scheduler"};
    if (!is_enabled(config)) {
        if (is_null(config, own[0]))
            return tp_config_fail(config, own[0], err,
                                  "there is no optimizer; give policy.optimizer.kwargs.lr, or "
                                  "leave the key out for the defaults");
        return TP_OK;
    }
    for (int i = 0; i < 2; i++)
        if (is_from_command_line(config, own[i]))
            return tp_config_fail(config, own[i], err,
                                  "policy.megatron_cfg is enabled, and its optimizer and scheduler "
                                  "count; set " OPTIMIZER ".lr and the like, or "
                                  "policy.megatron_cfg.enabled=false");
    if (!tp_config_find(config, OPTIMIZER) || is_null(config, OPTIMIZER))
        return tp_config_fail(config, "policy.megatron_cfg", err,
                              "is enabled and has no section optimizer");
    tp_config_note(config, OPTIMIZER ".weight_decay",
                   "Decays all weights, while Megatron leaves out biases and norms.");
    TP_TRY(adopt_optimizer(config, err));
    return adopt_scheduler(config, err);
}

/* Rates that Megatron's scheduler asserts to be no higher than lr. */
static tp_status check_rates(const tp_config *config, tp_error *err)
{
    static const char *const rates[] = {OPTIMIZER ".min_lr", SCHEDULER ".lr_warmup_init"};
    double lr = 0, rate;
    bool has_lr = tp_json_f64(tp_config_find(config, OPTIMIZER ".lr"), &lr);
    for (size_t i = 0; i < TP_COUNTOF(rates) && has_lr; i++) {
        const tp_json *v = tp_config_find(config, rates[i]);
        if (v && tp_json_f64(v, &rate) && !(rate >= 0 && rate <= lr))
            return tp_config_fail(config, rates[i], err,
                                  "must be from 0 to " OPTIMIZER ".lr, which is %g", lr);
    }
    return TP_OK;
}

/* Of weight decay that does not change Megatron takes these, and not the optimizer's. */
static tp_status check_decay(const tp_config *config, tp_error *err)
{
    static const char *const ends[] = {SCHEDULER ".start_weight_decay",
                                       SCHEDULER ".end_weight_decay"};
    double decay = 0, end = NAN;
    const tp_json *own = tp_config_find(config, OPTIMIZER ".weight_decay");
    for (size_t i = 0; i < TP_COUNTOF(ends) && own && tp_json_f64(own, &decay); i++) {
        const tp_json *v = tp_config_find(config, ends[i]);
        if (v && v->type != TP_JSON_NULL && !(tp_json_f64(v, &end) && end == decay))
            return tp_config_fail(config, ends[i], err,
                                  "must be " OPTIMIZER ".weight_decay, which is %g: weight decay "
                                  "does not change",
                                  decay);
    }
    return TP_OK;
}

tp_status tp_megatron_read(const tp_config *config, tp_train_options *o, tp_error *err)
{
    int64_t n;
    bool is_megatron = is_enabled(config);
    o->distributed.theirs_key = is_megatron ? "policy.megatron_cfg.tensor_model_parallel_size"
                                            : "policy.dtensor_cfg.tensor_parallel_size";
    const tp_json *v = tp_config_find(config, o->distributed.theirs_key);
    o->distributed.theirs = v && tp_json_i64(v, &n) && n > 1 ? n : 1;
    o->distributed.theirs_sequence =
        is_true(config, is_megatron ? "policy.megatron_cfg.sequence_parallel"
                                    : "policy.dtensor_cfg.sequence_parallel");
    o->policy.activation_checkpointing |=
        is_megatron && is_true(config, "policy.megatron_cfg.activation_checkpointing");
    if (!is_megatron)
        return TP_OK;
    TP_TRY(check_rates(config, err));
    return check_decay(config, err);
}
