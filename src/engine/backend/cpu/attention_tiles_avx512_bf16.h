/* attention_tiles_avx512_bf16.h - block products by dot products of bf16 pairs. */
#ifndef TP_ENGINE_BACKEND_CPU_ATTENTION_TILES_AVX512_BF16_H
#define TP_ENGINE_BACKEND_CPU_ATTENTION_TILES_AVX512_BF16_H

enum { TILE_VECTORS = 4, TILE_ROWS = 4 };

VF_INLINE void tile_product(float *c, const el *a, const el *b, const product_shape *s, bool add,
                            int vectors)
{
    const int64_t n = s->width, a_width = s->a_width;
    __m512 sum[TILE_ROWS][TILE_VECTORS];
    for (int i = 0; i < TILE_ROWS; i++) {
        for (int j = 0; j < vectors; j++)
            sum[i][j] = add ? _mm512_loadu_ps(c + i * n + j * 16) : _mm512_setzero_ps();
    }
    for (int64_t p = 0; p < s->k; p += 2) {
        __m512bh right[TILE_VECTORS];
        for (int j = 0; j < vectors; j++)
            right[j] = (__m512bh)_mm512_loadu_si512(b + p * n + j * 32);
        for (int i = 0; i < TILE_ROWS; i++) {
            int32_t pair;
            memcpy(&pair, a + i * a_width + p, sizeof pair);
            __m512bh left = (__m512bh)_mm512_set1_epi32(pair);
            for (int j = 0; j < vectors; j++)
                sum[i][j] = _mm512_dpbf16_ps(sum[i][j], left, right[j]);
        }
    }
    for (int i = 0; i < TILE_ROWS; i++) {
        for (int j = 0; j < vectors; j++)
            _mm512_storeu_ps(c + i * n + j * 16, sum[i][j]);
    }
}

static inline void product(float *c, const el *a, const el *b, product_shape s, bool add)
{
    int64_t j = 0;
    for (; j + 64 <= s.n; j += 64) {
        for (int64_t i = 0; i < s.m; i += TILE_ROWS)
            tile_product(c + i * s.width + j, a + i * s.a_width, b + j * 2, &s, add, 4);
    }
    for (; j < s.n; j += 32) {
        for (int64_t i = 0; i < s.m; i += TILE_ROWS)
            tile_product(c + i * s.width + j, a + i * s.a_width, b + j * 2, &s, add, 2);
    }
}

VF_INLINE void enter_products(void) {}
VF_INLINE void leave_products(void) {}

#endif
