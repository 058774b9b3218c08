/* trace_bench.c - what recording costs a thread, in nanoseconds of its own processor time.
 *
 *     trace_bench [ROUNDS]
 *
 * Rounds are interleaved and each figure is printed as median (least, most) of its rounds.  The
 * floor of a zone is two reads of the time stamp counter. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "trace/trace.h"

enum { N = 2000000, MOST = 1001 };

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static volatile uint64_t sink;

static void empty_loop(void)
{
    for (int i = 0; i < N; i++)
        __asm__ volatile("" ::: "memory");
}

static void read_twice(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < N; i++) {
#if defined(__x86_64__)
        sum += __builtin_ia32_rdtsc();
        sum += __builtin_ia32_rdtsc();
#endif
        __asm__ volatile("" ::: "memory");
    }
    sink = sum;
}

static void zones(void)
{
    for (int i = 0; i < N; i++) {
        TP_ZONE("zone");
        __asm__ volatile("" ::: "memory");
    }
}

static void values(void)
{
    for (int i = 0; i < N; i++)
        TP_COUNTER("value", i);
}

static void memory(void)
{
    for (int i = 0; i < N; i++)
        TP_MEMORY("data", "bench", NULL, 1);
}

static void pushes(void)
{
    for (int i = 0; i < N; i++) {
        TP_PUSH("range");
        __asm__ volatile("" ::: "memory");
        TP_POP();
    }
}

static void timers(void)
{
    tp_counter *counter = tp_counter_get("bench");
    for (int i = 0; i < N; i++) {
        tp_counter_start(counter);
        if (tp_counter_stop(counter, NULL) != TP_OK)
            abort();
    }
}

typedef struct {
    const char *name;
    void (*run)(void);
    bool recording;
    double ns[MOST];
} figure;

static double time_of(const figure *f)
{
    double from = cpu_ns();
    f->run();
    return (cpu_ns() - from) / N;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    static figure figures[] = {
        {.name = "empty loop", .run = empty_loop},
        {.name = "two TSC reads (the floor)", .run = read_twice},
        {.name = "zone, recording", .run = zones, .recording = true},
        {.name = "zone, off", .run = zones},
        {.name = "push and pop, recording", .run = pushes, .recording = true},
        {.name = "value, recording", .run = values, .recording = true},
        {.name = "memory event, recording", .run = memory, .recording = true},
        {.name = "timer start and stop", .run = timers}};
    enum { FIGURES = sizeof figures / sizeof *figures };
    int rounds = argc > 1 ? atoi(argv[1]) : 9;
    tp_error err;
    if (rounds < 1 || rounds > MOST) {
        fprintf(stderr, "trace_bench: rounds from 1 to %d\n", MOST);
        return 2;
    }
    tp_trace_options options = {.size = sizeof options};
    if (tp_trace_start(&options, &err) != TP_OK) {
        fprintf(stderr, "trace_bench: %s\n", err.message);
        return 2;
    }
    for (int r = 0; r < rounds; r++)
        for (int k = 0; k < FIGURES; k++) {
            tp_trace_pause(!figures[k].recording);
            figures[k].ns[r] = time_of(&figures[k]);
        }
    for (int k = 0; k < FIGURES; k++) {
        double *ns = figures[k].ns;
        qsort(ns, (size_t)rounds, sizeof *ns, compare);
        printf("%-28s %7.2f ns  (%.2f to %.2f)\n", figures[k].name, ns[rounds / 2], ns[0],
               ns[rounds - 1]);
    }
    double floor = figures[1].ns[rounds / 2] - figures[0].ns[rounds / 2];
    double zone = figures[2].ns[rounds / 2] - figures[0].ns[rounds / 2];
    printf("%-28s %7.2f\n", "zone / floor", zone / floor);
    printf("%-28s %7.2f ns\n", "off, above the empty loop",
           figures[3].ns[rounds / 2] - figures[0].ns[rounds / 2]);
    tp_trace_release();
    return 0;
}
