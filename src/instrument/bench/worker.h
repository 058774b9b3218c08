/* worker.h - a subject in another process, one line of JSON per message.
 *
 *     we                                       the worker
 *     {"benchmark": NAME, "options": {...}} ->
 *                                           <- {"ready": true, "work_unit": "steps",
 *                                               "work": 10 (of a round; 0: as needed),
 *                                               "metrics": [{"name": ..., "unit": ...,
 *                                               "direction": "higher", "class": "noisy"}]}
 *     {"run": WORK}                         ->
 *                                           <- {"elapsed_ns": N, "values": {NAME: X},
 *                                               "checksum": "hex",
 *                                               "involuntary_switches": N}
 *     end of input                          ->  (it ends)
 *
 * Either answer may be {"error": "why"} instead.  A process of its own keeps memory
 * figures apart and makes a crash a failed benchmark; it is how two versions of a program
 * are measured in one session.  docs/formats/bench.md has the protocol for programs that
 * want to be measured. */
#ifndef TP_INSTRUMENT_BENCH_WORKER_H
#define TP_INSTRUMENT_BENCH_WORKER_H

#include "base/arena.h"
#include "instrument/bench/process.h"
#include "instrument/bench/subject.h"
#include "text/json/json.h"

typedef struct {
    tp_subject subject;
    const char *const *argv;
    const char *request; /* the first line */
    double timeout_s;    /* of one answer */
    tp_arena *arena;
    tp_metric metrics[TP_BENCH_MAX_METRICS];
    size_t n_named; /* by the worker; behind them the time where it is none of them */
    tp_pipe pipe;
    uint64_t seed, n_starts;
} tp_worker_subject;

/* `argv`, `request` and `arena` outlive the subject. */
void tp_worker_subject_init(tp_worker_subject *s, const char *const *argv, const char *request,
                            double timeout_s, uint64_t seed, tp_arena *arena);

/* The other end: answer requests on `in` until it ends.  `open` makes the subject of a
 * benchmark (an error becomes an answer); the subject is torn down when the input ends. */
typedef tp_status (*tp_worker_open)(void *context, const char *benchmark, const tp_json *options,
                                    tp_subject **ret, tp_error *err);
TP_CHECKED tp_status tp_worker_serve(FILE *in, FILE *out, tp_worker_open open, void *context,
                                     tp_error *err);

#endif
