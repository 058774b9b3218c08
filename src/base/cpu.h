/* cpu.h - what this processor can do, asked once at start-up.
 *
 * Instruction sets form a ladder: a level includes those below it, and a kernel
 * is written for one level.  tp_cpu_isa() is the level in force; it starts as
 * what the machine has and can only be lowered, for tests and comparisons. */
#ifndef TP_BASE_CPU_H
#define TP_BASE_CPU_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef enum {
    TP_ISA_PORTABLE,    /* what the compiler's baseline has                    */
    TP_ISA_AVX2,        /* AVX2, FMA, F16C                                     */
    TP_ISA_AVX512,      /* AVX-512 F, BW, DQ, VL                               */
    TP_ISA_AVX512_BF16, /* plus dot products of bf16 pairs                     */
    TP_ISA_AMX,         /* plus AMX tiles with bf16; the kernel lends us tiles */
    TP_ISA_COUNT
} tp_isa;

typedef struct {
    size_t l1d, l2, l3; /* bytes; 0 when unknown */
} tp_cpu_caches;

/* What the machine has.  Asks the operating system for AMX tile state. */
tp_isa tp_cpu_detect(void);

/* The level in force: tp_cpu_detect(), unless lowered. */
tp_isa tp_cpu_isa(void);

/* Lower (or raise again) the level in force; refuses one the machine lacks.
 * Not while kernels run. */
TP_CHECKED tp_status tp_cpu_force_isa(tp_isa isa, tp_error *err);

const char *tp_isa_name(tp_isa isa); /* "portable", "avx2", "avx512", "avx512_bf16", "amx" */
bool tp_isa_parse(const char *name, tp_isa *ret_isa);

/* Per core for L1d and L2, of the first core's group for L3. */
tp_cpu_caches tp_cpu_cache_sizes(void);

/* Processors that this process may keep busy (see limits.h); at least 1.  Of a quota of 1.5
 * one: threads wait for each other, so a second one would be throttled and the first wait. */
int tp_cpu_count(void);

const char *tp_cpu_model(void); /* "AMD EPYC", "unknown" */

#endif
