/* history.h - what was measured, over time: sessions, results, metrics, raw samples.
 *
 * One SQLite file with three tables; docs/formats/bench.md shows them.  Sessions are written
 * in one transaction and never changed: a crash leaves the sessions before it.  Several
 * processes may use the file. */
#ifndef TP_INSTRUMENT_STORE_HISTORY_H
#define TP_INSTRUMENT_STORE_HISTORY_H

#include "base/error.h"

typedef struct tp_history tp_history;

/* Create the file (and its folder) when `create`; otherwise a missing one is an error. */
TP_CHECKED tp_status tp_history_open(const char *path, bool create, tp_history **ret,
                                     tp_error *err);
void tp_history_close(tp_history *h); /* NULL is a no-op; an open transaction is undone */

/* ---- writing: begin, results with their metrics, end ---- */

typedef struct {
    const char *started, *version, *commit, *branch; /* commit, branch: NULL when unknown */
    bool is_dirty;
    const char *host, *host_name, *cpu;
    const char *compared_with; /* NULL: measured alone */
    int64_t seed;
} tp_history_session;
TP_CHECKED tp_status tp_history_begin(tp_history *h, const tp_history_session *session,
                                      int64_t *ret_id, tp_error *err);

typedef struct {
    const char *name, *work_unit, *order, *verdict, *message; /* all but name may be NULL */
    int64_t work, rounds;
} tp_history_result;
TP_CHECKED tp_status tp_history_add_result(tp_history *h, int64_t session,
                                           const tp_history_result *result, int64_t *ret_id,
                                           tp_error *err);

typedef struct {
    const char *name, *unit, *direction, *kind;
    bool is_informative;
    double median, lower, upper;           /* NaN: unknown */
    const double *samples, *other_samples; /* of the measured side, of the other */
    size_t n, n_other;
} tp_history_metric;
TP_CHECKED tp_status tp_history_add_metric(tp_history *h, int64_t result,
                                           const tp_history_metric *metric, tp_error *err);
TP_CHECKED tp_status tp_history_end(tp_history *h, tp_error *err);

/* ---- reading ---- */

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
