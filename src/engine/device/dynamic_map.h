/* dynamic_map.h - the 256 values that 8-bit moments are kept as (Dettmers et al., arXiv
 * 2110.02861), as bitsandbytes' create_dynamic_map(): finer where they are small.
 *
 * A block of TP_DYNAMIC_BLOCK numbers is its largest size and a code for each: number =
 * value[code] * size. */
#ifndef TP_ENGINE_DEVICE_DYNAMIC_MAP_H
#define TP_ENGINE_DEVICE_DYNAMIC_MAP_H

#include <stdint.h>

enum { TP_DYNAMIC_BLOCK = 256 };

typedef struct {
    float value[256];       /* ascending */
    float boundary[255];    /* halfway between a value and the next, which has what is above it */
    uint8_t first[1 << 16]; /* least code of the numbers with these upper 16 bits */
    float tree[256];        /* the boundaries as nodes from 1 on, those below k being 2k, 2k+1 */
} tp_dynamic_map;

const tp_dynamic_map *tp_dynamic_map_signed(void);   /* -0.993 .. 1 */
const tp_dynamic_map *tp_dynamic_map_unsigned(void); /* 0 .. 1 */

/* The nearest value's code, of two that are as near the lower; NaN: 0. */
static inline uint8_t tp_dynamic_code(const tp_dynamic_map *map, float x)
{
    union {
        float f;
        uint32_t bits;
    } number = {.f = x};
    unsigned code = map->first[number.bits >> 16];
    while (code < 255 && x > map->boundary[code])
        code++;
    return (uint8_t)code;
}

#endif
