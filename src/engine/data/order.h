/* order.h - which rows are held out for validation, and the order in which an epoch takes the
 * others.  A resumed run goes on in it: the streams never change. */
#ifndef TP_ENGINE_DATA_ORDER_H
#define TP_ENGINE_DATA_ORDER_H

#include "base/platform.h"
#include "base/rng.h"

/* Of n rows so many: none where the share is 0 or NaN, else at least one. */
static inline uint64_t tp_held_out(uint64_t n, double share)
{
    return share > 0 ? TP_MAX((uint64_t)((double)n * share + 0.5), (uint64_t)1) : 0;
}

/* Is row i one of them? */
static inline bool tp_is_held_out(uint64_t seed, uint64_t n, uint64_t n_held, uint64_t i)
{
    return n_held && tp_permute(seed, UINT64_C(0x73706c6974000000), n, i) < n_held;
}

/* Which of n rows stands at a place of the epoch. */
static inline uint64_t tp_epoch_row(bool shuffles, uint64_t seed, uint64_t epoch, uint64_t n,
                                    uint64_t place)
{
    return shuffles ? tp_permute(seed, UINT64_C(0x65706f6368000000) + epoch, n, place) : place;
}

#endif
