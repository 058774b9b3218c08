/* schedule.c - torch's learning-rate schedules in closed form.  What is accepted, and with
 * which values, is the table schedule.def. */
#include "engine/train/schedule.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/platform.h"

enum type { REAL, FACTOR, WHOLE };

static const struct {
    const char *name;
    int kind;
} known[] = {
#define SCHEDULE(name, kind) {name, TP_SCHEDULE_##kind},
#define ARGUMENT(...)
#include "engine/train/schedule.def"
#undef SCHEDULE
#undef ARGUMENT
};

static const struct {
    int kind;
    const char *key;
    size_t offset;
    enum type type;
    double fallback, low, high;
    const char *range;
} arguments[] = {
#define SCHEDULE(...)
#define ARGUMENT(kind, key, field, type, fallback, low, high, range) \
    {TP_SCHEDULE_##kind, key, offsetof(tp_schedule_part, field), type, fallback, low, high, range},
#include "engine/train/schedule.def"
#undef SCHEDULE
#undef ARGUMENT
};

static bool allows(size_t a, double v)
{
    bool is_low = arguments[a].type == FACTOR ? v > arguments[a].low : v >= arguments[a].low;
    return is_low && v <= arguments[a].high && (arguments[a].type != WHOLE || v == floor(v));
}

static tp_status read_argument(const tp_json *kwargs, const char *name, size_t a,
                               tp_schedule_part *part, tp_error *err)
{
    const tp_json *v = tp_json_get(kwargs, arguments[a].key);
    double value = arguments[a].fallback;
    if (!v && isnan(value))
        return tp_fail(err, TP_ERR_CONFIG, "policy.scheduler: %s needs '%s', %s", name,
                       arguments[a].key, arguments[a].range);
    if (v && (!tp_json_f64(v, &value) || !allows(a, value)))
        return tp_fail(err, TP_ERR_CONFIG, "policy.scheduler: '%s' of %s must be %s",
                       arguments[a].key, name, arguments[a].range);
    *(double *)((char *)part + arguments[a].offset) = value;
    return TP_OK;
}

static bool takes(int kind, tp_slice key)
{
    for (size_t a = 0; a < TP_COUNTOF(arguments); a++)
        if (arguments[a].kind == kind && tp_slice_is(key, arguments[a].key))
            return true;
    return false;
}

static tp_status read_arguments(const tp_json *kwargs, const char *name, int kind,
                                tp_schedule_part *ret, tp_error *err)
{
    if (kwargs && kwargs->type != TP_JSON_OBJECT && kwargs->type != TP_JSON_NULL)
        return tp_fail(err, TP_ERR_CONFIG, "policy.scheduler: kwargs of %s must be a mapping",
                       name);
    for (const tp_json *m = kwargs ? kwargs->child : NULL; m; m = m->next)
        if (!takes(kind, m->key))
            return tp_fail(err, TP_ERR_CONFIG, "policy.scheduler: %s does not take '%s'", name,
                           m->key.data);
    *ret = (tp_schedule_part){.kind = (unsigned)kind};
    for (size_t a = 0; a < TP_COUNTOF(arguments); a++)
        if (arguments[a].kind == kind)
            TP_TRY(read_argument(kwargs, name, a, ret, err));
    return TP_OK;
}

/* "LinearLR, ConstantLR, ..." */
static const char *known_names(char *out, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < TP_COUNTOF(known) && at < n; i++)
        at += (size_t)snprintf(out + at, n - at, "%s%s", i ? ", " : "", known[i].name);
    return out;
}

static tp_status parse_part(const tp_json *item, tp_schedule_part *ret, tp_error *err)
{
    char names[128];
    const char *name = tp_json_str(tp_json_get(item, "name"));
    if (!name)
        return tp_fail(err, TP_ERR_CONFIG, "policy.scheduler: each entry needs a name");
    for (const tp_json *m = item->child; m; m = m->next)
        if (!tp_slice_is(m->key, "name") && !tp_slice_is(m->key, "kwargs"))
            return tp_fail(err, TP_ERR_CONFIG,
                           "policy.scheduler: '%s' beside %s; an entry is {name, kwargs}",
                           m->key.data, name);
    const char *dot = strrchr(name, '.');
    const char *leaf = dot ? dot + 1 : name;
    for (size_t i = 0; i < TP_COUNTOF(known); i++)
        if (strcmp(known[i].name, leaf) == 0)
            return read_arguments(tp_json_get(item, "kwargs"), leaf, known[i].kind, ret, err);
    return tp_fail(err, TP_ERR_CONFIG, "policy.scheduler: '%s' is not supported; supported are %s",
                   leaf, known_names(names, sizeof names));
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
            if (milestones && !tp_json_get(item, "name")) {
                TP_TRY(parse_milestones(milestones, &s, err));
                has_milestones = true;
                continue;
            }
            if (s.n == TP_SCHEDULE_MAX)
                return tp_fail(err, TP_ERR_CONFIG, "policy.scheduler: more than %d entries",
                               TP_SCHEDULE_MAX);
            TP_TRY(parse_part(item, &s.parts[s.n++], err));
        }
        if (s.n == 0)
            return tp_fail(err, TP_ERR_CONFIG,
                           "policy.scheduler: a list without a schedule; null "
                           "keeps the rate constant");
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
