/* jinja_tests.c - what may follow "is". */
#include "base/platform.h"
#include "text/template/jinja_run.h"
#include "text/template/jinja_str.h"

typedef enum {
    IS_DEFINED,
    IS_UNDEFINED,
    IS_NONE,
    IS_TRUE,
    IS_FALSE,
    IS_BOOLEAN,
    IS_INTEGER,
    IS_FLOAT,
    IS_NUMBER,
    IS_STRING,
    IS_MAPPING,
    IS_ITERABLE,
    IS_SEQUENCE,
    IS_CALLABLE,
    IS_LOWER,
    IS_UPPER,
    IS_ESCAPED,
    IS_ODD,
    IS_EVEN,
    IS_NAME,      /* of a filter or test: refused */
    IS_DIVISIBLE, /* from here on: with one argument */
    IS_SAME,
    IS_IN,
    IS_EQ,
    IS_NE,
    IS_LT,
    IS_LE,
    IS_GT,
    IS_GE
} test;

static const struct {
    const char *name;
    test test;
} tests[] = {{"!=", IS_NE},
             {"<", IS_LT},
             {"<=", IS_LE},
             {"==", IS_EQ},
             {">", IS_GT},
             {">=", IS_GE},
             {"boolean", IS_BOOLEAN},
             {"callable", IS_CALLABLE},
             {"defined", IS_DEFINED},
             {"divisibleby", IS_DIVISIBLE},
             {"eq", IS_EQ},
             {"equalto", IS_EQ},
             {"escaped", IS_ESCAPED},
             {"even", IS_EVEN},
             {"false", IS_FALSE},
             {"filter", IS_NAME},
             {"float", IS_FLOAT},
             {"ge", IS_GE},
             {"greaterthan", IS_GT},
             {"gt", IS_GT},
             {"in", IS_IN},
             {"integer", IS_INTEGER},
             {"iterable", IS_ITERABLE},
             {"le", IS_LE},
             {"lessthan", IS_LT},
             {"lower", IS_LOWER},
             {"lt", IS_LT},
             {"mapping", IS_MAPPING},
             {"ne", IS_NE},
             {"none", IS_NONE},
             {"number", IS_NUMBER},
             {"odd", IS_ODD},
             {"sameas", IS_SAME},
             {"sequence", IS_SEQUENCE},
             {"string", IS_STRING},
             {"test", IS_NAME},
             {"true", IS_TRUE},
             {"undefined", IS_UNDEFINED},
             {"upper", IS_UPPER}};

static int find_test(tp_slice name)
{
    for (size_t i = 0; i < TP_COUNTOF(tests); i++)
        if (tp_slice_is(name, tests[i].name))
            return (int)i;
    return -1;
}

bool tp_jinja_has_test(tp_slice name) { return find_test(name) >= 0; }

static bool is_number(const tp_any *v)
{
    return v->type == TP_ANY_BOOL || v->type == TP_ANY_INT || v->type == TP_ANY_FLOAT;
}

static bool is_sequence(const tp_any *v)
{
    return v->type == TP_ANY_UNDEFINED || (v->type >= TP_ANY_STR && v->type <= TP_ANY_RANGE);
}

static bool is_callable(const tp_any *v)
{
    switch ((tp_any_type)v->type) {
    case TP_ANY_UNDEFINED: /* its class has __call__, which fails */
    case TP_ANY_FUNCTION:
    case TP_ANY_METHOD:
    case TP_ANY_MACRO:
    case TP_ANY_LOOP:
        return true;
    default:
        return false;
    }
}

/* value % divisor == remainder */
static tp_status has_remainder(tp_jinja_run *run, const tp_any *v, const tp_any *divisor,
                               int remainder, bool *ret)
{
    tp_any rest, wanted = tp_any_int(remainder);
    TP_TRY(tp_jinja_binary(run, TP_JINJA_OP_MOD, v, divisor, &rest));
    return tp_any_equal(run, &rest, &wanted, ret);
}

static bool is_same(const tp_any *a, const tp_any *b)
{
    if (a->type != b->type)
        return false;
    switch ((tp_any_type)a->type) {
    case TP_ANY_NONE:
        return true;
    case TP_ANY_BOOL:
        return a->truth == b->truth;
    case TP_ANY_INT:
        return a->integer == b->integer;
    case TP_ANY_FLOAT:
        return a->real == b->real;
    case TP_ANY_STR:
        return tp_slice_eq(a->text, b->text);
    default:
        return a->items == b->items;
    }
}

static tp_status compare(tp_jinja_run *run, test t, const tp_any *a, const tp_any *b, bool *ret)
{
    static const uint8_t ops[] = {TP_JINJA_OP_EQ, TP_JINJA_OP_NE, TP_JINJA_OP_LT,
                                  TP_JINJA_OP_LE, TP_JINJA_OP_GT, TP_JINJA_OP_GE};
    tp_any result;
    TP_TRY(tp_jinja_binary(run, (tp_jinja_op)ops[t - IS_EQ], a, b, &result));
    *ret = tp_any_is_true(&result);
    return TP_OK;
}

static tp_status test_text(tp_jinja_run *run, test t, const tp_any *v, bool *ret)
{
    tp_slice s;
    TP_TRY(tp_any_to_text(run, v, &s));
    *ret = tp_jinja_is_cased(s, t == IS_UPPER);
    return TP_OK;
}

static bool test_type(test t, const tp_any *v)
{
    switch (t) {
    case IS_DEFINED:
        return v->type != TP_ANY_UNDEFINED;
    case IS_UNDEFINED:
        return v->type == TP_ANY_UNDEFINED;
    case IS_NONE:
        return v->type == TP_ANY_NONE;
    case IS_TRUE:
        return v->type == TP_ANY_BOOL && v->truth;
    case IS_FALSE:
        return v->type == TP_ANY_BOOL && !v->truth;
    case IS_BOOLEAN:
        return v->type == TP_ANY_BOOL;
    case IS_INTEGER:
        return v->type == TP_ANY_INT;
    case IS_FLOAT:
        return v->type == TP_ANY_FLOAT;
    case IS_NUMBER:
        return is_number(v);
    case IS_STRING:
        return v->type == TP_ANY_STR;
    case IS_MAPPING:
        return v->type == TP_ANY_DICT;
    case IS_ITERABLE:
        return tp_any_is_iterable(v);
    case IS_SEQUENCE:
        return is_sequence(v);
    case IS_CALLABLE:
        return is_callable(v);
    default: /* IS_ESCAPED */
        return v->type == TP_ANY_STR && v->is_safe;
    }
}

tp_status tp_jinja_call_test(tp_jinja_run *run, tp_slice name, const tp_any *self,
                             const tp_jinja_args *args, bool *ret)
{
    int found = find_test(name);
    tp_any arg, two = tp_any_int(2);
    TP_TRY(tp_jinja_charge(run, 1));
    if (found < 0)
        return tp_jinja_fail(run, "there is no test '%.*s'", (int)TP_MIN(name.len, 60), name.data);
    test t = tests[found].test;
    const char *parameters = t < IS_DIVISIBLE    ? ""
                             : t == IS_DIVISIBLE ? "num"
                             : t == IS_SAME      ? "other"
                             : t == IS_IN        ? "seq"
                                                 : "_";
    TP_TRY(tp_jinja_bind(run, tests[found].name, args, parameters, &arg));
    switch (t) {
    case IS_LOWER:
    case IS_UPPER:
        return test_text(run, t, self, ret);
    case IS_NAME:
        return tp_jinja_unsupported(run, "'is %s' is not supported", tests[found].name);
    case IS_ODD:
    case IS_EVEN:
        return has_remainder(run, self, &two, t == IS_ODD, ret);
    case IS_DIVISIBLE:
        return has_remainder(run, self, &arg, 0, ret);
    case IS_SAME:
        *ret = is_same(self, &arg);
        return TP_OK;
    case IS_IN:
        return tp_any_contains(run, &arg, self, ret);
    case IS_EQ:
    case IS_NE:
    case IS_LT:
    case IS_LE:
    case IS_GT:
    case IS_GE:
        return compare(run, t, self, &arg, ret);
    default:
        *ret = test_type(t, self);
        return TP_OK;
    }
}
