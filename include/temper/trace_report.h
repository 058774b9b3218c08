/* trace_report.h - where time and memory went: what traces of any tool say.
 *
 * Reads PyTorch profiler traces (.json, .json.gz), Nsight Systems exports (.sqlite), PyTorch memory
 * snapshots, memory timelines and traces of Temper.  A folder stands for the traces in it, the
 * folder of a run for those of the run; "-" is standard input.  The answers are texts, as
 * `temper trace` prints them; docs/formats/trace-report.md has the JSON.
 *
 *     tp_trace_report_options o = {.size = sizeof o, .view = "kernels", .form = TP_FORM_JSON};
 *     if (tp_trace_report_write(&path, 1, &o, &text, &err) == TP_OK)
 *         puts(text);
 *
 * Threads: any, at once. */
#ifndef TEMPER_TRACE_REPORT_H
#define TEMPER_TRACE_REPORT_H

#include "temper/error.h"
#include "temper/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The i-th view ("kernels", ...), or NULL behind the last. */
TP_API const char *tp_trace_view_name(size_t i);

/* What counts, and in which form the answer is.  A scope is "all" (also NULL), "linked" (its launch
 * is in the file) or "steps" (launched inside a step). */
typedef struct {
    size_t size;      /* sizeof(tp_trace_report_options) */
    const char *view; /* one of tp_trace_view_name(); NULL: the overview; not of a comparison */
    const char *scope;
    const char *name; /* only device work whose name contains this, or matches *, ? */
    const char *comm; /* kernels that communicate besides those known by name */
    bool has_step, has_rank, has_stream; /* only these: */
    int64_t step, rank, stream;
    tp_form form;  /* TP_FORM_CSV: of a view */
    int64_t top;   /* rows of a table; 0: the default, -1: all */
    int width;     /* columns of text; 0: 110 */
    bool per_step; /* tp_trace_report_repeats(): only work of steps, divided by their number */
    bool *worse;   /* comparisons: set to whether the verdict of the step (of repeats: of the figure
                      in the first line) is "worse"; may be NULL */
    double slow_operator_ms; /* an operator that takes as long by itself, all calls together, is a
                                bottleneck; 0: 1 */
    double slow_kernel_ms;   /* a kernel that takes as long on average is slow; 0: 1 */
} tp_trace_report_options;

/* Several files are ranks of one job.  *ret: tp_free().
 * TP_ERR_ARG: the options, or filters that leave nothing; TP_ERR_IO, TP_ERR_FORMAT,
 * TP_ERR_UNSUPPORTED: what the file is cannot answer the view. */
TP_API TP_CHECKED tp_status tp_trace_report_write(const char *const *paths, size_t n,
                                                  const tp_trace_report_options *options,
                                                  char **ret, tp_error *err);

/* What changed between two traces: in total, by phase, operator and kernel. */
TP_API TP_CHECKED tp_status tp_trace_report_compare(const char *before, const char *after,
                                                    const tp_trace_report_options *options,
                                                    char **ret, tp_error *err);

/* Several recordings of the same work, every figure with its mean, spread and interval over files;
 * with n_others > 0 these are a second group, judged against the first. */
TP_API TP_CHECKED tp_status tp_trace_report_repeats(const char *const *paths, size_t n,
                                                    const char *const *others, size_t n_others,
                                                    const tp_trace_report_options *options,
                                                    char **ret, tp_error *err);

typedef struct {
    size_t size;        /* sizeof(tp_trace_export_options) */
    const char *format; /* "chrome", "perfetto", "collapsed" (stacks for flame graphs) or "csv" */
    bool device;        /* collapsed: device time by launching stack, not host time */
    const char *scope;  /* of device: as above */
    bool json;          /* what was written is said as JSON */
} tp_trace_export_options;

/* Write one trace in another tool's format to `output` ("-": standard output, and *ret is NULL).
 * *ret says what was written: tp_free(). */
TP_API TP_CHECKED tp_status tp_trace_report_export(const char *path, const char *output,
                                                   const tp_trace_export_options *options,
                                                   char **ret, tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
