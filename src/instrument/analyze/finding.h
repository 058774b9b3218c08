/* finding.h - a bottleneck: what costs how much, how one knows, what to try.
 *
 * A finding is a rule that fired, over the analyses of a trace (findings.h) or the figures of a
 * profile (profile/bottlenecks.h).  Its cost is time that was measured, never a prediction of what
 * a change would save; costs overlap and do not add up.  Severity is the cost's share of the whole:
 * high from 20 %, medium from 5 %. */
#ifndef TP_INSTRUMENT_ANALYZE_FINDING_H
#define TP_INSTRUMENT_ANALYZE_FINDING_H

#include "instrument/ingest/events.h"

typedef enum { TP_SEVERITY_LOW, TP_SEVERITY_MEDIUM, TP_SEVERITY_HIGH } tp_severity;
const char *tp_severity_name(tp_severity severity); /* "low", "medium", "high" */

/* Growing memory, by bytes a step: medium above 10 MB, high above 100 MB. */
tp_severity tp_severity_of_growth(double bytes_per_step);
/* What is busy less than 80 % of the time is medium, less than 50 % high; false: busier than that.
 */
bool tp_severity_of_use(double busy, tp_severity *ret);

/* Below this share of the whole a cost is not worth a word. */
#define TP_FINDING_LEAST_SHARE 0.02

typedef struct {
    tp_severity severity;
    char title[80];
    char evidence[320];
    int64_t cost_ns;    /* TP_UNKNOWN: costs memory or certainty, not time */
    const char *advice; /* static */
} tp_finding;

enum { TP_MAX_FINDINGS = 32 };

typedef struct {
    tp_finding list[TP_MAX_FINDINGS]; /* sorted: the gravest first, then by cost */
    size_t n;
} tp_findings;

/* A new one, its severity by `share` of the whole, its evidence empty; when all places are taken
 * the last is written over. */
tp_finding *tp_findings_add(tp_findings *f, const char *title, int64_t cost_ns, double share,
                            const char *advice);
void tp_finding_evidence(tp_finding *finding, const char *fmt, ...) TP_PRINTF(2, 3);
void tp_findings_sort(tp_findings *f);

#endif
