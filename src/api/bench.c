/* bench.c - sessions of measurements, with the engine as what can be measured. */
#include "temper/bench.h"

#include "api/bench_subjects.h"
#include "base/sized.h"
#include "instrument/bench/process.h"
#include "instrument/bench/session.h"
#include "instrument/bench/worker.h"

static tp_status read_setup(const tp_bench_options *theirs, const char *const *patterns, size_t n,
                            tp_bench_setup *ret, tp_error *err)
{
    tp_bench_options o;
    TP_TRY(tp_sized_read(&o, sizeof o, theirs, "tp_bench_options", err));
    if ((o.against != NULL) + o.aa + (o.baseline || o.update_baseline) > 1)
        return tp_fail(err, TP_ERR_ARG,
                       "compare with one thing at a time: --against, --aa or --baseline");
    if (o.kind && !tp_bench_kind_find(o.kind)) {
        TP_OWN(tp_buf) kinds = {0};
        tp_bench_kinds(&kinds);
        return tp_fail(err, TP_ERR_CONFIG, "--kind is one of %s, not '%s'", tp_buf_str(&kinds),
                       o.kind);
    }
    *ret = tp_bench_setup_make(&o, patterns, n);
    return TP_OK;
}

tp_status tp_bench_run(const char *const *patterns, size_t n, const tp_bench_options *options,
                       int *ret_exit, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(ret_exit && (patterns || !n), err);
    tp_bench_setup setup;
    *ret_exit = -1;
    TP_TRY(read_setup(options, patterns, n, &setup, err));
    return tp_session_bench(&setup, ret_exit, err);
}

tp_status tp_bench_list(const char *const *patterns, size_t n, const tp_bench_options *options,
                        char **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(ret && (patterns || !n), err);
    tp_bench_setup setup;
    tp_buf out = {0};
    TP_TRY(read_setup(options, patterns, n, &setup, err));
    TP_TRY(tp_session_list(&setup, &out, err));
    *ret = out.data;
    return TP_OK;
}

tp_status tp_bench_commands(const char *const *a, size_t n_a, const char *const *b, size_t n_b,
                            const tp_bench_options *options, int *ret_exit, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(ret_exit && a && n_a && b && n_b, err);
    tp_bench_setup setup;
    *ret_exit = -1;
    TP_TRY(read_setup(options, NULL, 0, &setup, err));
    return tp_session_commands(&setup, a, n_a, b, n_b, ret_exit, err);
}

tp_status tp_bench_compare(const char *before, const char *after, const tp_bench_options *options,
                           int *ret_exit, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(before && after && ret_exit, err);
    tp_bench_setup setup;
    *ret_exit = -1;
    TP_TRY(read_setup(options, NULL, 0, &setup, err));
    return tp_session_compare(&setup, before, after, ret_exit, err);
}

tp_status tp_bench_history(const char *const *patterns, size_t n,
                           const tp_bench_history_options *options, char **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(ret && (patterns || !n), err);
    tp_bench_history_options o;
    tp_buf out = {0};
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_bench_history_options", err));
    o.alpha = o.alpha > 0 ? o.alpha : 0.01;
    TP_HAND_OVER(tp_trends_write(&o, patterns, n, &out, err), ret, out.data, tp_buf_release(&out));
}

char *tp_bench_format_table(void)
{
    tp_buf out = {0};
    tp_buf_addf(&out, "%-18s %-8s %-20s %s\n", "format", "", "usual name", "");
    for (size_t i = 0; i < tp_n_bench_formats; i++) {
        const tp_bench_format *f = &tp_bench_formats[i];
        bool reads = f->read_json || f->read_text;
        tp_buf_addf(&out, "%-18s %-8s %-20s %s\n", f->name,
                    !reads     ? "write"
                    : f->write ? "both"
                               : "read",
                    f->file, f->doc);
    }
    tp_buf_addf(&out, "%-18s %-8s %-20s %s\n", "(baselines)", "both", "baselines.json",
                "--baseline and --update-baseline");
    return out.data;
}

tp_status tp_bench_serve(tp_error *err)
{
    TP_MEMORY_GUARD(err);
    return tp_worker_serve(stdin, stdout, tp_bench_open, NULL, err);
}

void tp_bench_interrupt(void) { tp_process_interrupt(); }
