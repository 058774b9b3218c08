/* codes_avx512.h - numbers to codes of a dynamic map and back, 16 at a time: the tables lie in
 * registers, where a permutation looks 32 entries up at once. */
#ifndef TP_ENGINE_BACKEND_CPU_CODES_AVX512_H
#define TP_ENGINE_BACKEND_CPU_CODES_AVX512_H

#include <immintrin.h>

#include "engine/device/dynamic_map.h"

static inline __mmask16 codes_lanes(int64_t n)
{
    return n >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << n) - 1u);
}

/* Of 64 entries in four registers, by the lower six bits. */
static inline __m512 codes_of_64(const __m512 table[4], __m512i at)
{
    __mmask16 upper = _mm512_test_epi32_mask(at, _mm512_set1_epi32(32));
    return _mm512_mask_blend_ps(upper, _mm512_permutex2var_ps(table[0], at, table[1]),
                                _mm512_permutex2var_ps(table[2], at, table[3]));
}

static inline __m512 codes_of_128(const __m512 table[8], __m512i at)
{
    __mmask16 upper = _mm512_test_epi32_mask(at, _mm512_set1_epi32(64));
    return _mm512_mask_blend_ps(upper, codes_of_64(table, at), codes_of_64(table + 4, at));
}

static inline void codes_load(__m512 *to, const float *from, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = _mm512_loadu_ps(from + 16 * i);
}

/* to[i] = value[codes[i]] * size for i < n; to[] has room for whole vectors. */
static inline void codes_decode(float *to, const tp_dynamic_map *map, const uint8_t *codes,
                                float size, int64_t n)
{
    __m512 table[16], scale = _mm512_set1_ps(size);
    codes_load(table, map->value, 16);
    for (int64_t i = 0; i < n; i += 16) {
        __m512i at = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(codes_lanes(n - i), codes + i));
        __mmask16 upper = _mm512_test_epi32_mask(at, _mm512_set1_epi32(128));
        __m512 value =
            _mm512_mask_blend_ps(upper, codes_of_128(table, at), codes_of_128(table + 8, at));
        _mm512_storeu_ps(to + i, value * scale);
    }
}

/* One level down from node `at`: right where x is above its boundary. */
static inline __m512i codes_descend(__m512i at, __m512 x, __m512 boundary)
{
    __mmask16 is_above = _mm512_cmp_ps_mask(x, boundary, _CMP_GT_OQ);
    at = _mm512_add_epi32(at, at);
    return _mm512_mask_add_epi32(at, is_above, at, _mm512_set1_epi32(1));
}

/* codes[i] = tp_dynamic_code(map, x[i]) for i < n; x[] has whole vectors. */
static inline void codes_encode(uint8_t *codes, const tp_dynamic_map *map, const float *x,
                                int64_t n)
{
    __m512 tree[16];
    codes_load(tree, map->tree, 16);
    for (int64_t i = 0; i < n; i += 16) {
        __m512 v = _mm512_loadu_ps(x + i);
        __m512i at = _mm512_set1_epi32(1);
        for (int level = 0; level < 4; level++)
            at = codes_descend(at, v, _mm512_permutexvar_ps(at, tree[0]));
        at = codes_descend(at, v, _mm512_permutexvar_ps(at, tree[1]));
        at = codes_descend(at, v, _mm512_permutex2var_ps(tree[2], at, tree[3]));
        at = codes_descend(at, v, codes_of_64(tree + 4, at));
        at = codes_descend(at, v, codes_of_128(tree + 8, at));
        _mm_mask_storeu_epi8(codes + i, codes_lanes(n - i), _mm512_cvtepi32_epi8(at));
    }
}

#endif
