/* jinja_tests.c - what may follow "is". */
#include "base/platform.h"
#include "text/template/jinja_run.h"

#define BIT(type) (1 << TP_ANY_##type)

enum {
    NUMBERS = BIT(BOOL) | BIT(INT) | BIT(FLOAT),
    /* A strict undefined value has all of Python's special methods, which fail. */
    SEQUENCES = BIT(UNDEFINED) | BIT(STR) | BIT(LIST) | BIT(TUPLE) | BIT(DICT) | BIT(RANGE),
    ITERABLES = SEQUENCES | BIT(VIEW) | BIT(ITERATOR),
    CALLABLES = BIT(UNDEFINED) | BIT(FUNCTION) | BIT(METHOD) | BIT(MACRO) | BIT(LOOP)
};

/* `variant`: the types that it may have. */
static tp_any is_type(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    (void)run;
    return tp_any_bool(c->variant >> c->self.type & 1);
}

static tp_any is_truth(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    (void)run;
    return tp_any_bool(c->self.type == TP_ANY_BOOL && c->self.truth == c->variant);
}

static tp_any is_escaped(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    (void)run;
    return tp_any_bool(c->self.type == TP_ANY_STR && c->self.is_safe);
}

static tp_any is_cased(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    return tp_any_bool(tp_python_is_cased(tp_any_to_text(run, c->self), c->variant));
}

/* self % divisor == remainder, which is the variant; 2 divides where there is no argument. */
static tp_any has_remainder(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_any divisor = c->arg[0].type == TP_ANY_MISSING ? tp_any_int(2) : c->arg[0];
    tp_any rest = tp_jinja_binary(run, TP_JINJA_OP_MOD, c->self, divisor);
    return tp_any_bool(tp_any_equal(run, rest, tp_any_int(c->variant)));
}

/* The same object: of values that have no identity here, an equal one of the same type. */
static tp_any is_same(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_any a = c->self, b = c->arg[0];
    bool same = a.type == b.type;
    if (same && a.type >= TP_ANY_NONE && a.type <= TP_ANY_STR)
        same = tp_any_equal(run, a, b);
    else if (same)
        same = a.items == b.items;
    return tp_any_bool(same);
}

/* `variant`: the operator. */
static tp_any compares(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    return tp_jinja_binary(run, (tp_jinja_op)c->variant, c->self, c->arg[0]);
}

static tp_any refuse(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    (void)c;
    tp_jinja_unsupported(run, "'is filter' and 'is test' are not supported");
}

static const tp_jinja_function tests[] = {{"boolean", is_type, "", BIT(BOOL)},
                                          {"callable", is_type, "", CALLABLES},
                                          {"defined", is_type, "", ~BIT(UNDEFINED)},
                                          {"divisibleby", has_remainder, "num", 0},
                                          {"eq equalto ==", compares, "_", TP_JINJA_OP_EQ},
                                          {"escaped", is_escaped, "", 0},
                                          {"even", has_remainder, "", 0},
                                          {"false", is_truth, "", false},
                                          {"filter test", refuse, "", 0},
                                          {"float", is_type, "", BIT(FLOAT)},
                                          {"ge >=", compares, "_", TP_JINJA_OP_GE},
                                          {"gt greaterthan >", compares, "_", TP_JINJA_OP_GT},
                                          {"in", compares, "seq", TP_JINJA_OP_IN},
                                          {"integer", is_type, "", BIT(INT)},
                                          {"iterable", is_type, "", ITERABLES},
                                          {"le <=", compares, "_", TP_JINJA_OP_LE},
                                          {"lower", is_cased, "", false},
                                          {"lt lessthan <", compares, "_", TP_JINJA_OP_LT},
                                          {"mapping", is_type, "", BIT(DICT)},
                                          {"ne !=", compares, "_", TP_JINJA_OP_NE},
                                          {"none", is_type, "", BIT(NONE)},
                                          {"number", is_type, "", NUMBERS},
                                          {"odd", has_remainder, "", 1},
                                          {"sameas", is_same, "other", 0},
                                          {"sequence", is_type, "", SEQUENCES},
                                          {"string", is_type, "", BIT(STR)},
                                          {"true", is_truth, "", true},
                                          {"undefined", is_type, "", BIT(UNDEFINED)},
                                          {"upper", is_cased, "", true},
                                          {0}};

bool tp_jinja_has_test(tp_slice name) { return tp_jinja_find_function(tests, name) != NULL; }

bool tp_jinja_call_test(tp_jinja_run *run, tp_slice name, tp_any self, const tp_jinja_args *args)
{
    const tp_jinja_function *test = tp_jinja_find_function(tests, name);
    tp_jinja_charge(run, 1);
    if (!test)
        tp_jinja_fail(run, "there is no test '%.*s'", (int)TP_MIN(name.len, 60), name.data);
    return tp_jinja_call_function(run, test, self, args).truth;
}
