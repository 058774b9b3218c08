/* profile_data.c - samples of recorded steps, summed up by operator, phase and memory. */
#include "cli/profile_data.h"

#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/platform.h"

static double *series(int64_t n)
{
    double *v = calloc((size_t)n + 1, sizeof *v);
    TP_ASSERT(v);
    return v;
}

void tp_profile_data_init(tp_profile_data *d, int64_t warmup, int64_t n, int64_t recorded)
{
    *d = (tp_profile_data){.warmup = warmup, .n = n, .recorded = recorded, .mfu = NAN};
    double **all[] = {&d->step_s, &d->used_tokens,  &d->trained_tokens, &d->padded_tokens,
                      &d->wait_s, &d->memory_bytes, &d->rss_bytes};
    for (size_t i = 0; i < TP_COUNTOF(all); i++)
        *all[i] = series(n);
    for (int k = 0; k < TP_MEM_KINDS; k++)
        d->kind_bytes[k] = series(n);
    for (int k = 0; k < TP_TIME_COUNT; k++)
        d->phase_s[k] = series(n);
}

void tp_profile_data_release(tp_profile_data *d)
{
    double *all[] = {d->step_s, d->used_tokens,  d->trained_tokens, d->padded_tokens,
                     d->wait_s, d->memory_bytes, d->rss_bytes};
    for (size_t i = 0; i < TP_COUNTOF(all); i++)
        free(all[i]);
    for (int k = 0; k < TP_MEM_KINDS; k++)
        free(d->kind_bytes[k]);
    for (int k = 0; k < TP_TIME_COUNT; k++)
        free(d->phase_s[k]);
    for (int k = 0; k < d->n_ops; k++)
        free(d->ops[k].s);
    *d = (tp_profile_data){0};
}

/* ---- steps ---- */

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec * 1e-6 +
           (double)u.ru_stime.tv_sec + (double)u.ru_stime.tv_usec * 1e-6;
}

static double resident_bytes(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f)
        return NAN;
    if (fscanf(f, "%*d %ld", &pages) != 1)
        pages = -1;
    fclose(f);
    return pages < 0 ? NAN : (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static tp_profile_op *find_op(tp_profile_data *d, const char *part, const tp_launch_info *l)
{
    char name[48];
    snprintf(name, sizeof name, "%s%s", tp_ops[l->op]->name, l->is_clone ? " (again)" : "");
    for (int i = 0; i < d->n_ops; i++)
        if (strcmp(d->ops[i].name, name) == 0 && strcmp(d->ops[i].part, part) == 0)
            return &d->ops[i];
    TP_ASSERT(d->n_ops < TP_PROFILE_OPS);
    tp_profile_op *op = &d->ops[d->n_ops++];
    memcpy(op->name, name, sizeof name);
    op->part = part;
    op->s = series(d->n);
    return op;
}

/* The clocks of all launches so far are taken off (sign -1) or put on step `at`.  What a launch
 * of varying rows reads is not known, nor what attention does there: its context varies too. */
static void add_launches(tp_profile_data *d, const tp_train_event *e, int64_t at, double sign)
{
    for (int p = 0; p < e->n_programs; p++) {
        const tp_exec *exec = e->programs[p].exec;
        for (size_t i = 0; i < tp_exec_launch_count(exec); i++) {
            const tp_launch_info *l = tp_exec_launch(exec, i);
            tp_profile_op *op = find_op(d, e->programs[p].part, l);
            bool is_attention = strstr(tp_ops[l->op]->name, "attention") != NULL;
            op->s[at] += sign * (double)l->ns * 1e-9;
            op->launches += sign * (double)l->count / (double)d->n;
            op->flops +=
                l->varies && is_attention ? (double)NAN : sign * l->done_flops / (double)d->n;
            op->bytes += l->varies ? (double)NAN : sign * l->done_bytes / (double)d->n;
        }
    }
}

void tp_profile_data_step(tp_profile_data *d, const tp_train_event *e, int64_t step)
{
    int64_t at = step - d->warmup - 1; /* of the timed ones */
    if (at >= 0 && at < d->n) {
        const tp_mem_stats *m = &e->memory;
        d->step_s[at] = tp_metric_latest(e->metrics, "timing/train/total_step_time");
        d->wait_s[at] = tp_metric_latest(e->metrics, "timing/train/data_processing");
        d->used_tokens[at] = (double)e->used_tokens;
        d->trained_tokens[at] = (double)e->trained_tokens;
        d->padded_tokens[at] = (double)e->padded_tokens;
        d->memory_bytes[at] = (double)m->total_current;
        d->rss_bytes[at] = resident_bytes();
        double mfu = tp_metric_latest(e->metrics, "train/train_fp_utilization");
        d->mfu = isnan(d->mfu) ? mfu / (double)d->n : d->mfu + mfu / (double)d->n;
        for (int k = 0; k < TP_MEM_KINDS; k++)
            d->kind_bytes[k][at] = (double)m->current[k];
        for (int k = 0; k < TP_TIME_COUNT; k++)
            d->phase_s[k][at] += e->phase_s[k];
        add_launches(d, e, at, 1);
        d->n_done = at + 1;
    }
    if (at + 1 >= 0 && at + 1 < d->n) { /* where the next one begins */
        for (int k = 0; k < TP_TIME_COUNT; k++)
            d->phase_s[k][at + 1] -= e->phase_s[k];
        add_launches(d, e, at + 1, -1);
    }
    if (at == -1) {
        d->cpu_s = -cpu_seconds();
        d->wall_s = -e->elapsed_s;
    }
    if (at + 1 == d->n) {
        d->cpu_s += cpu_seconds();
        d->wall_s += e->elapsed_s;
    }
}

void tp_profile_data_finish(tp_profile_data *d, const tp_train_event *e)
{
    const tp_session_plan *plan = &e->plan->session;
    d->peak_bytes = e->memory.total_peak;
    d->planned_bytes = e->plan->peak_bytes;
    d->activation_bytes = plan->bytes[TP_MEM_ACTIVATIONS];
    d->live_activation_bytes = plan->activation_live_bytes;
    d->recompute_share = plan->train_flops > 0 ? plan->recompute_flops / plan->train_flops : 0;
    d->threads = tp_device_threads(tp_session_get_options(e->session)->device);
    d->is_bf16 = tp_session_get_options(e->session)->compute_dtype == TP_DTYPE_BF16;
    d->parameters = tp_model_param_count(tp_session_model(e->session));
}

tp_share tp_profile_op_share(const tp_profile_data *d, const tp_machine *m, const tp_profile_op *op,
                             double seconds)
{
    tp_dtype dtype = d->is_bf16 ? TP_DTYPE_BF16 : TP_DTYPE_F32;
    return tp_machine_share(m, dtype, op->flops, op->bytes, seconds);
}

double tp_profile_op_limit(const tp_profile_data *d, const tp_machine *m, const tp_profile_op *op)
{
    return tp_profile_op_share(d, m, op, 1).share; /* least time over one second */
}
