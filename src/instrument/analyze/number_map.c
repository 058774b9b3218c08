#include "instrument/analyze/number_map.h"

#include <stdlib.h>
#include <string.h>

#include "instrument/analyze/vec.h"

void tp_number_map_release(tp_number_map *map)
{
    free(map->keys);
    free(map->values);
    *map = (tp_number_map){0};
}

static size_t slot_of(const tp_number_map *map, uint64_t key)
{
    uint64_t h = key * 0x9E3779B97F4A7C15u;
    size_t mask = map->n_slots - 1, at = (size_t)(h ^ (h >> 32)) & mask;
    while (map->values[at] != TP_NO_ROW && map->keys[at] != key)
        at = (at + 1) & mask;
    return at;
}

static void resize(tp_number_map *map, size_t n_slots)
{
    tp_number_map bigger = {.keys = tp_vec_new(n_slots, sizeof *bigger.keys),
                            .values = tp_vec_new(n_slots, sizeof *bigger.values),
                            .n = map->n,
                            .n_slots = n_slots};
    memset(bigger.values, 0xFF, n_slots * sizeof *bigger.values);
    for (size_t i = 0; i < map->n_slots; i++) {
        if (map->values[i] == TP_NO_ROW)
            continue;
        size_t at = slot_of(&bigger, map->keys[i]);
        bigger.keys[at] = map->keys[i];
        bigger.values[at] = map->values[i];
    }
    free(map->keys);
    free(map->values);
    *map = bigger;
}

void tp_number_map_reserve(tp_number_map *map, size_t n)
{
    size_t wanted = 64;
    while (wanted * 5 < n * 8)
        wanted *= 2;
    if (wanted > map->n_slots)
        resize(map, wanted);
}

static bool put(tp_number_map *map, uint64_t key, uint32_t value, bool replace)
{
    tp_number_map_reserve(map, map->n + 1);
    size_t at = slot_of(map, key);
    bool is_new = map->values[at] == TP_NO_ROW;
    if (is_new || replace) {
        map->keys[at] = key;
        map->values[at] = value;
        map->n += is_new;
    }
    return is_new;
}

bool tp_number_map_add(tp_number_map *map, uint64_t key, uint32_t value)
{
    return put(map, key, value, false);
}

void tp_number_map_set(tp_number_map *map, uint64_t key, uint32_t value)
{
    put(map, key, value, true);
}

uint32_t tp_number_map_get(const tp_number_map *map, uint64_t key)
{
    return map->n_slots ? map->values[slot_of(map, key)] : TP_NO_ROW;
}
