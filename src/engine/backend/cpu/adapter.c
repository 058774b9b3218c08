/* adapter.c - what adapters need besides products: scale, dropout, the norms and columns of DoRA,
 * rows of several adapters.
 *
 * A sum is one thread's, in one order: the same bits with any number of threads. */
#include <math.h>

#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/vec.h"
#include "engine/backend/dropout.h"

/* ---- scale ---- */

static void scale_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *x = &launch->in[0], *y = &launch->out[0];
    vf factor = vf_set(launch->attrs.scale);
    int64_t width = row_width(y);
    for (int64_t r = begin; r < end; r++)
        for (int64_t c = 0; c < width; c += VF_N)
            vf_put_at(row_at(y, r), is_half(y), c, width - c,
                      factor * vf_get_at(row_at(x, r), is_half(x), c, width - c));
}

static bool scale_accepts(const tp_launch *launch) { return are_floats(launch, 1, 1); }

TP_CPU_ROWS_KERNEL(scale, scale_range, scale_accepts);

/* ---- dropout ---- */

static void dropout_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *x = &launch->in[0], *y = &launch->out[0];
    tp_dropout d = tp_dropout_of(launch);
    int64_t width = y->dim[1];
    float factors[4];
    uint64_t drawn = UINT64_MAX;
    for (int64_t r = begin; r < end; r++) {
        for (int64_t c = 0; c < width; c++) {
            uint64_t i = (uint64_t)(r * width + c);
            if (i / 4 != drawn)
                tp_dropout_factors(&d, drawn = i / 4, factors);
            float kept = factors[i % 4];
            kept = kept == 0 ? 0 : kept * vf_get_one(row_at(x, r), is_half(x), c);
            if (is_half(y))
                ((vf_half *)row_at(y, r))[c] = VF_F32_TO_HALF(kept);
            else
                ((float *)row_at(y, r))[c] = kept;
        }
    }
}

TP_CPU_ROWS_KERNEL(dropout, dropout_range, scale_accepts);

/* ---- DoRA ---- */

VF_INLINE float sum_of(vf x)
{
    float lanes[VF_N], sum = 0;
    vf_store(lanes, x);
    for (int i = 0; i < VF_N; i++)
        sum += lanes[i];
    return sum;
}

/* w[N,K]: along a row of w. */
static void norm_of_rows(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *w = &launch->in[0], *a = &launch->in[1], *b = &launch->in[2];
    int64_t K = a->dim[1], R = a->dim[0];
    for (int64_t n = begin; n < end; n++) {
        vf squares = vf_zero();
        for (int64_t k = 0; k < K; k += VF_N) {
            vf product = vf_zero();
            for (int64_t r = 0; r < R; r++)
                product = vf_fma(vf_set(vf_get_one(row_at(b, n), is_half(b), r)),
                                 vf_get_at(row_at(a, r), is_half(a), k, K - k), product);
            vf weight = vf_fma(vf_set(launch->attrs.scale), product,
                               vf_get_at(row_at(w, n), is_half(w), k, K - k));
            squares = vf_fma(weight, weight, squares);
        }
        float sum = sum_of(squares);
        ((float *)launch->out[0].data)[n] = launch->attrs.part ? sum : sqrtf(sum);
    }
}

/* w[K,N]: down VF_N columns of w, with their rows of b side by side in `across`. */
static void norm_of_columns(const void *context, int64_t begin, int64_t end, int thread)
{
    const tp_launch *launch = context;
    const tp_operand *w = &launch->in[0], *a = &launch->in[1], *b = &launch->in[2];
    int64_t K = a->dim[1], R = a->dim[0], N = b->dim[0];
    float *across = (float *)launch->workspace + (int64_t)thread * R * VF_N;
    for (int64_t first = begin * VF_N; first < N && first < end * VF_N; first += VF_N) {
        vf squares = vf_zero();
        for (int64_t r = 0; r < R; r++)
            for (int64_t j = 0; j < VF_N; j++)
                across[r * VF_N + j] =
                    first + j < N ? vf_get_one(row_at(b, first + j), is_half(b), r) : 0;
        for (int64_t k = 0; k < K; k++) {
            vf product = vf_zero();
            for (int64_t r = 0; r < R; r++)
                product = vf_fma(vf_load(across + r * VF_N),
                                 vf_set(vf_get_one(row_at(a, r), is_half(a), k)), product);
            vf weight = vf_fma(vf_set(launch->attrs.scale), product,
                               vf_get_at(row_at(w, k), is_half(w), first, N - first));
            squares = vf_fma(weight, weight, squares);
        }
        vf_put_at(launch->out[0].data, false, first, N - first,
                  launch->attrs.part ? squares : vf_sqrt(squares));
    }
}

static void dora_norm(const tp_launch *launch)
{
    const tp_operand *a = &launch->in[1], *b = &launch->in[2];
    int64_t N = b->dim[0], cost = N * a->dim[1] * 4 * (a->dim[0] + 1);
    if (!is_bound(&launch->out[0]))
        return;
    if (launch->attrs.transposed)
        tp_cpu_static(launch, ceil_div(N, VF_N), cost, norm_of_columns, launch);
    else
        tp_cpu_static(launch, N, cost, norm_of_rows, launch);
}

static size_t dora_norm_workspace(const tp_launch *launch)
{
    return launch->attrs.transposed
               ? (size_t)launch->threads * (size_t)launch->in[1].dim[0] * VF_N * sizeof(float)
               : 0;
}

static bool dora_norm_accepts(const tp_launch *launch)
{
    return are_floats(launch, 7, 0) && launch->out[0].dtype == TP_DTYPE_F32;
}

TP_CPU_KERNEL(dora_norm, .accepts = dora_norm_accepts, .workspace = dora_norm_workspace,
              .run = dora_norm);

static void dora_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *x = &launch->in[0], *m = &launch->in[1], *b = &launch->in[3];
    const tp_operand *y = &launch->out[0];
    const float *norm = launch->in[2].data;
    int64_t N = y->dim[1];
    for (int64_t c = 0; c < N; c += VF_N) {
        int64_t left = N - c;
        vf length = vf_get_at(norm, false, c, left);
        vf factor = vf_get_at(m->data, is_half(m), c, left) / length;
        vf bias = is_bound(b) ? vf_get_at(b->data, is_half(b), c, left) : vf_zero();
        for (int64_t t = begin; t < end; t++)
            vf_put_at(row_at(y, t), is_half(y), c, left,
                      vf_fma(vf_get_at(row_at(x, t), is_half(x), c, left), factor, bias));
    }
}

static bool dora_accepts(const tp_launch *launch)
{
    return are_floats(launch, 1 | 2 | 8, 1) && launch->in[2].dtype == TP_DTYPE_F32;
}

TP_CPU_ROWS_KERNEL(dora, dora_range, dora_accepts);

static void dora_dm_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *x = &launch->in[0], *dy = &launch->in[2];
    const float *norm = launch->in[1].data;
    float *dm = launch->out[0].data;
    int64_t N = dy->dim[1];
    for (int64_t c = begin * VF_N; c < N && c < end * VF_N; c += VF_N) {
        int64_t left = N - c;
        vf sum = vf_zero();
        for (int64_t t = 0; t < dy->dim[0]; t++)
            sum = vf_fma(vf_get_at(row_at(x, t), is_half(x), c, left),
                         vf_get_at(row_at(dy, t), is_half(dy), c, left), sum);
        sum = sum / vf_get_at(norm, false, c, left);
        if (adds_to(launch, 3))
            sum += vf_get_at(dm, false, c, left);
        vf_put_at(dm, false, c, left, sum);
    }
}

static void dora_dm(const tp_launch *launch)
{
    const tp_operand *dy = &launch->in[2];
    if (is_bound(&launch->out[0]))
        tp_cpu_static(launch, ceil_div(dy->dim[1], VF_N), dy->dim[0] * dy->dim[1] * 8,
                      dora_dm_range, launch);
}

static bool dora_dm_accepts(const tp_launch *launch)
{
    return are_floats(launch, 1 | 4, 0) && launch->in[1].dtype == TP_DTYPE_F32 &&
           launch->out[0].dtype == TP_DTYPE_F32;
}

TP_CPU_KERNEL(dora_dm, .accepts = dora_dm_accepts, .run = dora_dm);

/* ---- several adapters ---- */

static void choose_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *y = &launch->out[0];
    const int32_t *which = launch->in[2].data, *place = launch->in[3].data;
    for (int64_t t = begin; t < end; t++) {
        bool is_other =
            which[t] == launch->attrs.n0 && place[t] >= 0 && place[t] < launch->in[1].dim[0];
        const tp_operand *from = &launch->in[is_other];
        const void *row = row_at(from, is_other ? place[t] : t);
        for (int64_t c = 0; c < y->dim[1] && row != row_at(y, t); c += VF_N)
            vf_put_at(row_at(y, t), is_half(y), c, y->dim[1] - c,
                      vf_get_at(row, is_half(from), c, y->dim[1] - c));
    }
}

static bool choose_accepts(const tp_launch *launch)
{
    return are_floats(launch, 1 | 2, 1) && is_i32(&launch->in[2]) && is_i32(&launch->in[3]);
}

TP_CPU_ROWS_KERNEL(choose_rows, choose_range, choose_accepts);
