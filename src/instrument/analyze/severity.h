/* severity.h - how much a finding matters. */
#ifndef TP_INSTRUMENT_ANALYZE_SEVERITY_H
#define TP_INSTRUMENT_ANALYZE_SEVERITY_H

typedef enum { TP_SEVERITY_LOW, TP_SEVERITY_MEDIUM, TP_SEVERITY_HIGH } tp_severity;

static inline const char *tp_severity_name(tp_severity severity)
{
    static const char *const names[] = {"low", "medium", "high"};
    return names[severity];
}

#endif
