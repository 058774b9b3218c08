/* run_band.h - several runs of one thing as a line and a band.
 *
 * The line is the mean over the runs at each place that all have; the band around it Student's t
 * interval of that mean, place by place, runs being what is counted.  One run alone is its own line
 * and has no band: what another seed would give it cannot know. */
#ifndef TP_INSTRUMENT_REPORT_RUN_BAND_H
#define TP_INSTRUMENT_REPORT_RUN_BAND_H

#include "instrument/analyze/runs/align.h"
#include "instrument/report/picture.h"

/* What the band is, for a legend: 100 * level goes in. */
#define TP_RUN_BAND_INTERVAL "%.4g %% interval of the mean over runs, t"

typedef struct {
    double *place, *mean, *lower, *upper; /* n of each; no lower and upper of one run */
    size_t n;
} tp_run_band;

/* More places than a band can show become means of as many neighbours; returns of how many.  What
 * is left over at the end goes with the last ones. */
size_t tp_run_band_thin(tp_aligned *values);
/* Over rows [from, from + runs) of the values. */
void tp_run_band_make(tp_run_band *band, const tp_aligned *values, size_t from, size_t runs,
                      double level);
tp_series tp_run_band_series(const tp_run_band *band, const char *name); /* points into the band */
void tp_run_band_release(tp_run_band *band);

#endif
