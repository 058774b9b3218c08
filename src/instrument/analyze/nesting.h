/* nesting.h - which span ran inside which, and what was its own.
 *
 * Spans of one thread nest by time: a span is the child of the innermost span that
 * began no later and ended no earlier.  Spans that merely overlap have no relation (as in
 * PyTorch's profiler).  Equal spans nest in the order of the file.
 *
 *     self by union = duration - length of the union of the direct children
 *     self by sum   = duration - sum of the direct children's durations
 *
 * The two differ only where children overlap each other.  One sweep with a stack. */
#ifndef TP_INSTRUMENT_ANALYZE_NESTING_H
#define TP_INSTRUMENT_ANALYZE_NESTING_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int64_t start, end;
    uint32_t event;  /* in the trace */
    uint32_t thread; /* any number; spans nest within equal ones only */
} tp_time_span;

enum { TP_NO_PARENT = UINT32_MAX };

/* Order by (thread, start, end descending), else as they were. */
void tp_spans_sort(tp_time_span *v, size_t n);

/* Of sorted spans: parent[i] is the number of i's parent in v or TP_NO_PARENT.  Each
 * array has n entries; self_union and self_sum may be NULL. */
void tp_spans_nest(const tp_time_span *v, size_t n, uint32_t *parent, int64_t *self_union,
                   int64_t *self_sum);

/* The innermost span of `thread` that covers `at`, or TP_NO_PARENT; parent as above. */
uint32_t tp_spans_at(const tp_time_span *v, size_t n, const uint32_t *parent, uint32_t thread,
                     int64_t at);

#endif
