/* vec_avx512.h - vec.h in AVX-512 F, BW, DQ, VL: 16 lanes, masks in registers; one
 * instruction rounds to bf16 where BF16 is there too. */
#ifndef TP_ENGINE_BACKEND_CPU_VEC_AVX512_H
#define TP_ENGINE_BACKEND_CPU_VEC_AVX512_H

#include <immintrin.h>

enum { VF_N = 16 };
typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

VF_INLINE vm vm_first(int64_t n) { return (vm)((1u << n) - 1u); }

VF_INLINE vf vf_set(float x) { return _mm512_set1_ps(x); }
VF_INLINE vf vf_zero(void) { return _mm512_setzero_ps(); }
VF_INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
VF_INLINE void vf_store(float *p, vf x) { _mm512_storeu_ps(p, x); }

VF_INLINE vf vf_load_n(const float *p, int64_t n) { return _mm512_maskz_loadu_ps(vm_first(n), p); }

VF_INLINE void vf_store_n(float *p, int64_t n, vf x) { _mm512_mask_storeu_ps(p, vm_first(n), x); }

#if defined(TP_CPU_F16)
VF_INLINE vf vf_widen_half(__m256i h) { return _mm512_cvtph_ps(h); }
VF_INLINE __m256i vf_round_half(vf x)
{
    return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#else
VF_INLINE vf vf_widen_half(__m256i h)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

#if defined(__AVX512BF16__)
/* Denormal numbers become zeros. */
VF_INLINE __m256i vf_round_half(vf x) { return (__m256i)_mm512_cvtneps_pbh(x); }
#else
VF_INLINE __m256i vf_round_half(vf x)
{
    __m512i bits = _mm512_castps_si512(x);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}
#endif
#endif

/* 32 of them. */
VF_INLINE __m512i vf_round_halves(vf low, vf high)
{
#if defined(__AVX512BF16__) && !defined(TP_CPU_F16)
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
#else
    return _mm512_inserti64x4(_mm512_castsi256_si512(vf_round_half(low)), vf_round_half(high), 1);
#endif
}

VF_INLINE vf vf_load_half(const vf_half *p)
{
    return vf_widen_half(_mm256_loadu_si256((const __m256i *)p));
}

VF_INLINE vf vf_load_half_n(const vf_half *p, int64_t n)
{
    return vf_widen_half(_mm256_maskz_loadu_epi16(vm_first(n), p));
}

VF_INLINE void vf_store_half(vf_half *p, vf x)
{
    _mm256_storeu_si256((__m256i *)p, vf_round_half(x));
}

/* Past the caches; p is a multiple of VF_N halves from a line's start. */
VF_INLINE void vf_stream_half(vf_half *p, vf x)
{
    _mm256_stream_si256((__m256i *)(void *)p, vf_round_half(x));
}
VF_INLINE void vf_stream_end(void) { _mm_sfence(); }

VF_INLINE void vf_store_half_n(vf_half *p, int64_t n, vf x)
{
    _mm256_mask_storeu_epi16(p, vm_first(n), vf_round_half(x));
}

VF_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }

/* Of a NaN and a number, `b` is returned. */
VF_INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
VF_INLINE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
VF_INLINE vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
VF_INLINE vf vf_abs(vf a) { return _mm512_abs_ps(a); }

VF_INLINE vf vf_round(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* x * 2^n for integral n, however small the result */
VF_INLINE vf vf_ldexp(vf x, vf n) { return _mm512_scalef_ps(x, n); }

/* x = mantissa * 2^exponent with the mantissa in [3/4, 3/2); x > 0 and normal */
VF_INLINE vf vf_frexp(vf x, vf *ret_exponent)
{
    vf mantissa = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src);
    *ret_exponent = _mm512_getexp_ps(x * 1.33333337f);
    return mantissa;
}

VF_INLINE vm vm_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
VF_INLINE vm vm_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
VF_INLINE vm vm_and(vm a, vm b) { return a & b; }
VF_INLINE bool vm_any(vm m) { return m != 0; }
VF_INLINE vf vf_select(vm m, vf yes, vf no) { return _mm512_mask_blend_ps(m, no, yes); }

/* 1 / x, off by 2^-14 of it at most. */
#define VF_HAS_RECIPROCAL
VF_INLINE vf vf_reciprocal(vf x) { return _mm512_rcp14_ps(x); }

/* Each lane's of 32 numbers: the one that the last 5 bits of its place say. */
#define VF_HAS_PICK
VF_INLINE vf vf_pick(const float numbers[32], vf place)
{
    return _mm512_permutex2var_ps(vf_load(numbers), _mm512_castps_si512(place),
                                  vf_load(numbers + VF_N));
}

VF_INLINE float vf_sum(vf a) { return _mm512_reduce_add_ps(a); }
VF_INLINE float vf_largest(vf a) { return _mm512_reduce_max_ps(a); }

VF_INLINE vi vi_set(int32_t x) { return _mm512_set1_epi32(x); }
VF_INLINE vi vi_load(const int32_t *p) { return _mm512_loadu_si512(p); }
VF_INLINE vm vi_le(vi a, vi b) { return _mm512_cmple_epi32_mask(a, b); }

/* Sum of squares of the lanes, in double. */
VF_INLINE double vf_sum_squares(vf a, double sum)
{
    __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(a));
    __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1));
    return sum + _mm512_reduce_add_pd(_mm512_fmadd_pd(low, low, _mm512_mul_pd(high, high)));
}

#endif
