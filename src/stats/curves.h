/* curves.h - loss curves: where do they go, how fast, are they there yet?
 *
 * y = c + A exp(-k t), t = x - x_0, or 0, 1, 2, ... where x is NULL: for each k the best c and A
 * are linear (variable projection), so only ln k is searched.  x rises, by 1 on average. */
#ifndef TP_STATS_CURVES_H
#define TP_STATS_CURVES_H

#include "stats/common.h"
#include "stats/trend.h"

typedef struct {
    double k, c, a;   /* rate per 1 of x, plateau, height above it at t = 0 */
    double sse, rmse; /* rmse = sqrt(sse / (n - 3)) */
    double half_life, r2;
    const char *why;  /* not identifiable: n < 4, a constant, a rate at the edge of the search */
    const char *weak; /* defined, but |a| < 3 rmse: do not build on k */
} tp_decay;
TP_CHECKED tp_status tp_fit_decay(const double *x, const double *y, size_t n, tp_decay *ret,
                                  tp_error *err);

typedef struct {
    tp_decay fit;
    double ewma, ewma_bias_corrected; /* last values */
    double threshold;                 /* c + 0.05 (y_0 - c) */
    size_t convergence_step; /* first t from which the EWMA stays at or below the threshold */
    bool has_converged;
    double residual_sd_last_half, residual_mad_sigma;
    double max_drawup;      /* largest rise above the running minimum */
    double stability_score; /* 1 / (1 + residual_sd_last_half / |c|) */
    size_t n_spikes;        /* residuals beyond 5 MAD sigma */
    size_t window;          /* of last values */
    bool is_plateau; /* their slope's 95 % interval holds 0 and |slope| window < 0.5 % of y_0 - c */
    const char *why;
} tp_loss_curve;
/* alpha of the EWMA 0.1, window 10 unless given (0).  x is that of the fit alone. */
TP_CHECKED tp_status tp_analyze_loss(const double *x, const double *y, size_t n, double ewma_alpha,
                                     size_t window, tp_loss_curve *ret, tp_error *err);

/* The first index from which the trend of the last `window` gaps (validation - training)
 * is increasing at alpha (Mann-Kendall, Hamed and Rao's variance where neighbours are correlated
 * by r and the rest follows from that); n when never. */
TP_CHECKED tp_status tp_overfit_onset(const double *gap, size_t n, size_t window, double r,
                                      double alpha, size_t *ret, tp_error *err);

/* ret, of n values: what the line of least squares leaves of x.  Returns its sum of squares. */
double tp_beside_line(const double *x, size_t n, double *ret);

/* How alike neighbours are beside the course of a series: the correlation of those that straight
 * lines leave, one to each of `pieces` equal parts, or one that bends once where it fits best.
 * Without bias, from 0 to 0.99; 0 where nothing is left. */
double tp_lag1_beside_lines(const double *x, size_t n, size_t pieces);
double tp_lag1_beside_bend(const double *x, size_t n);

#endif
