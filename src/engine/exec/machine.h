/* machine.h - what this machine can do: its units and memory, and our best product.
 *
 * "Of the limit" and MFU are of the unit's own peak, which no kernel can pass; the predicted step
 * time goes by the best product.  These ceilings are kept
 * under a fingerprint of the machine (model, cores, ISA, kernel version of Temper) in
 * $XDG_CACHE_HOME/temper/machine.json, so that they are measured once. */
#ifndef TP_ENGINE_EXEC_MACHINE_H
#define TP_ENGINE_EXEC_MACHINE_H

#include "base/error.h"
#include "base/share.h"
#include "engine/backend/backend.h"

typedef struct {
    char fingerprint[33];
    char cpu_model[128];
    char isa[24];
    int threads;
    double unit_f32_flops, unit_bf16_flops; /* per second: the instruction alone, all threads */
    double gemm_f32_flops, gemm_bf16_flops; /* per second: best of the square and training shapes */
    double read_bytes, copy_bytes, update_bytes; /* per second: sum of a large array; copy (read +
                                                    written); adamw's traffic */
    double measured_at;                          /* seconds since 1970 */

    /* Conditions of the measurement; NaN: not on file. */
    double processor_share; /* of the time of its threads, in which they ran */
    double spread;          /* of the matrix products' rates, best over median, less 1 */
    char disturbed_by[160]; /* "" when the machine was free enough for the figures to be kept */
    bool is_doubted;        /* something ran faster: to be measured again */
    bool is_measured_again; /* after a doubt: the better of two measurements */
    int busy_tries;         /* measurements so far that were disturbed, every one */
} tp_machine;

/* Which machine this is, with no ceilings. */
tp_machine tp_machine_describe(const tp_backend *backend, int threads);
/* Ceilings for this backend, ISA and number of threads, if they are on file.  Not found, with
 * busy_tries above 0: all that is known is that the machine was busy. */
TP_CHECKED tp_status tp_machine_load(const tp_backend *backend, int threads, tp_machine *ret,
                                     bool *ret_found, tp_error *err);
/* The same for a process that has so many of those threads, while others use the rest. */
void tp_machine_take_part(tp_machine *m, int threads);
/* Measure, about `seconds` in all.  Rounds are interleaved; a ceiling is the best round.  What
 * was disturbed says so and must not be kept: a ceiling that is too low makes every share of it
 * wrong.  TP_ERR_NOMEM where the buffers would take most of the memory allowed. */
TP_CHECKED tp_status tp_machine_measure(const tp_backend *backend, int threads, double seconds,
                                        tp_machine *ret, tp_error *err);
TP_CHECKED tp_status tp_machine_save(const tp_machine *machine, tp_error *err);

/* The measurement was disturbed: note on file how often that was so in a row, and when, so that a
 * machine that is always busy is not measured at every start.  Its figures are not used. */
TP_CHECKED tp_status tp_machine_note_busy(const tp_machine *machine, int tries, tp_error *err);
/* Seconds until the next try, 10 minutes after the first and twice as long each time, a day at
 * most; 0: now. */
double tp_machine_next_try(const tp_machine *machine, double now);

/* Something ran faster than these ceilings: note on file that they are to be measured again.  Once:
 * what was measured again is not doubted any more, or every run would begin with a measurement. */
TP_CHECKED tp_status tp_machine_doubt(const tp_machine *machine, tp_error *err);
/* What was measured after a doubt: the better of each, since nothing makes a machine look too
 * fast. */
void tp_machine_keep_better(tp_machine *m, const tp_machine *again);

/* One thread and all of them, per second; NaN: unknown. */
typedef struct {
    double one, all;
} tp_machine_rate;

typedef struct {
    const char *level; /* "L1", "L2", "L3", "memory" */
    size_t bytes;      /* that each thread reads again and again */
    tp_machine_rate read;
} tp_machine_level;

/* The hardware by itself, for people: what `temper doctor` shows above the ceilings. */
typedef struct {
    const char *f32_unit, *bf16_unit; /* instructions */
    tp_machine_rate f32, bf16;        /* FLOP/s */
    tp_machine_level levels[4];
    int n_levels;
    bool threads_share_unit; /* all threads do less than 1.3 times one thread's products */
} tp_machine_units;

TP_CHECKED tp_status tp_machine_measure_units(const tp_backend *backend, int threads,
                                              double seconds, tp_machine_units *ret, tp_error *err);

/* The time of work on this machine, by the best product and the memory: an estimate. */
double tp_machine_seconds(const tp_machine *machine, tp_dtype dtype, double flops, double bytes);

/* The peak of the unit that multiplies `dtype`, and our best product on it. */
double tp_machine_unit_flops(const tp_machine *machine, tp_dtype dtype);
double tp_machine_product_flops(const tp_machine *machine, tp_dtype dtype);

/* `machine` may be NULL; flops or bytes NaN when not known. */
tp_share tp_machine_share(const tp_machine *machine, tp_dtype dtype, double flops, double bytes,
                          double seconds);

#endif
