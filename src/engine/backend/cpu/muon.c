/* muon.c - Muon's step: products of matrices in f32, on the side that is shorter. */
#include <math.h>

#include "base/platform.h"
#include "engine/backend/cpu/gemm.h"
#include "engine/backend/cpu/kernel.h"

typedef struct {
    const tp_launch *launch;
    int64_t rows, columns, side; /* side: the shorter */
    float *x, *next, *gram, *mixed;
    void *scratch;
    double *squares; /* by row */
} muon;

static tp_gemm product(const muon *a, int64_t m, int64_t n, int64_t k)
{
    return (tp_gemm){.m = m,
                     .n = n,
                     .k = k,
                     .ab_dtype = TP_DTYPE_F32,
                     .c_dtype = TP_DTYPE_F32,
                     .threads = a->launch->threads,
                     .team = a->launch->team};
}

/* x x^T, or x^T x where that is smaller. */
static tp_gemm gram_of(const muon *a)
{
    bool is_tall = a->rows > a->columns;
    tp_gemm g = product(a, a->side, a->side, is_tall ? a->rows : a->columns);
    g.a = g.b = a->x;
    g.lda = g.ldb = a->columns;
    g.a_trans = is_tall;
    g.b_trans = !is_tall;
    g.c = a->gram;
    g.ldc = a->side;
    return g;
}

static tp_gemm square_of(const muon *a)
{
    tp_gemm g = product(a, a->side, a->side, a->side);
    g.a = g.b = a->gram;
    g.lda = g.ldb = g.ldc = a->side;
    g.c = a->mixed;
    return g;
}

static tp_gemm next_of(const muon *a)
{
    bool is_tall = a->rows > a->columns;
    tp_gemm g = product(a, a->rows, a->columns, a->side);
    g.a = is_tall ? a->x : a->mixed;
    g.b = is_tall ? a->mixed : a->x;
    g.lda = is_tall ? a->columns : a->side;
    g.ldb = g.ldc = a->columns;
    g.c = a->next;
    return g;
}

static muon muon_of(const tp_launch *launch)
{
    const tp_operand *p = &launch->in[0];
    return (muon){.launch = launch,
                  .rows = p->dim[0],
                  .columns = p->dim[1],
                  .side = TP_MIN(p->dim[0], p->dim[1])};
}

static size_t lay_out(muon *a, char *workspace)
{
    size_t whole = round_up_64((size_t)(a->rows * a->columns) * sizeof(float));
    size_t square = round_up_64((size_t)(a->side * a->side) * sizeof(float));
    size_t rows = round_up_64((size_t)a->rows * sizeof(double)), scratch = 0;
    tp_gemm products[] = {gram_of(a), square_of(a), next_of(a)};
    for (size_t i = 0; i < TP_COUNTOF(products); i++)
        scratch = TP_MAX(scratch, tp_gemm_workspace(&products[i]));
    if (workspace) {
        a->scratch = workspace;
        char *at = workspace + round_up_64(scratch);
        a->x = (float *)(void *)at;
        a->next = (float *)(void *)(at + whole);
        a->gram = (float *)(void *)(at + 2 * whole);
        a->mixed = (float *)(void *)(at + 2 * whole + square);
        a->squares = (double *)(void *)(at + 2 * whole + 2 * square);
    }
    return round_up_64(scratch) + 2 * whole + 2 * square + rows;
}

static size_t workspace(const tp_launch *launch)
{
    muon a = muon_of(launch);
    return lay_out(&a, NULL);
}

/* The momentum, and the direction before it is made orthogonal. */
static void momentum_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const muon *a = context;
    const double *s = a->launch->in[2].data;
    const tp_operand *gradient = &a->launch->in[1];
    const float take = (float)(1 - s[1]), keep = (float)s[1], factor = (float)s[7];
    const bool nesterov = a->launch->attrs.nesterov != 0, bf16 = is_half(gradient);
    for (int64_t r = begin; r < end; r++) {
        const void *from = row_at(gradient, r);
        float *m = row_at(&a->launch->out[1], r), *x = a->x + r * a->columns;
        double sum = 0;
        for (int64_t c = 0; c < a->columns; c++) {
            float g = factor * (bf16 ? tp_bf16_to_f32(((const tp_bf16 *)from)[c])
                                     : ((const float *)from)[c]);
            m[c] += take * (g - m[c]);
            x[c] = nesterov ? g + keep * (m[c] - g) : m[c];
            sum += (double)x[c] * (double)x[c];
        }
        a->squares[r] = sum;
    }
}

static void update_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const muon *a = context;
    const double *s = a->launch->in[2].data;
    const tp_operand *shadow = &a->launch->out[2];
    const float shrink = (float)(1 - s[0] * s[4]);
    const float step = (float)(s[0] * (double)a->launch->attrs.scale);
    for (int64_t r = begin; r < end; r++) {
        float *p = row_at(&a->launch->out[0], r);
        const float *x = a->x + r * a->columns;
        uint16_t *to = is_bound(shadow) ? row_at(shadow, r) : NULL;
        const bool is_f16 = shadow->dtype == TP_DTYPE_F16;
        for (int64_t c = 0; c < a->columns; c++) {
            p[c] = p[c] * shrink - step * x[c];
            if (to)
                to[c] = is_f16 ? tp_f32_to_f16(p[c]) : tp_f32_to_bf16(p[c]);
        }
    }
}

/* x = (a I + b G + c G G) x, with the sides swapped where the matrix is tall. */
static void iterate(muon *a, const double *s)
{
    tp_gemm gram = gram_of(a), square = square_of(a);
    tp_gemm_run(&gram, a->scratch);
    tp_gemm_run(&square, a->scratch);
    for (int64_t i = 0; i < a->side * a->side; i++)
        a->mixed[i] = (float)s[5] * a->gram[i] + (float)s[6] * a->mixed[i];
    for (int64_t i = 0; i < a->side; i++)
        a->mixed[i * a->side + i] += (float)s[2];
    tp_gemm next = next_of(a);
    tp_gemm_run(&next, a->scratch);
    float *last = a->x;
    a->x = a->next;
    a->next = last;
}

static void run(const tp_launch *launch)
{
    const double *s = launch->in[2].data;
    muon a = muon_of(launch);
    lay_out(&a, launch->workspace);
    int64_t cost = a.rows * a.columns * 16;
    tp_cpu_static(launch, a.rows, cost, momentum_range, &a);
    double sum = 0;
    for (int64_t r = 0; r < a.rows; r++)
        sum += a.squares[r];
    double norm = sqrt(sum) < s[3] ? s[3] : sqrt(sum);
    for (int64_t i = 0; i < a.rows * a.columns; i++)
        a.x[i] = (float)((double)a.x[i] / norm);
    for (int k = 0; k < launch->attrs.steps; k++)
        iterate(&a, s);
    tp_cpu_static(launch, a.rows, cost, update_range, &a);
}

static bool accepts(const tp_launch *launch)
{
    tp_gemm g = {.ab_dtype = TP_DTYPE_F32};
    return are_floats(launch, 2, 0) && launch->in[0].dtype == TP_DTYPE_F32 &&
           launch->in[2].dtype == TP_DTYPE_F64 && launch->in[3].dtype == TP_DTYPE_F32 &&
           (!is_present(&launch->out[2]) || tp_dtype_size(launch->out[2].dtype) == 2) &&
           tp_gemm_is_possible(&g);
}

const tp_kernel tp_cpu_muon = {.name = "muon/gemm",
                               .op = TP_OP_muon,
                               .is_always_usable = true,
                               .accepts = accepts,
                               .workspace = workspace,
                               .run = run};
