/* jinja_value.c - Python's values as templates see them: truth, length, going through, dicts,
 * equality and order. */
#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_run.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { UNINDEXED = 8 }; /* so few entries of a dict are searched one by one */

const char *tp_any_type_name(tp_any v)
{
    static const char *const views[] = {"dict_keys", "dict_values", "dict_items"};
    static const char *const names[] = {[TP_ANY_MISSING] = "Undefined",
                                        [TP_ANY_UNDEFINED] = "Undefined",
                                        [TP_ANY_NONE] = "NoneType",
                                        [TP_ANY_BOOL] = "bool",
                                        [TP_ANY_INT] = "int",
                                        [TP_ANY_FLOAT] = "float",
                                        [TP_ANY_STR] = "str",
                                        [TP_ANY_LIST] = "list",
                                        [TP_ANY_TUPLE] = "tuple",
                                        [TP_ANY_DICT] = "dict",
                                        [TP_ANY_RANGE] = "range",
                                        [TP_ANY_ITERATOR] = "generator",
                                        [TP_ANY_NAMESPACE] = "Namespace",
                                        [TP_ANY_FUNCTION] = "function",
                                        [TP_ANY_METHOD] = "function",
                                        [TP_ANY_MACRO] = "Macro",
                                        [TP_ANY_LOOP] = "LoopContext"};
    return v.type == TP_ANY_VIEW ? views[v.view] : names[v.type];
}

bool tp_any_is_list(tp_any v) { return v.type == TP_ANY_LIST || v.type == TP_ANY_TUPLE; }

bool tp_any_is_given(tp_any v) { return v.type != TP_ANY_MISSING && v.type != TP_ANY_NONE; }

/* Its length, in bytes of a text; false when it has none. */
static bool has_length(tp_any v, size_t *ret)
{
    *ret = 0;
    if (v.type == TP_ANY_STR)
        *ret = v.text.len;
    else if (tp_any_is_list(v))
        *ret = v.items->n;
    else if (v.type == TP_ANY_DICT || v.type == TP_ANY_VIEW)
        *ret = v.dict->n;
    else if (v.type == TP_ANY_RANGE)
        *ret = (size_t)v.range->n;
    else
        return v.type == TP_ANY_UNDEFINED;
    return true;
}

bool tp_any_is_true(tp_any v)
{
    size_t n;
    tp_integer integer;
    if (tp_any_as_int(v, &integer))
        return integer != 0;
    if (v.type == TP_ANY_FLOAT)
        return v.real != 0;
    return has_length(v, &n) ? n != 0 : v.type > TP_ANY_NONE;
}

bool tp_any_as_int(tp_any v, tp_integer *ret)
{
    if (v.type == TP_ANY_BOOL || v.type == TP_ANY_INT)
        *ret = v.type == TP_ANY_BOOL ? v.truth : v.integer;
    return v.type == TP_ANY_BOOL || v.type == TP_ANY_INT;
}

bool tp_any_as_float(tp_any v, double *ret)
{
    tp_integer integer = 0;
    bool is_int = tp_any_as_int(v, &integer);
    if (is_int || v.type == TP_ANY_FLOAT)
        *ret = is_int ? (double)integer : v.real;
    return is_int || v.type == TP_ANY_FLOAT;
}

size_t tp_any_length(tp_jinja_run *run, tp_any v)
{
    size_t n;
    if (!has_length(v, &n))
        tp_jinja_fail(run, "'%s' has no length", tp_any_type_name(v));
    if (v.type != TP_ANY_STR)
        return n;
    tp_jinja_charge(run, n / TP_JINJA_BYTES_PER_TURN);
    return tp_python_count(v.text);
}

tp_any tp_any_new_list(tp_jinja_run *run, tp_any_type type, size_t n)
{
    struct tp_any_items *items = tp_jinja_take(run, 1, sizeof *items);
    *items = (struct tp_any_items){n, n, tp_jinja_take(run, n, sizeof(tp_any))};
    return (tp_any){.type = (uint8_t)type, .items = items};
}

void tp_any_append(tp_jinja_run *run, struct tp_any_items *list, tp_any value)
{
    list->values = tp_jinja_room(run, list->values, list->n, &list->cap, sizeof value);
    list->values[list->n++] = value;
    tp_jinja_charge(run, 1);
}

tp_any tp_any_pair(tp_jinja_run *run, tp_any a, tp_any b)
{
    tp_any pair = tp_any_new_list(run, TP_ANY_TUPLE, 2);
    pair.items->values[0] = a;
    pair.items->values[1] = b;
    return pair;
}

tp_any tp_any_undefined(tp_jinja_run *run, struct tp_any_undefined what)
{
    struct tp_any_undefined *undefined = tp_jinja_take(run, 1, sizeof *undefined);
    *undefined = what;
    return (tp_any){.type = TP_ANY_UNDEFINED, .undefined = undefined};
}

tp_any tp_any_hint(tp_jinja_run *run, const char *hint)
{
    return tp_any_undefined(run, (struct tp_any_undefined){.hint = hint});
}

void tp_jinja_want_defined(tp_jinja_run *run, tp_any v)
{
    if (v.type != TP_ANY_UNDEFINED)
        return;
    const struct tp_any_undefined *u = v.undefined;
    int n = (int)TP_MIN(u->name.len, 100);
    if (u->hint)
        tp_jinja_fail(run, "%s", u->hint);
    if (u->is_unsafe)
        tp_jinja_fail(run, "attribute '%.*s' of a '%s' is not allowed in templates", n,
                      u->name.data, u->object);
    if (!u->object)
        tp_jinja_fail(run, "'%.*s' is undefined", n, u->name.data);
    tp_jinja_fail(run, "'%s' object has no %s '%.*s'", u->object,
                  u->is_element ? "element" : "attribute", n, u->name.data);
}

/* --- going through --- */

bool tp_any_is_iterable(tp_any v)
{
    return v.type == TP_ANY_UNDEFINED || (v.type >= TP_ANY_STR && v.type <= TP_ANY_ITERATOR);
}

tp_any_walk tp_any_walk_begin(tp_jinja_run *run, tp_any v)
{
    tp_any_walk walk = {.source = v};
    if (!tp_any_is_iterable(v))
        tp_jinja_fail(run, "a '%s' cannot be iterated over", tp_any_type_name(v));
    has_length(v, &walk.n);
    return walk;
}

bool tp_any_walk_next(tp_jinja_run *run, tp_any_walk *walk, tp_any *ret)
{
    tp_any v = walk->source;
    tp_jinja_charge(run, 1);
    if (v.type == TP_ANY_ITERATOR) {
        struct tp_any_iterator *iterator = v.iterator;
        if (iterator->failure) {
            run->failure = *iterator->failure;
            longjmp(*run->failed, 1);
        }
        bool more = iterator->at < iterator->items->n;
        if (more)
            *ret = iterator->items->values[iterator->at++];
        return more;
    }
    if (walk->at >= walk->n)
        return false;
    size_t at = walk->at++;
    if (v.type == TP_ANY_STR) {
        walk->at = at;
        tp_python_next(v.text, &walk->at);
        *ret = tp_any_text((tp_slice){v.text.data + at, walk->at - at});
    } else if (v.type == TP_ANY_RANGE) {
        *ret = tp_any_int(v.range->start + (int64_t)at * v.range->step);
    } else if (tp_any_is_list(v)) {
        *ret = v.items->values[at];
    } else {
        const struct tp_any_entry *e = &v.dict->entries[at];
        bool is_keys = v.type == TP_ANY_DICT || v.view == TP_VIEW_KEYS;
        *ret = is_keys                    ? e->key
               : v.view == TP_VIEW_VALUES ? e->value
                                          : tp_any_pair(run, e->key, e->value);
    }
    return true;
}

struct tp_any_items *tp_any_list_of(tp_jinja_run *run, tp_any v)
{
    tp_any_walk walk = tp_any_walk_begin(run, v);
    struct tp_any_items *list = tp_any_new_list(run, TP_ANY_LIST, walk.n).items;
    list->n = 0;
    for (tp_any element; tp_any_walk_next(run, &walk, &element);) {
        list->values = tp_jinja_room(run, list->values, list->n, &list->cap, sizeof element);
        list->values[list->n++] = element;
    }
    return list;
}

tp_any tp_any_new_iterator(tp_jinja_run *run, const struct tp_any_items *items)
{
    struct tp_any_iterator *iterator = tp_jinja_take(run, 1, sizeof *iterator);
    iterator->items = items;
    return (tp_any){.type = TP_ANY_ITERATOR, .iterator = iterator};
}

/* --- dicts: entries in order of insertion, found through their hashes --- */

static uint64_t mix(uint64_t hash)
{
    hash ^= hash >> 32;
    hash *= 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t hash_integer(tp_integer i) { return mix((uint64_t)i ^ mix((uint64_t)(i >> 64))); }

/* A tuple in a tuple in a tuple is no key that a template has: `depth` is 0 there. */
static bool is_hashable(tp_any v, int depth)
{
    if (v.type == TP_ANY_LIST || v.type == TP_ANY_DICT || v.type == TP_ANY_VIEW)
        return false;
    for (size_t i = 0; v.type == TP_ANY_TUPLE && i < v.items->n; i++)
        if (depth == 0 || !is_hashable(v.items->values[i], depth - 1))
            return false;
    return true;
}

bool tp_any_is_hashable(tp_any v) { return is_hashable(v, 2); }

/* Equal values have equal hashes; `v` is hashable, so it does not nest far. */
static uint64_t hash_of(tp_any v)
{
    tp_integer integer;
    uint64_t hash = 1;
    if (tp_any_as_int(v, &integer))
        return hash_integer(integer);
    switch ((tp_any_type)v.type) {
    case TP_ANY_FLOAT:
        if (fabs(v.real) < 1e30 && v.real == floor(v.real))
            return hash_integer((tp_integer)v.real);
        return XXH3_64bits(&v.real, sizeof v.real);
    case TP_ANY_STR:
        return XXH3_64bits(v.text.data, v.text.len);
    case TP_ANY_TUPLE:
        for (size_t i = 0; i < v.items->n; i++)
            hash = mix(hash + hash_of(v.items->values[i]));
        return hash;
    case TP_ANY_NONE:
    case TP_ANY_UNDEFINED:
        return mix(v.type);
    default:
        return mix((uint64_t)(uintptr_t)v.items);
    }
}

tp_any tp_any_new_dict(tp_jinja_run *run, size_t n)
{
    struct tp_any_dict *dict = tp_jinja_take(run, 1, sizeof *dict);
    dict->entries = tp_jinja_take(run, n, sizeof *dict->entries);
    dict->cap = n;
    return (tp_any){.type = TP_ANY_DICT, .dict = dict};
}

static void index_entry(struct tp_any_dict *dict, size_t entry)
{
    size_t slot = dict->entries[entry].hash;
    while (dict->index[slot & (dict->n_slots - 1)])
        slot++;
    dict->index[slot & (dict->n_slots - 1)] = (uint32_t)entry + 1;
}

/* The index grows with the entries, the last of which is not in it yet. */
static void index_last(tp_jinja_run *run, struct tp_any_dict *dict)
{
    if (dict->n <= UNINDEXED)
        return;
    if (2 * dict->n <= dict->n_slots) {
        index_entry(dict, dict->n - 1);
        return;
    }
    dict->n_slots = dict->n_slots ? 2 * dict->n_slots : 32;
    dict->index = tp_jinja_take(run, dict->n_slots, sizeof *dict->index);
    for (size_t i = 0; i < dict->n; i++)
        index_entry(dict, i);
}

static struct tp_any_entry *find_entry(tp_jinja_run *run, const struct tp_any_dict *dict,
                                       tp_any key, uint64_t hash)
{
    for (size_t i = 0, slot = hash;; i++, slot++) {
        size_t found = dict->index   ? dict->index[slot & (dict->n_slots - 1)]
                       : i < dict->n ? i + 1
                                     : 0;
        if (!found)
            return NULL;
        struct tp_any_entry *entry = &dict->entries[found - 1];
        if (entry->hash == hash && tp_any_equal(run, entry->key, key))
            return entry;
    }
}

static uint64_t hash_of_key(tp_jinja_run *run, tp_any key)
{
    if (!tp_any_is_hashable(key))
        tp_jinja_fail(run, "a '%s' cannot be the key of a dict", tp_any_type_name(key));
    return hash_of(key);
}

void tp_any_dict_put(tp_jinja_run *run, struct tp_any_dict *dict, tp_any key, tp_any value)
{
    uint64_t hash = hash_of_key(run, key);
    struct tp_any_entry *entry = find_entry(run, dict, key, hash);
    if (entry) {
        entry->value = value;
        return;
    }
    dict->entries = tp_jinja_room(run, dict->entries, dict->n, &dict->cap, sizeof *entry);
    dict->entries[dict->n++] = (struct tp_any_entry){key, value, hash};
    index_last(run, dict);
}

const tp_any *tp_any_dict_get(tp_jinja_run *run, const struct tp_any_dict *dict, tp_any key)
{
    const struct tp_any_entry *entry = find_entry(run, dict, key, hash_of_key(run, key));
    return entry ? &entry->value : NULL;
}

/* --- equality and order --- */

/* -1, 0, 1, and 2 when one is not a number, of two numbers; false when they are not. */
static bool compare_numbers(tp_any a, tp_any b, int *ret)
{
    tp_integer i, j;
    double x, y;
    if (tp_any_as_int(a, &i) && tp_any_as_int(b, &j))
        *ret = (i > j) - (i < j);
    else if (tp_any_as_float(a, &x) && tp_any_as_float(b, &y))
        *ret = isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
    else
        return false;
    return true;
}

static bool equal_at(tp_jinja_run *run, tp_any a, tp_any b, size_t depth)
{
    bool same = true;
    int order;
    tp_jinja_charge(run, 1);
    if (depth > TP_JINJA_MAX_VALUE_DEPTH)
        tp_jinja_fail(run, "a comparison of values nested deeper than %d",
                      TP_JINJA_MAX_VALUE_DEPTH);
    if (compare_numbers(a, b, &order))
        return order == 0;
    if (a.type != b.type)
        return false;
    switch ((tp_any_type)a.type) {
    case TP_ANY_MISSING:
    case TP_ANY_UNDEFINED:
    case TP_ANY_NONE:
        return true;
    case TP_ANY_STR:
        tp_jinja_charge(run, a.text.len / TP_JINJA_BYTES_PER_TURN);
        return tp_slice_eq(a.text, b.text);
    case TP_ANY_LIST:
    case TP_ANY_TUPLE:
        same = a.items->n == b.items->n;
        for (size_t i = 0; i < a.items->n && same; i++)
            same = equal_at(run, a.items->values[i], b.items->values[i], depth + 1);
        return same;
    case TP_ANY_DICT:
        same = a.dict->n == b.dict->n;
        for (size_t i = 0; i < a.dict->n && same; i++) {
            const tp_any *other = tp_any_dict_get(run, b.dict, a.dict->entries[i].key);
            same = other && equal_at(run, a.dict->entries[i].value, *other, depth + 1);
        }
        return same;
    case TP_ANY_RANGE:
        return a.range->n == b.range->n &&
               (a.range->n == 0 || (a.range->start == b.range->start &&
                                    (a.range->n == 1 || a.range->step == b.range->step)));
    default:
        return a.items == b.items && a.view == b.view; /* the same object */
    }
}

bool tp_any_equal(tp_jinja_run *run, tp_any a, tp_any b) { return equal_at(run, a, b, 0); }

int tp_any_compare(tp_jinja_run *run, tp_any a, tp_any b, const char *op)
{
    int order = 0;
    for (size_t depth = 0;; depth++) {
        tp_jinja_charge(run, 1);
        tp_jinja_want_defined(run, a);
        tp_jinja_want_defined(run, b);
        if (compare_numbers(a, b, &order))
            return order;
        if (a.type == TP_ANY_STR && b.type == TP_ANY_STR) {
            size_t n = TP_MIN(a.text.len, b.text.len);
            tp_jinja_charge(run, n / TP_JINJA_BYTES_PER_TURN);
            order = n ? memcmp(a.text.data, b.text.data, n) : 0;
            return order ? (order > 0) - (order < 0)
                         : (a.text.len > b.text.len) - (a.text.len < b.text.len);
        }
        if (!tp_any_is_list(a) || a.type != b.type || depth > TP_JINJA_MAX_VALUE_DEPTH)
            tp_jinja_fail(run, "'%s' is not possible between '%s' and '%s'", op,
                          tp_any_type_name(a), tp_any_type_name(b));
        size_t i = 0, n = TP_MIN(a.items->n, b.items->n);
        while (i < n && tp_any_equal(run, a.items->values[i], b.items->values[i]))
            i++;
        if (i == n)
            return (a.items->n > b.items->n) - (a.items->n < b.items->n);
        tp_any first = a.items->values[i];
        b = b.items->values[i];
        a = first;
    }
}

bool tp_any_contains(tp_jinja_run *run, tp_any container, tp_any item)
{
    if (container.type == TP_ANY_STR) {
        if (item.type != TP_ANY_STR)
            tp_jinja_fail(run, "'in' a string needs a string on its left, not '%s'",
                          tp_any_type_name(item));
        tp_jinja_charge(run, container.text.len / TP_JINJA_BYTES_PER_TURN);
        return item.text.len == 0 || memmem(container.text.data, container.text.len, item.text.data,
                                            item.text.len) != NULL;
    }
    if (container.type == TP_ANY_DICT ||
        (container.type == TP_ANY_VIEW && container.view == TP_VIEW_KEYS))
        return tp_any_dict_get(run, container.dict, item) != NULL;
    tp_any_walk walk = tp_any_walk_begin(run, container);
    for (tp_any element; tp_any_walk_next(run, &walk, &element);)
        if (tp_any_equal(run, element, item))
            return true;
    return false;
}

static void merge_sort(tp_jinja_run *run, struct tp_any_entry *list, struct tp_any_entry *spare,
                       size_t n, bool reverse)
{
    size_t half = n / 2, i = 0, j = half, k = 0;
    if (n < 2)
        return;
    merge_sort(run, list, spare, half, reverse);
    merge_sort(run, list + half, spare, n - half, reverse);
    while (i < half && j < n) {
        bool right_first = tp_any_compare(run, list[j].key, list[i].key, "<") == (reverse ? 1 : -1);
        spare[k++] = list[right_first ? j++ : i++];
    }
    memcpy(spare + k, list + i, (half - i) * sizeof *spare);
    memcpy(list, spare, (k + half - i) * sizeof *spare);
}

void tp_any_sort(tp_jinja_run *run, struct tp_any_entry *entries, size_t n, bool reverse)
{
    merge_sort(run, entries, tp_jinja_take(run, n, sizeof *entries), n, reverse);
}
