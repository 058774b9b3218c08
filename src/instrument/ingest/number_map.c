/* number_map.c - a hash table with open addressing and linear probing, from 64-bit numbers to
 * rows. */
#include "instrument/ingest/number_map.h"

#include <stdlib.h>

#include "base/vec.h"

void tp_number_map_release(tp_number_map *map)
{
    free(map->slots);
    *map = (tp_number_map){0};
}

static tp_number_slot *slot_of(const tp_number_map *map, uint64_t key)
{
    uint64_t h = key * 0x9E3779B97F4A7C15u;
    size_t mask = map->n_slots - 1, at = (size_t)(h ^ (h >> 32)) & mask;
    while (map->slots[at].value != TP_NO_ROW && map->slots[at].key != key)
        at = (at + 1) & mask;
    return &map->slots[at];
}

static void resize(tp_number_map *map, size_t n_slots)
{
    tp_number_map bigger = {
        .slots = tp_vec_new(n_slots, sizeof *bigger.slots), .n = map->n, .n_slots = n_slots};
    for (size_t i = 0; i < n_slots; i++)
        bigger.slots[i].value = TP_NO_ROW;
    for (size_t i = 0; i < map->n_slots; i++)
        if (map->slots[i].value != TP_NO_ROW)
            *slot_of(&bigger, map->slots[i].key) = map->slots[i];
    free(map->slots);
    *map = bigger;
}

static void number_map_reserve(tp_number_map *map, size_t n)
{
    size_t wanted = 64;
    while (wanted * 5 < n * 8)
        wanted *= 2;
    if (wanted > map->n_slots)
        resize(map, wanted);
}

static bool put(tp_number_map *map, uint64_t key, uint32_t value, bool replace)
{
    number_map_reserve(map, map->n + 1);
    tp_number_slot *slot = slot_of(map, key);
    bool is_new = slot->value == TP_NO_ROW;
    if (is_new || replace) {
        *slot = (tp_number_slot){key, value};
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
    return map->n_slots ? slot_of(map, key)->value : TP_NO_ROW;
}
