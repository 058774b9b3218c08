/* memory_watch.c - memory that is short: found between two steps, and what is changed then. */
#include "engine/train/memory_watch.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "engine/train/levers.h"
#include "engine/train/trainer_internal.h"

/* Reading the limits costs some files: a run of short steps has better things to do. */
static const double LOOK_EVERY_S = 1;

void tp_memory_watch_begin(trainer *t)
{
    t->memory_watch.own_before = tp_limits_own_memory();
    t->memory_watch.planned = t->plan.peak_bytes;
    t->memory_watch.acted_at = -1;
    t->memory_watch.looked_s = -INFINITY;
}

void tp_memory_watch_end(trainer *t)
{
    for (int i = 0; i < t->memory_watch.n_configs; i++)
        tp_config_release(t->memory_watch.configs[i]);
}

/* ---- is it short? ---- */

/* A run that has next to nothing of a limit cannot help, and its bits should not hang on others. */
static const double LEAST_SHARE = 0.01;

static bool is_above(const trainer *t, double used, double limit, const char *source, char why[320])
{
    if ((double)t->memory_watch.planned < LEAST_SHARE * limit)
        return false;
    double halfway = fmin(0.5 * ((double)t->memory_watch.planned + limit), 0.95 * limit);
    double most = fmax(t->o->engine.memory_watch * limit, halfway);
    if (!(used > most))
        return false;
    snprintf(why, 320, "%s of %s are in use (%s)", tp_human_bytes(used, TP_ROOM),
             tp_human_bytes(limit, TP_ROOM), source);
    return true;
}

static bool is_short(const trainer *t, char why[320])
{
    tp_limits limits;
    double most = t->o->engine.memory_limit_bytes;
    double own = tp_limits_own_memory() - t->memory_watch.own_before;
    if (isfinite(most) && is_above(t, own, most, "engine.memory_limit", why))
        return true;
    tp_limits_memory(&limits);
    for (int i = 0; i < limits.n; i++)
        if (is_above(t, limits.v[i].used, limits.v[i].value, limits.v[i].source, why))
            return true;
    return false;
}

static bool is_injected(trainer *t)
{
    const tp_f64_list *steps = &t->o->train.inject_pressure;
    tp_memory_watch *w = &t->memory_watch;
    for (size_t i = 0; i < steps->n && i < 64; i++)
        if (steps->v[i] == (double)t->state.step && !(w->injected >> i & 1)) {
            w->injected |= UINT64_C(1) << i;
            return true;
        }
    return false;
}

/* After a change a whole step is waited for; while steps are recorded graphs stay as they are. */
static bool may_look(trainer *t)
{
    tp_memory_watch *w = &t->memory_watch;
    double now = tp_clock_s();
    if (isnan(t->o->engine.memory_watch) || w->is_exhausted || t->profile.is_on ||
        t->state.step <= w->acted_at || now - w->looked_s < LOOK_EVERY_S)
        return false;
    w->looked_s = now;
    return true;
}

/* ---- what is done about it ---- */

/* The same tensors, other graphs. */
static tp_status rebuild(trainer *t, tp_error *err)
{
    tp_run_graphs old = t->graphs, graphs;
    const tp_run_graphs_options options = {
        .avg_context = t->avg_context, .tokenizer = t->tokenizer, .takes_over = &old};
    TP_TRY(tp_run_graphs_create(t->o, t->model, &options, &graphs, err));
    if (t->profile.is_done)
        tp_trace_release(); /* its sites are the old session's */
    tp_run_graphs_release(&old);
    t->graphs = graphs;
    tp_trainer_take_graphs(t);
    TP_TRY(tp_session_alloc(t->session, err));
    if (t->graphs.reference)
        TP_TRY(tp_session_alloc(t->graphs.reference, err));
    TP_TRY(tp_session_weights_changed(t->session, err));
    tp_trainer_take_scale(t);
    tp_levers_look_again(t->config, t->o, &t->levers);
    return t->a->resize ? t->a->resize(t, err) : TP_OK;
}

/* "key=value key=value" */
static tp_status set_all(tp_config *config, const char *settings, tp_error *err)
{
    tp_slice key, value;
    char one[128];
    while (tp_setting_next(&settings, &key, &value)) {
        snprintf(one, sizeof one, "%.*s=%.*s", (int)key.len, key.data, (int)value.len, value.data);
        TP_TRY(tp_config_set(config, one, "memory watch", err));
    }
    return TP_OK;
}

static tp_status bind(const trainer *t, const char *settings, tp_recipe *ret, tp_error *err)
{
    TP_TRY(tp_config_copy(t->config, &ret->config, err));
    tp_status status = set_all(ret->config, settings, err);
    if (status == TP_OK)
        status = tp_recipe_bind(ret, false, err);
    tp_recipe_place(ret, t->o);
    ret->options.said = t->o->said;
    return status;
}

/* *ret_peak: planned with the settings, which are not taken when it is not less than now. */
static tp_status change(trainer *t, const char *settings, size_t *ret_peak, tp_error *err)
{
    tp_recipe r = {0};
    tp_run_plan plan;
    tp_memory_watch *w = &t->memory_watch;
    tp_status status = bind(t, settings, &r, err);
    if (status == TP_OK)
        status = tp_run_plan_compute(&r.options, t->model, false, NULL, &plan, err);
    if (status != TP_OK || plan.peak_bytes >= w->planned) {
        *ret_peak = w->planned;
        tp_recipe_close(&r);
        return status;
    }
    w->configs[w->n_configs++] = r.config;
    w->options = r.options;
    t->config = r.config;
    t->o = &w->options;
    *ret_peak = w->planned = plan.peak_bytes;
    return rebuild(t, err);
}

static tp_watch_entry *note(trainer *t, const char *why)
{
    tp_memory_watch *w = &t->memory_watch;
    tp_watch_entry *e = &w->v[w->n++];
    *e = (tp_watch_entry){.step = t->state.step, .before = w->planned, .after = w->planned};
    snprintf(e->why, sizeof e->why, "%s", why);
    w->acted_at = t->state.step;
    w->is_exhausted = w->n == TP_WATCH_MOST;
    return e;
}

static tp_status give_up(trainer *t, const char *why, const char *because)
{
    note(t, why);
    t->memory_watch.is_exhausted = true;
    tp_trainer_notice(t, "step %lld: memory is short: %s; nothing is changed: %s",
                      (long long)t->state.step, why, because);
    return TP_OK;
}

static tp_status act(trainer *t, const char *why, tp_error *err)
{
    char before[32], after[32];
    tp_plan_remedy next;
    tp_memory_watch *w = &t->memory_watch;
    size_t used = strlen(t->state.settings);
    if (tp_trainer_ranks(t) > 1)
        return give_up(t, why, "the run has several processes");
    if (!tp_run_plan_next_remedy(t->o, t->model, w->planned, &next) ||
        used + strlen(next.change) + 2 > sizeof t->state.settings)
        return give_up(t, why, "no setting of Temper makes it smaller");
    tp_watch_entry *e = note(t, why);
    memcpy(e->change, next.change, sizeof e->change);
    TP_TRY(change(t, next.change, &e->after, err));
    snprintf(t->state.settings + used, sizeof t->state.settings - used, "%s%s", used ? " " : "",
             next.change);
    tp_trainer_notice(t, "step %lld: memory is short: %s; from here on %s, planned peak %s, was %s",
                      (long long)t->state.step, why, next.change,
                      tp_human_bytes((double)e->after, after),
                      tp_human_bytes((double)e->before, before));
    return TP_OK;
}

tp_status tp_memory_watch_look(trainer *t, tp_error *err)
{
    char why[320] = "as train.inject_pressure says";
    if (tp_trainer_is_done(t) || t->memory_watch.is_exhausted)
        return TP_OK;
    bool is_needed = is_injected(t) || (may_look(t) && is_short(t, why));
    return is_needed ? act(t, why, err) : TP_OK;
}

tp_status tp_memory_watch_resume(trainer *t, tp_error *err)
{
    char settings[sizeof t->state.settings];
    size_t peak;
    if (!t->state.settings[0] || isnan(t->o->engine.memory_watch) || tp_trainer_ranks(t) > 1)
        return TP_OK;
    memcpy(settings, t->state.settings, sizeof settings);
    size_t before = t->memory_watch.planned;
    TP_TRY(change(t, settings, &peak, err));
    if (peak < before)
        tp_trainer_notice(t,
                          "memory was short before: the run goes on with %s "
                          "(engine.memory_watch=null goes on without)",
                          settings);
    else /* the recipe asks for less by now */
        t->state.settings[0] = 0;
    return TP_OK;
}

void tp_memory_watch_put(const trainer *t, tp_json_w *w)
{
    const tp_memory_watch *m = &t->memory_watch;
    tp_json_w_put_begin(w, "memory_watch", '[');
    for (int i = 0; i < m->n; i++) {
        const tp_watch_entry *e = &m->v[i];
        tp_json_w_begin(w, '{');
        tp_json_w_put_i64(w, "step", e->step);
        tp_json_w_put_str(w, "why", e->why);
        tp_json_w_put_str(w, "change", e->change[0] ? e->change : NULL);
        tp_json_w_put_i64(w, "planned_bytes_before", (int64_t)e->before);
        tp_json_w_put_i64(w, "planned_bytes_after", (int64_t)e->after);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}
