/* rng.h - random numbers as a function of where they are used.
 *
 * Counter-based (Philox 4x32-10, Salmon et al., SC'11): the k-th number of a
 * stream depends on (seed, stream, k) alone, so there is no state to save and
 * any part of a sequence can be had in any order. */
#ifndef TP_BASE_RNG_H
#define TP_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t seed, stream, counter;
    uint32_t block[4];
    unsigned left; /* unused words of block */
} tp_rng;

tp_rng tp_rng_make(uint64_t seed, uint64_t stream);
void tp_philox(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4]);

uint32_t tp_rng_u32(tp_rng *rng);
uint64_t tp_rng_u64(tp_rng *rng);
double tp_rng_uniform(tp_rng *rng);             /* [0, 1), 53 bits */
uint64_t tp_rng_below(tp_rng *rng, uint64_t n); /* 0..n-1, unbiased; n > 0 */

/* Where element i of 0..n-1 goes under a permutation drawn by (seed, stream):
 * O(1) time and memory, so a shuffled data set can be entered anywhere.  A
 * Feistel network over the next power of four, walked until it falls in range. */
uint64_t tp_permute(uint64_t seed, uint64_t stream, uint64_t n, uint64_t i);

#endif
