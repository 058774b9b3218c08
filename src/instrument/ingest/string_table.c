/* Open addressing with linear steps.  A slot holds 32 bits of the hash beside the number,
 * so texts are compared only when they are almost certainly equal. */
#include "instrument/ingest/string_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "base/vec.h"

static uint64_t load64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t load_up_to_8(const char *p, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, p, n);
    return v;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Folded multiplications, 16 bytes a step. */
static uint64_t hash_text(const char *p, size_t n)
{
    const uint64_t k0 = UINT64_C(0x9e3779b97f4a7c15), k1 = UINT64_C(0xd6e8feb86659fd93);
    uint64_t h = k0 ^ (uint64_t)n;
    size_t left = n;
    for (; left >= 16; left -= 16, p += 16)
        h = mix(load64(p) ^ k1, load64(p + 8) ^ h);
    if (left >= 8) {
        h = mix(load64(p) ^ k1, h);
        left -= 8;
        p += 8;
    }
    if (left)
        h = mix(load_up_to_8(p, left) ^ k1, h);
    return mix(h ^ k0, k1);
}

static void put(tp_string_table *table, uint64_t slot)
{
    size_t mask = table->n_slots - 1, at = (size_t)(slot >> 32) & mask;
    while (table->slots[at])
        at = (at + 1) & mask;
    table->slots[at] = slot;
}

static void rehash(tp_string_table *table)
{
    size_t n_old = table->n_slots;
    TP_FREED uint64_t *old = table->slots;
    table->n_slots = n_old ? n_old * 2 : 256;
    table->slots = tp_new(table->n_slots, sizeof *table->slots);
    for (size_t i = 0; i < n_old; i++)
        if (old[i])
            put(table, old[i]);
}

static uint32_t append(tp_string_table *table, const char *text, size_t len)
{
    TP_ASSERT(table->n < UINT32_MAX - 1);
    table->bytes = tp_vec_room(table->bytes, &table->bytes_cap, table->used + len + 1, 1);
    table->offset =
        tp_vec_room(table->offset, &table->offset_cap, table->n + 2, sizeof *table->offset);
    if (len)
        memcpy(table->bytes + table->used, text, len);
    table->bytes[table->used + len] = 0;
    table->offset[table->n] = table->used;
    table->used += len + 1;
    table->offset[++table->n] = table->used;
    return (uint32_t)(table->n - 1);
}

void tp_string_table_init(tp_string_table *table)
{
    *table = (tp_string_table){0};
    rehash(table);
    append(table, "", 0);
}

void tp_string_table_release(tp_string_table *table)
{
    free(table->bytes);
    free(table->offset);
    free(table->slots);
    *table = (tp_string_table){0};
}

static bool look_up(const tp_string_table *table, uint64_t hash, const char *text, size_t len,
                    uint32_t *ret)
{
    size_t mask = table->n_slots - 1;
    for (size_t at = (size_t)(hash >> 32) & mask; table->slots[at]; at = (at + 1) & mask) {
        if ((table->slots[at] ^ hash) >> 32)
            continue;
        uint32_t id = (uint32_t)table->slots[at] - 1;
        if (tp_string_len(table, id) == len && memcmp(tp_string_get(table, id), text, len) == 0) {
            *ret = id;
            return true;
        }
    }
    return false;
}

bool tp_string_find(const tp_string_table *table, const char *text, size_t len, uint32_t *ret)
{
    if (len == 0) {
        *ret = 0;
        return true;
    }
    return table->n_slots && look_up(table, hash_text(text, len), text, len, ret);
}

uint32_t tp_string_add(tp_string_table *table, const char *text, size_t len)
{
    uint32_t id;
    if (len == 0)
        return 0;
    uint64_t hash = hash_text(text, len);
    if (TP_LIKELY(look_up(table, hash, text, len, &id)))
        return id;
    if (table->n * 2 >= table->n_slots)
        rehash(table);
    id = append(table, text, len);
    put(table, (hash & ~UINT64_C(0xffffffff)) | (uint64_t)(id + 1));
    return id;
}
