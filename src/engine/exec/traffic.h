/* traffic.h - the launches of an executor that are a matter of all ranks.
 *
 * Their tensors are copied into a staging buffer in the order in which ranks own them, go out as
 * collectives of comm.h while other launches run, and are copied back when somebody waits.  A
 * bucket that is larger than the staging buffer goes in several pieces.  Memory is planned: three
 * pieces are on their way at most. */
#ifndef TP_ENGINE_EXEC_TRAFFIC_H
#define TP_ENGINE_EXEC_TRAFFIC_H

#include "base/arena.h"
#include "engine/backend/backend.h"
#include "engine/comm/comm.h"

/* Who trains together.  Zeroed: one process. */
typedef struct {
    tp_comm *comm; /* NULL: nothing is sent, as for a plan */
    int rank, ranks;
    size_t bucket_bytes;
} tp_ranks;

typedef struct tp_traffic tp_traffic;

/* In the arena; NULL where no launch is a matter of several ranks.  `launches` stays. */
tp_traffic *tp_traffic_plan(const tp_ranks *ranks, const tp_launch *launches, size_t n,
                            tp_arena *arena);
size_t tp_traffic_staging_bytes(const tp_traffic *traffic);
/* Bytes that a rank sends in a run, by the op that begins it. */
double tp_traffic_sent_bytes(const tp_traffic *traffic, tp_op op);
/* The same of what launch i begins, and in so many messages in a row; 0: it begins nothing. */
double tp_traffic_begun_bytes(const tp_traffic *traffic, size_t i, double *ret_rounds);
/* Messages that follow one another in a run. */
double tp_traffic_rounds(const tp_traffic *traffic);
void tp_traffic_bind(tp_traffic *traffic, void *staging);

/* The same in a network that is simulated (comm/world.h), as the rank of `comm`: what is exchanged
 * is not there, copying and adding take their time.  In the arena; shares what was planned. */
typedef struct {
    tp_comm *comm;
    void *nothing;      /* addresses of tp_traffic_staging_bytes() that nobody reads */
    double bytes_per_s; /* of memory, what is read and written together */
} tp_rehearsal;
tp_traffic *tp_traffic_rehearse(const tp_traffic *traffic, const tp_rehearsal *how,
                                tp_arena *arena);

/* Launch i, one of those with TP_OP_COMMUNICATES. */
TP_CHECKED tp_status tp_traffic_run(tp_traffic *traffic, size_t i, tp_error *err);
/* Between other launches. */
void tp_traffic_progress(tp_traffic *traffic);
/* In a rehearsal: whether something is on its way; something else was done meanwhile. */
bool tp_traffic_is_busy(const tp_traffic *traffic);
void tp_traffic_pass(tp_traffic *traffic, double seconds);

#endif
