/* jinja_call.c - arguments, calls, macros and the global functions. */
#include <string.h>
#include <time.h>

#include "base/platform.h"
#include "text/template/jinja_str.h"

/* --- macros --- */

/* Keywords that no parameter has taken: {..} as a dict. */
static tp_status keywords_left(tp_jinja_run *run, const tp_jinja_args *args, const bool *taken,
                               tp_any *ret)
{
    TP_TRY(tp_any_new_dict(run, args->n_named, ret));
    for (size_t k = 0; k < args->n_named; k++) {
        tp_any key = tp_any_text(args->names[k].data, args->names[k].len);
        if (!taken[k])
            TP_TRY(tp_any_dict_put(run, ret->dict, &key, &args->named[k]));
    }
    return TP_OK;
}

static bool take_keyword(const tp_jinja_args *args, bool *taken, tp_slice name, tp_any *ret)
{
    for (size_t k = 0; k < args->n_named; k++)
        if (!taken[k] && tp_slice_eq(args->names[k], name)) {
            taken[k] = true;
            *ret = args->named[k];
            return true;
        }
    return false;
}

/* caller, varargs and kwargs, where the body mentions them. */
static tp_status bind_extras(tp_jinja_run *run, const tp_jinja_macro *d, const tp_jinja_args *args,
                             bool *taken, tp_jinja_scope *scope)
{
    const struct tp_template *t = run->template;
    tp_any value;
    if (d->uses_caller && !d->caller_is_param) {
        if (!take_keyword(args, taken, TP_SLICE("caller"), &value))
            TP_TRY(tp_any_undefined_hint(run, "No caller defined", &value));
        TP_TRY(tp_jinja_bind_name(run, scope, t->symbol_caller, &value));
    }
    if (d->uses_kwargs) {
        TP_TRY(keywords_left(run, args, taken, &value));
        TP_TRY(tp_jinja_bind_name(run, scope, t->symbol_kwargs, &value));
    }
    for (size_t k = 0; k < args->n_named && !d->uses_kwargs; k++)
        if (!taken[k])
            return tp_jinja_fail(run, "macro '%.*s' takes no keyword argument '%.*s'",
                                 (int)d->name.len, d->name.data,
                                 (int)TP_MIN(args->names[k].len, 60), args->names[k].data);
    size_t n_more = args->n > d->n_params ? args->n - d->n_params : 0;
    if (d->uses_varargs) {
        tp_any *values;
        TP_TRY(tp_any_new_list(run, TP_ANY_TUPLE, n_more, &value, &values));
        if (n_more)
            memcpy(values, args->values + d->n_params, n_more * sizeof *values);
        TP_TRY(tp_jinja_bind_name(run, scope, t->symbol_varargs, &value));
    } else if (n_more) {
        return tp_jinja_fail(run, "macro '%.*s' takes not more than %zu arguments",
                             (int)d->name.len, d->name.data, d->n_params);
    }
    return TP_OK;
}

/* Defaults are found in the macro's own scope, so they see the parameters before. */
static tp_status bind_params(tp_jinja_run *run, const tp_jinja_macro *d, const tp_any *given,
                             tp_jinja_scope *scope)
{
    for (size_t i = 0; i < d->n_params; i++) {
        tp_any value = given[i];
        if (value.type == TP_ANY_MISSING && d->defaults[i])
            TP_TRY(run->eval(run, d->defaults[i], &value));
        else if (value.type == TP_ANY_MISSING)
            TP_TRY(tp_any_undefined_hint(run, "a parameter of a macro was not provided", &value));
        TP_TRY(tp_jinja_bind_name(run, scope, d->params[i], &value));
    }
    return TP_OK;
}

static tp_status call_macro(tp_jinja_run *run, const struct tp_any_macro *macro,
                            const tp_jinja_args *args, tp_any *ret)
{
    const tp_jinja_macro *d = macro->definition;
    tp_jinja_scope *outer = run->scope;
    void *given_memory, *taken_memory;
    TP_TRY(tp_jinja_enter(run));
    TP_TRY(tp_jinja_take(run, d->n_params, sizeof(tp_any), &given_memory));
    TP_TRY(tp_jinja_take(run, args->n_named, sizeof(bool), &taken_memory));
    tp_any *given = given_memory;
    bool *taken = taken_memory;
    for (size_t i = 0; i < d->n_params; i++)
        if (i < args->n)
            given[i] = args->values[i];
        else
            take_keyword(args, taken, run->template->names[d->params[i]], &given[i]);
    TP_TRY(tp_jinja_new_scope(run, macro->scope, &run->scope));
    TP_TRY(bind_extras(run, d, args, taken, run->scope));
    TP_TRY(bind_params(run, d, given, run->scope));
    TP_TRY(tp_jinja_capture(run, d->body, ret));
    run->scope = outer;
    tp_jinja_leave(run);
    return TP_OK;
}

tp_status tp_jinja_call_value(tp_jinja_run *run, const tp_any *callee, const tp_jinja_args *args,
                              tp_any *ret)
{
    TP_TRY(tp_jinja_charge(run, 1));
    switch ((tp_any_type)callee->type) {
    case TP_ANY_FUNCTION:
        return tp_jinja_call_function(run, callee->function, NULL, args, ret);
    case TP_ANY_METHOD:
        return tp_jinja_call_function(run, callee->method->function, &callee->method->self, args,
                                      ret);
    case TP_ANY_MACRO:
        return call_macro(run, callee->macro, args, ret);
    case TP_ANY_UNDEFINED:
        return tp_jinja_undefined_error(run, callee);
    default:
        return tp_jinja_fail(run, "a '%s' cannot be called", tp_any_type_name(callee));
    }
}

/* --- global functions --- */

static tp_status g_range(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    int64_t bounds[3] = {0, 0, 1};
    void *memory = NULL;
    for (size_t i = 0; i < c->args->n; i++)
        TP_TRY(tp_jinja_want_int(run, "range()", &c->arg[i], &bounds[c->args->n == 1 ? 1 : i]));
    if (bounds[2] == 0)
        return tp_jinja_fail(run, "range() cannot have step 0");
    int64_t distance = bounds[2] > 0 ? bounds[1] - bounds[0] : bounds[0] - bounds[1];
    int64_t stride = bounds[2] > 0 ? bounds[2] : -bounds[2];
    int64_t n = distance > 0 ? (distance + stride - 1) / stride : 0;
    if (n > TP_JINJA_MAX_RANGE)
        return tp_jinja_fail(run, "range() of %lld elements; %d is the limit", (long long)n,
                             TP_JINJA_MAX_RANGE);
    TP_TRY(tp_jinja_take(run, 1, sizeof(struct tp_any_range), &memory));
    struct tp_any_range *range = memory;
    *range = (struct tp_any_range){bounds[0], bounds[1], bounds[2], n};
    *ret = (tp_any){.type = TP_ANY_RANGE, .range = range};
    return TP_OK;
}

static tp_status put_pair(tp_jinja_run *run, struct tp_any_dict *dict, const tp_any *pair)
{
    tp_any list;
    TP_TRY(tp_any_list_of(run, pair, &list));
    if (list.items->n != 2)
        return tp_jinja_fail(run, "dict() is made of pairs, not of %zu values", list.items->n);
    return tp_any_dict_put(run, dict, &list.items->values[0], &list.items->values[1]);
}

/* dict(mapping or pairs, name=value ...) */
static tp_status g_dict(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_any_walk walk;
    tp_any element;
    bool more = c->args->n == 1;
    if (more && c->args->values[0].type == TP_ANY_UNDEFINED)
        return tp_jinja_undefined_error(run, &c->args->values[0]);
    if (c->args->n > 1)
        return tp_jinja_fail(run, "dict() takes at most 1 argument without a name");
    TP_TRY(tp_any_new_dict(run, c->args->n_named, ret));
    if (more && c->args->values[0].type == TP_ANY_DICT) {
        const struct tp_any_dict *from = c->args->values[0].dict;
        for (size_t i = 0; i < from->n; i++)
            TP_TRY(tp_any_dict_put(run, ret->dict, &from->entries[i].key, &from->entries[i].value));
        more = false;
    }
    if (more)
        TP_TRY(tp_any_walk_begin(run, &c->args->values[0], &walk));
    while (more) {
        TP_TRY(tp_any_walk_next(run, &walk, &element, &more));
        if (more)
            TP_TRY(put_pair(run, ret->dict, &element));
    }
    for (size_t k = 0; k < c->args->n_named; k++) {
        tp_any key = tp_any_text(c->args->names[k].data, c->args->names[k].len);
        TP_TRY(tp_any_dict_put(run, ret->dict, &key, &c->args->named[k]));
    }
    return TP_OK;
}

static tp_status g_namespace(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    TP_TRY(g_dict(run, c, ret));
    for (size_t i = 0; i < ret->dict->n; i++) {
        const tp_any *key = &ret->dict->entries[i].key;
        if (key->type == TP_ANY_STR && key->text.len && key->text.data[0] == '_')
            return tp_jinja_fail(run, "attributes of a namespace cannot begin with '_'");
    }
    ret->type = TP_ANY_NAMESPACE;
    return TP_OK;
}

static tp_status g_raise_exception(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    (void)ret;
    tp_slice s;
    TP_TRY(tp_any_to_text(run, &c->arg[0], &s));
    return tp_jinja_fail(run, "%.*s", (int)TP_MIN(s.len, 800), s.data);
}

/* Now, as a clock on the wall has it. */
static struct tm local_time(const tp_jinja_run *run)
{
    struct tm tm = {0};
    time_t now = run->now ? (time_t)run->now : time(NULL);
    if (run->now)
        gmtime_r(&now, &tm);
    else
        localtime_r(&now, &tm);
    return tm;
}

static tp_status g_strftime_now(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    enum { MOST = 512 };
    tp_slice s = {0};
    char fixed[MOST], text[8 * MOST];
    size_t n = 0;
    TP_TRY(tp_jinja_want_text(run, "strftime_now()", &c->arg[0], &s));
    for (size_t i = 0; i < s.len; i++) {
        char at = s.data[i], next = i + 1 < s.len ? s.data[i + 1] : 0;
        if (n + 8 > MOST || at == 0)
            return tp_jinja_fail(run, "strftime_now(): the format is too long or has a NUL");
        if (at != '%') {
            fixed[n++] = at;
            continue;
        }
        i++;
        if (next == 'f') { /* Python's own; the zone of a time without one is empty */
            memcpy(fixed + n, "000000", 6);
            n += 6;
        } else if (next != 'z' && next != 'Z' && next) {
            fixed[n++] = '%';
            fixed[n++] = next;
        }
    }
    fixed[n] = 0;
    struct tm now = local_time(run);
    size_t len = n ? strftime(text, sizeof text, fixed, &now) : 0;
    return tp_any_new_text(run, text, len, ret);
}

const tp_jinja_function *tp_jinja_global(tp_slice name)
{
    static const tp_jinja_function globals[] = {
        {"dict()", g_dict, NULL, 0, NULL},
        {"namespace()", g_namespace, NULL, 0, NULL},
        {"raise_exception()", g_raise_exception, "message", 0, NULL},
        {"range()", g_range, "_ [_ _]", 0, NULL},
        {"strftime_now()", g_strftime_now, "format", 0, NULL},
        {"cycler()", NULL, NULL, 0, NULL},
        {"joiner()", NULL, NULL, 0, NULL},
        {"lipsum()", NULL, NULL, 0, NULL},
        {0}};
    return tp_jinja_find_function(globals, name);
}
