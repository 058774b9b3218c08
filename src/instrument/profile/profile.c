/* profile.c - memory for the figures of profiled steps. */
#include "instrument/profile/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "stats/descriptive.h"

static double *series(int64_t n)
{
    double *v = tp_new((size_t)n + 1, sizeof *v);
    return v;
}

void tp_profile_data_init(tp_profile_data *d, int64_t warmup, int64_t n, int64_t recorded)
{
    *d = (tp_profile_data){.warmup = warmup, .n = n, .recorded = recorded, .mfu = (double)NAN};
    double **all[] = {&d->step_s,  &d->used_tokens, &d->trained_tokens, &d->padded_tokens,
                      &d->samples, &d->wait_s,      &d->memory_bytes,   &d->rss_bytes};
    for (size_t i = 0; i < TP_COUNTOF(all); i++)
        *all[i] = series(n);
}

void tp_profile_data_release(tp_profile_data *d)
{
    double *all[] = {d->step_s,  d->used_tokens, d->trained_tokens, d->padded_tokens,
                     d->samples, d->wait_s,      d->memory_bytes,   d->rss_bytes};
    for (size_t i = 0; i < TP_COUNTOF(all); i++)
        free(all[i]);
    for (int k = 0; k < d->n_kinds; k++)
        free(d->kinds[k].bytes);
    for (int k = 0; k < d->n_phases; k++)
        free(d->phases[k].s);
    for (int k = 0; k < d->n_ops; k++)
        free(d->ops[k].s);
    *d = (tp_profile_data){0};
}

void tp_profile_add_phase(tp_profile_data *d, const char *name, const char *overhead)
{
    TP_ASSERT(d->n_phases < TP_PROFILE_PHASES);
    d->phases[d->n_phases++] = (tp_profile_phase){name, series(d->n), overhead};
}

void tp_profile_add_kind(tp_profile_data *d, const char *name, const char *title)
{
    TP_ASSERT(d->n_kinds < TP_PROFILE_KINDS);
    d->kinds[d->n_kinds++] = (tp_profile_kind){name, title, series(d->n)};
}

tp_profile_op *tp_profile_find_op(tp_profile_data *d, const char *name, const char *part)
{
    for (int i = 0; i < d->n_ops; i++)
        if (strcmp(d->ops[i].name, name) == 0 && strcmp(d->ops[i].part, part) == 0)
            return &d->ops[i];
    TP_ASSERT(d->n_ops < TP_PROFILE_OPS);
    tp_profile_op *op = &d->ops[d->n_ops++];
    *op = (tp_profile_op){
        .part = part, .s = series(d->n), .limit_s = (double)NAN, .arithmetic_s = (double)NAN};
    snprintf(op->name, sizeof op->name, "%s", name);
    return op;
}

double tp_profile_wall_s(const tp_profile_data *d)
{
    double wall = 0;
    for (int k = 0; k < d->n_phases; k++)
        wall += tp_mean(d->phases[k].s, (size_t)d->n_done);
    return wall;
}
