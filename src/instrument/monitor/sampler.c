/* sampler.c - what is watched of a run in the background, a row each. */
#include "instrument/monitor/sampler.h"

#include <math.h>

const tp_sampler_group tp_sampler_groups[TP_SAMPLER_GROUPS] = {{"training", TP_READ_TRAINING, 10},
                                                               {"inference", TP_READ_INFERENCE, 5},
                                                               {"memory", TP_READ_MEMORY, 15}};

typedef struct {
    const tp_reading *a, *b; /* before, now */
    double s;                /* between them */
    double processors, limit_bytes;
} interval;

/* Of counters, which only go up: one that went down was begun anew. */
static double grown(double a, double b) { return b >= a ? b - a : (double)NAN; }

#define GROWN(member) grown(x->a->member, x->b->member)

static double process_busy(const interval *x) { return GROWN(process_s) / x->s / x->processors; }
static double machine_busy(const interval *x) { return GROWN(busy_ticks) / GROWN(all_ticks); }
static double steal(const interval *x) { return GROWN(steal_ticks) / GROWN(all_ticks); }
static double pressure_cpu(const interval *x) { return GROWN(pressure_cpu_s) / x->s; }
static double pressure_io(const interval *x) { return GROWN(pressure_io_s) / x->s; }
static double pressure_memory(const interval *x) { return GROWN(pressure_memory_s) / x->s; }
static double throttled(const interval *x) { return GROWN(throttled_s) / x->s; }
static double throttles(const interval *x) { return GROWN(throttles); }
static double temperature(const interval *x) { return x->b->temperature; }
static double power(const interval *x) { return GROWN(energy_j) / x->s; }
static double voluntary(const interval *x) { return GROWN(voluntary) / x->s; }
static double involuntary(const interval *x) { return GROWN(involuntary) / x->s; }
static double minor_faults(const interval *x) { return GROWN(minor_faults) / x->s; }
static double major_faults(const interval *x) { return GROWN(major_faults) / x->s; }
static double resident(const interval *x) { return x->b->resident_bytes; }
static double swapped(const interval *x) { return x->b->swapped_bytes; }
static double available(const interval *x) { return x->b->available_bytes; }

static double used_share(const interval *x)
{
    double machine = 1 - x->b->available_bytes / x->b->total_bytes;
    return fmax(x->b->resident_bytes / x->limit_bytes, machine); /* fmax passes over a NaN */
}

/* Nothing is known of the speed of what does not run. */
static double answers(const interval *x)
{
    double tokens = GROWN(answer_tokens);
    return tokens > 0 ? tokens / x->s : (double)NAN;
}

static const struct {
    const char *name;
    tp_reading_part part;
    double (*of)(const interval *x);
} rows[] = {
    {"system/process_busy_share", TP_READ_TRAINING, process_busy},
    {"system/machine_busy_share", TP_READ_TRAINING, machine_busy},
    {"system/steal_share", TP_READ_TRAINING, steal},
    {"system/pressure_cpu_share", TP_READ_TRAINING, pressure_cpu},
    {"system/pressure_io_share", TP_READ_TRAINING, pressure_io},
    {"system/throttled_share", TP_READ_TRAINING, throttled},
    {"system/throttles", TP_READ_TRAINING, throttles},
    {"system/temperature_celsius", TP_READ_TRAINING, temperature},
    {"system/power_watts", TP_READ_TRAINING, power},
    {"system/voluntary_switches_per_sec", TP_READ_TRAINING, voluntary},
    {"system/involuntary_switches_per_sec", TP_READ_TRAINING, involuntary},
    {"generation/live_tokens_per_sec", TP_READ_INFERENCE, answers},
    {"memory/sampled_bytes", TP_READ_MEMORY, resident},
    {"memory/used_share", TP_READ_MEMORY, used_share},
    {"memory/available_bytes", TP_READ_MEMORY, available},
    {"memory/swapped_bytes", TP_READ_MEMORY, swapped},
    {"memory/minor_faults_per_sec", TP_READ_MEMORY, minor_faults},
    {"memory/major_faults_per_sec", TP_READ_MEMORY, major_faults},
    {"system/pressure_memory_share", TP_READ_MEMORY, pressure_memory},
};

size_t tp_sampler_figures(int group, const tp_reading *before, const tp_reading *now,
                          double processors, double limit_bytes,
                          tp_metric_figure ret[TP_SAMPLER_MOST])
{
    const interval x = {before, now, now->clock_s - before->clock_s, processors, limit_bytes};
    size_t n = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double v = rows[i].part == tp_sampler_groups[group].part ? rows[i].of(&x) : (double)NAN;
        if (isfinite(v))
            ret[n++] = (tp_metric_figure){tp_metric_find(rows[i].name), v};
    }
    return n;
}

double tp_sampler_next(double due_s, double period_s, double now_s)
{
    return (due_s + period_s > now_s ? due_s : now_s) + period_s;
}
