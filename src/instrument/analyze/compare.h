/* compare.h - before and after: what changed, by how much, and is it shown?
 *
 * Totals are compared per step where both traces mark steps, else whole. Names are matched
 * as they are; what only one side has appeared or disappeared.
 *
 * A verdict needs steps, because steps vary.  With as many steps on both sides the k-th
 * is paired with the k-th (same work, same order); else the two sets are independent.
 * The rule is that of change.h, the margin of "same" 1 % of before; p is adjusted for the many rows
 * of a table (totals: Holm; names: Benjamini-Hochberg).
 * The test draws 9999 times, fewer above 2000 steps, and a table is judged from the largest
 * change down as far as 2e9 drawn values go.
 * Steps of one run are not runs: a verdict speaks of these two traces. */
#ifndef TP_INSTRUMENT_ANALYZE_COMPARE_H
#define TP_INSTRUMENT_ANALYZE_COMPARE_H

#include "instrument/analyze/change.h"
#include "instrument/analyze/operators.h"

enum { TP_COMPARE_MIN_STEPS = TP_CHANGE_LEAST };

typedef enum { TP_COMPARE_IN_BOTH, TP_COMPARE_APPEARED, TP_COMPARE_DISAPPEARED } tp_presence;

typedef struct {
    uint32_t name; /* in tp_comparison.names */
    tp_presence presence;
    int64_t before_count, after_count;
    int64_t before_ns, after_ns;    /* whole traces */
    double before_step, after_step; /* mean per step; NaN without steps */
    tp_change_evidence e;           /* of after - before per step; p adjusted */
    tp_change verdict;
} tp_compare_row;

typedef struct {
    tp_compare_row *rows; /* by size of the change */
    size_t n;
    size_t n_untested; /* at the end: so many names and steps that they were not judged */
} tp_compare_table;

typedef struct {
    size_t before_steps, after_steps;
    size_t before_devices, after_devices; /* their times are added up */
    bool is_paired;
    tp_compare_table totals;    /* step, busy, compute, exposed ..., in this order */
    tp_compare_table phases;    /* annotations of the host */
    tp_compare_table operators; /* device self time; host self time without device work */
    tp_compare_table kernels;
    bool operators_by_host;
    tp_string_table names;
} tp_comparison;

TP_CHECKED tp_status tp_compare(const tp_selection *before, const tp_selection *after,
                                tp_comparison *ret, tp_error *err);
/* The step takes longer, and that is shown. */
bool tp_comparison_is_worse(const tp_comparison *comparison);
void tp_comparison_release(tp_comparison *comparison);

#endif
