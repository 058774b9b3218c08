/* bins.h - what goes together into a micro-batch, and how many of those there are.
 *
 * Units that stay whole (a sequence, the two of a pair) are put into bins of so many tokens,
 * first-fit decreasing: the longest first, each into the first bin with room.  Ranks share the
 * bins: a step takes as long as the one that has most of them.  Where they do not come out even
 * there are as many more as it takes, if there are units enough, and units are spread over all. */
#ifndef TP_ENGINE_DATA_BINS_H
#define TP_ENGINE_DATA_BINS_H

#include <stdint.h>

typedef struct {
    int32_t capacity;
    int32_t align; /* units begin at multiples of this; 0: anywhere */
    uint32_t most; /* units of a bin; 0: as many as fit */
    uint32_t ranks;
} tp_bins;

/* A unit of no more than `capacity` tokens; they are sorted as numbers. */
uint64_t tp_bin_unit(int32_t n_tokens, uint32_t index);
uint32_t tp_bin_unit_index(uint64_t unit);

/* The number of bins.  Sorts the n units, longest first, of equals the first; ret_bin[index] is a
 * unit's, and in a bin units lie in their order.  `end`, and `count` where `most` is set: [n] of
 * work space.  Allocates nothing. */
uint32_t tp_bins_assign(const tp_bins *bins, uint64_t *units, uint32_t n, uint32_t *ret_bin,
                        int32_t *end, uint32_t *count);

#endif
