/* test_affinity.c - places of threads on machines that hwloc makes up, threads that are bound and
 * who is not, memory policies that are refused, niceness. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/affinity.h"
#include "base/team.h"

/* In a child: hwloc looks at the machine once.  `machine` NULL: the one there is. */
static int in_child(const char *machine, int (*look)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (machine)
            setenv("HWLOC_SYNTHETIC", machine, 1);
        _exit(look());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int expect_places(tp_affinity kind, int threads, const int *wanted)
{
    for (int i = 0; i < threads; i++)
        if (tp_affinity_place(kind, i, threads) != wanted[i])
            return i + 1;
    return tp_affinity_place(kind, threads, threads) == -1 ? 0 : 100;
}

/* Processors 0 and 1 are the first core, 2 and 3 the second. */
static int look_close(void)
{
    return expect_places(TP_AFFINITY_CLOSE, 8, (const int[]){0, 2, 4, 6, 1, 3, 5, 7});
}

static int look_spread(void) { return expect_places(TP_AFFINITY_SPREAD, 2, (const int[]){0, 4}); }

static int look_too_many(void)
{
    char why[128] = "";
    return !tp_affinity_refused(TP_AFFINITY_CLOSE, 9, why, sizeof why) ||
           strcmp(why, "9 threads, 8 processors") != 0 ||
           tp_affinity_place(TP_AFFINITY_CLOSE, 0, 9) != -1;
}

static int look_for_hwloc(void) { return tp_affinity_place(TP_AFFINITY_CLOSE, 0, 1) >= 0; }

static void skip_without_hwloc(void)
{
    if (!in_child(NULL, look_for_hwloc)) {
        print_message("skipped: no hwloc\n");
        skip();
    }
}

static void one_processor_of_every_core_comes_first(void **state)
{
    skip_without_hwloc();
    assert_int_equal(in_child("node:2 core:2 pu:2(indexes=0,1,2,3,4,5,6,7)", look_close), 0);
}

static void spread_threads_are_far_apart(void **state)
{
    skip_without_hwloc();
    assert_int_equal(in_child("node:2 core:4 pu:1", look_spread), 0);
}

static void more_threads_than_processors_are_not_bound(void **state)
{
    skip_without_hwloc();
    assert_int_equal(in_child("node:2 core:2 pu:2", look_too_many), 0);
}

/* ---- what is really done ---- */

typedef struct {
    _Atomic int count[2];
    int first[2];
} masks;

static void note_mask(const void *context, int part, int thread)
{
    masks *m = (masks *)(uintptr_t)context;
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    m->count[thread] = CPU_COUNT(&set);
    for (int i = 0; i < CPU_SETSIZE && !m->first[thread]; i++)
        m->first[thread] = CPU_ISSET((unsigned)i, &set) ? i + 1 : 0;
    for (int i = 0; i < 10000 && m->count[!thread] == 0; i++)
        sched_yield(); /* the other thread is to come, too */
}

static int look_bound(void)
{
    tp_team *team = NULL;
    masks m = {0};
    cpu_set_t before, after;
    sched_getaffinity(0, sizeof before, &before);
    tp_affinity_use(TP_AFFINITY_CLOSE);
    if (tp_team_create(&team, 2, 2, NULL) != TP_OK)
        return 1;
    for (int i = 0; i < 1000 && m.count[1] == 0; i++)
        tp_team_run(team, 2, 8, note_mask, &m);
    tp_team_free(team);
    sched_getaffinity(0, sizeof after, &after);
    if (!CPU_EQUAL(&before, &after))
        return 2; /* the caller is not bound */
    if (m.count[1] != 1)
        return 3;
    return m.first[1] == tp_affinity_place(TP_AFFINITY_CLOSE, 1, 2) + 1 ? 0 : 4;
}

static void threads_of_a_team_are_bound_and_its_caller_is_not(void **state)
{
    skip_without_hwloc();
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
#if defined(__SANITIZE_THREAD__)
    CPU_ZERO(&set); /* it allows no threads in a child */
#endif
    if (CPU_COUNT(&set) < 2)
        skip();
    assert_int_equal(in_child(NULL, look_bound), 0);
}

static int look_restricted(void)
{
    char why[128] = "";
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    int last = 0;
    for (int i = 0; i < CPU_SETSIZE; i++)
        last = CPU_ISSET((unsigned)i, &all) ? i : last;
    CPU_SET((unsigned)last, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        return 1;
    if (!tp_affinity_refused(TP_AFFINITY_SPREAD, 2, why, sizeof why) ||
        strcmp(why, "2 threads, 1 processor") != 0)
        return 2;
    return tp_affinity_place(TP_AFFINITY_CLOSE, 0, 1) == last ? 0 : 3;
}

static void processors_that_are_not_ours_are_no_places(void **state)
{
    skip_without_hwloc();
    assert_int_equal(in_child(NULL, look_restricted), 0);
}

/* Made up, so that nothing says before that they are not there. */
static int look_missing(void)
{
    char why[128] = "";
    tp_affinity_use(TP_AFFINITY_CLOSE);
    if (tp_affinity_refused(TP_AFFINITY_CLOSE, 2, why, sizeof why))
        return 1;
    tp_affinity_bind(1, 2);
    if (!tp_affinity_refused(TP_AFFINITY_CLOSE, 2, why, sizeof why) ||
        strcmp(why, "sched_setaffinity: Invalid argument") != 0)
        return 2;
    tp_affinity_use(TP_AFFINITY_CLOSE); /* asked for anew, tried anew */
    return tp_affinity_refused(TP_AFFINITY_CLOSE, 2, why, sizeof why) ? 3 : 0;
}

static void a_thread_that_could_not_be_bound_is_told(void **state)
{
    skip_without_hwloc();
    assert_int_equal(in_child("core:2 pu:1(indexes=6000,6001)", look_missing), 0);
}

static int look_nodes(void)
{
    char why[128] = "";
    return tp_numa_interleave_refused(why, sizeof why) && strcmp(why, "one NUMA node") == 0;
}

static void one_node_has_nothing_to_interleave(void **state)
{
    skip_without_hwloc();
    assert_int_equal(in_child("node:1 core:2 pu:1", look_nodes), 1);
    assert_int_equal(in_child("node:2 core:2 pu:1", look_nodes), 0);
}

static int look_nice(void)
{
    tp_niceness_raise(7);
    if (getpriority(PRIO_PROCESS, 0) != 7)
        return 1;
    tp_niceness_raise(3); /* nothing is taken back */
    return getpriority(PRIO_PROCESS, 0) == 7 ? 0 : 2;
}

static void niceness_only_rises(void **state)
{
    if (getpriority(PRIO_PROCESS, 0) > 6)
        skip();
    assert_int_equal(in_child(NULL, look_nice), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_processor_of_every_core_comes_first),
        cmocka_unit_test(spread_threads_are_far_apart),
        cmocka_unit_test(more_threads_than_processors_are_not_bound),
        cmocka_unit_test(threads_of_a_team_are_bound_and_its_caller_is_not),
        cmocka_unit_test(processors_that_are_not_ours_are_no_places),
        cmocka_unit_test(a_thread_that_could_not_be_bound_is_told),
        cmocka_unit_test(one_node_has_nothing_to_interleave),
        cmocka_unit_test(niceness_only_rises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
