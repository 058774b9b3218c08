/* threads.h - a pool of threads for coarse work, and a queue between threads.
 *
 * A pool is passed explicitly; whoever creates it decides how many threads there
 * are.  One job runs at a time, and the calling thread works along, so a pool of n
 * keeps n processors busy with n - 1 threads of its own.  A NULL pool does
 * everything on the calling thread.  Tasks must not use the pool they run on.
 * Kernels do not come here: they have base/team.h.
 *
 * Results do not depend on the number of threads: the error that is reported is the
 * one of the lowest index, and ordered jobs hand over in order.  Workers block all
 * signals, so that those reach the thread that started the program. */
#ifndef TP_BASE_THREADS_H
#define TP_BASE_THREADS_H

#include <pthread.h>
#include <signal.h>

#include "base/error.h"

/* Around the start of threads, which inherit the mask: all signals are held back, but for those
 * that a thread raises by what it does itself, as SIGBUS; held back, they would end the program
 * whatever its handler.  pthread_sigmask(SIG_SETMASK, before, NULL) undoes it. */
void tp_signals_hold(sigset_t *before);

/* From now on the calling thread and those that it starts give way to all others: with the least
 * share that there is (nice 19, a seventieth of a processor where others want it), or,
 * `for_nothing`, only where it would stand idle (SCHED_IDLE).  For good: without a privilege there
 * is no way back. Between sessions of Linux's autogroup neither counts. */
void tp_thread_give_way(bool for_nothing);

/* A condition that is waited for until a time of tp_clock_s(). */
void tp_cond_init(pthread_cond_t *cond);
/* Woken, true, or at that time, false. */
bool tp_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, double at_s);

typedef struct tp_pool tp_pool;

/* `n_threads` counts the caller; at least 1. */
TP_CHECKED tp_status tp_pool_create(tp_pool **ret, int n_threads, tp_error *err);
void tp_pool_free(tp_pool *pool);      /* NULL is a no-op; not while a job runs */
int tp_pool_size(const tp_pool *pool); /* threads, the caller included; NULL: 1 */

/* Task `index` of a job, on worker 0 (the caller) .. size - 1.  A failure keeps
 * further tasks from starting. */
typedef tp_status (*tp_task)(void *context, size_t index, int worker, tp_error *err);

/* Run tasks 0 .. n-1 and wait for all. */
TP_CHECKED tp_status tp_pool_for(tp_pool *pool, size_t n, tp_task task, void *context,
                                 tp_error *err);

/* A bounded queue of pointers, first in, first out; any number of threads may push
 * and pop. */
typedef struct tp_queue tp_queue;

TP_CHECKED tp_status tp_queue_create(tp_queue **ret, size_t capacity, tp_error *err);
/* Wait for room; false when the queue was closed, and the item stays the caller's. */
bool tp_queue_push(tp_queue *queue, void *item);
/* Wait for an item; false when the queue is closed and empty. */
bool tp_queue_pop(tp_queue *queue, void **ret);
/* No more pushes; wakes everybody.  What is inside can still be popped. */
void tp_queue_close(tp_queue *queue);
/* NULL is a no-op.  Nobody may wait any more; items inside are the caller's loss. */
void tp_queue_free(tp_queue *queue);

#endif
