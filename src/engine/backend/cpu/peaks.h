/* peaks.h - what the arithmetic units and the caches of this processor do at best.
 *
 * A unit is driven from registers alone, by as many independent sums as hide its latency: no
 * kernel can be faster, so work is measured against it.  A cache is read in whole vectors, each
 * thread its own bytes. */
#ifndef TP_ENGINE_BACKEND_CPU_PEAKS_H
#define TP_ENGINE_BACKEND_CPU_PEAKS_H

#include <stdbool.h>

#include "base/cpu.h"
#include "base/error.h"
#include "engine/device/dtype.h"

/* The instruction with which the level in force multiplies this type: "tdpbf16ps", "vdpbf16ps",
 * "vfmadd231ps zmm", "vfmadd231ps ymm", "mulps, addps".  bf16 without an instruction of its own is
 * multiplied as f32. */
const char *tp_cpu_unit_name(tp_dtype dtype);

/* Does the instruction of this level multiply at less than three quarters of the speed of the level
 * below it?  vdpbf16ps is twice as fast as a fused multiply-add on one processor and half as fast on
 * another.  Some 20 ms of one thread; false where it could not be measured. */
bool tp_cpu_unit_is_slower(tp_isa isa, tp_isa below);

/* FLOP/s of `threads` threads at once, the best of the rounds that fit into `seconds`; every round
 * begins and ends on all of them together.  TP_ERR_NOMEM where a thread cannot be started. */
TP_CHECKED tp_status tp_cpu_unit_peak(tp_dtype dtype, int threads, double seconds, double *ret,
                                      tp_error *err);

/* Bytes per second that `threads` threads read again and again from `bytes` bytes each. */
TP_CHECKED tp_status tp_cpu_read_peak(size_t bytes, int threads, double seconds, double *ret,
                                      tp_error *err);

#endif
