/* watchdog.c - one thread that sleeps until a deadline or until it has another one. */
#include "engine/train/guards.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/threads.h"

struct tp_watchdog {
    tp_watchdog_late *late;
    void *user;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_watching, is_closing;
    int64_t what;
    double limit_s;
    double deadline_s; /* of tp_clock_s() */
};

static void *watch(void *user)
{
    tp_watchdog *w = user;
    pthread_mutex_lock(&w->lock);
    while (!w->is_closing) {
        if (!w->is_watching)
            pthread_cond_wait(&w->changed, &w->lock);
        else if (tp_clock_s() >= w->deadline_s) {
            w->is_watching = false; /* said once */
            w->late(w->user, w->what, w->limit_s);
        } else
            (void)tp_cond_wait_until(&w->changed, &w->lock, w->deadline_s);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

tp_status tp_watchdog_start(tp_watchdog_late *late, void *user, tp_watchdog **ret, tp_error *err)
{
    tp_watchdog *w = calloc(1, sizeof *w);
    if (!w)
        return tp_fail(err, TP_ERR_NOMEM, "cannot start a watchdog: out of memory");
    w->late = late;
    w->user = user;
    pthread_mutex_init(&w->lock, NULL);
    tp_cond_init(&w->changed);
    int failed = pthread_create(&w->thread, NULL, watch, w);
    if (failed) {
        free(w);
        return tp_fail(err, TP_ERR_NOMEM, "cannot start a watchdog: %s", strerror(failed));
    }
    *ret = w;
    return TP_OK;
}

static void change(tp_watchdog *w, bool is_watching, bool is_closing)
{
    w->is_watching = is_watching;
    w->is_closing = is_closing;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void tp_watchdog_begin(tp_watchdog *w, int64_t what, double limit_s)
{
    if (!w || !isfinite(limit_s))
        return;
    pthread_mutex_lock(&w->lock);
    w->deadline_s = tp_clock_s() + limit_s;
    w->what = what;
    w->limit_s = limit_s;
    change(w, true, false);
}

void tp_watchdog_end(tp_watchdog *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    change(w, false, false);
}

void tp_watchdog_stop(tp_watchdog *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    change(w, false, true);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
