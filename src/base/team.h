/* team.h - the threads that compute one thing together, for work of some microseconds.
 *
 * A team runs the parts of a job and returns when all are done (fork and join).  What a part
 * computes depends on its number alone, so how many threads there are, and who ran what, changes
 * no bit.  The caller works along.
 *
 * Made for machines that others use too:
 *   - no more threads work than there are processors, however many were asked for;
 *   - nobody waits for a thread that has not begun: others take its parts over, so give a job
 *     some parts per thread;
 *   - who waits looks for some microseconds, then sleeps; who mostly waited in vain sleeps
 *     at once (docs/design/0011-a-team-per-device.md).
 *
 * A job of a team that is busy, with another thread's job or with the one that asks, runs on the
 * caller alone; so does every job in a child of fork(), where the threads are not.
 *
 * base/threads.h is for coarse tasks that can fail. */
#ifndef TP_BASE_TEAM_H
#define TP_BASE_TEAM_H

#include "base/error.h"

typedef struct tp_team tp_team;

/* `threads` with the caller, 1 to 4096, of which no more than `processors` are made. */
TP_CHECKED tp_status tp_team_create(tp_team **ret, int threads, int processors, tp_error *err);
/* Joins them; not while a job runs.  NULL is a no-op. */
void tp_team_free(tp_team *team);
int tp_team_size(const tp_team *team); /* threads there are, the caller included; NULL: 1 */

/* `thread` is below the number of threads asked for, and of no other part at the same time: for
 * scratch. */
typedef void tp_team_part(const void *context, int part, int thread);

/* run(context, 0, ...) .. run(context, n - 1, ...), each once, on up to `threads` threads; what
 * all of them wrote is there when it returns.  A NULL team is the caller alone. */
void tp_team_run(tp_team *team, int threads, int n, tp_team_part *run, const void *context);

#endif
