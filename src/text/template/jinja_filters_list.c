/* jinja_filters_list.c - filters that order, cut, sum up and choose from sequences. */
#include <string.h>

#include "text/template/jinja_str.h"

/* The `attribute` argument of filters: "a.b.0" of an element; without keys the element itself. */
typedef struct {
    struct tp_any_items keys;
    tp_any fallback;  /* for undefined parts; MISSING or none: they stay undefined */
    bool ignore_case; /* text is compared in lower case */
} path;

/* The part of *rest in front of the next `c`, which is taken off. */
static tp_slice take_part(tp_slice *rest, char c)
{
    const char *found = rest->len ? memchr(rest->data, c, rest->len) : NULL;
    tp_slice part = {rest->data, found ? (size_t)(found - rest->data) : rest->len};
    *rest = tp_python_from(*rest, part.len + (found != NULL));
    return part;
}

static path path_of(tp_jinja_run *run, tp_any attribute)
{
    path p = {0};
    if (attribute.type == TP_ANY_STR) {
        tp_slice rest = attribute.text;
        bool more = true;
        while (more) {
            tp_integer index;
            more = rest.len && memchr(rest.data, '.', rest.len);
            tp_slice key = take_part(&rest, '.');
            tp_any_append(run, &p.keys,
                          tp_python_parse_index(key, &index) ? tp_any_int(index)
                                                             : tp_any_text(key));
        }
    } else if (tp_any_is_given(attribute)) {
        tp_any_append(run, &p.keys, attribute);
    }
    return p;
}

static tp_any path_get(tp_jinja_run *run, const path *p, tp_any v)
{
    for (size_t i = 0; i < p->keys.n; i++) {
        v = tp_jinja_get_item(run, v, p->keys.values[i]);
        if (v.type == TP_ANY_UNDEFINED && p->fallback.type > TP_ANY_NONE)
            v = p->fallback;
    }
    if (p->ignore_case && v.type == TP_ANY_STR)
        return tp_jinja_change_case(run, TP_CASE_LOWER, v.text);
    return v;
}

/* Arguments 0 and 1, case_sensitive and attribute. */
static path compared_path(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    path p = path_of(run, c->arg[1]);
    p.ignore_case = !tp_any_is_true(c->arg[0]);
    return p;
}

/* --- order --- */

static tp_any sorted(tp_jinja_run *run, struct tp_any_entry *entries, size_t n, tp_any reverse)
{
    tp_any list = tp_any_new_list(run, TP_ANY_LIST, n);
    tp_any_sort(run, entries, n, tp_jinja_int_arg(reverse, 0) != 0);
    for (size_t i = 0; i < n; i++)
        list.items->values[i] = entries[i].value;
    return list;
}

/* "a,b.c": several attributes, compared one after the other. */
static size_t sort_paths(tp_jinja_run *run, tp_any attribute, bool case_sensitive, path **ret)
{
    size_t n = 1;
    bool is_text = attribute.type == TP_ANY_STR;
    tp_slice rest = is_text ? attribute.text : (tp_slice){0};
    for (size_t i = 0; i < rest.len; i++)
        n += rest.data[i] == ',';
    *ret = tp_jinja_take(run, n, sizeof **ret);
    for (size_t i = 0; i < n; i++) {
        (*ret)[i] = path_of(run, is_text ? tp_any_text(take_part(&rest, ',')) : attribute);
        (*ret)[i].ignore_case = !case_sensitive;
    }
    return n;
}

static tp_any f_sort(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    path *paths;
    const struct tp_any_items *list = tp_any_list_of(run, c->self);
    size_t n_paths = sort_paths(run, c->arg[2], tp_any_is_true(c->arg[1]), &paths);
    struct tp_any_entry *entries = tp_jinja_take(run, list->n, sizeof *entries);
    for (size_t i = 0; i < list->n; i++) {
        entries[i].value = list->values[i];
        entries[i].key = tp_any_new_list(run, TP_ANY_LIST, n_paths);
        for (size_t k = 0; k < n_paths; k++)
            entries[i].key.items->values[k] = path_get(run, &paths[k], list->values[i]);
    }
    return sorted(run, entries, list->n, c->arg[0]);
}

static tp_any f_dictsort(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    int by = tp_python_word("key value", tp_jinja_text_arg(c->arg[1], TP_SLICE("key")));
    if (by < 0)
        tp_jinja_fail(run, "dictsort: 'by' must be \"key\" or \"value\"");
    tp_jinja_want_defined(run, c->self);
    if (c->self.type != TP_ANY_DICT)
        tp_jinja_fail(run, "dictsort needs a dict, not '%s'", tp_any_type_name(c->self));
    const struct tp_any_dict *dict = c->self.dict;
    path itself = {.ignore_case = !tp_any_is_true(c->arg[0])};
    struct tp_any_entry *entries = tp_jinja_take(run, dict->n, sizeof *entries);
    for (size_t i = 0; i < dict->n; i++) {
        const struct tp_any_entry *e = &dict->entries[i];
        entries[i].value = tp_any_pair(run, e->key, e->value);
        entries[i].key = path_get(run, &itself, by == 0 ? e->key : e->value);
    }
    return sorted(run, entries, dict->n, c->arg[2]);
}

/* min and max: `variant` is the order that is looked for. */
static tp_any f_extreme(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    const struct tp_any_items *list = tp_any_list_of(run, c->self);
    path p = compared_path(run, c);
    tp_any best = {0}, best_key = {0};
    for (size_t i = 0; i < list->n; i++) {
        tp_any key = path_get(run, &p, list->values[i]);
        if (i && tp_any_compare(run, key, best_key, c->variant > 0 ? ">" : "<") != c->variant)
            continue;
        best_key = key;
        best = list->values[i];
    }
    if (list->n)
        return best;
    return tp_any_hint(run, "No aggregated item, sequence was empty.");
}

/* --- parts --- */

static tp_any f_unique(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    path p = compared_path(run, c);
    tp_any seen = tp_any_new_dict(run, 8), list = tp_any_new_list(run, TP_ANY_LIST, 0);
    tp_any_walk walk = tp_any_walk_begin(run, c->self);
    for (tp_any element; tp_any_walk_next(run, &walk, &element);) {
        size_t before = seen.dict->n;
        tp_any key = path_get(run, &p, element);
        tp_any_dict_put(run, seen.dict, key, key);
        if (seen.dict->n > before)
            tp_any_append(run, list.items, element);
    }
    return tp_any_new_iterator(run, list.items);
}

static tp_any f_sum(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    path p = path_of(run, c->arg[0]);
    tp_any_walk walk = tp_any_walk_begin(run, c->self);
    tp_any sum = c->arg[1].type == TP_ANY_MISSING ? tp_any_int(0) : c->arg[1];
    if (sum.type == TP_ANY_STR)
        tp_jinja_fail(run, "sum: texts are joined with 'join'");
    for (tp_any element; tp_any_walk_next(run, &walk, &element);)
        sum = tp_jinja_binary(run, TP_JINJA_OP_ADD, sum, path_get(run, &p, element));
    return sum;
}

static tp_any f_first(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_any_walk walk = tp_any_walk_begin(run, c->self);
    tp_any first;
    if (tp_any_walk_next(run, &walk, &first))
        return first;
    return tp_any_hint(run, "No first item, sequence was empty.");
}

static tp_any f_last(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    if (c->self.type == TP_ANY_ITERATOR)
        tp_jinja_fail(run, "last: put '|list' before it");
    const struct tp_any_items *list = tp_any_list_of(run, c->self);
    if (list->n)
        return list->values[list->n - 1];
    return tp_any_hint(run, "No last item, sequence was empty.");
}

static tp_any f_list(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    return (tp_any){.type = TP_ANY_LIST, .items = tp_any_list_of(run, c->self)};
}

static tp_any f_items(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_any view = c->self;
    if (view.type != TP_ANY_DICT && view.type != TP_ANY_UNDEFINED)
        tp_jinja_fail(run, "items needs a dict, not '%s'", tp_any_type_name(view));
    if (view.type == TP_ANY_DICT) {
        view.type = TP_ANY_VIEW;
        view.view = TP_VIEW_ITEMS;
    }
    return tp_any_new_iterator(run, tp_any_list_of(run, view));
}

static tp_any f_reverse(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    if (c->self.type == TP_ANY_STR)
        return tp_jinja_get_slice(run, c->self,
                                  (tp_any[]){tp_any_none(), tp_any_none(), tp_any_int(-1)});
    struct tp_any_items *list = tp_any_list_of(run, c->self);
    tp_jinja_reverse(list);
    if (c->self.type == TP_ANY_ITERATOR)
        return (tp_any){.type = TP_ANY_LIST, .items = list};
    return tp_any_new_iterator(run, list);
}

/* --- choice --- */

static tp_any f_default(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    (void)run;
    bool use =
        c->self.type == TP_ANY_UNDEFINED || (tp_any_is_true(c->arg[1]) && !tp_any_is_true(c->self));
    tp_any other = c->arg[0].type == TP_ANY_MISSING ? tp_any_text(TP_SLICE("")) : c->arg[0];
    return use ? other : c->self;
}

static tp_any f_attr(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_any found = tp_jinja_find_attr(run, c->self, c->arg[0].text);
    if (found.type != TP_ANY_MISSING)
        return found;
    return tp_any_undefined_of(run, c->self, c->arg[0], false);
}

/* What is false has no elements, whatever it is. */
static tp_any_walk walk_if_true(tp_jinja_run *run, tp_any v)
{
    return tp_any_is_true(v) ? tp_any_walk_begin(run, v) : (tp_any_walk){0};
}

/* The first argument without a name, which is taken off; MISSING. */
static tp_any take_arg(tp_jinja_args *args)
{
    if (args->values.n == 0)
        return (tp_any){0};
    args->values.n--;
    return *args->values.values++;
}

/* map(attribute="a", default=x) or map("filter", args ...) */
static tp_any f_map(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_jinja_args rest = *c->args;
    tp_any attribute = tp_jinja_keyword(run, &rest, TP_SLICE("attribute"));
    bool by_attribute = rest.values.n == 0 && attribute.type != TP_ANY_MISSING;
    tp_any list = tp_any_new_list(run, TP_ANY_LIST, 0), filter = take_arg(&rest);
    path p = path_of(run, attribute);
    p.fallback = tp_jinja_keyword(run, &rest, TP_SLICE("default"));
    if (by_attribute && rest.named.n != (p.fallback.type == TP_ANY_MISSING ? 1 : 2))
        tp_jinja_fail(run, "map: takes 'attribute' and 'default' and no other names");
    if (!by_attribute && filter.type == TP_ANY_MISSING && tp_any_is_true(c->self))
        tp_jinja_fail(run, "map: the name of a filter is missing");
    tp_any_walk walk = walk_if_true(run, c->self);
    for (tp_any element; tp_any_walk_next(run, &walk, &element);)
        tp_any_append(run, list.items,
                      by_attribute
                          ? path_get(run, &p, element)
                          : tp_jinja_call_filter(run, tp_jinja_want_text(run, "map", filter),
                                                 element, &rest));
    return tp_any_new_iterator(run, list.items);
}

enum { BY_ATTRIBUTE = 1, REJECTED = 2 }; /* variants */

/* select and reject, on elements or on an attribute of them: by a test, or by truth. */
static tp_any f_select(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    bool by_attribute = c->variant & BY_ATTRIBUTE, keep = !(c->variant & REJECTED);
    bool is_empty = !tp_any_is_true(c->self);
    tp_jinja_args rest = *c->args;
    tp_any list = tp_any_new_list(run, TP_ANY_LIST, 0);
    if (!is_empty && by_attribute && rest.values.n == 0)
        tp_jinja_fail(run, "selectattr: the name of an attribute is missing");
    path p = path_of(run, by_attribute ? take_arg(&rest) : (tp_any){0});
    tp_any test = take_arg(&rest);
    if (!is_empty && test.type != TP_ANY_MISSING)
        (void)tp_jinja_want_text(run, "select: test", test);
    tp_any_walk walk = walk_if_true(run, c->self);
    for (tp_any element; tp_any_walk_next(run, &walk, &element);) {
        tp_any tested = path_get(run, &p, element);
        bool holds = test.type == TP_ANY_MISSING
                         ? tp_any_is_true(tested)
                         : tp_jinja_call_test(run, test.text, tested, &rest);
        if (holds == keep)
            tp_any_append(run, list.items, element);
    }
    return tp_any_new_iterator(run, list.items);
}

const tp_jinja_function tp_jinja_list_filters[] = {
    {"attr", f_attr, "name:s", 0},
    {"default d", f_default, "[default_value boolean]", 0},
    {"dictsort", f_dictsort, "[case_sensitive by:s reverse:i]", 0},
    {"first", f_first, "", 0},
    {"items", f_items, "", 0},
    {"last", f_last, "", 0},
    {"list", f_list, "", 0},
    {"map", f_map, NULL, 0},
    {"max", f_extreme, "[case_sensitive attribute]", 1},
    {"min", f_extreme, "[case_sensitive attribute]", -1},
    {"reject", f_select, NULL, REJECTED},
    {"rejectattr", f_select, NULL, BY_ATTRIBUTE | REJECTED},
    {"reverse", f_reverse, "", 0},
    {"select", f_select, NULL, 0},
    {"selectattr", f_select, NULL, BY_ATTRIBUTE},
    {"sort", f_sort, "[reverse:i case_sensitive attribute]", 0},
    {"sum", f_sum, "[attribute start]", 0},
    {"unique", f_unique, "[case_sensitive attribute]", 0},
    {0}};
