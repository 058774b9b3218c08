/* parallel.h - the only place where kernels meet threads.
 *
 * A kernel is a function of a range of items; what an item computes depends on
 * its number alone, so that the same bits come out with any number of threads.
 * Work is divided for the threads that the launch was planned with, whoever runs the parts. */
#ifndef TP_ENGINE_BACKEND_CPU_PARALLEL_H
#define TP_ENGINE_BACKEND_CPU_PARALLEL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/backend/backend.h"

/* Items begin .. end-1; `thread` is below the launch's threads: for scratch. */
typedef void tp_cpu_range(const void *context, int64_t begin, int64_t end, int thread);

/* A few contiguous ranges per thread.  `cost` is roughly the bytes that all items
 * touch: little work is not worth waking other threads for. */
void tp_cpu_static(const tp_launch *launch, int64_t n_items, int64_t cost, tp_cpu_range *run,
                   const void *context);

/* One item at a time to whichever thread is free, in ascending order: put the
 * expensive ones first. */
void tp_cpu_dynamic(const tp_launch *launch, int64_t n_items, int64_t cost, tp_cpu_range *run,
                    const void *context);

/* Around what one thread computes of a kernel: rounding to nearest, no exceptions, denormals as
 * zero (badly scaled weights would make every product several times slower), whatever the
 * caller's or a worker's state is.  leave gets what enter returned and brings that state back:
 * threads of the program keep theirs. */
unsigned tp_cpu_enter_kernel(void);
void tp_cpu_leave_kernel(unsigned state);

#endif
