/* perf.c - the time of every kernel on the large cases: the best of several runs. */
#include "ops/bench.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ops/memory.h"

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double best_seconds(const tp_launch *launch)
{
    const double budget = 0.5;
    const int least_runs = 3;
    double best = 1e30, start = seconds_now();
    for (int n = 0; n < least_runs || seconds_now() - start < budget; n++) {
        double before = seconds_now();
        launch->kernel->run(launch);
        double taken = seconds_now() - before;
        best = taken < best ? taken : best;
    }
    return best;
}

static double moved_bytes(const tp_launch *launch)
{
    double bytes = 0;
    for (int i = 0; i < TP_MAX_IN + TP_MAX_OUT; i++) {
        const tp_operand *a = i < TP_MAX_IN ? &launch->in[i] : &launch->out[i - TP_MAX_IN];
        if (a->rank > 0)
            bytes += (double)(a->dim[0] * a->dim[1]) * (double)tp_dtype_size(a->dtype);
    }
    return bytes;
}

static void measure(memory *m, const tp_kernel *kernel, const problem *p, const char *label)
{
    int threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    memory_run(m, kernel, threads, 0); /* binds the workspace, warms up */
    double taken = best_seconds(&m->launch);
    double flops = tp_ops[p->op]->flops ? (double)evaluate(p, tp_ops[p->op]->flops) : 0;
    printf("%-34s %-8s %12.0f ns", kernel->name, label, taken * 1e9);
    printf(flops > 0 ? " %9.1f GFLOP/s" : "                  ", flops / taken * 1e-9);
    printf(" %7.1f GB/s\n", moved_bytes(&m->launch) / taken * 1e-9);
}

void measure_backend(tp_arena *arena, const tp_backend *backend, const char *only)
{
    static memory m;
    memory_init(&m);
    for (size_t i = 0; i < n_perf_cases; i++) {
        if (only && strcmp(tp_ops[perf_cases[i].op]->name, only) != 0)
            continue;
        printf("%s %s\n", tp_ops[perf_cases[i].op]->name, perf_cases[i].text);
        for (types t = TYPES_F32; t <= TYPES_BF16; t++) {
            size_t mark = tp_arena_mark(arena);
            problem p;
            problem_init(&p, arena, perf_cases[i].op, perf_cases[i].text, t, ~0u);
            memory_bind(&m, arena, &p, false, false);
            for (size_t k = 0; k < count_kernels(backend); k++) {
                const tp_kernel *kernel = backend->kernels[k];
                if (kernel->op == p.op && kernel->isa <= tp_cpu_detect() &&
                    (!kernel->accepts || kernel->accepts(&m.launch)))
                    measure(&m, kernel, &p, types_names[t]);
            }
            tp_arena_rewind(arena, mark);
        }
    }
}
