/* local_ranks.h - ranks that are threads of one process, for tests of what ranks do together. */
#ifndef TP_TESTS_LOCAL_RANKS_H
#define TP_TESTS_LOCAL_RANKS_H

#include "engine/comm/comm.h"

/* Their clock is that much faster than the machine's, so that long waits need not be long. */
enum { LOCAL_RANKS_SPEED = 1000 };

/* Runs `fn` as each of `n` ranks at once, and returns when all are done. */
void local_ranks_run(int n, void (*fn)(tp_comm *comm, void *user), void *user);

#endif
