/* amx_emulate.h - AMX tiles in plain memory, so that gemm_amx.c can be tested anywhere.
 *
 * Follows the instruction set reference: a load or store moves configured rows of configured
 * bytes, the product adds 16 pairs of bf16 per element.  Using a tile before configuring it
 * stops the test. */
#ifndef TP_TESTS_AMX_EMULATE_H
#define TP_TESTS_AMX_EMULATE_H

#include "base/error.h"
#include "engine/tensor/dtype.h"

typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes_per_row[16];
    uint8_t rows[16];
} emulated_config;

static _Thread_local struct {
    emulated_config config;
    char data[8][16][64];
} tiles;

static inline void emulate_configure(const void *config)
{
    memset(&tiles, 0x5a, sizeof tiles);
    memcpy(&tiles.config, config, sizeof tiles.config);
    TP_ASSERT(sizeof(emulated_config) == 64 && tiles.config.palette == 1);
}

static inline void emulate_release(void) { memset(&tiles, 0, sizeof tiles); }

static inline void emulate_zero(int t)
{
    TP_ASSERT(tiles.config.palette == 1);
    memset(tiles.data[t], 0, sizeof tiles.data[t]);
}

static inline void emulate_load(int t, const void *from, size_t stride)
{
    TP_ASSERT(tiles.config.palette == 1);
    for (size_t r = 0; r < tiles.config.rows[t]; r++)
        memcpy(tiles.data[t][r], (const char *)from + r * stride, tiles.config.bytes_per_row[t]);
}

static inline void emulate_store(int t, void *to, size_t stride)
{
    TP_ASSERT(tiles.config.palette == 1);
    for (size_t r = 0; r < tiles.config.rows[t]; r++)
        memcpy((char *)to + r * stride, tiles.data[t][r], tiles.config.bytes_per_row[t]);
}

static inline void emulate_multiply(int sum, int a, int b)
{
    TP_ASSERT(tiles.config.palette == 1 && sum != a && sum != b && a != b);
    for (int i = 0; i < tiles.config.rows[sum]; i++) {
        float row[16];
        memcpy(row, tiles.data[sum][i], sizeof row);
        for (int p = 0; p < tiles.config.bytes_per_row[a] / 4; p++) {
            tp_bf16 pair_a[2], pairs_b[32];
            memcpy(pair_a, tiles.data[a][i] + 4 * p, sizeof pair_a);
            memcpy(pairs_b, tiles.data[b][p], sizeof pairs_b);
            for (int j = 0; j < 16; j++) {
                row[j] += tp_bf16_to_f32(pair_a[0]) * tp_bf16_to_f32(pairs_b[2 * j]);
                row[j] += tp_bf16_to_f32(pair_a[1]) * tp_bf16_to_f32(pairs_b[2 * j + 1]);
            }
        }
        memcpy(tiles.data[sum][i], row, sizeof row);
    }
}

#define TILE_CONFIGURE(config) emulate_configure(config)
#define TILE_RELEASE() emulate_release()
#define TILE_ZERO(t) emulate_zero(t)
#define TILE_LOAD(t, from, stride) emulate_load(t, from, (size_t)(stride))
#define TILE_STORE(t, to, stride) emulate_store(t, to, (size_t)(stride))
#define TILE_MULTIPLY(sum, a, b) emulate_multiply(sum, a, b)

#endif
