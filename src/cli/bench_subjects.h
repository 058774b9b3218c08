/* bench_subjects.h - what of the engine can be measured: one row per kind.
 *
 * A kind is a function that makes a subject of a case; the subject frees itself in
 * tear_down.  To add one: a file bench_<kind>.c, a declaration here, a row in
 * bench_subjects.c, and rows in bench_suite.def. */
#ifndef TP_CLI_BENCH_SUBJECTS_H
#define TP_CLI_BENCH_SUBJECTS_H

#include "cli/bench_case.h"
#include "engine/backend/backend.h"
#include "engine/model/model.h"

/* Case and subject live as long as the process: a worker measures one benchmark. */
TP_CHECKED tp_status tp_bench_open(void *context, const char *benchmark, const tp_json *options,
                                   tp_subject **ret, tp_error *err);

/* Kinds known, for messages: "train, generate, ...". */
void tp_bench_kinds(tp_buf *out);
bool tp_bench_kind_exists(const char *kind);

TP_CHECKED tp_status tp_bench_open_train(const tp_bench_case *c, tp_subject **ret, tp_error *err);
TP_CHECKED tp_status tp_bench_open_generate(const tp_bench_case *c, tp_subject **ret,
                                            tp_error *err);
TP_CHECKED tp_status tp_bench_open_tokenize(const tp_bench_case *c, tp_subject **ret,
                                            tp_error *err);
TP_CHECKED tp_status tp_bench_open_kernel(const tp_bench_case *c, tp_subject **ret, tp_error *err);
TP_CHECKED tp_status tp_bench_open_trace(const tp_bench_case *c, tp_subject **ret, tp_error *err);

/* ---- for the kinds ---- */

/* A model by its built-in name ("llama", "llama-small") or by path. */
TP_CHECKED tp_status tp_bench_model(const char *name, tp_model **ret, tp_error *err);
TP_CHECKED tp_status tp_bench_precision(const char *name, tp_dtype *ret, tp_error *err);
TP_CHECKED tp_status tp_bench_backend(const tp_bench_case *c, const tp_backend **ret,
                                      tp_error *err);
int tp_bench_threads(const tp_bench_case *c);

/* The metrics that all kinds share come last, in this order. */
enum {
    TP_BENCH_PEAK,        /* bytes of the engine's buffers: exact */
    TP_BENCH_MEAN,        /* the same on average over the steps of a run: informative */
    TP_BENCH_ALLOCATIONS, /* of buffers since the start: exact */
    TP_BENCH_RESIDENT,    /* of the process, at its peak: noisy */
    TP_BENCH_SHARED
};
extern const tp_metric tp_bench_shared_metrics[TP_BENCH_SHARED];
/* Fill in sample->values[first ...]; `mean_bytes` is of the run. */
void tp_bench_fill_memory(tp_bench_sample *sample, size_t first, double mean_bytes);

#endif
