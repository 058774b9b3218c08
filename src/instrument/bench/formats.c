/* formats.c - the table of file formats. */
#include "instrument/bench/formats.h"

#include <string.h>

const char tp_bench_time_name[] = "time", tp_bench_memory_name[] = "peak_memory";

const tp_bench_format tp_bench_formats[] = {
    {.name = "temper",
     .file = "bench.json",
     .doc = "everything, raw samples included (schema temper-bench-1)",
     .write = tp_write_temper,
     .read_json = tp_read_temper,
     .recognise = tp_is_temper},
    {.name = "pytest-benchmark",
     .file = "benchmark.json",
     .doc = "pytest-benchmark: times in seconds",
     .write = tp_write_pytest,
     .read_json = tp_read_pytest,
     .recognise = tp_is_pytest,
     .of_times = true},
    {.name = "google",
     .file = "google.json",
     .doc = "Google Benchmark: one entry per round, for compare.py",
     .write = tp_write_google,
     .read_json = tp_read_google,
     .recognise = tp_is_google,
     .of_times = true},
    {.name = "hyperfine",
     .file = "hyperfine.json",
     .doc = "hyperfine: times and peak memory",
     .write = tp_write_hyperfine,
     .read_json = tp_read_hyperfine,
     .recognise = tp_is_hyperfine,
     .of_times = true},
    {.name = "benchstat",
     .file = "bench.txt",
     .doc = "Go benchmark lines, for benchstat",
     .write = tp_write_gobench,
     .read_text = tp_read_gobench},
    {.name = "smaller-is-better",
     .file = "smaller.json",
     .doc = "github-action-benchmark, customSmallerIsBetter",
     .write = tp_write_tracker_smaller,
     .read_json = tp_read_tracker_smaller},
    {.name = "bigger-is-better",
     .file = "bigger.json",
     .doc = "github-action-benchmark, customBiggerIsBetter",
     .write = tp_write_tracker_bigger,
     .read_json = tp_read_tracker_bigger},
    {.name = "github-action",
     .file = "benchmark-data.json",
     .doc = "either, or what the action stores: units tell the direction",
     .read_json = tp_read_tracker,
     .recognise = tp_is_tracker},
    {.name = "bencher",
     .file = "bencher.json",
     .doc = "Bencher Metric Format",
     .write = tp_write_bencher,
     .read_json = tp_read_bencher,
     .recognise = tp_is_bencher},
    {.name = "junit",
     .file = "junit.xml",
     .doc = "JUnit: one test case per benchmark",
     .write = tp_write_junit},
    {.name = "github",
     .file = "annotations.txt",
     .doc = "GitHub workflow commands, worst first",
     .write = tp_write_annotations},
    {.name = "markdown",
     .file = "summary.md",
     .doc = "a table for $GITHUB_STEP_SUMMARY or a comment",
     .write = tp_write_markdown},
};
const size_t tp_n_bench_formats = sizeof tp_bench_formats / sizeof *tp_bench_formats;

const tp_bench_format *tp_bench_format_find(const char *name)
{
    for (size_t i = 0; i < tp_n_bench_formats; i++) {
        if (strcmp(tp_bench_formats[i].name, name) == 0)
            return &tp_bench_formats[i];
    }
    return NULL;
}

static const tp_bench_format *recognise(const tp_json *root)
{
    for (size_t i = 0; i < tp_n_bench_formats; i++) {
        if (tp_bench_formats[i].recognise && tp_bench_formats[i].recognise(root))
            return &tp_bench_formats[i];
    }
    return NULL;
}

static tp_status read_json(const char *name, const char *text, size_t n,
                           const tp_bench_format *format, tp_bench_report *ret, tp_error *err)
{
    TP_OWN(tp_arena) arena = {0};
    const tp_json *root;
    tp_json_options options = TP_JSON_TOLERANT;
    options.max_bytes = TP_BENCH_MAX_FILE;
    TP_TRY(tp_arena_init(&arena, 64 * n + (1 << 20), err));
    TP_TRY(tp_json_parse(&arena, name, text, n, &options, &root, err));
    if (!format)
        format = recognise(root);
    if (!format)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s: not a benchmark file that is known; 'temper bench --formats' lists "
                       "them",
                       name);
    if (!format->read_json)
        return tp_fail(err, TP_ERR_FORMAT, "%s: JSON is not what %s holds", name, format->name);
    return format->read_json(name, root, ret, err);
}

tp_status tp_bench_read(const char *name, const char *text, size_t n, const tp_bench_format *format,
                        tp_bench_report *ret, tp_error *err)
{
    tp_bench_report r;
    if (n > TP_BENCH_MAX_FILE)
        return tp_fail(err, TP_ERR_FORMAT, "%s: %zu bytes are too many; at most %d", name, n,
                       TP_BENCH_MAX_FILE);
    if (format && !format->read_json && !format->read_text)
        return tp_fail(err, TP_ERR_ARG, "%s: %s is written only", name, format->name);
    TP_TRY(tp_bench_report_init(&r, err));
    size_t mark = tp_utf8_mark(text, n), blank = 0;
    text += mark;
    n -= mark;
    while (blank < n && strchr(" \t\r\n", text[blank]))
        blank++;
    bool looks_json = blank < n && (text[blank] == '{' || text[blank] == '[');
    tp_status status = (format ? format->read_text != NULL : !looks_json)
                           ? tp_read_gobench(name, text, n, &r, err)
                           : read_json(name, text, n, format, &r, err);
    if (status == TP_OK && r.n_results == 0)
        status = tp_fail(err, TP_ERR_FORMAT, "%s has no benchmarks", name);
    if (status != TP_OK) {
        tp_bench_report_release(&r);
        return status;
    }
    for (size_t i = 0; i < r.n_results; i++)
        for (size_t k = 0; k < r.results[i].n_metrics; k++)
            r.results[i].metrics[k].side_b =
                tp_summarise(r.results[i].metrics[k].b, r.results[i].metrics[k].n_b);
    *ret = r;
    return TP_OK;
}
