/* curves.c - fits of decay, convergence and overfitting. */
#include "stats/curves.h"

#include <math.h>
#include <string.h>

#include "base/vec.h"
#include "stats/descriptive.h"
#include "stats/order.h"
#include "stats/special.h"
#include "stats/twofold.h"

/* The rates that are looked for: slower ones are lines within a run, faster ones are over
 * after one step. */
static const double slowest = 1e-4, fastest = 5;

/* For a rate k: the least squares c and A, in twofold precision, because the
 * residuals of a clean curve are its last digits. */
typedef struct {
    tp_two c, a, sse;
    tp_two gradient; /* sum r t e: 0 at the best k */
    double newton;   /* Gauss-Newton step in k */
} fit;

typedef struct {
    const double *x, *y; /* x NULL: 0, 1, 2 ... */
    size_t n;
    double fastest;
    tp_two *e; /* scratch: e^(-k x) */
} problem;

static double at(const problem *p, size_t t) { return p->x ? p->x[t] - p->x[0] : (double)t; }

/* Where the distance to the last one is another than that before it: most are as their neighbours,
 * and e^(-k distance) is then what it was. */
static bool has_new_distance(const problem *p, size_t t)
{
    if (t < 2)
        return true;
    double distance = at(p, t) - at(p, t - 1), before = at(p, t - 1) - at(p, t - 2);
    return fabs(distance - before) > 1e-11 * distance;
}

static void find_powers(const problem *p, tp_two k)
{
    tp_two r = tp_two_of(1);
    p->e[0] = r;
    for (size_t t = 1; t < p->n; t++) {
        if (has_new_distance(p, t))
            r = tp_two_exp(tp_two_negate(tp_two_mul_d(k, at(p, t) - at(p, t - 1))));
        p->e[t] = tp_two_mul(p->e[t - 1], r);
    }
}

static tp_two residual(const problem *p, const fit *f, size_t t)
{
    tp_two model = tp_two_add(f->c, tp_two_mul(f->a, p->e[t]));
    return tp_two_add_d(tp_two_negate(model), p->y[t]);
}

static fit fit_at(const problem *p, tp_two k)
{
    tp_two count = tp_two_of((double)p->n);
    tp_two mean_e = {0, 0}, mean_y = {0, 0}, mean_te = {0, 0};
    find_powers(p, k);
    for (size_t t = 0; t < p->n; t++) {
        mean_e = tp_two_add(mean_e, p->e[t]);
        mean_te = tp_two_add(mean_te, tp_two_mul_d(p->e[t], at(p, t)));
        mean_y = tp_two_add_d(mean_y, p->y[t]);
    }
    mean_e = tp_two_div(mean_e, count);
    mean_y = tp_two_div(mean_y, count);
    mean_te = tp_two_div(mean_te, count);
    tp_two see = {0, 0}, sey = {0, 0}, st = {0, 0}, stt = {0, 0};
    for (size_t t = 0; t < p->n; t++) {
        tp_two de = tp_two_sub(p->e[t], mean_e);
        tp_two dy = tp_two_add_d(tp_two_negate(mean_y), p->y[t]);
        tp_two dte = tp_two_sub(tp_two_mul_d(p->e[t], at(p, t)), mean_te);
        see = tp_two_add(see, tp_two_mul(de, de));
        sey = tp_two_add(sey, tp_two_mul(de, dy));
        st = tp_two_add(st, tp_two_mul(de, dte));
        stt = tp_two_add(stt, tp_two_mul(dte, dte));
    }
    fit f = {.a = tp_two_div(sey, see)};
    f.c = tp_two_sub(mean_y, tp_two_mul(f.a, mean_e));
    for (size_t t = 0; t < p->n; t++) {
        tp_two d = residual(p, &f, t);
        f.sse = tp_two_add(f.sse, tp_two_mul(d, d));
        f.gradient = tp_two_add(f.gradient, tp_two_mul(d, tp_two_mul_d(p->e[t], at(p, t))));
    }
    double curvature = stt.hi - st.hi * st.hi / see.hi;
    f.newton = -f.gradient.hi / (f.a.hi * curvature);
    return f;
}

/* The sum of squares alone, in plain double: what the search over k looks at. */
static double sse_at(const problem *p, double log_k)
{
    double k = exp(log_k), r = 1, e = 1, mean_e = 0, mean_y = 0;
    for (size_t t = 0; t < p->n; t++) {
        if (t && has_new_distance(p, t))
            r = exp(-k * (at(p, t) - at(p, t - 1)));
        e *= r;
        p->e[t].hi = e;
        mean_e += e;
        mean_y += p->y[t];
    }
    mean_e /= (double)p->n;
    mean_y /= (double)p->n;
    double see = 0, sey = 0, syy = 0;
    for (size_t t = 0; t < p->n; t++) {
        double de = p->e[t].hi - mean_e, dy = p->y[t] - mean_y;
        see += de * de;
        sey += de * dy;
        syy += dy * dy;
    }
    return see > 0 ? syy - sey * sey / see : syy;
}

/* A grid over ln k, then golden section around its best point. */
static double search_rate(const problem *p)
{
    enum { GRID = 64 };
    const double golden = 0.6180339887498949, low = log(slowest), high = log(p->fastest);
    double width = (high - low) / GRID, best = low, least = INFINITY;
    for (int i = 0; i <= GRID; i++) {
        double sse = sse_at(p, low + i * width);
        if (sse < least) {
            least = sse;
            best = low + i * width;
        }
    }
    double lo = fmax(low, best - width), hi = fmin(high, best + width);
    double a = hi - golden * (hi - lo), b = lo + golden * (hi - lo);
    double fa = sse_at(p, a), fb = sse_at(p, b);
    for (int i = 0; i < 30; i++) {
        if (fa <= fb) {
            hi = b;
            b = a;
            fb = fa;
            a = hi - golden * (hi - lo);
            fa = sse_at(p, a);
        } else {
            lo = a;
            a = b;
            fa = fb;
            b = lo + golden * (hi - lo);
            fb = sse_at(p, b);
        }
    }
    return exp(0.5 * (lo + hi));
}

/* Secant steps on the gradient, begun by Gauss-Newton, until k stands still. */
static tp_two polish(const problem *p, double rough)
{
    tp_two k = tp_two_of(rough), before = k;
    fit f = fit_at(p, k), last = f;
    for (int i = 0; i < 40; i++) {
        tp_two step = tp_two_of(f.newton);
        tp_two rise = tp_two_sub(f.gradient, last.gradient);
        if (i > 0 && rise.hi != 0)
            step = tp_two_negate(tp_two_div(tp_two_mul(f.gradient, tp_two_sub(k, before)), rise));
        if (!(fabs(step.hi) < 0.1 * k.hi)) /* also NaN */
            break;
        before = k;
        last = f;
        k = tp_two_add(k, step);
        if (fabs(step.hi) < 1e-30 * k.hi)
            break;
        f = fit_at(p, k);
    }
    return k;
}

static void residuals_of(const problem *p, const fit *f, double *ret)
{
    for (size_t t = 0; t < p->n; t++)
        ret[t] = tp_two_value(residual(p, f, t));
}

/* What is over after the shortest step is looked for no further. */
static double fastest_of(const double *x, size_t n)
{
    double least = INFINITY;
    for (size_t t = 1; x && t < n; t++)
        least = fmin(least, x[t] - x[t - 1]);
    return x ? fastest / least : fastest;
}

static const char *unfit(const double *y, size_t n)
{
    if (n < 4)
        return "needs at least four values";
    for (size_t t = 0; t < n; t++)
        if (fabs(y[t]) > 1e150)
            return "values above 1e150 have squares that no number holds";
    for (size_t t = 1; t < n; t++)
        if (y[t] < y[0] || y[t] > y[0])
            return NULL;
    return "the series is constant";
}

/* `residuals`: n of them, or NULL. */
static void fit_decay(const double *x, const double *y, size_t n, double *residuals, tp_decay *r)
{
    TP_FREED tp_two *powers = tp_vec_new(n, sizeof *powers);
    problem p = {.x = x, .y = y, .n = n, .e = powers};
    p.fastest = fastest_of(p.x, n);
    tp_two k = polish(&p, search_rate(&p));
    fit f = fit_at(&p, k);
    if (residuals)
        residuals_of(&p, &f, residuals);
    double rate = tp_two_value(k), total = tp_variance(y, n) * (double)(n - 1);
    if (rate < 1.01 * slowest || rate > p.fastest / 1.01) {
        r->why = rate < p.fastest / 2 ? "the series is a straight line, not a decay"
                                      : "the series has settled after its first step";
        return;
    }
    r->k = rate;
    r->c = tp_two_value(f.c);
    r->a = tp_two_value(f.a);
    r->sse = tp_two_value(f.sse);
    r->rmse = sqrt(r->sse / (double)(n - 3));
    r->half_life = 0.6931471805599453 / rate;
    r->r2 = 1 - r->sse / total;
    if (fabs(r->a) < 3 * r->rmse)
        r->weak = "the decay is hardly larger than the noise: rate and plateau are guesses";
}

static tp_decay no_decay(void) { return (tp_decay){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NULL, NULL}; }

tp_status tp_fit_decay(const double *x, const double *y, size_t n, tp_decay *ret, tp_error *err)
{
    tp_decay r = no_decay();
    TP_TRY(tp_check_finite("the curve", y, n, err));
    r.why = unfit(y, n);
    if (!r.why)
        fit_decay(x, y, n, NULL, &r);
    *ret = r;
    return TP_OK;
}

static double ewma_of(const double *y, size_t n, double alpha)
{
    double s = n ? y[0] : NAN;
    for (size_t t = 1; t < n; t++)
        s = (1 - alpha) * s + alpha * y[t];
    return s;
}

static double unbiased_ewma_of(const double *y, size_t n, double alpha)
{
    double s = 0, rest = 1;
    for (size_t t = 0; t < n; t++) {
        s = (1 - alpha) * s + alpha * y[t];
        rest *= 1 - alpha;
    }
    return n ? s / (1 - rest) : NAN;
}

static double max_drawup(const double *y, size_t n)
{
    double lowest = INFINITY, rise = 0;
    for (size_t t = 0; t < n; t++) {
        lowest = fmin(lowest, y[t]);
        rise = fmax(rise, y[t] - lowest);
    }
    return rise;
}

/* First step from which the average stays on the plateau's side of the threshold. */
static size_t convergence_step(const double *y, size_t n, double alpha, double threshold,
                               bool falling)
{
    double s = y[0];
    size_t step = n;
    for (size_t t = 0; t < n; t++) {
        if (t)
            s = (1 - alpha) * s + alpha * y[t];
        bool inside = falling ? s <= threshold : s >= threshold;
        if (!inside)
            step = n;
        else if (step == n)
            step = t;
    }
    return step;
}

static void judge_residuals(double *residuals, size_t n, tp_loss_curve *r)
{
    r->residual_sd_last_half = tp_sd(residuals + n / 2, n - n / 2);
    r->stability_score = 1 / (1 + r->residual_sd_last_half / fabs(r->fit.c));
    double *sorted = residuals + n;
    memcpy(sorted, residuals, n * sizeof *sorted);
    tp_sort(sorted, n);
    double median = tp_median_sorted(sorted, n);
    r->residual_mad_sigma = 1.482602218505602 * tp_mad_in_place(sorted, n);
    for (size_t t = 0; t < n; t++)
        r->n_spikes += residuals[t] - median > 5 * r->residual_mad_sigma;
}

static tp_status judge_end(const double *y, size_t n, tp_loss_curve *r, tp_error *err)
{
    tp_theil_sen_result last;
    TP_TRY(tp_theil_sen(NULL, y + n - r->window, r->window, 0.95, &last, err));
    if (n == 0)
        return TP_OK;
    double height = fabs(y[0] - (r->fit.why ? y[n - 1] : r->fit.c));
    bool flat = !last.why && fabs(last.slope) * (double)r->window < 0.005 * height;
    r->is_plateau = flat && (last.why_ci || (last.lo <= 0 && last.hi >= 0));
    return TP_OK;
}

tp_status tp_analyze_loss(const double *x, const double *y, size_t n, double ewma_alpha,
                          size_t window, tp_loss_curve *ret, tp_error *err)
{
    double alpha = ewma_alpha > 0 ? ewma_alpha : 0.1;
    tp_loss_curve r = {.fit = no_decay(),
                       .threshold = NAN,
                       .convergence_step = n,
                       .residual_sd_last_half = NAN,
                       .residual_mad_sigma = NAN,
                       .stability_score = NAN};
    TP_TRY(tp_check_finite("the curve", y, n, err));
    if (!(alpha <= 1))
        return tp_fail(err, TP_ERR_ARG, "a smoothing of %g is not between 0 and 1", alpha);
    r.window = window ? window : 10;
    r.window = r.window < n ? r.window : n;
    r.ewma = ewma_of(y, n, alpha);
    r.ewma_bias_corrected = unbiased_ewma_of(y, n, alpha);
    r.max_drawup = n ? max_drawup(y, n) : NAN;
    TP_FREED double *work = tp_scratch(3 * n);
    r.fit.why = unfit(y, n);
    if (!r.fit.why)
        fit_decay(x, y, n, work, &r.fit);
    r.why = r.fit.why;
    if (!r.why) {
        r.threshold = r.fit.c + 0.05 * (y[0] - r.fit.c);
        r.convergence_step = convergence_step(y, n, alpha, r.threshold, y[0] >= r.fit.c);
        r.has_converged = r.convergence_step < n;
        judge_residuals(work, n, &r);
    }
    TP_TRY(judge_end(y, n, &r, err));
    *ret = r;
    return TP_OK;
}

double tp_beside_line(const double *x, size_t n, double *ret)
{
    double middle = 0.5 * (double)(n - 1), mean = tp_mean(x, n), xx = 0, xy = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        xx += ((double)i - middle) * ((double)i - middle);
        xy += ((double)i - middle) * (x[i] - mean);
    }
    for (size_t i = 0; i < n; i++) {
        ret[i] = x[i] - mean - (xx > 0 ? xy / xx : 0) * ((double)i - middle);
        squares += ret[i] * ret[i];
    }
    return squares;
}

/* `squares`: of x before; a clean line leaves its last digits alone. */
static double lag1_of_rest(const double *rest, size_t n, double rest_squares, double squares,
                           int terms)
{
    double r = rest_squares > 1e-20 * squares ? tp_lag1(rest, n) : NAN;
    return isnan(r) ? 0 : fmin(fmax(tp_lag1_unbiased(r, n, terms), 0), 0.99);
}

static double squares_of(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum;
}

double tp_lag1_beside_lines(const double *x, size_t n, size_t pieces)
{
    TP_FREED double *rest = tp_scratch(n);
    size_t length = n / pieces;
    double sum = 0;
    if (length < 3)
        return 0;
    for (size_t i = 0; i < pieces; i++) {
        const double *piece = x + i * length;
        double left = tp_beside_line(piece, length, rest);
        sum += lag1_of_rest(rest, length, left, squares_of(piece, length), 2);
    }
    return sum / (double)pieces;
}

double tp_lag1_beside_bend(const double *x, size_t n)
{
    enum { BENDS = 40 };
    if (n < 5)
        return 0;
    TP_FREED double *space = tp_scratch(4 * n);
    double *rest = space, *bend = space + n, *bend_rest = bend + n, *best = bend_rest + n;
    double squares = tp_beside_line(x, n, rest), most = 0;
    memcpy(best, rest, n * sizeof *best);
    for (size_t from = 1; from + 2 < n; from += 1 + n / BENDS) {
        double product = 0;
        for (size_t i = 0; i < n; i++)
            bend[i] = i > from ? (double)(i - from) : 0;
        double length = tp_beside_line(bend, n, bend_rest);
        for (size_t i = 0; i < n; i++)
            product += rest[i] * bend_rest[i];
        if (!(length > 0) || product * product / length <= most)
            continue;
        most = product * product / length;
        for (size_t i = 0; i < n; i++)
            best[i] = rest[i] - product / length * bend_rest[i];
    }
    return lag1_of_rest(best, n, squares - most, squares_of(x, n), 4);
}

/* n / n* of Hamed and Rao where ranks k apart are correlated as those of normal values are whose
 * correlation is r^k. */
static double kendall_correction(size_t n, double r)
{
    double m = (double)n, sum = 0;
    for (size_t k = 1; k + 2 < n; k++) {
        double left = m - (double)k;
        sum += left * (left - 1) * (left - 2) * 6 / M_PI * asin(0.5 * pow(r, (double)k));
    }
    return 1 + 2 / (m * (m - 1) * (m - 2)) * sum;
}

tp_status tp_overfit_onset(const double *gap, size_t n, size_t window, double r, double alpha,
                           size_t *ret, tp_error *err)
{
    size_t onset = n;
    if (window < 4)
        return tp_fail(err, TP_ERR_ARG, "a window of %zu values; choose at least 4", window);
    double correction = kendall_correction(window, r);
    for (size_t end = window; end <= n && onset == n; end++) {
        tp_mann_kendall_result t;
        TP_TRY(tp_mann_kendall(NULL, gap + end - window, window, alpha, &t, err));
        double z = t.why ? 0 : (t.s - (t.s > 0)) / sqrt(t.var_s * correction);
        if (z > 0 && tp_normal_sf(z) < alpha)
            onset = end - 1;
    }
    *ret = onset;
    return TP_OK;
}
