/* jinja_ops.c - arithmetic and comparison as Python does them. */
#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_run.h"

static const char *const symbols[] = {
    "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};

static tp_status too_large(tp_jinja_run *run)
{
    return tp_jinja_unsupported(run, "an integer beyond 127 bits is not supported");
}

static tp_status division_by_zero(tp_jinja_run *run)
{
    return tp_jinja_fail(run, "division by zero");
}

/* Rounds down, so that the remainder has the sign of the divisor. */
static tp_integer floor_divide(tp_integer a, tp_integer b)
{
    tp_integer quotient = a / b;
    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

static double float_modulo(double a, double b)
{
    double rest = fmod(a, b);
    if (rest == 0)
        return copysign(0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

static double float_floor_divide(double a, double b)
{
    double rest = fmod(a, b), quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0))
        quotient -= 1;
    if (quotient == 0)
        return copysign(0, a / b);
    double down = floor(quotient);
    return quotient - down > 0.5 ? down + 1 : down;
}

static tp_status integer_power(tp_jinja_run *run, tp_integer base, tp_integer exponent, tp_any *ret)
{
    tp_integer result = 1;
    if (exponent < 0) {
        if (base == 0)
            return tp_jinja_fail(run, "0 cannot be raised to a negative power");
        *ret = tp_any_float(pow((double)base, (double)exponent));
        return TP_OK;
    }
    if (base == 0 || base == 1 || base == -1) {
        *ret = tp_any_int(exponent == 0 || base == 1 ? 1 : base == 0 ? 0 : exponent % 2 ? -1 : 1);
        return TP_OK;
    }
    for (; exponent > 0; exponent--)
        if (__builtin_mul_overflow(result, base, &result))
            return too_large(run);
    *ret = tp_any_int(result);
    return TP_OK;
}

static tp_status integer_arithmetic(tp_jinja_run *run, tp_jinja_op op, tp_integer a, tp_integer b,
                                    tp_any *ret)
{
    tp_integer result = 0;
    bool overflow = false;
    switch (op) {
    case TP_JINJA_OP_ADD:
        overflow = __builtin_add_overflow(a, b, &result);
        break;
    case TP_JINJA_OP_SUB:
        overflow = __builtin_sub_overflow(a, b, &result);
        break;
    case TP_JINJA_OP_MUL:
        overflow = __builtin_mul_overflow(a, b, &result);
        break;
    case TP_JINJA_OP_POW:
        return integer_power(run, a, b, ret);
    case TP_JINJA_OP_DIV:
        if (b == 0)
            return division_by_zero(run);
        *ret = tp_any_float((double)a / (double)b);
        return TP_OK;
    default:
        if (b == 0)
            return division_by_zero(run);
        if (b == -1) { /* the one quotient that may not fit */
            overflow = op == TP_JINJA_OP_FLOORDIV && __builtin_sub_overflow(0, a, &result);
            break;
        }
        result = op == TP_JINJA_OP_FLOORDIV ? floor_divide(a, b) : a - b * floor_divide(a, b);
        break;
    }
    if (overflow)
        return too_large(run);
    *ret = tp_any_int(result);
    return TP_OK;
}

static tp_status float_arithmetic(tp_jinja_run *run, tp_jinja_op op, double a, double b,
                                  tp_any *ret)
{
    double result = 0;
    switch (op) {
    case TP_JINJA_OP_ADD:
        result = a + b;
        break;
    case TP_JINJA_OP_SUB:
        result = a - b;
        break;
    case TP_JINJA_OP_MUL:
        result = a * b;
        break;
    case TP_JINJA_OP_POW:
        result = pow(a, b);
        if (a == 0 && b < 0)
            return tp_jinja_fail(run, "0 cannot be raised to a negative power");
        if (isnan(result) && !isnan(a) && !isnan(b))
            return tp_jinja_unsupported(run, "complex numbers are not supported");
        if (isinf(result) && isfinite(a) && isfinite(b))
            return tp_jinja_fail(run, "the power is too large");
        break;
    default:
        if (b == 0)
            return division_by_zero(run);
        result = op == TP_JINJA_OP_DIV        ? a / b
                 : op == TP_JINJA_OP_FLOORDIV ? float_floor_divide(a, b)
                                              : float_modulo(a, b);
        break;
    }
    *ret = tp_any_float(result);
    return TP_OK;
}

/* Markup + text escapes the text. */
static tp_status add_texts(tp_jinja_run *run, const tp_any *a, const tp_any *b, tp_any *ret)
{
    tp_any left = *a, right = *b;
    if (a->is_safe && !b->is_safe)
        TP_TRY(tp_jinja_escape_html(run, b->text, &right));
    if (b->is_safe && !a->is_safe)
        TP_TRY(tp_jinja_escape_html(run, a->text, &left));
    tp_jinja_text out = {.run = run};
    TP_TRY(tp_jinja_add(&out, left.text.data, left.text.len));
    TP_TRY(tp_jinja_add(&out, right.text.data, right.text.len));
    *ret = tp_jinja_text_value(&out);
    ret->is_safe = a->is_safe || b->is_safe;
    return TP_OK;
}

static tp_status add_lists(tp_jinja_run *run, const tp_any *a, const tp_any *b, tp_any *ret)
{
    tp_any *values;
    size_t n = a->items->n, m = b->items->n;
    TP_TRY(tp_any_new_list(run, a->type, n + m, ret, &values));
    if (n)
        memcpy(values, a->items->values, n * sizeof *values);
    if (m)
        memcpy(values + n, b->items->values, m * sizeof *values);
    return tp_jinja_charge(run, n + m);
}

static tp_status repeat(tp_jinja_run *run, const tp_any *v, tp_integer count, tp_any *ret)
{
    size_t n = count < 0 ? 0 : (size_t)TP_MIN(count, (tp_integer)1 << 40);
    if (v->type == TP_ANY_STR) {
        tp_jinja_text out = {.run = run};
        for (size_t i = 0; i < n && v->text.len; i++) {
            TP_TRY(tp_jinja_charge(run, 1));
            TP_TRY(tp_jinja_add(&out, v->text.data, v->text.len));
        }
        *ret = tp_jinja_text_value(&out);
        ret->is_safe = v->is_safe;
        return TP_OK;
    }
    tp_any *values;
    size_t each = v->items->n, total = 0;
    if (__builtin_mul_overflow(each, n, &total))
        return tp_jinja_fail(run, "a list becomes too long");
    TP_TRY(tp_jinja_charge(run, total));
    TP_TRY(tp_any_new_list(run, v->type, total, ret, &values));
    for (size_t i = 0; i < total; i++)
        values[i] = v->items->values[i % each];
    return TP_OK;
}

static bool is_list(const tp_any *v) { return v->type == TP_ANY_LIST || v->type == TP_ANY_TUPLE; }

static tp_status arithmetic(tp_jinja_run *run, tp_jinja_op op, const tp_any *a, const tp_any *b,
                            tp_any *ret)
{
    tp_integer i = 0, j = 0;
    double x = 0, y = 0;
    bool a_int = tp_any_as_int(a, &i), b_int = tp_any_as_int(b, &j);
    if (a_int && b_int)
        return integer_arithmetic(run, op, i, j, ret);
    if (tp_any_as_float(a, &x) && tp_any_as_float(b, &y))
        return float_arithmetic(run, op, x, y, ret);
    if (op == TP_JINJA_OP_MOD && a->type == TP_ANY_STR)
        return tp_jinja_percent(run, a->text, b, ret);
    if (a->type == TP_ANY_UNDEFINED || b->type == TP_ANY_UNDEFINED)
        return tp_jinja_undefined_error(run, a->type == TP_ANY_UNDEFINED ? a : b);
    if (op == TP_JINJA_OP_ADD && a->type == TP_ANY_STR && b->type == TP_ANY_STR)
        return add_texts(run, a, b, ret);
    if (op == TP_JINJA_OP_ADD && is_list(a) && a->type == b->type)
        return add_lists(run, a, b, ret);
    if (op == TP_JINJA_OP_MUL && (a->type == TP_ANY_STR || is_list(a)) && b_int)
        return repeat(run, a, j, ret);
    if (op == TP_JINJA_OP_MUL && (b->type == TP_ANY_STR || is_list(b)) && a_int)
        return repeat(run, b, i, ret);
    return tp_jinja_fail(run, "'%s' is not possible between '%s' and '%s'", symbols[op],
                         tp_any_type_name(a), tp_any_type_name(b));
}

tp_status tp_jinja_binary(tp_jinja_run *run, tp_jinja_op op, const tp_any *a, const tp_any *b,
                          tp_any *ret)
{
    bool truth = false;
    int order = 0;
    switch (op) {
    case TP_JINJA_OP_EQ:
    case TP_JINJA_OP_NE:
        TP_TRY(tp_any_equal(run, a, b, &truth));
        *ret = tp_any_bool(truth == (op == TP_JINJA_OP_EQ));
        return TP_OK;
    case TP_JINJA_OP_IN:
    case TP_JINJA_OP_NOT_IN:
        TP_TRY(tp_any_contains(run, b, a, &truth));
        *ret = tp_any_bool(truth == (op == TP_JINJA_OP_IN));
        return TP_OK;
    case TP_JINJA_OP_LT:
    case TP_JINJA_OP_LE:
    case TP_JINJA_OP_GT:
    case TP_JINJA_OP_GE:
        TP_TRY(tp_any_compare(run, a, b, symbols[op], &order));
        *ret = tp_any_bool(op == TP_JINJA_OP_LT   ? order == -1
                           : op == TP_JINJA_OP_LE ? order == -1 || order == 0
                           : op == TP_JINJA_OP_GT ? order == 1
                                                  : order == 1 || order == 0);
        return TP_OK;
    default:
        return arithmetic(run, op, a, b, ret);
    }
}

tp_status tp_jinja_negate(tp_jinja_run *run, const tp_any *v, bool negative, tp_any *ret)
{
    tp_integer integer = 0;
    if (v->type == TP_ANY_UNDEFINED)
        return tp_jinja_undefined_error(run, v);
    if (tp_any_as_int(v, &integer)) {
        if (negative && __builtin_sub_overflow(0, integer, &integer))
            return too_large(run);
        *ret = tp_any_int(integer);
        return TP_OK;
    }
    if (v->type != TP_ANY_FLOAT)
        return tp_jinja_fail(run, "'%s' has no sign", tp_any_type_name(v));
    *ret = tp_any_float(negative ? -v->real : v->real);
    return TP_OK;
}
