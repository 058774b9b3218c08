/* setup.c - options of a session with their defaults in place, and remarks about it. */

#include "instrument/bench/session.h"

tp_bench_setup tp_bench_setup_make(const tp_bench_options *options, const char *const *patterns,
                                   size_t n)
{
    tp_bench_setup s = {.o = *options, .patterns = patterns, .n_patterns = n};
    tp_bench_options *o = &s.o;
    o->alpha = o->alpha > 0 ? o->alpha : 0.05;
    o->tolerance = o->has_tolerance ? o->tolerance : 0.05;
    o->interval_width = o->interval_width > 0 ? o->interval_width : 0.01;
    o->timeout_s = o->timeout_s > 0 ? o->timeout_s : 600;
    o->fresh = o->fresh < 0 ? 0 : o->fresh == 0 ? 2 : o->fresh;
    o->seed = o->has_seed ? o->seed : 1;
    o->width = o->width > 0 ? o->width : 100;
    if (o->update_baseline && !o->baseline)
        o->baseline = "baselines.json";
    s.rule = (tp_rule){.alpha = o->alpha,
                       .tolerance = o->tolerance,
                       .exact_tolerance = o->exact_tolerance,
                       .family = 1,
                       .is_tolerance_given = o->has_tolerance,
                       .by_point = o->by_point};
    s.gate = (tp_gate_options){.strict = o->strict, .allow_missing = o->allow_missing};
    return s;
}

void tp_bench_note(const tp_bench_setup *f, const char *fmt, ...)
{
    TP_OWN(tp_buf) text = {0};
    if (!f->o.note)
        return;
    TP_BUF_FORMAT(&text, fmt);
    f->o.note(f->o.user, tp_buf_str(&text));
}
