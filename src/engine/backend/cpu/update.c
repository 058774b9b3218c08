/* update.c - the optimizer's step: the sum of squares that clipping needs,
 * AdamW and SGD.  Each is one pass at the speed of memory. */
#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/vec.h"

#include <math.h>

enum { PIECE = 16384 }; /* elements of an item; also of a partial sum, so part of the result */

/* A tensor as rows of pieces; one row when it has no gaps. */
typedef struct {
    const tp_launch *launch;
    int64_t rows, width, pieces_per_row;
    double *partial; /* sumsq: one per item */
} pieces;

static pieces pieces_of(const tp_launch *launch)
{
    pieces p = {
        .launch = launch, .rows = n_rows(&launch->in[0]), .width = row_width(&launch->in[0])};
    if (is_one_row(launch)) {
        p.width *= p.rows;
        p.rows = 1;
    }
    p.pieces_per_row = ceil_div(p.width, PIECE);
    return p;
}

static double piece_sumsq(const void *x, bool bf16, int64_t n)
{
    double sum = 0;
    int64_t i = 0;
    while (i + VF_N <= n) {
        /* 32 vectors at a time in f32, then into double: each f32 sum has few terms */
        vf part0 = vf_zero(), part1 = vf_zero(), part2 = vf_zero(), part3 = vf_zero();
        int64_t stop = i + 32 * VF_N < n ? i + 32 * VF_N : n;
        for (; i + 4 * VF_N <= stop; i += 4 * VF_N) {
            vf_fetch(x, bf16, i, 4 * VF_N);
            vf x0 = vf_get(x, bf16, i), x1 = vf_get(x, bf16, i + VF_N);
            vf x2 = vf_get(x, bf16, i + 2 * VF_N), x3 = vf_get(x, bf16, i + 3 * VF_N);
            part0 = vf_fma(x0, x0, part0);
            part1 = vf_fma(x1, x1, part1);
            part2 = vf_fma(x2, x2, part2);
            part3 = vf_fma(x3, x3, part3);
        }
        for (; i + VF_N <= stop; i += VF_N) {
            vf x0 = vf_get(x, bf16, i);
            part0 = vf_fma(x0, x0, part0);
        }
        sum += (double)vf_sum((part0 + part1) + (part2 + part3));
    }
    if (i < n) {
        vf rest = vf_get_n(x, bf16, i, n - i);
        sum += (double)vf_sum(rest * rest);
    }
    return sum;
}

static void sumsq_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const pieces *p = context;
    const tp_operand *x = &p->launch->in[0];
    bool bf16 = is_half(x);
    for (int64_t item = begin; item < end; item++) {
        int64_t row = item / p->pieces_per_row, column = item % p->pieces_per_row * PIECE;
        int64_t n = p->width - column < PIECE ? p->width - column : PIECE;
        const char *from = (const char *)row_at(x, row) + column * (bf16 ? 2 : 4);
        p->partial[item] = piece_sumsq(from, bf16, n);
    }
}

static size_t sumsq_workspace(const tp_launch *launch)
{
    pieces p = pieces_of(launch);
    return (size_t)(p.rows * p.pieces_per_row) * sizeof(double);
}

static void sumsq(const tp_launch *launch)
{
    pieces p = pieces_of(launch);
    p.partial = launch->workspace;
    int64_t items = p.rows * p.pieces_per_row;
    tp_cpu_static(launch, items, p.rows * p.width * 4, sumsq_range, &p);
    if (!is_bound(&launch->out[0]))
        return;
    double *to = launch->out[0].data;
    double sum = adds_to(launch, 1) ? *to : 0;
    for (int64_t i = 0; i < items; i++)
        sum += p.partial[i];
    *to = sum;
}

/* What one step does to every element, with all that can be formed once formed once. */
typedef struct {
    float keep1, take1, keep2, take2; /* beta and 1 - beta */
    float factor, shrink, rate, root_correction, eps;
} step;

static step step_of(const tp_launch *launch)
{
    const double *s = launch->in[4].data;
    double lr = s[0], decay = s[4] * (double)launch->attrs.decay;
    return (step){.keep1 = (float)s[1],
                  .take1 = (float)(1 - s[1]), /* 1 - 0.999f would be off by 1.3e-5 */
                  .keep2 = (float)s[2],
                  .take2 = (float)(1 - s[2]),
                  .eps = (float)s[3],
                  .factor = (float)s[7],
                  .shrink = (float)(1 - lr * decay),
                  .rate = (float)(lr / s[5]),
                  .root_correction = (float)(1 / sqrt(s[6]))};
}

typedef struct {
    vf p, m, v;
} state;

VF_INLINE state advance(const step *s, vf p, vf g, vf m, vf v)
{
    g *= s->factor;
    m = vf_fma(m, vf_set(s->keep1), g * s->take1);
    v = vf_fma(v, vf_set(s->keep2), g * g * s->take2);
    vf size = vf_fma(vf_sqrt(v), vf_set(s->root_correction), vf_set(s->eps));
    return (state){.p = p * s->shrink - m * s->rate / size, .m = m, .v = v};
}

/* `streams`: the copy goes past the caches. */
VF_INLINE void adamw_piece(const step *s, float *p, const void *g, bool g_bf16, float *m, float *v,
                           vf_half *shadow, bool streams, int64_t n)
{
    int64_t i = 0;
    for (; i + VF_N <= n; i += VF_N) {
        vf_fetch(p, false, i, VF_N);
        vf_fetch(g, g_bf16, i, VF_N);
        vf_fetch(m, false, i, VF_N);
        vf_fetch(v, false, i, VF_N);
        state x = advance(s, vf_load(p + i), vf_get(g, g_bf16, i), vf_load(m + i), vf_load(v + i));
        vf_store(p + i, x.p);
        vf_store(m + i, x.m);
        vf_store(v + i, x.v);
        if (shadow && streams)
            vf_stream_half(shadow + i, x.p);
        else if (shadow)
            vf_store_half(shadow + i, x.p);
    }
    if (streams)
        vf_stream_end();
    if (i < n) {
        int64_t rest = n - i;
        state x = advance(s, vf_load_n(p + i, rest), vf_get_n(g, g_bf16, i, rest),
                          vf_load_n(m + i, rest), vf_load_n(v + i, rest));
        vf_store_n(p + i, rest, x.p);
        vf_store_n(m + i, rest, x.m);
        vf_store_n(v + i, rest, x.v);
        if (shadow)
            vf_store_half_n(shadow + i, rest, x.p);
    }
}

/* A copy that a thread's L2 could not hold is gone before a product reads it.  Stored past the
 * caches its lines need not be read first. */
static bool goes_past_caches(const pieces *a, const tp_operand *copy)
{
    size_t bytes = (size_t)(a->rows * a->width) * sizeof(vf_half);
    return is_bound(copy) && a->rows == 1 && bytes > tp_cpu_l2_bytes() &&
           (uintptr_t)copy->data % 64 == 0;
}

static void adamw_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const pieces *a = context;
    const tp_launch *launch = a->launch;
    const tp_operand *g = &launch->in[1], *shadow = &launch->out[3];
    bool g_bf16 = is_half(g), streams = goes_past_caches(a, shadow);
    step s = step_of(launch);
    for (int64_t item = begin; item < end; item++) {
        int64_t row = item / a->pieces_per_row, column = item % a->pieces_per_row * PIECE;
        int64_t n = a->width - column < PIECE ? a->width - column : PIECE;
        float *p = (float *)row_at(&launch->out[0], row) + column;
        float *m = (float *)row_at(&launch->out[1], row) + column;
        float *v = (float *)row_at(&launch->out[2], row) + column;
        const char *from = (const char *)row_at(g, row) + column * (g_bf16 ? 2 : 4);
        vf_half *to = is_bound(shadow) ? (vf_half *)row_at(shadow, row) + column : NULL;
        adamw_piece(&s, p, from, g_bf16, m, v, to, streams, n);
    }
}

static void adamw(const tp_launch *launch)
{
    pieces a = pieces_of(launch);
    tp_cpu_static(launch, a.rows * a.pieces_per_row, a.rows * a.width * 28, adamw_range, &a);
}

/* ---- SGD ---- */

typedef struct {
    float lr, momentum, take, weight_decay, factor;
    bool nesterov;
} descent;

VF_INLINE vf descend(const descent *s, vf p, vf g, vf *m)
{
    g = vf_fma(p, vf_set(s->weight_decay), g * s->factor);
    if (m) {
        *m = vf_fma(*m, vf_set(s->momentum), g * s->take);
        g = s->nesterov ? vf_fma(*m, vf_set(s->momentum), g) : *m;
    }
    return p - g * s->lr;
}

VF_INLINE void sgd_piece(const descent *s, float *p, const void *g, bool g_bf16, float *m,
                         vf_half *shadow, int64_t n)
{
    for (int64_t i = 0; i < n; i += VF_N) {
        int64_t rest = n - i < VF_N ? n - i : VF_N;
        vf moment = m ? vf_load_n(m + i, rest) : vf_zero();
        vf x = descend(s, vf_load_n(p + i, rest), vf_get_n(g, g_bf16, i, rest), m ? &moment : NULL);
        vf_store_n(p + i, rest, x);
        if (m)
            vf_store_n(m + i, rest, moment);
        if (shadow)
            vf_store_half_n(shadow + i, rest, x);
    }
}

static void sgd_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const pieces *a = context;
    const tp_launch *launch = a->launch;
    const tp_operand *g = &launch->in[1], *moment = &launch->out[1], *shadow = &launch->out[2];
    const double *v = launch->in[2].data;
    bool g_bf16 = is_half(g);
    descent s = {(float)v[0], (float)v[1], (float)v[2],
                 (float)v[4], (float)v[7], launch->attrs.nesterov != 0};
    for (int64_t item = begin; item < end; item++) {
        int64_t row = item / a->pieces_per_row, column = item % a->pieces_per_row * PIECE;
        int64_t n = a->width - column < PIECE ? a->width - column : PIECE;
        float *p = (float *)row_at(&launch->out[0], row) + column;
        float *m = is_bound(moment) ? (float *)row_at(moment, row) + column : NULL;
        const char *from = (const char *)row_at(g, row) + column * (g_bf16 ? 2 : 4);
        vf_half *to = is_bound(shadow) ? (vf_half *)row_at(shadow, row) + column : NULL;
        sgd_piece(&s, p, from, g_bf16, m, to, n);
    }
}

static void sgd(const tp_launch *launch)
{
    pieces a = pieces_of(launch);
    tp_cpu_static(launch, a.rows * a.pieces_per_row, a.rows * a.width * 20, sgd_range, &a);
}

static bool accepts_sumsq(const tp_launch *launch) { return are_floats(launch, 1, 0); }

/* State is updated where it is: in and out are the same memory. */
static bool accepts_adamw(const tp_launch *launch)
{
    return are_floats(launch, 2, 0) && launch->in[0].dtype == TP_DTYPE_F32 &&
           launch->in[2].dtype == TP_DTYPE_F32 && launch->in[3].dtype == TP_DTYPE_F32 &&
           launch->in[4].dtype == TP_DTYPE_F64 &&
           (!is_present(&launch->out[3]) || is_half(&launch->out[3]));
}

static bool accepts_sgd(const tp_launch *launch)
{
    return are_floats(launch, 2, 0) && launch->in[0].dtype == TP_DTYPE_F32 &&
           launch->in[2].dtype == TP_DTYPE_F64 &&
           (!is_present(&launch->out[1]) || launch->out[1].dtype == TP_DTYPE_F32) &&
           (!is_present(&launch->out[2]) || is_half(&launch->out[2]));
}

TP_CPU_KERNEL(sumsq, .accepts = accepts_sumsq, .workspace = sumsq_workspace, .run = sumsq);
TP_CPU_KERNEL(adamw, .accepts = accepts_adamw, .run = adamw);
TP_CPU_KERNEL(sgd, .accepts = accepts_sgd, .run = sgd);
