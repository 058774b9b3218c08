/* jinja_filters_list.c - filters that order, cut and sum up sequences. */
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_path.h"
#include "text/template/jinja_str.h"

tp_status tp_jinja_path_of(tp_jinja_run *run, const tp_any *attribute, tp_jinja_path *ret)
{
    tp_jinja_builder b = {.run = run};
    *ret = (tp_jinja_path){0};
    if (attribute->type == TP_ANY_MISSING || attribute->type == TP_ANY_NONE)
        return TP_OK;
    if (attribute->type != TP_ANY_STR) {
        TP_TRY(tp_jinja_append(&b, attribute));
    } else {
        tp_slice s = attribute->text;
        for (size_t begin = 0, at = 0; at <= s.len; at++) {
            if (at < s.len && s.data[at] != '.')
                continue;
            tp_any key = tp_any_text(s.data + begin, at - begin);
            bool overflow = false;
            size_t n_digits = 0;
            while (n_digits < key.text.len && key.text.data[n_digits] >= '0' &&
                   key.text.data[n_digits] <= '9')
                n_digits++;
            tp_integer index = 0;
            if (n_digits && n_digits == key.text.len &&
                tp_python_parse_integer(key.text.data, n_digits, 10, &index, &overflow))
                key = tp_any_int(index);
            TP_TRY(tp_jinja_append(&b, &key));
            begin = at + 1;
        }
    }
    ret->keys = b.values;
    ret->n = b.n;
    return TP_OK;
}

tp_status tp_jinja_path_get(tp_jinja_run *run, const tp_jinja_path *path, const tp_any *element,
                            tp_any *ret)
{
    tp_any v = *element;
    for (size_t i = 0; i < path->n; i++) {
        tp_any object = v;
        TP_TRY(tp_jinja_get_item(run, &object, &path->keys[i], &v));
        if (v.type == TP_ANY_UNDEFINED && path->fallback.type > TP_ANY_NONE)
            v = path->fallback;
    }
    if (path->ignore_case && v.type == TP_ANY_STR)
        TP_TRY(tp_jinja_change_case(run, TP_CASE_LOWER, v.text, &v));
    *ret = v;
    return TP_OK;
}

/* Elements with the keys they are ordered by. */
typedef struct {
    tp_any key, value;
} keyed;

static tp_status merge_sort(tp_jinja_run *run, keyed *list, keyed *spare, size_t n, bool reverse)
{
    if (n < 2)
        return TP_OK;
    size_t half = n / 2, i = 0, j = half, k = 0;
    TP_TRY(merge_sort(run, list, spare, half, reverse));
    TP_TRY(merge_sort(run, list + half, spare, n - half, reverse));
    while (i < half && j < n) {
        int order = 0;
        TP_TRY(tp_any_compare(run, &list[j].key, &list[i].key, "<", &order));
        bool right_first = order == (reverse ? 1 : -1);
        spare[k++] = list[right_first ? j++ : i++];
    }
    memcpy(spare + k, list + i, (half - i) * sizeof *spare);
    k += half - i;
    memcpy(list, spare, k * sizeof *spare);
    return TP_OK;
}

static tp_status take_keyed(tp_jinja_run *run, size_t n, keyed **ret)
{
    void *memory = NULL;
    TP_TRY(tp_jinja_take(run, 2 * n, sizeof(keyed), &memory));
    *ret = memory;
    return TP_OK;
}

static tp_status values_of(tp_jinja_run *run, const keyed *list, size_t n, tp_any *ret)
{
    tp_any *values;
    TP_TRY(tp_any_new_list(run, TP_ANY_LIST, n, ret, &values));
    for (size_t i = 0; i < n; i++)
        values[i] = list[i].value;
    return TP_OK;
}

/* "a,b.c": several attributes, compared one after the other. */
static tp_status sort_paths(tp_jinja_run *run, const tp_any *attribute, bool case_sensitive,
                            tp_jinja_path **ret, size_t *ret_n)
{
    void *memory = NULL;
    size_t n = 1;
    bool is_text = attribute->type == TP_ANY_STR;
    for (size_t i = 0; is_text && i < attribute->text.len; i++)
        n += attribute->text.data[i] == ',';
    TP_TRY(tp_jinja_take(run, n, sizeof(tp_jinja_path), &memory));
    *ret = memory;
    *ret_n = n;
    const char *at = is_text ? attribute->text.data : NULL;
    for (size_t i = 0; i < n; i++) {
        tp_any one = *attribute;
        if (is_text) {
            size_t rest = attribute->text.len - (size_t)(at - attribute->text.data);
            const char *comma = rest ? memchr(at, ',', rest) : NULL;
            one = tp_any_text(at, comma ? (size_t)(comma - at) : rest);
            at = comma ? comma + 1 : at;
        }
        TP_TRY(tp_jinja_path_of(run, &one, &(*ret)[i]));
        (*ret)[i].ignore_case = !case_sensitive;
    }
    return TP_OK;
}

static tp_status f_sort(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_any list, *key;
    tp_jinja_path *paths;
    size_t n_paths = 0;
    keyed *sorted;
    bool reverse = false;
    TP_TRY(tp_jinja_want_flag(run, "sort: reverse", &c->arg[0], &reverse));
    TP_TRY(tp_any_list_of(run, c->self, &list));
    TP_TRY(sort_paths(run, &c->arg[2], tp_any_is_true(&c->arg[1]), &paths, &n_paths));
    size_t n = list.items->n;
    TP_TRY(take_keyed(run, n, &sorted));
    for (size_t i = 0; i < n; i++) {
        sorted[i].value = list.items->values[i];
        TP_TRY(tp_any_new_list(run, TP_ANY_LIST, n_paths, &sorted[i].key, &key));
        for (size_t k = 0; k < n_paths; k++)
            TP_TRY(tp_jinja_path_get(run, &paths[k], &sorted[i].value, &key[k]));
    }
    TP_TRY(merge_sort(run, sorted, sorted + n, n, reverse));
    return values_of(run, sorted, n, ret);
}

static tp_status f_dictsort(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_any *pair;
    tp_slice by = TP_SLICE("key");
    keyed *sorted;
    bool reverse = false;
    TP_TRY(tp_jinja_want_flag(run, "dictsort: reverse", &c->arg[2], &reverse));
    if (c->arg[1].type != TP_ANY_MISSING)
        TP_TRY(tp_jinja_want_text(run, "dictsort: by", &c->arg[1], &by));
    if (!tp_slice_is(by, "key") && !tp_slice_is(by, "value"))
        return tp_jinja_fail(run, "dictsort: 'by' must be \"key\" or \"value\"");
    if (c->self->type == TP_ANY_UNDEFINED)
        return tp_jinja_undefined_error(run, c->self);
    if (c->self->type != TP_ANY_DICT)
        return tp_jinja_fail(run, "dictsort needs a dict, not '%s'", tp_any_type_name(c->self));
    size_t n = c->self->dict->n;
    tp_jinja_path itself = {.ignore_case = !tp_any_is_true(&c->arg[0])};
    TP_TRY(take_keyed(run, n, &sorted));
    for (size_t i = 0; i < n; i++) {
        const struct tp_any_entry *e = &c->self->dict->entries[i];
        TP_TRY(tp_any_new_list(run, TP_ANY_TUPLE, 2, &sorted[i].value, &pair));
        pair[0] = e->key;
        pair[1] = e->value;
        TP_TRY(tp_jinja_path_get(run, &itself, tp_slice_is(by, "key") ? &e->key : &e->value,
                                 &sorted[i].key));
    }
    TP_TRY(merge_sort(run, sorted, sorted + n, n, reverse));
    return values_of(run, sorted, n, ret);
}

static tp_status f_unique(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_any element, key, seen, list;
    tp_jinja_path path;
    tp_any_walk walk;
    tp_jinja_builder b = {.run = run};
    bool more = false;
    TP_TRY(tp_jinja_path_of(run, &c->arg[1], &path));
    path.ignore_case = !tp_any_is_true(&c->arg[0]);
    TP_TRY(tp_any_new_dict(run, 8, &seen));
    TP_TRY(tp_any_walk_begin(run, c->self, &walk));
    for (;;) {
        TP_TRY(tp_any_walk_next(run, &walk, &element, &more));
        if (!more)
            break;
        size_t before = seen.dict->n;
        TP_TRY(tp_jinja_path_get(run, &path, &element, &key));
        TP_TRY(tp_any_dict_put(run, seen.dict, &key, &key));
        if (seen.dict->n > before)
            TP_TRY(tp_jinja_append(&b, &element));
    }
    TP_TRY(tp_jinja_build(&b, TP_ANY_LIST, &list));
    return tp_any_new_iterator(run, &list, ret);
}

/* min and max: `variant` is the order that is looked for. */
static tp_status f_extreme(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_any list, best, key;
    tp_jinja_path path;
    TP_TRY(tp_any_list_of(run, c->self, &list));
    TP_TRY(tp_jinja_path_of(run, &c->arg[1], &path));
    path.ignore_case = !tp_any_is_true(&c->arg[0]);
    if (list.items->n == 0)
        return tp_any_undefined_hint(run, "No aggregated item, sequence was empty.", ret);
    for (size_t i = 0; i < list.items->n; i++) {
        int order = 0;
        TP_TRY(tp_jinja_path_get(run, &path, &list.items->values[i], &key));
        if (i)
            TP_TRY(tp_any_compare(run, &key, &best, c->variant > 0 ? ">" : "<", &order));
        bool better = order == c->variant;
        if (i == 0 || better) {
            best = key;
            *ret = list.items->values[i];
        }
    }
    return TP_OK;
}

static tp_status f_sum(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_any element, sum;
    tp_jinja_path path;
    tp_any_walk walk;
    bool more = false;
    TP_TRY(tp_jinja_path_of(run, &c->arg[0], &path));
    TP_TRY(tp_any_walk_begin(run, c->self, &walk));
    *ret = c->arg[1].type == TP_ANY_MISSING ? tp_any_int(0) : c->arg[1];
    if (ret->type == TP_ANY_STR)
        return tp_jinja_fail(run, "sum: texts are joined with 'join'");
    for (;;) {
        TP_TRY(tp_any_walk_next(run, &walk, &element, &more));
        if (!more)
            return TP_OK;
        TP_TRY(tp_jinja_path_get(run, &path, &element, &element));
        sum = *ret;
        TP_TRY(tp_jinja_binary(run, TP_JINJA_OP_ADD, &sum, &element, ret));
    }
}

static tp_status f_first(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_any_walk walk;
    bool more = false;
    TP_TRY(tp_any_walk_begin(run, c->self, &walk));
    TP_TRY(tp_any_walk_next(run, &walk, ret, &more));
    if (!more)
        return tp_any_undefined_hint(run, "No first item, sequence was empty.", ret);
    return TP_OK;
}

static tp_status f_last(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_any list;
    if (c->self->type == TP_ANY_ITERATOR)
        return tp_jinja_fail(run, "last: put '|list' before it");
    TP_TRY(tp_any_list_of(run, c->self, &list));
    if (list.items->n == 0)
        return tp_any_undefined_hint(run, "No last item, sequence was empty.", ret);
    *ret = list.items->values[list.items->n - 1];
    return TP_OK;
}

static tp_status f_list(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    return tp_any_list_of(run, c->self, ret);
}

static tp_status f_items(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_any list, view = *c->self;
    if (c->self->type != TP_ANY_DICT && c->self->type != TP_ANY_UNDEFINED)
        return tp_jinja_fail(run, "items needs a dict, not '%s'", tp_any_type_name(c->self));
    if (c->self->type == TP_ANY_DICT) {
        view.type = TP_ANY_VIEW;
        view.view = TP_VIEW_ITEMS;
    }
    TP_TRY(tp_any_list_of(run, &view, &list));
    return tp_any_new_iterator(run, &list, ret);
}

static tp_status f_reverse(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_any list;
    if (c->self->type == TP_ANY_STR) {
        tp_any bounds[3] = {{.type = TP_ANY_NONE}, {.type = TP_ANY_NONE}, tp_any_int(-1)};
        return tp_jinja_get_slice(run, c->self, bounds, ret);
    }
    TP_TRY(tp_any_list_of(run, c->self, &list));
    tp_any *values = list.items->values;
    for (size_t i = 0, j = list.items->n; i + 1 < j; i++) {
        tp_any v = values[i];
        values[i] = values[--j];
        values[j] = v;
    }
    *ret = list;
    return c->self->type == TP_ANY_ITERATOR ? TP_OK : tp_any_new_iterator(run, &list, ret);
}

const tp_jinja_function tp_jinja_list_filters[] = {
    {"dictsort", f_dictsort, "[case_sensitive by reverse]", 0, NULL},
    {"first", f_first, "", 0, NULL},
    {"items", f_items, "", 0, NULL},
    {"last", f_last, "", 0, NULL},
    {"list", f_list, "", 0, NULL},
    {"max", f_extreme, "[case_sensitive attribute]", 1, NULL},
    {"min", f_extreme, "[case_sensitive attribute]", -1, NULL},
    {"reverse", f_reverse, "", 0, NULL},
    {"sort", f_sort, "[reverse case_sensitive attribute]", 0, NULL},
    {"sum", f_sum, "[attribute start]", 0, NULL},
    {"unique", f_unique, "[case_sensitive attribute]", 0, NULL},
    {0}};
