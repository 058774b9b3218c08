/* dimension_convergence.c - is the loss there yet?
 *
 * y = c + a e^(-kt) is fitted, t in steps; the value is 1 - e^(-k (length of the run)), the share
 * of the way from start to plateau that was gone.  Its interval: residuals are drawn again in
 * blocks, the curve is fitted again, and the spread of ln k says how far k may be off. */
#include <math.h>

#include "base/platform.h"
#include "base/vec.h"
#include "instrument/analyze/runs/dimension.h"
#include "stats/bootstrap.h"
#include "stats/changepoint.h"
#include "stats/curves.h"
#include "stats/descriptive.h"
#include "stats/special.h"
#include "stats/trend.h"

enum { MOST_POINTS = 240, REPLICATES = 120, LEAST = 20 };

/* Residuals drawn in circular blocks onto the fitted curve. */
static void redraw(const double *fitted, const double *residual, size_t n, size_t block,
                   tp_splitmix *stream, double *out)
{
    for (size_t i = 0; i < n; i += block) {
        size_t from = (size_t)tp_splitmix_below(stream, n);
        for (size_t k = 0; k < block && i + k < n; k++)
            out[i + k] = fitted[i + k] + residual[(from + k) % n];
    }
}

/* What a fit says, and how far it may be off: standard deviations over refits, Student's t with df.
 */
typedef struct {
    tp_decay fit;
    double sd_log_k, sd_c, sd_log_time, z; /* NaN: too few refits, too few that reach the target */
    double target;
} decay_spread;

/* How far along x the curve is at the target; infinite: never. */
static double time_to(const tp_decay *fit, double target)
{
    if (target >= fit->c + fit->a)
        return 0;
    return target > fit->c ? log(fit->a / (target - fit->c)) / fit->k : INFINITY;
}

static double sd_of(const double *x, size_t n, double more)
{
    return n >= REPLICATES - REPLICATES / 20 ? more * tp_sd(x, n) : NAN;
}

static void find_spread(decay_spread *s, const double *x, const double *y, size_t n, double level)
{
    TP_FREED double *space = tp_vec_new(3 * n + 3 * REPLICATES, sizeof *space);
    double *fitted = space, *residual = space + n, *drawn = space + 2 * n, *log_k = space + 3 * n;
    double *c = log_k + REPLICATES, *log_time = c + REPLICATES;
    size_t n_fits = 0, n_times = 0;
    for (size_t i = 0; i < n; i++) {
        fitted[i] = s->fit.c + s->fit.a * exp(-s->fit.k * x[i]);
        residual[i] = (y[i] - fitted[i]) * sqrt((double)n / (double)(n - 3));
    }
    double alike = tp_lag1(residual, n);
    alike = isnan(alike) ? 0 : fmin(fmax(tp_lag1_unbiased(alike, n, 3), 0), 0.99);
    size_t blocks = tp_batch_count(n, alike), block = TP_MAX(n / blocks, (size_t)1);
    tp_splitmix stream = {1};
    for (int r = 0; r < REPLICATES; r++) {
        tp_decay again;
        redraw(fitted, residual, n, block, &stream, drawn);
        if (tp_fit_decay(x, drawn, n, &again, NULL) != TP_OK || again.why || !(again.k > 0))
            continue;
        double time = time_to(&again, s->target);
        log_k[n_fits] = log(again.k);
        c[n_fits++] = again.c;
        if (time > 0 && isfinite(time))
            log_time[n_times++] = log(time);
    }
    double more = sqrt(tp_batch_inflation(alike, n, block));
    s->sd_log_k = n_fits > REPLICATES / 2 ? more * tp_sd(log_k, n_fits) : NAN;
    s->sd_c = n_fits > REPLICATES / 2 ? more * tp_sd(c, n_fits) : NAN;
    s->sd_log_time = sd_of(log_time, n_times, more);
    /* blocks are what is independent */
    s->z = tp_t_quantile(1 - (1 - level) / 2, blocks > 5 ? (double)blocks - 3 : 2);
}

/* c + a (t + 1)^-b by least squares, t in the shortest distance of two points: the sum of squares,
 * and the share of its way that was gone. */
static double fit_power_law(const double *x, const double *y, size_t n, double *ret_share)
{
    TP_FREED double *power = tp_vec_new(n, sizeof *power);
    double least = INFINITY, shortest = INFINITY;
    for (size_t i = 1; i < n; i++)
        shortest = fmin(shortest, x[i] - x[i - 1]);
    for (double b = 0.02; b < 4; b *= 1.15) {
        for (size_t i = 0; i < n; i++)
            power[i] = pow(x[i] / shortest + 1, -b);
        tp_line line = tp_fit_line(power, y, n, 0.95);
        double squares = line.residual_sd * line.residual_sd * ((double)n - 2);
        if (squares < least) {
            least = squares;
            *ret_share = 1 - power[n - 1];
        }
    }
    return least;
}

/* How many standard errors the residuals of each of the last three tenths are from 0 at most.  The
 * spread of noise comes from differences of neighbours, which no misfit makes larger. */
static double end_off(const double *residual, size_t n)
{
    double r = tp_batch_lag1(residual, n), squares = 0, most = 0;
    size_t tenth = TP_MAX(n / 10, (size_t)5);
    for (size_t i = 1; i < n; i++)
        squares += (residual[i] - residual[i - 1]) * (residual[i] - residual[i - 1]);
    double variance = squares / ((double)n - 1) / (2 * (1 - r));
    double se = sqrt(variance / (double)tenth * tp_batch_inflation(r, tenth, 1));
    for (size_t k = 1; k <= 3; k++)
        most = fmax(most, fabs(tp_mean(residual + n - k * tenth, tenth)) / se);
    return most;
}

/* A share of a way is none where the way is another: NULL, or what is against the curve. */
static const char *misfit(const double *x, const double *y, size_t n, const tp_decay *fit)
{
    enum { LESS_LIKELY = 4, OFF = 5 };   /* of logarithms of likelihoods; standard errors */
    if (fit->rmse < 1e-9 * fabs(fit->a)) /* its last digits */
        return NULL;
    TP_FREED double *residual = tp_vec_new(n, sizeof *residual);
    for (size_t i = 0; i < n; i++)
        residual[i] = y[i] - fit->c - fit->a * exp(-fit->k * x[i]);
    double share = NAN, squares = fit_power_law(x, y, n, &share), r = tp_batch_lag1(residual, n);
    if (share < 0.99 && tp_effective_n(n, r) * log(fit->sse / squares) > LESS_LIKELY)
        return "c + a (t + 1)^-b fits better, whose plateau may be far: not shown";
    return end_off(residual, n) > OFF ? "its end is not where the curve ends: not shown" : NULL;
}

static void say_course(const double *x, const double *y, size_t n, tp_dimension_figures *f)
{
    tp_loss_curve course;
    tp_changepoint points[MOST_POINTS];
    size_t n_points = 0;
    const tp_changepoint_options options = {
        .min_segment = 10, .n_permutations = 199, .seed = 1, .alpha = 0.01};
    if (tp_analyze_loss(x, y, n, 0, 0, &course, NULL) == TP_OK && !course.why) {
        tp_dimension_input_text(f, "plateau", course.is_plateau ? "yes" : "no");
        tp_dimension_input_number(f, "largest_rise", course.max_drawup);
        tp_dimension_input_number(f, "spikes", (double)course.n_spikes);
    }
    /* of the residuals' second half: the decay itself is no change */
    if (n >= 40 &&
        tp_changepoints(y + n / 2, n - n / 2, &options, points, &n_points, NULL) == TP_OK)
        tp_dimension_input_number(f, "changes_in_last_half", (double)n_points);
}

/* A time along x and its interval on a logarithmic scale, in steps. */
static void say_time(tp_dimension_figures *f, const char *const keys[3], double time, double sd,
                     double steps)
{
    tp_dimension_input_number(f, keys[0], time * steps);
    tp_dimension_input_number(f, keys[1], time * exp(-sd) * steps);
    tp_dimension_input_number(f, keys[2], time * exp(sd) * steps);
}

/* NaN: the run has no times of steps. */
static double seconds_of_a_step(tp_metrics *m)
{
    tp_curve c = tp_curve_of(m, TP_ROLE_STEP_TIME);
    double mean = c.n ? tp_mean(c.value, c.n) : NAN;
    tp_curve_release(&c);
    return mean;
}

static void say_target(const decay_spread *s, double target, double steps, double seconds,
                       tp_dimension_figures *f)
{
    static const char *const keys[] = {"steps_to_target", "steps_to_target_low",
                                       "steps_to_target_high"};
    double time = time_to(&s->fit, s->target);
    tp_dimension_input_number(f, "target", target);
    if (isinf(time) || time == 0) {
        tp_dimension_input_text(f, keys[0],
                                time != 0 ? "never: the plateau of the curve is before it"
                                          : "none: the curve begins there");
        return;
    }
    say_time(f, keys, time, s->z * s->sd_log_time, steps);
    tp_dimension_input_number(f, "seconds_to_target", time * steps * seconds);
}

static void convergence_of(const tp_curve *all, double sign, const tp_dimension_question *q,
                           tp_dimension_figures *f)
{
    static const char *const keys[] = {"steps_to_95_percent", "steps_to_95_percent_low",
                                       "steps_to_95_percent_high"};
    double x[MOST_POINTS], y[MOST_POINTS], level = q->level;
    /* A point is of so many records, of which fewer are left over at the end. */
    size_t length = (all->n + MOST_POINTS - 1) / MOST_POINTS,
           n = all->n / TP_MAX(length, (size_t)1);
    decay_spread s = {.target = sign * q->target};
    if (all->n < LEAST) {
        snprintf(f->why, sizeof f->why, "needs %d steps or more, got %zu", LEAST, all->n);
        return;
    }
    tp_batch_means(all->value, all->n, n, y);
    tp_batch_means(all->step, all->n, n, x);
    double steps = tp_curve_scale(x, n), t = (all->step[all->n - 1] - all->step[0]) / steps;
    for (size_t i = 0; i < n; i++)
        y[i] *= sign;
    if (tp_fit_decay(x, y, n, &s.fit, NULL) != TP_OK || s.fit.why || s.fit.weak || !(s.fit.a > 0)) {
        snprintf(f->why, sizeof f->why, "no %s curve could be fitted: %s",
                 sign > 0 ? "falling" : "rising",
                 s.fit.why     ? s.fit.why
                 : s.fit.a > 0 ? "its course is no larger than the noise"
                 : sign > 0    ? "the metric rises"
                               : "the metric falls");
        return;
    }
    f->value = 1 - exp(-s.fit.k * t);
    f->n = all->n;
    find_spread(&s, x, y, n, level);
    const char *against = misfit(x, y, n, &s.fit);
    if (against) {
        s.sd_log_k = s.sd_c = s.sd_log_time = NAN;
        tp_dimension_input_text(f, "fit", against);
    }
    if (!isnan(s.sd_log_k)) {
        f->lo = 1 - exp(-s.fit.k * exp(-s.z * s.sd_log_k) * t);
        f->hi = 1 - exp(-s.fit.k * exp(s.z * s.sd_log_k) * t);
        tp_dimension_input_number(f, "plateau_low", sign * s.fit.c - s.z * s.sd_c);
        tp_dimension_input_number(f, "plateau_high", sign * s.fit.c + s.z * s.sd_c);
    }
    tp_dimension_input_number(f, "plateau_at", sign * s.fit.c);
    tp_dimension_input_number(f, "half_life_steps", s.fit.half_life * steps);
    say_time(f, keys, log(20) / s.fit.k, s.z * s.sd_log_k, steps);
    if (!isnan(q->target))
        say_target(&s, q->target, steps, seconds_of_a_step(q->runs[0]), f);
    tp_dimension_input_number(f, "r2", s.fit.r2);
    say_course(x, y, n, f);
    snprintf(f->method, sizeof f->method,
             "c + a e^(-kt) by least squares on %zu means; ln k from %d redrawn in blocks", n,
             REPLICATES);
}

void tp_dimension_convergence(const tp_dimension_question *q, tp_dimension_figures *f)
{
    bool is_reward;
    TP_OWN(tp_curve) c = tp_curve_learned(q->runs[0], &is_reward);
    if (!tp_dimension_has_metric(f, &c, "training", TP_ROLE_LOSS, TP_ROLE_REWARD))
        return;
    tp_dimension_input_metric(f, "metric", &c);
    if (is_reward)
        tp_dimension_input_text(f, "fitted", "minus the reward");
    if (tp_dimension_has_end(f, &c)) {
        convergence_of(&c, is_reward ? -1 : 1, q, f);
        snprintf(
            f->advice, sizeof f->advice,
            "train on: see steps_to_95_percent; or raise the learning rate early and let it decay");
    }
}
