/* jinja_attr.c - attributes, items and slices.
 *
 * obj.name is Python's attribute first and the item second, obj["name"] the other
 * way round.  What begins with an underscore, and whatever changes a list or dict,
 * exists but is not allowed: it is an undefined value that fails when used. */
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_run.h"

/* --- methods of lists and dicts --- */

static tp_any dict_view(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    (void)run;
    tp_any view = c->self;
    view.type = TP_ANY_VIEW;
    view.view = (uint8_t)c->variant;
    return view;
}

static tp_any dict_get(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    const tp_any *found = tp_any_dict_get(run, c->self.dict, c->arg[0]);
    return found ? *found : c->arg[1].type == TP_ANY_MISSING ? tp_any_none() : c->arg[1];
}

static tp_any copy(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    (void)run;
    return c->self; /* nothing can change it */
}

static tp_any list_count(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    const struct tp_any_items *list = tp_any_list_of(run, c->self);
    tp_integer n = 0;
    for (size_t i = 0; i < list->n; i++)
        n += tp_any_equal(run, list->values[i], c->arg[0]);
    return tp_any_int(n);
}

static tp_any list_index(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    const struct tp_any_items *list = tp_any_list_of(run, c->self);
    int64_t n = (int64_t)list->n, start = tp_jinja_int_arg(c->arg[1], 0);
    int64_t stop = tp_jinja_int_arg(c->arg[2], INT64_MAX);
    start = start < 0 ? TP_MAX(start + n, 0) : start;
    stop = stop < 0 ? stop + n : TP_MIN(stop, n);
    for (int64_t i = start; i < stop; i++)
        if (tp_any_equal(run, list->values[i], c->arg[0]))
            return tp_any_int(i);
    tp_jinja_fail(run, "index(): the value is not in the list");
}

static const tp_jinja_function dict_methods[] = {{"copy()", copy, "", 0},
                                                 {"get()", dict_get, "_ [_]", 0},
                                                 {"items()", dict_view, "", TP_VIEW_ITEMS},
                                                 {"keys()", dict_view, "", TP_VIEW_KEYS},
                                                 {"values()", dict_view, "", TP_VIEW_VALUES},
                                                 {0}};
static const tp_jinja_function list_methods[] = {{"copy()", copy, "", 0}, /* not of tuples */
                                                 {"count()", list_count, "_", 0},
                                                 {"index()", list_index, "_ [_:i _:i]", 0},
                                                 {0}};

/* --- attributes --- */

#define NUMBER_OTHERS                                                                          \
    "as_integer_ratio bit_count bit_length conjugate from_bytes to_bytes real imag numerator " \
    "denominator fromhex hex is_integer"

/* What the values of a type have: methods, words that name what changes them, and words that
 * exist in Python and are of no use to templates: refused by name. */
static const struct {
    const tp_jinja_function *methods;
    const char *changes, *others;
} types[TP_ANY_LOOP + 1] = {
    [TP_ANY_STR] = {tp_jinja_str_methods, NULL,
                    "casefold encode expandtabs format_map isascii isdecimal isidentifier "
                    "isnumeric isprintable istitle maketrans translate"},
    [TP_ANY_DICT] = {dict_methods, "clear pop popitem setdefault update", "fromkeys"},
    [TP_ANY_LIST] = {list_methods, "append clear extend insert pop remove reverse sort", NULL},
    [TP_ANY_TUPLE] = {list_methods + 1, NULL, NULL},
    [TP_ANY_RANGE] = {list_methods + 1, NULL, "start stop step"},
    [TP_ANY_BOOL] = {NULL, NULL, NUMBER_OTHERS},
    [TP_ANY_INT] = {NULL, NULL, NUMBER_OTHERS},
    [TP_ANY_FLOAT] = {NULL, NULL, NUMBER_OTHERS},
    [TP_ANY_MACRO] = {NULL, NULL, "name arguments caller catch_varargs catch_kwargs"},
    [TP_ANY_LOOP] = {tp_jinja_loop_methods, NULL, NULL},
};

static tp_any bind_method(tp_jinja_run *run, const tp_jinja_function *function, tp_any self)
{
    struct tp_any_method *method = tp_jinja_take(run, 1, sizeof *method);
    *method = (struct tp_any_method){function, self};
    return (tp_any){.type = TP_ANY_METHOD, .method = method};
}

static bool is_dunder(tp_slice name)
{
    return name.len > 4 && memcmp(name.data, "__", 2) == 0 &&
           memcmp(name.data + name.len - 2, "__", 2) == 0;
}

tp_any tp_jinja_find_attr(tp_jinja_run *run, tp_any object, tp_slice name)
{
    tp_any found = {0}, key = tp_any_text(name);
    tp_jinja_want_defined(run, object);
    if (object.type == TP_ANY_LOOP)
        found = tp_jinja_loop_attr(run, object.loop, name);
    if (object.type == TP_ANY_NAMESPACE) {
        const tp_any *value = tp_any_dict_get(run, object.dict, key);
        found = value ? *value : found;
    }
    if (found.type != TP_ANY_MISSING)
        return found;
    const tp_jinja_function *methods = types[object.type].methods;
    const tp_jinja_function *method = methods ? tp_jinja_find_function(methods, name) : NULL;
    if (method)
        return bind_method(run, method, object);
    const char *changes = types[object.type].changes, *others = types[object.type].others;
    if (is_dunder(name) || (changes && tp_python_word(changes, name) >= 0))
        return tp_any_undefined_of(run, object, key, true);
    if (others && tp_python_word(others, name) >= 0)
        tp_jinja_unsupported(run, "attribute '%.*s' of a '%s' is not supported", (int)name.len,
                             name.data, tp_any_type_name(object));
    return found;
}

/* obj[key] alone: lists by position, dicts by key; MISSING. */
static tp_any find_item(tp_jinja_run *run, tp_any object, tp_any key)
{
    tp_integer index = 0;
    tp_jinja_want_defined(run, object);
    if (object.type == TP_ANY_DICT) {
        const tp_any *found =
            tp_any_is_hashable(key) ? tp_any_dict_get(run, object.dict, key) : NULL;
        return found ? *found : (tp_any){0};
    }
    bool is_indexed =
        object.type == TP_ANY_STR || tp_any_is_list(object) || object.type == TP_ANY_RANGE;
    if (!is_indexed || !tp_any_as_int(key, &index))
        return (tp_any){0};
    tp_integer n = (tp_integer)tp_any_length(run, object);
    index += index < 0 ? n : 0;
    if (index < 0 || index >= n)
        return (tp_any){0};
    if (tp_any_is_list(object))
        return object.items->values[index];
    if (object.type == TP_ANY_RANGE)
        return tp_any_int(object.range->start + (int64_t)index * object.range->step);
    tp_slice s = tp_python_from(object.text, tp_python_offset(object.text, (size_t)index));
    s.len = tp_python_offset(s, 1);
    return tp_any_text(s);
}

tp_any tp_jinja_get_attr(tp_jinja_run *run, tp_any object, tp_slice name)
{
    tp_any key = tp_any_text(name), found = tp_jinja_find_attr(run, object, name);
    if (found.type == TP_ANY_MISSING)
        found = find_item(run, object, key);
    return found.type == TP_ANY_MISSING ? tp_any_undefined_of(run, object, key, false) : found;
}

tp_any tp_jinja_get_item(tp_jinja_run *run, tp_any object, tp_any key)
{
    tp_any found = find_item(run, object, key);
    if (found.type == TP_ANY_MISSING && key.type == TP_ANY_STR)
        found = tp_jinja_find_attr(run, object, key.text);
    return found.type == TP_ANY_MISSING ? tp_any_undefined_of(run, object, key, false) : found;
}

/* --- slices --- */

/* Python's slice.indices(), and how many there are in steps of `step`. */
typedef struct {
    int64_t start, stop, step, n;
} slice;

static tp_integer slice_part(tp_jinja_run *run, tp_any v, tp_integer absent)
{
    if (tp_any_is_given(v) && !tp_any_as_int(v, &absent))
        tp_jinja_fail(run, "a slice needs integers or none, not '%s'", tp_any_type_name(v));
    return absent;
}

static int64_t slice_bound(tp_jinja_run *run, tp_any v, int64_t n, bool backward, int64_t absent)
{
    if (!tp_any_is_given(v))
        return absent;
    tp_integer bound = slice_part(run, v, 0), least = backward ? -1 : 0;
    bound += bound < 0 ? n : 0;
    return (int64_t)TP_MIN(TP_MAX(bound, least), (tp_integer)(n + least));
}

static slice resolve_slice(tp_jinja_run *run, const tp_any bounds[3], int64_t n)
{
    tp_integer step = slice_part(run, bounds[2], 1);
    if (step == 0)
        tp_jinja_fail(run, "a slice cannot have step 0");
    bool backward = step < 0;
    slice cut = {.step = (int64_t)TP_MIN(TP_MAX(step, -(tp_integer)INT64_MAX), INT64_MAX)};
    cut.start = slice_bound(run, bounds[0], n, backward, backward ? n - 1 : 0);
    cut.stop = slice_bound(run, bounds[1], n, backward, backward ? -1 : n);
    int64_t distance = backward ? cut.start - cut.stop : cut.stop - cut.start;
    int64_t stride = backward ? -cut.step : cut.step;
    cut.n = distance > 0 ? (distance - 1) / stride + 1 : 0;
    return cut;
}

static tp_any slice_text(tp_jinja_run *run, tp_slice s, slice cut, size_t n)
{
    if (cut.step == 1) {
        s = tp_python_from(s, tp_python_offset(s, (size_t)cut.start));
        s.len = tp_python_offset(s, (size_t)cut.n);
        return tp_any_text(s);
    }
    /* Where each character begins. */
    size_t *offsets = tp_jinja_take(run, n + 1, sizeof *offsets), at = 0;
    for (size_t i = 0; i < n; offsets[++i] = at)
        tp_python_next(s, &at);
    tp_jinja_text text = {.run = run};
    for (int64_t i = 0; i < cut.n; i++) {
        size_t index = (size_t)(cut.start + i * cut.step);
        tp_jinja_add(&text, s.data + offsets[index], offsets[index + 1] - offsets[index]);
    }
    return tp_jinja_text_value(&text);
}

static tp_any slice_range(tp_jinja_run *run, const struct tp_any_range *range, slice cut)
{
    struct tp_any_range *part = tp_jinja_take(run, 1, sizeof *part);
    tp_integer first = range->start, step = range->step;
    tp_integer bounds[3] = {first + cut.start * step, first + cut.stop * step, step * cut.step};
    for (size_t i = 0; i < TP_COUNTOF(bounds); i++)
        if (bounds[i] != (int64_t)bounds[i])
            tp_jinja_unsupported(run, "a range beyond 63 bits is not supported");
    *part =
        (struct tp_any_range){(int64_t)bounds[0], (int64_t)bounds[1], (int64_t)bounds[2], cut.n};
    return (tp_any){.type = TP_ANY_RANGE, .range = part};
}

tp_any tp_jinja_get_slice(tp_jinja_run *run, tp_any object, const tp_any bounds[3])
{
    bool is_list = tp_any_is_list(object);
    tp_jinja_want_defined(run, object);
    if (!is_list && object.type != TP_ANY_STR && object.type != TP_ANY_RANGE)
        tp_jinja_fail(run, "a '%s' cannot be sliced", tp_any_type_name(object));
    size_t n = tp_any_length(run, object);
    slice cut = resolve_slice(run, bounds, (int64_t)n);
    tp_jinja_charge(run, is_list ? (uint64_t)cut.n : 1);
    if (object.type == TP_ANY_STR)
        return slice_text(run, object.text, cut, n);
    if (object.type == TP_ANY_RANGE)
        return slice_range(run, object.range, cut);
    tp_any part = tp_any_new_list(run, object.type, (size_t)cut.n);
    for (int64_t i = 0; i < cut.n; i++)
        part.items->values[i] = object.items->values[cut.start + i * cut.step];
    return part;
}
