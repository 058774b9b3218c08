/* history.h - what was measured, over time: sessions, results, metrics, raw samples.
 *
 * One SQLite file with three tables; docs/formats/bench.md shows them.  Sessions are written
 * in one transaction and never changed: a crash leaves the sessions before it.  Several
 * processes may use the file. */
#ifndef TP_INSTRUMENT_BENCH_HISTORY_H
#define TP_INSTRUMENT_BENCH_HISTORY_H

#include "instrument/bench/report.h"

/* Add what a session measured, of results that did not fail: all of it or nothing.  A new file
 * gets its folder. */
TP_CHECKED tp_status tp_history_record(const char *path, const tp_bench_report *r, tp_error *err);

/* ---- reading ---- */

typedef struct tp_history tp_history;
TP_CHECKED tp_status tp_history_open(const char *path, tp_history **ret, tp_error *err);
void tp_history_close(tp_history *h); /* NULL is a no-op */

/* One value of a series; texts are valid during the call. */
typedef struct {
    const char *name, *metric, *unit, *direction, *kind;
    const char *started, *commit, *host; /* commit: "" when unknown */
    bool is_dirty, is_informative;
    double median, lower, upper;
    const double *samples;
    size_t n;
} tp_history_point;
typedef tp_status (*tp_history_visit)(void *user, const tp_history_point *point, tp_error *err);

/* Every point, ordered by name, metric, unit and time.  `host` NULL: all hosts. */
TP_CHECKED tp_status tp_history_read(tp_history *h, const char *host, tp_history_visit visit,
                                     void *user, tp_error *err);

#endif
