/* threads.c - a pool of POSIX threads and a bounded queue between threads. */
#include "base/threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

/* Tasks are coarse, so one lock guards everything about a job.  Indices are handed
 * out in ascending order: when one fails, all lower ones have been handed out too,
 * and the lowest failure is the same on any number of threads. */
typedef struct {
    tp_task task;
    void *context;
    size_t n, next;
    int n_running;
    size_t failed_at; /* lowest index that failed, or SIZE_MAX */
    tp_status status;
    tp_error error;
} job;

typedef struct {
    tp_pool *pool;
    int number;
    pthread_t thread;
} worker;

struct tp_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;   /* workers: there may be something to do */
    pthread_cond_t change; /* the caller: a task has ended */
    job *job;
    worker *workers;
    int n_workers;
    bool stop;
};

static bool has_task(const job *j) { return j && j->failed_at == SIZE_MAX && j->next < j->n; }

static void record_failure(job *j, size_t index, tp_status status, const tp_error *error)
{
    if (index >= j->failed_at)
        return;
    j->failed_at = index;
    j->status = status;
    j->error = *error;
}

static tp_status run_task(const job *j, size_t index, int number, tp_error *err)
{
    TP_MEMORY_GUARD(err); /* others still work on this job */
    return j->task(j->context, index, number, err);
}

/* Take the next task and run it; the lock is held before and after. */
static void run_one(tp_pool *pool, job *j, int number)
{
    size_t index = j->next++;
    tp_error error = {0};
    j->n_running++;
    pthread_mutex_unlock(&pool->lock);
    tp_status status = run_task(j, index, number, &error);
    pthread_mutex_lock(&pool->lock);
    j->n_running--;
    if (status != TP_OK)
        record_failure(j, index, status, &error);
    pthread_cond_broadcast(&pool->change);
}

static void *work(void *argument)
{
    worker *w = argument;
    tp_pool *pool = w->pool;
    pthread_mutex_lock(&pool->lock);
    while (!pool->stop) {
        if (has_task(pool->job))
            run_one(pool, pool->job, w->number);
        else
            pthread_cond_wait(&pool->wake, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

void tp_signals_hold(sigset_t *before)
{
    static const int own[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
    sigset_t held;
    sigfillset(&held);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&held, own[i]);
    pthread_sigmask(SIG_SETMASK, &held, before);
}

void tp_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool tp_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, double at_s)
{
    const double latest_s = 1e9; /* that a time_t holds everywhere */
    double s = at_s < latest_s ? at_s : latest_s;
    struct timespec until = {.tv_sec = (time_t)s};
    until.tv_nsec = (long)((s - (double)until.tv_sec) * 1e9);
    return pthread_cond_timedwait(cond, lock, &until) == 0;
}

void tp_thread_give_way(bool for_nothing)
{
    (void)setpriority(PRIO_PROCESS, 0, 19); /* both are of this thread alone */
    if (for_nothing)
        (void)sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0});
}

static bool start_workers(tp_pool *pool, int n)
{
    sigset_t old;
    tp_signals_hold(&old);
    bool ok = true;
    for (int i = 0; i < n && ok; i++) {
        worker *w = &pool->workers[i];
        *w = (worker){.pool = pool, .number = i + 1};
        ok = pthread_create(&w->thread, NULL, work, w) == 0;
        pool->n_workers += ok;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ok;
}

tp_status tp_pool_create(tp_pool **ret, int n_threads, tp_error *err)
{
    if (n_threads < 1 || n_threads > 4096)
        return tp_fail(err, TP_ERR_ARG, "a pool of %d threads; expected 1 to 4096", n_threads);
    tp_pool *pool = calloc(1, sizeof *pool);
    worker *workers = calloc((size_t)n_threads, sizeof *workers);
    if (!pool || !workers) {
        free(pool);
        free(workers);
        return tp_fail(err, TP_ERR_NOMEM, "no memory for %d threads", n_threads);
    }
    pool->workers = workers;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->change, NULL);
    if (!start_workers(pool, n_threads - 1)) {
        tp_pool_free(pool);
        return tp_fail(err, TP_ERR_NOMEM,
                       "cannot start %d threads; lower the number or raise the limit (ulimit -u)",
                       n_threads);
    }
    *ret = pool;
    return TP_OK;
}

void tp_pool_free(tp_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    TP_ASSERT(!pool->job);
    pool->stop = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->n_workers; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_cond_destroy(&pool->change);
    pthread_mutex_destroy(&pool->lock);
    free(pool->workers);
    free(pool);
}

int tp_pool_size(const tp_pool *pool) { return pool ? pool->n_workers + 1 : 1; }

static void begin_job(tp_pool *pool, job *j)
{
    pthread_mutex_lock(&pool->lock);
    TP_ASSERT(!pool->job);
    pool->job = j;
    pthread_cond_broadcast(&pool->wake);
}

/* Wait for what is still running; the job is the caller's alone afterwards. */
static tp_status end_job(tp_pool *pool, job *j, tp_error *err)
{
    while (j->n_running)
        pthread_cond_wait(&pool->change, &pool->lock);
    pool->job = NULL;
    pthread_mutex_unlock(&pool->lock);
    if (j->status != TP_OK && err)
        *err = j->error;
    return j->status;
}

tp_status tp_pool_for(tp_pool *pool, size_t n, tp_task task, void *context, tp_error *err)
{
    if (tp_pool_size(pool) == 1) {
        for (size_t i = 0; i < n; i++)
            TP_TRY(task(context, i, 0, err));
        return TP_OK;
    }
    job j = {.task = task, .context = context, .n = n, .failed_at = SIZE_MAX};
    begin_job(pool, &j);
    while (has_task(&j))
        run_one(pool, &j, 0);
    return end_job(pool, &j, err);
}

struct tp_queue {
    pthread_mutex_t lock;
    pthread_cond_t room, items;
    size_t capacity, first, n;
    bool closed;
    void *ring[];
};

tp_status tp_queue_create(tp_queue **ret, size_t capacity, tp_error *err)
{
    size_t bytes;
    if (capacity == 0)
        return tp_fail(err, TP_ERR_ARG, "a queue needs room for one item at least");
    tp_queue *queue = NULL;
    if (!__builtin_mul_overflow(capacity, sizeof(void *), &bytes) &&
        !__builtin_add_overflow(bytes, sizeof *queue, &bytes))
        queue = calloc(1, bytes);
    if (!queue)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for a queue of %zu items", capacity);
    queue->capacity = capacity;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->room, NULL);
    pthread_cond_init(&queue->items, NULL);
    *ret = queue;
    return TP_OK;
}

bool tp_queue_push(tp_queue *queue, void *item)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->n == queue->capacity && !queue->closed)
        pthread_cond_wait(&queue->room, &queue->lock);
    bool ok = !queue->closed;
    if (ok) {
        queue->ring[(queue->first + queue->n++) % queue->capacity] = item;
        pthread_cond_signal(&queue->items);
    }
    pthread_mutex_unlock(&queue->lock);
    return ok;
}

bool tp_queue_pop(tp_queue *queue, void **ret)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->n == 0 && !queue->closed)
        pthread_cond_wait(&queue->items, &queue->lock);
    bool ok = queue->n > 0;
    if (ok) {
        *ret = queue->ring[queue->first];
        queue->first = (queue->first + 1) % queue->capacity;
        queue->n--;
        pthread_cond_signal(&queue->room);
    }
    pthread_mutex_unlock(&queue->lock);
    return ok;
}

void tp_queue_close(tp_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->room);
    pthread_cond_broadcast(&queue->items);
    pthread_mutex_unlock(&queue->lock);
}

void tp_queue_free(tp_queue *queue)
{
    if (!queue)
        return;
    pthread_cond_destroy(&queue->room);
    pthread_cond_destroy(&queue->items);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}
