/* parallel.c - the floating-point state of a kernel, and a loop shared out over threads. */
#include "engine/backend/cpu/parallel.h"

#include <stdatomic.h>

#include "base/platform.h"
#include "base/team.h"

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

/* Sharing work out and waiting for it costs up to some microseconds: what one thread does to this
 * many bytes in its caches. */
enum { WORTH_A_TEAM = 1 << 17, RANGES_PER_THREAD = 8 };

typedef struct {
    tp_cpu_range *run;
    const void *context;
    int64_t n_items;
    int ranges;
    _Atomic int64_t *next; /* (optional) item that nobody has taken */
} shared_loop;

static void run_range(const void *context, int range, int thread)
{
    const shared_loop *l = context;
    run_in_state(l->run, l->context, l->n_items * range / l->ranges,
                 l->n_items * (range + 1) / l->ranges, thread);
}

/* Several ranges per thread, so that others can take over, unless they get too small. */
static int ranges_of(const tp_launch *launch, int64_t n_items, int64_t cost)
{
    int64_t ranges = TP_MAX(cost / WORTH_A_TEAM / launch->threads, 1);
    ranges = TP_MIN(ranges, RANGES_PER_THREAD) * launch->threads;
    return cost < WORTH_A_TEAM || launch->threads <= 1 ? 1 : (int)TP_MIN(ranges, n_items);
}

void tp_cpu_static(const tp_launch *launch, int64_t n_items, int64_t cost, tp_cpu_range *run,
                   const void *context)
{
    const shared_loop l = {run, context, n_items, ranges_of(launch, n_items, cost), NULL};
    if (l.ranges > 1)
        tp_team_run(launch->team, launch->threads, l.ranges, run_range, &l);
    else if (n_items > 0)
        run_in_state(run, context, 0, n_items, 0);
}

static void run_items(const void *context, int part, int thread)
{
    const shared_loop *l = context;
    (void)part;
    unsigned state = tp_cpu_enter_kernel();
    for (int64_t i; (i = atomic_fetch_add_explicit(l->next, 1, memory_order_relaxed)) < l->n_items;)
        l->run(l->context, i, i + 1, thread);
    tp_cpu_leave_kernel(state);
}

void tp_cpu_dynamic(const tp_launch *launch, int64_t n_items, int64_t cost, tp_cpu_range *run,
                    const void *context)
{
    _Atomic int64_t next = 0;
    const shared_loop l = {run, context, n_items, 0, &next};
    int threads = cost < WORTH_A_TEAM ? 1 : (int)TP_MIN(n_items, launch->threads);
    tp_team_run(launch->team, threads, threads, run_items, &l);
}
