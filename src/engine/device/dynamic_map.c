/* dynamic_map.c - see the header: 2^i (signed) or 2^(i+1) values, the middles of equal parts of
 * 0.1 .. 1, times 10^(i-6), for i = 0..6; and 0 and 1. */
#include "engine/device/dynamic_map.h"
#include "base/order.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

static tp_dynamic_map maps[2];

TP_ORDER(compare, float, TP_COMPARE(*x, *y))

/* The i-th boundary of n equal parts, as torch.linspace rounds it. */
static float boundary(int i, int n)
{
    const float first = 0.1f;
    double step = (double)((1 - first) / (float)n);
    return i < (n + 1) / 2 ? (float)((double)first + step * i) : (float)(1 - step * (n - i));
}

static void fill_values(tp_dynamic_map *map, int is_signed)
{
    int n = 0;
    for (int i = 0; i < 7; i++) {
        int parts = 1 << (i + !is_signed);
        for (int k = 0; k < parts; k++) {
            float middle = (boundary(k, parts) + boundary(k + 1, parts)) / 2;
            float value = middle * (float)pow(10, i - 6);
            map->value[n++] = value;
            if (is_signed)
                map->value[n++] = -value;
        }
    }
    map->value[n++] = 0;
    map->value[n++] = 1;
    qsort(map->value, 256, sizeof *map->value, compare);
}

static uint8_t code_from_below(const tp_dynamic_map *map, float x)
{
    unsigned code = 0;
    while (code < 255 && x > map->boundary[code])
        code++;
    return (uint8_t)code;
}

/* Whoever goes down 8 levels, right where a number is above, is at node 256 + its code. */
static void fill_tree(tp_dynamic_map *map)
{
    for (int level = 0; level < 8; level++)
        for (int k = 0; k < 1 << level; k++)
            map->tree[(1 << level) + k] = map->boundary[(2 * k + 1) * (128 >> level) - 1];
}

static void fill(tp_dynamic_map *map, int is_signed)
{
    fill_values(map, is_signed);
    for (int i = 0; i < 255; i++)
        map->boundary[i] = (map->value[i] + map->value[i + 1]) / 2;
    fill_tree(map);
    for (uint32_t upper = 0; upper < 1 << 16; upper++) {
        /* Of negative numbers the least has the largest bits. */
        union {
            uint32_t bits;
            float f;
        } least = {.bits = upper << 16 | (upper >> 15 ? 0xffff : 0)};
        map->first[upper] = code_from_below(map, least.f);
    }
}

static void fill_both(void)
{
    fill(&maps[0], 0);
    fill(&maps[1], 1);
}

static const tp_dynamic_map *map_of(int is_signed)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_both);
    return &maps[is_signed];
}

const tp_dynamic_map *tp_dynamic_map_signed(void) { return map_of(1); }

const tp_dynamic_map *tp_dynamic_map_unsigned(void) { return map_of(0); }
