/* attention_grad.c - the gradient of causal attention over packed sequences.
 *
 * Queries are lanes, as in attention.c.  With the saved lse and, per query,
 * delta = sum over d of do * o, a block of keys and a block of queries give
 *
 *     S  = K Q^T        P  = exp(scale S - lse)
 *     dP = V dO^T       dS = P (dP - delta)
 *     dV[key,d] += P dO      dK[key,d] += scale dS Q      dQ^T[d,query] += scale K^T dS
 *
 * Blocks of tokens fall into runs: no query of a run sees a key of another (a
 * run is a sequence when sequences begin at multiples of 64).  An item is one
 * head and one run.  It forms the queries' operands once, then takes its key
 * blocks in order, so that every sum has one owner and one order.  Heads that
 * share a key/value head leave their dK and dV in the workspace, and these are
 * added up in the order of the heads. */
#include "engine/backend/cpu/attention_block.h"

typedef struct {
    const tp_launch *launch;
    const tp_operand *q, *k, *v, *o, *dout, *dq, *dk, *dv;
    const float *lse;
    int64_t lse_stride;
    int64_t tokens, valid_rows, blocks;
    int64_t heads, kv_heads, D, padded;
    float scale, scale2; /* times log2(e) */

    /* workspace */
    int32_t *first, *last; /* [blocks * 64] */
    int32_t *run_start;    /* [blocks + 1] first block of every run, then `blocks` */
    int64_t n_runs;
    float *partial_k, *partial_v; /* [H][blocks][64, padded]; NULL when H = G */
    char *scratch;                /* one per thread */
    size_t scratch_bytes;
    size_t bytes;
} backward;

/* One thread's memory for one item; arrays [blocks] are for the blocks of its run. */
typedef struct {
    el *q_turned, *do_turned;     /* [blocks] B form [padded, 64 queries] */
    el *q_straight, *do_straight; /* [blocks] B form [64 queries, padded] */
    float *dq;                    /* [blocks] [padded, 64 queries] */
    float *lse2, *delta;          /* [blocks * 64] */
    el *k, *v;                    /* A form [64 keys, padded] */
    el *k_turned;                 /* A form [padded, 64 keys] */
    el *p, *ds;                   /* A form [64 keys, 64 queries] */
    el *ds_b;                     /* B form [64 keys, 64 queries] */
    el *spare;                    /* one block of elements */
    float *s, *dp;                /* [64 keys, 64 queries] */
    float *dk, *dv;               /* [64 keys, padded] */
    float *turned;                /* [64, padded] */
} item_scratch;

static int64_t block_elements(const backward *f) { return BLOCK * f->padded; }

static void *take(char *base, size_t *used, size_t bytes)
{
    void *piece = base ? base + *used : NULL;
    *used += round_up_64(bytes);
    return piece;
}

static item_scratch scratch_at(const backward *f, char *base, size_t *ret_bytes)
{
    size_t used = 0, block = (size_t)block_elements(f), n = (size_t)f->blocks;
    size_t square = BLOCK * BLOCK;
    item_scratch s = {
        .q_turned = take(base, &used, n * block * sizeof(el)),
        .do_turned = take(base, &used, n * block * sizeof(el)),
        .q_straight = take(base, &used, n * block * sizeof(el)),
        .do_straight = take(base, &used, n * block * sizeof(el)),
        .dq = take(base, &used, n * block * sizeof(float)),
        .lse2 = take(base, &used, n * BLOCK * sizeof(float)),
        .delta = take(base, &used, n * BLOCK * sizeof(float)),
        .k = take(base, &used, block * sizeof(el)),
        .v = take(base, &used, block * sizeof(el)),
        .k_turned = take(base, &used, block * sizeof(el)),
        .p = take(base, &used, square * sizeof(el)),
        .ds = take(base, &used, square * sizeof(el)),
        .ds_b = take(base, &used, square * sizeof(el)),
        .spare = take(base, &used, block * sizeof(el)),
        .s = take(base, &used, square * sizeof(float)),
        .dp = take(base, &used, square * sizeof(float)),
        .dk = take(base, &used, block * sizeof(float)),
        .dv = take(base, &used, block * sizeof(float)),
        .turned = take(base, &used, block * sizeof(float)),
    };
    *ret_bytes = used;
    return s;
}

static item_scratch scratch_of(const backward *f, int thread)
{
    size_t bytes;
    return scratch_at(f, f->scratch + (size_t)thread * f->scratch_bytes, &bytes);
}

static backward backward_of(const tp_launch *launch)
{
    const tp_attrs *attrs = &launch->attrs;
    backward f = {.launch = launch,
                  .q = &launch->in[0],
                  .k = &launch->in[1],
                  .v = &launch->in[2],
                  .o = &launch->in[3],
                  .lse = launch->in[4].data,
                  .lse_stride = launch->in[4].stride,
                  .dout = &launch->in[5],
                  .dq = &launch->out[0],
                  .dk = &launch->out[1],
                  .dv = &launch->out[2],
                  .tokens = launch->in[0].dim[0],
                  .heads = attrs->heads,
                  .kv_heads = attrs->kv_heads,
                  .D = attrs->head_dim,
                  .scale = attrs->scale,
                  .scale2 = attrs->scale * 1.442695041f};
    char *base = launch->workspace;
    f.blocks = ceil_div(f.tokens, BLOCK);
    f.padded = ceil_div(f.D, HEAD_MULTIPLE) * HEAD_MULTIPLE;
    size_t rows = (size_t)(f.blocks * BLOCK);
    f.first = take(base, &f.bytes, rows * sizeof(int32_t));
    f.last = take(base, &f.bytes, rows * sizeof(int32_t));
    f.run_start = take(base, &f.bytes, (size_t)(f.blocks + 1) * sizeof(int32_t));
    if (f.heads != f.kv_heads) {
        size_t partial = (size_t)f.heads * rows * (size_t)f.padded * sizeof(float);
        f.partial_k = take(base, &f.bytes, partial);
        f.partial_v = take(base, &f.bytes, partial);
    }
    scratch_at(&f, NULL, &f.scratch_bytes);
    f.scratch = take(base, &f.bytes, f.scratch_bytes * launch->threads);
    return f;
}

/* A block begins a run unless one of its queries sees a key before it. */
static void find_runs(backward *f)
{
    f->n_runs = 0;
    for (int64_t b = 0; b < f->blocks; b++) {
        key_bounds bounds = bounds_of_queries(f->first + b * BLOCK, f->last + b * BLOCK, BLOCK);
        if (b == 0 || !bounds.any || bounds.first >= b * BLOCK)
            f->run_start[f->n_runs++] = (int32_t)b;
    }
    f->run_start[f->n_runs] = (int32_t)f->blocks;
}

/* Block b of one head; rows that see nothing count as absent. */
static block_source source_of(const backward *f, const tp_operand *from, int64_t b, int64_t head)
{
    int64_t row = b * BLOCK, left = f->valid_rows - row;
    left = left < 0 ? 0 : left;
    return (block_source){.from = from,
                          .row = row,
                          .n = left < BLOCK ? left : BLOCK,
                          .column = head * f->D,
                          .D = f->D};
}

VF_INLINE float row_dot(const block_source *a, const block_source *b, int64_t r)
{
    bool a_bf16 = is_half(a->from), b_bf16 = is_half(b->from);
    const char *x = (const char *)row_at(a->from, a->row + r) + a->column * (a_bf16 ? 2 : 4);
    const char *y = (const char *)row_at(b->from, b->row + r) + b->column * (b_bf16 ? 2 : 4);
    vf sum = vf_zero();
    int64_t d = 0;
    for (; d + VF_N <= a->D; d += VF_N)
        sum = vf_fma(vf_get(x, a_bf16, d), vf_get(y, b_bf16, d), sum);
    if (d < a->D)
        sum = vf_fma(vf_get_n(x, a_bf16, d, a->D - d), vf_get_n(y, b_bf16, d, a->D - d), sum);
    return vf_sum(sum);
}

/* The queries of block b as operands; `i` is its place in the run. */
static void load_queries(const backward *f, const item_scratch *s, int64_t b, int64_t i, int64_t h)
{
    int64_t at = i * block_elements(f);
    block_source q = source_of(f, f->q, b, h), dout = source_of(f, f->dout, b, h);
    block_source o = source_of(f, f->o, b, h);
    load_block(&q, s->spare, f->padded);
    b_turned(s->spare, f->padded, s->q_turned + at);
    b_straight(s->spare, f->padded, s->q_straight + at);
    load_block(&dout, s->spare, f->padded);
    b_turned(s->spare, f->padded, s->do_turned + at);
    b_straight(s->spare, f->padded, s->do_straight + at);
    for (int64_t r = 0; r < BLOCK; r++) {
        bool present = r < q.n;
        float lse = present ? f->lse[h * f->lse_stride + b * BLOCK + r] : 0;
        s->lse2[i * BLOCK + r] = lse * 1.442695041f;
        s->delta[i * BLOCK + r] = present ? row_dot(&dout, &o, r) : 0;
    }
}

/* P and dS of VF_N queries and the part's keys of the block from `key` on. */
VF_INLINE void probability_lane(const backward *f, const item_scratch *s, int64_t lane, int64_t i,
                                int64_t key, const block_part *part, const int32_t *first,
                                const int32_t *last)
{
    vi low = vi_load(first + lane), high = vi_load(last + lane);
    vf shift = -vf_load(s->lse2 + i * BLOCK + lane), delta = vf_load(s->delta + i * BLOCK + lane);
    vf scale2 = vf_set(f->scale2);
    for (int64_t n = part->key; n < part->key + part->keys; n += 2) {
        const float *logits = s->s + n * BLOCK + lane, *dp = s->dp + n * BLOCK + lane;
        vf p0 = vf_exp2(vf_fma(vf_load(logits), scale2, shift));
        vf p1 = vf_exp2(vf_fma(vf_load(logits + BLOCK), scale2, shift));
        if (part->masked) {
            p0 = vf_select(sees(low, high, key + n), p0, vf_zero());
            p1 = vf_select(sees(low, high, key + n + 1), p1, vf_zero());
        }
        vf ds0 = p0 * (vf_load(dp) - delta);
        vf ds1 = p1 * (vf_load(dp + BLOCK) - delta);
        el_store(s->p + n * BLOCK + lane, p0);
        el_store(s->p + (n + 1) * BLOCK + lane, p1);
        el_store(s->ds + n * BLOCK + lane, ds0);
        el_store(s->ds + (n + 1) * BLOCK + lane, ds1);
        el_store_b(s->ds_b, n, lane, ds0, ds1);
    }
}

/* The part's queries of the i-th block of the run, whose keys' bounds are `first`, `last`, against
 * its keys of the block in s->k, s->v. */
static void visit_part(const backward *f, const item_scratch *s, int64_t key, int64_t i,
                       const block_part *part, const int32_t *first, const int32_t *last)
{
    const int64_t keys = part->keys, queries = part->queries, padded = f->padded;
    const int64_t at = i * block_elements(f), row = part->key * BLOCK;
    const int64_t column = part->query * LANE_ELEMENTS;
    const product_shape square = {keys, queries, padded, padded, BLOCK};
    const product_shape to_keys = {keys, padded, queries, BLOCK, padded};
    const product_shape to_queries = {padded, queries, keys, BLOCK, BLOCK};
    const el *k = s->k + part->key * padded, *v = s->v + part->key * padded;
    product(s->s + row + part->query, k, s->q_turned + at + column, square, false);
    product(s->dp + row + part->query, v, s->do_turned + at + column, square, false);
    for (int64_t lane = part->query; lane < part->query + queries; lane += VF_N)
        probability_lane(f, s, lane, i, key, part, first, last);
    const int64_t straight = at + part->query * padded;
    float *dk = s->dk + part->key * padded, *dv = s->dv + part->key * padded;
    product(dv, s->p + row + part->query, s->do_straight + straight, to_keys, true);
    product(dk, s->ds + row + part->query, s->q_straight + straight, to_keys, true);
    product(s->dq + at + part->query, s->k_turned + part->key, s->ds_b + row + column, to_queries,
            true);
}

/* Query block `q_block`, the i-th of the run, against the key block in s->k, s->v. */
static void visit_queries(const backward *f, const item_scratch *s, int64_t k_block,
                          int64_t q_block, int64_t i)
{
    const int32_t *first = f->first + q_block * BLOCK, *last = f->last + q_block * BLOCK;
    block_bounds bounds = bounds_of(first, last);
    block_part part[2];
    int n = parts_seen(&bounds, k_block * BLOCK, part);
    for (int p = 0; p < n; p++)
        visit_part(f, s, k_block * BLOCK, i, &part[p], first, last);
}

static void store_rows(const block_source *to, const float *from, int64_t padded, float factor)
{
    bool bf16 = is_half(to->from);
    for (int64_t r = 0; r < to->n; r++) {
        char *row = (char *)row_at(to->from, to->row + r) + to->column * (bf16 ? 2 : 4);
        int64_t d = 0;
        for (; d + VF_N <= to->D; d += VF_N)
            vf_put(row, bf16, d, vf_load(from + r * padded + d) * factor);
        if (d < to->D)
            vf_put_n(row, bf16, d, to->D - d, vf_load(from + r * padded + d) * factor);
    }
}

static void finish_keys(const backward *f, const item_scratch *s, int64_t b, int64_t h)
{
    if (f->partial_k) {
        size_t bytes = (size_t)block_elements(f) * sizeof(float);
        int64_t at = (h * f->blocks + b) * block_elements(f);
        memcpy(f->partial_k + at, s->dk, bytes);
        memcpy(f->partial_v + at, s->dv, bytes);
        return;
    }
    block_source dk = source_of(f, f->dk, b, h), dv = source_of(f, f->dv, b, h);
    if (is_bound(f->dk))
        store_rows(&dk, s->dk, f->padded, f->scale);
    if (is_bound(f->dv))
        store_rows(&dv, s->dv, f->padded, 1);
}

static void run_item(const backward *f, const item_scratch *s, int64_t h, int64_t begin,
                     int64_t end)
{
    int64_t g = h / (f->heads / f->kv_heads);
    size_t block_bytes = (size_t)block_elements(f) * sizeof(float);
    for (int64_t b = begin; b < end; b++)
        load_queries(f, s, b, b - begin, h);
    memset(s->dq, 0, block_bytes * (size_t)(end - begin));
    for (int64_t k_block = begin; k_block < end; k_block++) {
        block_source k = source_of(f, f->k, k_block, g), v = source_of(f, f->v, k_block, g);
        load_block(&k, s->k, f->padded);
        load_block(&v, s->v, f->padded);
        a_turned(s->k, f->padded, s->k_turned, s->spare);
        memset(s->dk, 0, block_bytes);
        memset(s->dv, 0, block_bytes);
        for (int64_t q_block = k_block; q_block < end; q_block++)
            visit_queries(f, s, k_block, q_block, q_block - begin);
        finish_keys(f, s, k_block, h);
    }
    float scale[BLOCK];
    for (int i = 0; i < BLOCK; i++)
        scale[i] = f->scale;
    for (int64_t b = begin; is_bound(f->dq) && b < end; b++) {
        block_source dq = source_of(f, f->dq, b, h);
        store_turned(&dq, s->dq + (b - begin) * block_elements(f), scale, s->turned, f->padded);
    }
}

/* Items are (run, head). */
static void item_range(const void *context, int64_t begin, int64_t end, int thread)
{
    const backward *f = context;
    item_scratch s = scratch_of(f, thread);
    enter_products();
    for (int64_t item = begin; item < end; item++) {
        int64_t run = item / f->heads;
        run_item(f, &s, item % f->heads, f->run_start[run], f->run_start[run + 1]);
    }
    leave_products();
}

/* Items are (block, key/value head): the heads of a group, added in their order. */
static void gather_range(const void *context, int64_t begin, int64_t end, int thread)
{
    const backward *f = context;
    item_scratch s = scratch_of(f, thread);
    int64_t group = f->heads / f->kv_heads, n = block_elements(f);
    for (int64_t item = begin; item < end; item++) {
        int64_t b = item / f->kv_heads, g = item % f->kv_heads;
        for (int64_t e = 0; e < n; e += VF_N) {
            vf dk = vf_zero(), dv = vf_zero();
            for (int64_t h = g * group; h < (g + 1) * group; h++) {
                dk += vf_load(f->partial_k + (h * f->blocks + b) * n + e);
                dv += vf_load(f->partial_v + (h * f->blocks + b) * n + e);
            }
            vf_store(s.dk + e, dk);
            vf_store(s.dv + e, dv);
        }
        block_source dk = source_of(f, f->dk, b, g), dv = source_of(f, f->dv, b, g);
        if (is_bound(f->dk))
            store_rows(&dk, s.dk, f->padded, f->scale);
        if (is_bound(f->dv))
            store_rows(&dv, s.dv, f->padded, 1);
    }
}

static void clear_rows(const tp_operand *x, int64_t begin, int64_t end)
{
    for (int64_t t = begin; is_bound(x) && t < end; t++)
        memset(row_at(x, t), 0, (size_t)x->dim[1] * (is_half(x) ? 2 : 4));
}

static void attention_grad(const tp_launch *launch)
{
    backward f = backward_of(launch);
    causal_bounds(&launch->in[6], f.tokens, f.first, f.last);
    for (int64_t t = 0; t < f.tokens; t++)
        f.valid_rows = f.last[t] >= f.first[t] ? t + 1 : f.valid_rows;
    find_runs(&f);
    tp_cpu_dynamic(launch, f.n_runs * f.heads, f.n_runs * f.heads * BLOCK * BLOCK * 16, item_range,
                   &f);
    if (f.partial_k) {
        tp_cpu_static(launch, f.blocks * f.kv_heads, f.tokens * f.heads * f.D * 8, gather_range,
                      &f);
    }
    clear_rows(f.dq, f.valid_rows, f.tokens);
    clear_rows(f.dk, f.valid_rows, f.tokens);
    clear_rows(f.dv, f.valid_rows, f.tokens);
}

static size_t workspace(const tp_launch *launch) { return backward_of(launch).bytes; }

static bool accepts(const tp_launch *launch)
{
    int64_t D = launch->attrs.head_dim;
    return takes_tensor(&launch->in[0], D) && takes_tensor(&launch->in[1], D) &&
           takes_tensor(&launch->in[2], D) && takes_tensor(&launch->in[5], D) &&
           are_floats(launch, 8, 7) && launch->in[4].dtype == TP_DTYPE_F32 &&
           is_i32(&launch->in[6]) && launch->attrs.scale > 0;
}

TP_CPU_KERNEL(attention_grad, .accepts = accepts, .workspace = workspace, .run = attention_grad);
