/* jinja_value.c - Python's values as templates see them: truth, comparison, containment,
 * conversion. */
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_run.h"
#include "text/template/python_text.h"

enum { BYTES_PER_TURN = 4096 };

const char *tp_any_type_name(const tp_any *v)
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
    return v->type == TP_ANY_VIEW ? views[v->view] : names[v->type];
}

bool tp_any_is_true(const tp_any *v)
{
    switch ((tp_any_type)v->type) {
    case TP_ANY_MISSING:
    case TP_ANY_UNDEFINED:
    case TP_ANY_NONE:
        return false;
    case TP_ANY_BOOL:
        return v->truth;
    case TP_ANY_INT:
        return v->integer != 0;
    case TP_ANY_FLOAT:
        return v->real != 0;
    case TP_ANY_STR:
        return v->text.len != 0;
    case TP_ANY_LIST:
    case TP_ANY_TUPLE:
        return v->items->n != 0;
    case TP_ANY_DICT:
    case TP_ANY_VIEW:
        return v->dict->n != 0;
    case TP_ANY_RANGE:
        return v->range->n != 0;
    default:
        return true;
    }
}

bool tp_any_as_int(const tp_any *v, tp_integer *ret)
{
    if (v->type == TP_ANY_BOOL)
        *ret = v->truth;
    else if (v->type == TP_ANY_INT)
        *ret = v->integer;
    else
        return false;
    return true;
}

bool tp_any_as_float(const tp_any *v, double *ret)
{
    tp_integer integer;
    if (v->type == TP_ANY_FLOAT)
        *ret = v->real;
    else if (tp_any_as_int(v, &integer))
        *ret = (double)integer;
    else
        return false;
    return true;
}

tp_status tp_any_length(tp_jinja_run *run, const tp_any *v, size_t *ret)
{
    switch ((tp_any_type)v->type) {
    case TP_ANY_UNDEFINED:
        *ret = 0;
        return TP_OK;
    case TP_ANY_STR:
        TP_TRY(tp_jinja_charge(run, v->text.len / BYTES_PER_TURN));
        *ret = tp_utf8_count(v->text.data, v->text.len);
        return TP_OK;
    case TP_ANY_LIST:
    case TP_ANY_TUPLE:
        *ret = v->items->n;
        return TP_OK;
    case TP_ANY_DICT:
    case TP_ANY_VIEW:
        *ret = v->dict->n;
        return TP_OK;
    case TP_ANY_RANGE:
        *ret = (size_t)v->range->n;
        return TP_OK;
    default:
        return tp_jinja_fail(run, "'%s' has no length", tp_any_type_name(v));
    }
}

tp_status tp_any_new_list(tp_jinja_run *run, tp_any_type type, size_t n, tp_any *ret,
                          tp_any **ret_values)
{
    void *memory, *values;
    TP_TRY(tp_jinja_take(run, 1, sizeof(struct tp_any_items), &memory));
    TP_TRY(tp_jinja_take(run, n, sizeof(tp_any), &values));
    struct tp_any_items *items = memory;
    items->n = n;
    items->values = values;
    *ret_values = values;
    *ret = (tp_any){.type = (uint8_t)type, .items = items};
    return TP_OK;
}

tp_status tp_any_new_text(tp_jinja_run *run, const char *s, size_t n, tp_any *ret)
{
    void *copy = NULL;
    TP_TRY(tp_jinja_take(run, n + 1, 1, &copy));
    if (n)
        memcpy(copy, s, n);
    *ret = tp_any_text(copy, n);
    return TP_OK;
}

tp_status tp_any_new_undefined(tp_jinja_run *run, struct tp_any_undefined what, tp_any *ret)
{
    void *memory = NULL;
    TP_TRY(tp_jinja_take(run, 1, sizeof what, &memory));
    memcpy(memory, &what, sizeof what);
    *ret = (tp_any){.type = TP_ANY_UNDEFINED, .undefined = memory};
    return TP_OK;
}

tp_status tp_any_undefined_hint(tp_jinja_run *run, const char *hint, tp_any *ret)
{
    return tp_any_new_undefined(run, (struct tp_any_undefined){.hint = hint}, ret);
}

tp_status tp_any_undefined_name(tp_jinja_run *run, tp_slice name, tp_any *ret)
{
    return tp_any_new_undefined(run, (struct tp_any_undefined){.name = name}, ret);
}

tp_status tp_jinja_undefined_error(tp_jinja_run *run, const tp_any *undefined)
{
    const struct tp_any_undefined *u = undefined->undefined;
    if (!u)
        return tp_jinja_fail(run, "an undefined value is used");
    int n = (int)TP_MIN(u->name.len, 100);
    if (u->hint)
        return tp_jinja_fail(run, "%s", u->hint);
    if (u->is_unsafe)
        return tp_jinja_fail(run, "attribute '%.*s' of a '%s' is not allowed in templates", n,
                             u->name.data, u->object);
    if (!u->object)
        return tp_jinja_fail(run, "'%.*s' is undefined", n, u->name.data);
    return tp_jinja_fail(run, "'%s' object has no %s '%.*s'", u->object,
                         u->is_element ? "element" : "attribute", n, u->name.data);
}

bool tp_any_is_iterable(const tp_any *v)
{
    return v->type == TP_ANY_UNDEFINED || (v->type >= TP_ANY_STR && v->type <= TP_ANY_ITERATOR);
}

tp_status tp_any_walk_begin(tp_jinja_run *run, const tp_any *v, tp_any_walk *ret)
{
    if (!tp_any_is_iterable(v))
        return tp_jinja_fail(run, "a '%s' cannot be iterated over", tp_any_type_name(v));
    *ret = (tp_any_walk){.source = *v};
    if (v->type == TP_ANY_STR)
        ret->n = v->text.len;
    else if (v->type != TP_ANY_ITERATOR)
        TP_TRY(tp_any_length(run, v, &ret->n));
    return TP_OK;
}

tp_status tp_any_walk_next(tp_jinja_run *run, tp_any_walk *walk, tp_any *ret, bool *ret_more)
{
    const tp_any *v = &walk->source;
    TP_TRY(tp_jinja_charge(run, 1));
    if (v->type == TP_ANY_ITERATOR) {
        struct tp_any_iterator *iterator = v->iterator;
        if (iterator->failure)
            return tp_fail(run->err, (tp_status)iterator->failure_status, "%s", iterator->failure);
        *ret_more = iterator->at < iterator->items->n;
        if (*ret_more)
            *ret = iterator->items->values[iterator->at++];
        return TP_OK;
    }
    *ret_more = walk->at < walk->n;
    if (!*ret_more)
        return TP_OK;
    size_t at = walk->at;
    walk->at++;
    if (v->type == TP_ANY_STR) {
        size_t len = tp_utf8_length(v->text.data + at, walk->n - at);
        *ret = tp_any_text(v->text.data + at, len);
        walk->at = at + len;
    } else if (v->type == TP_ANY_RANGE) {
        *ret = tp_any_int(v->range->start + (int64_t)at * v->range->step);
    } else if (v->type == TP_ANY_LIST || v->type == TP_ANY_TUPLE) {
        *ret = v->items->values[at];
    } else if (v->type == TP_ANY_VIEW && v->view == TP_VIEW_ITEMS) {
        tp_any *pair;
        TP_TRY(tp_any_new_list(run, TP_ANY_TUPLE, 2, ret, &pair));
        pair[0] = v->dict->entries[at].key;
        pair[1] = v->dict->entries[at].value;
    } else {
        bool values = v->type == TP_ANY_VIEW && v->view == TP_VIEW_VALUES;
        *ret = values ? v->dict->entries[at].value : v->dict->entries[at].key;
    }
    return TP_OK;
}

tp_status tp_any_list_of(tp_jinja_run *run, const tp_any *v, tp_any *ret)
{
    size_t n = 0;
    if (v->type == TP_ANY_ITERATOR)
        n = v->iterator->items->n - v->iterator->at;
    else if (tp_any_is_iterable(v))
        TP_TRY(tp_any_length(run, v, &n));
    tp_any_walk walk;
    tp_any *values, element;
    bool more = true;
    TP_TRY(tp_any_walk_begin(run, v, &walk));
    TP_TRY(tp_any_new_list(run, TP_ANY_LIST, n, ret, &values));
    for (size_t i = 0;; i++) {
        TP_TRY(tp_any_walk_next(run, &walk, &element, &more));
        if (!more)
            return TP_OK;
        TP_ASSERT(i < n);
        values[i] = element;
    }
}

tp_status tp_any_new_failure(tp_jinja_run *run, tp_status failure, tp_any *ret)
{
    tp_any nothing, *values, message;
    const char *text = run->err ? run->err->message : "a filter failed";
    TP_TRY(tp_any_new_list(run, TP_ANY_LIST, 0, &nothing, &values));
    TP_TRY(tp_any_new_text(run, text, strlen(text), &message));
    TP_TRY(tp_any_new_iterator(run, &nothing, ret));
    ret->iterator->failure = message.text.data;
    ret->iterator->failure_status = (int)failure;
    return TP_OK;
}

tp_status tp_jinja_new_method(tp_jinja_run *run, const tp_jinja_function *function,
                              const tp_any *self, tp_any *ret)
{
    void *memory = NULL;
    TP_TRY(tp_jinja_take(run, 1, sizeof(struct tp_any_method), &memory));
    struct tp_any_method *method = memory;
    *method = (struct tp_any_method){function, *self};
    *ret = (tp_any){.type = TP_ANY_METHOD, .method = method};
    return TP_OK;
}

tp_status tp_any_new_iterator(tp_jinja_run *run, const tp_any *list, tp_any *ret)
{
    void *memory = NULL;
    TP_TRY(tp_jinja_take(run, 1, sizeof(struct tp_any_iterator), &memory));
    struct tp_any_iterator *iterator = memory;
    iterator->items = list->items;
    *ret = (tp_any){.type = TP_ANY_ITERATOR, .iterator = iterator};
    return TP_OK;
}
