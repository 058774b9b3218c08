/* attention.c - causal attention over packed sequences.
 *
 * First every key/value head is copied once, block by block, into the forms that
 * products want: K[64,D] and V^T[D,64].  Then each item takes one head and one
 * block of 64 queries past the key blocks they see, with the running maximum m
 * and sum l of the softmax (queries are lanes):
 *
 *     S[key,query] = scale log2(e) K Q^T
 *     m' = max(m, S)   P = 2^(S - m')   l = l 2^(m - m') + sum P
 *     O[d,query] = O 2^(m - m') + V^T P
 *
 * m need not be the maximum itself: it is a whole number, so that the rounding of P to bf16
 * does not depend on it (generation has others, paged.c), and stays as it is until P would
 * exceed 2^8, which spares nearly all of the scaling of O.
 *
 * Blocks are blocks of the packed tokens, whatever sequences they belong to;
 * each query has its own range of keys.  An item's result does not depend on
 * who computes it, so any order of items gives the same bits. */
#include "engine/backend/cpu/attention_block.h"

#include <math.h>

typedef struct {
    const tp_launch *launch;
    const tp_operand *q, *k, *v, *o;
    float *lse; /* (optional) [H, T] */
    int64_t lse_stride;
    int64_t tokens, key_rows, q_blocks, k_blocks;
    int64_t heads, kv_heads, D, padded;
    float scale2; /* times log2(e) */

    /* workspace */
    int32_t *first, *last; /* [q_blocks * 64] */
    el *packed_k;          /* [kv_heads][k_blocks][64, padded] */
    el *packed_v;          /* [kv_heads][k_blocks][padded, 64] */
    char *scratch;         /* one per thread */
    size_t scratch_bytes;
    size_t bytes; /* of all of it */
} forward;

/* One thread's memory for one item. */
typedef struct {
    el *q, *p;    /* B forms [padded, 64], [64 keys, 64] */
    float *s, *o; /* [64 keys, 64], [padded, 64] */
    float m[BLOCK], l[BLOCK], correction[BLOCK];
} item_scratch;

static int64_t block_elements(const forward *f) { return BLOCK * f->padded; }

static void *take(forward *f, size_t bytes)
{
    char *base = f->launch->workspace;
    void *piece = base ? base + f->bytes : NULL;
    f->bytes += round_up_64(bytes);
    return piece;
}

static size_t scratch_size(const forward *f)
{
    size_t el_block = (size_t)block_elements(f) * sizeof(el);
    return round_up_64(sizeof(item_scratch)) + 2 * el_block + BLOCK * BLOCK * sizeof(el) +
           BLOCK * BLOCK * sizeof(float) + (size_t)block_elements(f) * sizeof(float) * 2;
}

static item_scratch *scratch_of(const forward *f, int thread)
{
    char *at = f->scratch + (size_t)thread * f->scratch_bytes;
    item_scratch *s = (item_scratch *)at;
    at += round_up_64(sizeof *s);
    s->q = (el *)at;
    at += (size_t)block_elements(f) * sizeof(el);
    s->p = (el *)at;
    at += BLOCK * BLOCK * sizeof(el);
    s->s = (float *)at;
    at += BLOCK * BLOCK * sizeof(float);
    s->o = (float *)at;
    return s;
}

static forward forward_of(const tp_launch *launch)
{
    const tp_attrs *attrs = &launch->attrs;
    forward f = {.launch = launch,
                 .q = &launch->in[0],
                 .k = &launch->in[1],
                 .v = &launch->in[2],
                 .o = &launch->out[0],
                 .tokens = launch->in[0].dim[0],
                 .key_rows = launch->in[1].dim[0],
                 .heads = attrs->heads,
                 .kv_heads = attrs->kv_heads,
                 .D = attrs->head_dim,
                 .scale2 = attrs->scale * 1.442695041f};
    f.q_blocks = ceil_div(f.tokens, BLOCK);
    f.k_blocks = ceil_div(f.key_rows, BLOCK);
    f.padded = ceil_div(f.D, HEAD_MULTIPLE) * HEAD_MULTIPLE;
    size_t rows = (size_t)(f.q_blocks * BLOCK);
    f.first = take(&f, rows * sizeof(int32_t));
    f.last = take(&f, rows * sizeof(int32_t));
    size_t packed = (size_t)(f.kv_heads * f.k_blocks * block_elements(&f)) * sizeof(el);
    f.packed_k = take(&f, packed);
    f.packed_v = take(&f, packed);
    f.scratch_bytes = round_up_64(scratch_size(&f));
    f.scratch = take(&f, f.scratch_bytes * launch->threads);
    return f;
}

/* Items are (block, key/value head), block-major. */
static void pack_range(const void *context, int64_t begin, int64_t end, int thread)
{
    const forward *f = context;
    item_scratch *scratch = scratch_of(f, thread);
    el *straight = scratch->q, *spare = (el *)(void *)scratch->o;
    for (int64_t item = begin; item < end; item++) {
        int64_t block = item / f->kv_heads, g = item % f->kv_heads;
        int64_t row = block * BLOCK, left = f->key_rows - row;
        int64_t at = (g * f->k_blocks + block) * block_elements(f);
        block_source source = {.from = f->k,
                               .row = row,
                               .n = left < BLOCK ? left : BLOCK,
                               .column = g * f->D,
                               .D = f->D};
        load_block(&source, f->packed_k + at, f->padded);
        source.from = f->v;
        load_block(&source, straight, f->padded);
        a_turned(straight, f->padded, f->packed_v + at, spare);
    }
}

/* S -> P for VF_N queries; updates their m and l, and leaves the factor for O.  Returns whether
 * it differs from 1 for any of them. */
VF_INLINE bool softmax_lane(const forward *f, item_scratch *s, int64_t lane, int64_t key,
                            const block_part *part, const int32_t *first, const int32_t *last)
{
    const int64_t from = part->key, to = part->key + part->keys;
    vf before = vf_load(s->m + lane), scale2 = vf_set(f->scale2);
    vf largest0 = vf_set(-INFINITY), largest1 = largest0;
    float *column = s->s + lane;
    if (part->masked) {
        vi low = vi_load(first + lane), high = vi_load(last + lane);
        for (int64_t n = from; n < to; n++) {
            vf hidden = vf_set(-INFINITY);
            vf x = vf_select(sees(low, high, key + n), vf_load(column + n * BLOCK), hidden);
            vf_store(column + n * BLOCK, x);
            largest0 = vf_max(largest0, x);
        }
    } else {
        for (int64_t n = from; n < to; n += 2) {
            largest0 = vf_max(largest0, vf_load(column + n * BLOCK));
            largest1 = vf_max(largest1, vf_load(column + (n + 1) * BLOCK));
        }
    }
    vf largest = vf_max(largest0, largest1) * scale2;
    vm grows = vm_lt(before + 8.0f, largest);
    vf m = vf_select(grows, vf_round(largest), before);
    /* A query that has seen nothing yet has the maximum -infinity, and P = 0. */
    vf base = vf_select(vm_eq(m, vf_set(-INFINITY)), vf_zero(), m);
    vf sum = vf_zero();
    for (int64_t n = from; n < to; n += 2) {
        vf even = vf_exp2(vf_fma(vf_load(column + n * BLOCK), scale2, -base));
        vf odd = vf_exp2(vf_fma(vf_load(column + (n + 1) * BLOCK), scale2, -base));
        sum += even + odd;
        el_store_b(s->p, n, lane, even, odd);
    }
    vf correction = vf_exp2(before - base);
    correction = vf_select(grows, correction, vf_set(1.0f));
    vf_store(s->m + lane, m);
    vf_store(s->l + lane, vf_fma(vf_load(s->l + lane), correction, sum));
    vf_store(s->correction + lane, correction);
    return vm_any(grows);
}

static void rescale(const item_scratch *s, const block_part *part, int64_t padded)
{
    for (int64_t lane = part->query; lane < part->query + part->queries; lane += VF_N) {
        vf factor = vf_load(s->correction + lane);
        for (int64_t d = 0; d < padded; d++)
            vf_store(s->o + d * BLOCK + lane, vf_load(s->o + d * BLOCK + lane) * factor);
    }
}

/* The part's queries past its keys. */
static void visit_part(const forward *f, item_scratch *s, int64_t g, int64_t block,
                       const block_part *part, const int32_t *first, const int32_t *last)
{
    int64_t at = (g * f->k_blocks + block) * block_elements(f);
    int64_t square = part->key * BLOCK, column = part->query * LANE_ELEMENTS;
    product(s->s + square + part->query, f->packed_k + at + part->key * f->padded, s->q + column,
            (product_shape){part->keys, part->queries, f->padded, f->padded, BLOCK}, false);
    bool grows = false;
    for (int64_t lane = part->query; lane < part->query + part->queries; lane += VF_N)
        grows |= softmax_lane(f, s, lane, block * BLOCK, part, first, last);
    if (grows && !part->begins)
        rescale(s, part, f->padded);
    product(s->o + part->query, f->packed_v + at + part->key, s->p + square + column,
            (product_shape){f->padded, part->queries, part->keys, BLOCK, BLOCK}, !part->begins);
}

static void visit_keys(const forward *f, item_scratch *s, int64_t g, int64_t block,
                       const block_bounds *bounds, const int32_t *first, const int32_t *last)
{
    block_part part[2];
    int n = parts_seen(bounds, block * BLOCK, part);
    for (int i = 0; i < n; i++)
        visit_part(f, s, g, block, &part[i], first, last);
}

/* o = O / l and lse = m ln 2 + ln l; zeros for queries that see nothing. */
static void finish_item(const forward *f, item_scratch *s, const block_source *to, int64_t h,
                        const int32_t *first, const int32_t *last)
{
    float lse[BLOCK], factor[BLOCK];
    for (int64_t lane = 0; lane < BLOCK; lane += VF_N) {
        vm any = vi_le(vi_load(first + lane), vi_load(last + lane));
        vf l = vf_select(any, vf_load(s->l + lane), vf_set(1.0f));
        vf m = vf_select(any, vf_load(s->m + lane), vf_zero());
        vf_store(factor + lane, vf_select(any, 1.0f / l, vf_zero()));
        vf_store(lse + lane, vf_fma(m, vf_set(0.693147181f), vf_log(l)));
    }
    if (is_bound(f->o)) {
        for (int64_t r = 0; r < to->n; r++) {
            /* What such lanes hold may not be a number, which no factor makes zero. */
            for (int64_t d = 0; last[r] < first[r] && d < f->padded; d++)
                s->o[d * BLOCK + r] = 0;
        }
        store_turned(to, s->o, factor, s->o + block_elements(f), f->padded);
    }
    if (f->lse)
        memcpy(f->lse + h * f->lse_stride + to->row, lse, (size_t)to->n * sizeof *lse);
}

/* Items are (block of queries, head), the last blocks first: they see most keys. */
static void attend_range(const void *context, int64_t begin, int64_t end, int thread)
{
    const forward *f = context;
    item_scratch *s = scratch_of(f, thread);
    enter_products();
    for (int64_t item = begin; item < end; item++) {
        int64_t q_block = f->q_blocks - 1 - item / f->heads, h = item % f->heads;
        int64_t row = q_block * BLOCK, left = f->tokens - row;
        block_source source = {.from = f->q,
                               .row = row,
                               .n = left < BLOCK ? left : BLOCK,
                               .column = h * f->D,
                               .D = f->D};
        const int32_t *first = f->first + row, *last = f->last + row;
        block_bounds bounds = bounds_of(first, last);
        el *straight = (el *)(void *)s->o;
        load_block(&source, straight, f->padded);
        b_turned(straight, f->padded, s->q);
        for (int64_t i = 0; i < BLOCK; i++) {
            s->m[i] = -INFINITY;
            s->l[i] = 0;
        }
        int64_t g = h / (f->heads / f->kv_heads);
        const key_bounds *all = &bounds.whole;
        for (int64_t b = all->first / BLOCK; all->any && b <= all->last / BLOCK; b++)
            visit_keys(f, s, g, b, &bounds, first, last);
        source.from = f->o;
        finish_item(f, s, &source, h, first, last);
    }
    leave_products();
}

/* Key blocks up to the last one that any query sees. */
static void run(forward *f)
{
    int64_t last = -1;
    for (int64_t t = 0; t < f->tokens; t++)
        last = f->last[t] > last ? f->last[t] : last;
    f->key_rows = last + 1;
    int64_t packed_blocks = ceil_div(f->key_rows, BLOCK);
    tp_cpu_static(f->launch, packed_blocks * f->kv_heads, f->key_rows * f->kv_heads * f->D * 8,
                  pack_range, f);
    tp_cpu_dynamic(f->launch, f->q_blocks * f->heads, f->q_blocks * f->heads * BLOCK * BLOCK * 16,
                   attend_range, f);
}

static size_t workspace(const tp_launch *launch) { return forward_of(launch).bytes; }

static void attention(const tp_launch *launch)
{
    forward f = forward_of(launch);
    f.lse = launch->out[1].data;
    f.lse_stride = launch->out[1].stride;
    causal_bounds(&launch->in[3], f.tokens, f.first, f.last);
    run(&f);
}

static bool accepts(const tp_launch *launch)
{
    int64_t D = launch->attrs.head_dim;
    return takes_tensor(&launch->in[0], D) && takes_tensor(&launch->in[1], D) &&
           takes_tensor(&launch->in[2], D) && is_i32(&launch->in[3]) && are_floats(launch, 0, 1) &&
           is_f32_if_present(&launch->out[1]) && launch->attrs.scale > 0;
}

TP_CPU_KERNEL(attention, .accepts = accepts, .workspace = workspace, .run = attention);
