/* affinity.h - which processors threads stay on, and which NUMA nodes memory lies on: asked for,
 * refused.  hwloc knows the machine; it is loaded when something is asked of it.
 *
 * Threads of a team are bound, but for the one that calls: what it starts (judges, readers of
 * data) would inherit that.  Thread n of a team has place n:
 *
 *     close    processors in the order of the machine, one of every core, then the cores' others
 *     spread   the same, with equal gaps between the threads
 *
 * as with OMP_PLACES=cores and OMP_PROC_BIND. */
#ifndef TP_BASE_AFFINITY_H
#define TP_BASE_AFFINITY_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum { TP_AFFINITY_NONE, TP_AFFINITY_CLOSE, TP_AFFINITY_SPREAD } tp_affinity;

/* What teams are bound by from now on; the first answer is TP_AFFINITY_NONE. */
void tp_affinity_use(tp_affinity kind);
/* Bind the calling thread as number `thread` of `threads`, where that is in use. */
void tp_affinity_bind(int thread, int threads);
/* The processor, as the system numbers them, of thread `thread` of `threads`; -1: there is none. */
int tp_affinity_place(tp_affinity kind, int thread, int threads);
/* Can so many threads not be bound?  `why` gets a sentence then. */
bool tp_affinity_refused(tp_affinity kind, int threads, char *why, size_t size);

/* The processors that the calling thread may run on, however many the system numbers: 0 and a mask
 * of `*ret_bytes`, ended by CPU_FREE; else an errno. */
int tp_affinity_mask(cpu_set_t **ret, size_t *ret_bytes);

/* Pages that the calling thread, and threads that it starts, touch first from now on lie on all
 * NUMA nodes in turn (MPOL_INTERLEAVE); or where they are touched. */
void tp_numa_interleave(bool yes);
/* Would the system refuse, or is there nothing to choose from?  `why` gets a sentence then. */
bool tp_numa_interleave_refused(char *why, size_t size);

/* All threads of this process, and the processes that it starts, give way to others: 0 to 19, as
 * nice(1).  Never takes back what whoever started the process asked for. */
void tp_niceness_raise(int least);

#endif
