/* watchdog.c - one thread that sleeps until a deadline or until it has another one. */
#include "engine/train/guards.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct tp_watchdog {
    tp_watchdog_late *late;
    void *user;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_watching, is_closing;
    int64_t what;
    double limit_s;
    struct timespec deadline; /* of CLOCK_MONOTONIC */
};

static bool has_passed(const struct timespec *deadline)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > deadline->tv_sec ||
           (now.tv_sec == deadline->tv_sec && now.tv_nsec >= deadline->tv_nsec);
}

static void *watch(void *user)
{
    tp_watchdog *w = user;
    pthread_mutex_lock(&w->lock);
    while (!w->is_closing) {
        if (!w->is_watching)
            pthread_cond_wait(&w->changed, &w->lock);
        else if (has_passed(&w->deadline)) {
            w->is_watching = false; /* said once */
            w->late(w->user, w->what, w->limit_s);
        } else
            pthread_cond_timedwait(&w->changed, &w->lock, &w->deadline);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

tp_status tp_watchdog_start(tp_watchdog_late *late, void *user, tp_watchdog **ret, tp_error *err)
{
    tp_watchdog *w = calloc(1, sizeof *w);
    pthread_condattr_t monotonic;
    if (!w)
        return tp_fail(err, TP_ERR_NOMEM, "cannot start a watchdog: out of memory");
    w->late = late;
    w->user = user;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
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
    double whole = floor(limit_s);
    clock_gettime(CLOCK_MONOTONIC, &w->deadline);
    w->deadline.tv_sec += (time_t)whole;
    w->deadline.tv_nsec += (long)((limit_s - whole) * 1e9);
    if (w->deadline.tv_nsec >= 1000000000L) {
        w->deadline.tv_sec++;
        w->deadline.tv_nsec -= 1000000000L;
    }
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
