/* gate.h - from comparisons to one answer for the whole suite, and its exit status.
 *
 * Twenty benchmarks judged at 5 % each fail harmless changes in 64 of 100 runs; so all
 * noisy comparisons of a session are one family under Holm's correction, and only what
 * survives it is a REGRESSION.
 *
 *     0  nothing regressed            1  a regression, or something is missing
 *     2  usage or input (elsewhere)   3  something could not be measured
 *     4  no benchmark matched
 *
 * INCONCLUSIVE is a warning, or 1 with `strict`.  A benchmark without a baseline (NEW)
 * and a baseline without its benchmark (MISSING) are 1 unless allowed; they never pass. */
#ifndef TP_INSTRUMENT_BENCH_GATE_H
#define TP_INSTRUMENT_BENCH_GATE_H

#include "instrument/bench/report.h"

typedef struct {
    bool strict, allow_missing;
} tp_gate_options;

/* The number of noisy comparisons that a suite will judge together. */
size_t tp_gate_family(const tp_bench_report *r);

/* Holm over the noisy comparisons, or with rule.by_point the plain rule, then the verdict of every
 * benchmark. */
TP_CHECKED tp_status tp_gate_settle(tp_bench_report *r, tp_error *err);

typedef struct {
    size_t by_verdict[TP_BENCH_COUNT];
    size_t n_point_regressions; /* benchmarks that the plain rule would fail */
    int exit_status;
} tp_gate_summary;
/* "1 REGRESSION  12 PASS  ", gravest first. */
void tp_gate_say_counts(const tp_gate_summary *s, tp_buf *out);
tp_gate_summary tp_gate_conclude(const tp_bench_report *r, const tp_gate_options *options);

/* How many unpaired comparisons of a settled report could not show a regression whatever their
 * values are; *ret_rounds: on each side would be enough. */
size_t tp_gate_too_short(const tp_bench_report *r, size_t *ret_rounds);

/* Benjamini-Hochberg at this rate: benchmarks worth a look although the gate passes.
 * Appends their names, comma-separated. */
void tp_gate_suspects(const tp_bench_report *r, double rate, tp_buf *out);

/* Compare two stored reports, unpaired: `current` gets side A from `base`, and results for
 * what it lacks (MISSING).  With a pattern filter those not matching are left out
 * (`matches` NULL: all). */
TP_CHECKED tp_status tp_gate_compare_stored(const tp_bench_report *base, tp_bench_report *current,
                                            bool (*matches)(void *user, const char *name),
                                            void *user, tp_error *err);

#endif
