/* comm.h - the processes of a run, and what they say to each other.
 *
 * A communicator is this process among `size` of them; alone it is `self`, for which everything
 * here is done at once.  Collectives are our own schedules of messages between two ranks: the
 * order of every sum follows from the parts and the number of ranks alone, so that neither the
 * size of a message nor the moment at which it is sent changes a bit.  With 2^k ranks they are
 * recursive halving and doubling, else an exchange in rings.
 *
 *     tp_comm_open(&comm, &err);                            what mpirun or srun started
 *     tp_comm_start(comm, &collective, &request, &err);     begins, and returns
 *     tp_comm_progress(comm);                               between other work
 *     tp_comm_wait(comm, request, &err);                    done
 *     tp_comm_close(comm, status);
 *
 * Every rank calls the same things in the same order.  What fails on one rank and is told with
 * tp_comm_fail() ends the waiting of all others, and so does a rank that is gone. */
#ifndef TP_ENGINE_COMM_COMM_H
#define TP_ENGINE_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/comm/transport.h"

typedef struct tp_comm tp_comm;

/* Joins those that a launcher started along with this process. */
TP_CHECKED tp_status tp_comm_open(tp_comm **ret, tp_error *err);
/* Over a transport that is there; `transport` outlives the communicator. */
TP_CHECKED tp_status tp_comm_open_over(tp_transport *transport, tp_comm **ret, tp_error *err);
/* With TP_OK all leave together.  Otherwise those that still live have been told, and leave
 * together if they can within seconds; else the launcher ends them when this process ends. */
void tp_comm_close(tp_comm *comm, tp_status status); /* NULL is a no-op */
/* Whether a launcher started this process as one of several. */
bool tp_comm_is_launched(void);

/* `comm` may be NULL: one process. */
int tp_comm_rank(const tp_comm *comm);
int tp_comm_size(const tp_comm *comm);
int tp_comm_local_rank(const tp_comm *comm); /* among those on this host */
int tp_comm_local_size(const tp_comm *comm);
const char *tp_comm_host(const tp_comm *comm, int rank);
const char *tp_comm_transport(const tp_comm *comm); /* "Open MPI v4.1.4"; "self" */

/* Processors that this rank may use: those of its own, and its share of those that it has in
 * common with other ranks; at least 1. */
int tp_comm_processors(const tp_comm *comm);

/* ---- collectives ---- */

typedef enum {
    TP_REDUCE_SCATTER, /* of a rank's own part: the sum over ranks; the others are lost */
    TP_ALL_GATHER,     /* every part: its rank's */
    TP_ALL_REDUCE      /* every part: the sum */
} tp_collective_kind;

/* into[i] += from[i] */
typedef void (*tp_add_fn)(void *into, const void *from, size_t n);
void tp_add_f32(void *into, const void *from, size_t n);

/* Ranks first, first + stride ...: `count` of them; zeroed: all.  What is said of ranks in a
 * collective is of their places in it. */
typedef struct {
    int first, stride, count;
} tp_comm_group;

/* What is exchanged is an encoded form of what is summed.  Each rank sends every other one its
 * part once, and whose part it is decodes and adds: what is its own, then what comes from the next
 * rank, the one after that ... round to the one before it. */
typedef struct {
    /* `n` elements of the own part, as another rank has sent them */
    void (*add)(void *user, const void *from, size_t n);
    /* the own sum is complete: encode it into the own part of the data, which is gathered next */
    tp_status (*turn)(void *user, tp_error *err);
    void *user;
} tp_exchange_coder;

typedef struct {
    tp_collective_kind kind;
    size_t element; /* bytes */
    tp_add_fn add;  /* of kinds that sum; NULL: nothing is there, seconds pass instead */
    void *data;     /* all parts, one behind the other, in place */
    void *temp;     /* of kinds that sum: as large as the data */
    /* [ranks + 1]: part i is the elements from starts[i] to starts[i + 1]; may be empty */
    const size_t *starts;
    tp_comm_group group;            /* that this rank is one of; every rank is in one of as many */
    double add_s;                   /* without `add`: of an element */
    const tp_exchange_coder *coder; /* (optional) of kinds that sum, in place of `add` */
} tp_exchange_spec;

typedef struct tp_exchange tp_exchange;

/* All that `collective` points to must stay until it is done.  *ret NULL: it is. */
TP_CHECKED tp_status tp_comm_start(tp_comm *comm, const tp_exchange_spec *collective,
                                   tp_exchange **ret, tp_error *err);
/* Go on with what was started, without waiting.  A failure shows in the next wait. */
void tp_comm_progress(tp_comm *comm);
bool tp_comm_is_busy(const tp_comm *comm); /* something is on its way */
/* The request is freed. */
TP_CHECKED tp_status tp_comm_wait(tp_comm *comm, tp_exchange *request, tp_error *err);
/* Both in one. */
TP_CHECKED tp_status tp_comm_exchange(tp_comm *comm, const tp_exchange_spec *collective,
                                      tp_error *err);
/* Messages in a row that it takes among so many ranks. */
int tp_comm_rounds(tp_collective_kind kind, int ranks, bool is_encoded);

/* ---- small things, done when they return ---- */

/* Sums of all ranks' numbers, added in the order of ranks. */
TP_CHECKED tp_status tp_comm_sum(tp_comm *comm, double *values, size_t n, tp_error *err);
TP_CHECKED tp_status tp_comm_max(tp_comm *comm, double *values, size_t n, tp_error *err);
/* ret: `bytes` of every rank, in their order. */
TP_CHECKED tp_status tp_comm_gather(tp_comm *comm, const void *mine, size_t bytes, void *ret,
                                    tp_error *err);
/* Of a rank, to all. */
TP_CHECKED tp_status tp_comm_broadcast(tp_comm *comm, void *data, size_t bytes, int from,
                                       tp_error *err);

/* What each rank came to: the failure of the first rank that has one is everybody's, "rank 2
 * (host): ..." unless all say the same. */
TP_CHECKED tp_status tp_comm_agree(tp_comm *comm, tp_status status, tp_error *err);
/* That ranks have the same of something; the error names what differs and where. */
typedef struct {
    const char *what; /* "training data" */
    char hash[33];    /* as text */
    int every;        /* rank i has what rank i % every has; 0: all have the same */
} tp_comm_fact;
TP_CHECKED tp_status tp_comm_compare(tp_comm *comm, const tp_comm_fact *facts, size_t n,
                                     tp_error *err);

/* Tell the others that this rank cannot go on.  Nothing to tell where the others know already. */
void tp_comm_fail(tp_comm *comm, const tp_error *err);
/* A rank is gone: each of the others notices that by itself. */
bool tp_comm_is_torn(const tp_comm *comm);

/* For messages: the last step that is done. */
void tp_comm_set_step(tp_comm *comm, int64_t step);
/* Where waiting for a rank takes long; NULL: nobody hears it. */
void tp_comm_on_notice(tp_comm *comm, void (*say)(void *user, const char *text), void *user);

/* This rank's clock against that of rank 0: `now` here is offset_ns more than there, give or take
 * error_ns.  Every rank asks at once; `now` is in nanoseconds. */
typedef struct {
    int64_t offset_ns, error_ns;
} tp_clock_offset;
TP_CHECKED tp_status tp_comm_compare_clocks(tp_comm *comm, int64_t (*now)(void *user), void *user,
                                            tp_clock_offset *ret, tp_error *err);

/* ---- in a network that is simulated (world.h) ---- */

/* Something was computed for so long.  Nothing elsewhere. */
void tp_comm_pass(tp_comm *comm, double seconds);
double tp_comm_now_s(const tp_comm *comm); /* of the machine's clock, elsewhere */

/* ---- what it took ---- */

typedef struct {
    uint64_t bytes_sent; /* by this rank, measured where they are handed over */
    uint64_t messages;
    uint64_t encoded_bytes; /* of bytes_sent */
    double exposed_s;       /* this thread spent on it */
    double hidden_s;        /* something was on its way while this thread did other work */
} tp_comm_stats;
tp_comm_stats tp_comm_get_stats(const tp_comm *comm);

#endif
