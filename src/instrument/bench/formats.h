/* formats.h - results in the files that other tools write and read.
 *
 * Our own format ("temper-bench-1") loses nothing.  The others hold what they can: raw
 * samples where they have a place for them, single values where not.  Reading makes a
 * report with side B filled in; what a file does not say is unknown.  Every reader checks
 * sizes before it allocates and names the place of what it refuses. */
#ifndef TP_INSTRUMENT_BENCH_FORMATS_H
#define TP_INSTRUMENT_BENCH_FORMATS_H

#include "instrument/bench/gate.h"
#include "instrument/bench/report.h"

enum { TP_BENCH_MAX_FILE = 256 << 20 };

typedef struct {
    const char *name; /* "pytest-benchmark": in --save=FORMAT:FILE */
    const char *file; /* what its files are called, for help: "benchmark.json" */
    const char *doc;
    void (*write)(const tp_bench_report *r, tp_buf *out); /* NULL: read only */
    /* From JSON (root != NULL) or from text; NULL: written only. */
    tp_status (*read_json)(const char *name, const tp_json *root, tp_bench_report *ret,
                           tp_error *err);
    tp_status (*read_text)(const char *name, const char *text, size_t n, tp_bench_report *ret,
                           tp_error *err);
    bool (*recognise)(const tp_json *root); /* of JSON formats that are read by their content */
    bool of_times; /* holds nothing of benchmarks without a time in seconds */
} tp_bench_format;

extern const tp_bench_format tp_bench_formats[];
extern const size_t tp_n_bench_formats;

const tp_bench_format *tp_bench_format_find(const char *name); /* NULL: there is none */

/* Read a text in any of the formats; `format` NULL: recognised.  `ret` is initialised here
 * and released on failure. */
TP_CHECKED tp_status tp_bench_read(const char *name, const char *text, size_t n,
                                   const tp_bench_format *format, tp_bench_report *ret,
                                   tp_error *err);

/* ---- for the files of formats ---- */

/* The metric that formats of times alone want: "time" in seconds; NULL: there is none. */
const tp_bench_metric *tp_result_time(const tp_bench_result *result);

/* The values of a metric that come one by one, in the arena. */
typedef struct {
    double *values;
    size_t n, cap;
} tp_sample_list;

/* A number, or "NaN", "Infinity", "-Infinity" as text; null is NaN.  False: neither. */
bool tp_bench_number(const tp_json *v, double *ret);

/* A number in text; 0x10 is one of C alone. */
bool tp_bench_decimal(const char *text, double *ret);

/* The numbers of a list in the arena, none of NULL. */
TP_CHECKED tp_status tp_bench_values(const char *file, const tp_json *list, tp_bench_report *r,
                                     const double **ret, size_t *ret_n, tp_error *err);

/* The members of a metric in our own files and messages. */
void tp_metric_write(const tp_metric *m, tp_json_w *w);

/* Fill a metric of side B. */
void tp_bench_metric_set(tp_bench_report *r, tp_bench_metric *m, const char *name, const char *unit,
                         tp_direction direction, tp_metric_class kind, const double *values,
                         size_t n);
extern const char tp_bench_time_name[], tp_bench_memory_name[];

/* One more value of a metric of side B; a count is exact while all its values are equal. */
TP_CHECKED tp_status tp_bench_metric_add(tp_bench_report *r, tp_bench_metric *m,
                                         tp_sample_list *list, double v, tp_error *err);

/* "B/op", "allocs/op": what Go counts, exactly as a rule. */
bool tp_bench_unit_counts(const char *unit);

/* A metric of which a file says no more than the name: rates are better when they are higher, and
 * our own metrics are known in our own files.  Any other has a note, and is not judged. */
void tp_bench_metric_by_name(tp_bench_report *r, tp_bench_metric *m, const char *name,
                             bool is_ours);
/* Ours of that name, or NULL. */
const tp_metric *tp_bench_own_metric(const char *name);
/* In files of ours a benchmark that has a speed is judged by it: its time says the same. */
void tp_bench_judge_speed(tp_bench_result *result);
/* The file does not say which way is better: the metric is shown, with that note. */
void tp_bench_metric_unjudged(tp_bench_metric *m);
/* The file has the median of the rounds alone: the metric is judged as one value, with that note.
 */
void tp_bench_metric_median(tp_bench_metric *m);
/* A note on the first figure of a result that has no place among its metrics. */
void tp_bench_note_left_out(tp_bench_report *r, tp_bench_result *result, const char *name);

#define TP_BENCH_READER(id)                                                             \
    tp_status tp_read_##id(const char *name, const tp_json *root, tp_bench_report *ret, \
                           tp_error *err);                                              \
    bool tp_is_##id(const tp_json *root);
#define TP_BENCH_WRITER(id) void tp_write_##id(const tp_bench_report *r, tp_buf *out);

TP_BENCH_WRITER(temper)
TP_BENCH_READER(temper)
TP_BENCH_WRITER(pytest)
TP_BENCH_READER(pytest)
TP_BENCH_WRITER(google)
TP_BENCH_READER(google)
TP_BENCH_WRITER(hyperfine)
TP_BENCH_READER(hyperfine)
TP_BENCH_WRITER(gobench)
tp_status tp_read_gobench(const char *name, const char *text, size_t n, tp_bench_report *ret,
                          tp_error *err);
TP_BENCH_WRITER(tracker_smaller)
TP_BENCH_WRITER(tracker_bigger)
TP_BENCH_READER(tracker) /* without a direction: what units tell */
tp_status tp_read_tracker_smaller(const char *name, const tp_json *root, tp_bench_report *ret,
                                  tp_error *err);
tp_status tp_read_tracker_bigger(const char *name, const tp_json *root, tp_bench_report *ret,
                                 tp_error *err);
TP_BENCH_WRITER(bencher)
TP_BENCH_READER(bencher)
TP_BENCH_WRITER(junit)
TP_BENCH_WRITER(annotations)
TP_BENCH_WRITER(markdown)

#endif
