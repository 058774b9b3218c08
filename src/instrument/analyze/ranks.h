/* ranks.h - several ranks of one job: who waits for whom.
 *
 * Collectives are matched over ranks by (group, sequence number) where the trace has them,
 * else the k-th of its kind on each rank; sends and receives are the k-th from one rank to
 * another, and not matched where the trace does not say between which.  Files come from different
 * hosts, whose clocks differ: all ranks of a collective end together, so
 *
 *     offset of rank r = median over collectives of (end on r - end on the reference)
 *
 * and starts are compared after taking it off.  Ranks that share nothing with the reference are
 * aligned over those that do; sets of ranks that share nothing have a reference each.  The spread
 * of those differences is the uncertainty; skews below it mean nothing.  Files of Temper say how
 * their clocks were off, measured by messages that went back and forth: where all do, that counts
 * instead.  Per collective:
 *
 *     wait of rank r = latest start - start of r       skew = latest - earliest start
 *     transfer       = shortest duration over ranks: what is left when nobody waits
 *
 * Bandwidths use the transfer time.  The straggler waits least in total: the others wait
 * for it.  Of several sets, the straggler is of the one that waited most. */
#ifndef TP_INSTRUMENT_ANALYZE_RANKS_H
#define TP_INSTRUMENT_ANALYZE_RANKS_H

#include "instrument/analyze/collectives.h"
#include "instrument/analyze/selection.h"

typedef struct {
    int64_t rank;
    tp_breakdown sum; /* of its devices */
    bool has_work;
    size_t n_devices;
    int64_t collectives;      /* on this rank */
    int64_t matched;          /* also on another */
    int64_t by_gloo;          /* of the host, not analysed */
    int64_t pairs_unknown;    /* sends and receives whose other end cannot be told */
    size_t set;               /* of ranks that share collectives, directly or over others */
    int64_t offset_ns;        /* of its clock against the reference, TP_UNKNOWN */
    int64_t offset_spread_ns; /* median absolute deviation of what it was taken from, or the error
                                 that the file states */
    int64_t wait_ns;          /* summed over matched collectives */
    int64_t comm_ns;          /* durations of matched collectives, summed */
    int64_t last_to_arrive;   /* how often */
} tp_rank_row;

typedef struct {
    tp_collective collective;
    int64_t bytes; /* -1 unknown */
    int64_t group_size;
    int64_t count;
    int64_t transfer_p50_ns, skew_p50_ns, skew_max_ns, skew_sum_ns;
    double algbw, busbw; /* bytes per second, from the median transfer; NaN */
} tp_rank_collective;

typedef struct {
    tp_rank_row *ranks;
    size_t n_ranks;
    tp_rank_collective *collectives; /* by summed skew, descending */
    size_t n_collectives;
    int64_t matched;  /* collectives seen on two ranks or more */
    size_t n_sets;    /* of ranks whose clocks were aligned with each other; 0: by messages */
    size_t straggler; /* index of the rank that waits least, or n_ranks: cannot be told */
    int64_t lost_ns;  /* waiting of all ranks, summed */
    bool by_sequence; /* matched by sequence numbers, else by order */
    bool by_message;  /* clocks are as the files say, else as collectives ended */
} tp_rank_table;

/* One selection per rank. */
void tp_ranks_make(const tp_selection *const *selections, const int64_t *ranks, size_t n,
                   tp_rank_table *ret);
void tp_ranks_release(tp_rank_table *table);

#endif
