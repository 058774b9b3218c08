/* attention_bf16.h - attention_block.h with elements of bf16: products of pairs. */
#ifndef TP_ENGINE_BACKEND_CPU_ATTENTION_BF16_H
#define TP_ENGINE_BACKEND_CPU_ATTENTION_BF16_H

typedef tp_bf16 el;

enum { HEAD_MULTIPLE = 32 }; /* padded head dimension */
enum { LANE_ELEMENTS = 2 };  /* of a column of the B form, side by side */

VF_INLINE void el_store(el *to, vf x)
{
    _mm256_storeu_si256((__m256i *)to, (__m256i)_mm512_cvtneps_pbh(x));
}

/* D elements of a tensor's row, which takes_tensor() knows to need neither change nor padding. */
VF_INLINE void el_load_row(el *to, const void *row, bool bf16, int64_t D, int64_t padded)
{
    (void)bf16;
    (void)padded;
    for (int64_t d = 0; d < D; d += 32)
        _mm512_storeu_si512(to + d, _mm512_loadu_si512((const tp_bf16 *)row + d));
}

/* A lane's values of keys n (even) and n + 1 into B form [64 keys, 64 queries]. */
VF_INLINE void el_store_b(el *b, int64_t n, int64_t lane, vf even, vf odd)
{
    __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(even));
    __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(odd));
    __m512i both = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
    _mm512_storeu_si512(b + n * BLOCK + lane * 2, both);
}

/* The four forms of a block of 64 rows of D, all from its A form x[64, padded]. */
static inline void b_straight(const el *x, int64_t padded, el *to) /* K = 64, N = D */
{
    for (int64_t r = 0; r < BLOCK; r += 2)
        pair_rows(x + r * padded, x + (r + 1) * padded, padded,
                  (word32 *)(void *)(to + r * padded));
}

static inline void b_turned(const el *x, int64_t padded, el *to) /* K = D, N = 64 */
{
    transpose_32((const word32 *)x, BLOCK, padded / 2, (word32 *)to);
}

static inline void a_turned(const el *x, int64_t padded, el *to, el *spare) /* [padded, 64] */
{
    b_straight(x, padded, spare);
    transpose_32((const word32 *)spare, BLOCK / 2, padded, (word32 *)to);
}

#if defined(TP_CPU_ATTENTION_AMX)
#include "engine/backend/cpu/attention_tiles_amx.h"
#else
#include "engine/backend/cpu/attention_tiles_avx512_bf16.h"
#endif

static inline bool takes_tensor(const tp_operand *x, int64_t head_dim)
{
    return is_half(x) && head_dim % HEAD_MULTIPLE == 0;
}

#endif
