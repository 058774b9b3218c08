/* paged.c - attention of many sequences whose keys and values lie in blocks of a cache.
 *
 * First each new row is stored.  Then the rows of a sequence are cut into tiles of a few
 * tokens; the queries of a tile and a key/value head are its tokens times the query heads of that
 * head's group.  They pass spans of their sequence's blocks with a running bound m and a sum l of
 * the softmax:
 *
 *     S[query,key] = scale log2(e) q K   m' = max(m, S)    P = 2^(S - m')
 *     O[query,d]  = O 2^(m - m') + P V   l = l 2^(m - m') + sum P
 *
 * m stays as it is until P would exceed 2^8.  Where Q and the cache are bf16, and the processor
 * multiplies it, P is rounded to bf16 as attention.c does in training, and m is a whole number in
 * both: the rounding does not depend on it, and generation and training agree the better.
 *
 * The cache is made for these products: pairs of dimensions of a key and pairs of values of
 * neighbouring places lie together.  Every query goes through the same arithmetic whatever the tile
 * around it: spans begin at multiples of their length, keys it does not see have P = 0, spans it
 * does not see are passed over. */
#include "engine/backend/cpu/paged_products.h"
#include "engine/backend/cpu/vec_math.h"

#include <math.h>

enum { TILE_QUERIES = 16 }; /* of an item, unless the group is larger */

static int64_t most_queries(const paged *a) { return a->tile_tokens * a->group; }

static void *take(char **at, size_t bytes)
{
    void *piece = *at;
    *at += round_up_64(bytes);
    return piece;
}

static item_scratch scratch_at(const paged *a, char *at, size_t *ret_bytes)
{
    size_t Q = (size_t)most_queries(a), B = (size_t)a->span, E = (size_t)padded_E(a);
    char *begin = at;
    item_scratch s;
    s.q = take(&at, Q * E * 4);
    s.s = take(&at, Q * B * 4);
    s.p = take(&at, Q * B * 4);
    s.o = take(&at, Q * E * 4);
    s.m = take(&at, Q * 4);
    s.l = take(&at, Q * VF_N * 4);
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
    a.span_blocks = a.places < SPAN_KEYS ? SPAN_KEYS / a.places : 1;
    a.span = a.span_blocks * a.places;
    a.tile_tokens = a.group < TILE_QUERIES ? TILE_QUERIES / a.group : 1;
    a.parts = launch->threads < a.kv_heads ? launch->threads : a.kv_heads;
    scratch_at(&a, launch->workspace, &a.scratch_bytes);
    size_t tiles = round_up_64((size_t)a.tokens * sizeof(token_run));
    a.tiles = launch->workspace;
    a.scratch = (char *)launch->workspace + tiles;
    a.bytes = tiles + a.scratch_bytes * launch->threads;
    return a;
}

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
        vf_store(s->l + (item->first + i) * VF_N, vf_zero());
        for (int64_t d = 0; d < E; d += VF_N) {
            int64_t left = a->D - d;
            vf x = left >= VF_N ? vf_get(from, from_bf16, column + d)
                   : left > 0   ? vf_get_n(from, from_bf16, column + d, left)
                                : vf_zero();
            vf_put(to, a->dots, d, x);
        }
    }
}

/* S -> P of query i for its keys of the span; zeros from there to `end`.  Scales O. */
VF_INLINE void soften(const paged *a, const item_scratch *s, const bool dots, int64_t i,
                      int64_t end)
{
    int64_t n = s->visible[i];
    float *row = s->s + i * a->span, *o = s->o + i * padded_E(a), *l = s->l + i * VF_N;
    char *p = s->p + i * a->span * left_size(dots);
    vf hidden = vf_set(-INFINITY), top = hidden;
    int64_t k = 0;
    for (; k + VF_N <= n; k += VF_N)
        top = vf_max(top, vf_load(row + k));
    for (; k < end; k += VF_N) {
        vf x = n > k ? vf_select(vm_first(n - k), vf_load(row + k), hidden) : hidden;
        vf_store(row + k, x);
        top = vf_max(top, x);
    }
    float largest = vf_largest(top) * a->scale2, before = s->m[i];
    if (largest > before + 8 || before == -INFINITY) {
        float base = rintf(largest), factor = before == -INFINITY ? 0 : exp2f(before - base);
        s->m[i] = base;
        vf_store(l, vf_load(l) * factor);
        for (int64_t d = 0; d < a->E; d += VF_N)
            vf_store(o + d, vf_load(o + d) * factor);
    }
    vf sum = vf_load(l), scale2 = vf_set(a->scale2), m = vf_set(s->m[i]);
    for (k = 0; k < end; k += VF_N) {
        vf e = vf_exp2(vf_fma(vf_load(row + k), scale2, -m));
        sum += e;
        vf_put(p, dots, k, e);
    }
    vf_store(l, sum);
}

/* Ask for what is read next, or every line of it would be waited for.  Into the second level: into
 * the first that took 1.5 times as long. */
static void expect_span(const paged *a, const head_span *span)
{
    int64_t bytes = head_elements(a) * (a->paired ? 2 : 4);
    for (int64_t b = 0; b < span->blocks; b++) {
        for (int64_t at = 0; at < bytes; at += 64)
            __builtin_prefetch(span->keys[b] + at, 0, 2);
        for (int64_t at = 0; at < bytes; at += 64)
            __builtin_prefetch(span->values[b] + at, 0, 2);
    }
}

VF_INLINE void visit(const paged *a, const item_scratch *s, const bool paired, const bool dots,
                     const paged_item *item, int64_t index, const head_span *next)
{
    const token_run *tile = item->tile;
    int64_t end = item->first + queries_of(a, item), first = end;
    for (int64_t i = end - 1; i >= item->first; i--) {
        int64_t token = (i - item->first) / a->group;
        int64_t seen = a->positions[tile->row] + token + 1 - index * a->span;
        s->visible[i] = seen < a->span ? seen : a->span;
        first = seen > 0 ? i : first;
    }
    int64_t n = s->visible[end - 1], whole = ceil_div(n, WHOLE_KEYS) * WHOLE_KEYS;
    head_span span = span_of(a, tile, item->g, index);
    expect_span(a, next);
    score_span(a, s, paired, dots, first, end, n, &span);
    for (int64_t i = first; i < end; i++)
        soften(a, s, dots, i, whole);
    gather_span(a, s, paired, dots, first, end, &span);
}

static void finish_item(const paged *a, const item_scratch *s, const paged_item *item)
{
    bool bf16 = is_half(a->o);
    for (int64_t i = 0; i < queries_of(a, item); i++) {
        const float *o = s->o + (item->first + i) * padded_E(a);
        char *to = (char *)row_at(a->o, item->tile->row + i / a->group) +
                   (item->g * a->group + i % a->group) * a->D * (bf16 ? 2 : 4);
        vf factor = vf_set(1.0f / vf_sum(vf_load(s->l + (item->first + i) * VF_N)));
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
                   int64_t heads, head_span following)
{
    paged_item item[TILE_QUERIES];
    for (int64_t h = 0; h < heads; h++) {
        item[h] = (paged_item){tile, g + h, h * tile->n * a->group};
        begin_item(a, s, &item[h]);
    }
    int64_t last = (a->positions[tile->row] + tile->n - 1) / a->span;
    for (int64_t span = 0; span <= last; span++) {
        for (int64_t h = 0; h < heads; h++) {
            head_span next = {0};
            if (tile->n == 1)
                next = h + 1 < heads ? span_of(a, tile, g + h + 1, span)
                       : span < last ? span_of(a, tile, g, span + 1)
                                     : following;
            if (!a->paired)
                visit(a, s, false, false, &item[h], span, &next);
            else if (MULTIPLIES_BF16 && a->dots)
                visit(a, s, true, true, &item[h], span, &next);
            else
                visit(a, s, true, false, &item[h], span, &next);
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
        head_span next = {0};
        if (after < end)
            next = span_of(a, tile, after, 0);
        else if (following)
            next = span_of(a, following, begin, 0);
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
           launch->in[3].dim[1] / row % WHOLE_KEYS == 0 && attrs->scale > 0;
}

TP_CPU_KERNEL(paged_attention, .accepts = accepts, .workspace = workspace, .run = paged_attention);
