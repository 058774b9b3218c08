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
#include "engine/device/tensor.h"
#include "engine/exec/wire.h"

/* Who trains together.  Zeroed: one process.  Where ranks share the layers (`tensor`: which part of
 * them this one has, of how many), those that follow one another do, and are one in `rank` and
 * `ranks`: they have the same data. */
typedef struct {
    tp_comm *comm; /* NULL: nothing is sent, as for a plan */
    int rank, ranks;
    tp_shard tensor;
    int node;    /* so many ranks, one behind the other, keep the parts of a tensor; 0: all */
    int on_host; /* so many processes share this one's memory; 0: it has all of it */
    size_t bucket_bytes;
} tp_ranks;

/* As the communicator counts. */
int tp_ranks_processes(const tp_ranks *ranks);

/* Which of the processes this one is: of what has a row for each. */
tp_shard tp_ranks_row(const tp_ranks *ranks);

/* The part that this rank keeps of a tensor that is kept in parts. */
tp_shard tp_ranks_shard(const tp_ranks *ranks);

typedef struct tp_traffic tp_traffic;

/* What is told in a run: in the last micro-batch of a step all, before it what has to do with
 * parts, and when a rank looks at its own results nothing but the weights that it needs. */
typedef enum { TP_TALK_ALL, TP_TALK_PARTS, TP_TALK_WEIGHTS } tp_talk;

/* In the arena; NULL where no launch is a matter of several ranks.  `launches` stays. */
tp_traffic *tp_traffic_plan(const tp_ranks *ranks, const tp_launch *launches, size_t n,
                            tp_arena *arena);
size_t tp_traffic_staging_bytes(const tp_traffic *traffic);
/* Of what launch i begins, a rank's on average; zeroed: it begins nothing. */
typedef struct {
    double bytes, plain_bytes; /* sent; and if it were not compressed */
    double rounds;             /* messages in a row */
    int ranks, stride;         /* among so many, so many places from one to the next */
    bool is_encoded;
} tp_begun;
tp_begun tp_traffic_begun(const tp_traffic *traffic, size_t i);

/* What this rank compressed so far. */
typedef struct {
    double plain_bytes;  /* that would have been sent: its average share */
    double square, lost; /* squares of the numbers that were encoded, and of what that lost */
} tp_wire_stats;
tp_wire_stats tp_traffic_wire_stats(const tp_traffic *traffic);
/* Its number of what goes together, for a wait that of what it waits for; -1: none. */
int tp_traffic_bucket(const tp_traffic *traffic, size_t i);
tp_collective_kind tp_traffic_kind(const tp_traffic *traffic, size_t i);
bool tp_traffic_is_told(const tp_traffic *traffic, size_t i, tp_talk talk);
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
TP_CHECKED tp_status tp_traffic_run(tp_traffic *traffic, size_t i, tp_talk talk, tp_error *err);
/* Between other launches. */
void tp_traffic_progress(tp_traffic *traffic);
/* In a rehearsal: whether something is on its way; something else was done meanwhile. */
bool tp_traffic_is_busy(const tp_traffic *traffic);
void tp_traffic_pass(tp_traffic *traffic, double seconds);

#endif
