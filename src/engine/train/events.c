/* events.c - what a run's observers are told, and when. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/platform.h"
#include "base/working.h"
#include "engine/train/trainer_internal.h"
#include "stats/descriptive.h"

/* ---- memory ---- */

tp_mem_stats tp_trainer_memory(const trainer *t)
{
    tp_mem_stats s = tp_mem_get_stats();
    const tp_mem_stats *before = &t->memory_before;
    for (int k = 0; k < TP_MEM_KINDS; k++) {
        s.current[k] -= TP_MIN(s.current[k], before->current[k]);
        s.peak[k] -= TP_MIN(s.peak[k], before->current[k]);
    }
    s.total_current -= TP_MIN(s.total_current, before->total_current);
    s.total_peak -= TP_MIN(s.total_peak, before->total_current);
    s.n_allocs -= before->n_allocs;
    return s;
}

/* ---- events ---- */

/* Median of the last steps times what is left; the interval from their quartiles. */
static void estimate_end(const trainer *t, tp_train_event *e)
{
    double sorted[RECENT_STEPS];
    int n = t->n_recent < RECENT_STEPS ? t->n_recent : RECENT_STEPS;
    e->eta_s = e->eta_low_s = e->eta_high_s = NAN;
    if (n == 0)
        return;
    memcpy(sorted, t->recent_step_s, (size_t)n * sizeof *sorted);
    tp_sort(sorted, (size_t)n);
    double left = (double)(t->max_steps - t->state.step);
    e->eta_s = sorted[n / 2] * left;
    e->eta_low_s = sorted[n / 4] * left;
    e->eta_high_s = sorted[(3 * n) / 4] * left;
}

double tp_trainer_mean_step(const trainer *t)
{
    return t->n_recent > 0 ? t->step_phase_s / (double)t->n_recent : NAN;
}

static void list_programs(const trainer *t, tp_train_event *e)
{
    const char *eval = t->a->eval_part ? t->a->eval_part : "validation";
    const tp_train_program own[] = {
        {eval, t->session ? tp_session_exec(t->session, "eval") : NULL},
        {"train", t->session ? tp_session_exec(t->session, "train") : NULL},
        {"update", t->session ? tp_session_exec(t->session, "norm") : NULL},
        {"update", t->session ? tp_session_exec(t->session, "clip") : NULL},
        {"update", t->session ? tp_session_exec(t->session, "update") : NULL}};
    int n = t->a->programs && t->own ? t->a->programs(t, e->programs) : 0;
    for (size_t i = 0; i < TP_COUNTOF(own); i++)
        if (own[i].exec)
            e->programs[n++] = own[i];
    e->n_programs = n;
}

void tp_trainer_count_launches(const trainer *t, bool are_counted)
{
    for (int g = 0; g < tp_program_count(t->graphs.program); g++)
        tp_exec_set_counted(tp_program_exec(t->graphs.program, g), are_counted);
}

void tp_trainer_take_graphs(trainer *t)
{
    t->session = t->graphs.session;
    t->device = t->graphs.device;
    t->counted_steps = 0;
    tp_trainer_count_launches(t, false);
}

tp_train_event tp_trainer_event(trainer *t, tp_train_event_kind kind)
{
    tp_train_event e = {.kind = kind,
                        .step = t->state.step,
                        .metrics = &t->metrics,
                        .algorithm = t->o->algorithm,
                        .is_packed = tp_trainer_is_packed(t->o),
                        .run_dir = t->run ? tp_run_dir(t->run) : "",
                        .run_name = t->run ? tp_run_name(t->run) : "",
                        .run_id = t->run ? tp_run_id(t->run) : "",
                        .model_name = t->o->policy.model_name ? t->o->policy.model_name
                                                              : t->o->policy.model_config,
                        .attempt = t->run ? tp_run_attempt(t->run) : 1,
                        .first_step = t->first_step,
                        .max_steps = t->max_steps,
                        .best_metric = t->state.best_metric,
                        .counted_steps = t->counted_steps,
                        .mean_step_s = tp_trainer_mean_step(t),
                        .elapsed_s = tp_clock_s() - t->started_s,
                        .memory = tp_trainer_memory(t),
                        .plan = &t->plan,
                        .levers = &t->levers,
                        .last_checkpoint_step = t->last_checkpoint_step,
                        .checkpoint_bytes = t->checkpoint_bytes,
                        .skipped = t->state.skipped,
                        .session = t->session,
                        .custom = &t->custom,
                        .profile = t->profile.is_done ? &t->profile : NULL};
    tp_phases_wall(&t->phases);
    for (int i = 0; i < TP_TIME_COUNT; i++)
        e.phase_s[i] = (double)t->phases.ns[i] * 1e-9;
    estimate_end(t, &e);
    list_programs(t, &e);
    return e;
}

void tp_trainer_send(const trainer *t, const tp_train_event *event)
{
    if (t->hooks->observe)
        t->hooks->observe(t->hooks->user, event);
}

/* ---- what takes long ---- */

void tp_trainer_working(trainer *t, const char *what, uint64_t done, uint64_t total)
{
    enum { PERIOD_S = 1 };
    double now = tp_clock_s();
    if (strncmp(t->work.what, what, sizeof t->work.what - 1) != 0 || done < t->work.done) {
        snprintf(t->work.what, sizeof t->work.what, "%s", what);
        t->work.begin_s = t->work.told_s = now;
    }
    t->work.done = done;
    if (now - t->work.begin_s < TP_WORK_SILENT_S || now - t->work.told_s < PERIOD_S)
        return;
    t->work.told_s = now;
    tp_train_event event = {.kind = TP_EVENT_WORKING,
                            .text = t->work.what,
                            .step = t->state.step,
                            .work_s = now - t->work.begin_s,
                            .work_share = total ? (double)done / (double)total : NAN};
    tp_trainer_send(t, &event);
}

void tp_trainer_stepping(trainer *t, const char *part, uint64_t done, uint64_t total)
{
    char what[128];
    snprintf(what, sizeof what, "step %lld%s%s", (long long)t->state.step + 1, part ? ", " : "",
             part ? part : "");
    tp_trainer_working(t, what, done, total);
}

void tp_trainer_notice(const trainer *t, const char *fmt, ...)
{
    char text[8192];
    TP_FORMAT(text, fmt);
    tp_train_event event = {.kind = TP_EVENT_NOTICE, .text = text, .step = t->state.step};
    tp_trainer_send(t, &event);
}
