#include "engine/train/schedule.h"

#include <math.h>
#include <string.h>

static double number(const tp_json *kwargs, const char *key, double otherwise)
{
    double v;
    return tp_json_f64(tp_json_get(kwargs, key), &v) ? v : otherwise;
}

static const struct {
    const char *name;
    int kind;
    const char *keys[4];
} known[] = {
    {"LinearLR", TP_SCHEDULE_LINEAR, {"start_factor", "end_factor", "total_iters", NULL}},
    {"ConstantLR", TP_SCHEDULE_CONSTANT, {"factor", "total_iters", NULL}},
    {"CosineAnnealingLR", TP_SCHEDULE_COSINE, {"T_max", "eta_min", NULL}},
    {"StepLR", TP_SCHEDULE_STEP, {"step_size", "gamma", NULL}},
    {"ExponentialLR", TP_SCHEDULE_EXPONENTIAL, {"gamma", NULL}},
};

static tp_status check_kwargs(const tp_json *kwargs, size_t which, tp_error *err)
{
    for (const tp_json *m = kwargs ? kwargs->child : NULL; m; m = m->next) {
        bool found = false;
        for (int k = 0; k < 4 && known[which].keys[k]; k++)
            found |= tp_slice_is(m->key, known[which].keys[k]);
        if (!found)
            return tp_fail(err, TP_ERR_CONFIG, "policy.scheduler: %s does not take '%s'",
                           known[which].name, m->key.data);
        double v;
        if (!tp_json_f64(m, &v) || !isfinite(v))
            return tp_fail(err, TP_ERR_CONFIG, "policy.scheduler: '%s' of %s must be a number",
                           m->key.data, known[which].name);
    }
    return TP_OK;
}

static tp_status parse_part(const tp_json *item, tp_schedule_part *ret, tp_error *err)
{
    const char *name = tp_json_str(tp_json_get(item, "name"));
    const tp_json *kwargs = tp_json_get(item, "kwargs");
    if (!name)
        return tp_fail(err, TP_ERR_CONFIG, "policy.scheduler: each entry needs a name");
    const char *dot = strrchr(name, '.');
    const char *leaf = dot ? dot + 1 : name;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, leaf) != 0)
            continue;
        TP_TRY(check_kwargs(kwargs, i, err));
        *ret = (tp_schedule_part){.kind = (unsigned)known[i].kind,
                                  .start_factor = number(kwargs, "start_factor", 1.0 / 3.0),
                                  .end_factor = number(kwargs, "end_factor", 1.0),
                                  .total_iters = number(kwargs, "total_iters", 5),
                                  .t_max = number(kwargs, "T_max", 1),
                                  .eta_min = number(kwargs, "eta_min", 0),
                                  .step_size = number(kwargs, "step_size", 1),
                                  .gamma = number(kwargs, "gamma", 0.1)};
        if (ret->kind == TP_SCHEDULE_CONSTANT)
            ret->start_factor = number(kwargs, "factor", 1.0 / 3.0);
        if (ret->total_iters < 1 || ret->t_max < 1 || ret->step_size < 1)
            return tp_fail(err, TP_ERR_CONFIG,
                           "policy.scheduler: a length of %s must be at least 1", leaf);
        return TP_OK;
    }
    return tp_fail(err, TP_ERR_CONFIG,
                   "policy.scheduler: '%s' is unknown; known are LinearLR, ConstantLR, "
                   "CosineAnnealingLR, StepLR, ExponentialLR",
                   leaf);
}

static tp_status parse_milestones(const tp_json *list, tp_schedule *s, tp_error *err)
{
    if (list->type != TP_JSON_ARRAY || (int)list->n != s->n - 1)
        return tp_fail(err, TP_ERR_CONFIG, "policy.scheduler: %d schedules need %d milestones",
                       s->n, s->n - 1);
    int i = 1;
    for (const tp_json *m = list->child; m; m = m->next, i++)
        if (!tp_json_i64(m, &s->begins[i]) || s->begins[i] < s->begins[i - 1])
            return tp_fail(err, TP_ERR_CONFIG,
                           "policy.scheduler: milestones must be integers that do not decrease");
    return TP_OK;
}

tp_status tp_schedule_parse(const tp_json *config, tp_schedule *ret, tp_error *err)
{
    tp_schedule s = {0};
    bool has_milestones = false;
    if (config && config->type == TP_JSON_OBJECT) {
        TP_TRY(parse_part(config, &s.parts[0], err));
        s.n = 1;
    } else if (config && config->type == TP_JSON_ARRAY) {
        for (const tp_json *item = config->child; item; item = item->next) {
            const tp_json *milestones = tp_json_get(item, "milestones");
            if (milestones) {
                TP_TRY(parse_milestones(milestones, &s, err));
                has_milestones = true;
                continue;
            }
            if (s.n == TP_SCHEDULE_MAX)
                return tp_fail(err, TP_ERR_CONFIG, "policy.scheduler: more than %d entries",
                               TP_SCHEDULE_MAX);
            TP_TRY(parse_part(item, &s.parts[s.n++], err));
        }
        if (s.n > 1 && !has_milestones)
            return tp_fail(err, TP_ERR_CONFIG,
                           "policy.scheduler: a list needs a last entry {milestones: [...]}");
    } else if (config && config->type != TP_JSON_NULL)
        return tp_fail(err, TP_ERR_CONFIG,
                       "policy.scheduler: expected {name, kwargs} or a list of them");
    *ret = s;
    return TP_OK;
}

static double part_lr(const tp_schedule_part *p, double base, double t)
{
    switch (p->kind) {
    case TP_SCHEDULE_LINEAR: {
        double done = t < p->total_iters ? t / p->total_iters : 1.0;
        return base * (p->start_factor + (p->end_factor - p->start_factor) * done);
    }
    case TP_SCHEDULE_CONSTANT:
        return t < p->total_iters ? base * p->start_factor : base;
    case TP_SCHEDULE_COSINE:
        return p->eta_min + (base - p->eta_min) * 0.5 * (1.0 + cos(M_PI * t / p->t_max));
    case TP_SCHEDULE_STEP:
        return base * pow(p->gamma, floor(t / p->step_size));
    case TP_SCHEDULE_EXPONENTIAL:
        return base * pow(p->gamma, t);
    }
    return base;
}

double tp_schedule_lr(const tp_schedule *s, double base_lr, int64_t step)
{
    if (s->n == 0)
        return base_lr;
    int i = s->n - 1;
    while (i > 0 && step < s->begins[i])
        i--;
    return part_lr(&s->parts[i], base_lr, (double)(step - s->begins[i]));
}
