/* jinja_dict.c - dicts: entries in order of insertion, found through their hashes. */
#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_run.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    UNINDEXED = 8,        /* so few entries are searched one by one */
    BYTES_PER_TURN = 4096 /* compared */
};

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

/* --- equality and order, which need the dicts --- */

static bool is_number(const tp_any *v)
{
    return v->type == TP_ANY_BOOL || v->type == TP_ANY_INT || v->type == TP_ANY_FLOAT;
}

static bool is_sequence(const tp_any *v)
{
    return v->type == TP_ANY_LIST || v->type == TP_ANY_TUPLE;
}

/* -1, 0, 1; 2 when one is not a number. */
static int compare_numbers(const tp_any *a, const tp_any *b)
{
    tp_integer i, j;
    if (tp_any_as_int(a, &i) && tp_any_as_int(b, &j))
        return (i > j) - (i < j);
    double x = 0, y = 0;
    tp_any_as_float(a, &x);
    tp_any_as_float(b, &y);
    return isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
}

static tp_status equal_at(tp_jinja_run *run, const tp_any *a, const tp_any *b, size_t depth,
                          bool *ret);

static tp_status equal_items(tp_jinja_run *run, const struct tp_any_items *a,
                             const struct tp_any_items *b, size_t depth, bool *ret)
{
    *ret = a->n == b->n;
    for (size_t i = 0; i < a->n && *ret; i++)
        TP_TRY(equal_at(run, &a->values[i], &b->values[i], depth, ret));
    return TP_OK;
}

static tp_status equal_dicts(tp_jinja_run *run, const struct tp_any_dict *a,
                             const struct tp_any_dict *b, size_t depth, bool *ret)
{
    *ret = a->n == b->n;
    for (size_t i = 0; i < a->n && *ret; i++) {
        const tp_any *other = NULL;
        TP_TRY(tp_any_dict_get(run, b, &a->entries[i].key, &other));
        *ret = other != NULL;
        if (other)
            TP_TRY(equal_at(run, &a->entries[i].value, other, depth, ret));
    }
    return TP_OK;
}

static tp_status equal_at(tp_jinja_run *run, const tp_any *a, const tp_any *b, size_t depth,
                          bool *ret)
{
    TP_TRY(tp_jinja_charge(run, 1));
    if (depth > TP_JINJA_MAX_VALUE_DEPTH)
        return tp_jinja_fail(run, "a comparison of values nested deeper than %d",
                             TP_JINJA_MAX_VALUE_DEPTH);
    if (is_number(a) && is_number(b)) {
        *ret = compare_numbers(a, b) == 0;
        return TP_OK;
    }
    if (a->type != b->type) {
        *ret = false;
        return TP_OK;
    }
    switch ((tp_any_type)a->type) {
    case TP_ANY_MISSING:
    case TP_ANY_UNDEFINED:
    case TP_ANY_NONE:
        *ret = true;
        return TP_OK;
    case TP_ANY_STR:
        TP_TRY(tp_jinja_charge(run, a->text.len / BYTES_PER_TURN));
        *ret = tp_slice_eq(a->text, b->text);
        return TP_OK;
    case TP_ANY_LIST:
    case TP_ANY_TUPLE:
        return equal_items(run, a->items, b->items, depth + 1, ret);
    case TP_ANY_DICT:
        return equal_dicts(run, a->dict, b->dict, depth + 1, ret);
    case TP_ANY_RANGE:
        *ret = a->range->n == b->range->n &&
               (a->range->n == 0 || (a->range->start == b->range->start &&
                                     (a->range->n == 1 || a->range->step == b->range->step)));
        return TP_OK;
    default:
        *ret = a->items == b->items && a->view == b->view; /* the same object */
        return TP_OK;
    }
}

tp_status tp_any_equal(tp_jinja_run *run, const tp_any *a, const tp_any *b, bool *ret)
{
    return equal_at(run, a, b, 0, ret);
}

static tp_status compare_at(tp_jinja_run *run, const tp_any *a, const tp_any *b, const char *op,
                            size_t depth, int *ret)
{
    TP_TRY(tp_jinja_charge(run, 1));
    if (a->type == TP_ANY_UNDEFINED || b->type == TP_ANY_UNDEFINED)
        return tp_jinja_undefined_error(run, a->type == TP_ANY_UNDEFINED ? a : b);
    if (is_number(a) && is_number(b)) {
        *ret = compare_numbers(a, b);
        return TP_OK;
    }
    if (a->type == TP_ANY_STR && b->type == TP_ANY_STR) {
        size_t n = TP_MIN(a->text.len, b->text.len);
        TP_TRY(tp_jinja_charge(run, n / BYTES_PER_TURN));
        int order = n ? memcmp(a->text.data, b->text.data, n) : 0;
        *ret = order ? (order > 0) - (order < 0)
                     : (a->text.len > b->text.len) - (a->text.len < b->text.len);
        return TP_OK;
    }
    if (!is_sequence(a) || a->type != b->type || depth > TP_JINJA_MAX_VALUE_DEPTH)
        return tp_jinja_fail(run, "'%s' is not possible between '%s' and '%s'", op,
                             tp_any_type_name(a), tp_any_type_name(b));
    size_t n = TP_MIN(a->items->n, b->items->n);
    for (size_t i = 0; i < n; i++) {
        bool same = false;
        TP_TRY(tp_any_equal(run, &a->items->values[i], &b->items->values[i], &same));
        if (!same)
            return compare_at(run, &a->items->values[i], &b->items->values[i], op, depth + 1, ret);
    }
    *ret = (a->items->n > b->items->n) - (a->items->n < b->items->n);
    return TP_OK;
}

tp_status tp_any_compare(tp_jinja_run *run, const tp_any *a, const tp_any *b, const char *op,
                         int *ret)
{
    return compare_at(run, a, b, op, 0, ret);
}

tp_status tp_any_contains(tp_jinja_run *run, const tp_any *container, const tp_any *item, bool *ret)
{
    if (container->type == TP_ANY_STR) {
        if (item->type != TP_ANY_STR)
            return tp_jinja_fail(run, "'in' a string needs a string on its left, not '%s'",
                                 tp_any_type_name(item));
        TP_TRY(tp_jinja_charge(run, container->text.len / BYTES_PER_TURN));
        *ret = item->text.len == 0 || memmem(container->text.data, container->text.len,
                                             item->text.data, item->text.len) != NULL;
        return TP_OK;
    }
    if (container->type == TP_ANY_DICT ||
        (container->type == TP_ANY_VIEW && container->view == TP_VIEW_KEYS)) {
        const tp_any *found = NULL;
        TP_TRY(tp_any_dict_get(run, container->dict, item, &found));
        *ret = found != NULL;
        return TP_OK;
    }
    tp_any_walk walk;
    tp_any element;
    bool more = false;
    *ret = false;
    TP_TRY(tp_any_walk_begin(run, container, &walk));
    for (;;) {
        TP_TRY(tp_any_walk_next(run, &walk, &element, &more));
        if (!more)
            return TP_OK;
        TP_TRY(tp_any_equal(run, &element, item, ret));
        if (*ret)
            return TP_OK;
    }
}
