/* attention_block.h - the pieces that attention is made of, for one block of 64
 * tokens and one head.
 *
 * Attention is computed transposed: a tile holds keys in its rows and queries in
 * its lanes, so that the softmax over keys runs down the vectors and never
 * across a register.  Products take A in "A form" and B in "B form":
 *
 *     C[M,N] (+)= A[M,K] B[K,N]      C: f32, row-major
 *     A form: row-major
 *     B form: row-major of f32; for bf16 pairs of rows are interleaved,
 *             [K/2][N][2], as the dot-product instructions want them
 *
 * An element (`el`) is f32 in copies for plain vectors, whatever the tensors
 * are, and bf16 in copies for instruction sets that multiply bf16.  All sizes
 * are multiples of 16 (K: of 32 for bf16); padding holds zeros.
 *
 * Of a block of queries and a block of keys each half of the queries meets only the halves of the
 * keys that it sees any of: of the diagonal three quarters, of short sequences packed behind each
 * other less. */
#ifndef TP_ENGINE_BACKEND_CPU_ATTENTION_BLOCK_H
#define TP_ENGINE_BACKEND_CPU_ATTENTION_BLOCK_H

#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/transpose.h"
#include "engine/backend/cpu/vec_math.h"

enum { BLOCK = 64, HALF = 32 };

/* A product of parts: C[m,n] (+)= A[m,k] B[k,n], where whole rows of A have `a_width` elements,
 * those of B and C `width`. */
typedef struct {
    int64_t m, n, k, a_width, width;
} product_shape;

#if defined(TP_CPU_ATTENTION_BF16)
#include "engine/backend/cpu/attention_bf16.h"
#else
#include "engine/backend/cpu/attention_f32.h"
#endif

/* The part of a head in one block: rows row .. row+n-1 (n <= 64), D columns from `column` on. */
typedef struct {
    const tp_operand *from;
    int64_t row, n, column, D;
} block_source;

static inline const char *row_of(const block_source *s, int64_t r)
{
    return (const char *)row_at(s->from, s->row + r) + s->column * (is_half(s->from) ? 2 : 4);
}

/* A form [64, padded D]; rows behind the n-th are zeros.  Rows lie far apart: ask for them
 * early. */
static inline void load_block(const block_source *s, el *to, int64_t padded)
{
    enum { AHEAD = 16, LINE = 64 };
    int64_t row_bytes = s->D * (is_half(s->from) ? 2 : 4);
    for (int64_t r = 0; r < s->n && r < AHEAD; r++) {
        for (int64_t at = 0; at < row_bytes; at += LINE)
            __builtin_prefetch(row_of(s, r) + at);
    }
    for (int64_t r = 0; r < s->n; r++) {
        for (int64_t at = 0; r + AHEAD < s->n && at < row_bytes; at += LINE)
            __builtin_prefetch(row_of(s, r + AHEAD) + at);
        el_load_row(to + r * padded, row_of(s, r), is_half(s->from), s->D, padded);
    }
    memset(to + s->n * padded, 0, (size_t)((BLOCK - s->n) * padded) * sizeof(el));
}

/* From C[D, 64 queries] f32 to rows of a tensor, every value times its query's factor.  Rows
 * beyond the block's n are not written.  `turned` has room for 64 x padded D. */
static inline void store_turned(const block_source *to, const float *c, const float *factor,
                                float *turned, int64_t padded)
{
    bool bf16 = is_half(to->from);
    transpose_32((const word32 *)c, padded, BLOCK, (word32 *)turned);
    for (int64_t r = 0; r < to->n; r++) {
        char *row = (char *)row_at(to->from, to->row + r) + to->column * (bf16 ? 2 : 4);
        const float *value = turned + r * padded;
        int64_t d = 0;
        for (; d + VF_N <= to->D; d += VF_N)
            vf_put(row, bf16, d, vf_load(value + d) * factor[r]);
        if (d < to->D)
            vf_put_n(row, bf16, d, to->D - d, vf_load(value + d) * factor[r]);
    }
}

/* Which keys some queries may see: first .. last, none when last < first. */
typedef struct {
    int64_t first, last;            /* over all queries of these that see something */
    int64_t last_first, first_last; /* keys from last_first to first_last are seen by all of them */
    bool any, all;                  /* of the queries see something */
} key_bounds;

typedef struct {
    key_bounds whole, half[2];
} block_bounds;

static inline key_bounds bounds_of_queries(const int32_t *first, const int32_t *last, int n)
{
    key_bounds b = {
        .first = INT32_MAX, .last = -1, .last_first = -1, .first_last = INT32_MAX, .all = true};
    for (int i = 0; i < n; i++) {
        if (last[i] < first[i]) {
            b.all = false;
            continue;
        }
        b.any = true;
        b.first = first[i] < b.first ? first[i] : b.first;
        b.last_first = first[i] > b.last_first ? first[i] : b.last_first;
        b.last = last[i] > b.last ? last[i] : b.last;
        b.first_last = last[i] < b.first_last ? last[i] : b.first_last;
    }
    return b;
}

static inline key_bounds bounds_of_both(key_bounds a, key_bounds b)
{
    return (key_bounds){.first = a.first < b.first ? a.first : b.first,
                        .last = a.last > b.last ? a.last : b.last,
                        .last_first = a.last_first > b.last_first ? a.last_first : b.last_first,
                        .first_last = a.first_last < b.first_last ? a.first_last : b.first_last,
                        .any = a.any || b.any,
                        .all = a.all && b.all};
}

static inline block_bounds bounds_of(const int32_t *first, const int32_t *last)
{
    block_bounds b = {.half = {bounds_of_queries(first, last, HALF),
                               bounds_of_queries(first + HALF, last + HALF, HALF)}};
    b.whole = bounds_of_both(b.half[0], b.half[1]);
    return b;
}

/* Queries of a block, a half or both, and the keys of another, in whole halves, that any of them
 * sees. */
typedef struct {
    int64_t query, queries; /* of the block of queries, the first and how many */
    int64_t key, keys;      /* of the block of keys */
    bool masked;            /* not all of them see all of these keys */
    bool begins;            /* none of them sees a key of an earlier block */
} block_part;

static inline block_part part_seen(const key_bounds *b, int64_t key, int64_t query, int64_t queries)
{
    int64_t from = b->first > key ? (b->first - key) / HALF * HALF : 0;
    int64_t to = b->last - key < BLOCK ? ceil_div(b->last + 1 - key, HALF) * HALF : BLOCK;
    bool sees_some = b->any && to > from;
    return (block_part){.query = query,
                        .queries = queries,
                        .key = from,
                        .keys = sees_some ? to - from : 0,
                        .masked =
                            !b->all || key + from < b->last_first || key + to - 1 > b->first_last,
                        .begins = b->first >= key};
}

/* What a block of queries sees of the block of keys from `key` on: one part, or two where the
 * halves see other keys; returns how many. */
static inline int parts_seen(const block_bounds *b, int64_t key, block_part part[2])
{
    block_part low = part_seen(&b->half[0], key, 0, HALF);
    block_part high = part_seen(&b->half[1], key, HALF, HALF);
    bool is_same = low.key == high.key && low.keys == high.keys && low.begins == high.begins;
    int n = 0;
    if (is_same && low.keys > 0) {
        part[0] = part_seen(&b->whole, key, 0, BLOCK);
        return 1;
    }
    if (low.keys > 0)
        part[n++] = low;
    if (high.keys > 0)
        part[n++] = high;
    return n;
}

/* Queries of these lanes that see key n. */
VF_INLINE vm sees(vi first, vi last, int64_t n)
{
    vi key = vi_set((int32_t)n);
    return vm_and(vi_le(first, key), vi_le(key, last));
}

/* first[t] .. last[t] of packed sequences: t sees its own sequence up to itself.  Both have
 * room for a multiple of 64 rows. */
static inline void causal_bounds(const tp_operand *cu, int64_t tokens, int32_t *first,
                                 int32_t *last)
{
    int64_t padded = ceil_div(tokens, BLOCK) * BLOCK;
    const int32_t *starts = cu->data;
    for (int64_t t = 0; t < padded; t++) {
        first[t] = 0;
        last[t] = -1;
    }
    for (int64_t s = 0; s + 1 < cu->dim[0]; s++) {
        for (int64_t t = starts[s]; t < starts[s + 1]; t++) {
            first[t] = starts[s];
            last[t] = (int32_t)t;
        }
    }
}

#endif
