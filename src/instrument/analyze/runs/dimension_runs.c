/* dimension_runs.c - what only several runs can show: robustness over seeds, scalability over
 * sizes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "base/vec.h"
#include "instrument/analyze/runs/dimension.h"
#include "stats/descriptive.h"
#include "stats/special.h"

enum { LEAST_SEEDS = 3, LEAST_SIZES = 3, USL_SIZES = 4 };

/* sd / |mean|.  The interval is that of the standard deviation of normal values (chi-squared), with
 * McKay's correction for the mean's own error. */
void tp_variation_of(const double *x, size_t n, double level, tp_dimension_figures *f)
{
    double mean = tp_mean(x, n), sd = tp_sd(x, n), df = (double)n - 1, tail = (1 - level) / 2;
    if (mean == 0) {
        snprintf(f->error, sizeof f->error, "the mean of the runs is 0");
        return;
    }
    double cv = sd / fabs(mean), u1 = tp_chi2_quantile(1 - tail, df),
           u2 = tp_chi2_quantile(tail, df);
    double size = (double)n, k2 = cv * cv;
    f->value = cv;
    f->lo = cv / sqrt((u1 / size - 1) * k2 + u1 / df);
    f->hi =
        (u2 / size - 1) * k2 + u2 / df > 0 ? cv / sqrt((u2 / size - 1) * k2 + u2 / df) : INFINITY;
    f->n = n;
    snprintf(f->method, sizeof f->method, "coefficient of variation of %zu runs, McKay's interval",
             n);
    tp_dimension_input_number(f, "mean", mean);
    tp_dimension_input_number(f, "sd", sd);
}

/* Mean of the last fifth of what the run learned from. */
static double result_of(tp_metrics *m, char *tag, size_t size)
{
    tp_curve c = tp_curve_of(m, TP_ROLE_EVAL_LOSS);
    double result = NAN;
    for (int k = 0; k < 2 && c.n < 1; k++)
        c = tp_curve_of(m, k ? TP_ROLE_LOSS : TP_ROLE_REWARD);
    if (c.n) {
        size_t fifth = c.n / 5 ? c.n / 5 : 1;
        result = tp_mean(c.value + c.n - fifth, fifth);
        snprintf(tag, size, "%s", c.tag);
    }
    tp_curve_release(&c);
    return result;
}

void tp_dimension_robustness(const tp_dimension_question *q, tp_dimension_figures *f)
{
    double *results = tp_vec_new(q->n_runs, sizeof *results);
    char tag[120] = "", first[120] = "";
    size_t n = 0;
    for (size_t i = 0; i < q->n_runs; i++) {
        results[n] = result_of(q->runs[i], tag, sizeof tag);
        if (n == 0)
            memcpy(first, tag, sizeof first);
        n += isfinite(results[n]) && strcmp(first, tag) == 0;
    }
    if (n < LEAST_SEEDS) {
        snprintf(f->error, sizeof f->error,
                 "needs at least %d runs (seeds of one setting) with the same metric, got %zu",
                 LEAST_SEEDS, n);
    } else {
        tp_dimension_input_text(f, "metric", first);
        tp_variation_of(results, n, q->level, f);
        snprintf(f->advice, sizeof f->advice,
                 "report the mean over seeds with its interval; a lower learning rate, warm-up or "
                 "larger batches make runs alike");
    }
    free(results);
}

/* ---- scalability ---- */

/* y = b0 + b1 x1 (+ b2 x2) by least squares: coefficients and their covariances over sigma^2. False
 * where the sizes do not tell them apart. */
typedef struct {
    double b[3], cov[3][3], sigma2, df;
} fit;

static bool solve(double a[3][3], double inverse[3][3], int p)
{
    for (int i = 0; i < p; i++)
        for (int j = 0; j < p; j++)
            inverse[i][j] = i == j;
    for (int i = 0; i < p; i++) {
        int best = i;
        for (int r = i + 1; r < p; r++)
            best = fabs(a[r][i]) > fabs(a[best][i]) ? r : best;
        if (fabs(a[best][i]) < 1e-12)
            return false;
        for (int j = 0; j < p; j++) {
            double t = a[i][j], u = inverse[i][j];
            a[i][j] = a[best][j], a[best][j] = t;
            inverse[i][j] = inverse[best][j], inverse[best][j] = u;
        }
        double pivot = a[i][i];
        for (int j = 0; j < p; j++) {
            a[i][j] /= pivot;
            inverse[i][j] /= pivot;
        }
        for (int r = 0; r < p; r++) {
            double factor = r == i ? 0 : a[r][i];
            for (int j = 0; j < p; j++) {
                a[r][j] -= factor * a[i][j];
                inverse[r][j] -= factor * inverse[i][j];
            }
        }
    }
    return true;
}

static bool least_squares(const double (*x)[3], const double *y, size_t n, int p, fit *ret)
{
    double a[3][3] = {0}, v[3] = {0}, sse = 0;
    for (size_t i = 0; i < n; i++)
        for (int r = 0; r < p; r++) {
            v[r] += x[i][r] * y[i];
            for (int c = 0; c < p; c++)
                a[r][c] += x[i][r] * x[i][c];
        }
    if (n <= (size_t)p || !solve(a, ret->cov, p))
        return false;
    for (int r = 0; r < p; r++) {
        ret->b[r] = 0;
        for (int c = 0; c < p; c++)
            ret->b[r] += ret->cov[r][c] * v[c];
    }
    for (size_t i = 0; i < n; i++) {
        double e = y[i];
        for (int r = 0; r < p; r++)
            e -= ret->b[r] * x[i][r];
        sse += e * e;
    }
    ret->df = (double)n - p;
    ret->sigma2 = sse / ret->df;
    return true;
}

static size_t different(const double *x, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_new = true;
        for (size_t k = 0; k < i; k++)
            is_new &= x[k] != x[i];
        count += is_new;
    }
    return count;
}

/* USL: N / X = (1 + sigma (N - 1) + kappa N (N - 1)) / lambda, linear in the coefficients. */
static void usl(const double *sizes, const double *times, size_t n, tp_dimension_figures *f)
{
    double(*x)[3] = tp_vec_new(n, sizeof *x), *y = tp_vec_new(n, sizeof *y);
    fit r;
    for (size_t i = 0; i < n; i++) {
        double N = sizes[i];
        x[i][0] = 1, x[i][1] = N - 1, x[i][2] = N * (N - 1);
        y[i] = N * times[i];
    }
    if (least_squares((const double(*)[3])x, y, n, 3, &r) && r.b[0] > 0) {
        double sigma = r.b[1] / r.b[0], kappa = r.b[2] / r.b[0];
        tp_dimension_input_number(f, "usl_contention", sigma);
        tp_dimension_input_number(f, "usl_crosstalk", kappa);
        if (kappa > 0 && sigma < 1)
            tp_dimension_input_number(f, "usl_best_size", sqrt((1 - sigma) / kappa));
    }
    free(x);
    free(y);
}

/* T(N) = b0 + b1 / N: the serial share is b0 / (b0 + b1); Fieller's interval of the ratio. */
void tp_scaling_of(const double *sizes, const double *times, size_t n, double level,
                   tp_dimension_figures *f)
{
    double(*x)[3] = tp_vec_new(n, sizeof *x);
    fit r;
    for (size_t i = 0; i < n; i++)
        x[i][0] = 1, x[i][1] = 1 / sizes[i];
    if (different(sizes, n) < LEAST_SIZES) {
        snprintf(f->error, sizeof f->error,
                 "needs at least %d runs of different sizes (threads, ranks, devices), got %zu",
                 LEAST_SIZES, different(sizes, n));
    } else if (!least_squares((const double(*)[3])x, times, n, 2, &r) || r.b[0] + r.b[1] <= 0) {
        snprintf(f->error, sizeof f->error, "times do not fit Amdahl's law");
    } else {
        double s = r.b[0], all = r.b[0] + r.b[1], t = tp_t_quantile(1 - (1 - level) / 2, r.df);
        double vs = r.cov[0][0] * r.sigma2, va = vs + (2 * r.cov[0][1] + r.cov[1][1]) * r.sigma2;
        double vsa = vs + r.cov[0][1] * r.sigma2, g = t * t * va / (all * all), share = s / all;
        f->value = share;
        f->n = n;
        if (g < 1) {
            double mid = share - g * vsa / va;
            double root = vs - 2 * share * vsa + share * share * va - g * (vs - vsa * vsa / va);
            double half = t / all * sqrt(root > 0 ? root : 0);
            f->lo = va > 0 ? (mid - half) / (1 - g) : share;
            f->hi = va > 0 ? (mid + half) / (1 - g) : share;
        }
        snprintf(f->method, sizeof f->method, "Amdahl by least squares on 1/N, Fieller's interval");
        tp_dimension_input_number(f, "largest_speedup", 1 / (share > 0 ? share : NAN));
        if (different(sizes, n) >= USL_SIZES)
            usl(sizes, times, n, f);
    }
    free(x);
}

/* Settings that say how many work on it. */
static double size_of(const tp_metrics *m)
{
    static const char *const keys[] = {"world_size", "num_processes",         "n_gpus",
                                       "num_gpus",   "cluster.gpus_per_node", "ranks",
                                       "threads",    "engine.threads",        "num_workers"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        for (size_t i = 0; i < tp_metrics_settings(m); i++) {
            const char *value;
            double v;
            if (strcmp(tp_metrics_setting(m, i, &value), keys[k]) == 0 &&
                tp_str_to_f64(value, &v) && v > 0)
                return v;
        }
    return NAN;
}

void tp_dimension_scalability(const tp_dimension_question *q, tp_dimension_figures *f)
{
    double *sizes = tp_vec_new(q->n_runs, sizeof *sizes),
           *times = tp_vec_new(q->n_runs, sizeof *times);
    size_t n = 0;
    for (size_t i = 0; i < q->n_runs; i++) {
        tp_curve c = tp_curve_of(q->runs[i], TP_ROLE_STEP_TIME);
        sizes[n] = q->sizes ? q->sizes[i] : size_of(q->runs[i]);
        double median;
        if (c.n && sizes[n] > 0 && tp_median(c.value, c.n, &median, NULL) == TP_OK) {
            times[n++] = median;
            tp_dimension_input_text(f, "metric", c.tag);
        }
        f->n_inputs = f->n_inputs ? 1 : 0;
        tp_curve_release(&c);
    }
    if (n < LEAST_SIZES)
        snprintf(f->error, sizeof f->error,
                 "needs at least %d runs of different sizes (threads, ranks, devices: --size, or a "
                 "setting that says it) with a step time, got %zu",
                 LEAST_SIZES, n);
    else
        tp_scaling_of(sizes, times, n, q->level, f);
    snprintf(f->advice, sizeof f->advice,
             "'temper trace' shows exposed communication and idle time; more work per rank");
    free(sizes);
    free(times);
}
