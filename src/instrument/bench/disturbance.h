/* disturbance.h - was a round disturbed by something that is not the subject?
 *
 * What the machine counts is read before and after each round, and a round is measured again, on
 * both sides, only for one of these recorded reasons, whatever its times were:
 *
 *     steal      the host gave more than 5 % of the processors' time of the round to other
 *                guests (/proc/stat), in 3 ticks of its clock at least
 *     switches   a side was taken off its processor more than 1000 times a second, 20 times at
 *                least (involuntary context switches of its process)
 *     throttle   a processor slowed down for heat (thermal_throttle in /sys)
 *
 * What cannot be read is unknown and rejects nothing.  Once more than a quarter of the rounds
 * are disturbed (4 at least), that is how the machine is, and rounds without disturbance are
 * no fair sample of it: from there on every round counts, and the note says so.  Both sides of
 * a pair ran under the same conditions; the interval is wider. */
#ifndef TP_INSTRUMENT_BENCH_DISTURBANCE_H
#define TP_INSTRUMENT_BENCH_DISTURBANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TP_READING_UNKNOWN = -1 };

/* Counters since the start of the machine, over all processors. */
typedef struct {
    int64_t steal_ticks, all_ticks;
    int64_t throttles;
    int64_t idle_ticks; /* waiting for disks included */
} tp_machine_reading;

typedef enum {
    TP_UNDISTURBED,
    TP_DISTURBED_BY_STEAL,
    TP_DISTURBED_BY_SWITCHES,
    TP_DISTURBED_BY_THROTTLE,
    TP_DISTURBANCES
} tp_disturbance;

const char *tp_disturbance_name(tp_disturbance disturbance); /* "steal" */

/* What a round ran under; NaN and TP_READING_UNKNOWN where nobody knows. */
typedef struct {
    double steal_share;    /* of the processors' time */
    double switches_per_s; /* of the side that was switched more often */
    int64_t throttles;
    tp_disturbance reason;
    bool is_rejected; /* for that reason */
} tp_round_conditions;

/* Readers of this machine, and of other places (tests). */
void tp_machine_read(void *unused, tp_machine_reading *ret);
void tp_machine_read_from(const char *proc_stat, const char *cpu_folder, tp_machine_reading *ret);

/* `switches[side]` in `seconds[side]`; TP_READING_UNKNOWN where a side does not tell. */
tp_round_conditions tp_round_judge(const tp_machine_reading *before,
                                   const tp_machine_reading *after, const int64_t switches[2],
                                   const double seconds[2]);

/* More than a quarter, and 4 at least. */
bool tp_too_many_disturbed(size_t disturbed, size_t attempts);

#endif
