/* report.h - a profile as text and as JSON. */
#ifndef TP_INSTRUMENT_PROFILE_REPORT_H
#define TP_INSTRUMENT_PROFILE_REPORT_H

#include "instrument/profile/baseline.h"

typedef struct {
    const char *name, *recipe, *dir;
    const tp_profile_data *data;
    const tp_profile_comparison *comparison; /* or NULL */
    const char *trace;                       /* of the recorded steps, or NULL */
    const char *recorded;                    /* what is in it, a JSON object; or NULL */
    const tp_findings *bottlenecks;
    int width; /* columns of text; 0: 110 */
} tp_profile_report;

void tp_profile_text(const tp_profile_report *r, tp_buf *out);
void tp_profile_write(const tp_profile_report *r, tp_json_w *w);

/* A comparison by itself: a table, and an object. */
void tp_profile_comparison_text(const tp_profile_comparison *c, int width, tp_buf *out);
void tp_profile_comparison_write(const tp_profile_comparison *c, tp_json_w *w);

#endif
