/* dimension_convergence.c - is the loss there yet?
 *
 * y = c + a e^(-kt) is fitted; the value is 1 - e^(-k (n - 1)), the share of the way from start to
 * plateau that was gone.  Its interval: residuals are drawn again in blocks, the curve is fitted
 * again, and the spread of ln k says how far k may be off. */
#include <math.h>

#include "base/vec.h"
#include "instrument/analyze/runs/dimension.h"
#include "stats/bootstrap.h"
#include "stats/changepoint.h"
#include "stats/curves.h"
#include "stats/descriptive.h"
#include "stats/special.h"

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

/* Standard deviations of ln k and of c over replicates; false when too few could be fitted. */
static bool spread_of(const tp_decay *fit, const double *y, size_t n, double *ret_log_k,
                      double *ret_c, double *ret_df)
{
    TP_FREED double *space = tp_vec_new(3 * n + 2 * REPLICATES, sizeof *space);
    double *fitted = space, *residual = space + n, *drawn = space + 2 * n, *log_k = space + 3 * n;
    double *c = log_k + REPLICATES;
    size_t n_fits = 0;
    for (size_t i = 0; i < n; i++) {
        fitted[i] = fit->c + fit->a * exp(-fit->k * (double)i);
        residual[i] = (y[i] - fitted[i]) * sqrt((double)n / (double)(n - 3));
    }
    size_t blocks = tp_batch_count(residual, n), block = n / blocks;
    *ret_df = blocks > 5 ? (double)blocks - 3 : 2; /* blocks are what is independent */
    tp_splitmix stream = {1};
    for (int r = 0; r < REPLICATES; r++) {
        tp_decay again;
        redraw(fitted, residual, n, block ? block : 1, &stream, drawn);
        if (tp_fit_decay(drawn, n, &again, NULL) == TP_OK && !again.why && again.k > 0) {
            log_k[n_fits] = log(again.k);
            c[n_fits++] = again.c;
        }
    }
    double more = sqrt(tp_batch_inflation(residual, n, block ? block : 1));
    *ret_log_k = n_fits > REPLICATES / 2 ? more * tp_sd(log_k, n_fits) : NAN;
    *ret_c = n_fits > REPLICATES / 2 ? more * tp_sd(c, n_fits) : NAN;
    return n_fits > REPLICATES / 2;
}

static void say_course(const double *y, size_t n, tp_dimension_figures *f)
{
    tp_loss_curve course;
    tp_changepoint points[MOST_POINTS];
    size_t n_points = 0;
    const tp_changepoint_options options = {
        .min_segment = 10, .n_permutations = 199, .seed = 1, .alpha = 0.01};
    if (tp_analyze_loss(y, n, 0, 0, &course, NULL) == TP_OK && !course.why) {
        tp_dimension_input_text(f, "plateau", course.is_plateau ? "yes" : "no");
        tp_dimension_input_number(f, "largest_rise", course.max_drawup);
        tp_dimension_input_number(f, "spikes", (double)course.n_spikes);
    }
    /* of the residuals' second half: the decay itself is no change */
    if (n >= 40 &&
        tp_changepoints(y + n / 2, n - n / 2, &options, points, &n_points, NULL) == TP_OK)
        tp_dimension_input_number(f, "changes_in_last_half", (double)n_points);
}

static void convergence_of(const double *all, size_t n_all, double level, tp_dimension_figures *f)
{
    double y[MOST_POINTS], sd_log_k, sd_c, df, low = NAN, high = NAN;
    size_t n = n_all < MOST_POINTS ? n_all : MOST_POINTS;
    tp_decay fit;
    if (n_all < LEAST) {
        snprintf(f->why, sizeof f->why, "needs %d steps or more, got %zu", LEAST, n_all);
        return;
    }
    tp_batch_means(all, n_all, n, y);
    if (tp_fit_decay(y, n, &fit, NULL) != TP_OK || fit.why || fit.weak || !(fit.a > 0)) {
        snprintf(f->why, sizeof f->why, "no falling curve could be fitted: %s",
                 fit.why      ? fit.why
                 : fit.a <= 0 ? "the metric rises"
                              : "the fall is no larger than the noise");
        return;
    }
    double steps_per_point = (double)(n_all / n), t = (double)(n_all - 1) / steps_per_point;
    f->value = 1 - exp(-fit.k * t);
    f->n = n_all;
    if (spread_of(&fit, y, n, &sd_log_k, &sd_c, &df)) {
        double z = tp_t_quantile(1 - (1 - level) / 2, df);
        low = fit.k * exp(-z * sd_log_k);
        high = fit.k * exp(z * sd_log_k);
        f->lo = 1 - exp(-low * t);
        f->hi = 1 - exp(-high * t);
        tp_dimension_input_number(f, "plateau_low", fit.c - z * sd_c);
        tp_dimension_input_number(f, "plateau_high", fit.c + z * sd_c);
    }
    tp_dimension_input_number(f, "plateau_at", fit.c);
    tp_dimension_input_number(f, "half_life_steps", fit.half_life * steps_per_point);
    tp_dimension_input_number(f, "steps_to_95_percent", log(20) / fit.k * steps_per_point);
    tp_dimension_input_number(f, "steps_to_95_percent_low", log(20) / high * steps_per_point);
    tp_dimension_input_number(f, "steps_to_95_percent_high", log(20) / low * steps_per_point);
    tp_dimension_input_number(f, "r2", fit.r2);
    say_course(y, n, f);
    snprintf(f->method, sizeof f->method,
             "c + a e^(-kt) by least squares on %zu means; ln k from %d redrawn in blocks", n,
             REPLICATES);
}

void tp_dimension_convergence(const tp_dimension_question *q, tp_dimension_figures *f)
{
    tp_curve c = tp_curve_of(q->runs[0], TP_ROLE_REWARD);
    bool is_reward = c.n > 0;
    char names[300];
    if (!is_reward)
        c = tp_curve_of(q->runs[0], TP_ROLE_LOSS);
    if (!c.n) {
        snprintf(f->why, sizeof f->why, "no metric of training; looked for %s",
                 tp_role_names(TP_ROLE_LOSS, names, sizeof names));
        return;
    }
    tp_dimension_input_text(f, "metric", c.tag);
    for (size_t i = 0; is_reward && i < c.n; i++)
        c.value[i] = -c.value[i];
    if (is_reward)
        tp_dimension_input_text(f, "fitted", "minus the reward");
    convergence_of(c.value, c.n, q->level, f);
    snprintf(
        f->advice, sizeof f->advice,
        "train on: see steps_to_95_percent; or raise the learning rate early and let it decay");
    tp_curve_release(&c);
}
