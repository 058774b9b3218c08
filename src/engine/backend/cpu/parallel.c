/* parallel.c - the floating-point state of a kernel, and a loop shared out over threads. */
#include "engine/backend/cpu/parallel.h"

#include <omp.h>
#include <stddef.h>

#include "engine/backend/cpu/team.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#if defined(__SSE__)
/* Of MXCSR: every exception masked, results flushed, denormals are zero. */
enum { STATE_OF_KERNELS = 0x1f80 | 0x8000 | 0x0040 };

unsigned tp_cpu_enter_kernel(void)
{
    unsigned state = _mm_getcsr();
    if (state != STATE_OF_KERNELS)
        _mm_setcsr(STATE_OF_KERNELS);
    return state;
}

void tp_cpu_leave_kernel(unsigned state) { _mm_setcsr(state); }
#else
unsigned tp_cpu_enter_kernel(void) { return 0; }
void tp_cpu_leave_kernel(unsigned state) { (void)state; }
#endif

static void run_in_state(tp_cpu_range *run, const void *context, int64_t begin, int64_t end,
                         int thread)
{
    unsigned state = tp_cpu_enter_kernel();
    run(context, begin, end, thread);
    tp_cpu_leave_kernel(state);
}

/* Waking a team and waiting for it costs some microseconds: what one thread does to this many
 * bytes in its caches. */
enum { WORTH_A_TEAM = 1 << 17 };

/* For team.h: a worker begins after its caller came here, and the caller goes on after all
 * workers are done. */
static char begun, done;

TP_TEAM_FUNCTION void tp_cpu_static(int threads, int64_t n_items, int64_t cost, tp_cpu_range *run,
                                    const void *context)
{
    if (threads > n_items)
        threads = (int)n_items;
    if (threads <= 1 || cost < WORTH_A_TEAM) {
        if (n_items > 0)
            run_in_state(run, context, 0, n_items, 0);
        return;
    }
    TP_TEAM_RELEASE(&begun);
#pragma omp parallel num_threads(threads)
    {
        TP_TEAM_ACQUIRE(&begun);
        int thread = omp_get_thread_num(), team = omp_get_num_threads();
        int64_t begin = n_items * thread / team, end = n_items * (thread + 1) / team;
        if (begin < end)
            run_in_state(run, context, begin, end, thread);
        TP_TEAM_RELEASE(&done);
    }
    TP_TEAM_ACQUIRE(&done);
}

TP_TEAM_FUNCTION void tp_cpu_dynamic(int threads, int64_t n_items, tp_cpu_range *run,
                                     const void *context)
{
    if (threads <= 1 || n_items <= 1) {
        unsigned state = tp_cpu_enter_kernel();
        for (int64_t i = 0; i < n_items; i++)
            run(context, i, i + 1, 0);
        tp_cpu_leave_kernel(state);
        return;
    }
    TP_TEAM_RELEASE(&begun);
#pragma omp parallel num_threads(threads)
    {
        TP_TEAM_ACQUIRE(&begun);
        unsigned state = tp_cpu_enter_kernel();
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t i = 0; i < n_items; i++)
            run(context, i, i + 1, omp_get_thread_num());
        tp_cpu_leave_kernel(state);
        TP_TEAM_RELEASE(&done);
    }
    TP_TEAM_ACQUIRE(&done);
}
