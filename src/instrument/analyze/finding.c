/* finding.c - the list of what was found. */
#include "instrument/analyze/finding.h"
#include "base/order.h"

#include <stdlib.h>

static const double HIGH = 0.20, MEDIUM = 0.05;

const char *tp_severity_name(tp_severity severity)
{
    static const char *const names[] = {"low", "medium", "high"};
    return names[severity];
}

tp_severity tp_severity_of_growth(double bytes)
{
    return bytes > 100e6 ? TP_SEVERITY_HIGH : bytes > 10e6 ? TP_SEVERITY_MEDIUM : TP_SEVERITY_LOW;
}

bool tp_severity_of_use(double busy, tp_severity *ret)
{
    *ret = busy < 0.5 ? TP_SEVERITY_HIGH : TP_SEVERITY_MEDIUM;
    return busy < 0.8;
}

tp_finding *tp_findings_add(tp_findings *f, const char *title, int64_t cost_ns, double share,
                            const char *advice)
{
    tp_finding *one = &f->list[f->n < TP_MAX_FINDINGS ? f->n++ : TP_MAX_FINDINGS - 1];
    *one = (tp_finding){.cost_ns = cost_ns, .advice = advice};
    snprintf(one->title, sizeof one->title, "%s", title);
    one->severity = share >= HIGH     ? TP_SEVERITY_HIGH
                    : share >= MEDIUM ? TP_SEVERITY_MEDIUM
                                      : TP_SEVERITY_LOW;
    return one;
}

void tp_finding_evidence(tp_finding *finding, const char *fmt, ...)
{
    TP_FORMAT(finding->evidence, fmt);
}

TP_ORDER(by_cost, tp_finding,
         TP_COMPARE(y->severity, x->severity) ?: TP_COMPARE(y->cost_ns, x->cost_ns))

void tp_findings_sort(tp_findings *f) { qsort(f->list, f->n, sizeof *f->list, by_cost); }
