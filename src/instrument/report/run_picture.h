/* run_picture.h - two runs, or two groups of seeds, as curves with bands. */
#ifndef TP_INSTRUMENT_REPORT_RUN_PICTURE_H
#define TP_INSTRUMENT_REPORT_RUN_PICTURE_H

#include "temper/analysis.h"

/* tp_run_comparison_picture() without its guard. */
TP_CHECKED tp_status tp_run_picture_write(const tp_run_comparison *c, tp_metrics *const *a,
                                          size_t n_a, tp_metrics *const *b, size_t n_b,
                                          const tp_compare_picture_options *options, tp_error *err);

#endif
