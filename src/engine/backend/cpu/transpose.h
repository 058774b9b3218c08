/* transpose.h - a matrix of 32-bit elements turned, in the widest form there is. */
#ifndef TP_ENGINE_BACKEND_CPU_TRANSPOSE_H
#define TP_ENGINE_BACKEND_CPU_TRANSPOSE_H

#include "engine/backend/cpu/vec.h"

typedef uint32_t word32 __attribute__((may_alias));

#if defined(__AVX512F__)

/* Rows are interleaved at distances of 1 and 2 elements inside 128-bit lanes, then lanes
 * change places at distances of 1 and 2. */
static inline void transpose_16x16(const word32 *from, int64_t ld_from, word32 *to, int64_t ld_to)
{
    __m512i a[16], b[16];
    for (int i = 0; i < 16; i++)
        a[i] = _mm512_loadu_si512(from + i * ld_from);
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
        a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
        a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
        a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
    }
    /* a[4 g + j] holds, in lane q, column 4 q + j of rows 4 g .. 4 g + 3 */
    for (int j = 0; j < 4; j++) {
        b[j] = _mm512_shuffle_i32x4(a[j], a[4 + j], 0x88);
        b[4 + j] = _mm512_shuffle_i32x4(a[j], a[4 + j], 0xdd);
        b[8 + j] = _mm512_shuffle_i32x4(a[8 + j], a[12 + j], 0x88);
        b[12 + j] = _mm512_shuffle_i32x4(a[8 + j], a[12 + j], 0xdd);
    }
    for (int j = 0; j < 4; j++) {
        _mm512_storeu_si512(to + j * ld_to, _mm512_shuffle_i32x4(b[j], b[8 + j], 0x88));
        _mm512_storeu_si512(to + (4 + j) * ld_to, _mm512_shuffle_i32x4(b[4 + j], b[12 + j], 0x88));
        _mm512_storeu_si512(to + (8 + j) * ld_to, _mm512_shuffle_i32x4(b[j], b[8 + j], 0xdd));
        _mm512_storeu_si512(to + (12 + j) * ld_to, _mm512_shuffle_i32x4(b[4 + j], b[12 + j], 0xdd));
    }
}

/* to[i] = even[i] and odd[i] of n halves, a multiple of 16 */
static inline void pair_rows(const uint16_t *even, const uint16_t *odd, int64_t n, word32 *to)
{
    for (int64_t i = 0; i < n; i += 16) {
        __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(even + i)));
        __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(odd + i)));
        _mm512_storeu_si512(to + i, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    }
}

/* to[columns, rows] = from[rows, columns]; both are multiples of 16 */
static inline void transpose_32(const word32 *from, int64_t rows, int64_t columns, word32 *to)
{
    for (int64_t r = 0; r < rows; r += 16) {
        for (int64_t c = 0; c < columns; c += 16)
            transpose_16x16(from + r * columns + c, columns, to + c * rows + r, rows);
    }
}

#else

/* to[columns, rows] = from[rows, columns]; both are multiples of 16 */
static inline void transpose_32(const word32 *from, int64_t rows, int64_t columns, word32 *to)
{
    for (int64_t r = 0; r < rows; r += 8) {
        for (int64_t c = 0; c < columns; c++) {
            for (int64_t i = 0; i < 8; i++)
                to[c * rows + r + i] = from[(r + i) * columns + c];
        }
    }
}

#endif

#endif
