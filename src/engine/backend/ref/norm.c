/* norm.c - RMS and layer normalisation, alone or after a residual addition, and
 * their gradients.  T rows of width C; RMS normalisation works on each D-wide
 * slice of a row, D being the length of the weight. */
#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"

/* One row of values to normalise: x, or x + residual rounded as the sum is stored. */
typedef struct {
    const tp_operand *x, *residual;
    tp_dtype sum_dtype;
} rows;

static double value(const rows *in, int64_t t, int64_t c)
{
    double x = ref_load(in->x, t, c);
    if (!in->residual)
        return x;
    return ref_round(in->sum_dtype, x + ref_load(in->residual, t, c));
}

static void store_sum(const rows *in, const tp_operand *sum)
{
    ref_each (sum, t, c)
        ref_store(sum, t, c, value(in, t, c));
}

static void rmsnorm(const rows *in, const tp_operand *w, double eps, const tp_operand *y,
                    const tp_operand *ret_rstd)
{
    int64_t width = w->dim[0], n_slices = in->x->dim[1] / width;
    for (int64_t t = 0; t < in->x->dim[0]; t++) {
        for (int64_t s = 0; s < n_slices; s++) {
            double sum = 0;
            for (int64_t d = 0; d < width; d++) {
                double v = value(in, t, s * width + d);
                sum += v * v;
            }
            double rstd = 1 / sqrt(sum / (double)width + eps);
            if (is_bound(ret_rstd))
                ref_store(ret_rstd, t, s, rstd);
            if (!is_bound(y))
                continue;
            for (int64_t d = 0; d < width; d++) {
                int64_t c = s * width + d;
                ref_store(y, t, c, value(in, t, c) * rstd * ref_load(w, d, 0));
            }
        }
    }
}

static void layernorm(const rows *in, const tp_operand *w, const tp_operand *b, double eps,
                      const tp_operand *y, const tp_operand *ret_mean, const tp_operand *ret_rstd)
{
    int64_t width = w->dim[0];
    for (int64_t t = 0; t < in->x->dim[0]; t++) {
        double sum = 0, squares = 0;
        for (int64_t c = 0; c < width; c++)
            sum += value(in, t, c);
        double mean = sum / (double)width;
        for (int64_t c = 0; c < width; c++) {
            double centred = value(in, t, c) - mean;
            squares += centred * centred;
        }
        double rstd = 1 / sqrt(squares / (double)width + eps);
        if (is_bound(ret_mean))
            ref_store(ret_mean, t, 0, mean);
        if (is_bound(ret_rstd))
            ref_store(ret_rstd, t, 0, rstd);
        if (!is_bound(y))
            continue;
        for (int64_t c = 0; c < width; c++) {
            double normal = (value(in, t, c) - mean) * rstd;
            double shift = is_bound(b) ? ref_load(b, c, 0) : 0;
            ref_store(y, t, c, normal * ref_load(w, c, 0) + shift);
        }
    }
}

TP_REF_KERNEL(rmsnorm)
{
    rows in = {.x = &launch->in[0]};
    rmsnorm(&in, &launch->in[1], (double)launch->attrs.eps, &launch->out[0], &launch->out[1]);
}

TP_REF_KERNEL(layernorm)
{
    rows in = {.x = &launch->in[0]};
    layernorm(&in, &launch->in[1], &launch->in[2], (double)launch->attrs.eps, &launch->out[0],
              &launch->out[1], &launch->out[2]);
}

static rows rows_with_residual(const tp_launch *launch)
{
    return (rows){
        .x = &launch->in[0], .residual = &launch->in[1], .sum_dtype = launch->out[0].dtype};
}

TP_REF_KERNEL(add_rmsnorm)
{
    rows in = rows_with_residual(launch);
    rmsnorm(&in, &launch->in[2], (double)launch->attrs.eps, &launch->out[1], &launch->out[2]);
    store_sum(&in, &launch->out[0]);
}

TP_REF_KERNEL(add_layernorm)
{
    rows in = rows_with_residual(launch);
    layernorm(&in, &launch->in[2], &launch->in[3], (double)launch->attrs.eps, &launch->out[1],
              &launch->out[2], &launch->out[3]);
    store_sum(&in, &launch->out[0]);
}

/* With n = x * rstd and g = dy * w, over one slice of width D:
 *     dx = rstd * (g - n * sum(g n) / D) + dres */
TP_REF_KERNEL(rmsnorm_grad)
{
    const tp_operand *x = &launch->in[0], *w = &launch->in[1], *rstd = &launch->in[2];
    const tp_operand *dy = &launch->in[3], *dres = &launch->in[5];
    const tp_operand *dx = &launch->out[0], *dw = &launch->out[1];
    int64_t width = w->dim[0], n_slices = x->dim[1] / width;
    for (int64_t t = 0; is_bound(dx) && t < x->dim[0]; t++) {
        for (int64_t s = 0; s < n_slices; s++) {
            double scale = ref_load(rstd, t, s), projection = 0;
            for (int64_t d = 0; d < width; d++) {
                int64_t c = s * width + d;
                projection += ref_load(dy, t, c) * ref_load(w, d, 0) * ref_load(x, t, c) * scale;
            }
            projection /= (double)width;
            for (int64_t d = 0; d < width; d++) {
                int64_t c = s * width + d;
                double g = ref_load(dy, t, c) * ref_load(w, d, 0);
                double n = ref_load(x, t, c) * scale;
                double other = is_bound(dres) ? ref_load(dres, t, c) : 0;
                ref_store(dx, t, c, scale * (g - n * projection) + other);
            }
        }
    }
    for (int64_t d = 0; is_bound(dw) && d < width; d++) {
        double sum = ref_accumulated(launch, 4, d, 0);
        for (int64_t t = 0; t < x->dim[0]; t++) {
            for (int64_t s = 0; s < n_slices; s++) {
                int64_t c = s * width + d;
                sum += ref_load(dy, t, c) * ref_load(x, t, c) * ref_load(rstd, t, s);
            }
        }
        ref_store(dw, d, 0, sum);
    }
}

/* With n = (x - mean) * rstd and g = dy * w:
 *     dx = rstd * (g - sum(g) / C - n * sum(g n) / C) + dres */
static void layernorm_dx(const tp_launch *launch)
{
    const tp_operand *x = &launch->in[0], *w = &launch->in[1], *mean = &launch->in[2];
    const tp_operand *rstd = &launch->in[3], *dy = &launch->in[4], *dres = &launch->in[7];
    const tp_operand *dx = &launch->out[0];
    int64_t width = w->dim[0];
    for (int64_t t = 0; t < x->dim[0]; t++) {
        double centre = ref_load(mean, t, 0), scale = ref_load(rstd, t, 0);
        double average = 0, projection = 0;
        for (int64_t c = 0; c < width; c++) {
            double g = ref_load(dy, t, c) * ref_load(w, c, 0);
            average += g / (double)width;
            projection += g * (ref_load(x, t, c) - centre) * scale / (double)width;
        }
        for (int64_t c = 0; c < width; c++) {
            double g = ref_load(dy, t, c) * ref_load(w, c, 0);
            double n = (ref_load(x, t, c) - centre) * scale;
            double other = is_bound(dres) ? ref_load(dres, t, c) : 0;
            ref_store(dx, t, c, scale * (g - average - n * projection) + other);
        }
    }
}

TP_REF_KERNEL(layernorm_grad)
{
    const tp_operand *x = &launch->in[0], *mean = &launch->in[2], *rstd = &launch->in[3];
    const tp_operand *dy = &launch->in[4];
    const tp_operand *dx = &launch->out[0], *dw = &launch->out[1], *db = &launch->out[2];
    if (is_bound(dx))
        layernorm_dx(launch);
    for (int64_t c = 0; c < x->dim[1]; c++) {
        double dw_sum = ref_accumulated(launch, 5, c, 0);
        double db_sum = ref_accumulated(launch, 6, c, 0);
        for (int64_t t = 0; t < x->dim[0]; t++) {
            double n = (ref_load(x, t, c) - ref_load(mean, t, 0)) * ref_load(rstd, t, 0);
            dw_sum += ref_load(dy, t, c) * n;
            db_sum += ref_load(dy, t, c);
        }
        if (is_bound(dw))
            ref_store(dw, c, 0, dw_sum);
        if (is_bound(db))
            ref_store(db, c, 0, db_sum);
    }
}
