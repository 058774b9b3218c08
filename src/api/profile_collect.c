/* profile_collect.c - the figures of a profile, from the events of a training. */
#include "api/profile.h"

#include <math.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/limits.h"

void tp_profile_collect_begin(tp_profile_data *d, int64_t warmup, int64_t n, int64_t recorded)
{
    static const char period[] = "longer periods (val_period, save_period)";
    static const char *const overheads[TP_TIME_COUNT] = {
        [TP_TIME_LOGGING] = "a faster disk for run.dir, or longer steps",
        [TP_TIME_CHECKPOINT] = period,
        [TP_TIME_VALIDATION] = period,
        [TP_TIME_UNACCOUNTED] = period};
    tp_profile_data_init(d, warmup, n, recorded);
    for (int k = 0; k < TP_MEM_KINDS; k++)
        tp_profile_add_kind(d, tp_mem_kind_name((tp_mem_kind)k), tp_mem_kind_title((tp_mem_kind)k));
    for (int k = 0; k < TP_TIME_COUNT; k++)
        tp_profile_add_phase(d, tp_time_name((tp_time_phase)k), overheads[k]);
}

static tp_profile_op *op_of(tp_profile_data *d, const char *part, const tp_launch_info *l)
{
    char name[48];
    snprintf(name, sizeof name, "%s%s", tp_ops[l->op]->name, l->is_clone ? " (again)" : "");
    tp_profile_op *op = tp_profile_find_op(d, name, part);
    op->is_again = l->is_clone;
    return op;
}

/* The clocks of all launches so far are taken off (sign -1) or put on step `at`. */
static void add_launches(tp_profile_data *d, const tp_train_event *e, int64_t at, double sign)
{
    for (int p = 0; p < e->n_programs; p++) {
        const tp_exec *exec = e->programs[p].exec;
        for (size_t i = 0; i < tp_exec_launch_count(exec); i++) {
            const tp_launch_info *l = tp_exec_launch(exec, i);
            tp_profile_op *op = op_of(d, e->programs[p].part, l);
            double known = tp_launch_is_counted(l) ? sign / (double)d->n : NAN;
            op->s[at] += sign * (double)l->ns * 1e-9;
            op->launches += sign * (double)l->count / (double)d->n;
            op->flops += known * l->done_flops;
            op->bytes += known * l->done_bytes;
        }
    }
}

void tp_profile_collect(tp_profile_data *d, const tp_train_event *e, int64_t step)
{
    int64_t at = step - d->warmup - 1; /* of the timed ones */
    if (at >= 0 && at < d->n) {
        const tp_mem_stats *m = &e->memory;
        d->step_s[at] = tp_metric_latest(e->metrics, "timing/train/total_step_time");
        d->wait_s[at] = tp_metric_latest(e->metrics, "timing/train/data_processing");
        d->used_tokens[at] = (double)e->used_tokens;
        d->trained_tokens[at] = (double)e->trained_tokens;
        d->samples[at] = e->custom->stats[TP_CUSTOM_BATCH].last;
        d->padded_tokens[at] = (double)e->padded_tokens;
        d->memory_bytes[at] = (double)m->total_current;
        d->rss_bytes[at] = tp_limits_resident();
        double mfu = tp_metric_latest(e->metrics, "train/train_fp_utilization");
        d->mfu = isnan(d->mfu) ? mfu / (double)d->n : d->mfu + mfu / (double)d->n;
        for (int k = 0; k < TP_MEM_KINDS; k++)
            d->kinds[k].bytes[at] = (double)m->current[k];
        for (int k = 0; k < TP_TIME_COUNT; k++)
            d->phases[k].s[at] += e->phase_s[k];
        add_launches(d, e, at, 1);
        d->n_done = at + 1;
    }
    if (at + 1 >= 0 && at + 1 < d->n) { /* where the next one begins */
        for (int k = 0; k < TP_TIME_COUNT; k++)
            d->phases[k].s[at + 1] -= e->phase_s[k];
        add_launches(d, e, at + 1, -1);
    }
    if (at == -1) {
        d->cpu_s = -tp_process_cpu_s();
        d->wall_s = -e->elapsed_s;
    }
    if (at + 1 == d->n) {
        d->cpu_s += tp_process_cpu_s();
        d->wall_s += e->elapsed_s;
    }
}

void tp_profile_collect_end(tp_profile_data *d, const tp_train_event *e, const tp_machine *machine)
{
    const tp_session_plan *plan = &e->plan->session;
    const tp_session_options *o = tp_session_get_options(e->session);
    d->peak_bytes = e->memory.total_peak;
    d->planned_bytes = e->plan->peak_bytes;
    d->activation_bytes = plan->activation_bytes;
    d->live_activation_bytes = plan->activation_live_bytes;
    d->recompute_share = plan->train_flops > 0 ? plan->recompute_flops / plan->train_flops : 0;
    d->keeps_padding = o->keeps_padding;
    d->is_packed = e->is_packed;
    d->threads = tp_device_threads(o->compile.device);
    d->has_best_isa = tp_cpu_isa() == tp_cpu_detect();
    d->has_all_threads = d->threads >= tp_cpu_count();
    d->recomputes_selectively = o->compile.passes.recompute == TP_RECOMPUTE_SELECTIVE;
    d->parameters = tp_model_param_count(tp_session_model(e->session));
    d->machine = machine ? machine->fingerprint : NULL;
    for (int i = 0; machine && i < d->n_ops; i++) {
        tp_profile_op *op = &d->ops[i];
        if (isnan(op->flops) || isnan(op->bytes))
            continue;
        op->arithmetic_s =
            op->flops / tp_machine_unit_flops(machine, o->compile.passes.compute_dtype);
        op->limit_s = fmax(op->arithmetic_s, op->bytes / machine->copy_bytes);
    }
}
