/* paged_products.h - the two products of paged.c: queries with keys, probabilities with values.
 *
 * By vectors, keys are lanes, then dimensions are lanes; by tiles, up to 16 queries are the rows of
 * a tile, and the cache's pairs of 16 keys, or of 16 dimensions, are one as they lie.  Both
 * products are chains over k: a query's bits do not depend on the queries beside it. */
#ifndef TP_ENGINE_BACKEND_CPU_PAGED_PRODUCTS_H
#define TP_ENGINE_BACKEND_CPU_PAGED_PRODUCTS_H

#include "engine/backend/cpu/paged_cache.h"

/* A block holds a multiple of them, and P zeros up to one. */
#if defined(TP_CPU_ATTENTION_AMX)
#include "engine/backend/cpu/amx_tiles.h"
enum { WHOLE_KEYS = 32 };
#else
enum { WHOLE_KEYS = 16 };
#endif

/* One thread's memory for one item of Q queries. */
typedef struct {
    char *q;          /* [Q][padded E] f32, or bf16 for dots */
    float *s;         /* [Q][span] */
    char *p;          /* [Q][span] f32, or bf16 for dots */
    float *o;         /* [Q][padded E] */
    float *m;         /* [Q] */
    float *l;         /* [Q][lanes], to be added up */
    int64_t *visible; /* [Q] keys of the current span */
    int *tile_rows;   /* that tiles are configured for */
} item_scratch;

static int64_t padded_E(const paged *a) { return ceil_div(a->E, VF_N) * VF_N; }

/* Bytes of an element of Q and P. */
VF_INLINE int64_t left_size(const bool dots) { return dots ? 2 : 4; }

#if defined(TP_CPU_ATTENTION_AMX)
/* Tiles 0 to 3 are sums of `rows` queries, 4 their Q or P; 6 and 7 are of the cache. */
static void configure(const item_scratch *s, int64_t rows)
{
    if (*s->tile_rows == rows)
        return;
    uint8_t few = (uint8_t)rows;
    configure_tiles((const uint8_t[]){few, few, few, few, few, few, AMX_ROWS, AMX_ROWS});
    *s->tile_rows = (int)rows;
}

static int64_t rows_from(int64_t i, int64_t end) { return end - i < AMX_ROWS ? end - i : AMX_ROWS; }

/* S of queries first .. end-1 with the first n keys of the span: 32 keys of a block, or 64 from two
 * places. */
VF_INLINE void score_span(const paged *a, const item_scratch *s, const bool paired, const bool dots,
                          int64_t first, int64_t end, int64_t n, const head_span *span)
{
    TP_ASSERT(paired && dots);
    int64_t q_stride = padded_E(a) * 2, k_stride = a->places * LANE, s_stride = a->span * LANE;
    for (int64_t i = first; i < end; i += AMX_ROWS) {
        configure(s, rows_from(i, end));
        for (int64_t key = 0; key < n; key += 2 * WHOLE_KEYS) {
            int64_t next = key + WHOLE_KEYS;
            bool both = next < n;
            const char *q = s->q + i * q_stride;
            const char *low = span->keys[key / a->places] + key % a->places * LANE;
            const char *high = both ? span->keys[next / a->places] + next % a->places * LANE : low;
            float *to = s->s + i * a->span + key;
            TILE_ZERO(0);
            TILE_ZERO(1);
            TILE_ZERO(2);
            TILE_ZERO(3);
            for (int64_t d = 0; d < a->E; d += 32, q += AMX_ROW_BYTES) {
                int64_t at = d / 2 * k_stride;
                TILE_LOAD(4, q, q_stride);
                TILE_LOAD(6, low + at, k_stride);
                TILE_MULTIPLY(0, 4, 6);
                TILE_LOAD(7, low + at + AMX_ROW_BYTES, k_stride);
                TILE_MULTIPLY(1, 4, 7);
                if (!both)
                    continue;
                TILE_LOAD(6, high + at, k_stride);
                TILE_MULTIPLY(2, 4, 6);
                TILE_LOAD(7, high + at + AMX_ROW_BYTES, k_stride);
                TILE_MULTIPLY(3, 4, 7);
            }
            TILE_STORE(0, to, s_stride);
            TILE_STORE(1, to + 16, s_stride);
            if (!both)
                continue;
            TILE_STORE(2, to + 32, s_stride);
            TILE_STORE(3, to + 48, s_stride);
        }
    }
}

/* O += P V of the same queries, 64 dimensions at a time, or 32. */
VF_INLINE void gather_span(const paged *a, const item_scratch *s, const bool paired,
                           const bool dots, int64_t first, int64_t end, const head_span *span)
{
    TP_ASSERT(paired && dots);
    int64_t p_stride = a->span * 2, v_stride = a->E * LANE, o_stride = padded_E(a) * LANE;
    for (int64_t i = first; i < end; i += AMX_ROWS) {
        int64_t rows = rows_from(i, end), n = s->visible[i + rows - 1];
        configure(s, rows);
        for (int64_t d = 0; d < a->E; d += 64) {
            bool both = d + 32 < a->E;
            float *o = s->o + i * padded_E(a) + d;
            TILE_LOAD(0, o, o_stride);
            TILE_LOAD(1, o + 16, o_stride);
            if (both) {
                TILE_LOAD(2, o + 32, o_stride);
                TILE_LOAD(3, o + 48, o_stride);
            }
            for (int64_t key = 0; key < n; key += WHOLE_KEYS) {
                const char *v = span->values[key / a->places] + key % a->places / 2 * v_stride;
                v += d * LANE;
                TILE_LOAD(4, s->p + i * p_stride + key * 2, p_stride);
                TILE_LOAD(6, v, v_stride);
                TILE_MULTIPLY(0, 4, 6);
                TILE_LOAD(7, v + AMX_ROW_BYTES, v_stride);
                TILE_MULTIPLY(1, 4, 7);
                if (!both)
                    continue;
                TILE_LOAD(6, v + 2 * AMX_ROW_BYTES, v_stride);
                TILE_MULTIPLY(2, 4, 6);
                TILE_LOAD(7, v + 3 * AMX_ROW_BYTES, v_stride);
                TILE_MULTIPLY(3, 4, 7);
            }
            TILE_STORE(0, o, o_stride);
            TILE_STORE(1, o + 16, o_stride);
            if (both) {
                TILE_STORE(2, o + 32, o_stride);
                TILE_STORE(3, o + 48, o_stride);
            }
        }
    }
}

static void release_tiles(void) { TILE_RELEASE(); }
#else
enum {
    KEY_VECTORS = 2, /* S: registers of keys ... */
    KEY_ROWS = VF_N == 16  ? 8
               : VF_N == 8 ? 4
                           : 2,         /* ... by queries */
    VALUE_VECTORS = VF_N == 16 ? 4 : 2, /* O: registers of dimensions ... */
    VALUE_ROWS = VF_N == 16  ? 4
                 : VF_N == 8 ? 3
                             : 2 /* ... by queries */
};

/* One step of a product: x is a pair or an f32 of query (or P) element `at`, w the cache's
 * lanes: pairs (two elements of x) or f32 (one). */
VF_INLINE vf step(const bool paired, const bool dots, vf sum, const char *x, int64_t at, vi w)
{
    if (!paired)
        return vf_fma(vf_set(((const float *)(const void *)x)[at]), vp_float(w), sum);
    if (dots)
        return vp_add(true, sum, vp_spread(x + at * 2 * 2), w);
    const float *f = (const float *)(const void *)x + at * 2;
    return vf_fma(vf_set(f[1]), vp_second(w), vf_fma(vf_set(f[0]), vp_first(w), sum));
}

/* S of `rows` queries from i on, column `to` on, with the keys of `vectors` registers. */
VF_INLINE void score(const paged *a, const item_scratch *s, const bool paired, const bool dots,
                     const int rows, const int vectors, int64_t i, int64_t to, const char *keys)
{
    int64_t row_bytes = padded_E(a) * left_size(dots), steps = paired ? a->E / 2 : a->E;
    const char *q = s->q + i * row_bytes;
    vf sum[KEY_ROWS][KEY_VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            sum[r][j] = vf_zero();
    for (int64_t d = 0; d < steps; d++, keys += a->places * LANE) {
        vi w[KEY_VECTORS];
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            w[j] = vp_load(keys + j * VF_N * LANE);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
            for (int j = 0; j < vectors; j++)
                sum[r][j] = step(paired, dots, sum[r][j], q + r * row_bytes, d, w[j]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            vf_store(s->s + (i + r) * a->span + to + j * VF_N, sum[r][j]);
}

/* Queries first .. end-1 with keys 0 .. n-1 of a block, rounded up to whole vectors; their columns
 * begin with `to`. */
VF_INLINE void score_block(const paged *a, const item_scratch *s, const bool paired,
                           const bool dots, int64_t first, int64_t end, int64_t n, int64_t to,
                           const char *keys)
{
    for (int64_t key = 0; key < n; key += KEY_VECTORS * VF_N) {
        bool is_narrow = n - key <= VF_N;
        const char *at = keys + key * LANE;
        int64_t i = first;
        for (; i + KEY_ROWS <= end; i += KEY_ROWS) {
            if (is_narrow)
                score(a, s, paired, dots, KEY_ROWS, 1, i, to + key, at);
            else
                score(a, s, paired, dots, KEY_ROWS, KEY_VECTORS, i, to + key, at);
        }
        for (; i < end; i++) {
            if (is_narrow)
                score(a, s, paired, dots, 1, 1, i, to + key, at);
            else
                score(a, s, paired, dots, 1, KEY_VECTORS, i, to + key, at);
        }
    }
}

/* O += P V of `rows` queries and `vectors` registers of dimensions, n keys of the span. */
VF_INLINE void gather(const paged *a, const item_scratch *s, const bool paired, const bool dots,
                      const int rows, const int vectors, int64_t i, int64_t d, int64_t n,
                      const head_span *span)
{
    int64_t size = left_size(dots), row_bytes = a->span * size, E = padded_E(a);
    int64_t left = a->E - d - (vectors - 1) * VF_N; /* lanes of the last register */
    vf sum[VALUE_ROWS][VALUE_VECTORS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            sum[r][j] = vf_load(s->o + (i + r) * E + d + j * VF_N);
    for (int64_t b = 0; b * a->places < n; b++) {
        int64_t keys = n - b * a->places < a->places ? n - b * a->places : a->places;
        int64_t steps = paired ? (keys + 1) / 2 : keys;
        const char *p = s->p + i * row_bytes + b * a->places * size;
        const char *values = span->values[b] + d * LANE;
        for (int64_t k = 0; k < steps; k++, values += a->E * LANE) {
            vi w[VALUE_VECTORS];
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++)
                w[j] = j < vectors - 1 || left >= VF_N ? vp_load(values + j * VF_N * LANE)
                                                       : vp_load_n(values + j * VF_N * LANE, left);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
                for (int j = 0; j < vectors; j++)
                    sum[r][j] = step(paired, dots, sum[r][j], p + r * row_bytes, k, w[j]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            vf_store(s->o + (i + r) * E + d + j * VF_N, sum[r][j]);
}

VF_INLINE void gather_rows(const paged *a, const item_scratch *s, const bool paired,
                           const bool dots, const int rows, int64_t i, const head_span *span)
{
    int64_t n = s->visible[i + rows - 1], d = 0;
    for (; d + VALUE_VECTORS * VF_N <= a->E; d += VALUE_VECTORS * VF_N)
        gather(a, s, paired, dots, rows, VALUE_VECTORS, i, d, n, span);
    for (; d < a->E; d += VF_N)
        gather(a, s, paired, dots, rows, 1, i, d, n, span);
}

/* S of queries first .. end-1 with the first n keys of the span. */
VF_INLINE void score_span(const paged *a, const item_scratch *s, const bool paired, const bool dots,
                          int64_t first, int64_t end, int64_t n, const head_span *span)
{
    for (int64_t b = 0, key = 0; key < n; b++, key += a->places)
        score_block(a, s, paired, dots, first, end, n - key < a->places ? n - key : a->places, key,
                    span->keys[b]);
}

/* O += P V of the same queries. */
VF_INLINE void gather_span(const paged *a, const item_scratch *s, const bool paired,
                           const bool dots, int64_t first, int64_t end, const head_span *span)
{
    int64_t i = first;
    for (; i + VALUE_ROWS <= end; i += VALUE_ROWS)
        gather_rows(a, s, paired, dots, VALUE_ROWS, i, span);
    for (; i < end; i++)
        gather_rows(a, s, paired, dots, 1, i, span);
}

static void release_tiles(void) {}
#endif

#endif
