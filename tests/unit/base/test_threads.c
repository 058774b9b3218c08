#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/threads.h"

enum { N = 1000 };

typedef struct {
    int values[N];
    _Atomic int n_runs;
    size_t fail_from;
    _Atomic int workers_seen;
} work;

static tp_pool *make_pool(int n)
{
    tp_pool *pool = NULL;
    assert_int_equal(tp_pool_create(&pool, n, NULL), TP_OK);
    assert_int_equal(tp_pool_size(pool), n);
    return pool;
}

/* Some work, so that threads overtake each other.  Not sched_yield(): with other programs about,
 * each would be a turn of theirs. */
static void dawdle(size_t rounds)
{
    for (volatile size_t i = 0; i < 200 * rounds; i++)
        continue;
}

static tp_status square(void *context, size_t i, int number, tp_error *err)
{
    work *w = context;
    w->values[i] = (int)(i * i);
    atomic_fetch_add(&w->n_runs, 1);
    atomic_fetch_or(&w->workers_seen, 1 << number);
    return TP_OK;
}

static tp_status fail_late(void *context, size_t i, int number, tp_error *err)
{
    work *w = context;
    atomic_fetch_add(&w->n_runs, 1);
    if (i < w->fail_from)
        return TP_OK;
    /* Later failures come first, as far as threads can be made to. */
    if (i == w->fail_from)
        dawdle(100);
    return tp_fail(err, TP_ERR_FORMAT, "task %zu", i);
}

static void every_task_runs_once(void **state)
{
    static work w;
    for (int n = 1; n <= 4; n++) {
        memset(&w, 0, sizeof w);
        tp_pool *pool = make_pool(n);

        assert_int_equal(tp_pool_for(pool, N, square, &w, NULL), TP_OK);

        assert_int_equal(w.n_runs, N);
        assert_int_equal(w.values[999], 998001);
        assert_true(w.workers_seen < 1 << n);
        tp_pool_free(pool);
    }
}

static void a_pool_serves_many_jobs(void **state)
{
    static work w;
    memset(&w, 0, sizeof w);
    tp_pool *pool = make_pool(3);
    for (int i = 0; i < 200; i++)
        assert_int_equal(tp_pool_for(pool, (size_t)i % 5, square, &w, NULL), TP_OK);
    assert_int_equal(w.n_runs, 400);
    tp_pool_free(pool);
}

static void no_pool_is_the_calling_thread(void **state)
{
    static work w;
    memset(&w, 0, sizeof w);
    assert_int_equal(tp_pool_size(NULL), 1);
    assert_int_equal(tp_pool_for(NULL, N, square, &w, NULL), TP_OK);
    assert_int_equal(w.n_runs, N);
    assert_int_equal(w.workers_seen, 1);
}

static void the_lowest_failure_is_reported(void **state)
{
    static work w;
    for (int n = 1; n <= 4; n++) {
        tp_pool *pool = make_pool(n);
        for (int round = 0; round < 20; round++) {
            tp_error err = {0};
            memset(&w, 0, sizeof w);
            w.fail_from = 5;
            assert_int_equal(tp_pool_for(pool, N, fail_late, &w, &err), TP_ERR_FORMAT);
            assert_string_equal(err.message, "task 5");
            assert_true(w.n_runs < N);
        }
        tp_pool_free(pool);
    }
}

static void absurd_sizes_are_refused(void **state)
{
    tp_pool *pool = NULL;
    tp_queue *queue = NULL;
    tp_error err;
    assert_int_equal(tp_pool_create(&pool, 0, &err), TP_ERR_ARG);
    assert_string_equal(err.message, "a pool of 0 threads; expected 1 to 4096");
    assert_int_equal(tp_queue_create(&queue, 0, &err), TP_ERR_ARG);
    assert_int_equal(tp_queue_create(&queue, SIZE_MAX / 4, &err), TP_ERR_NOMEM);
    tp_pool_free(NULL);
    tp_queue_free(NULL);
}

typedef struct {
    tp_queue *queue;
    uintptr_t from, n, sum;
    uintptr_t refused;
} end_of_queue;

static void *push_numbers(void *context)
{
    end_of_queue *end = context;
    for (uintptr_t i = 0; i < end->n; i++) {
        if (!tp_queue_push(end->queue, (void *)(end->from + i)))
            end->refused++;
    }
    return NULL;
}

static void *pop_numbers(void *context)
{
    end_of_queue *end = context;
    void *item;
    while (tp_queue_pop(end->queue, &item)) {
        end->sum += (uintptr_t)item;
        end->n++;
    }
    return NULL;
}

static void queues_carry_everything_between_threads(void **state)
{
    tp_queue *queue;
    assert_int_equal(tp_queue_create(&queue, 4, NULL), TP_OK);
    end_of_queue in[2] = {{.queue = queue, .from = 1, .n = 5000},
                          {.queue = queue, .from = 5001, .n = 5000}};
    end_of_queue out[2] = {{.queue = queue}, {.queue = queue}};
    pthread_t threads[4];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, push_numbers, &in[i]), 0);
        assert_int_equal(pthread_create(&threads[2 + i], NULL, pop_numbers, &out[i]), 0);
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    tp_queue_close(queue);
    pthread_join(threads[2], NULL);
    pthread_join(threads[3], NULL);

    assert_int_equal(out[0].n + out[1].n, 10000);
    assert_int_equal(out[0].sum + out[1].sum, 50005000);
    assert_int_equal(in[0].refused + in[1].refused, 0);
    tp_queue_free(queue);
}

static void closing_wakes_a_waiting_producer(void **state)
{
    tp_queue *queue;
    void *item = NULL;
    assert_int_equal(tp_queue_create(&queue, 2, NULL), TP_OK);
    end_of_queue in = {.queue = queue, .from = 1, .n = 10};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, push_numbers, &in), 0);
    assert_true(tp_queue_pop(queue, &item));
    assert_true((uintptr_t)item == 1);

    tp_queue_close(queue);
    pthread_join(thread, NULL);

    /* What was inside comes out in order; then the end. */
    uintptr_t expected = 2;
    while (tp_queue_pop(queue, &item))
        assert_true((uintptr_t)item == expected++);
    assert_int_equal(in.refused, 10 - (expected - 1));
    assert_false(tp_queue_push(queue, NULL));
    tp_queue_free(queue);
}

static tp_status ask_signals(void *context, size_t i, int number, tp_error *err)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    /* no verdict: the workers have their turn */
    usleep(1000);
    if (number > 0 && !sigismember(&mask, SIGINT))
        return tp_fail(err, TP_ERR_ARG, "worker %d would take signals", number);
    return TP_OK;
}

static void signals_stay_with_the_main_thread(void **state)
{
    tp_pool *pool = make_pool(3);
    assert_int_equal(tp_pool_for(pool, 20, ask_signals, NULL, NULL), TP_OK);
    tp_pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once),
        cmocka_unit_test(a_pool_serves_many_jobs),
        cmocka_unit_test(no_pool_is_the_calling_thread),
        cmocka_unit_test(the_lowest_failure_is_reported),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(queues_carry_everything_between_threads),
        cmocka_unit_test(closing_wakes_a_waiting_producer),
        cmocka_unit_test(signals_stay_with_the_main_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
