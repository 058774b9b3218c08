/* jinja_format.c - the "%" operator on strings and str.format(), as far as templates use them.
 *
 * "%": s and r, d, i and u, e, f, F and g, with "(key)", the flags - 0 + and blank, a width and a
 * precision.  format(): "{}", "{0}", "{name}", what is reached from there by ".attr" and "[item]",
 * and "!r" and "!s".  What Python has beyond that is refused by name. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_str.h"

/* --- "%" --- */

enum { MOST_PRECISION = 300 };

typedef struct {
    tp_jinja_run *run;
    tp_slice format;
    size_t at;
    tp_any args; /* what stands on the right */
    size_t n_used;
    tp_jinja_text out;
} percent;

typedef struct {
    bool is_left, is_zero;
    char sign;                /* '+', ' ' or 0 */
    int64_t width, precision; /* -1: none */
    char type;
} field;

static tp_any next_argument(percent *p)
{
    bool is_tuple = p->args.type == TP_ANY_TUPLE;
    size_t n = is_tuple ? p->args.items->n : 1;
    if (p->n_used == n)
        tp_jinja_fail(p->run, "'%%': not enough arguments for the format");
    p->n_used++;
    return is_tuple ? p->args.items->values[p->n_used - 1] : p->args;
}

static char current(const percent *p) { return p->at < p->format.len ? p->format.data[p->at] : 0; }

/* "(key)": the argument is that item of the right side. */
static tp_any keyed_argument(percent *p)
{
    size_t begin = ++p->at;
    while (current(p) && current(p) != ')')
        p->at++;
    if (p->args.type != TP_ANY_DICT || !current(p))
        tp_jinja_fail(p->run, "'%%': a format with (key) needs a dict");
    tp_slice key = {p->format.data + begin, p->at - begin};
    const tp_any *found = tp_any_dict_get(p->run, p->args.dict, tp_any_text(key));
    if (!found)
        tp_jinja_fail(p->run, "'%%': there is no key '%.*s'", (int)key.len, key.data);
    p->at++;
    return *found;
}

static int64_t read_size(percent *p)
{
    int64_t size = 0;
    for (; isdigit((unsigned char)current(p)); p->at++)
        size = TP_MIN(size * 10 + (current(p) - '0'), (int64_t)1 << 40);
    if (size > TP_JINJA_MAX_WIDTH)
        tp_jinja_fail(p->run, "'%%': a field wider than %d", TP_JINJA_MAX_WIDTH);
    return size;
}

/* `text` in its field; zeros go between the sign, which has `n_sign` bytes, and the digits. */
static void put_field(percent *p, const field *f, tp_slice text, size_t n_sign)
{
    int64_t room = f->width - (int64_t)tp_python_count(text);
    bool is_zero = f->is_zero && !f->is_left;
    size_t lead = is_zero ? n_sign : 0;
    tp_jinja_add(&p->out, text.data, lead);
    tp_jinja_add_times(&p->out, is_zero ? TP_SLICE("0") : TP_SLICE(" "), f->is_left ? 0 : room);
    tp_jinja_add_slice(&p->out, tp_python_from(text, lead));
    tp_jinja_add_times(&p->out, TP_SLICE(" "), f->is_left ? room : 0);
}

static void put_text(percent *p, field *f, tp_any v)
{
    tp_jinja_text text = {.run = p->run};
    if (f->type == 's')
        tp_any_str(&text, v);
    else
        tp_any_repr(&text, v);
    tp_slice s = tp_jinja_text_value(&text).text;
    if (f->precision >= 0)
        s.len = tp_python_offset(s, (size_t)f->precision);
    f->is_zero = false;
    put_field(p, f, s, 0);
}

static void put_number(percent *p, const field *f, tp_any v)
{
    enum { MOST_DIGITS = 320 };
    char text[MOST_DIGITS + MOST_PRECISION + 2];
    tp_integer integer = 0;
    double real = 0;
    bool is_whole = strchr("diu", f->type) != NULL;
    if (!tp_any_as_float(v, &real))
        tp_jinja_fail(p->run, "'%%%c' needs a number, not '%s'", f->type, tp_any_type_name(v));
    bool is_finite = isfinite(real) && (!is_whole || fabs(real) < 9e18);
    if (!is_finite || f->precision > MOST_PRECISION || (is_whole && f->precision >= 0))
        tp_jinja_unsupported(p->run,
                             "'%%%c' of so large a number, and a precision of "
                             "integers or above %d, are not supported",
                             f->type, MOST_PRECISION);
    if (!tp_any_as_int(v, &integer))
        integer = (tp_integer)real;
    bool is_negative = is_whole ? integer < 0 : signbit(real) != 0;
    size_t n_sign = is_negative || f->sign, room = sizeof text - 1;
    int precision = f->precision < 0 ? 6 : (int)f->precision;
    text[0] = is_negative ? '-' : f->sign;
    char *digits = text + n_sign;
    if (is_whole)
        snprintf(digits, room, "%lld", llabs((long long)integer));
    else
        snprintf(digits, room,
                 f->type == 'e'   ? "%.*e"
                 : f->type == 'g' ? "%.*g"
                                  : "%.*f",
                 precision, fabs(real));
    put_field(p, f, (tp_slice){text, strlen(digits) + n_sign}, n_sign);
}

/* One "%...", the '%' being behind us. */
static void percent_field(percent *p)
{
    field f = {.precision = -1};
    bool has_key = current(p) == '(';
    tp_any v = has_key ? keyed_argument(p) : (tp_any){0};
    for (; current(p) && strchr("0- +", current(p)); p->at++) {
        char c = current(p);
        f.is_zero |= c == '0';
        f.is_left |= c == '-';
        f.sign = c == '+' || (c == ' ' && !f.sign) ? c : f.sign;
    }
    f.width = read_size(p);
    if (current(p) == '.') {
        p->at++;
        f.precision = read_size(p);
    }
    p->at += current(p) && strchr("hlL", current(p));
    f.type = current(p);
    if (!f.type)
        tp_jinja_fail(p->run, "'%%': the format ends within a field");
    p->at++;
    if (f.type == '%') {
        tp_jinja_adds(&p->out, "%");
        return;
    }
    if (strchr("#*caxXoEG", f.type))
        tp_jinja_unsupported(p->run, "'%%' with '%c' is not supported", f.type);
    if (!strchr("srdiuefFg", f.type))
        tp_jinja_fail(p->run, "'%%': there is no format character '%c'", f.type);
    if (!has_key)
        v = next_argument(p);
    if (f.type == 's' || f.type == 'r')
        put_text(p, &f, v);
    else
        put_number(p, &f, v);
}

tp_any tp_jinja_percent(tp_jinja_run *run, tp_slice format, tp_any args)
{
    percent p = {.run = run, .format = format, .args = args, .out = {.run = run}};
    while (p.at < format.len) {
        const char *found = memchr(format.data + p.at, '%', format.len - p.at);
        size_t end = found ? (size_t)(found - format.data) : format.len;
        tp_jinja_add(&p.out, format.data + p.at, end - p.at);
        p.at = end;
        if (found) {
            p.at++;
            percent_field(&p);
        }
    }
    bool may_remain = args.type == TP_ANY_DICT || args.type == TP_ANY_LIST ||
                      args.type == TP_ANY_RANGE || args.type == TP_ANY_UNDEFINED;
    size_t n = args.type == TP_ANY_TUPLE ? args.items->n : 1;
    if (p.n_used < n && !may_remain)
        tp_jinja_fail(run, "'%%': not all arguments are used by the format");
    return tp_jinja_text_value(&p.out);
}

/* --- format() --- */

typedef struct {
    tp_jinja_run *run;
    const tp_jinja_args *args;
    size_t n_auto;
    bool is_numbered;
} formatter;

/* "" counts up, digits are a position, anything else a name. */
static tp_any find_argument(formatter *f, tp_slice name)
{
    const struct tp_any_items *values = &f->args->values;
    tp_integer index = 0;
    tp_any found;
    if (name.len && !tp_python_parse_index(name, &index)) {
        found = tp_jinja_keyword(f->run, f->args, name);
    } else {
        f->is_numbered |= name.len != 0;
        index = name.len ? index : (tp_integer)f->n_auto++;
        if (f->n_auto && f->is_numbered)
            tp_jinja_fail(f->run, "format(): numbered and unnumbered fields are mixed");
        found = index < (tp_integer)values->n ? values->values[index] : (tp_any){0};
    }
    if (found.type == TP_ANY_MISSING)
        tp_jinja_fail(f->run, "format(): there is no argument '%.*s'", (int)TP_MIN(name.len, 60),
                      name.data);
    return found;
}

/* "name.attr[item]" */
static tp_any find_field(formatter *f, tp_slice text)
{
    size_t at = 0;
    while (at < text.len && text.data[at] != '.' && text.data[at] != '[')
        at++;
    tp_any v = find_argument(f, (tp_slice){text.data, at});
    while (at < text.len) {
        bool is_attr = text.data[at] == '.';
        size_t begin = ++at;
        while (at < text.len &&
               (is_attr ? text.data[at] != '.' && text.data[at] != '[' : text.data[at] != ']'))
            at++;
        tp_slice name = {text.data + begin, at - begin};
        tp_integer index = 0;
        if (name.len == 0 || (!is_attr && at == text.len))
            tp_jinja_fail(f->run, "format(): a field that is not complete");
        if (is_attr)
            v = tp_jinja_get_attr(f->run, v, name);
        else
            v = tp_jinja_get_item(f->run, v,
                                  tp_python_parse_index(name, &index) ? tp_any_int(index)
                                                                      : tp_any_text(name));
        at += !is_attr;
    }
    return v;
}

/* What stands between the braces. */
static void replace_field(formatter *f, tp_slice text, tp_jinja_text *out)
{
    const char *bang = text.len ? memrchr(text.data, '!', text.len) : NULL;
    if (text.len && memchr(text.data, ':', text.len))
        tp_jinja_unsupported(f->run,
                             "format(): '{%.*s}': a format behind ':' is not "
                             "supported",
                             (int)TP_MIN(text.len, 60), text.data);
    size_t n = bang ? (size_t)(bang - text.data) : text.len;
    char conversion = bang && text.len == n + 2 ? bang[1] : 0;
    if (bang && conversion != 'r' && conversion != 's')
        tp_jinja_fail(f->run, "format(): only !r and !s are conversions");
    tp_any v = find_field(f, (tp_slice){text.data, n});
    if (conversion == 'r')
        tp_any_repr(out, v);
    else
        tp_any_str(out, v);
}

tp_any tp_jinja_str_format(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    formatter f = {.run = run, .args = c->args};
    tp_jinja_text out = {.run = run};
    tp_slice format = c->self.text;
    for (size_t at = 0; at < format.len; at++) {
        char brace = format.data[at];
        bool is_brace = brace == '{' || brace == '}';
        if (!is_brace || (at + 1 < format.len && format.data[at + 1] == brace)) {
            tp_jinja_add(&out, &brace, 1);
            at += is_brace;
            continue;
        }
        size_t begin = at + 1;
        while (brace == '{' && ++at < format.len && format.data[at] != '}')
            ;
        if (brace == '}' || at == format.len)
            tp_jinja_fail(run, "format(): a single '%c' in the format", brace);
        tp_jinja_charge(run, 1);
        replace_field(&f, (tp_slice){format.data + begin, at - begin}, &out);
    }
    return tp_jinja_text_value(&out);
}
