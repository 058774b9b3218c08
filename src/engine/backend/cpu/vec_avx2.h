/* vec_avx2.h - vec.h in AVX2 and FMA: 8 lanes, masks are vectors of all-ones lanes. */
#ifndef TP_ENGINE_BACKEND_CPU_VEC_AVX2_H
#define TP_ENGINE_BACKEND_CPU_VEC_AVX2_H

#include <immintrin.h>

enum { VF_N = 8 };
typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm;

VF_INLINE __m256i vi_first(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

VF_INLINE vm vm_first(int64_t n) { return _mm256_castsi256_ps(vi_first(n)); }
VF_INLINE vf vf_set(float x) { return _mm256_set1_ps(x); }
VF_INLINE vf vf_zero(void) { return _mm256_setzero_ps(); }
VF_INLINE vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
VF_INLINE void vf_store(float *p, vf x) { _mm256_storeu_ps(p, x); }
VF_INLINE vf vf_load_n(const float *p, int64_t n) { return _mm256_maskload_ps(p, vi_first(n)); }
VF_INLINE void vf_store_n(float *p, int64_t n, vf x) { _mm256_maskstore_ps(p, vi_first(n), x); }

#if defined(TP_CPU_F16)
VF_INLINE vf vf_load_half(const vf_half *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
#else
VF_INLINE vf vf_load_half(const vf_half *p)
{
    __m256i h = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(h, 16));
}
#endif

VF_INLINE vf vf_select(vm m, vf yes, vf no) { return _mm256_blendv_ps(no, yes, m); }

#if defined(TP_CPU_F16)
VF_INLINE __m128i vf_round_half(vf x)
{
    return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#else
VF_INLINE __m128i vf_round_half(vf x)
{
    __m256i bits = _mm256_castps_si256(x);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    vm nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    vf chosen = vf_select(nan, _mm256_castsi256_ps(quiet), _mm256_castsi256_ps(rounded));
    __m256i high = _mm256_srli_epi32(_mm256_castps_si256(chosen), 16);
    __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0x08);
    return _mm256_castsi256_si128(packed);
}
#endif

VF_INLINE void vf_store_half(vf_half *p, vf x) { _mm_storeu_si128((__m128i *)p, vf_round_half(x)); }

VF_INLINE void vf_stream_half(vf_half *p, vf x)
{
    _mm_stream_si128((__m128i *)(void *)p, vf_round_half(x));
}
VF_INLINE void vf_stream_end(void) { _mm_sfence(); }

VF_INLINE vf vf_load_half_n(const vf_half *p, int64_t n)
{
    vf_half lanes[VF_N] = {0};
    memcpy(lanes, p, (size_t)n * sizeof *p);
    return vf_load_half(lanes);
}

VF_INLINE void vf_store_half_n(vf_half *p, int64_t n, vf x)
{
    vf_half lanes[VF_N];
    vf_store_half(lanes, x);
    memcpy(p, lanes, (size_t)n * sizeof *p);
}

VF_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }

/* Of a NaN and a number, `b` is returned. */
VF_INLINE vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
VF_INLINE vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
VF_INLINE vf vf_sqrt(vf a) { return _mm256_sqrt_ps(a); }
VF_INLINE vf vf_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }

VF_INLINE vf vf_round(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

VF_INLINE vf vf_power_of_two(__m256i n)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

/* x * 2^n for integral n in -252 .. 254: two factors, as 2^n itself may not be normal */
VF_INLINE vf vf_ldexp(vf x, vf n)
{
    __m256i whole = _mm256_cvtps_epi32(n);
    __m256i half = _mm256_srai_epi32(whole, 1);
    return x * vf_power_of_two(half) * vf_power_of_two(_mm256_sub_epi32(whole, half));
}

VF_INLINE vm vm_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
VF_INLINE vm vm_eq(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
VF_INLINE vm vm_and(vm a, vm b) { return _mm256_and_ps(a, b); }
VF_INLINE bool vm_any(vm m) { return _mm256_movemask_ps(m) != 0; }

/* x = mantissa * 2^exponent with the mantissa in [sqrt(1/2), sqrt(2)); x > 0 and normal */
VF_INLINE vf vf_frexp(vf x, vf *ret_exponent)
{
    __m256i bits = _mm256_castps_si256(x);
    __m256i shifted = _mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f3504f3));
    __m256i exponent = _mm256_srai_epi32(shifted, 23);
    *ret_exponent = _mm256_cvtepi32_ps(exponent);
    return _mm256_castsi256_ps(_mm256_sub_epi32(bits, _mm256_slli_epi32(exponent, 23)));
}

VF_INLINE float vf_sum(vf a)
{
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

VF_INLINE float vf_largest(vf a)
{
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

VF_INLINE vi vi_set(int32_t x) { return _mm256_set1_epi32(x); }
VF_INLINE vi vi_load(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)p); }

VF_INLINE vm vi_le(vi a, vi b)
{
    __m256i greater = _mm256_cmpgt_epi32(a, b);
    return _mm256_castsi256_ps(_mm256_xor_si256(greater, _mm256_set1_epi32(-1)));
}

/* Sum of squares of the lanes, in double. */
VF_INLINE double vf_sum_squares(vf a, double sum)
{
    __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(a));
    __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
    __m256d squares = _mm256_fmadd_pd(low, low, _mm256_mul_pd(high, high));
    __m128d pair = _mm_add_pd(_mm256_castpd256_pd128(squares), _mm256_extractf128_pd(squares, 1));
    return sum + _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair)));
}

#endif
