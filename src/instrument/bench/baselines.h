/* baselines.h - levels to compare with later: baselines.json.
 *
 *     {"train/llama/f32/512": {
 *         "name": ..., "throughput_tokens_per_sec": 41250.0, "peak_memory_mb": 61.2,
 *         "tolerance": 0.05, "version": "0.1.0", "timestamp": "2026-11-21T05:00:00Z",
 *         "samples": [...], "sd_between": null, "host": "9f...", "commit": "...",
 *         "metrics": {"throughput": {"unit": ..., "direction": ..., "class": ...,
 *                                    "median": ..., "sessions": [...]}, ...}}}
 *
 * The first six members are what other tools write and read; the rest is ours and may be
 * missing.  Where both say the same thing, the first six win, so that a file edited by hand
 * means what it shows.  A baseline is a level from another session: the comparison is
 * unpaired and its band is as wide as sessions differ. */
#ifndef TP_INSTRUMENT_BENCH_BASELINES_H
#define TP_INSTRUMENT_BENCH_BASELINES_H

#include "instrument/bench/gate.h"

/* Sessions kept per metric for the between-session deviation, and how many are needed. */
enum { TP_BASELINE_SESSIONS = 50 };

/* Between-session deviation (of logs) taken when it was never measured: on the host that
 * the baseline names, and when the baseline names no host (hosted machines of one kind were
 * seen to differ by 7 to 26 %). */
#define TP_BASELINE_SD_SAME_HOST 0.06
#define TP_BASELINE_SD_UNKNOWN_HOST 0.25

typedef struct {
    tp_metric metric;
    double level;           /* of the sessions: the geometric mean */
    const double *sessions; /* medians of earlier sessions, oldest first */
    size_t n_sessions;
    double sd_between; /* of ln sessions; NaN: fewer than TP_BASELINE_LEAST_SESSIONS */
} tp_baseline_metric;

typedef struct {
    const char *name;
    double tolerance;                                /* NaN: not said */
    const char *version, *timestamp, *host, *commit; /* "" when not said */
    const double *samples;                           /* of the first metric, latest session */
    size_t n_samples;
    tp_baseline_metric *metrics;
    size_t n_metrics;
} tp_bench_baseline;

typedef struct {
    tp_arena arena;
    tp_bench_baseline *items;
    size_t n, capacity;
} tp_baselines;

TP_CHECKED tp_status tp_baselines_init(tp_baselines *b, tp_error *err);
void tp_baselines_release(tp_baselines *b);

/* NaN, zero, negative and infinite levels are refused with their place. */
TP_CHECKED tp_status tp_baselines_read(const char *name, const char *text, size_t n,
                                       tp_baselines *ret, tp_error *err);
void tp_baselines_write(const tp_baselines *b, tp_buf *out);
tp_bench_baseline *tp_baselines_find(const tp_baselines *b, const char *name);

/* Compare what was measured with its baselines.  Benchmarks without one become NEW,
 * baselines that match the filter and were not measured MISSING, and a baseline of another
 * host counts as none.  r->host must be known. */
TP_CHECKED tp_status tp_baselines_compare(const tp_baselines *b, tp_bench_report *r,
                                          bool (*matches)(void *user, const char *name), void *user,
                                          tp_error *err);

/* Take the report's results over.  Refused, with the reason: failed or short measurements,
 * degenerate values, and entries that another host recorded.  Nothing is changed then.  Where the
 * comparison showed a change, the sessions before it no longer count: the level is the new one. */
TP_CHECKED tp_status tp_baselines_update(tp_baselines *b, const tp_bench_report *r, tp_error *err);

#endif
