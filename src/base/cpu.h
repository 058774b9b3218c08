/* cpu.h - what this processor can do, asked once at start-up.
 *
 * Instruction sets form a ladder: a level includes those below it, and a kernel
 * is written for one level.  tp_cpu_isa() is the level in force; it starts as
 * what the machine has and can only be lowered, for tests and comparisons.  A level
 * whose kernels failed their self-test is excluded, one that multiplies more slowly than the level
 * below it is passed over: those above and below it stay. */
#ifndef TP_BASE_CPU_H
#define TP_BASE_CPU_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "temper/program.h"

typedef enum {
    TP_ISA_PORTABLE,    /* what the compiler's baseline has                    */
    TP_ISA_AVX2,        /* AVX2, FMA, F16C, BMI2                               */
    TP_ISA_AVX512,      /* AVX-512 F, BW, DQ, VL                               */
    TP_ISA_AVX512_BF16, /* plus dot products of bf16 pairs                     */
    TP_ISA_AMX,         /* plus AMX tiles with bf16; the kernel lends us tiles */
    TP_ISA_COUNT
} tp_isa;

typedef struct {
    size_t l1d, l2, l3; /* bytes; 0 when unknown */
} tp_cpu_caches;

/* What the machine has.  Asks the operating system for AMX tile state.  TEMPER_ASSUME_ISA names
 * a higher level that is there without the processor saying so (an emulator). */
tp_isa tp_cpu_detect(void);
bool tp_cpu_is_assumed(void); /* by TEMPER_ASSUME_ISA */

/* Why the next level is not to be had though the processor has it, a sentence; "" otherwise. */
const char *tp_cpu_withheld(void);

/* What the processor (cpuid) and its operating system (XCR0) say, in words of 32 bits. */
typedef struct {
    unsigned leaf1_ecx, leaf7_ebx, leaf7_edx, leaf7_1_eax;
    unsigned xcr0;
} tp_cpu_words;

/* The level that they make.  `ask_for_tiles` returns 0 or errno; only asked where it decides. */
tp_isa tp_cpu_level(const tp_cpu_words *w, int (*ask_for_tiles)(void), char *withheld, size_t size);

/* The level in force: the highest that may be used, up to that of tp_cpu_force_isa(), else of
 * TEMPER_ISA, else of tp_cpu_detect(). */
tp_isa tp_cpu_isa(void);

/* May kernels of this level be used: is it in force or below, not excluded and not passed over? */
bool tp_cpu_may_use(tp_isa isa);

/* Leave levels out (bit i: level i), for good; all others come back.  Not while kernels run. */
void tp_cpu_exclude(unsigned levels);

/* Levels (bits again) that compute right but more slowly than those below: used only by who
 * names them, with tp_cpu_force_isa() or TEMPER_ISA. */
void tp_cpu_pass_over(unsigned levels);
bool tp_cpu_is_passed_over(tp_isa isa);

/* Lower (or raise again) the level in force; refuses one the machine lacks.
 * Not while kernels run. */
TP_CHECKED tp_status tp_cpu_force_isa(tp_isa isa, tp_error *err);

const char *tp_isa_name(tp_isa isa); /* "portable", "avx2", "avx512", "avx512_bf16", "amx" */
bool tp_isa_parse(const char *name, tp_isa *ret_isa);

/* Per core for L1d and L2, of the first core's group for L3. */
tp_cpu_caches tp_cpu_cache_sizes(void);
/* L2 of a core; 1 MiB where the machine does not say. */
size_t tp_cpu_l2_bytes(void);

/* Processors that this process may keep busy (see limits.h); at least 1.  Of a quota of 1.5
 * one: threads wait for each other, so a second one would be throttled and the first wait. */
int tp_cpu_count(void);

/* All that tells whether code that ran on another processor will run on this one: vendor, family,
 * model, stepping, microcode, features, saved state, operating system. */
void tp_cpu_identity(char *out, size_t size);

#endif
