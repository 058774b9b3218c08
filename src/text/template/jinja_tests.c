/* jinja_tests.c - what may follow "is". */
#include "base/platform.h"
#include "text/template/jinja_run.h"
#include "text/template/jinja_str.h"

#define BIT(type) (1 << TP_ANY_##type)

enum {
    NUMBERS = BIT(BOOL) | BIT(INT) | BIT(FLOAT),
    /* A strict undefined value has all of Python's special methods, which fail. */
    SEQUENCES = BIT(UNDEFINED) | BIT(STR) | BIT(LIST) | BIT(TUPLE) | BIT(DICT) | BIT(RANGE),
    ITERABLES = SEQUENCES | BIT(VIEW) | BIT(ITERATOR),
    CALLABLES = BIT(UNDEFINED) | BIT(FUNCTION) | BIT(METHOD) | BIT(MACRO) | BIT(LOOP)
};

/* `self` is tested, `arg` is the argument of a test that has one; `variant` of tests that share
 * their code. */
typedef tp_status (*test_fn)(tp_jinja_run *run, int variant, const tp_any *self, const tp_any *arg,
                             bool *ret);

/* `variant`: the types that it may have. */
static tp_status is_type(tp_jinja_run *run, int variant, const tp_any *self, const tp_any *arg,
                         bool *ret)
{
    (void)run, (void)arg;
    *ret = variant >> self->type & 1;
    return TP_OK;
}

static tp_status is_truth(tp_jinja_run *run, int variant, const tp_any *self, const tp_any *arg,
                          bool *ret)
{
    (void)run, (void)arg;
    *ret = self->type == TP_ANY_BOOL && self->truth == variant;
    return TP_OK;
}

static tp_status is_escaped(tp_jinja_run *run, int variant, const tp_any *self, const tp_any *arg,
                            bool *ret)
{
    (void)run, (void)variant, (void)arg;
    *ret = self->type == TP_ANY_STR && self->is_safe;
    return TP_OK;
}

static tp_status is_cased(tp_jinja_run *run, int variant, const tp_any *self, const tp_any *arg,
                          bool *ret)
{
    tp_slice s;
    (void)arg;
    TP_TRY(tp_any_to_text(run, self, &s));
    *ret = tp_jinja_is_cased(s, variant);
    return TP_OK;
}

/* self % divisor == remainder */
static tp_status has_remainder(tp_jinja_run *run, const tp_any *self, const tp_any *divisor,
                               int remainder, bool *ret)
{
    tp_any rest, wanted = tp_any_int(remainder);
    TP_TRY(tp_jinja_binary(run, TP_JINJA_OP_MOD, self, divisor, &rest));
    return tp_any_equal(run, &rest, &wanted, ret);
}

static tp_status is_odd(tp_jinja_run *run, int variant, const tp_any *self, const tp_any *arg,
                        bool *ret)
{
    const tp_any two = tp_any_int(2);
    (void)arg;
    return has_remainder(run, self, &two, variant, ret);
}

static tp_status is_divisible(tp_jinja_run *run, int variant, const tp_any *self, const tp_any *arg,
                              bool *ret)
{
    (void)variant;
    return has_remainder(run, self, arg, 0, ret);
}

static bool are_same(const tp_any *a, const tp_any *b)
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

static tp_status is_same(tp_jinja_run *run, int variant, const tp_any *self, const tp_any *arg,
                         bool *ret)
{
    (void)run, (void)variant;
    *ret = are_same(self, arg);
    return TP_OK;
}

/* `variant`: the operator. */
static tp_status compares(tp_jinja_run *run, int variant, const tp_any *self, const tp_any *arg,
                          bool *ret)
{
    tp_any result;
    TP_TRY(tp_jinja_binary(run, (tp_jinja_op)variant, self, arg, &result));
    *ret = tp_any_is_true(&result);
    return TP_OK;
}

static tp_status refuse(tp_jinja_run *run, int variant, const tp_any *self, const tp_any *arg,
                        bool *ret)
{
    (void)variant, (void)self, (void)arg, (void)ret;
    return tp_jinja_unsupported(run, "'is filter' and 'is test' are not supported");
}

static const struct {
    const char *name, *parameters;
    test_fn test;
    int variant;
} tests[] = {{"!=", "_", compares, TP_JINJA_OP_NE},
             {"<", "_", compares, TP_JINJA_OP_LT},
             {"<=", "_", compares, TP_JINJA_OP_LE},
             {"==", "_", compares, TP_JINJA_OP_EQ},
             {">", "_", compares, TP_JINJA_OP_GT},
             {">=", "_", compares, TP_JINJA_OP_GE},
             {"boolean", "", is_type, BIT(BOOL)},
             {"callable", "", is_type, CALLABLES},
             {"defined", "", is_type, ~BIT(UNDEFINED)},
             {"divisibleby", "num", is_divisible, 0},
             {"eq", "_", compares, TP_JINJA_OP_EQ},
             {"equalto", "_", compares, TP_JINJA_OP_EQ},
             {"escaped", "", is_escaped, 0},
             {"even", "", is_odd, 0},
             {"false", "", is_truth, false},
             {"filter", "", refuse, 0},
             {"float", "", is_type, BIT(FLOAT)},
             {"ge", "_", compares, TP_JINJA_OP_GE},
             {"greaterthan", "_", compares, TP_JINJA_OP_GT},
             {"gt", "_", compares, TP_JINJA_OP_GT},
             {"in", "seq", compares, TP_JINJA_OP_IN},
             {"integer", "", is_type, BIT(INT)},
             {"iterable", "", is_type, ITERABLES},
             {"le", "_", compares, TP_JINJA_OP_LE},
             {"lessthan", "_", compares, TP_JINJA_OP_LT},
             {"lower", "", is_cased, false},
             {"lt", "_", compares, TP_JINJA_OP_LT},
             {"mapping", "", is_type, BIT(DICT)},
             {"ne", "_", compares, TP_JINJA_OP_NE},
             {"none", "", is_type, BIT(NONE)},
             {"number", "", is_type, NUMBERS},
             {"odd", "", is_odd, 1},
             {"sameas", "other", is_same, 0},
             {"sequence", "", is_type, SEQUENCES},
             {"string", "", is_type, BIT(STR)},
             {"test", "", refuse, 0},
             {"true", "", is_truth, true},
             {"undefined", "", is_type, BIT(UNDEFINED)},
             {"upper", "", is_cased, true}};

static int find_test(tp_slice name)
{
    for (size_t i = 0; i < TP_COUNTOF(tests); i++)
        if (tp_slice_is(name, tests[i].name))
            return (int)i;
    return -1;
}

bool tp_jinja_has_test(tp_slice name) { return find_test(name) >= 0; }

tp_status tp_jinja_call_test(tp_jinja_run *run, tp_slice name, const tp_any *self,
                             const tp_jinja_args *args, bool *ret)
{
    int found = find_test(name);
    tp_any arg;
    TP_TRY(tp_jinja_charge(run, 1));
    if (found < 0)
        return tp_jinja_fail(run, "there is no test '%.*s'", (int)TP_MIN(name.len, 60), name.data);
    TP_TRY(tp_jinja_bind(run, tests[found].name, args, tests[found].parameters, &arg));
    return tests[found].test(run, tests[found].variant, self, &arg, ret);
}
