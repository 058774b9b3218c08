/* jinja_filters.c - the register of filters, and those that make text and numbers. */
#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_str.h"

/* --- text --- */

static tp_any f_case(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    return tp_jinja_change_case(run, (tp_python_case)c->variant, tp_any_to_text(run, c->self));
}

static bool is_word_gap(tp_slice s, size_t at)
{
    return (s.data[at] && strchr("-({[<", s.data[at])) ||
           tp_python_is_space(tp_python_next(s, &at));
}

/* Words begin after white space and any of - ( { [ <; unlike str.title(), not after
 * every character that is no letter. */
static tp_any f_title(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_slice s = tp_any_to_text(run, c->self);
    tp_jinja_text out = {.run = run};
    for (size_t at = 0; at < s.len;) {
        size_t first = at, rest = at;
        tp_python_next(s, &rest);
        bool gap = is_word_gap(s, first);
        for (at = rest; at < s.len && is_word_gap(s, at) == gap;)
            tp_python_next(s, &at);
        tp_slice head = {s.data + first, rest - first}, tail = {s.data + rest, at - rest};
        tp_jinja_add_slice(&out, tp_jinja_change_case(run, TP_CASE_UPPER, head).text);
        tp_jinja_add_slice(&out, tp_jinja_change_case(run, TP_CASE_LOWER, tail).text);
    }
    return tp_jinja_text_value(&out);
}

static tp_any f_trim(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    const tp_slice *set = c->arg[0].type == TP_ANY_STR ? &c->arg[0].text : NULL;
    return tp_any_text(tp_python_strip(tp_any_to_text(run, c->self), set, true, true));
}

static tp_any f_replace(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    return tp_jinja_replace(run, tp_any_to_text(run, c->self), tp_any_to_text(run, c->arg[0]),
                            tp_any_to_text(run, c->arg[1]), tp_jinja_int_arg(c->arg[2], -1));
}

/* `variant`: whether the text is safe from then on. */
static tp_any f_string(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_any text = c->self.type == TP_ANY_STR ? c->self : tp_any_text(tp_any_to_text(run, c->self));
    text.is_safe |= c->variant;
    return text;
}

static tp_any f_escape(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    if (c->self.type == TP_ANY_STR && c->self.is_safe)
        return c->self;
    return tp_jinja_escape_html(run, tp_any_to_text(run, c->self));
}

/* What an argument `indent` puts in front of a line: the text, or so many spaces. */
static tp_slice indentation(tp_jinja_run *run, const char *what, tp_any v, tp_integer absent)
{
    tp_jinja_text spaces = {.run = run};
    tp_jinja_want_defined(run, v);
    if (v.type == TP_ANY_STR)
        return v.text;
    if (!tp_any_as_int(v, &absent) && v.type != TP_ANY_MISSING)
        tp_jinja_fail(run, "%s: an integer is needed, not '%s'", what, tp_any_type_name(v));
    tp_jinja_add_times(&spaces, TP_SLICE(" "),
                       (int64_t)TP_MIN(TP_MAX(absent, 0), (tp_integer)INT32_MAX));
    return tp_jinja_text_value(&spaces).text;
}

/* The text before the first line, between lines, and before each line. */
static tp_any f_indent(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    bool first = tp_any_is_true(c->arg[1]), blank = tp_any_is_true(c->arg[2]);
    tp_jinja_text out = {.run = run}, source = {.run = run};
    tp_slice indent = indentation(run, "indent: width", c->arg[0], 4);
    /* A line more, so that a text that ends in a newline has an empty last line. */
    tp_jinja_add_slice(&source, tp_jinja_want_text(run, c->what, c->self));
    tp_jinja_adds(&source, "\n");
    tp_any lines = tp_jinja_splitlines(run, tp_jinja_text_value(&source).text, false);
    for (size_t i = 0; i < lines.items->n; i++) {
        tp_slice line = lines.items->values[i].text;
        tp_jinja_adds(&out, i ? "\n" : "");
        if (i == 0 ? first : blank || line.len)
            tp_jinja_add_slice(&out, indent);
        tp_jinja_add_slice(&out, line);
    }
    return tp_jinja_text_value(&out);
}

static tp_any f_join(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_jinja_text text = {.run = run};
    tp_any list = c->self;
    tp_slice between = TP_SLICE("");
    bool first = true;
    if (c->arg[0].type != TP_ANY_MISSING)
        between = tp_any_to_text(run, c->arg[0]);
    if (tp_any_is_given(c->arg[1])) {
        tp_jinja_args by = {0};
        tp_any_dict_put(run, &by.named, tp_any_text(TP_SLICE("attribute")), c->arg[1]);
        (void)tp_any_walk_begin(run, list); /* of what is false map() makes an empty list */
        list = tp_jinja_call_filter(run, TP_SLICE("map"), list, &by);
    }
    tp_any_walk walk = tp_any_walk_begin(run, list);
    for (tp_any element; tp_any_walk_next(run, &walk, &element); first = false) {
        if (!first)
            tp_jinja_add_slice(&text, between);
        tp_any_str(&text, element);
    }
    return tp_jinja_text_value(&text);
}

static tp_any f_tojson(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_jinja_text text = {.run = run};
    tp_jinja_json_options options = {
        .ensure_ascii = tp_any_is_true(c->arg[0]),
        .sort_keys = tp_any_is_true(c->arg[3]),
        .has_indent = tp_any_is_given(c->arg[1]),
        .item_separator = tp_any_is_given(c->arg[1]) ? TP_SLICE(",") : TP_SLICE(", "),
        .key_separator = TP_SLICE(": "),
    };
    if (options.has_indent)
        options.indent = indentation(run, "tojson: indent", c->arg[1], 0);
    if (tp_any_is_given(c->arg[2])) {
        tp_any item = tp_jinja_get_item(run, c->arg[2], tp_any_int(0));
        tp_any key = tp_jinja_get_item(run, c->arg[2], tp_any_int(1));
        options.item_separator = tp_jinja_want_text(run, "tojson: separators", item);
        options.key_separator = tp_jinja_want_text(run, "tojson: separators", key);
    }
    tp_jinja_json(&text, c->self, &options);
    return tp_jinja_text_value(&text);
}

/* --- numbers --- */

static tp_any f_abs(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    double real = 0;
    if (!tp_any_as_float(c->self, &real))
        tp_jinja_fail(run, "abs needs a number, not '%s'", tp_any_type_name(c->self));
    if (c->self.type == TP_ANY_FLOAT)
        return tp_any_float(fabs(real));
    return tp_jinja_signed(run, c->self, real < 0);
}

/* int(float): towards zero. */
static bool truncate(double real, tp_integer *ret)
{
    if (!isfinite(real) || fabs(real) > 1.7e38)
        return false;
    *ret = (tp_integer)real;
    return true;
}

static tp_any f_int(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_integer integer = 0;
    double real = 0;
    int64_t base = tp_jinja_int_arg(c->arg[1], 10);
    bool overflow = false, ok = tp_any_as_int(c->self, &integer);
    tp_jinja_want_defined(run, c->self);
    if (c->self.type == TP_ANY_STR) {
        if (base >= 0 && base <= 36 && base != 1)
            ok = tp_python_parse_integer(c->self.text, (int)base, &integer, &overflow);
        if (!ok)
            ok = tp_python_parse_float(c->self.text, &real) && truncate(real, &integer);
    } else if (c->self.type == TP_ANY_FLOAT) {
        ok = truncate(c->self.real, &integer);
        if (isinf(c->self.real)) /* Python's OverflowError, which the filter lets through */
            tp_jinja_fail(run, "int: infinity is no integer");
    }
    if (overflow)
        tp_jinja_unsupported(run, "an integer beyond 127 bits is not supported");
    return ok ? tp_any_int(integer) : c->arg[0].type == TP_ANY_MISSING ? tp_any_int(0) : c->arg[0];
}

static tp_any f_float(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    double real = 0;
    tp_jinja_want_defined(run, c->self);
    bool ok = c->self.type == TP_ANY_STR ? tp_python_parse_float(c->self.text, &real)
                                         : tp_any_as_float(c->self, &real);
    return ok ? tp_any_float(real) : c->arg[0].type == TP_ANY_MISSING ? tp_any_float(0) : c->arg[0];
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

static tp_any f_round(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    int64_t precision = tp_jinja_int_arg(c->arg[0], 0);
    tp_slice name = tp_jinja_text_arg(c->arg[1], TP_SLICE("common"));
    enum { COMMON, CEIL, FLOOR };
    int method = tp_python_word("common ceil floor", name);
    tp_integer integer = 0;
    double real = 0;
    if (method < 0)
        tp_jinja_fail(run, "round: the method must be common, ceil or floor");
    tp_jinja_want_defined(run, c->self);
    if (!tp_any_as_float(c->self, &real))
        tp_jinja_fail(run, "round needs a number, not '%s'", tp_any_type_name(c->self));
    if (method != COMMON) {
        double scale = pow(10, (double)precision), scaled = real * scale;
        if (!isfinite(scaled) || scale == 0)
            tp_jinja_fail(run, "round: the number is too large");
        return tp_any_float((method == CEIL ? ceil(scaled) : floor(scaled)) / scale);
    }
    if (!tp_any_as_int(c->self, &integer))
        return tp_any_float(round_float(real, precision));
    return tp_any_int(precision < 0 ? round_integer(integer, precision) : integer);
}

static tp_any f_length(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    return tp_any_int((tp_integer)tp_any_length(run, c->self));
}

/* --- the register --- */

static const tp_jinja_function filters[] = {
    {"abs", f_abs, "", 0},
    {"capitalize", f_case, "", TP_CASE_CAPITAL},
    {"escape e", f_escape, "", 0},
    {"float", f_float, "[default]", 0},
    {"indent", f_indent, "[width first blank]", 0},
    {"int", f_int, "[default base:i]", 0},
    {"join", f_join, "[d attribute]", 0},
    {"length count", f_length, "", 0},
    {"lower", f_case, "", TP_CASE_LOWER},
    {"replace", f_replace, "old new [count:i?]", 0},
    {"round", f_round, "[precision:i method:s]", 0},
    {"safe", f_string, NULL, true},
    {"string", f_string, "", false},
    {"title", f_title, "", 0},
    {"tojson", f_tojson, "[ensure_ascii indent separators sort_keys]", 0},
    {"trim", f_trim, "[chars:s?]", 0},
    {"upper", f_case, "", TP_CASE_UPPER},
    {"batch center filesizeformat forceescape format groupby pprint random slice striptags "
     "truncate urlencode urlize wordcount wordwrap xmlattr",
     NULL, NULL, 0},
    {0}};

static const tp_jinja_function *find_filter(tp_slice name)
{
    const tp_jinja_function *found = tp_jinja_find_function(filters, name);
    return found ? found : tp_jinja_find_function(tp_jinja_list_filters, name);
}

bool tp_jinja_has_filter(tp_slice name) { return find_filter(name) != NULL; }

/* In jinja2 some are generators: what goes wrong in them is seen when they are used. */
static tp_any call_lazily(tp_jinja_run *run, const tp_jinja_function *filter, tp_any self,
                          const tp_jinja_args *args)
{
    jmp_buf here, *outer = run->failed;
    const size_t depth = run->depth;
    tp_jinja_scope *const scope = run->scope;
    tp_jinja_text *const out = run->out;
    if (setjmp(here) == 0) {
        run->failed = &here;
        tp_any result = tp_jinja_call_function(run, filter, self, args);
        run->failed = outer;
        return result;
    }
    run->failed = outer;
    if (run->is_exhausted || run->failure.status == TP_ERR_UNSUPPORTED)
        longjmp(*outer, 1);
    run->depth = depth;
    run->scope = scope;
    run->out = out;
    tp_error *failure = tp_jinja_take(run, 1, sizeof *failure);
    *failure = run->failure;
    tp_any iterator = tp_any_new_iterator(run, NULL);
    iterator.iterator->failure = failure;
    return iterator;
}

tp_any tp_jinja_call_filter(tp_jinja_run *run, tp_slice name, tp_any self,
                            const tp_jinja_args *args)
{
    static const char lazy[] = "items map reject rejectattr select selectattr unique";
    const tp_jinja_function *filter = find_filter(name);
    if (!filter)
        tp_jinja_fail(run, "there is no filter '%.*s'", (int)TP_MIN(name.len, 60), name.data);
    if (!filter->call)
        tp_jinja_unsupported(run, "filter '%.*s' is not supported", (int)name.len, name.data);
    tp_jinja_enter(run);
    tp_jinja_charge(run, 1);
    tp_any result = tp_python_word(lazy, name) >= 0
                        ? call_lazily(run, filter, self, args)
                        : tp_jinja_call_function(run, filter, self, args);
    run->depth--;
    return result;
}
