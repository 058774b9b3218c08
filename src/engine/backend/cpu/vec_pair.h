/* vec_pair.h - lanes of 32 bits that hold an f32 or a pair of halves.
 *
 * Generation computes every element of a product as one chain over k, whatever the
 * tile around it: the same bits for a row in any company.  vp_add() is one link of
 * the chain: sum + x w, or sum + x0 w0 + x1 w1 for pairs. */
#ifndef TP_ENGINE_BACKEND_CPU_VEC_PAIR_H
#define TP_ENGINE_BACKEND_CPU_VEC_PAIR_H

#include "engine/backend/cpu/vec.h"

enum { LANE = 4 }; /* bytes */

/* Does the processor multiply pairs of bf16, without widening them? */
#if defined(__AVX512BF16__)
enum { MULTIPLIES_BF16 = 1 };
#else
enum { MULTIPLIES_BF16 = 0 };
#endif

#if defined(TP_CPU_F16)
VF_INLINE vf vp_of_halves(vi x, int shift)
{
    int32_t lanes[VF_N];
    vf_half halves[VF_N];
    memcpy(lanes, &x, sizeof lanes);
    for (int i = 0; i < VF_N; i++)
        halves[i] = (vf_half)((uint32_t)lanes[i] >> shift);
    return vf_load_half(halves);
}
VF_INLINE vf vp_first(vi x) { return vp_of_halves(x, 0); }
VF_INLINE vf vp_second(vi x) { return vp_of_halves(x, 16); }
#elif defined(__AVX512F__)
VF_INLINE vf vp_first(vi x) { return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16)); }
VF_INLINE vf vp_second(vi x)
{
    return _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32((int)0xffff0000)));
}
#elif defined(__AVX2__)
VF_INLINE vf vp_first(vi x) { return _mm256_castsi256_ps(_mm256_slli_epi32(x, 16)); }
VF_INLINE vf vp_second(vi x)
{
    return _mm256_castsi256_ps(_mm256_and_si256(x, _mm256_set1_epi32((int)0xffff0000)));
}
#else
VF_INLINE vf vp_first(vi x) { return (vf)((vf_bits)x << 16); }
VF_INLINE vf vp_second(vi x) { return (vf)((vf_bits)x & 0xffff0000u); }
#endif

VF_INLINE vi vp_load(const void *at)
{
    vi x;
    memcpy(&x, at, sizeof x);
    return x;
}

/* The first n lanes; zeros behind them. */
VF_INLINE vi vp_load_n(const void *at, int64_t n)
{
    vf x = vf_load_n(at, n);
    vi lanes;
    memcpy(&lanes, &x, sizeof lanes);
    return lanes;
}

VF_INLINE vf vp_float(vi x)
{
    vf f;
    memcpy(&f, &x, sizeof f);
    return f;
}

/* A lane's worth at `at`, in every lane. */
VF_INLINE vi vp_spread(const void *at)
{
    int32_t lane;
    memcpy(&lane, at, sizeof lane);
    return vi_set(lane);
}

/* One link of the chain; bf16: x and w hold pairs. */
VF_INLINE vf vp_add(bool bf16, vf sum, vi x, vi w)
{
    if (!bf16)
        return vf_fma(vp_float(x), vp_float(w), sum);
#if defined(__AVX512BF16__)
    return _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)w);
#else
    return vf_fma(vp_second(x), vp_second(w), vf_fma(vp_first(x), vp_first(w), sum));
#endif
}

#endif
