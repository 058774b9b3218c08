/* norm_grad.c - gradients of the norms on T rows of C.  With n = (x - mean) * rstd
 * and g = dy * w, sums over a row (or a D-wide slice of it):
 *
 *     layernorm  dx = rstd * (g - sum(g) / C - n * sum(g n) / C) + dres
 *     rmsnorm    the same with mean 0 and without sum(g)
 *     dw = sum over rows of dy * n      db = sum over rows of dy
 *
 * Rows are taken in blocks whose size depends on the planned T alone.  Each block has its
 * own partial dw and db in the workspace; they are added up in the order of the
 * blocks, so the bits do not depend on the threads. */
#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/vec.h"

enum { MIN_BLOCK_ROWS = 16, MAX_BLOCKS = 64 };

static int64_t block_rows(const tp_launch *launch)
{
    int64_t n = ceil_div(tp_launch_planned_rows(launch), MAX_BLOCKS);
    return n < MIN_BLOCK_ROWS ? MIN_BLOCK_ROWS : n;
}

typedef struct {
    const tp_operand *x, *w, *mean, *rstd, *dy, *dres; /* mean is NULL for rmsnorm */
    const tp_operand *dx, *dw, *db;
    float *partial; /* [blocks][2][padded width]: dw, then db */
    int64_t padded, per_block;
    bool adds_dw, adds_db;
} gradient;

/* One slice of a row.  `dw`, `db`: partial sums. */
typedef struct {
    const void *x, *w, *dy, *dres;
    void *dx;
    float *dw, *db;
    bool x_bf16, w_bf16, dy_bf16, dres_bf16, dx_bf16;
    int64_t n;
    float mean, rstd;
} slice;

/* Both sums of the slice, and its part of dw and db. */
VF_INLINE void slice_sums(const slice *s, float *ret_g, float *ret_gn)
{
    vf sum_g = vf_zero(), sum_gn = vf_zero();
    int64_t i = 0;
    for (; i + VF_N <= s->n; i += VF_N) {
        vf_fetch(s->x, s->x_bf16, i, VF_N);
        vf_fetch(s->dy, s->dy_bf16, i, VF_N);
        vf normal = (vf_get(s->x, s->x_bf16, i) - s->mean) * s->rstd;
        vf dy = vf_get(s->dy, s->dy_bf16, i);
        vf g = dy * vf_get(s->w, s->w_bf16, i);
        sum_g += g;
        sum_gn = vf_fma(g, normal, sum_gn);
        if (s->dw)
            vf_store(s->dw + i, vf_fma(dy, normal, vf_load(s->dw + i)));
        if (s->db)
            vf_store(s->db + i, dy + vf_load(s->db + i));
    }
    if (i < s->n) {
        int64_t n = s->n - i;
        vf normal = (vf_get_n(s->x, s->x_bf16, i, n) - s->mean) * s->rstd;
        vf dy = vf_get_n(s->dy, s->dy_bf16, i, n);
        vf g = dy * vf_get_n(s->w, s->w_bf16, i, n);
        sum_g += g;
        sum_gn += vf_select(vm_first(n), g * normal, vf_zero());
        if (s->dw)
            vf_store_n(s->dw + i, n, vf_fma(dy, normal, vf_load_n(s->dw + i, n)));
        if (s->db)
            vf_store_n(s->db + i, n, dy + vf_load_n(s->db + i, n));
    }
    *ret_g = vf_sum(sum_g);
    *ret_gn = vf_sum(sum_gn);
}

VF_INLINE void slice_dx(const slice *s, float average, float projection)
{
    int64_t i = 0;
    for (; i + VF_N <= s->n; i += VF_N) {
        vf normal = (vf_get(s->x, s->x_bf16, i) - s->mean) * s->rstd;
        vf g = vf_get(s->dy, s->dy_bf16, i) * vf_get(s->w, s->w_bf16, i);
        vf dx = (g - average - normal * projection) * s->rstd;
        if (s->dres) {
            vf_fetch(s->dres, s->dres_bf16, i, VF_N);
            dx += vf_get(s->dres, s->dres_bf16, i);
        }
        vf_put(s->dx, s->dx_bf16, i, dx);
    }
    if (i < s->n) {
        int64_t n = s->n - i;
        vf normal = (vf_get_n(s->x, s->x_bf16, i, n) - s->mean) * s->rstd;
        vf g = vf_get_n(s->dy, s->dy_bf16, i, n) * vf_get_n(s->w, s->w_bf16, i, n);
        vf dx = (g - average - normal * projection) * s->rstd;
        if (s->dres)
            dx += vf_get_n(s->dres, s->dres_bf16, i, n);
        vf_put_n(s->dx, s->dx_bf16, i, n, dx);
    }
}

/* Slice `index` of row t, but for dw and db. */
static slice slice_at(const gradient *a, int64_t t, int64_t index)
{
    int64_t n = a->w->dim[0], column = index * n;
    int64_t slices = a->x->dim[1] / n;
    int64_t statistic = t * (a->rstd->rank == 2 ? a->rstd->stride : slices) + index;
    slice s = {.n = n,
               .w = a->w->data,
               .x_bf16 = is_half(a->x),
               .w_bf16 = is_half(a->w),
               .dy_bf16 = is_half(a->dy),
               .dres_bf16 = is_half(a->dres),
               .dx_bf16 = is_half(a->dx),
               .mean = a->mean ? ((const float *)a->mean->data)[t] : 0,
               .rstd = ((const float *)a->rstd->data)[statistic]};
    s.x = (const char *)row_at(a->x, t) + column * (s.x_bf16 ? 2 : 4);
    s.dy = (const char *)row_at(a->dy, t) + column * (s.dy_bf16 ? 2 : 4);
    if (is_bound(a->dres))
        s.dres = (const char *)row_at(a->dres, t) + column * (s.dres_bf16 ? 2 : 4);
    if (is_bound(a->dx))
        s.dx = (char *)row_at(a->dx, t) + column * (s.dx_bf16 ? 2 : 4);
    return s;
}

static void block_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const gradient *a = context;
    int64_t rows = a->x->dim[0], per_block = a->per_block;
    int64_t slices = a->x->dim[1] / a->w->dim[0];
    for (int64_t block = begin; block < end; block++) {
        float *partial = a->partial + block * 2 * a->padded;
        memset(partial, 0, (size_t)(2 * a->padded) * sizeof(float));
        int64_t last = (block + 1) * per_block < rows ? (block + 1) * per_block : rows;
        for (int64_t t = block * per_block; t < last; t++) {
            for (int64_t index = 0; index < slices; index++) {
                slice s = slice_at(a, t, index);
                float sum_g, sum_gn;
                s.dw = is_bound(a->dw) ? partial : NULL;
                s.db = a->db && is_bound(a->db) ? partial + a->padded : NULL;
                slice_sums(&s, &sum_g, &sum_gn);
                if (s.dx)
                    slice_dx(&s, a->mean ? sum_g / (float)s.n : 0, sum_gn / (float)s.n);
            }
        }
    }
}

/* to[n] (+)= the blocks' partial sums, in their order */
static void add_partials(const float *partial, int64_t distance, int64_t blocks, bool accumulate,
                         float *to, int64_t n)
{
    for (int64_t i = 0; i < n; i += VF_N) {
        vf sum = vf_zero();
        for (int64_t block = 0; block < blocks; block++)
            sum += vf_load(partial + block * distance + i);
        if (accumulate)
            sum += vf_get_at(to, false, i, n - i);
        vf_put_at(to, false, i, n - i, sum);
    }
}

static int64_t padded_width(const tp_launch *launch)
{
    return ceil_div(launch->in[1].dim[0], 16) * 16;
}

static size_t workspace(const tp_launch *launch)
{
    int64_t rows = launch->in[0].dim[0];
    return (size_t)(ceil_div(rows, block_rows(launch)) * 2 * padded_width(launch)) * sizeof(float);
}

static void run(const tp_launch *launch, gradient *a)
{
    int64_t rows = a->x->dim[0], width = a->w->dim[0];
    a->per_block = block_rows(launch);
    int64_t blocks = ceil_div(rows, a->per_block);
    a->partial = launch->workspace;
    a->padded = padded_width(launch);
    tp_cpu_static(launch, blocks, rows * a->x->dim[1] * 12, block_range, a);
    if (is_bound(a->dw))
        add_partials(a->partial, 2 * a->padded, blocks, a->adds_dw, a->dw->data, width);
    if (a->db && is_bound(a->db)) {
        add_partials(a->partial + a->padded, 2 * a->padded, blocks, a->adds_db, a->db->data, width);
    }
}

static void rmsnorm_grad(const tp_launch *launch)
{
    gradient a = {.x = &launch->in[0],
                  .w = &launch->in[1],
                  .rstd = &launch->in[2],
                  .dy = &launch->in[3],
                  .dres = &launch->in[5],
                  .dx = &launch->out[0],
                  .dw = &launch->out[1],
                  .adds_dw = adds_to(launch, 4)};
    run(launch, &a);
}

static void layernorm_grad(const tp_launch *launch)
{
    gradient a = {.x = &launch->in[0],
                  .w = &launch->in[1],
                  .mean = &launch->in[2],
                  .rstd = &launch->in[3],
                  .dy = &launch->in[4],
                  .dres = &launch->in[7],
                  .dx = &launch->out[0],
                  .dw = &launch->out[1],
                  .db = &launch->out[2],
                  .adds_dw = adds_to(launch, 5),
                  .adds_db = adds_to(launch, 6)};
    run(launch, &a);
}

static bool accepts_rmsnorm(const tp_launch *launch)
{
    return are_floats(launch, 0x2b, 1) && is_f32_if_present(&launch->in[2]) &&
           is_f32_if_present(&launch->out[1]);
}

static bool accepts_layernorm(const tp_launch *launch)
{
    return are_floats(launch, 0x93, 1) && is_f32_if_present(&launch->in[2]) &&
           is_f32_if_present(&launch->in[3]) && is_f32_if_present(&launch->out[1]) &&
           is_f32_if_present(&launch->out[2]);
}

TP_CPU_KERNEL(rmsnorm_grad, .accepts = accepts_rmsnorm, .workspace = workspace,
              .run = rmsnorm_grad);
TP_CPU_KERNEL(layernorm_grad, .accepts = accepts_layernorm, .workspace = workspace,
              .run = layernorm_grad);
