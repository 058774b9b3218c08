/* suite.h - one benchmark as it is described: a row of suite.def, an entry of a
 * YAML file, or the options that a worker is asked to run with. */
#ifndef TP_INSTRUMENT_BENCH_SUITE_H
#define TP_INSTRUMENT_BENCH_SUITE_H

#include "instrument/bench/subject.h"
#include "text/json/json.h"

typedef struct {
    const char *name, *kind;
    const char *model; /* built-in, or a folder or config.json */
    const char *precision, *backend, *device;
    const char *command;  /* kinds "command" and "worker" */
    const tp_json *extra; /* kind "worker": options handed on, or NULL */
    const char *origin;   /* "built in", or the file and line */
    int64_t batch_size, sequence_length, steps, warm_up, threads;
} tp_bench_case;

typedef struct {
    tp_bench_case *items;
    size_t n, cap;
    tp_arena arena;
} tp_bench_suite;

/* Batch size 4, length 512, 10 steps, 2 to warm up, backend cpu, device cpu, f32. */
tp_bench_case tp_bench_case_default(void);

/* The built-in rows; then tp_bench_suite_add_file() for more. */
TP_CHECKED tp_status tp_bench_suite_init(tp_bench_suite *suite, tp_error *err);
void tp_bench_suite_release(tp_bench_suite *suite);
/* A YAML file, or a folder whose *.yaml files are taken in the order of their names. */
TP_CHECKED tp_status tp_bench_suite_add(tp_bench_suite *suite, const char *path, tp_error *err);

/* The worker's request about a case, one line; and back. */
void tp_bench_case_request(const tp_bench_case *c, tp_buf *out);
TP_CHECKED tp_status tp_bench_case_read(const char *place, const tp_json *object, tp_arena *arena,
                                        tp_bench_case *ret, tp_error *err);

/* True when the case's name matches one of the patterns: a shell pattern (* ? [..]) over the
 * whole name, or a part of it that ends at a '/'.  No patterns match everything. */
bool tp_bench_matches(const char *name, const char *const *patterns, size_t n);

#endif
