/* update.c - the optimizer's step: the sum of squares that clipping needs, AdamW, SGD,
 * Adafactor and Muon. */
#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"

TP_REF_KERNEL(sumsq)
{
    const tp_operand *x = &launch->in[0], *out = &launch->out[0];
    if (is_bound(out))
        ref_store(out, 0, 0, ref_accumulated(launch, 1, 0, 0) + ref_sum_of_squares(x));
}

TP_REF_KERNEL(add_number)
{
    const tp_operand *x = &launch->in[0], *out = &launch->out[0];
    if (is_bound(out))
        ref_store(out, 0, 0, ref_accumulated(launch, 1, 0, 0) + ref_load(x, 0, 0));
}

/* As torch.optim.AdamW: the decay does not pass through the moments. */
TP_REF_KERNEL(adamw)
{
    const tp_operand *p = &launch->in[0], *g = &launch->in[1], *m = &launch->in[2];
    const tp_operand *v = &launch->in[3], *scalars = &launch->in[4];
    const tp_operand *p_out = &launch->out[0], *m_out = &launch->out[1];
    const tp_operand *v_out = &launch->out[2], *shadow = &launch->out[3];
    double lr = ref_load(scalars, 0, 0), beta1 = ref_load(scalars, 1, 0);
    double beta2 = ref_load(scalars, 2, 0), eps = ref_load(scalars, 3, 0);
    double weight_decay = ref_load(scalars, 4, 0) * (double)launch->attrs.decay;
    double correction1 = ref_load(scalars, 5, 0), correction2 = ref_load(scalars, 6, 0);
    double factor = ref_load(scalars, 7, 0);
    ref_each (p, r, c) {
        double gradient = ref_load(g, r, c) * factor;
        double first = beta1 * ref_load(m, r, c) + (1 - beta1) * gradient;
        double second = beta2 * ref_load(v, r, c) + (1 - beta2) * gradient * gradient;
        double decayed = ref_load(p, r, c) * (1 - lr * weight_decay);
        double step = lr / correction1 * first / (sqrt(second / correction2) + eps);
        double updated = ref_round(p->dtype, decayed - step);
        ref_store(m_out, r, c, first);
        ref_store(v_out, r, c, second);
        ref_store(p_out, r, c, updated);
        if (is_bound(shadow))
            ref_store(shadow, r, c, updated);
    }
}

/* As torch.optim.SGD: the decay passes through the momentum. */
TP_REF_KERNEL(sgd)
{
    const tp_operand *p = &launch->in[0], *g = &launch->in[1], *scalars = &launch->in[2];
    const tp_operand *m = &launch->in[3], *p_out = &launch->out[0], *m_out = &launch->out[1];
    const tp_operand *shadow = &launch->out[2];
    double lr = ref_load(scalars, 0, 0), momentum = ref_load(scalars, 1, 0);
    double take = ref_load(scalars, 2, 0), weight_decay = ref_load(scalars, 4, 0);
    double factor = ref_load(scalars, 7, 0);
    ref_each (p, r, c) {
        double at = ref_load(p, r, c);
        double direction = ref_load(g, r, c) * factor + weight_decay * at;
        double next = momentum * ref_load(m, r, c) + take * direction;
        direction = launch->attrs.nesterov ? direction + momentum * next : next;
        ref_store(m_out, r, c, next);
        double updated = ref_round(p->dtype, at - lr * direction);
        ref_store(p_out, r, c, updated);
        if (is_bound(shadow))
            ref_store(shadow, r, c, updated);
    }
}

/* ---- Adafactor ---- */

/* One step of it: see the op.  A vector is a column, with its squares in place of the means. */
typedef struct {
    const tp_launch *launch;
    bool is_matrix, transformers;
    int64_t rows, columns;
    double rate, take, eps, factor, mean_row;
} adafactor;

/* What is not a number stays none. */
static double at_least(double least, double x) { return x < least ? least : x; }

static double adafactor_gradient(const adafactor *a, int64_t r, int64_t c)
{
    return ref_load(&a->launch->in[1], r, c) * a->factor;
}

static double mean_of_squares(const adafactor *a, int64_t fixed, bool along_row)
{
    double sum = 0;
    int64_t n = along_row ? a->columns : a->rows;
    for (int64_t i = 0; i < n; i++) {
        double g = along_row ? adafactor_gradient(a, fixed, i) : adafactor_gradient(a, i, fixed);
        sum += g * g + (a->transformers ? a->eps : 0);
    }
    return sum / (double)n;
}

/* Running averages of means, or of the squares of a vector. */
static void adafactor_average(adafactor *a)
{
    const tp_operand *var = &a->launch->in[3], *var_out = &a->launch->out[1];
    int64_t n = a->is_matrix ? a->rows + a->columns : a->rows;
    for (int64_t i = 0; i < n; i++) {
        double mean = mean_of_squares(a, i < a->rows ? i : i - a->rows, i < a->rows);
        double next = ref_load(var, i, 0) * (1 - a->take) + mean * a->take;
        ref_store(var_out, i, 0, next);
    }
    for (int64_t r = 0; r < a->rows; r++)
        a->mean_row += ref_load(var_out, r, 0) / (double)a->rows;
    if (!a->transformers)
        a->mean_row = at_least(a->eps, a->mean_row);
}

static double adafactor_direction(const adafactor *a, int64_t r, int64_t c)
{
    const tp_operand *var = &a->launch->out[1];
    double row = ref_load(var, r, 0), estimate = row;
    if (a->is_matrix)
        estimate = row / a->mean_row * ref_load(var, a->rows + c, 0);
    if (!a->transformers)
        estimate = at_least(a->eps * a->eps, estimate);
    return adafactor_gradient(a, r, c) / sqrt(estimate);
}

static double rms(const adafactor *a, bool of_direction)
{
    double sum = 0;
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t c = 0; c < a->columns; c++) {
            double x =
                of_direction ? adafactor_direction(a, r, c) : ref_load(&a->launch->in[0], r, c);
            sum += x * x;
        }
    return sqrt(sum / ((double)a->rows * (double)a->columns));
}

TP_REF_KERNEL(adafactor)
{
    const tp_operand *p = &launch->in[0], *scalars = &launch->in[2], *p_out = &launch->out[0];
    bool has_moment = launch->op == TP_OP_adafactor_moment;
    const tp_operand *m = &launch->in[4], *m_out = &launch->out[2];
    const tp_operand *shadow = &launch->out[has_moment ? 3 : 2];
    adafactor a = {.launch = launch,
                   .is_matrix = p->rank == 2,
                   .transformers = launch->attrs.transformers,
                   .rows = p->dim[0],
                   .columns = p->dim[1],
                   .rate = ref_load(scalars, 0, 0),
                   .take = ref_load(scalars, 2, 0),
                   .eps = ref_load(scalars, 3, 0),
                   .factor = ref_load(scalars, 7, 0)};
    double beta1 = ref_load(scalars, 1, 0), decay = ref_load(scalars, 4, 0);
    if (launch->attrs.scaled)
        a.rate *= at_least(ref_load(scalars, 5, 0), rms(&a, false));
    adafactor_average(&a);
    double shrink = 1 - decay * (a.transformers ? a.rate : 1);
    double step = a.rate / at_least(1, rms(&a, true) / ref_load(scalars, 6, 0));
    for (int64_t r = 0; r < a.rows; r++) {
        for (int64_t c = 0; c < a.columns; c++) {
            double change = step * adafactor_direction(&a, r, c);
            if (has_moment) {
                change = beta1 * ref_load(m, r, c) + (1 - beta1) * change;
                ref_store(m_out, r, c, change);
            }
            double updated = ref_round(p->dtype, ref_load(p, r, c) * shrink - change);
            ref_store(p_out, r, c, updated);
            if (is_bound(shadow))
                ref_store(shadow, r, c, updated);
        }
    }
}

TP_REF_KERNEL(adafactor_moment) { run_adafactor(launch); }

/* ---- Muon ---- */

/* The next X of Newton and Schulz: row r, column c of a X + (b G + c G G) X, G = X X^T. */
static void iterate(const double *s, int64_t rows, int64_t columns, double *x, double *gram)
{
    double *mixed = gram + rows * rows, *next = mixed + rows * rows;
    for (int64_t i = 0; i < rows * rows; i++) {
        gram[i] = 0;
        for (int64_t c = 0; c < columns; c++)
            gram[i] += x[i / rows * columns + c] * x[i % rows * columns + c];
    }
    for (int64_t i = 0; i < rows * rows; i++) {
        mixed[i] = s[5] * gram[i];
        for (int64_t k = 0; k < rows; k++)
            mixed[i] += s[6] * gram[i / rows * rows + k] * gram[k * rows + i % rows];
    }
    for (int64_t i = 0; i < rows * columns; i++) {
        next[i] = s[2] * x[i];
        for (int64_t k = 0; k < rows; k++)
            next[i] += mixed[i / columns * rows + k] * x[k * columns + i % columns];
    }
    for (int64_t i = 0; i < rows * columns; i++)
        x[i] = next[i];
}

static size_t workspace_muon(const tp_launch *launch)
{
    size_t rows = (size_t)launch->in[0].dim[0], columns = (size_t)launch->in[0].dim[1];
    return (2 * rows * columns + 2 * rows * rows) * sizeof(double);
}

TP_REF_KERNEL(muon, .workspace = workspace_muon)
{
    const tp_operand *p = &launch->in[0], *g = &launch->in[1], *m = &launch->in[3];
    const tp_operand *p_out = &launch->out[0], *m_out = &launch->out[1];
    const tp_operand *shadow = &launch->out[2];
    int64_t rows = p->dim[0], columns = p->dim[1];
    double s[8], sum = 0, *x = launch->workspace;
    for (int i = 0; i < 8; i++)
        s[i] = ref_load(&launch->in[2], i, 0);
    for (int64_t i = 0; i < rows * columns; i++) {
        int64_t r = i / columns, c = i % columns;
        double gradient = ref_load(g, r, c) * s[7], before = ref_load(m, r, c);
        double next = before + (1 - s[1]) * (gradient - before);
        ref_store(m_out, r, c, next);
        x[i] = launch->attrs.nesterov ? gradient + s[1] * (next - gradient) : next;
        sum += x[i] * x[i];
    }
    double norm = at_least(s[3], sqrt(sum));
    for (int64_t i = 0; i < rows * columns; i++)
        x[i] /= norm;
    for (int k = 0; k < launch->attrs.steps; k++)
        iterate(s, rows, columns, x, x + rows * columns);
    for (int64_t i = 0; i < rows * columns; i++) {
        int64_t r = i / columns, c = i % columns;
        double step = s[0] * (double)launch->attrs.scale * x[i];
        double updated = ref_round(p->dtype, ref_load(p, r, c) * (1 - s[0] * s[4]) - step);
        ref_store(p_out, r, c, updated);
        if (is_bound(shadow))
            ref_store(shadow, r, c, updated);
    }
}
