/* jinja_dict.c - dicts: entries in order of insertion, found through their hashes. */
#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_run.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { UNINDEXED = 8 }; /* so few entries are searched one by one */

static uint64_t mix(uint64_t hash)
{
    hash ^= hash >> 32;
    hash *= 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t hash_integer(tp_integer i) { return mix((uint64_t)i ^ mix((uint64_t)(i >> 64))); }

bool tp_any_is_hashable(const tp_any *v)
{
    if (v->type == TP_ANY_LIST || v->type == TP_ANY_DICT || v->type == TP_ANY_VIEW)
        return false;
    for (size_t i = 0; v->type == TP_ANY_TUPLE && i < v->items->n; i++) {
        /* A tuple in a tuple in a tuple is no key that a template has. */
        const tp_any *inner = &v->items->values[i];
        if (inner->type == TP_ANY_TUPLE) {
            for (size_t j = 0; j < inner->items->n; j++)
                if (inner->items->values[j].type >= TP_ANY_LIST)
                    return false;
        } else if (!tp_any_is_hashable(inner)) {
            return false;
        }
    }
    return true;
}

/* Equal values have equal hashes; `v` is hashable, so it does not nest far. */
static uint64_t hash_of(const tp_any *v)
{
    tp_integer integer;
    if (tp_any_as_int(v, &integer))
        return hash_integer(integer);
    switch ((tp_any_type)v->type) {
    case TP_ANY_FLOAT:
        if (fabs(v->real) < 1e30 && v->real == floor(v->real))
            return hash_integer((tp_integer)v->real);
        return XXH3_64bits(&v->real, sizeof v->real);
    case TP_ANY_STR:
        return XXH3_64bits(v->text.data, v->text.len);
    case TP_ANY_TUPLE: {
        uint64_t hash = 1;
        for (size_t i = 0; i < v->items->n; i++)
            hash = mix(hash + hash_of(&v->items->values[i]));
        return hash;
    }
    case TP_ANY_NONE:
    case TP_ANY_UNDEFINED:
        return mix(v->type);
    default:
        return mix((uint64_t)(uintptr_t)v->items);
    }
}

tp_status tp_any_new_dict(tp_jinja_run *run, size_t n, tp_any *ret)
{
    void *memory, *entries;
    TP_TRY(tp_jinja_take(run, 1, sizeof(struct tp_any_dict), &memory));
    TP_TRY(tp_jinja_take(run, n, sizeof(struct tp_any_entry), &entries));
    struct tp_any_dict *dict = memory;
    dict->entries = entries;
    dict->cap = n;
    *ret = (tp_any){.type = TP_ANY_DICT, .dict = dict};
    return TP_OK;
}

static void index_entry(struct tp_any_dict *dict, size_t entry)
{
    size_t slot = dict->entries[entry].hash;
    while (dict->index[slot & (dict->n_slots - 1)])
        slot++;
    dict->index[slot & (dict->n_slots - 1)] = (uint32_t)entry + 1;
}

static tp_status grow_dict(tp_jinja_run *run, struct tp_any_dict *dict)
{
    if (dict->n == dict->cap) {
        size_t cap = 2 * dict->cap + 4;
        void *entries;
        TP_TRY(tp_jinja_take(run, cap, sizeof *dict->entries, &entries));
        if (dict->n)
            memcpy(entries, dict->entries, dict->n * sizeof *dict->entries);
        dict->entries = entries;
        dict->cap = cap;
    }
    if (dict->n >= UNINDEXED && 2 * (dict->n + 1) > dict->n_slots) {
        size_t n_slots = 32;
        while (n_slots < 4 * dict->n)
            n_slots *= 2;
        void *index;
        TP_TRY(tp_jinja_take(run, n_slots, sizeof *dict->index, &index));
        dict->index = index;
        dict->n_slots = n_slots;
        for (size_t i = 0; i < dict->n; i++)
            index_entry(dict, i);
    }
    return TP_OK;
}

static tp_status find_entry(tp_jinja_run *run, const struct tp_any_dict *dict, const tp_any *key,
                            uint64_t hash, struct tp_any_entry **ret)
{
    *ret = NULL;
    bool same = false;
    for (size_t i = 0; !dict->index && i < dict->n; i++) {
        if (dict->entries[i].hash == hash)
            TP_TRY(tp_any_equal(run, &dict->entries[i].key, key, &same));
        if (same) {
            *ret = &dict->entries[i];
            return TP_OK;
        }
    }
    for (size_t slot = hash; dict->index; slot++) {
        uint32_t found = dict->index[slot & (dict->n_slots - 1)];
        if (!found)
            break;
        struct tp_any_entry *entry = &dict->entries[found - 1];
        if (entry->hash == hash)
            TP_TRY(tp_any_equal(run, &entry->key, key, &same));
        if (same) {
            *ret = entry;
            break;
        }
    }
    return TP_OK;
}

tp_status tp_any_dict_put(tp_jinja_run *run, struct tp_any_dict *dict, const tp_any *key,
                          const tp_any *value)
{
    if (!tp_any_is_hashable(key))
        return tp_jinja_fail(run, "a '%s' cannot be the key of a dict", tp_any_type_name(key));
    uint64_t hash = hash_of(key);
    struct tp_any_entry *entry = NULL;
    TP_TRY(find_entry(run, dict, key, hash, &entry));
    if (entry) {
        entry->value = *value;
        return TP_OK;
    }
    TP_TRY(grow_dict(run, dict));
    dict->entries[dict->n] = (struct tp_any_entry){*key, *value, hash};
    dict->n++;
    if (dict->index)
        index_entry(dict, dict->n - 1);
    return TP_OK;
}

tp_status tp_any_dict_get(tp_jinja_run *run, const struct tp_any_dict *dict, const tp_any *key,
                          const tp_any **ret)
{
    struct tp_any_entry *entry = NULL;
    if (!tp_any_is_hashable(key))
        return tp_jinja_fail(run, "a '%s' cannot be the key of a dict", tp_any_type_name(key));
    TP_TRY(find_entry(run, dict, key, hash_of(key), &entry));
    *ret = entry ? &entry->value : NULL;
    return TP_OK;
}

const tp_any *tp_any_dict_find(const struct tp_any_dict *dict, tp_slice key)
{
    uint64_t hash = XXH3_64bits(key.data, key.len);
    for (size_t i = 0; !dict->index && i < dict->n; i++) {
        const struct tp_any_entry *e = &dict->entries[i];
        if (e->hash == hash && e->key.type == TP_ANY_STR && tp_slice_eq(e->key.text, key))
            return &e->value;
    }
    for (size_t slot = hash; dict->index; slot++) {
        uint32_t found = dict->index[slot & (dict->n_slots - 1)];
        if (!found)
            break;
        const struct tp_any_entry *e = &dict->entries[found - 1];
        if (e->hash == hash && e->key.type == TP_ANY_STR && tp_slice_eq(e->key.text, key))
            return &e->value;
    }
    return NULL;
}
