/* monitor.c - a thread that samples, and a queue from which the samples are taken. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/sized.h"
#include "base/threads.h"
#include "base/vec.h"
#include "instrument/monitor/sampler.h"
#include "temper/monitor.h"

enum { QUEUE = 1024 };

struct tp_monitor {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool runs, stops;
    double period_s[TP_SAMPLER_GROUPS], due_s[TP_SAMPLER_GROUPS];
    tp_reading before[TP_SAMPLER_GROUPS];
    double processors, limit_bytes;
    double started_s, ended_s; /* ended: NaN while it runs */
    double cost_s;
    _Atomic int64_t step;
    tp_monitor_sample *queue;
    size_t first, n; /* in the queue */
    size_t samples, lost;
};

/* ---- sampling ---- */

static void put(tp_monitor *m, const tp_monitor_sample *sample)
{
    pthread_mutex_lock(&m->lock);
    m->samples++;
    if (m->n == QUEUE) { /* nobody takes them: the newest are kept */
        m->first = (m->first + 1) % QUEUE;
        m->n--;
        m->lost++;
    }
    m->queue[(m->first + m->n++) % QUEUE] = *sample;
    pthread_mutex_unlock(&m->lock);
}

static void sample(tp_monitor *m, int group)
{
    tp_reading now;
    tp_metric_figure figures[TP_SAMPLER_MOST];
    tp_monitor_sample s = {.group = tp_sampler_groups[group].name,
                           .step = atomic_load(&m->step),
                           .wall_time = tp_wall_s()};
    tp_reading_take(&now, tp_sampler_groups[group].part);
    s.n =
        tp_sampler_figures(group, &m->before[group], &now, m->processors, m->limit_bytes, figures);
    for (size_t i = 0; i < s.n; i++) {
        s.figures[i].name = figures[i].def->name;
        s.figures[i].unit = figures[i].def->unit;
        s.figures[i].value = figures[i].value;
    }
    m->before[group] = now;
    put(m, &s);
}

static void sample_due(tp_monitor *m, double now)
{
    for (int g = 0; g < TP_SAMPLER_GROUPS; g++) {
        if (now < m->due_s[g])
            continue;
        sample(m, g);
        m->due_s[g] = tp_sampler_next(m->due_s[g], m->period_s[g], now);
    }
    pthread_mutex_lock(&m->lock);
    m->cost_s = tp_thread_cpu_s();
    pthread_mutex_unlock(&m->lock);
}

static double next_due(const tp_monitor *m)
{
    double next = m->due_s[0];
    for (int g = 1; g < TP_SAMPLER_GROUPS; g++)
        next = fmin(next, m->due_s[g]);
    return next;
}

/* True when it is to stop. */
static bool wait_until(tp_monitor *m, double due_s)
{
    pthread_mutex_lock(&m->lock);
    while (!m->stops && tp_clock_s() < due_s)
        (void)tp_cond_wait_until(&m->wake, &m->lock, due_s);
    bool stops = m->stops;
    pthread_mutex_unlock(&m->lock);
    return stops;
}

static void *watch(void *user)
{
    tp_monitor *m = user;
    while (!wait_until(m, next_due(m)))
        sample_due(m, tp_clock_s());
    for (int g = 0; g < TP_SAMPLER_GROUPS; g++) /* a last one, where it is nearly due */
        if (isfinite(m->period_s[g]))
            m->due_s[g] -= 0.5 * m->period_s[g];
    sample_due(m, tp_clock_s());
    return NULL;
}

/* ---- the public functions ---- */

static tp_status set_periods(tp_monitor *m, const tp_monitor_options *o, tp_error *err)
{
    const double asked[] = {o->training_s, o->inference_s, o->memory_s};
    for (int g = 0; g < TP_SAMPLER_GROUPS; g++) {
        double s = asked[g] != 0 ? asked[g] : tp_sampler_groups[g].period_s;
        if (!(s >= 0.01))
            return tp_fail(err, TP_ERR_ARG, "samples of %s every %g s; expected 0.01 or more",
                           tp_sampler_groups[g].name, s);
        m->period_s[g] = s;
        m->due_s[g] = m->started_s + s;
        tp_reading_take(&m->before[g], tp_sampler_groups[g].part);
    }
    return TP_OK;
}

static tp_status start(tp_monitor *m, tp_error *err)
{
    sigset_t before;
    pthread_mutex_init(&m->lock, NULL);
    tp_cond_init(&m->wake);
    tp_signals_hold(&before);
    int failure = pthread_create(&m->thread, NULL, watch, m);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    m->runs = failure == 0;
    if (m->runs)
        return TP_OK;
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->wake);
    return tp_fail(err, TP_ERR_IO, "no thread for the monitor: %s", strerror(failure));
}

tp_status tp_monitor_start(const tp_monitor_options *options, tp_monitor **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_monitor_options o;
    tp_limits memory, processors;
    TP_NEED(ret, err);
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_monitor_options", err));
    tp_monitor *m = tp_vec_new(1, sizeof *m);
    m->queue = tp_vec_new(QUEUE, sizeof *m->queue);
    m->started_s = tp_clock_s();
    m->ended_s = NAN;
    tp_limits_memory(&memory);
    tp_limits_processors(&processors);
    m->limit_bytes = memory.n ? tp_limits_least(&memory)->value : (double)NAN;
    m->processors = processors.n ? tp_limits_least(&processors)->value : (double)NAN;
    tp_status status = set_periods(m, &o, err);
    if (status == TP_OK)
        status = start(m, err);
    if (status != TP_OK) {
        free(m->queue);
        free(m);
        return status;
    }
    *ret = m;
    return TP_OK;
}

void tp_monitor_at(tp_monitor *m, int64_t step)
{
    if (m)
        atomic_store(&m->step, step);
}

bool tp_monitor_take(tp_monitor *m, tp_monitor_sample *ret)
{
    if (!m || !ret)
        return false;
    pthread_mutex_lock(&m->lock);
    bool has = m->n > 0;
    if (has) {
        *ret = m->queue[m->first];
        m->first = (m->first + 1) % QUEUE;
        m->n--;
    }
    pthread_mutex_unlock(&m->lock);
    return has;
}

void tp_monitor_read_report(tp_monitor *m, tp_monitor_report *ret)
{
    tp_monitor_report r = {0};
    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    r.elapsed_s = (isnan(m->ended_s) ? tp_clock_s() : m->ended_s) - m->started_s;
    r.cost_s = m->cost_s;
    r.samples = m->samples;
    r.lost = m->lost;
    pthread_mutex_unlock(&m->lock);
    tp_sized_write(ret, &r, sizeof r);
}

void tp_monitor_stop(tp_monitor *m)
{
    if (!m || !m->runs)
        return;
    pthread_mutex_lock(&m->lock);
    m->stops = true;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
    pthread_join(m->thread, NULL);
    m->runs = false;
    pthread_mutex_lock(&m->lock);
    m->ended_s = tp_clock_s();
    pthread_mutex_unlock(&m->lock);
}

void tp_monitor_close(tp_monitor *m)
{
    if (!m)
        return;
    tp_monitor_stop(m);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->wake);
    free(m->queue);
    free(m);
}
