/* attention_tiles_amx.h - block products with AMX tiles: 2 x 2 tiles of sums from
 * 2 + 2 tiles per 32 of k.  A rows and B pairs lie as tiles want them. */
#ifndef TP_ENGINE_BACKEND_CPU_ATTENTION_TILES_AMX_H
#define TP_ENGINE_BACKEND_CPU_ATTENTION_TILES_AMX_H

#include "engine/backend/cpu/amx_tiles.h"

static inline void enter_products(void) { configure_tiles(NULL); }

static inline void leave_products(void) { TILE_RELEASE(); }

/* 32 x 32 elements of C. */
static inline void tile_product(float *c, const el *a, const el *b, const product_shape *s,
                                bool add)
{
    const int64_t n = s->width;
    int64_t c_stride = n * 4, a_stride = s->a_width * 2, b_stride = n * 4;
    float *c_low = c + 16 * n;
    if (add) {
        TILE_LOAD(0, c, c_stride);
        TILE_LOAD(1, c + 16, c_stride);
        TILE_LOAD(2, c_low, c_stride);
        TILE_LOAD(3, c_low + 16, c_stride);
    } else {
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
    }
    for (int64_t p = 0; p < s->k; p += 32) {
        TILE_LOAD(4, a + p, a_stride);
        TILE_LOAD(6, b + p * n, b_stride);
        TILE_MULTIPLY(0, 4, 6);
        TILE_LOAD(7, b + p * n + 32, b_stride);
        TILE_MULTIPLY(1, 4, 7);
        TILE_LOAD(5, a + 16 * s->a_width + p, a_stride);
        TILE_MULTIPLY(2, 5, 6);
        TILE_MULTIPLY(3, 5, 7);
    }
    TILE_STORE(0, c, c_stride);
    TILE_STORE(1, c + 16, c_stride);
    TILE_STORE(2, c_low, c_stride);
    TILE_STORE(3, c_low + 16, c_stride);
}

/* All sizes are multiples of 32. */
static inline void product(float *c, const el *a, const el *b, product_shape s, bool add)
{
    for (int64_t j = 0; j < s.n; j += 32) {
        for (int64_t i = 0; i < s.m; i += 32)
            tile_product(c + i * s.width + j, a + i * s.a_width, b + j * 2, &s, add);
    }
}

#endif
