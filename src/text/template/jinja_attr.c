/* jinja_attr.c - attributes, items and slices.
 *
 * obj.name is Python's attribute first and the item second, obj["name"] the other
 * way round.  What begins with an underscore, and whatever changes a list or dict,
 * exists but is not allowed: it is an undefined value that fails when used. */
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_run.h"
#include "text/template/python_text.h"

static tp_status dict_view(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    (void)run;
    *ret = *c->self;
    ret->type = TP_ANY_VIEW;
    ret->view = (uint8_t)c->variant;
    return TP_OK;
}

static tp_status dict_get(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    const tp_any *found = NULL;
    TP_TRY(tp_any_dict_get(run, c->self->dict, &c->arg[0], &found));
    *ret = found ? *found : c->arg[1].type == TP_ANY_MISSING ? tp_any_none() : c->arg[1];
    return TP_OK;
}

static tp_status copy(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    (void)run;
    *ret = *c->self; /* nothing can change it */
    return TP_OK;
}

static tp_status list_count(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_any list;
    tp_integer n = 0;
    TP_TRY(tp_any_list_of(run, c->self, &list));
    for (size_t i = 0; i < list.items->n; i++) {
        bool same = false;
        TP_TRY(tp_any_equal(run, &list.items->values[i], &c->arg[0], &same));
        n += same;
    }
    *ret = tp_any_int(n);
    return TP_OK;
}

static tp_status list_index(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_any list;
    int64_t start = 0, stop = INT64_MAX;
    TP_TRY(tp_any_list_of(run, c->self, &list));
    int64_t n = (int64_t)list.items->n;
    TP_TRY(tp_jinja_want_int(run, "index(): start", &c->arg[1], &start));
    TP_TRY(tp_jinja_want_int(run, "index(): stop", &c->arg[2], &stop));
    start = start < 0 ? TP_MAX(start + n, 0) : start;
    stop = stop < 0 ? stop + n : TP_MIN(stop, n);
    for (int64_t i = start; i < stop; i++) {
        bool same = false;
        TP_TRY(tp_any_equal(run, &list.items->values[i], &c->arg[0], &same));
        if (same) {
            *ret = tp_any_int(i);
            return TP_OK;
        }
    }
    return tp_jinja_fail(run, "index(): the value is not in the list");
}

static const tp_jinja_function dict_methods[] = {{"copy()", copy, "", 0, NULL},
                                                 {"get()", dict_get, "_ [_]", 0, NULL},
                                                 {"items()", dict_view, "", TP_VIEW_ITEMS, NULL},
                                                 {"keys()", dict_view, "", TP_VIEW_KEYS, NULL},
                                                 {"values()", dict_view, "", TP_VIEW_VALUES, NULL},
                                                 {0}};
static const tp_jinja_function list_methods[] = {{"copy()", copy, "", 0, NULL},
                                                 {"count()", list_count, "_", 0, NULL},
                                                 {"index()", list_index, "_ [_ _]", 0, NULL},
                                                 {0}};
static const tp_jinja_function tuple_methods[] = {
    {"count()", list_count, "_", 0, NULL}, {"index()", list_index, "_ [_ _]", 0, NULL}, {0}};

static const char *const dict_changes[] = {"clear", "pop", "popitem", "setdefault", "update", NULL};
static const char *const list_changes[] = {"append", "clear",   "extend", "insert", "pop",
                                           "remove", "reverse", "sort",   NULL};
/* They exist in Python and are of no use to templates: refused by name. */
static const char *const dict_others[] = {"fromkeys", NULL};
static const char *const number_others[] = {
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "from_bytes",
    "to_bytes",         "real",      "imag",       "numerator", "denominator",
    "fromhex",          "hex",       "is_integer", NULL};
static const char *const text_others[] = {"casefold",    "encode",    "expandtabs",   "format_map",
                                          "isascii",     "isdecimal", "isidentifier", "isnumeric",
                                          "isprintable", "istitle",   "maketrans",    "translate",
                                          NULL};
static const char *const range_others[] = {"start", "stop", "step", NULL};
static const char *const macro_others[] = {"name",          "arguments",    "caller",
                                           "catch_varargs", "catch_kwargs", NULL};

static bool is_one_of(tp_slice name, const char *const *names)
{
    for (; names && *names; names++)
        if (tp_slice_is(name, *names))
            return true;
    return false;
}

static const tp_jinja_function *find_method(const tp_any *object, tp_slice name)
{
    switch ((tp_any_type)object->type) {
    case TP_ANY_STR:
        return tp_jinja_str_method(name);
    case TP_ANY_DICT:
        return tp_jinja_find_function(dict_methods, name);
    case TP_ANY_LIST:
        return tp_jinja_find_function(list_methods, name);
    case TP_ANY_TUPLE:
    case TP_ANY_RANGE:
        return tp_jinja_find_function(tuple_methods, name);
    default:
        return NULL;
    }
}

static const char *const *others_of(tp_any_type type)
{
    switch (type) {
    case TP_ANY_STR:
        return text_others;
    case TP_ANY_DICT:
        return dict_others;
    case TP_ANY_BOOL:
    case TP_ANY_INT:
    case TP_ANY_FLOAT:
        return number_others;
    case TP_ANY_RANGE:
        return range_others;
    case TP_ANY_MACRO:
        return macro_others;
    default:
        return NULL;
    }
}

tp_status tp_jinja_find_attr(tp_jinja_run *run, const tp_any *object, tp_slice name, tp_any *ret,
                             bool *ret_found)
{
    if (object->type == TP_ANY_UNDEFINED)
        return tp_jinja_undefined_error(run, object);
    *ret_found = false;
    if (object->type == TP_ANY_LOOP)
        TP_TRY(tp_jinja_loop_attr(run, object->loop, name, ret, ret_found));
    if (object->type == TP_ANY_NAMESPACE) {
        const tp_any *found = tp_any_dict_find(object->dict, name);
        *ret_found = found != NULL;
        *ret = found ? *found : *ret;
    }
    if (*ret_found)
        return TP_OK;
    const tp_jinja_function *method = find_method(object, name);
    if (method) {
        *ret_found = true;
        return tp_jinja_new_method(run, method, object, ret);
    }
    bool is_dunder = name.len > 4 && memcmp(name.data, "__", 2) == 0 &&
                     memcmp(name.data + name.len - 2, "__", 2) == 0;
    const char *const *changes = object->type == TP_ANY_DICT   ? dict_changes
                                 : object->type == TP_ANY_LIST ? list_changes
                                                               : NULL;
    if (is_dunder || is_one_of(name, changes)) {
        tp_any key = tp_any_text(name.data, name.len);
        *ret_found = true;
        return tp_any_undefined_of(run, object, &key, true, ret);
    }
    if (is_one_of(name, others_of((tp_any_type)object->type)))
        return tp_jinja_unsupported(run, "attribute '%.*s' of a '%s' is not supported",
                                    (int)name.len, name.data, tp_any_type_name(object));
    return TP_OK;
}

/* obj[key] alone: lists by position, dicts by key. */
static tp_status find_item(tp_jinja_run *run, const tp_any *object, const tp_any *key, tp_any *ret,
                           bool *ret_found)
{
    tp_integer index = 0;
    size_t n = 0;
    *ret_found = false;
    if (object->type == TP_ANY_UNDEFINED)
        return tp_jinja_undefined_error(run, object);
    if (object->type == TP_ANY_DICT) {
        const tp_any *found = NULL;
        if (tp_any_is_hashable(key))
            TP_TRY(tp_any_dict_get(run, object->dict, key, &found));
        if (found)
            *ret = *found;
        *ret_found = found != NULL;
        return TP_OK;
    }
    bool is_indexed = object->type == TP_ANY_STR || object->type == TP_ANY_LIST ||
                      object->type == TP_ANY_TUPLE || object->type == TP_ANY_RANGE;
    if (!is_indexed || !tp_any_as_int(key, &index))
        return TP_OK;
    TP_TRY(tp_any_length(run, object, &n));
    index += index < 0 ? (tp_integer)n : 0;
    if (index < 0 || index >= (tp_integer)n)
        return TP_OK;
    *ret_found = true;
    if (object->type == TP_ANY_STR) {
        const char *s = object->text.data;
        size_t at = tp_utf8_offset(s, object->text.len, (size_t)index);
        *ret = tp_any_text(s + at, tp_utf8_length(s + at, object->text.len - at));
    } else if (object->type == TP_ANY_RANGE) {
        *ret = tp_any_int(object->range->start + (int64_t)index * object->range->step);
    } else {
        *ret = object->items->values[index];
    }
    return TP_OK;
}

tp_status tp_jinja_get_attr(tp_jinja_run *run, const tp_any *object, tp_slice name, tp_any *ret)
{
    tp_any key = tp_any_text(name.data, name.len);
    bool found = false;
    TP_TRY(tp_jinja_find_attr(run, object, name, ret, &found));
    if (!found)
        TP_TRY(find_item(run, object, &key, ret, &found));
    return found ? TP_OK : tp_any_undefined_of(run, object, &key, false, ret);
}

tp_status tp_jinja_get_item(tp_jinja_run *run, const tp_any *object, const tp_any *key, tp_any *ret)
{
    bool found = false;
    TP_TRY(find_item(run, object, key, ret, &found));
    if (!found && key->type == TP_ANY_STR)
        TP_TRY(tp_jinja_find_attr(run, object, key->text, ret, &found));
    return found ? TP_OK : tp_any_undefined_of(run, object, key, false, ret);
}

/* Python's slice.indices(): where to begin, where to stop, in steps of `step`. */
typedef struct {
    int64_t start, step, n;
} slice;

static tp_status slice_bound(tp_jinja_run *run, const tp_any *v, int64_t n, bool backward,
                             int64_t absent, int64_t *ret)
{
    tp_integer bound = 0;
    if (v->type == TP_ANY_MISSING || v->type == TP_ANY_NONE) {
        *ret = absent;
        return TP_OK;
    }
    if (!tp_any_as_int(v, &bound))
        return tp_jinja_fail(run, "a slice needs integers or none, not '%s'", tp_any_type_name(v));
    bound += bound < 0 ? n : 0;
    tp_integer least = backward ? -1 : 0, most = backward ? n - 1 : n;
    *ret = (int64_t)TP_MIN(TP_MAX(bound, least), most);
    return TP_OK;
}

static tp_status resolve_slice(tp_jinja_run *run, const tp_any bounds[3], int64_t n, slice *ret)
{
    int64_t stop = 0;
    tp_integer step = 1;
    if (bounds[2].type != TP_ANY_MISSING && bounds[2].type != TP_ANY_NONE &&
        !tp_any_as_int(&bounds[2], &step))
        return tp_jinja_fail(run, "a slice needs integers or none, not '%s'",
                             tp_any_type_name(&bounds[2]));
    if (step == 0)
        return tp_jinja_fail(run, "a slice cannot have step 0");
    bool backward = step < 0;
    ret->step = (int64_t)TP_MIN(TP_MAX(step, -(tp_integer)n - 1), (tp_integer)n + 1);
    TP_TRY(slice_bound(run, &bounds[0], n, backward, backward ? n - 1 : 0, &ret->start));
    TP_TRY(slice_bound(run, &bounds[1], n, backward, backward ? -1 : n, &stop));
    int64_t distance = backward ? ret->start - stop : stop - ret->start;
    int64_t stride = backward ? -ret->step : ret->step;
    ret->n = distance > 0 ? (distance + stride - 1) / stride : 0;
    return TP_OK;
}

static tp_status slice_text(tp_jinja_run *run, tp_slice s, const slice *cut, tp_any *ret)
{
    if (cut->step == 1) {
        size_t begin = tp_utf8_offset(s.data, s.len, (size_t)cut->start);
        size_t len = tp_utf8_offset(s.data + begin, s.len - begin, (size_t)cut->n);
        *ret = tp_any_text(s.data + begin, len);
        return TP_OK;
    }
    /* Where each character begins. */
    void *memory = NULL;
    size_t count = tp_utf8_count(s.data, s.len), at = 0;
    TP_TRY(tp_jinja_take(run, count + 1, sizeof(size_t), &memory));
    size_t *offsets = memory;
    for (size_t i = 0; i < count; i++) {
        offsets[i] = at;
        at += tp_utf8_length(s.data + at, s.len - at);
    }
    offsets[count] = s.len;
    tp_jinja_text text = {.run = run};
    for (int64_t i = 0; i < cut->n; i++) {
        size_t index = (size_t)(cut->start + i * cut->step);
        TP_TRY(tp_jinja_add(&text, s.data + offsets[index], offsets[index + 1] - offsets[index]));
    }
    *ret = tp_jinja_text_value(&text);
    return TP_OK;
}

tp_status tp_jinja_get_slice(tp_jinja_run *run, const tp_any *object, const tp_any bounds[3],
                             tp_any *ret)
{
    size_t n = 0;
    slice cut;
    bool is_list = object->type == TP_ANY_LIST || object->type == TP_ANY_TUPLE;
    if (object->type == TP_ANY_UNDEFINED)
        return tp_jinja_undefined_error(run, object);
    if (!is_list && object->type != TP_ANY_STR && object->type != TP_ANY_RANGE)
        return tp_jinja_fail(run, "a '%s' cannot be sliced", tp_any_type_name(object));
    TP_TRY(tp_any_length(run, object, &n));
    TP_TRY(resolve_slice(run, bounds, (int64_t)n, &cut));
    TP_TRY(tp_jinja_charge(run, is_list ? (uint64_t)cut.n : 1));
    if (object->type == TP_ANY_STR)
        return slice_text(run, object->text, &cut, ret);
    if (object->type == TP_ANY_RANGE) {
        void *memory;
        TP_TRY(tp_jinja_take(run, 1, sizeof(struct tp_any_range), &memory));
        const struct tp_any_range *r = object->range;
        struct tp_any_range *part = memory;
        part->start = r->start + cut.start * r->step;
        part->step = r->step * cut.step;
        part->n = cut.n;
        part->stop = part->start + part->step * part->n;
        *ret = (tp_any){.type = TP_ANY_RANGE, .range = part};
        return TP_OK;
    }
    tp_any *values;
    TP_TRY(tp_any_new_list(run, object->type, (size_t)cut.n, ret, &values));
    for (int64_t i = 0; i < cut.n; i++)
        values[i] = object->items->values[cut.start + i * cut.step];
    return TP_OK;
}
