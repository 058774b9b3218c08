/* jinja_args.c - arguments of a call, by position and by name, and of a wanted type. */
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_run.h"

/* The names in "old new [count]"; returns how many there are. */
static size_t read_parameters(const char *at, tp_slice *names, size_t *ret_required)
{
    size_t n = 0;
    bool is_optional = false;
    *ret_required = 0;
    while (*at) {
        size_t len = strcspn(at, " []");
        if (len)
            names[n++] = (tp_slice){at, len};
        is_optional |= at[len] == '[';
        if (!is_optional)
            *ret_required = n;
        at += len + (at[len] != 0);
    }
    return n;
}

tp_status tp_jinja_bind(tp_jinja_run *run, const char *what, const tp_jinja_args *args,
                        const char *parameters, tp_any *out)
{
    tp_slice names[TP_COUNTOF(((tp_jinja_invocation *)0)->arg)];
    size_t n_required, n = read_parameters(parameters, names, &n_required);
    if (args->n > n)
        return tp_jinja_fail(run, "%s takes at most %zu arguments, not %zu", what, n, args->n);
    for (size_t i = 0; i < n; i++)
        out[i] = i < args->n ? args->values[i] : (tp_any){0};
    for (size_t k = 0; k < args->n_named; k++) {
        size_t i = 0;
        while (i < n && (names[i].data[0] == '_' || !tp_slice_eq(args->names[k], names[i])))
            i++;
        int len = (int)TP_MIN(args->names[k].len, 60);
        if (i == n)
            return tp_jinja_fail(run, "%s has no argument '%.*s'", what, len, args->names[k].data);
        if (out[i].type != TP_ANY_MISSING)
            return tp_jinja_fail(run, "%s gets its argument '%.*s' twice", what, len,
                                 args->names[k].data);
        out[i] = args->named[k];
    }
    for (size_t i = 0; i < n_required; i++)
        if (out[i].type == TP_ANY_MISSING)
            return tp_jinja_fail(run, "%s needs %zu arguments", what, n_required);
    return TP_OK;
}

const tp_jinja_function *tp_jinja_find_function(const tp_jinja_function *table, tp_slice name)
{
    for (const tp_jinja_function *f = table; f->name; f++)
        for (const char *one = f->name; *one; one += strcspn(one, " "), one += *one == ' ')
            if (tp_slice_eq(name, (tp_slice){one, strcspn(one, "( ")}))
                return f;
    return NULL;
}

tp_status tp_jinja_call_function(tp_jinja_run *run, const tp_jinja_function *function,
                                 const tp_any *self, const tp_jinja_args *args, tp_any *ret)
{
    tp_jinja_invocation c = {.what = function->name,
                             .self = self,
                             .args = args,
                             .variant = function->variant,
                             .is = function->is};
    if (!function->call)
        return tp_jinja_unsupported(run, "%s is not supported", c.what);
    if (function->parameters)
        TP_TRY(tp_jinja_bind(run, c.what, args, function->parameters, c.arg));
    return function->call(run, &c, ret);
}

tp_status tp_jinja_want_int(tp_jinja_run *run, const char *what, const tp_any *v, int64_t *ret)
{
    tp_integer integer = 0;
    if (v->type == TP_ANY_MISSING)
        return TP_OK;
    if (v->type == TP_ANY_UNDEFINED)
        return tp_jinja_undefined_error(run, v);
    if (!tp_any_as_int(v, &integer))
        return tp_jinja_fail(run, "%s: an integer is needed, not '%s'", what, tp_any_type_name(v));
    *ret = (int64_t)TP_MIN(TP_MAX(integer, (tp_integer)INT32_MIN), (tp_integer)INT32_MAX);
    return TP_OK;
}

tp_status tp_jinja_want_flag(tp_jinja_run *run, const char *what, const tp_any *v, bool *ret)
{
    int64_t flag = *ret;
    TP_TRY(tp_jinja_want_int(run, what, v, &flag));
    *ret = flag != 0;
    return TP_OK;
}

tp_status tp_jinja_want_text(tp_jinja_run *run, const char *what, const tp_any *v, tp_slice *ret)
{
    if (v->type == TP_ANY_UNDEFINED)
        return tp_jinja_undefined_error(run, v);
    if (v->type != TP_ANY_STR)
        return tp_jinja_fail(run, "%s: a string is needed, not '%s'", what, tp_any_type_name(v));
    *ret = v->text;
    return TP_OK;
}
