/* paged.c - attention of many sequences whose keys and values lie in blocks of a cache.
 *
 * First each new row is stored.  Then the rows of a sequence are cut into tiles of a few
 * tokens; the queries of a tile and a key/value head are its tokens times the query heads of that
 * head's group.  They pass the blocks of their sequence with a running maximum m and sum l of the
 * softmax (keys are lanes, then dimensions are lanes):
 *
 *     S[query,key] = q K        m' = max(m, S)    P = exp(scale (S - m'))
 *     O[query,d]  = O exp(scale (m - m')) + P V   l = l exp(scale (m - m')) + sum P
 *
 * m stays as it is until P would exceed 2^8.  The cache is made for this: pairs of
 * dimensions of a key and pairs of values of neighbouring places lie together, so that both
 * products are chains of vp_add().  Every query goes through the same arithmetic whatever
 * the tile around it: keys it does not see have P = 0, blocks it does not see are passed
 * over.  Q K is a product of bf16 when both are and the processor multiplies it, with tiles
 * where there are any: the cache's pairs of 16 keys are a tile as they lie.  P stays
 * f32: rounded, it would be the largest difference between generation and training. */
#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/vec_math.h"
#include "engine/backend/cpu/vec_pair.h"

#include <math.h>

#if defined(TP_CPU_ATTENTION_AMX)
#include "engine/backend/cpu/amx_tiles.h"
#endif

#if defined(__AVX512BF16__)
enum { MULTIPLIES_BF16 = 1 };
#else
enum { MULTIPLIES_BF16 = 0 };
#endif

enum {
    TILE_QUERIES = 16, /* of an item, unless the group is larger */
    KEY_VECTORS = 2,   /* S: registers of keys ... */
    KEY_ROWS = VF_N == 16  ? 8
               : VF_N == 8 ? 4
                           : 2,         /* ... by queries */
    VALUE_VECTORS = VF_N == 16 ? 4 : 2, /* O: registers of dimensions ... */
    VALUE_ROWS = VF_N == 16  ? 4
                 : VF_N == 8 ? 3
                             : 2, /* ... by queries */
    LANE = 4                      /* bytes */
};

typedef struct {
    int32_t row, n; /* tokens of one sequence at neighbouring positions */
} token_run;

typedef struct {
    const tp_launch *launch;
    const tp_operand *q, *k, *v, *cache_k, *cache_v, *tables, *o;
    const int32_t *positions, *slots;
    bool paired; /* the cache holds pairs of bf16 */
    bool dots;   /* Q K in bf16 */
    int64_t tokens, heads, kv_heads, group, D, E, places, tile_tokens;
    float scale2; /* times log2(e) */

    token_run *tiles;
    int64_t n_tiles, parts; /* parts: of the heads, an item each */
    char *scratch;
    size_t scratch_bytes, bytes;
} paged;

/* One thread's memory for one item of Q queries. */
typedef struct {
    char *q;          /* [Q][E] f32 or bf16 */
    float *s;         /* [Q][places] */
    float *p;         /* [Q][places] */
    float *o;         /* [Q][padded E] */
    float *m, *l;     /* [Q] */
    int64_t *visible; /* [Q] keys of the current block */
    int *tile_rows;   /* that tiles are configured for */
} item_scratch;

static int64_t padded_E(const paged *a) { return ceil_div(a->E, VF_N) * VF_N; }

static int64_t most_queries(const paged *a) { return a->tile_tokens * a->group; }

static void *take(char **at, size_t bytes)
{
    void *piece = *at;
    *at += round_up_64(bytes);
    return piece;
}

static item_scratch scratch_at(const paged *a, char *at, size_t *ret_bytes)
{
    size_t Q = (size_t)most_queries(a), B = (size_t)a->places, E = (size_t)padded_E(a);
    char *begin = at;
    item_scratch s;
    s.q = take(&at, Q * E * 4);
    s.s = take(&at, Q * B * 4);
    s.p = take(&at, Q * B * 4);
    s.o = take(&at, Q * E * 4);
    s.m = take(&at, Q * 4);
    s.l = take(&at, Q * 4);
    s.visible = take(&at, Q * 8);
    s.tile_rows = take(&at, sizeof *s.tile_rows);
    *ret_bytes = (size_t)(at - begin);
    return s;
}

static paged paged_of(const tp_launch *launch)
{
    const tp_attrs *attrs = &launch->attrs;
    paged a = {.launch = launch,
               .q = &launch->in[0],
               .k = &launch->in[1],
               .v = &launch->in[2],
               .cache_k = &launch->in[3],
               .cache_v = &launch->in[4],
               .positions = launch->in[5].data,
               .slots = launch->in[6].data,
               .tables = &launch->in[7],
               .o = &launch->out[0],
               .tokens = launch->in[0].dim[0],
               .heads = attrs->heads,
               .kv_heads = attrs->kv_heads,
               .group = attrs->heads / attrs->kv_heads,
               .D = attrs->head_dim,
               .E = attrs->head_dim + attrs->head_dim % 2,
               .scale2 = attrs->scale * 1.442695041f};
    a.paired = is_half(a.cache_k);
    a.dots = MULTIPLIES_BF16 && a.paired && is_half(a.q);
    a.places = a.cache_k->dim[1] / (a.kv_heads * a.E);
    a.tile_tokens = a.group < TILE_QUERIES ? TILE_QUERIES / a.group : 1;
    a.parts = launch->threads < a.kv_heads ? launch->threads : a.kv_heads;
    scratch_at(&a, launch->workspace, &a.scratch_bytes);
    size_t tiles = round_up_64((size_t)a.tokens * sizeof(token_run));
    a.tiles = launch->workspace;
    a.scratch = (char *)launch->workspace + tiles;
    a.bytes = tiles + a.scratch_bytes * launch->threads;
    return a;
}

static int64_t head_elements(const paged *a) { return a->E * a->places; }

static char *head_block(const paged *a, const tp_operand *cache, int64_t slot, int64_t block,
                        int64_t g)
{
    const int32_t *table = (const int32_t *)a->tables->data + slot * a->tables->stride;
    TP_ASSERT(table[block] >= 0 && table[block] < cache->dim[0]);
    return (char *)row_at(cache, table[block]) + g * head_elements(a) * (a->paired ? 2 : 4);
}

/* ---- storing ---- */

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

/* Items are key/value heads: a block is cleared by the row in its first place. */
static void store_range(const void *context, int64_t begin, int64_t end, int thread)
{
    enum { AHEAD = 3 };
    (void)thread;
    const paged *a = context;
    size_t bytes = (size_t)head_elements(a) * (a->paired ? 2 : 4);
    int64_t n = (end - begin) * a->tokens;
    for (int64_t i = 0; i < n && i < AHEAD; i++)
        expect_store(a, i % a->tokens, begin + i / a->tokens);
    for (int64_t g = begin; g < end; g++) {
        for (int64_t t = 0; t < a->tokens; t++) {
            int64_t later = (g - begin) * a->tokens + t + AHEAD;
            if (later < n)
                expect_store(a, later % a->tokens, begin + later / a->tokens);
            int64_t position = a->positions[t];
            if (position < 0)
                continue;
            int64_t place = position % a->places;
            void *keys = head_block(a, a->cache_k, a->slots[t], position / a->places, g);
            void *values = head_block(a, a->cache_v, a->slots[t], position / a->places, g);
            if (place == 0) {
                memset(keys, 0, bytes);
                memset(values, 0, bytes);
            }
            if (a->paired)
                store_bf16(a, t, place, g, keys, values);
            else
                store_f32(a, t, place, g, keys, values);
        }
    }
}

/* ---- attending ---- */

/* The queries of a tile and a head lie from row `first` of the scratch on: tokens in order, each
 * with all heads of the group. */
typedef struct {
    const token_run *tile;
    int64_t g, first;
} paged_item;

static int64_t queries_of(const paged *a, const paged_item *item)
{
    return item->tile->n * a->group;
}

static void begin_item(const paged *a, const item_scratch *s, const paged_item *item)
{
    bool from_bf16 = is_half(a->q);
    int64_t E = padded_E(a), size = a->dots ? 2 : 4, n = queries_of(a, item);
    memset(s->o + item->first * E, 0, (size_t)(n * E) * sizeof *s->o);
    for (int64_t i = 0; i < n; i++) {
        const void *from = row_at(a->q, item->tile->row + i / a->group);
        int64_t column = (item->g * a->group + i % a->group) * a->D;
        char *to = s->q + (item->first + i) * E * size;
        s->m[item->first + i] = -INFINITY;
        s->l[item->first + i] = 0;
        for (int64_t d = 0; d < E; d += VF_N) {
            int64_t left = a->D - d;
            vf x = left >= VF_N ? vf_get(from, from_bf16, column + d)
                   : left > 0   ? vf_get_n(from, from_bf16, column + d, left)
                                : vf_zero();
            vf_put(to, a->dots, d, x);
        }
    }
}

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

/* S of `rows` queries from i on with the keys of `vectors` registers from `key` on. */
VF_INLINE void score(const paged *a, const item_scratch *s, const bool paired, const bool dots,
                     const int rows, const int vectors, int64_t i, int64_t key, const char *keys)
{
    int64_t row_bytes = padded_E(a) * (dots ? 2 : 4), steps = paired ? a->E / 2 : a->E;
    const char *q = s->q + i * row_bytes;
    vf sum[KEY_ROWS][KEY_VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            sum[r][j] = vf_zero();
    keys += key * LANE;
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
            vf_store(s->s + (i + r) * a->places + key + j * VF_N, sum[r][j]);
}

/* Queries first .. end-1 with keys 0 .. n-1 of the block, rounded up to whole vectors. */
VF_INLINE void score_block(const paged *a, const item_scratch *s, const bool paired,
                           const bool dots, int64_t first, int64_t end, int64_t n, const char *keys)
{
    for (int64_t key = 0; key < n; key += KEY_VECTORS * VF_N) {
        bool is_narrow = n - key <= VF_N;
        int64_t i = first;
        for (; i + KEY_ROWS <= end; i += KEY_ROWS) {
            if (is_narrow)
                score(a, s, paired, dots, KEY_ROWS, 1, i, key, keys);
            else
                score(a, s, paired, dots, KEY_ROWS, KEY_VECTORS, i, key, keys);
        }
        for (; i < end; i++) {
            if (is_narrow)
                score(a, s, paired, dots, 1, 1, i, key, keys);
            else
                score(a, s, paired, dots, 1, KEY_VECTORS, i, key, keys);
        }
    }
}

#if defined(TP_CPU_ATTENTION_AMX)
static void configure(const item_scratch *s, int rows)
{
    if (*s->tile_rows == rows)
        return;
    uint8_t few = (uint8_t)rows;
    configure_tiles((const uint8_t[]){few, few, few, few, few, few, AMX_ROWS, AMX_ROWS});
    *s->tile_rows = rows;
}

/* The same by tiles: sums 0 and 1 of up to 16 queries (4) with 32 keys (6, 7). */
static void score_tiles(const paged *a, const item_scratch *s, int64_t first, int64_t end,
                        int64_t n, const char *keys)
{
    enum { DEPTH = 32, KEYS = 16 };
    int64_t q_stride = padded_E(a) * 2, s_stride = a->places * (int64_t)sizeof(float);
    for (int64_t i = first; i < end; i += 16) {
        configure(s, (int)(end - i < 16 ? end - i : 16));
        for (int64_t key = 0; key < n; key += 2 * KEYS) {
            bool is_narrow = n - key <= KEYS;
            const char *q = s->q + i * q_stride, *k = keys + key * LANE;
            float *to = s->s + i * a->places + key;
            TILE_ZERO(0);
            TILE_ZERO(1);
            for (int64_t d = 0; d < a->E; d += DEPTH, q += 64, k += DEPTH / 2 * s_stride) {
                TILE_LOAD(4, q, q_stride);
                TILE_LOAD(6, k, s_stride);
                TILE_MULTIPLY(0, 4, 6);
                if (is_narrow)
                    continue;
                TILE_LOAD(7, k + 64, s_stride);
                TILE_MULTIPLY(1, 4, 7);
            }
            TILE_STORE(0, to, s_stride);
            if (!is_narrow)
                TILE_STORE(1, to + KEYS, s_stride);
        }
    }
}

static void release_tiles(void) { TILE_RELEASE(); }
#else
static void score_tiles(const paged *a, const item_scratch *s, int64_t first, int64_t end,
                        int64_t n, const char *keys)
{
    score_block(a, s, true, MULTIPLIES_BF16, first, end, n, keys);
}

static void release_tiles(void) {}
#endif

/* S -> P of query i for its `n` keys; zeros from there to `end` (whole vectors).  Scales O. */
static void soften(const paged *a, const item_scratch *s, int64_t i, int64_t n, int64_t end)
{
    float *row = s->s + i * a->places, *o = s->o + i * padded_E(a);
    vf top = vf_set(-INFINITY), scale2 = vf_set(a->scale2), hidden = vf_set(-INFINITY);
    for (int64_t k = 0; k < end; k += VF_N) {
        vf x = vf_load(row + k) * scale2;
        int64_t left = n - k;
        if (left < VF_N)
            x = left > 0 ? vf_select(vm_first(left), x, hidden) : hidden;
        vf_store(row + k, x);
        top = vf_max(top, x);
    }
    float largest = vf_largest(top), before = s->m[i];
    if (largest > before + 8 || before == -INFINITY) {
        float factor = before == -INFINITY ? 0 : exp2f(before - largest);
        s->m[i] = largest;
        s->l[i] *= factor;
        for (int64_t d = 0; d < a->E; d += VF_N)
            vf_store(o + d, vf_load(o + d) * factor);
    }
    vf sum = vf_zero(), m = vf_set(s->m[i]);
    for (int64_t k = 0; k < end; k += VF_N) {
        vf e = vf_exp2(vf_load(row + k) - m);
        sum += e;
        vf_store(s->p + i * a->places + k, e);
    }
    s->l[i] += vf_sum(sum);
}

/* O += P V of `rows` queries and `vectors` registers of dimensions, n keys. */
VF_INLINE void gather(const paged *a, const item_scratch *s, const bool paired, const int rows,
                      const int vectors, int64_t i, int64_t d, int64_t n, const char *values)
{
    int64_t row_bytes = a->places * (int64_t)sizeof(float), E = padded_E(a);
    int64_t steps = paired ? (n + 1) / 2 : n;
    const char *p = (const char *)(s->p + i * a->places);
    vf sum[VALUE_ROWS][VALUE_VECTORS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            sum[r][j] = vf_load(s->o + (i + r) * E + d + j * VF_N);
    int64_t left = a->E - d - (vectors - 1) * VF_N; /* lanes of the last register */
    values += d * LANE;
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
                sum[r][j] = step(paired, false, sum[r][j], p + r * row_bytes, k, w[j]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            vf_store(s->o + (i + r) * E + d + j * VF_N, sum[r][j]);
}

VF_INLINE void gather_block(const paged *a, const item_scratch *s, const bool paired, int64_t first,
                            int64_t end, const char *values)
{
    for (int64_t i = first; i < end;) {
        bool is_whole = i + VALUE_ROWS <= end;
        int64_t n = s->visible[is_whole ? i + VALUE_ROWS - 1 : i], d = 0;
        for (; d + VALUE_VECTORS * VF_N <= a->E; d += VALUE_VECTORS * VF_N) {
            if (is_whole)
                gather(a, s, paired, VALUE_ROWS, VALUE_VECTORS, i, d, n, values);
            else
                gather(a, s, paired, 1, VALUE_VECTORS, i, d, n, values);
        }
        for (; d < a->E; d += VF_N) {
            if (is_whole)
                gather(a, s, paired, VALUE_ROWS, 1, i, d, n, values);
            else
                gather(a, s, paired, 1, 1, i, d, n, values);
        }
        i += is_whole ? VALUE_ROWS : 1;
    }
}

/* What is read at a time: the keys and values of a head in one block; NULL: nothing. */
typedef struct {
    const char *keys, *values;
} head_part;

static head_part part_of(const paged *a, const token_run *tile, int64_t g, int64_t block)
{
    int64_t slot = a->slots[tile->row];
    return (head_part){head_block(a, a->cache_k, slot, block, g),
                       head_block(a, a->cache_v, slot, block, g)};
}

/* Ask for what is read next, or every line of it would be waited for.  Into the second level: into
 * the first that took 1.5 times as long. */
static void expect_part(const paged *a, head_part part)
{
    int64_t bytes = part.keys ? head_elements(a) * (a->paired ? 2 : 4) : 0;
    for (int64_t at = 0; at < bytes; at += 64)
        __builtin_prefetch(part.keys + at, 0, 2);
    for (int64_t at = 0; at < bytes; at += 64)
        __builtin_prefetch(part.values + at, 0, 2);
}

VF_INLINE void visit(const paged *a, const item_scratch *s, const bool paired, const bool dots,
                     const paged_item *item, int64_t block, head_part next)
{
    const token_run *tile = item->tile;
    int64_t end = item->first + queries_of(a, item), first = end;
    for (int64_t i = end - 1; i >= item->first; i--) {
        int64_t token = (i - item->first) / a->group;
        int64_t seen = a->positions[tile->row] + token + 1 - block * a->places;
        s->visible[i] = seen < a->places ? seen : a->places;
        first = seen > 0 ? i : first;
    }
    int64_t n = s->visible[end - 1], padded = ceil_div(n, VF_N) * VF_N;
    head_part part = part_of(a, tile, item->g, block);
    expect_part(a, next);
    if (paired && dots)
        score_tiles(a, s, first, end, n, part.keys);
    else
        score_block(a, s, paired, dots, first, end, n, part.keys);
    for (int64_t i = first; i < end; i++)
        soften(a, s, i, s->visible[i], padded);
    gather_block(a, s, paired, first, end, part.values);
}

static void finish_item(const paged *a, const item_scratch *s, const paged_item *item)
{
    bool bf16 = is_half(a->o);
    for (int64_t i = 0; i < queries_of(a, item); i++) {
        const float *o = s->o + (item->first + i) * padded_E(a);
        char *to = (char *)row_at(a->o, item->tile->row + i / a->group) +
                   (item->g * a->group + i % a->group) * a->D * (bf16 ? 2 : 4);
        vf factor = vf_set(1.0f / s->l[item->first + i]);
        int64_t d = 0;
        for (; d + VF_N <= a->D; d += VF_N)
            vf_put(to, bf16, d, vf_load(o + d) * factor);
        if (d < a->D)
            vf_put_n(to, bf16, d, a->D - d, vf_load(o + d) * factor);
    }
}

/* A tile and neighbouring heads, whose parts of a block lie one behind the other: what is read is
 * long runs.  `following` is read after them.  What a prompt's tile reads others read as well, and
 * find it in a cache. */
static void attend(const paged *a, const item_scratch *s, const token_run *tile, int64_t g,
                   int64_t heads, head_part following)
{
    paged_item item[TILE_QUERIES];
    for (int64_t h = 0; h < heads; h++) {
        item[h] = (paged_item){tile, g + h, h * tile->n * a->group};
        begin_item(a, s, &item[h]);
    }
    int64_t last = (a->positions[tile->row] + tile->n - 1) / a->places;
    for (int64_t block = 0; block <= last; block++) {
        for (int64_t h = 0; h < heads; h++) {
            head_part next = {0};
            if (tile->n == 1)
                next = h + 1 < heads  ? part_of(a, tile, g + h + 1, block)
                       : block < last ? part_of(a, tile, g, block + 1)
                                      : following;
            if (!a->paired)
                visit(a, s, false, false, &item[h], block, next);
            else if (MULTIPLIES_BF16 && a->dots)
                visit(a, s, true, true, &item[h], block, next);
            else
                visit(a, s, true, false, &item[h], block, next);
        }
    }
    for (int64_t h = 0; h < heads; h++)
        finish_item(a, s, &item[h]);
}

static item_scratch scratch_of(const paged *a, int thread)
{
    size_t bytes;
    item_scratch s = scratch_at(a, a->scratch + (size_t)thread * a->scratch_bytes, &bytes);
    *s.tile_rows = 0;
    return s;
}

/* Heads begin .. end-1 of a tile, as many together as the scratch holds; then comes `following`, or
 * NULL. */
static void attend_heads(const paged *a, const item_scratch *s, const token_run *tile,
                         int64_t begin, int64_t end, const token_run *following)
{
    int64_t together = tile->n == 1 ? a->tile_tokens : 1;
    for (int64_t g = begin; g < end; g += together) {
        int64_t after = g + together;
        head_part next = {0};
        if (after < end)
            next = part_of(a, tile, after, 0);
        else if (following)
            next = part_of(a, following, begin, 0);
        attend(a, s, tile, g, after < end ? together : end - g, next);
    }
}

/* Items are tiles and some heads.  The last tiles of long prompts come first: they see most
 * keys. */
static void attend_range(const void *context, int64_t begin, int64_t end, int thread)
{
    const paged *a = context;
    item_scratch s = scratch_of(a, thread);
    for (int64_t item = begin; item < end; item++) {
        int64_t part = item % a->parts, tile = a->n_tiles - 1 - item / a->parts;
        attend_heads(a, &s, &a->tiles[tile], a->kv_heads * part / a->parts,
                     a->kv_heads * (part + 1) / a->parts, NULL);
    }
    release_tiles();
}

/* Heads begin .. end-1 of all tokens, each a tile of its own, from storing on. */
static void head_range(const void *context, int64_t begin, int64_t end, int thread)
{
    const paged *a = context;
    item_scratch s = scratch_of(a, thread);
    store_range(a, begin, end, thread);
    for (int64_t t = 0; t < a->n_tiles; t++)
        attend_heads(a, &s, &a->tiles[t], begin, end, t + 1 < a->n_tiles ? &a->tiles[t + 1] : NULL);
    release_tiles();
}

/* Returns the keys that all tokens see together. */
static int64_t cut_tiles(paged *a)
{
    int64_t keys = 0;
    for (int64_t t = 0; t < a->tokens; t++) {
        if (a->positions[t] < 0)
            continue;
        TP_ASSERT(a->slots[t] >= 0 && a->slots[t] < a->tables->dim[0] &&
                  a->positions[t] / a->places < a->tables->dim[1]);
        keys += a->positions[t] + 1;
        token_run *last = a->n_tiles > 0 ? &a->tiles[a->n_tiles - 1] : NULL;
        bool continues = last && last->row + last->n == t && last->n < a->tile_tokens &&
                         a->slots[t - 1] == a->slots[t] &&
                         a->positions[t - 1] + 1 == a->positions[t];
        if (continues)
            last->n++;
        else
            a->tiles[a->n_tiles++] = (token_run){(int32_t)t, 1};
    }
    return keys;
}

static void clear_absent_rows(const paged *a)
{
    for (int64_t t = 0; t < a->tokens; t++)
        if (a->positions[t] < 0)
            memset(row_at(a->o, t), 0, (size_t)a->o->dim[1] * (is_half(a->o) ? 2 : 4));
}

/* Sequences that decode are all alike, so that heads are even shares, and a thread reads what
 * it has just stored.  Tiles of prompts are not: whoever is free takes the next one. */
static void paged_attention(const tp_launch *launch)
{
    paged a = paged_of(launch);
    int64_t bytes = cut_tiles(&a) * a.kv_heads * a.D * (a.paired ? 4 : 8);
    int64_t stored = a.tokens * a.kv_heads * a.D * 32;
    if (is_bound(a.o))
        clear_absent_rows(&a);
    if (is_bound(a.o) && a.n_tiles == a.tokens && a.kv_heads % launch->threads == 0) {
        tp_cpu_static(launch, a.kv_heads, bytes + stored, head_range, &a);
        return;
    }
    tp_cpu_static(launch, a.kv_heads, stored, store_range, &a);
    if (is_bound(a.o))
        tp_cpu_dynamic(launch, a.n_tiles * a.parts, bytes, attend_range, &a);
}

static size_t workspace(const tp_launch *launch) { return paged_of(launch).bytes; }

static bool accepts(const tp_launch *launch)
{
    const tp_attrs *attrs = &launch->attrs;
    int64_t row = (int64_t)attrs->kv_heads * (attrs->head_dim + attrs->head_dim % 2);
#if defined(TP_CPU_ATTENTION_AMX)
    if (attrs->head_dim % 32 != 0 || !is_half(&launch->in[0]) || !is_half(&launch->in[3]))
        return false;
#endif
    return are_floats(launch, 0x1f, 1) && launch->in[3].dtype == launch->in[4].dtype &&
           launch->in[3].dim[1] / row % 16 == 0 && attrs->scale > 0;
}

TP_CPU_KERNEL(paged_attention, .accepts = accepts, .workspace = workspace, .run = paged_attention);
