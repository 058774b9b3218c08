/* amx_tiles.h - the AMX instructions, as asm that tells the compiler what they read and write.
 *
 * GCC 12's intrinsics do not: _tile_loadconfig() names 8 of the 64 bytes that LDTILECFG reads,
 * so that the stores of the others are dropped, and _tile_loadd() names no memory, so that
 * stores to a tile's rows may sink below it.  Here the configuration is an operand as a whole,
 * and rows of tiles are "memory".  Tiles are no registers to the compiler: volatile keeps the
 * instructions in their order.  `t` is a literal 0 to 7. */
#ifndef TP_ENGINE_BACKEND_CPU_AMX_TILES_H
#define TP_ENGINE_BACKEND_CPU_AMX_TILES_H

#include <stdint.h>

/* The memory operand of LDTILECFG. */
typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes_per_row[16];
    uint8_t rows[16];
} tile_config;
_Static_assert(sizeof(tile_config) == 64, "as the processor reads it");

#if !defined(TILE_CONFIGURE) /* bench/tile_timing.h has others */
#define TILE_CONFIGURE(config) __asm__ volatile("ldtilecfg\t%0" ::"m"(*(config)))
#define TILE_RELEASE() __asm__ volatile("tilerelease")
#define TILE_ZERO(t) __asm__ volatile("tilezero\t%%tmm" #t ::)
#define TILE_LOAD(t, from, stride)                                                 \
    __asm__ volatile("tileloadd\t(%0,%1,1), %%tmm" #t ::"r"((const void *)(from)), \
                     "r"((int64_t)(stride))                                        \
                     : "memory")
#define TILE_STORE(t, to, stride)                                              \
    __asm__ volatile("tilestored\t%%tmm" #t ", (%0,%1,1)" ::"r"((void *)(to)), \
                     "r"((int64_t)(stride))                                    \
                     : "memory")
/* sum += a * b */
#define TILE_MULTIPLY(sum, a, b) \
    __asm__ volatile("tdpbf16ps\t%%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::)
#endif

enum { AMX_TILES = 8, AMX_ROWS = 16, AMX_ROW_BYTES = 64 };

/* Tiles with a whole line a row, tile t of rows[t] rows; NULL: all of 16. */
static inline void configure_tiles(const uint8_t *rows)
{
    tile_config config = {.palette = 1};
    for (int t = 0; t < AMX_TILES; t++) {
        config.bytes_per_row[t] = AMX_ROW_BYTES;
        config.rows[t] = rows ? rows[t] : (uint8_t)AMX_ROWS;
    }
    TILE_CONFIGURE(&config);
}

#endif
