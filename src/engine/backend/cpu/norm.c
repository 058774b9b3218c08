/* norm.c - RMS and layer normalisation of T rows of C, alone or after a residual
 * addition.  A row stays in the first cache between the passes over it: the
 * sums, the spread about the mean, the result. */
#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/vec.h"

#include <math.h>

/* Where one row (or slice of a row) comes from and goes to. */
typedef struct {
    const void *x, *w, *b;
    void *y;
    bool x_bf16, w_bf16, b_bf16, y_bf16;
} row;

VF_INLINE float sum_of(const row *r, int64_t n)
{
    vf sum0 = vf_zero(), sum1 = vf_zero();
    int64_t i = 0;
    for (; i + 2 * VF_N <= n; i += 2 * VF_N) {
        sum0 += vf_get(r->x, r->x_bf16, i);
        sum1 += vf_get(r->x, r->x_bf16, i + VF_N);
    }
    for (; i + VF_N <= n; i += VF_N)
        sum0 += vf_get(r->x, r->x_bf16, i);
    if (i < n)
        sum1 += vf_get_n(r->x, r->x_bf16, i, n - i);
    return vf_sum(sum0 + sum1);
}

/* sum of (x - mean)^2 */
VF_INLINE float spread_of(const row *r, int64_t n, float mean)
{
    vf sum0 = vf_zero(), sum1 = vf_zero();
    int64_t i = 0;
    for (; i + 2 * VF_N <= n; i += 2 * VF_N) {
        vf x0 = vf_get(r->x, r->x_bf16, i) - mean;
        vf x1 = vf_get(r->x, r->x_bf16, i + VF_N) - mean;
        sum0 = vf_fma(x0, x0, sum0);
        sum1 = vf_fma(x1, x1, sum1);
    }
    for (; i + VF_N <= n; i += VF_N) {
        vf x = vf_get(r->x, r->x_bf16, i) - mean;
        sum0 = vf_fma(x, x, sum0);
    }
    if (i < n) {
        vf x = vf_get_n(r->x, r->x_bf16, i, n - i) - mean;
        x = vf_select(vm_first(n - i), x, vf_zero());
        sum1 = vf_fma(x, x, sum1);
    }
    return vf_sum(sum0 + sum1);
}

/* y = (x - mean) * rstd * w + b */
VF_INLINE void write_normal(const row *r, int64_t n, float mean, float rstd)
{
    int64_t i = 0;
    for (; i + VF_N <= n; i += VF_N) {
        vf y = (vf_get(r->x, r->x_bf16, i) - mean) * rstd * vf_get(r->w, r->w_bf16, i);
        if (r->b)
            y += vf_get(r->b, r->b_bf16, i);
        vf_put(r->y, r->y_bf16, i, y);
    }
    if (i < n) {
        vf x = vf_get_n(r->x, r->x_bf16, i, n - i);
        vf y = (x - mean) * rstd * vf_get_n(r->w, r->w_bf16, i, n - i);
        if (r->b)
            y += vf_get_n(r->b, r->b_bf16, i, n - i);
        vf_put_n(r->y, r->y_bf16, i, n - i, y);
    }
}

/* The four ops seen as one. */
typedef struct {
    const tp_operand *x, *residual, *w, *b; /* NULL: the op has none */
    const tp_operand *sum, *y, *mean, *rstd;
    float eps;
    char *spare; /* a row per thread for a sum that nobody reads */
    int64_t spare_bytes;
} norm;

/* sum = x + residual, rounded; returns where it is. */
static const void *add_residual(const norm *a, int64_t t, int thread)
{
    const void *x = row_at(a->x, t), *residual = row_at(a->residual, t);
    void *sum = is_bound(a->sum) ? row_at(a->sum, t) : a->spare + thread * a->spare_bytes;
    bool x_bf16 = is_half(a->x), residual_bf16 = is_half(a->residual), sum_bf16 = is_half(a->sum);
    int64_t n = a->x->dim[1], i = 0;
    for (; i + 2 * VF_N <= n; i += 2 * VF_N) {
        vf_fetch(x, x_bf16, i, 2 * VF_N);
        vf_fetch(residual, residual_bf16, i, 2 * VF_N);
        vf s0 = vf_get(x, x_bf16, i) + vf_get(residual, residual_bf16, i);
        vf s1 = vf_get(x, x_bf16, i + VF_N) + vf_get(residual, residual_bf16, i + VF_N);
        vf_put(sum, sum_bf16, i, s0);
        vf_put(sum, sum_bf16, i + VF_N, s1);
    }
    for (; i + VF_N <= n; i += VF_N)
        vf_put(sum, sum_bf16, i, vf_get(x, x_bf16, i) + vf_get(residual, residual_bf16, i));
    if (i < n) {
        vf s = vf_get_n(x, x_bf16, i, n - i) + vf_get_n(residual, residual_bf16, i, n - i);
        vf_put_n(sum, sum_bf16, i, n - i, s);
    }
    return sum;
}

static void norm_slice(const norm *a, row *r, int64_t statistic)
{
    int64_t n = a->w->dim[0];
    float mean = 0;
    if (a->mean)
        mean = sum_of(r, n) / (float)n;
    float rstd = 1.0f / sqrtf(spread_of(r, n, mean) / (float)n + a->eps);
    if (a->mean && is_bound(a->mean))
        ((float *)a->mean->data)[statistic] = mean;
    if (is_bound(a->rstd))
        ((float *)a->rstd->data)[statistic] = rstd;
    if (r->y)
        write_normal(r, n, mean, rstd);
}

static void norm_range(const void *context, int64_t begin, int64_t end, int thread)
{
    const norm *a = context;
    const tp_operand *x = a->residual ? a->sum : a->x;
    int64_t width = a->w->dim[0], slices = a->x->dim[1] / width;
    int64_t statistics = is_bound(a->rstd) && a->rstd->rank == 2 ? a->rstd->stride : slices;
    row r = {.w = a->w->data,
             .b = a->b && is_bound(a->b) ? a->b->data : NULL,
             .x_bf16 = is_half(x),
             .w_bf16 = is_half(a->w),
             .b_bf16 = a->b && is_half(a->b),
             .y_bf16 = is_half(a->y)};
    for (int64_t t = begin; t < end; t++) {
        const char *from = a->residual ? add_residual(a, t, thread) : row_at(x, t);
        char *to = is_bound(a->y) ? row_at(a->y, t) : NULL;
        for (int64_t s = 0; s < slices; s++) {
            r.x = from + s * width * (r.x_bf16 ? 2 : 4);
            r.y = to ? to + s * width * (r.y_bf16 ? 2 : 4) : NULL;
            norm_slice(a, &r, t * statistics + s);
        }
    }
}

static void run(const tp_launch *launch, norm *a)
{
    a->eps = launch->attrs.eps;
    a->spare = launch->workspace;
    a->spare_bytes = (int64_t)round_up_64((size_t)a->x->dim[1] * sizeof(float));
    tp_cpu_static(launch, a->x->dim[0], a->x->dim[0] * a->x->dim[1] * 8, norm_range, a);
}

/* Operands of the four ops by what they do: add a residual first, subtract the mean. */
static norm norm_of(const tp_launch *launch, bool adds, bool centres)
{
    const tp_operand *in = launch->in, *out = launch->out;
    norm a = {.x = in++};
    if (adds) {
        a.residual = in++;
        a.sum = out++;
    }
    a.w = in++;
    a.b = centres ? in : NULL;
    a.y = out++;
    a.mean = centres ? out++ : NULL;
    a.rstd = out;
    return a;
}

static bool accepts(const tp_launch *launch, bool adds, bool centres)
{
    norm a = norm_of(launch, adds, centres);
    return are_floats(launch, (1u << (2 + adds + centres)) - 1, adds ? 3 : 1) &&
           (!centres || is_f32_if_present(a.mean)) && is_f32_if_present(a.rstd);
}

static size_t workspace_add(const tp_launch *launch)
{
    return launch->threads * round_up_64((size_t)launch->in[0].dim[1] * sizeof(float));
}

#define NORM(name, adds, centres, ...)                                                             \
    static void name(const tp_launch *launch)                                                      \
    {                                                                                              \
        norm a = norm_of(launch, adds, centres);                                                   \
        run(launch, &a);                                                                           \
    }                                                                                              \
    static bool accepts_##name(const tp_launch *launch) { return accepts(launch, adds, centres); } \
    TP_CPU_KERNEL(name, .accepts = accepts_##name, .run = name, ##__VA_ARGS__)

NORM(rmsnorm, false, false);
NORM(layernorm, false, true);
NORM(add_rmsnorm, true, false, .workspace = workspace_add);
NORM(add_layernorm, true, true, .workspace = workspace_add);
