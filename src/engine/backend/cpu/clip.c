/* clip.c - gradients made smaller element by element, or by the norms of rows, columns, vectors. */
#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/vec.h"

#include <math.h>

typedef struct {
    const tp_launch *launch;
    float unscale, most, lambda;
} clip;

static clip clip_of(const tp_launch *launch, int limits)
{
    const double *s = launch->in[limits].data;
    return (clip){launch, (float)s[0], (float)s[1], (float)s[2]};
}

/* ---- by value ---- */

static void value_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const clip *c = context;
    int64_t n = row_width(&c->launch->in[0]);
    for (int64_t r = begin; r < end; r++) {
        float *g = row_at(&c->launch->out[0], r);
        for (int64_t i = 0; i < n; i += VF_N) {
            int64_t rest = n - i < VF_N ? n - i : VF_N;
            vf x = vf_load_n(g + i, rest) * vf_set(c->unscale);
            /* Of a NaN and a number these return the second. */
            vf_store_n(g + i, rest, vf_max(vf_set(-c->most), vf_min(vf_set(c->most), x)));
        }
    }
}

static void clip_value(const tp_launch *launch)
{
    clip c = clip_of(launch, 1);
    int64_t rows = n_rows(&launch->in[0]);
    tp_cpu_static(launch, rows, rows * row_width(&launch->in[0]) * 8, value_range, &c);
}

/* ---- by the norms of rows ---- */

static float factor_of(const clip *c, double p_squares, double g_squares)
{
    double most = (double)c->lambda * fmax(sqrt(p_squares), 1e-3);
    double norm = sqrt(g_squares) * (double)c->unscale;
    return (float)((norm > most ? most / fmax(norm, 1e-6) : 1) * (double)c->unscale);
}

static double squares(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += VF_N)
        sum = vf_sum_squares(vf_load_n(x + i, n - i < VF_N ? n - i : VF_N), sum);
    return sum;
}

static void row_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const clip *c = context;
    int64_t n = row_width(&c->launch->in[0]);
    for (int64_t r = begin; r < end; r++) {
        float *g = row_at(&c->launch->out[0], r);
        vf factor = vf_set(factor_of(c, squares(row_at(&c->launch->in[1], r), n), squares(g, n)));
        for (int64_t i = 0; i < n; i += VF_N) {
            int64_t rest = n - i < VF_N ? n - i : VF_N;
            vf_store_n(g + i, rest, vf_load_n(g + i, rest) * factor);
        }
    }
}

/* ---- by the norms of columns ---- */

enum { COLUMNS = 16 };

static void column_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const clip *c = context;
    const tp_operand *g = &c->launch->out[0], *p = &c->launch->in[1];
    for (int64_t item = begin; item < end; item++) {
        int64_t first = item * COLUMNS;
        int64_t n = g->dim[1] - first < COLUMNS ? g->dim[1] - first : COLUMNS;
        double p_squares[COLUMNS] = {0}, g_squares[COLUMNS] = {0};
        float factor[COLUMNS];
        for (int64_t r = 0; r < g->dim[0]; r++) {
            const float *a = (const float *)row_at(p, r) + first;
            const float *b = (const float *)row_at(g, r) + first;
            for (int64_t k = 0; k < n; k++) {
                p_squares[k] += (double)a[k] * (double)a[k];
                g_squares[k] += (double)b[k] * (double)b[k];
            }
        }
        for (int64_t k = 0; k < n; k++)
            factor[k] = factor_of(c, p_squares[k], g_squares[k]);
        for (int64_t r = 0; r < g->dim[0]; r++)
            for (int64_t k = 0; k < n; k++)
                ((float *)row_at(g, r))[first + k] *= factor[k];
    }
}

static void clip_adaptive(const tp_launch *launch)
{
    clip c = clip_of(launch, 2);
    const tp_operand *g = &launch->in[0];
    int64_t rows = n_rows(g), width = row_width(g), bytes = rows * width * 16;
    if (launch->attrs.transposed && g->rank == 2)
        tp_cpu_static(launch, ceil_div(width, COLUMNS), bytes, column_range, &c);
    else
        tp_cpu_static(launch, rows, bytes, row_range, &c);
}

/* In place: in and out are the same memory. */
static bool accepts_clip_value(const tp_launch *launch)
{
    return launch->in[0].dtype == TP_DTYPE_F32 && launch->in[1].dtype == TP_DTYPE_F64;
}

static bool accepts_clip_adaptive(const tp_launch *launch)
{
    return launch->in[0].dtype == TP_DTYPE_F32 && launch->in[1].dtype == TP_DTYPE_F32 &&
           launch->in[2].dtype == TP_DTYPE_F64;
}

TP_CPU_KERNEL(clip_value, .accepts = accepts_clip_value, .run = clip_value);
TP_CPU_KERNEL(clip_adaptive, .accepts = accepts_clip_adaptive, .run = clip_adaptive);
