#include "engine/backend/cpu/parallel.h"

#include <omp.h>
#include <stddef.h>

#include "engine/backend/cpu/team.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

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
            run(context, 0, n_items, 0);
        return;
    }
    TP_TEAM_RELEASE(&begun);
#pragma omp parallel num_threads(threads)
    {
        TP_TEAM_ACQUIRE(&begun);
        int thread = omp_get_thread_num(), team = omp_get_num_threads();
        int64_t begin = n_items * thread / team, end = n_items * (thread + 1) / team;
        if (begin < end)
            run(context, begin, end, thread);
        TP_TEAM_RELEASE(&done);
    }
    TP_TEAM_ACQUIRE(&done);
}

TP_TEAM_FUNCTION void tp_cpu_dynamic(int threads, int64_t n_items, tp_cpu_range *run,
                                     const void *context)
{
    if (threads <= 1 || n_items <= 1) {
        for (int64_t i = 0; i < n_items; i++)
            run(context, i, i + 1, 0);
        return;
    }
    TP_TEAM_RELEASE(&begun);
#pragma omp parallel num_threads(threads)
    {
        TP_TEAM_ACQUIRE(&begun);
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t i = 0; i < n_items; i++)
            run(context, i, i + 1, omp_get_thread_num());
        TP_TEAM_RELEASE(&done);
    }
    TP_TEAM_ACQUIRE(&done);
}

#if defined(__SSE__)
enum { FLUSH_RESULTS = 0x8000, DENORMALS_ARE_ZERO = 0x0040 }; /* bits of MXCSR */

TP_TEAM_FUNCTION void tp_cpu_set_denormals(bool flush)
{
#pragma omp parallel
    {
        unsigned state = _mm_getcsr() & ~(unsigned)(FLUSH_RESULTS | DENORMALS_ARE_ZERO);
        _mm_setcsr(flush ? state | FLUSH_RESULTS | DENORMALS_ARE_ZERO : state);
    }
}
#else
void tp_cpu_set_denormals(bool flush) { (void)flush; }
#endif

void tp_cpu_prepare(int threads)
{
    if (threads > 0)
        omp_set_num_threads(threads);
    tp_cpu_set_denormals(true);
}
