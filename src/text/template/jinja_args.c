/* jinja_args.c - arguments of a call, by position and by name, and of a wanted type. */
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_run.h"

tp_status tp_jinja_bind(tp_jinja_run *run, const char *what, const tp_jinja_args *args,
                        const char *const *names, size_t n, size_t n_required, tp_any *out)
{
    if (args->n > n)
        return tp_jinja_fail(run, "%s takes at most %zu arguments, not %zu", what, n, args->n);
    for (size_t i = 0; i < n; i++)
        out[i] = i < args->n ? args->values[i] : (tp_any){0};
    for (size_t k = 0; k < args->n_named; k++) {
        size_t i = 0;
        while (i < n && !(names[i] && tp_slice_is(args->names[k], names[i])))
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
