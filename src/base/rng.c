/* rng.c - Philox 4x32-10 (Salmon et al., SC'11), uniform and normal (Box-Muller) numbers, and a
 * keyed permutation of 0..n-1. */
#include "base/rng.h"

#include <math.h>

void tp_philox(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4])
{
    uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)stream,
                     (uint32_t)(stream >> 32)};
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0];
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k0, (uint32_t)p1,
                            (uint32_t)(p0 >> 32) ^ c[3] ^ k1, (uint32_t)p0};
        for (int i = 0; i < 4; i++)
            c[i] = next[i];
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; i++)
        out[i] = c[i];
}

tp_rng tp_rng_make(uint64_t seed, uint64_t stream)
{
    return (tp_rng){.seed = seed, .stream = stream};
}

uint32_t tp_rng_u32(tp_rng *rng)
{
    if (rng->left == 0) {
        tp_philox(rng->seed, rng->stream, rng->counter++, rng->block);
        rng->left = 4;
    }
    return rng->block[4 - rng->left--];
}

uint64_t tp_rng_u64(tp_rng *rng)
{
    uint64_t high = tp_rng_u32(rng);
    return high << 32 | tp_rng_u32(rng);
}

double tp_rng_uniform(tp_rng *rng) { return (double)(tp_rng_u64(rng) >> 11) * 0x1p-53; }

uint64_t tp_rng_below(tp_rng *rng, uint64_t n)
{
    uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    uint64_t v;
    do
        v = tp_rng_u64(rng);
    while (v >= limit);
    return v % n;
}

uint64_t tp_permute(uint64_t seed, uint64_t stream, uint64_t n, uint64_t i)
{
    if (n <= 1)
        return 0;
    unsigned half = 1;
    while (half < 32 && (n - 1) >> (2 * half))
        half++;
    uint64_t mask = half == 32 ? 0xffffffffu : (1u << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t round = 0; round < 6; round++) {
            uint32_t f[4];
            tp_philox(seed, stream, right << 8 | round, f);
            uint64_t next = left ^ (f[0] & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}
