/* judging.c - a thread that judges what it is given; whatever has come meanwhile is its next batch.
 */
#include "engine/reward/judging.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/no_memory.h"
#include "base/threads.h"
#include "engine/reward/environment_kind.h"
#include "temper/trace.h"

enum { MOST_SAID = 16, ASK_WATCH_MS = 100 };

struct tp_judging {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake, change; /* for the thread; for who waits */
    bool is_closing, is_busy;
    atomic_bool gives_up;

    tp_environment *env; /* NULL: nothing has begun */
    tp_environment_watch owners;
    tp_pool *pool;
    tp_completion *given;
    size_t *places; /* of those given */
    size_t n, n_given, n_taken, n_judged;
    tp_rewards verdicts; /* the thread's, until it has judged all */
    tp_status status;
    tp_error error;
    double judged_s, busy_since;

    char *said[MOST_SAID]; /* what the environment said on the thread */
    int n_said;
};

/* ---- on the thread ---- */

static bool should_stop(void *user)
{
    tp_judging *j = user;
    return atomic_load(&j->gives_up);
}

static void keep_saying(void *user, const char *text)
{
    tp_judging *j = user;
    TP_FREED char *copy = strdup(text);
    pthread_mutex_lock(&j->lock);
    if (copy && j->n_said < MOST_SAID) {
        j->said[j->n_said++] = copy;
        copy = NULL;
    }
    pthread_mutex_unlock(&j->lock);
}

static tp_status judge(tp_judging *j, size_t first, size_t n, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_ZONE("judging");
    tp_rewards some = {0};
    TP_TRY(tp_environment_score(j->env, j->given + first, n, j->pool, &some, err));
    for (size_t i = 0; i < n; i++) {
        tp_reward *to = &j->verdicts.v[j->places[first + i]];
        tp_reward_release(to);
        *to = some.v[i];
        j->verdicts.counts[to->status]++;
    }
    j->verdicts.seconds += some.seconds;
    free(some.v);
    return TP_OK;
}

static bool has_work(const tp_judging *j)
{
    return j->env && j->status == TP_OK && j->n_taken < j->n_given && !atomic_load(&j->gives_up);
}

/* All that waits; the lock is held before and after. */
static void judge_next(tp_judging *j)
{
    size_t first = j->n_taken, n = j->n_given - first;
    tp_error error = {0};
    j->n_taken += n;
    j->is_busy = true;
    j->busy_since = tp_clock_s();
    pthread_mutex_unlock(&j->lock);
    tp_status status = judge(j, first, n, &error);
    pthread_mutex_lock(&j->lock);
    j->judged_s += tp_clock_s() - j->busy_since;
    j->is_busy = false;
    j->n_judged += n;
    if (status != TP_OK) {
        j->status = status;
        j->error = error;
    }
    pthread_cond_broadcast(&j->change);
}

static void *work(void *user)
{
    tp_judging *j = user;
    tp_trace_thread_name("judge");
    pthread_mutex_lock(&j->lock);
    while (!j->is_closing) {
        if (has_work(j))
            judge_next(j);
        else
            pthread_cond_wait(&j->wake, &j->lock);
    }
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

/* ---- the owner ---- */

/* Its thread is over, or was never begun. */
static void destroy(tp_judging *j)
{
    pthread_cond_destroy(&j->wake);
    pthread_cond_destroy(&j->change);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

tp_status tp_judging_create(tp_judging **ret, tp_error *err)
{
    tp_judging *j = tp_new(1, sizeof *j);
    sigset_t before;
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->wake, NULL);
    tp_cond_init(&j->change);
    tp_signals_hold(&before);
    int failed = pthread_create(&j->thread, NULL, work, j);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        destroy(j);
        return tp_fail(err, TP_ERR_NOMEM, "cannot start a thread for judging: %s",
                       strerror(failed));
    }
    *ret = j;
    return TP_OK;
}

static void say_all(tp_judging *j)
{
    char *said[MOST_SAID];
    pthread_mutex_lock(&j->lock);
    int n = j->n_said;
    memcpy(said, j->said, sizeof said);
    j->n_said = 0;
    pthread_mutex_unlock(&j->lock);
    for (int i = 0; i < n; i++) {
        if (j->owners.say)
            j->owners.say(j->owners.user, said[i]);
        free(said[i]);
    }
}

/* The thread is idle from here on, and the environment is as it was. */
static void end(tp_judging *j)
{
    if (!j->env)
        return;
    pthread_mutex_lock(&j->lock);
    while (j->is_busy)
        pthread_cond_wait(&j->change, &j->lock);
    tp_environment *env = j->env;
    j->env = NULL;
    pthread_mutex_unlock(&j->lock);
    say_all(j);
    tp_environment_set_watch(env, &j->owners);
    free(j->given);
    free(j->places);
    tp_rewards_release(&j->verdicts);
    j->given = NULL;
    j->places = NULL;
}

void tp_judging_drop(tp_judging *j)
{
    atomic_store(&j->gives_up, true);
    end(j);
}

void tp_judging_free(tp_judging *j)
{
    if (!j)
        return;
    tp_judging_drop(j);
    pthread_mutex_lock(&j->lock);
    j->is_closing = true;
    pthread_cond_signal(&j->wake);
    pthread_mutex_unlock(&j->lock);
    pthread_join(j->thread, NULL);
    destroy(j);
}

tp_status tp_judging_begin(tp_judging *j, tp_environment *env, tp_pool *pool, size_t n,
                           tp_error *err)
{
    const tp_environment_watch ours = {should_stop, keep_saying, j};
    TP_ASSERT(!j->env);
    j->given = calloc(n + 1, sizeof *j->given);
    j->places = calloc(n + 1, sizeof *j->places);
    if (!j->given || !j->places) {
        free(j->given);
        free(j->places);
        return tp_fail(err, TP_ERR_NOMEM, "no memory to judge %zu answers", n);
    }
    j->verdicts = (tp_rewards){.v = tp_rewards_new(n), .n = n};
    j->owners = tp_environment_get_watch(env);
    tp_environment_set_watch(env, &ours);
    atomic_store(&j->gives_up, false);
    pthread_mutex_lock(&j->lock);
    j->n = n;
    j->n_given = j->n_taken = j->n_judged = 0;
    j->status = TP_OK;
    j->judged_s = 0;
    j->pool = pool;
    j->env = env;
    pthread_mutex_unlock(&j->lock);
    return TP_OK;
}

void tp_judging_give(tp_judging *j, const tp_completion *completion, size_t place)
{
    pthread_mutex_lock(&j->lock);
    TP_ASSERT(j->n_given < j->n && place < j->n);
    j->given[j->n_given] = *completion;
    j->places[j->n_given++] = place;
    pthread_cond_signal(&j->wake);
    pthread_mutex_unlock(&j->lock);
}

tp_status tp_judging_look(tp_judging *j, tp_error *err)
{
    say_all(j);
    if (j->owners.should_stop && j->owners.should_stop(j->owners.user))
        atomic_store(&j->gives_up, true);
    pthread_mutex_lock(&j->lock);
    tp_status status = j->status;
    if (status != TP_OK && err)
        *err = j->error;
    pthread_mutex_unlock(&j->lock);
    return status;
}

bool tp_judging_is_done(tp_judging *j)
{
    pthread_mutex_lock(&j->lock);
    bool is_done = j->n_judged == j->n || j->status != TP_OK;
    pthread_mutex_unlock(&j->lock);
    return is_done;
}

static bool is_done(const tp_judging *j)
{
    bool ends = j->n_judged == j->n || j->status != TP_OK || atomic_load(&j->gives_up);
    return ends && !j->is_busy;
}

/* For the end of a batch, or a while. */
static void pause_a_while(tp_judging *j)
{
    pthread_mutex_lock(&j->lock);
    if (!is_done(j))
        (void)tp_cond_wait_until(&j->change, &j->lock, tp_clock_s() + ASK_WATCH_MS * 1e-3);
    pthread_mutex_unlock(&j->lock);
}

tp_status tp_judging_wait(tp_judging *j, tp_rewards *ret, double *ret_beside_s, tp_error *err)
{
    tp_status status = TP_OK;
    pthread_mutex_lock(&j->lock);
    TP_ASSERT(j->n_given == j->n);
    double beside_s = j->judged_s + (j->is_busy ? tp_clock_s() - j->busy_since : 0);
    bool ends = is_done(j);
    pthread_mutex_unlock(&j->lock);
    while (!ends) {
        status = tp_judging_look(j, err);
        pause_a_while(j);
        pthread_mutex_lock(&j->lock);
        ends = is_done(j);
        pthread_mutex_unlock(&j->lock);
    }
    status = tp_judging_look(j, err);
    if (status == TP_OK && j->n_judged < j->n)
        status = tp_fail(err, TP_ERR_INTERRUPTED, "stopped while answers were judged");
    if (status == TP_OK) {
        *ret = j->verdicts;
        j->verdicts = (tp_rewards){0};
    }
    if (ret_beside_s)
        *ret_beside_s = beside_s;
    end(j);
    return status;
}
