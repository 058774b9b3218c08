/* subject.c - what subjects share: directions of metrics, derived metrics of a sample. */
#include "instrument/bench/subject.h"

#include <string.h>

void tp_bench_sample_finish(const tp_subject *s, uint64_t work, uint64_t elapsed_ns,
                            tp_bench_sample *sample)
{
    if (sample->elapsed_ns == 0)
        sample->elapsed_ns = elapsed_ns;
    double seconds = (double)sample->elapsed_ns * 1e-9;
    for (size_t i = 0; i < s->n_metrics; i++) {
        if (s->metrics[i].source == TP_METRIC_DURATION)
            sample->values[i] = seconds / (double)work;
        else if (s->metrics[i].source == TP_METRIC_RATE)
            sample->values[i] = sample->amount[i] / seconds;
    }
}

const char *tp_direction_name(tp_direction direction)
{
    return direction == TP_HIGHER_IS_BETTER ? "higher" : "lower";
}

const char *tp_metric_class_name(tp_metric_class kind)
{
    return kind == TP_METRIC_EXACT ? "exact" : "noisy";
}

bool tp_metric_class_parse(const char *name, tp_metric_class *ret)
{
    if (!name || (strcmp(name, "noisy") != 0 && strcmp(name, "exact") != 0))
        return false;
    *ret = strcmp(name, "exact") == 0 ? TP_METRIC_EXACT : TP_METRIC_NOISY;
    return true;
}

bool tp_direction_parse(const char *name, tp_direction *ret)
{
    if (!name || (strcmp(name, "lower") != 0 && strcmp(name, "higher") != 0))
        return false;
    *ret = strcmp(name, "higher") == 0 ? TP_HIGHER_IS_BETTER : TP_LOWER_IS_BETTER;
    return true;
}
