/* jinja_filters_number.c - filters that make numbers. */
#include <math.h>
#include <string.h>

#include "text/template/jinja_run.h"
#include "text/template/python_text.h"

static tp_status f_abs(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_integer integer = 0;
    if (tp_any_as_int(c->self, &integer)) {
        tp_any plain = tp_any_int(integer);
        return tp_jinja_negate(run, &plain, integer < 0, ret);
    }
    if (c->self->type != TP_ANY_FLOAT)
        return tp_jinja_fail(run, "abs needs a number, not '%s'", tp_any_type_name(c->self));
    *ret = tp_any_float(fabs(c->self->real));
    return TP_OK;
}

/* int(float): towards zero. */
static bool truncate(double real, tp_integer *ret)
{
    if (!isfinite(real) || fabs(real) > 1.7e38)
        return false;
    *ret = (tp_integer)real;
    return true;
}

static tp_status f_int(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_integer integer = 0;
    double real = 0;
    int64_t base = 10;
    bool overflow = false, ok = false;
    TP_TRY(tp_jinja_want_int(run, "int: base", &c->arg[1], &base));
    if (c->self->type == TP_ANY_UNDEFINED)
        return tp_jinja_undefined_error(run, c->self);
    if (c->self->type == TP_ANY_STR) {
        if (base >= 0 && base <= 36 && base != 1)
            ok = tp_python_parse_integer(c->self->text.data, c->self->text.len, (int)base, &integer,
                                         &overflow);
        if (!ok)
            ok = tp_python_parse_float(c->self->text.data, c->self->text.len, &real) &&
                 truncate(real, &integer);
    } else if (!(ok = tp_any_as_int(c->self, &integer)) && c->self->type == TP_ANY_FLOAT) {
        ok = truncate(c->self->real, &integer);
        if (isinf(c->self->real)) /* Python's OverflowError, which the filter lets through */
            return tp_jinja_fail(run, "int: infinity is no integer");
    }
    if (overflow)
        return tp_jinja_unsupported(run, "an integer beyond 127 bits is not supported");
    *ret = ok ? tp_any_int(integer) : c->arg[0].type == TP_ANY_MISSING ? tp_any_int(0) : c->arg[0];
    return TP_OK;
}

static tp_status f_float(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    double real = 0;
    if (c->self->type == TP_ANY_UNDEFINED)
        return tp_jinja_undefined_error(run, c->self);
    bool ok = c->self->type == TP_ANY_STR
                  ? tp_python_parse_float(c->self->text.data, c->self->text.len, &real)
                  : tp_any_as_float(c->self, &real);
    *ret = ok ? tp_any_float(real) : c->arg[0].type == TP_ANY_MISSING ? tp_any_float(0) : c->arg[0];
    return TP_OK;
}

/* round(float, digits): to the nearest of the exact value, ties to even, which is
 * how printf() rounds. */
static double round_float(double value, int64_t digits)
{
    char text[400];
    if (!isfinite(value) || digits > 300)
        return value;
    if (digits >= 0) {
        snprintf(text, sizeof text, "%.*f", (int)digits, value);
        return strtod(text, NULL);
    }
    if (digits < -308)
        return copysign(0, value);
    /* Count the digits in front of the point, and print that many fewer. */
    snprintf(text, sizeof text, "%.17e", value);
    int64_t kept = strtol(strchr(text, 'e') + 1, NULL, 10) + digits;
    if (kept < 0) {
        double unit = pow(10, (double)-digits);
        return fabs(value) > unit / 2 ? copysign(unit, value) : copysign(0, value);
    }
    snprintf(text, sizeof text, "%.*e", (int)kept, value);
    return strtod(text, NULL);
}

static tp_integer round_integer(tp_integer value, int64_t digits)
{
    tp_integer unit = 1;
    for (int64_t i = digits; i < 0; i++)
        if (__builtin_mul_overflow(unit, 10, &unit))
            return 0;
    tp_integer rest = value % unit, down = value - rest;
    tp_integer size = rest < 0 ? -rest : rest, step = rest < 0 ? -unit : unit;
    bool odd = (down / unit) % 2 != 0;
    bool away = 2 * size > unit || (2 * size == unit && odd);
    return down + (away ? step : 0);
}

static tp_status f_round(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_slice method = TP_SLICE("common");
    int64_t precision = 0;
    tp_integer integer = 0;
    double real = 0;
    TP_TRY(tp_jinja_want_int(run, "round: precision", &c->arg[0], &precision));
    if (c->arg[1].type != TP_ANY_MISSING)
        TP_TRY(tp_jinja_want_text(run, "round: method", &c->arg[1], &method));
    bool ceiling = tp_slice_is(method, "ceil"), floor_ = tp_slice_is(method, "floor");
    if (!ceiling && !floor_ && !tp_slice_is(method, "common"))
        return tp_jinja_fail(run, "round: the method must be common, ceil or floor");
    if (c->self->type == TP_ANY_UNDEFINED)
        return tp_jinja_undefined_error(run, c->self);
    if (!tp_any_as_float(c->self, &real))
        return tp_jinja_fail(run, "round needs a number, not '%s'", tp_any_type_name(c->self));
    bool is_int = tp_any_as_int(c->self, &integer);
    if (ceiling || floor_) {
        double scale = pow(10, (double)precision), scaled = real * scale;
        if (!isfinite(scaled) || scale == 0)
            return tp_jinja_fail(run, "round: the number is too large");
        *ret = tp_any_float((ceiling ? ceil(scaled) : floor(scaled)) / scale);
        return TP_OK;
    }
    if (is_int)
        *ret = tp_any_int(precision < 0 ? round_integer(integer, precision) : integer);
    else
        *ret = tp_any_float(round_float(real, precision));
    return TP_OK;
}

static tp_status f_length(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    size_t n = 0;
    TP_TRY(tp_any_length(run, c->self, &n));
    *ret = tp_any_int((tp_integer)n);
    return TP_OK;
}

const tp_jinja_function tp_jinja_number_filters[] = {
    {"abs", f_abs, "", 0, NULL},
    {"count", f_length, "", 0, NULL},
    {"float", f_float, "[default]", 0, NULL},
    {"int", f_int, "[default base]", 0, NULL},
    {"length", f_length, "", 0, NULL},
    {"round", f_round, "[precision method]", 0, NULL},
    {0}};
