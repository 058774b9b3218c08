/* reading.h - what the kernel counts for a process and its machine, read at one moment.
 *
 * /proc/stat, /proc/pressure, /proc/meminfo, /proc/self, cpu.stat of the process's control group,
 * thermal_throttle, thermal zones and powercap (RAPL) in /sys, as far as they are there and may be
 * read.  TEMPER_SYSTEM_ROOT=DIR puts DIR before the paths, for tests. */
#ifndef TP_INSTRUMENT_MONITOR_READING_H
#define TP_INSTRUMENT_MONITOR_READING_H

/* NaN: unknown. */
typedef struct {
    double clock_s;                                          /* when, on the monotonic clock */
    double busy_ticks, steal_ticks, all_ticks;               /* of all processors */
    double pressure_cpu_s, pressure_io_s, pressure_memory_s; /* some thread waited */
    double throttled_s;                                      /* by a quota */
    double throttles;                                        /* for heat, of all processors */
    double temperature;                                      /* degrees Celsius, the hottest */
    double energy_j;                                         /* of all packages */
    double process_s;                                        /* processor time of the process */
    double minor_faults, major_faults, voluntary, involuntary;
    double resident_bytes, swapped_bytes, available_bytes, total_bytes;
    double answer_tokens; /* of the engine, so far */
} tp_reading;

typedef enum { TP_READ_TRAINING = 1, TP_READ_INFERENCE = 2, TP_READ_MEMORY = 4 } tp_reading_part;

/* The parts that are asked for, TP_READ_...; the rest is NaN. */
void tp_reading_take(tp_reading *r, unsigned parts);

#endif
