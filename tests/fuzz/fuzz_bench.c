/* fuzz_bench.c - results of other tools and baselines.  What is accepted can be summarised,
 * compared with itself and written in every format; baselines survive being written. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "instrument/bench/baselines.h"
#include "instrument/bench/formats.h"

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
        tp_bench_formats[i].write(&b, &out);
        tp_buf_release(&out);
    }
    tp_report_release(&a);
    tp_report_release(&b);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1 << 14)
        return 0;
    try_results((const char *)data, size);
    try_baselines((const char *)data, size);
    return 0;
}
