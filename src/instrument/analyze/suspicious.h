/* suspicious.h - data that cannot be right, or that hides something.
 *
 * Every such thing is marked with how often it occurs and how much time it concerns;
 * nothing is repaired behind the user's back and nothing hidden is called idle. */
#ifndef TP_INSTRUMENT_ANALYZE_SUSPICIOUS_H
#define TP_INSTRUMENT_ANALYZE_SUSPICIOUS_H

#include "instrument/analyze/selection.h"

typedef struct {
    const char *what; /* "negative durations" */
    int64_t count;
    int64_t ns; /* time concerned, TP_UNKNOWN when there is none to name */
    const char *meaning;
    bool is_serious; /* figures may be wrong because of it */
} tp_suspicion;

enum { TP_MAX_SUSPICIONS = 16 };

typedef struct {
    tp_suspicion list[TP_MAX_SUSPICIONS];
    size_t n;
} tp_suspicions;

void tp_suspicions_find(const tp_selection *selection, tp_suspicions *ret);

#endif
