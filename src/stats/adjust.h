/* adjust.h - many tests at once.
 *
 * 20 tests of true null hypotheses at 0.05 raise at least one false alarm in 64 % of
 * cases.  Holm keeps the chance of any false alarm (the gate's rule); Benjamini-Hochberg
 * the share of false ones among the alarms (a list of suspects), Benjamini-Yekutieli
 * that under any dependence. */
#ifndef TP_STATS_ADJUST_H
#define TP_STATS_ADJUST_H

#include "stats/common.h"

typedef enum { TP_ADJUST_HOLM, TP_ADJUST_BH, TP_ADJUST_BY, TP_ADJUST_BONFERRONI } tp_adjust_method;

/* Adjusted p-values in the order of p; ret may be p.  NaN stays NaN and is not counted. */
TP_CHECKED tp_status tp_adjust(tp_adjust_method method, const double *p, size_t n, double *ret,
                               tp_error *err);

#endif
