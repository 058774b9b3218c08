/* tile_timing.h - the time of the AMX instructions on a processor without: for tuning what is
 * around them.  The results are nonsense.
 *
 * In the place of amx_tiles.h's (gcc -include), each instruction becomes vector instructions that
 * take as long and touch the same memory:
 *     TILELOADD    16 loads of 64 bytes, two in a cycle
 *     TDPBF16PS    four dependent multiply-adds of 4 cycles in the one chain that stands for the
 *                  unit, so 16 cycles; they wait for the loads of their operands
 *     TILESTORED   16 stores of 64 bytes, 36 cycles after the sum's last product
 * PADDING empty instructions in a load stand for what tiles take of the reorder buffer: with 20
 * the loop of two operands from L1, or one from L2, has the speed that was measured with AMX.
 * What it cannot know: how well the real loads wait for L2 and memory.
 *
 * Sums are stored as zeros, so that a whole step of training can run on them. */
#ifndef BENCH_TILE_TIMING_H
#define BENCH_TILE_TIMING_H

#include <immintrin.h>
#include <stdint.h>

#define TIMING_PADDING ".rept 20\n\tnop\n\t.endr\n\t"
#define TIMING_CHAIN "%%zmm24"
#define TIMING_STORED "%%zmm25"
#define TIMING_T0 "%%zmm16"
#define TIMING_T1 "%%zmm17"
#define TIMING_T2 "%%zmm18"
#define TIMING_T3 "%%zmm19"
#define TIMING_T4 "%%zmm20"
#define TIMING_T5 "%%zmm21"
#define TIMING_T6 "%%zmm22"
#define TIMING_T7 "%%zmm23"
#define TIMING_USED \
    "zmm16", "zmm17", "zmm18", "zmm19", "zmm20", "zmm21", "zmm22", "zmm23", "zmm24", "zmm25"

/* to += x * y, 4 cycles */
#define TIMING_MULTIPLY(x, y, to) "vfmadd231ps " x "," y "," to "\n\t"
/* A vector from, or to, each of 16 rows: %0 to %3 are four rows apart, %4 one row, %5 three. */
#define TIMING_FOUR(move, base) \
    move("(" base ")") move("(" base ",%4)") move("(" base ",%4,2)") move("(" base ",%5)")
#define TIMING_ROWS(move)                                                 \
    TIMING_FOUR(move, "%0")                                               \
    TIMING_FOUR(move, "%1") TIMING_FOUR(move, "%2") TIMING_FOUR(move, "%" \
                                                                      "3")
#define TIMING_OPERANDS                                                                 \
    ::"r"(timing_at), "r"(timing_at + 4 * timing_row), "r"(timing_at + 8 * timing_row), \
        "r"(timing_at + 12 * timing_row), "r"(timing_row),                              \
        "r"(3 * timing_row) : "memory", TIMING_USED

#define TIMING_LOAD_0(row) "vmovups " row "," TIMING_T0 "\n\t"
#define TIMING_LOAD_1(row) "vmovups " row "," TIMING_T1 "\n\t"
#define TIMING_LOAD_2(row) "vmovups " row "," TIMING_T2 "\n\t"
#define TIMING_LOAD_3(row) "vmovups " row "," TIMING_T3 "\n\t"
#define TIMING_LOAD_4(row) "vmovups " row "," TIMING_T4 "\n\t"
#define TIMING_LOAD_5(row) "vmovups " row "," TIMING_T5 "\n\t"
#define TIMING_LOAD_6(row) "vmovups " row "," TIMING_T6 "\n\t"
#define TIMING_LOAD_7(row) "vmovups " row "," TIMING_T7 "\n\t"
#define TIMING_STORE(row) "vmovups " TIMING_STORED "," row "\n\t"
#define TIMING_LATER TIMING_MULTIPLY(TIMING_STORED, TIMING_STORED, TIMING_STORED)

/* Denormals, which the nonsense may have, would take long. */
#define TILE_CONFIGURE(config)             \
    do {                                   \
        (void)(config);                    \
        _mm_setcsr(_mm_getcsr() | 0x8040); \
    } while (0)
#define TILE_RELEASE() ((void)0)
#define TILE_ZERO(t) \
    __asm__ volatile("vpxord " TIMING_T##t "," TIMING_T##t "," TIMING_T##t ::: TIMING_USED)
#define TILE_LOAD(t, from, stride)                                                     \
    do {                                                                               \
        const char *timing_at = (const char *)(from);                                  \
        int64_t timing_row = (int64_t)(stride);                                        \
        __asm__ volatile(TIMING_ROWS(TIMING_LOAD_##t) TIMING_PADDING TIMING_OPERANDS); \
    } while (0)
#define TILE_MULTIPLY(sum, a, b)                                                       \
    __asm__ volatile(TIMING_MULTIPLY(TIMING_T##a, TIMING_T##b, TIMING_CHAIN)           \
                         TIMING_MULTIPLY(TIMING_T##sum, TIMING_T##b, TIMING_CHAIN)     \
                             TIMING_MULTIPLY(TIMING_T##a, TIMING_T##a, TIMING_CHAIN)   \
                                 TIMING_MULTIPLY(TIMING_T##b, TIMING_T##b,             \
                                                 TIMING_CHAIN) "vmovaps " TIMING_CHAIN \
                                                               "," TIMING_T##sum ::    \
                                                                   : TIMING_USED)
#define TILE_STORE(t, to, stride)                                                                  \
    do {                                                                                           \
        char *timing_at = (char *)(to);                                                            \
        int64_t timing_row = (int64_t)(stride);                                                    \
        __asm__ volatile(                                                                          \
            "vmovaps " TIMING_T##t "," TIMING_STORED "\n\t" TIMING_LATER TIMING_LATER TIMING_LATER \
                TIMING_LATER TIMING_LATER TIMING_LATER TIMING_LATER TIMING_LATER TIMING_LATER      \
                                   "vpxord " TIMING_T##t "," TIMING_T##t "," TIMING_T##t           \
            "\n\t"                                                                                 \
            "vpandd " TIMING_T##t "," TIMING_STORED "," TIMING_STORED                              \
                                  "\n\t" TIMING_ROWS(TIMING_STORE) TIMING_OPERANDS);               \
    } while (0)

#endif
