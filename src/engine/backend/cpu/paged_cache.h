/* paged_cache.h - a launch of paged.c, and the cache that it reads and writes: where a head's keys
 * and values lie in a block, and how new ones are stored. */
#ifndef TP_ENGINE_BACKEND_CPU_PAGED_CACHE_H
#define TP_ENGINE_BACKEND_CPU_PAGED_CACHE_H

#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/transpose.h"
#include "engine/backend/cpu/vec_pair.h"

enum {
    SPAN_KEYS = 64, /* that a query meets at a time, as far as whole blocks make them up */
    SPAN_BLOCKS = 4 /* of 16 places or more */
};

typedef struct {
    int32_t row, n; /* tokens of one sequence at neighbouring positions */
} token_run;

typedef struct {
    const tp_launch *launch;
    const tp_operand *q, *k, *v, *cache_k, *cache_v, *tables, *o;
    const int32_t *positions, *slots;
    bool paired; /* the cache holds pairs of bf16 */
    bool dots;   /* Q K and P V are products of bf16 */
    int64_t tokens, heads, kv_heads, group, D, E, places, tile_tokens;
    int64_t span_blocks, span; /* blocks and keys that are met at a time */
    float scale2;              /* times log2(e) */

    token_run *tiles;
    int64_t n_tiles, parts; /* parts: of the heads, an item each */
    char *scratch;
    size_t scratch_bytes, bytes;
} paged;

static int64_t head_elements(const paged *a) { return a->E * a->places; }

static char *head_block(const paged *a, const tp_operand *cache, int64_t slot, int64_t block,
                        int64_t g)
{
    const int32_t *table = (const int32_t *)a->tables->data + slot * a->tables->stride;
    TP_ASSERT(table[block] >= 0 && table[block] < cache->dim[0]);
    return (char *)row_at(cache, table[block]) + g * head_elements(a) * (a->paired ? 2 : 4);
}

/* What is read at a time: a head's keys and values in neighbouring blocks of a sequence. */
typedef struct {
    int64_t blocks;
    const char *keys[SPAN_BLOCKS], *values[SPAN_BLOCKS];
} head_span;

/* The span-th of those that the tile sees. */
static head_span span_of(const paged *a, const token_run *tile, int64_t g, int64_t span)
{
    int64_t slot = a->slots[tile->row], first = span * a->span_blocks;
    int64_t left = (a->positions[tile->row] + tile->n - 1) / a->places + 1 - first;
    head_span s = {.blocks = left < a->span_blocks ? left : a->span_blocks};
    for (int64_t b = 0; b < s.blocks; b++) {
        s.keys[b] = head_block(a, a->cache_k, slot, first + b, g);
        s.values[b] = head_block(a, a->cache_v, slot, first + b, g);
    }
    return s;
}

/* Keys by pairs of dimensions, values by single elements. */
static void store_bf16(const paged *a, int64_t row, int64_t place, int64_t g, vf_half *keys,
                       vf_half *values)
{
    vf_half k[VF_N], v[VF_N];
    bool k16 = is_half(a->k), v16 = is_half(a->v);
    const void *from_k = row_at(a->k, row), *from_v = row_at(a->v, row);
    char *key = (char *)keys + place * LANE;
    vf_half *value = values + place / 2 * a->E * 2 + place % 2;
    for (int64_t d = 0; d < a->D; d += VF_N) {
        int64_t n = a->D - d < VF_N ? a->D - d : VF_N, at = g * a->D + d;
        vf_store_half(k, n == VF_N ? vf_get(from_k, k16, at) : vf_get_n(from_k, k16, at, n));
        vf_store_half(v, n == VF_N ? vf_get(from_v, v16, at) : vf_get_n(from_v, v16, at, n));
        for (int64_t i = 0; i < n; i += 2)
            memcpy(key + (d + i) / 2 * a->places * LANE, k + i, LANE);
        for (int64_t i = 0; i < n; i++)
            value[(d + i) * 2] = v[i];
    }
}

static void store_f32(const paged *a, int64_t row, int64_t place, int64_t g, float *keys,
                      float *values)
{
    const void *from_k = row_at(a->k, row), *from_v = row_at(a->v, row);
    for (int64_t d = 0; d < a->D; d++) {
        keys[d * a->places + place] = vf_get_one(from_k, is_half(a->k), g * a->D + d);
        values[place * a->E + d] = vf_get_one(from_v, is_half(a->v), g * a->D + d);
    }
}

/* Ask for the lines that the token of row t will be written to: one for each pair of
 * dimensions of a key.  Tokens of a prompt share theirs with the one before. */
static void expect_store(const paged *a, int64_t t, int64_t g)
{
    int64_t position = a->positions[t];
    if (!a->paired || position < 0 || (t > 0 && a->slots[t] == a->slots[t - 1]))
        return;
    int64_t place = position % a->places;
    const char *keys = head_block(a, a->cache_k, a->slots[t], position / a->places, g);
    const char *values = head_block(a, a->cache_v, a->slots[t], position / a->places, g);
    for (int64_t at = place * LANE; at < a->E / 2 * a->places * LANE; at += a->places * LANE)
        __builtin_prefetch(keys + at, 1);
    for (int64_t at = 0; at < a->E * LANE; at += 64)
        __builtin_prefetch(values + place / 2 * a->E * LANE + at, 1);
}

#if defined(__AVX512BF16__)
enum { RUN = 16 }; /* tokens that are stored together */

/* Rows t .. t + 15 are neighbouring places of a block, and as the cache wants them. */
static bool is_run(const paged *a, int64_t t)
{
    bool fits = a->dots && is_half(a->k) && is_half(a->v) && a->D % 32 == 0 &&
                a->k->stride % 2 == 0 && t + RUN <= a->tokens && a->positions[t] >= 0 &&
                a->positions[t] % RUN == 0;
    for (int64_t i = 1; fits && i < RUN; i++)
        fits = a->slots[t + i] == a->slots[t] && a->positions[t + i] == a->positions[t] + i;
    return fits;
}

static void store_run(const paged *a, int64_t t, int64_t place, int64_t g, char *keys, char *values)
{
    const vf_half *k = (const vf_half *)row_at(a->k, t) + g * a->D;
    const vf_half *v = (const vf_half *)row_at(a->v, t) + g * a->D;
    for (int64_t d = 0; d < a->D; d += 32)
        transpose_16x16((const word32 *)(const void *)(k + d), a->k->stride / 2,
                        (word32 *)(void *)(keys + (d / 2 * a->places + place) * LANE), a->places);
    for (int64_t i = 0; i < RUN; i += 2)
        pair_rows(v + i * a->v->stride, v + (i + 1) * a->v->stride, a->D,
                  (word32 *)(void *)(values + (place + i) / 2 * a->E * LANE));
}
#endif

/* Stores rows from t on, and returns how many. */
static int64_t store_some(const paged *a, int64_t t, int64_t g)
{
    int64_t position = a->positions[t];
    if (position < 0)
        return 1;
    int64_t place = position % a->places;
    void *keys = head_block(a, a->cache_k, a->slots[t], position / a->places, g);
    void *values = head_block(a, a->cache_v, a->slots[t], position / a->places, g);
    if (place == 0) {
        size_t bytes = (size_t)head_elements(a) * (a->paired ? 2 : 4);
        memset(keys, 0, bytes);
        memset(values, 0, bytes);
    }
#if defined(__AVX512BF16__)
    if (is_run(a, t)) {
        store_run(a, t, place, g, keys, values);
        return RUN;
    }
#endif
    if (a->paired)
        store_bf16(a, t, place, g, keys, values);
    else
        store_f32(a, t, place, g, keys, values);
    return 1;
}

/* Items are key/value heads: a block is cleared by the row in its first place. */
static void store_range(const void *context, int64_t begin, int64_t end, int thread)
{
    enum { AHEAD = 3 };
    (void)thread;
    const paged *a = context;
    int64_t n = (end - begin) * a->tokens;
    for (int64_t i = 0; i < n && i < AHEAD; i++)
        expect_store(a, i % a->tokens, begin + i / a->tokens);
    for (int64_t i = 0; i < n;) {
        int64_t stored = store_some(a, i % a->tokens, begin + i / a->tokens);
        for (int64_t later = i + AHEAD; later < i + AHEAD + stored && later < n; later++)
            expect_store(a, later % a->tokens, begin + later / a->tokens);
        i += stored;
    }
}

#endif
