/* fuzz_bench.c - results of other tools, baselines, requests to a worker.  What is accepted
 * can be summarised, compared with itself and written in every format; baselines survive
 * being written; a worker answers whatever it is asked. */
#include <stdint.h>
#include <stdlib.h>

#include "instrument/bench/baselines.h"
#include "instrument/bench/formats.h"
#include "instrument/bench/worker.h"

static void try_results(const char *text, size_t n)
{
    tp_bench_report a, b;
    tp_error err = {0};
    tp_gate_options options = {0};
    if (tp_bench_read("results", text, n, NULL, &a, &err) != TP_OK) {
        if (!err.message[0])
            abort();
        return;
    }
    if (tp_bench_read("results", text, n, NULL, &b, &err) != TP_OK)
        abort();
    if (tp_gate_compare_stored(&a, &b, NULL, NULL, &err) != TP_OK)
        abort();
    int status = tp_gate_conclude(&b, &options).exit_status;
    if (status < 0 || status > 4)
        abort();
    for (size_t i = 0; i < tp_n_bench_formats; i++) {
        tp_buf out = {0};
        if (tp_bench_formats[i].write)
            tp_bench_formats[i].write(&b, &out);
        tp_buf_release(&out);
    }
    tp_bench_report_release(&a);
    tp_bench_report_release(&b);
}

static void try_baselines(const char *text, size_t n)
{
    tp_baselines a, b;
    tp_buf out = {0};
    tp_error err = {0};
    if (tp_baselines_read("baselines", text, n, &a, &err) != TP_OK) {
        if (!err.message[0])
            abort();
        return;
    }
    tp_baselines_write(&a, &out);
    if (tp_baselines_read("again", out.data, out.len, &b, &err) != TP_OK || a.n != b.n)
        abort();
    tp_baselines_release(&a);
    tp_baselines_release(&b);
    tp_buf_release(&out);
}

static tp_status run_nothing(tp_subject *s, uint64_t work, tp_bench_sample *ret, tp_error *err)
{
    (void)s;
    (void)err;
    ret->values[0] = (double)work;
    return TP_OK;
}

static tp_status open_nothing(void *context, const char *benchmark, const tp_json *options,
                              tp_subject **ret, tp_error *err)
{
    (void)context;
    (void)options;
    if (*benchmark == 'x')
        return tp_fail(err, TP_ERR_UNSUPPORTED, "no '%s'", benchmark);
    static const tp_subject_class class = {.run = run_nothing};
    static const tp_metric metric = {.name = "m", .unit = "s"};
    static tp_subject subject = {.class = &class, .metrics = &metric, .n_metrics = 1};
    *ret = &subject;
    return TP_OK;
}

static void try_worker(const char *text, size_t n)
{
    char *answers = NULL;
    size_t n_answers = 0;
    FILE *in = fmemopen((void *)text, n, "r"), *out = open_memstream(&answers, &n_answers);
    if (in && out && tp_worker_serve(in, out, open_nothing, NULL, NULL) != TP_OK)
        abort();
    if (in)
        fclose(in);
    if (out)
        fclose(out);
    free(answers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1 << 14)
        return 0;
    try_results((const char *)data, size);
    try_baselines((const char *)data, size);
    if (size > 0)
        try_worker((const char *)data, size);
    return 0;
}
