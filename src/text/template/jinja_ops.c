/* jinja_ops.c - arithmetic and comparison as Python does them. */
#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_run.h"

static const char *const symbols[] = {"==", "!=", "<", "<=", ">",  ">=", "in", "not in",
                                      "+",  "-",  "*", "/",  "//", "%",  "**"};

static _Noreturn void too_large(tp_jinja_run *run)
{
    tp_jinja_unsupported(run, "an integer beyond 127 bits is not supported");
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

static tp_any integer_power(tp_jinja_run *run, tp_integer base, tp_integer exponent)
{
    tp_integer result = 1;
    if (exponent < 0)
        return tp_any_float(pow((double)base, (double)exponent));
    if (base == -1 || base == 0 || base == 1) /* no exponent is too large for these */
        exponent = exponent ? 2 - exponent % 2 : 0;
    for (; exponent > 0; exponent--)
        if (__builtin_mul_overflow(result, base, &result))
            too_large(run);
    return tp_any_int(result);
}

static tp_any integer_arithmetic(tp_jinja_run *run, tp_jinja_op op, tp_integer a, tp_integer b)
{
    tp_integer result = 0;
    bool overflow = false;
    if (op == TP_JINJA_OP_DIV)
        return tp_any_float((double)a / (double)b);
    if (op == TP_JINJA_OP_POW)
        return integer_power(run, a, b);
    if (op == TP_JINJA_OP_ADD)
        overflow = __builtin_add_overflow(a, b, &result);
    else if (op == TP_JINJA_OP_SUB)
        overflow = __builtin_sub_overflow(a, b, &result);
    else if (op == TP_JINJA_OP_MUL)
        overflow = __builtin_mul_overflow(a, b, &result);
    else if (b == -1) /* the one quotient that may not fit */
        overflow = op == TP_JINJA_OP_FLOORDIV && __builtin_sub_overflow(0, a, &result);
    else
        result = op == TP_JINJA_OP_FLOORDIV ? floor_divide(a, b) : a - b * floor_divide(a, b);
    if (overflow)
        too_large(run);
    return tp_any_int(result);
}

static double float_power(tp_jinja_run *run, double a, double b)
{
    double result = pow(a, b);
    if (isnan(result) && !isnan(a) && !isnan(b))
        tp_jinja_unsupported(run, "complex numbers are not supported");
    if (isinf(result) && isfinite(a) && isfinite(b))
        tp_jinja_fail(run, "the power is too large");
    return result;
}

static double float_arithmetic(tp_jinja_run *run, tp_jinja_op op, double a, double b)
{
    switch (op) {
    case TP_JINJA_OP_ADD:
        return a + b;
    case TP_JINJA_OP_SUB:
        return a - b;
    case TP_JINJA_OP_MUL:
        return a * b;
    case TP_JINJA_OP_POW:
        return float_power(run, a, b);
    case TP_JINJA_OP_DIV:
        return a / b;
    case TP_JINJA_OP_FLOORDIV:
        return float_floor_divide(a, b);
    default:
        return float_modulo(a, b);
    }
}

/* Markup + text escapes the text. */
static tp_any add_texts(tp_jinja_run *run, tp_any a, tp_any b)
{
    tp_jinja_text out = {.run = run};
    bool is_safe = a.is_safe || b.is_safe;
    tp_jinja_add_slice(&out,
                       b.is_safe && !a.is_safe ? tp_jinja_escape_html(run, a.text).text : a.text);
    tp_jinja_add_slice(&out,
                       a.is_safe && !b.is_safe ? tp_jinja_escape_html(run, b.text).text : b.text);
    tp_any sum = tp_jinja_text_value(&out);
    sum.is_safe = is_safe;
    return sum;
}

static tp_any add_lists(tp_jinja_run *run, tp_any a, tp_any b)
{
    size_t n = a.items->n, m = b.items->n;
    tp_any sum = tp_any_new_list(run, a.type, n + m);
    if (n)
        memcpy(sum.items->values, a.items->values, n * sizeof a);
    if (m)
        memcpy(sum.items->values + n, b.items->values, m * sizeof b);
    tp_jinja_charge(run, n + m);
    return sum;
}

static tp_any repeat(tp_jinja_run *run, tp_any v, tp_integer count)
{
    size_t n = count < 0 ? 0 : (size_t)TP_MIN(count, (tp_integer)1 << 40), total = 0;
    if (v.type == TP_ANY_STR) {
        tp_jinja_text out = {.run = run};
        for (size_t i = 0; i < n && v.text.len; i++) {
            tp_jinja_charge(run, 1);
            tp_jinja_add_slice(&out, v.text);
        }
        tp_any text = tp_jinja_text_value(&out);
        text.is_safe = v.is_safe;
        return text;
    }
    if (__builtin_mul_overflow(v.items->n, n, &total))
        tp_jinja_fail(run, "a list becomes too long");
    tp_jinja_charge(run, total);
    tp_any list = tp_any_new_list(run, v.type, total);
    for (size_t i = 0; i < total; i++)
        list.items->values[i] = v.items->values[i % v.items->n];
    return list;
}

static bool may_repeat(tp_any v) { return v.type == TP_ANY_STR || tp_any_is_list(v); }

static tp_any arithmetic(tp_jinja_run *run, tp_jinja_op op, tp_any a, tp_any b)
{
    tp_integer i = 0, j = 0;
    double x = 0, y = 0;
    bool a_int = tp_any_as_int(a, &i), b_int = tp_any_as_int(b, &j);
    if (tp_any_as_float(a, &x) && tp_any_as_float(b, &y)) {
        if (op >= TP_JINJA_OP_DIV && op <= TP_JINJA_OP_MOD && y == 0)
            tp_jinja_fail(run, "division by zero");
        if (op == TP_JINJA_OP_POW && x == 0 && y < 0)
            tp_jinja_fail(run, "0 cannot be raised to a negative power");
        return a_int && b_int ? integer_arithmetic(run, op, i, j)
                              : tp_any_float(float_arithmetic(run, op, x, y));
    }
    if (op == TP_JINJA_OP_MOD && a.type == TP_ANY_STR)
        return tp_jinja_percent(run, a.text, b);
    tp_jinja_want_defined(run, a);
    tp_jinja_want_defined(run, b);
    if (op == TP_JINJA_OP_ADD && a.type == TP_ANY_STR && b.type == TP_ANY_STR)
        return add_texts(run, a, b);
    if (op == TP_JINJA_OP_ADD && tp_any_is_list(a) && a.type == b.type)
        return add_lists(run, a, b);
    if (op == TP_JINJA_OP_MUL && may_repeat(a) && b_int)
        return repeat(run, a, j);
    if (op == TP_JINJA_OP_MUL && may_repeat(b) && a_int)
        return repeat(run, b, i);
    tp_jinja_fail(run, "'%s' is not possible between '%s' and '%s'", symbols[op],
                  tp_any_type_name(a), tp_any_type_name(b));
}

tp_any tp_jinja_binary(tp_jinja_run *run, tp_jinja_op op, tp_any a, tp_any b)
{
    if (op > TP_JINJA_OP_NOT_IN)
        return arithmetic(run, op, a, b);
    if (op <= TP_JINJA_OP_NE)
        return tp_any_bool(tp_any_equal(run, a, b) == (op == TP_JINJA_OP_EQ));
    if (op >= TP_JINJA_OP_IN)
        return tp_any_bool(tp_any_contains(run, b, a) == (op == TP_JINJA_OP_IN));
    int order = tp_any_compare(run, a, b, symbols[op]);
    bool or_equal = op == TP_JINJA_OP_LE || op == TP_JINJA_OP_GE;
    return tp_any_bool((or_equal && order == 0) || order == (op <= TP_JINJA_OP_LE ? -1 : 1));
}

tp_any tp_jinja_signed(tp_jinja_run *run, tp_any v, bool negative)
{
    tp_integer integer = 0;
    tp_jinja_want_defined(run, v);
    if (tp_any_as_int(v, &integer)) {
        if (negative && __builtin_sub_overflow(0, integer, &integer))
            too_large(run);
        return tp_any_int(integer);
    }
    if (v.type != TP_ANY_FLOAT)
        tp_jinja_fail(run, "'%s' has no sign", tp_any_type_name(v));
    return tp_any_float(negative ? -v.real : v.real);
}
