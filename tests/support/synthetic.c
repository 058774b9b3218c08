#include "support/synthetic.h"
#include "support/draws.h"

#include <math.h>

static const double phi = 0.97;

synthetic_machine synthetic_machine_make(uint64_t seed)
{
    synthetic_machine m = {.rng = tp_rng_make(seed, 77),
                           .now_ns = 1000000000,
                           .drift_sd = 0.02,
                           .noise_sd = 0.01,
                           .stall_share = 0.06,
                           .stall_mean = 0.15};
    m.drift = m.drift_sd * draw_normal(&m.rng);
    return m;
}

uint64_t synthetic_now(void *machine) { return ((synthetic_machine *)machine)->now_ns; }

double synthetic_disturbance(synthetic_machine *m)
{
    m->drift = phi * m->drift + m->drift_sd * sqrt(1 - phi * phi) * draw_normal(&m->rng);
    double stall = tp_rng_uniform(&m->rng) < m->stall_share
                       ? -m->stall_mean * log1p(-tp_rng_uniform(&m->rng))
                       : 0;
    return m->drift + m->noise_sd * draw_normal(&m->rng) + stall;
}

static tp_status set_up(tp_subject *subject, tp_error *err)
{
    (void)err;
    ((synthetic_subject *)subject)->n_set_ups++;
    return TP_OK;
}

static tp_status run(tp_subject *subject, uint64_t work, tp_bench_sample *ret, tp_error *err)
{
    synthetic_subject *s = (synthetic_subject *)subject;
    s->n_runs++;
    if (s->fail_in_run == s->n_runs)
        return tp_fail(err, TP_ERR_IO, "made to fail in run %ld", s->n_runs);
    double seconds = s->seconds * (double)work * exp(synthetic_disturbance(s->machine));
    seconds = s->fixed_time > 0 ? s->fixed_time : seconds * (1 + s->slowdown);
    s->machine->now_ns += (uint64_t)(seconds * 1e9);
    ret->values[1] = s->nan_in_run == s->n_runs ? NAN : s->memory;
    ret->values[2] = s->blocks;
    return TP_OK;
}

static const tp_subject_class synthetic_class = {.set_up = set_up, .run = run};

void synthetic_subject_init(synthetic_subject *s, synthetic_machine *machine, double slowdown)
{
    static const tp_metric metrics[] = {
        {.name = "time", .unit = "s", .source = TP_METRIC_DURATION},
        {.name = "memory", .unit = "bytes", .kind = TP_METRIC_EXACT},
        {.name = "blocks", .unit = "buffers", .kind = TP_METRIC_EXACT}};
    *s = (synthetic_subject){
        .machine = machine, .seconds = 0.1, .slowdown = slowdown, .memory = 1 << 20, .blocks = 12};
    s->subject = (tp_subject){.class = &synthetic_class,
                              .metrics = metrics,
                              .n_metrics = 3,
                              .work_unit = "steps",
                              .work = 1};
}
