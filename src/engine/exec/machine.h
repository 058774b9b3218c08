/* machine.h - what this machine can do, measured with our own kernels.
 *
 * The roofline, the predicted step time and MFU use these ceilings.  They are kept
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
    double gemm_f32_flops, gemm_bf16_flops; /* per second: best of the square and training shapes */
    double read_bytes, copy_bytes, update_bytes; /* per second: sum of a large array; copy (read +
                                                    written); adamw's traffic */
    double measured_at;                          /* seconds since 1970 */

    /* Conditions of the measurement; NaN: not on file. */
    double processor_share; /* of the time of its threads, in which they ran */
    double spread;          /* of the matrix products' rates, best over median, less 1 */
    char disturbed_by[160]; /* "" when the machine was free enough for the figures to be kept */
} tp_machine;

/* Which machine this is, with no ceilings. */
tp_machine tp_machine_describe(const tp_backend *backend, int threads);
/* Ceilings for this backend, ISA and number of threads, if they are on file. */
TP_CHECKED tp_status tp_machine_load(const tp_backend *backend, int threads, tp_machine *ret,
                                     bool *ret_found, tp_error *err);
/* Measure, about `seconds` in all.  Rounds are interleaved; a ceiling is the best round.  What
 * was disturbed says so and must not be kept: a ceiling that is too low makes every share of it
 * wrong.  TP_ERR_NOMEM where the buffers would take most of the memory allowed. */
TP_CHECKED tp_status tp_machine_measure(const tp_backend *backend, int threads, double seconds,
                                        tp_machine *ret, tp_error *err);
TP_CHECKED tp_status tp_machine_save(const tp_machine *machine, tp_error *err);

/* Take the ceilings of this machine off the file: something ran faster. */
TP_CHECKED tp_status tp_machine_forget(const tp_machine *machine, tp_error *err);

/* Lower bound of the time of work on this machine. */
double tp_machine_seconds(const tp_machine *machine, tp_dtype dtype, double flops, double bytes);

/* `machine` may be NULL; flops or bytes NaN when not known. */
tp_share tp_machine_share(const tp_machine *machine, tp_dtype dtype, double flops, double bytes,
                          double seconds);

#endif
