/* adafactor.c - Adafactor's step: the means of squares over rows and columns, then the size of
 * the update, then the update.  Three passes over the gradient.
 *
 * The square root of the estimate is a product of a row's and a column's, so that neither the
 * estimate nor an update of the parameter's shape is stored. */
#include "base/platform.h"
#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/vec.h"

#include <float.h>
#include <math.h>

enum { BLOCKS = 64, PIECE = 16384 };

/* A vector is one row, cut into blocks of columns; a matrix is cut into blocks of rows. */
typedef struct {
    const tp_launch *launch;
    bool is_matrix;
    int64_t rows, columns, blocks, block_rows, block_columns;
    double *p_squares, *u_squares; /* by block */
    float *row_scale, *col_scale;  /* roots of what the gradient is divided by, inverted */
    float *col_sums;               /* [blocks, columns] */
    float factor, eps, cap, take;
    float shrink, step, beta1;
} adafactor;

static adafactor adafactor_of(const tp_launch *launch)
{
    const tp_operand *p = &launch->in[0];
    adafactor a = {
        .launch = launch, .is_matrix = p->rank == 2, .rows = n_rows(p), .columns = row_width(p)};
    int64_t least = ceil_div(a.is_matrix ? a.rows : a.columns, BLOCKS);
    a.block_rows = a.is_matrix ? least : 1;
    a.block_columns = a.is_matrix ? a.columns : (least > PIECE ? least : PIECE);
    a.blocks = a.is_matrix ? ceil_div(a.rows, a.block_rows) : ceil_div(a.columns, a.block_columns);
    return a;
}

static size_t lay_out(adafactor *a, void *workspace)
{
    size_t scalars = round_up_64((size_t)a->blocks * sizeof(double));
    size_t rows = round_up_64((size_t)a->rows * sizeof(float));
    size_t columns = round_up_64((size_t)a->columns * sizeof(float));
    size_t sums = a->is_matrix ? (size_t)a->blocks * columns : 0;
    if (workspace) {
        char *at = workspace;
        a->p_squares = (double *)(void *)at;
        a->u_squares = (double *)(void *)(at + scalars);
        a->row_scale = (float *)(void *)(at + 2 * scalars);
        a->col_scale = (float *)(void *)(at + 2 * scalars + rows);
        a->col_sums = (float *)(void *)(at + 2 * scalars + rows + columns);
    }
    return 2 * scalars + rows + columns + sums;
}

static size_t adafactor_workspace(const tp_launch *launch)
{
    adafactor a = adafactor_of(launch);
    return lay_out(&a, NULL);
}

/* Of row r in a block: from column `begin`, `n` of them. */
typedef struct {
    int64_t row, end, begin, n;
} part;

static part part_of(const adafactor *a, int64_t block)
{
    int64_t row = block * a->block_rows, begin = block * a->block_columns;
    if (!a->is_matrix)
        return (part){0, 1, begin, TP_MIN(a->block_columns, a->columns - begin)};
    return (part){row, TP_MIN(row + a->block_rows, a->rows), 0, a->columns};
}

VF_INLINE vf gradient_at(const adafactor *a, const void *row, bool bf16, int64_t i, int64_t n)
{
    return vf_get_n(row, bf16, i, n) * vf_set(a->factor);
}

static float *col_sums_of(const adafactor *a, int64_t block)
{
    size_t bytes = round_up_64((size_t)a->columns * sizeof(float));
    return a->col_sums + (size_t)block * (bytes / sizeof(float));
}

/* A row of a matrix: its squares are added to the columns', and their mean enters var. */
static void average_row(const adafactor *a, const void *g, bool bf16, float *columns, float *var)
{
    double sum = 0;
    for (int64_t i = 0; i < a->columns; i += VF_N) {
        int64_t rest = TP_MIN(a->columns - i, VF_N);
        vf x = gradient_at(a, g, bf16, i, rest), square = x * x;
        vf_store_n(columns + i, rest, vf_load_n(columns + i, rest) + square);
        sum += (double)vf_sum(square);
    }
    double mean = sum / (double)a->columns + (double)a->eps;
    *var = (float)((double)*var * (1 - (double)a->take) + mean * (double)a->take);
}

/* Elements of a vector: their squares enter var. */
static void average_piece(const adafactor *a, const void *g, bool bf16, const part *at, float *var)
{
    for (int64_t i = at->begin; i < at->begin + at->n; i += VF_N) {
        int64_t rest = TP_MIN(at->begin + at->n - i, VF_N);
        vf x = gradient_at(a, g, bf16, i, rest);
        vf square = vf_fma(x, x, vf_set(a->eps));
        vf next = vf_load_n(var + i, rest);
        vf_store_n(var + i, rest, vf_fma(square - next, vf_set(a->take), next));
    }
}

static double squares(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += VF_N) {
        vf v = vf_load_n(x + i, TP_MIN(n - i, VF_N));
        sum += (double)vf_sum(v * v);
    }
    return sum;
}

static void average_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const adafactor *a = context;
    const tp_operand *p = &a->launch->in[0], *g = &a->launch->in[1];
    float *var = a->launch->out[1].data;
    for (int64_t block = begin; block < end; block++) {
        part at = part_of(a, block);
        float *columns = a->is_matrix ? col_sums_of(a, block) : NULL;
        if (columns)
            memset(columns, 0, (size_t)a->columns * sizeof *columns);
        double sum = 0;
        for (int64_t r = at.row; r < at.end; r++) {
            if (a->launch->attrs.scaled)
                sum += squares((const float *)row_at(p, r) + at.begin, at.n);
            if (columns)
                average_row(a, row_at(g, r), is_half(g), columns, var + r);
            else
                average_piece(a, row_at(g, r), is_half(g), &at, var);
        }
        a->p_squares[block] = sum;
    }
}

/* What is not a number stays none. */
static double at_least(double least, double x) { return x < least ? least : x; }

/* The averages of columns, and the two scales. */
static void finish_averages(adafactor *a, double floor)
{
    float *var = a->launch->out[1].data, *columns = var + a->rows;
    double sum = 0;
    for (int64_t r = 0; r < a->rows; r++)
        sum += (double)var[r];
    double mean = at_least(floor, sum / (double)a->rows);
    for (int64_t r = 0; r < a->rows; r++)
        a->row_scale[r] = (float)(1 / sqrt((double)var[r] / mean));
    for (int64_t c = 0; c < a->columns; c++) {
        double total = 0;
        for (int64_t block = 0; block < a->blocks; block++)
            total += (double)col_sums_of(a, block)[c];
        double square = total / (double)a->rows + (double)a->eps;
        columns[c] = (float)((double)columns[c] * (1 - (double)a->take) + square * (double)a->take);
        a->col_scale[c] = (float)(1 / sqrt((double)columns[c]));
    }
}

VF_INLINE vf direction(const adafactor *a, vf g, vf row, const float *column, int64_t n)
{
    vf scale =
        a->is_matrix ? row * vf_load_n(column, n) : vf_set(1.0f) / vf_sqrt(vf_load_n(column, n));
    return g * vf_min(vf_set(a->cap), scale);
}

/* What a direction is made of: scales of a matrix, squares of a vector. */
static const float *columns_of(const adafactor *a)
{
    return a->is_matrix ? a->col_scale : (const float *)a->launch->out[1].data;
}

static void size_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const adafactor *a = context;
    const tp_operand *g = &a->launch->in[1];
    const float *columns = columns_of(a);
    for (int64_t block = begin; block < end; block++) {
        part at = part_of(a, block);
        double sum = 0;
        for (int64_t r = at.row; r < at.end; r++) {
            vf row = vf_set(a->is_matrix ? a->row_scale[r] : 1.0f);
            for (int64_t i = at.begin; i < at.begin + at.n; i += VF_N) {
                int64_t rest = TP_MIN(at.begin + at.n - i, VF_N);
                vf x = gradient_at(a, row_at(g, r), is_half(g), i, rest);
                vf u = direction(a, x, row, columns + i, rest);
                u = vf_load_n((float *)&u, rest);
                sum += (double)vf_sum(u * u);
            }
        }
        a->u_squares[block] = sum;
    }
}

static bool has_moment(const tp_launch *launch) { return launch->op == TP_OP_adafactor_moment; }

static const tp_operand *shadow_of(const tp_launch *launch)
{
    return &launch->out[has_moment(launch) ? 3 : 2];
}

static void update_row(const adafactor *a, int64_t r, const part *at)
{
    const tp_operand *g = &a->launch->in[1], *shadow = shadow_of(a->launch);
    float *p = row_at(&a->launch->out[0], r);
    float *m = has_moment(a->launch) ? row_at(&a->launch->out[2], r) : NULL;
    vf_half *to = is_bound(shadow) ? row_at(shadow, r) : NULL;
    const float *columns = columns_of(a);
    const void *from = row_at(g, r);
    vf row = vf_set(a->is_matrix ? a->row_scale[r] : 1.0f);
    for (int64_t i = at->begin; i < at->begin + at->n; i += VF_N) {
        int64_t rest = TP_MIN(at->begin + at->n - i, VF_N);
        vf x = gradient_at(a, from, is_half(g), i, rest);
        vf change = direction(a, x, row, columns + i, rest) * vf_set(a->step);
        if (m) {
            vf before = vf_load_n(m + i, rest);
            change = vf_fma(before - change, vf_set(a->beta1), change);
            vf_store_n(m + i, rest, change);
        }
        vf next = vf_load_n(p + i, rest) * vf_set(a->shrink) - change;
        vf_store_n(p + i, rest, next);
        if (to)
            vf_store_half_n(to + i, rest, next);
    }
}

static void update_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const adafactor *a = context;
    for (int64_t block = begin; block < end; block++) {
        part at = part_of(a, block);
        for (int64_t r = at.row; r < at.end; r++)
            update_row(a, r, &at);
    }
}

static double rms(const adafactor *a, const double *by_block)
{
    double sum = 0;
    for (int64_t i = 0; i < a->blocks; i++)
        sum += by_block[i];
    return sqrt(sum / ((double)a->rows * (double)a->columns));
}

static void run_adafactor(const tp_launch *launch)
{
    const double *s = launch->in[2].data;
    bool transformers = launch->attrs.transformers != 0;
    adafactor a = adafactor_of(launch);
    lay_out(&a, launch->workspace);
    a.factor = (float)s[7];
    a.take = (float)s[2];
    a.eps = transformers ? (float)s[3] : 0;
    a.cap = transformers || s[3] < 1e-38 ? FLT_MAX : (float)(1 / s[3]);
    a.beta1 = (float)s[1];
    int64_t cost = a.rows * a.columns * 8;
    tp_cpu_static(launch, a.blocks, cost, average_range, &a);
    if (a.is_matrix)
        finish_averages(&a, transformers ? 0 : s[3]);
    tp_cpu_static(launch, a.blocks, cost, size_range, &a);
    double rate = s[0] * (launch->attrs.scaled ? at_least(s[5], rms(&a, a.p_squares)) : 1);
    a.shrink = (float)(1 - s[4] * (transformers ? rate : 1));
    a.step = (float)(rate / at_least(1, rms(&a, a.u_squares) / s[6]));
    tp_cpu_static(launch, a.blocks, 2 * cost, update_range, &a);
}

static bool accepts_adafactor(const tp_launch *launch)
{
    const tp_operand *p = &launch->in[0], *shadow = shadow_of(launch);
    return are_floats(launch, 2, 0) && p->dtype == TP_DTYPE_F32 &&
           launch->in[2].dtype == TP_DTYPE_F64 && launch->in[3].dtype == TP_DTYPE_F32 &&
           launch->in[3].dim[0] == (p->rank == 2 ? p->dim[0] + p->dim[1] : p->dim[0]) &&
           (!has_moment(launch) || launch->in[4].dtype == TP_DTYPE_F32) &&
           (!is_present(shadow) || is_half(shadow));
}

TP_CPU_KERNEL(adafactor, .accepts = accepts_adafactor, .workspace = adafactor_workspace,
              .run = run_adafactor);
TP_CPU_KERNEL(adafactor_moment, .accepts = accepts_adafactor, .workspace = adafactor_workspace,
              .run = run_adafactor);
