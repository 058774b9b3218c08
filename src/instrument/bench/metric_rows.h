/* metric_rows.h - the metrics of our own benchmarks that more than one file speaks of: the kinds
 * of the suite (api/bench_*.c), measured commands, baselines, and the readers of formats that have
 * no place for a unit or a direction.  Each is an initializer of a tp_metric. */
#ifndef TP_INSTRUMENT_BENCH_METRIC_ROWS_H
#define TP_INSTRUMENT_BENCH_METRIC_ROWS_H

#include "instrument/bench/subject.h"

#define TP_NOISY_MEMORY_ROW(metric)                       \
    {                                                     \
        .name = metric, .unit = "bytes", .floor = 1 << 20 \
    }
#define TP_EXACT_ROW(metric, of)                            \
    {                                                       \
        .name = metric, .unit = of, .kind = TP_METRIC_EXACT \
    }
#define TP_INFORMATIVE_ROW(metric, of)                     \
    {                                                      \
        .name = metric, .unit = of, .is_informative = true \
    }
/* What a run yields per second, how long it took, and how many tokens it was about. */
#define TP_THROUGHPUT_ROW(of)                                               \
    {                                                                       \
        .name = "throughput", .unit = of, .direction = TP_HIGHER_IS_BETTER, \
        .source = TP_METRIC_RATE                                            \
    }
/* Other speeds, shown beside it: measured by the subject, or a rate of the run. */
#define TP_SPEED_ROW(metric, of)                                                             \
    {                                                                                        \
        .name = metric, .unit = of, .direction = TP_HIGHER_IS_BETTER, .is_informative = true \
    }
#define TP_RATE_ROW(metric, of)                                                                 \
    {                                                                                           \
        .name = metric, .unit = of, .direction = TP_HIGHER_IS_BETTER, .source = TP_METRIC_RATE, \
        .is_informative = true                                                                  \
    }
#define TP_RUN_TIME_ROW                                                                   \
    {                                                                                     \
        .name = "time", .unit = "s", .source = TP_METRIC_DURATION, .is_informative = true \
    }
#define TP_TOKENS_ROW                                                         \
    {                                                                         \
        .name = "tokens", .unit = "tokens", .direction = TP_HIGHER_IS_BETTER, \
        .kind = TP_METRIC_EXACT                                               \
    }

#define TP_PEAK_MEMORY_ROW TP_EXACT_ROW("peak_memory", "bytes") /* of the engine's buffers */
#define TP_RESIDENT_ROW TP_NOISY_MEMORY_ROW("resident")
#define TP_MEAN_MEMORY_ROW TP_INFORMATIVE_ROW("mean_memory", "bytes")
#define TP_USER_TIME_ROW TP_INFORMATIVE_ROW("user_time", "s")
#define TP_SYSTEM_TIME_ROW TP_INFORMATIVE_ROW("system_time", "s")
#define TP_ALLOCATIONS_ROW TP_EXACT_ROW("allocations", "buffers")
#define TP_FLOPS_ROW TP_EXACT_ROW("flops", "FLOP")
#define TP_BYTES_ROW TP_EXACT_ROW("bytes", "bytes")
#define TP_INSTRUCTIONS_ROW TP_EXACT_ROW("instructions", "instructions")

#endif
