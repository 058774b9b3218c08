/* test_team.c - every part once whatever the sizes, who runs what when a team is busy or gone, and
 * threads that come and go. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/team.h"

/* The thread sanitizer allows no threads in a child of a process that has some. */
#if defined(__SANITIZE_THREAD__)
enum { CHILD_HAS_THREADS = 0 };
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
enum { CHILD_HAS_THREADS = 0 };
#else
enum { CHILD_HAS_THREADS = 1 };
#endif
#else
enum { CHILD_HAS_THREADS = 1 };
#endif

enum { MOST = 40 };

/* Plain numbers: what one thread wrote, another reads after the join. */
typedef struct {
    int runs[MOST];
    _Atomic int threads_inside, most_inside;
} tally;

static tp_team *make(int threads, int processors)
{
    tp_team *team = NULL;
    assert_int_equal(tp_team_create(&team, threads, processors, NULL), TP_OK);
    return team;
}

static void count(const void *context, int part, int thread)
{
    tally *t = (tally *)(uintptr_t)context;
    t->runs[part]++;
}

static void assert_each_once(const tally *t, int n)
{
    for (int part = 0; part < MOST; part++)
        assert_int_equal(t->runs[part], part < n);
}

static void every_part_runs_once(void **state)
{
    static const int sizes[] = {1, 2, 3, 8};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        tp_team *team = make(sizes[s], 8);
        assert_int_equal(tp_team_size(team), sizes[s]);
        for (int round = 0; round < 200; round++) {
            tally t = {0};
            tp_team_run(team, MOST, round % MOST, count, &t);
            assert_each_once(&t, round % MOST);
        }
        tp_team_free(team);
    }
}

static void no_team_is_the_caller_alone(void **state)
{
    tally t = {0};
    tp_team_run(NULL, MOST, 7, count, &t);
    assert_each_once(&t, 7);
    assert_int_equal(tp_team_size(NULL), 1);
    tp_team_free(NULL);
}

static void count_inside(const void *context, int part, int thread)
{
    tally *t = (tally *)(uintptr_t)context;
    int inside = atomic_fetch_add(&t->threads_inside, 1) + 1;
    int most = atomic_load(&t->most_inside);
    while (inside > most && !atomic_compare_exchange_weak(&t->most_inside, &most, inside))
        continue;
    sched_yield();
    t->runs[part]++;
    atomic_fetch_sub(&t->threads_inside, 1);
}

static void no_more_threads_than_processors(void **state)
{
    tp_team *team = make(16, 2);
    assert_int_equal(tp_team_size(team), 2);
    tally t = {0};
    for (int round = 0; round < 200; round++)
        tp_team_run(team, MOST, 16, count_inside, &t);
    assert_in_range(t.most_inside, 1, 2);
    for (int part = 0; part < 16; part++)
        assert_int_equal(t.runs[part], 200);
    tp_team_free(team);
    team = make(4, 1);
    assert_int_equal(tp_team_size(team), 1);
    tp_team_free(team);
}

/* The caller does not come out of its part before a worker is in another one. */
typedef struct {
    _Atomic int worker_is_in;
    pthread_t caller;
} holding;

static void hold_worker(const void *context, int part, int thread)
{
    holding *h = (holding *)(uintptr_t)context;
    if (!pthread_equal(pthread_self(), h->caller))
        atomic_store(&h->worker_is_in, 1);
    else
        while (part == 0 && !atomic_load(&h->worker_is_in))
            sched_yield();
}

static void threads_work_at_the_same_time(void **state)
{
    tp_team *team = make(2, 2);
    for (int round = 0; round < 50; round++) {
        holding h = {.caller = pthread_self()};
        tp_team_run(team, MOST, 2, hold_worker, &h);
        assert_int_equal(h.worker_is_in, 1);
    }
    tp_team_free(team);
}

enum { NUMBERS = 3 };

typedef struct {
    _Atomic int in_use[NUMBERS];
    _Atomic int wrong;
} scratches;

static void use_scratch(const void *context, int part, int thread)
{
    scratches *s = (scratches *)(uintptr_t)context;
    if (thread < 0 || thread >= NUMBERS || atomic_exchange(&s->in_use[thread], 1)) {
        atomic_fetch_add(&s->wrong, 1);
        return;
    }
    if (part % 100 == 0)
        sched_yield();
    atomic_store(&s->in_use[thread], 0);
}

static void a_threads_number_is_its_own_and_below_what_was_asked_for(void **state)
{
    tp_team *team = make(8, 8);
    scratches s = {0};
    for (int round = 0; round < 300; round++)
        tp_team_run(team, NUMBERS, 1000, use_scratch, &s);
    assert_int_equal(s.wrong, 0);
    tp_team_free(team);
}

static void a_rest_in_between_does_no_harm(void **state)
{
    tp_team *team = make(3, 3);
    tally t = {0};
    for (int round = 0; round < 20; round++) {
        /* no verdict: workers may fall asleep, or not */
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        tp_team_run(team, MOST, 3, count, &t);
        tp_team_run(team, MOST, 3, count, &t);
    }
    for (int part = 0; part < 3; part++)
        assert_int_equal(t.runs[part], 40);
    tp_team_free(team);
}

/* ---- busy teams ---- */

typedef struct {
    tp_team *team;
    tally inner[4];
} nest;

static void run_inside(const void *context, int part, int thread)
{
    nest *n = (nest *)(uintptr_t)context;
    tp_team_run(n->team, MOST, 9, count, &n->inner[part]);
}

static void a_job_inside_a_job_runs_on_its_thread(void **state)
{
    nest n = {.team = make(4, 4)};
    tp_team_run(n.team, MOST, 4, run_inside, &n);
    for (int part = 0; part < 4; part++)
        assert_each_once(&n.inner[part], 9);
    tp_team_free(n.team);
}

typedef struct {
    tp_team *team;
    int rounds, wrong;
} caller;

static void *call_often(void *argument)
{
    caller *c = argument;
    for (int round = 0; round < c->rounds; round++) {
        tally t = {0};
        int n = round % MOST;
        tp_team_run(c->team, MOST, n, count, &t);
        for (int part = 0; part < MOST; part++)
            c->wrong += t.runs[part] != (part < n);
    }
    return NULL;
}

static void call_from_two_threads(tp_team *first, tp_team *second)
{
    caller callers[2] = {{first, 2000, 0}, {second, 2000, 0}};
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, call_often, &callers[0]), 0);
    call_often(&callers[1]);
    pthread_join(other, NULL);
    assert_int_equal(callers[0].wrong + callers[1].wrong, 0);
}

static void two_threads_may_call_one_team(void **state)
{
    tp_team *team = make(3, 3);
    call_from_two_threads(team, team);
    tp_team_free(team);
}

static void two_teams_work_side_by_side(void **state)
{
    tp_team *two = make(2, 2), *four = make(4, 4);
    call_from_two_threads(two, four);
    tp_team_free(two);
    tp_team_free(four);
}

/* ---- beginnings and ends ---- */

static void teams_come_and_go(void **state)
{
    for (int round = 0; round < 100; round++) {
        tp_team *team = make(1 + round % 5, 5);
        tally t = {0};
        if (round % 3)
            tp_team_run(team, MOST, 5, count, &t);
        assert_each_once(&t, round % 3 ? 5 : 0);
        tp_team_free(team);
    }
}

static int child_of(tp_team *team)
{
    pid_t pid = fork();
    if (pid == 0) {
        tally t = {0};
        int wrong = 0;
        for (int round = 0; round < 50; round++)
            tp_team_run(team, MOST, 8, count, &t);
        for (int part = 0; part < 8; part++)
            wrong += t.runs[part] != 50;
        tp_team_free(team);
        tp_team *own = NULL;
        wrong += tp_team_create(&own, 1 + CHILD_HAS_THREADS, 2, NULL) != TP_OK;
        tp_team_run(own, MOST, 2, count, &t);
        tp_team_free(own);
        _exit(wrong != 0 || t.runs[0] != 51 || t.runs[1] != 51);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void a_forked_child_computes_alone(void **state)
{
    tp_team *team = make(4, 4);
    tally t = {0};
    for (int round = 0; round < 5; round++) {
        tp_team_run(team, MOST, 8, count, &t);
        if (round == 3) /* no verdict: workers are asleep by now, mostly */
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        assert_int_equal(child_of(team), 0);
    }
    tp_team_run(team, MOST, 8, count, &t);
    for (int part = 0; part < 8; part++)
        assert_int_equal(t.runs[part], 6);
    tp_team_free(team);
}

typedef struct {
    tp_team *team;
    _Atomic int is_inside, may_end;
} long_job;

static void stay(const void *context, int part, int thread)
{
    long_job *j = (long_job *)(uintptr_t)context;
    atomic_store(&j->is_inside, 1);
    while (!atomic_load(&j->may_end))
        sched_yield();
}

static void *run_long(void *argument)
{
    long_job *j = argument;
    tp_team_run(j->team, MOST, 2, stay, j);
    return NULL;
}

static void a_fork_in_the_middle_of_a_job_does_no_harm(void **state)
{
    long_job j = {.team = make(2, 2)};
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, run_long, &j), 0);
    while (!atomic_load(&j.is_inside))
        sched_yield();
    assert_int_equal(child_of(j.team), 0);
    atomic_store(&j.may_end, 1);
    pthread_join(other, NULL);
    tp_team_free(j.team);
}

static void sizes_that_make_no_sense_are_refused(void **state)
{
    tp_team *team = NULL;
    tp_error err;
    assert_int_equal(tp_team_create(&team, 0, 2, &err), TP_ERR_ARG);
    assert_string_equal(err.message, "a team of 0 threads; expected 1 to 4096");
    assert_int_equal(tp_team_create(&team, 4097, 2, &err), TP_ERR_ARG);
    assert_null(team);
}

typedef struct {
    holding hold;
    char name[16];
} naming;

static void keep_name(const void *context, int part, int thread)
{
    naming *n = (naming *)(uintptr_t)context;
    if (!pthread_equal(pthread_self(), n->hold.caller))
        pthread_getname_np(pthread_self(), n->name, sizeof n->name);
    hold_worker(&n->hold, part, thread);
}

static void workers_have_names(void **state)
{
    tp_team *team = make(2, 2);
    naming n = {.hold.caller = pthread_self()};
    tp_team_run(team, MOST, 2, keep_name, &n);
    assert_string_equal(n.name, "temper-cpu 1");
    tp_team_free(team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_runs_once),
        cmocka_unit_test(no_team_is_the_caller_alone),
        cmocka_unit_test(no_more_threads_than_processors),
        cmocka_unit_test(threads_work_at_the_same_time),
        cmocka_unit_test(a_threads_number_is_its_own_and_below_what_was_asked_for),
        cmocka_unit_test(a_rest_in_between_does_no_harm),
        cmocka_unit_test(a_job_inside_a_job_runs_on_its_thread),
        cmocka_unit_test(two_threads_may_call_one_team),
        cmocka_unit_test(two_teams_work_side_by_side),
        cmocka_unit_test(teams_come_and_go),
        cmocka_unit_test(a_forked_child_computes_alone),
        cmocka_unit_test(a_fork_in_the_middle_of_a_job_does_no_harm),
        cmocka_unit_test(sizes_that_make_no_sense_are_refused),
        cmocka_unit_test(workers_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
