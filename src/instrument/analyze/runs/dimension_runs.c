/* dimension_runs.c - what only several runs can show: robustness over seeds, scalability over
 * sizes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "base/strings.h"
#include "base/vec.h"
#include "instrument/analyze/runs/dimension.h"
#include "stats/descriptive.h"
#include "stats/special.h"

enum { LEAST_SEEDS = 3, LEAST_SIZES = 3, USL_SIZES = 4 };

/* sd / |mean|.  The interval is that of the standard deviation of normal values (chi-squared), with
 * McKay's correction for the mean's own error. */
static void variation_of(const double *x, size_t n, double level, tp_dimension_figures *f)
{
    double mean = tp_mean(x, n), sd = tp_sd(x, n), df = (double)n - 1, tail = (1 - level) / 2;
    if (mean == 0) {
        snprintf(f->why, sizeof f->why, "the mean of the runs is 0");
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
    snprintf(f->method, sizeof f->method, "coefficient of variation of %zu run%s, McKay's interval",
             n, tp_plural((uint64_t)n));
    tp_dimension_input_number(f, "mean", mean);
    tp_dimension_input_number(f, "sd", sd);
}

typedef struct {
    char tag[120]; /* "": the run has no such metric */
    double value;  /* mean of its last fifth; NaN where the run did not end with a number */
    size_t n_odd;  /* values that are NaN or infinite */
} seed_result;

/* Of what the run learned from. */
static seed_result result_of(tp_metrics *m)
{
    static const tp_run_role roles[] = {TP_ROLE_EVAL_LOSS, TP_ROLE_REWARD, TP_ROLE_LOSS};
    seed_result r = {.value = NAN};
    for (size_t k = 0; k < TP_COUNTOF(roles) && !r.tag[0]; k++) {
        TP_OWN(tp_curve) c = tp_curve_of(m, roles[k]);
        if (!c.tag)
            continue;
        size_t fifth = c.n / 5 ? c.n / 5 : 1;
        snprintf(r.tag, sizeof r.tag, "%s", c.tag);
        r.n_odd = c.n_odd;
        if (!c.is_lost)
            r.value = tp_mean(c.value + c.n - fifth, fifth);
    }
    return r;
}

/* A seed that came to nothing has no result that could be near the others'. */
static void say_lost(size_t lost, size_t n, const char *tag, tp_dimension_figures *f)
{
    snprintf(f->why, sizeof f->why,
             "%zu of %zu runs %s without a finite value of %s: not robust, whatever the others say",
             lost, n, lost == 1 ? "ends" : "end", tag);
    snprintf(f->advice, sizeof f->advice,
             "a lower learning rate, warm-up or larger batches keep a seed from being lost");
    f->is_lost = true;
}

void tp_dimension_robustness(const tp_dimension_question *q, tp_dimension_figures *f)
{
    TP_FREED double *results = tp_vec_new(q->n_runs, sizeof *results);
    char first[120] = "";
    size_t n = 0, lost = 0, others = 0;
    for (size_t i = 0; i < q->n_runs; i++) {
        seed_result r = result_of(q->runs[i]);
        if (!first[0])
            memcpy(first, r.tag, sizeof first);
        f->n_odd += r.n_odd;
        if (!r.tag[0] || strcmp(first, r.tag) != 0)
            others++;
        else if (!isfinite(r.value))
            lost++;
        else
            results[n++] = r.value;
    }
    if (n + lost < LEAST_SEEDS) {
        snprintf(f->why, sizeof f->why,
                 "needs at least %d runs (seeds of one setting) with the same metric, got %zu",
                 LEAST_SEEDS, n + lost);
    } else if (lost) {
        say_lost(lost, n + lost, first, f);
    } else {
        tp_dimension_input_text(f, "metric", first);
        tp_dimension_input_other_sets(f, q->runs[0], first);
        if (others)
            tp_dimension_input_number(f, "runs_without_it", (double)others);
        variation_of(results, n, q->level, f);
        snprintf(f->advice, sizeof f->advice,
                 "report the mean over seeds with its interval; a lower learning rate, warm-up or "
                 "larger batches make runs alike");
    }
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

/* One solution with the weights w. */
static bool weighted(const double (*x)[3], const double *y, const double *w, size_t n, int p,
                     fit *ret)
{
    double a[3][3] = {0}, v[3] = {0};
    for (size_t i = 0; i < n; i++)
        for (int r = 0; r < p; r++) {
            v[r] += w[i] * x[i][r] * y[i];
            for (int c = 0; c < p; c++)
                a[r][c] += w[i] * x[i][r] * x[i][c];
        }
    if (!solve(a, ret->cov, p))
        return false;
    for (int r = 0; r < p; r++) {
        ret->b[r] = 0;
        for (int c = 0; c < p; c++)
            ret->b[r] += ret->cov[r][c] * v[c];
    }
    return true;
}

static double fitted(const fit *f, const double *x, int p)
{
    double y = 0;
    for (int r = 0; r < p; r++)
        y += f->b[r] * x[r];
    return y;
}

/* Times are off by a share of themselves, whatever their size: weights are 1 / (what is fitted)^2,
 * found by repetition. */
static bool least_squares(const double (*x)[3], const double *y, size_t n, int p, fit *ret)
{
    double *w = tp_vec_new(n, sizeof *w), sse = 0;
    bool ok = n > (size_t)p;
    for (size_t i = 0; i < n; i++)
        w[i] = 1 / (y[i] * y[i]);
    for (int k = 0; k < 4 && ok; k++) {
        ok = weighted(x, y, w, n, p, ret);
        for (size_t i = 0; i < n && ok; i++) {
            double at = fitted(ret, x[i], p);
            ok = at > 0;
            w[i] = 1 / (at * at);
        }
    }
    for (size_t i = 0; i < n && ok; i++) {
        double e = 1 - y[i] / fitted(ret, x[i], p);
        sse += e * e;
    }
    ret->df = (double)n - p;
    ret->sigma2 = sse / ret->df;
    free(w);
    return ok;
}

/* (u b) / (v b) with Fieller's interval, which is none where the denominator may be 0. */
typedef struct {
    double value, lo, hi;
} ratio;

static double between(const fit *f, const double *u, const double *v)
{
    double sum = 0;
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            sum += u[r] * f->cov[r][c] * v[c];
    return sum * f->sigma2;
}

static ratio ratio_of(const fit *f, const double *u, const double *v, double level)
{
    double over = fitted(f, u, 3), under = fitted(f, v, 3), share = over / under;
    double t = tp_t_quantile(1 - (1 - level) / 2, f->df);
    double vu = between(f, u, u), vv = between(f, v, v), vuv = between(f, u, v);
    double g = t * t * vv / (under * under);
    ratio r = {share, NAN, NAN};
    if (g < 1) {
        double mid = vv > 0 ? share - g * vuv / vv : share;
        double root = vu - 2 * share * vuv + share * share * vv;
        root -= vv > 0 ? g * (vu - vuv * vuv / vv) : 0;
        double half = t / under * sqrt(root > 0 ? root : 0);
        r.lo = (mid - half) / (1 - g);
        r.hi = (mid + half) / (1 - g);
    }
    return r;
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

static void put_ratio(tp_dimension_figures *f, const char *const keys[3], const ratio *r)
{
    tp_dimension_input_number(f, keys[0], r->value);
    tp_dimension_input_number(f, keys[1], r->lo);
    tp_dimension_input_number(f, keys[2], r->hi);
}

/* USL: N / X = (1 + sigma (N - 1) + kappa N (N - 1)) / lambda, linear in the coefficients. */
static void usl(const double *sizes, const double *times, size_t n, double level,
                tp_dimension_figures *f)
{
    static const char *const contention[] = {"usl_contention", "usl_contention_low",
                                             "usl_contention_high"};
    static const char *const crosstalk[] = {"usl_crosstalk", "usl_crosstalk_low",
                                            "usl_crosstalk_high"};
    static const double one[] = {1, 0, 0}, two[] = {0, 1, 0}, three[] = {0, 0, 1};
    double(*x)[3] = tp_vec_new(n, sizeof *x), *y = tp_vec_new(n, sizeof *y);
    fit r = {0};
    for (size_t i = 0; i < n; i++) {
        double N = sizes[i];
        x[i][0] = 1, x[i][1] = N - 1, x[i][2] = N * (N - 1);
        y[i] = N * times[i];
    }
    if (least_squares((const double(*)[3])x, y, n, 3, &r) && r.b[0] > 0) {
        ratio sigma = ratio_of(&r, two, one, level), kappa = ratio_of(&r, three, one, level);
        put_ratio(f, contention, &sigma);
        put_ratio(f, crosstalk, &kappa);
        if (kappa.value > 0 && sigma.value < 1)
            tp_dimension_input_number(f, "usl_best_size", sqrt((1 - sigma.value) / kappa.value));
    }
    free(x);
    free(y);
}

/* T(N) = b0 + b1 / N: the serial share is b0 / (b0 + b1). */
static void scaling_of(const double *sizes, const double *times, size_t n, double level,
                       tp_dimension_figures *f)
{
    static const double serial[] = {1, 0, 0}, all[] = {1, 1, 0};
    double(*x)[3] = tp_vec_new(n, sizeof *x);
    fit r = {0};
    for (size_t i = 0; i < n; i++)
        x[i][0] = 1, x[i][1] = 1 / sizes[i];
    if (different(sizes, n) < LEAST_SIZES) {
        snprintf(f->why, sizeof f->why,
                 "needs at least %d runs of different sizes (threads, ranks, devices), got %zu",
                 LEAST_SIZES, different(sizes, n));
    } else if (!least_squares((const double(*)[3])x, times, n, 2, &r) || r.b[0] + r.b[1] <= 0) {
        snprintf(f->why, sizeof f->why, "times do not fit Amdahl's law");
    } else {
        ratio share = ratio_of(&r, serial, all, level);
        f->value = share.value;
        f->lo = share.lo;
        f->hi = share.hi;
        f->n = n;
        snprintf(f->method, sizeof f->method,
                 "Amdahl by least squares on 1/N, errors a share of the time, Fieller's interval");
        tp_dimension_input_number(f, "largest_speedup", 1 / (share.value > 0 ? share.value : NAN));
        if (different(sizes, n) >= USL_SIZES)
            usl(sizes, times, n, level, f);
    }
    free(x);
}

static double number_of(const tp_metrics *m, const char *key)
{
    double v;
    for (size_t i = 0; i < tp_metrics_settings(m); i++) {
        const char *value;
        if (strcmp(tp_metrics_setting(m, i, &value), key) == 0 && tp_str_to_f64(value, &v) && v > 0)
            return v;
    }
    return NAN;
}

/* Settings that say how many work on it, times the second where that is there.  A run of Temper has
 * ranks and threads of each. */
static double size_of(const tp_metrics *m)
{
    static const char *const keys[][2] = {{"world_size"},
                                          {"num_processes"},
                                          {"n_gpus"},
                                          {"num_gpus"},
                                          {"cluster.gpus_per_node", "cluster.num_nodes"},
                                          {"trainer.n_gpus_per_node", "trainer.nnodes"},
                                          {"ranks"},
                                          {"threads"},
                                          {"engine.threads"}};
    double size = number_of(m, "ranks") * number_of(m, "threads");
    for (size_t k = 0; k < TP_COUNTOF(keys) && isnan(size); k++) {
        size = number_of(m, keys[k][0]);
        double times = keys[k][1] ? number_of(m, keys[k][1]) : NAN;
        size *= isnan(times) ? 1 : times;
    }
    return size;
}

void tp_dimension_scalability(const tp_dimension_question *q, tp_dimension_figures *f)
{
    double *sizes = tp_vec_new(q->n_runs, sizeof *sizes),
           *times = tp_vec_new(q->n_runs, sizeof *times);
    size_t n = 0;
    for (size_t i = 0; i < q->n_runs; i++) {
        TP_OWN(tp_curve) c = tp_curve_of(q->runs[i], TP_ROLE_STEP_TIME);
        sizes[n] = q->sizes ? q->sizes[i] : size_of(q->runs[i]);
        double median;
        if (c.n && sizes[n] > 0 && tp_median(c.value, c.n, &median, NULL) == TP_OK) {
            times[n++] = median;
            tp_dimension_input_text(f, "metric", c.tag);
        }
        f->n_inputs = f->n_inputs ? 1 : 0;
    }
    if (n < LEAST_SIZES)
        snprintf(f->why, sizeof f->why,
                 "needs at least %d runs of different sizes (threads, ranks, devices: --size, or a "
                 "setting that says it) with a step time, got %zu",
                 LEAST_SIZES, n);
    else
        scaling_of(sizes, times, n, q->level, f);
    snprintf(f->advice, sizeof f->advice,
             "'temper trace' shows exposed communication and idle time; more work per rank");
    free(sizes);
    free(times);
}
