/* bench_subjects.h - what of the engine can be measured: one row per kind.
 *
 * A kind is a const table: how to set up, run and tear down, and what it measures beside
 * the memory that all kinds measure.  Its struct begins with a tp_bench_subject and frees
 * itself in tear_down.  To add one: a file bench_<kind>.c, a declaration here, a row in
 * bench_subjects.c, and rows in suite.def. */
#ifndef TP_API_BENCH_SUBJECTS_H
#define TP_API_BENCH_SUBJECTS_H

#include "engine/backend/backend.h"
#include "engine/model/model.h"
#include "instrument/bench/metric_rows.h"
#include "instrument/bench/suite.h"

/* Case and subject live as long as the process: a worker measures one benchmark. */
TP_CHECKED tp_status tp_bench_open(void *context, const char *benchmark, const tp_json *options,
                                   tp_subject **ret, tp_error *err);

/* The kinds of the table, for messages: "train, generate, ...". */
void tp_bench_kinds(tp_buf *out);

/* ---- for the kinds ---- */

/* The metrics that all kinds share come last, in this order. */
enum {
    TP_BENCH_PEAK,        /* bytes of the engine's buffers: exact */
    TP_BENCH_MEAN,        /* the same on average over the steps of a run: informative */
    TP_BENCH_ALLOCATIONS, /* of buffers since the start: exact */
    TP_BENCH_RESIDENT,    /* of the process, at its peak: noisy */
    TP_BENCH_SHARED
};

enum { TP_BENCH_MAX_OWN = 8 };

/* First member of what a kind allocates; the metrics are its own, then the shared ones. */
typedef struct {
    tp_subject subject;
    tp_metric metrics[TP_BENCH_MAX_OWN + TP_BENCH_SHARED];
    const tp_bench_case *c;
} tp_bench_subject;

typedef struct {
    const char *name; /* "train": what a case says under "kind" */
    tp_subject_class class;
    size_t size; /* of its struct */
    const tp_metric *metrics;
    size_t n_metrics; /* at most TP_BENCH_MAX_OWN */
    const char *work_unit;
    bool works_in_steps; /* a run is as long as the case says; else as a round needs */
} tp_bench_kind;

const tp_bench_kind *tp_bench_kind_find(const char *name); /* NULL: there is none */

extern const tp_bench_kind tp_bench_train, tp_bench_generate, tp_bench_tokenize, tp_bench_kernel,
    tp_bench_trace, tp_bench_grpo;

/* A model by its built-in name ("llama", "llama-small") or by path. */
TP_CHECKED tp_status tp_bench_model(const char *name, tp_model **ret, tp_error *err);
/* The config.json of a built-in model; false when there is none of that name. */
bool tp_bench_config_text(const char *name, char *out, size_t cap);
TP_CHECKED tp_status tp_bench_precision(const char *name, tp_dtype *ret, tp_error *err);
/* The backend of a case, opened with its threads. */
TP_CHECKED tp_status tp_bench_device(const tp_bench_case *c, tp_device **ret, tp_error *err);
int tp_bench_threads(const tp_bench_case *c);

/* Fill in sample->values[first ...]; `mean_bytes` is of the run. */
void tp_bench_fill_memory(tp_bench_sample *sample, size_t first, double mean_bytes);

#endif
