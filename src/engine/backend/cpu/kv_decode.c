/* kv_decode.c - kv_attention of a few rows: the time is that of reading the cache
 * once, so keys are taken as they lie.
 *
 * An item is one row, one key/value head and 256 keys.  For each query head of
 * the group it leaves the maximum m, the sum l and the unnormalised output of its
 * keys in the workspace; the parts of a head are then put together in their
 * order. */
#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/vec_math.h"

#include <math.h>

enum { PART = 256, MAX_ROWS = 8 };

typedef struct {
    const tp_launch *launch;
    const tp_operand *q, *k, *v, *o;
    const int32_t *positions;
    int64_t rows, heads, kv_heads, group, D, padded, parts;
    float scale;
    float *partial; /* [rows][heads][parts][2 + padded]: m, l, output */
    size_t bytes;
} decode;

static int64_t partial_size(const decode *a) { return 16 + a->padded; }

static float *partial_of(const decode *a, int64_t row, int64_t h, int64_t part)
{
    return a->partial + ((row * a->heads + h) * a->parts + part) * partial_size(a);
}

static decode decode_of(const tp_launch *launch)
{
    const tp_attrs *attrs = &launch->attrs;
    decode a = {.launch = launch,
                .q = &launch->in[0],
                .k = &launch->in[3],
                .v = &launch->in[4],
                .positions = launch->in[5].data,
                .o = &launch->out[0],
                .rows = launch->in[0].dim[0],
                .heads = attrs->heads,
                .kv_heads = attrs->kv_heads,
                .group = attrs->heads / attrs->kv_heads,
                .D = attrs->head_dim,
                .scale = attrs->scale};
    a.padded = ceil_div(a.D, 16) * 16;
    a.parts = ceil_div(a.k->dim[0], PART);
    a.partial = launch->workspace;
    a.bytes = (size_t)(a.rows * a.heads * a.parts * partial_size(&a)) * sizeof(float);
    return a;
}

VF_INLINE float dot(const void *x, bool x_bf16, const void *y, bool y_bf16, int64_t n)
{
    vf sum0 = vf_zero(), sum1 = vf_zero();
    int64_t i = 0;
    for (; i + 2 * VF_N <= n; i += 2 * VF_N) {
        sum0 = vf_fma(vf_get(x, x_bf16, i), vf_get(y, y_bf16, i), sum0);
        sum1 = vf_fma(vf_get(x, x_bf16, i + VF_N), vf_get(y, y_bf16, i + VF_N), sum1);
    }
    for (; i + VF_N <= n; i += VF_N)
        sum0 = vf_fma(vf_get(x, x_bf16, i), vf_get(y, y_bf16, i), sum0);
    if (i < n)
        sum1 = vf_fma(vf_get_n(x, x_bf16, i, n - i), vf_get_n(y, y_bf16, i, n - i), sum1);
    return vf_sum(sum0 + sum1);
}

/* out[d] = sum over n keys of p * v, for `lanes` values from column d on */
VF_INLINE vf weighted_sum(const decode *a, const float *p, int64_t key, int64_t n, int64_t column,
                          int64_t lanes)
{
    bool bf16 = is_bf16(a->v);
    vf sum0 = vf_zero(), sum1 = vf_zero();
    int64_t i = 0;
    for (; i + 2 <= n && lanes == VF_N; i += 2) {
        sum0 = vf_fma(vf_set(p[i]), vf_get(row_at(a->v, key + i), bf16, column), sum0);
        sum1 = vf_fma(vf_set(p[i + 1]), vf_get(row_at(a->v, key + i + 1), bf16, column), sum1);
    }
    for (; i < n; i++) {
        const void *row = row_at(a->v, key + i);
        vf v = lanes == VF_N ? vf_get(row, bf16, column) : vf_get_n(row, bf16, column, lanes);
        sum0 = vf_fma(vf_set(p[i]), v, sum0);
    }
    return sum0 + sum1;
}

/* One query head against n keys. */
static void attend_part(const decode *a, int64_t row, int64_t h, int64_t key, int64_t n, float *to)
{
    float p[PART], largest = -INFINITY;
    bool q_bf16 = is_bf16(a->q), k_bf16 = is_bf16(a->k);
    int64_t column = h / a->group * a->D;
    const char *q = (const char *)row_at(a->q, row) + h * a->D * (q_bf16 ? 2 : 4);
    for (int64_t i = 0; i < n; i++) {
        const char *k = (const char *)row_at(a->k, key + i) + column * (k_bf16 ? 2 : 4);
        p[i] = dot(q, q_bf16, k, k_bf16, a->D) * a->scale;
        largest = p[i] > largest ? p[i] : largest;
    }
    vf sum = vf_zero();
    for (int64_t i = 0; i < n; i += VF_N) {
        int64_t lanes = n - i < VF_N ? n - i : VF_N;
        vf e = vf_exp((lanes == VF_N ? vf_load(p + i) : vf_load_n(p + i, lanes)) - largest);
        if (lanes < VF_N)
            e = vf_select(vm_first(lanes), e, vf_zero());
        sum += e;
        if (lanes == VF_N)
            vf_store(p + i, e);
        else
            vf_store_n(p + i, lanes, e);
    }
    to[0] = largest;
    to[1] = vf_sum(sum);
    for (int64_t d = 0; d < a->D; d += VF_N) {
        int64_t lanes = a->D - d < VF_N ? a->D - d : VF_N;
        vf_store(to + 16 + d, weighted_sum(a, p, key, n, column + d, lanes));
    }
}

/* Items are (row, part, key/value head). */
static void part_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const decode *a = context;
    for (int64_t item = begin; item < end; item++) {
        int64_t g = item % a->kv_heads, part = item / a->kv_heads % a->parts;
        int64_t row = item / a->kv_heads / a->parts;
        int64_t key = part * PART, left = a->positions[row] + 1 - key;
        if (left <= 0)
            continue;
        for (int64_t h = g * a->group; h < (g + 1) * a->group; h++)
            attend_part(a, row, h, key, left < PART ? left : PART, partial_of(a, row, h, part));
    }
}

/* o = sum of e^(m_part - m) output_part / sum of e^(m_part - m) l_part */
static void merge_head(const decode *a, int64_t row, int64_t h)
{
    int64_t parts = ceil_div(a->positions[row] + 1, PART);
    float largest = -INFINITY, sum = 0;
    for (int64_t part = 0; part < parts; part++) {
        float m = partial_of(a, row, h, part)[0];
        largest = m > largest ? m : largest;
    }
    float *first = partial_of(a, row, h, 0);
    for (int64_t part = 0; part < parts; part++) {
        float *from = partial_of(a, row, h, part);
        float factor = expf(from[0] - largest);
        sum += factor * from[1];
        for (int64_t d = 0; d < a->padded; d += VF_N) {
            vf scaled = vf_load(from + 16 + d) * factor;
            if (part > 0)
                scaled += vf_load(first + 16 + d);
            vf_store(first + 16 + d, scaled);
        }
    }
    bool bf16 = is_bf16(a->o);
    char *to = (char *)row_at(a->o, row) + h * a->D * (bf16 ? 2 : 4);
    int64_t d = 0;
    for (; d + VF_N <= a->D; d += VF_N)
        vf_put(to, bf16, d, vf_load(first + 16 + d) * (1.0f / sum));
    if (d < a->D)
        vf_put_n(to, bf16, d, a->D - d, vf_load(first + 16 + d) * (1.0f / sum));
}

static void store_row(const tp_operand *cache, int64_t position, const tp_operand *x, int64_t t)
{
    void *to = row_at(cache, position);
    const void *from = row_at(x, t);
    bool to_bf16 = is_bf16(cache), from_bf16 = is_bf16(x);
    int64_t i = 0, n = x->dim[1];
    for (; i + VF_N <= n; i += VF_N)
        vf_put(to, to_bf16, i, vf_get(from, from_bf16, i));
    if (i < n)
        vf_put_n(to, to_bf16, i, n - i, vf_get_n(from, from_bf16, i, n - i));
}

static void run(const tp_launch *launch)
{
    decode a = decode_of(launch);
    int64_t keys = 0;
    for (int64_t row = 0; row < a.rows; row++) {
        if (a.positions[row] < 0)
            continue;
        TP_ASSERT(a.positions[row] < a.k->dim[0]);
        keys += a.positions[row] + 1;
        store_row(a.k, a.positions[row], &launch->in[1], row);
        store_row(a.v, a.positions[row], &launch->in[2], row);
    }
    if (!is_bound(a.o))
        return;
    tp_cpu_static(launch->threads, a.rows * a.parts * a.kv_heads, keys * a.heads * a.D * 8,
                  part_range, &a);
    for (int64_t row = 0; row < a.rows; row++) {
        if (a.positions[row] < 0)
            memset(row_at(a.o, row), 0, (size_t)a.o->dim[1] * (is_bf16(a.o) ? 2 : 4));
        for (int64_t h = 0; a.positions[row] >= 0 && h < a.heads; h++)
            merge_head(&a, row, h);
    }
}

static size_t workspace(const tp_launch *launch) { return decode_of(launch).bytes; }

static bool accepts(const tp_launch *launch)
{
    return launch->in[0].dim[0] <= MAX_ROWS && are_floats(launch, 0x1f, 1) &&
           is_i32(&launch->in[5]);
}

const tp_kernel TP_CPU_NAME(tp_cpu_kv_decode) = {
    .name = "kv_attention/decode-" TP_CPU_TEXT(TP_CPU_SUFFIX),
    .op = TP_OP_kv_attention,
    .isa = TP_CPU_ISA,
    .accepts = accepts,
    .workspace = workspace,
    .run = run};
