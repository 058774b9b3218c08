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
    const tp_any *args; /* what stands on the right */
    size_t n_used;
    tp_jinja_text out;
} percent;

typedef struct {
    bool is_left, is_zero;
    char sign;                /* '+', ' ' or 0 */
    int64_t width, precision; /* -1: none */
    char type;
} field;

static tp_status next_argument(percent *p, tp_any *ret)
{
    bool is_tuple = p->args->type == TP_ANY_TUPLE;
    size_t n = is_tuple ? p->args->items->n : 1;
    if (p->n_used == n)
        return tp_jinja_fail(p->run, "'%%': not enough arguments for the format");
    *ret = is_tuple ? p->args->items->values[p->n_used] : *p->args;
    p->n_used++;
    return TP_OK;
}

static char current(const percent *p) { return p->at < p->format.len ? p->format.data[p->at] : 0; }

/* "(key)": the argument is that item of the right side. */
static tp_status keyed_argument(percent *p, tp_any *ret)
{
    size_t begin = ++p->at;
    while (current(p) && current(p) != ')')
        p->at++;
    if (p->args->type != TP_ANY_DICT || !current(p))
        return tp_jinja_fail(p->run, "'%%': a format with (key) needs a dict");
    tp_slice key = {p->format.data + begin, p->at - begin};
    const tp_any *found = tp_any_dict_find(p->args->dict, key);
    if (!found)
        return tp_jinja_fail(p->run, "'%%': there is no key '%.*s'", (int)key.len, key.data);
    p->at++;
    *ret = *found;
    return TP_OK;
}

static tp_status read_size(percent *p, int64_t *ret)
{
    *ret = 0;
    for (; isdigit((unsigned char)current(p)); p->at++)
        *ret = TP_MIN(*ret * 10 + (current(p) - '0'), (int64_t)1 << 40);
    return *ret > TP_JINJA_MAX_WIDTH
               ? tp_jinja_fail(p->run, "'%%': a field wider than %d", TP_JINJA_MAX_WIDTH)
               : TP_OK;
}

/* `text` in its field; zeros go between the sign, which has `n_sign` bytes, and the digits. */
static tp_status put_field(percent *p, const field *f, tp_slice text, size_t n_sign)
{
    int64_t room = f->width - (int64_t)tp_utf8_count(text.data, text.len);
    const char *fill = f->is_zero && !f->is_left ? "0" : " ";
    size_t lead = *fill == '0' ? n_sign : 0;
    TP_TRY(tp_jinja_add(&p->out, text.data, lead));
    for (int64_t i = 0; i < room && !f->is_left; i++)
        TP_TRY(tp_jinja_add(&p->out, fill, 1));
    TP_TRY(tp_jinja_add(&p->out, text.data + lead, text.len - lead));
    for (int64_t i = 0; i < room && f->is_left; i++)
        TP_TRY(tp_jinja_add(&p->out, fill, 1));
    return TP_OK;
}

static tp_status put_text(percent *p, field *f, const tp_any *v)
{
    tp_jinja_text text = {.run = p->run};
    TP_TRY(f->type == 's' ? tp_any_str(&text, v) : tp_any_repr(&text, v));
    tp_slice s = tp_jinja_text_value(&text).text;
    if (f->precision >= 0)
        s.len = tp_utf8_offset(s.data, s.len, (size_t)f->precision);
    f->is_zero = false;
    return put_field(p, f, s, 0);
}

static tp_status put_number(percent *p, const field *f, const tp_any *v)
{
    enum { MOST_DIGITS = 320 };
    char text[MOST_DIGITS + MOST_PRECISION + 2];
    tp_integer integer = 0;
    double real = 0;
    bool is_whole = strchr("diu", f->type) != NULL;
    if (!tp_any_as_float(v, &real))
        return tp_jinja_fail(p->run, "'%%%c' needs a number, not '%s'", f->type,
                             tp_any_type_name(v));
    bool is_finite = isfinite(real) && (!is_whole || fabs(real) < 9e18);
    if (!is_finite || f->precision > MOST_PRECISION || (is_whole && f->precision >= 0))
        return tp_jinja_unsupported(p->run,
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
    return put_field(p, f, (tp_slice){text, strlen(digits) + n_sign}, n_sign);
}

/* One "%...", the '%' being behind us. */
static tp_status percent_field(percent *p)
{
    field f = {.precision = -1};
    tp_any v = {0};
    bool has_key = current(p) == '(';
    if (has_key)
        TP_TRY(keyed_argument(p, &v));
    for (; current(p) && strchr("0- +", current(p)); p->at++) {
        char c = current(p);
        f.is_zero |= c == '0';
        f.is_left |= c == '-';
        f.sign = c == '+' || (c == ' ' && !f.sign) ? c : f.sign;
    }
    TP_TRY(read_size(p, &f.width));
    if (current(p) == '.') {
        p->at++;
        TP_TRY(read_size(p, &f.precision));
    }
    p->at += current(p) && strchr("hlL", current(p));
    f.type = current(p);
    if (!f.type)
        return tp_jinja_fail(p->run, "'%%': the format ends within a field");
    p->at++;
    if (f.type == '%')
        return tp_jinja_adds(&p->out, "%");
    if (strchr("#*caxXoEG", f.type))
        return tp_jinja_unsupported(p->run, "'%%' with '%c' is not supported", f.type);
    if (!strchr("srdiuefFg", f.type))
        return tp_jinja_fail(p->run, "'%%': there is no format character '%c'", f.type);
    if (!has_key)
        TP_TRY(next_argument(p, &v));
    return f.type == 's' || f.type == 'r' ? put_text(p, &f, &v) : put_number(p, &f, &v);
}

tp_status tp_jinja_percent(tp_jinja_run *run, tp_slice format, const tp_any *args, tp_any *ret)
{
    percent p = {.run = run, .format = format, .args = args, .out = {.run = run}};
    while (p.at < format.len) {
        const char *found = memchr(format.data + p.at, '%', format.len - p.at);
        size_t end = found ? (size_t)(found - format.data) : format.len;
        TP_TRY(tp_jinja_add(&p.out, format.data + p.at, end - p.at));
        p.at = end;
        if (found) {
            p.at++;
            TP_TRY(percent_field(&p));
        }
    }
    bool may_remain = args->type == TP_ANY_DICT || args->type == TP_ANY_LIST ||
                      args->type == TP_ANY_RANGE || args->type == TP_ANY_UNDEFINED;
    size_t n = args->type == TP_ANY_TUPLE ? args->items->n : 1;
    if (p.n_used < n && !may_remain)
        return tp_jinja_fail(run, "'%%': not all arguments are used by the format");
    *ret = tp_jinja_text_value(&p.out);
    return TP_OK;
}

/* --- format() --- */

typedef struct {
    tp_jinja_run *run;
    const tp_jinja_args *args;
    size_t n_auto;
    bool is_auto, is_numbered;
} formatter;

static tp_status no_argument(const formatter *f, tp_slice name)
{
    return tp_jinja_fail(f->run, "format(): there is no argument '%.*s'", (int)TP_MIN(name.len, 60),
                         name.data);
}

/* "" counts up, digits are a position, anything else a name. */
static tp_status find_argument(formatter *f, tp_slice name, tp_any *ret)
{
    size_t index = 0, n_digits = 0;
    for (; n_digits < name.len && isdigit((unsigned char)name.data[n_digits]); n_digits++)
        index = TP_MIN(index * 10 + (size_t)(name.data[n_digits] - '0'), (size_t)1 << 40);
    if (n_digits == name.len) {
        f->is_auto |= name.len == 0;
        f->is_numbered |= name.len != 0;
        if (f->is_auto && f->is_numbered)
            return tp_jinja_fail(f->run, "format(): numbered and unnumbered fields are mixed");
        index = name.len ? index : f->n_auto++;
        if (index >= f->args->n)
            return no_argument(f, name);
        *ret = f->args->values[index];
        return TP_OK;
    }
    for (size_t i = 0; i < f->args->n_named; i++)
        if (tp_slice_eq(f->args->names[i], name)) {
            *ret = f->args->named[i];
            return TP_OK;
        }
    return no_argument(f, name);
}

/* "name.attr[item]" */
static tp_status find_field(formatter *f, tp_slice text, tp_any *ret)
{
    size_t at = 0;
    while (at < text.len && text.data[at] != '.' && text.data[at] != '[')
        at++;
    TP_TRY(find_argument(f, (tp_slice){text.data, at}, ret));
    while (at < text.len) {
        bool is_attr = text.data[at] == '.';
        size_t begin = ++at;
        while (at < text.len &&
               (is_attr ? text.data[at] != '.' && text.data[at] != '[' : text.data[at] != ']'))
            at++;
        tp_slice name = {text.data + begin, at - begin};
        if (name.len == 0 || (!is_attr && at == text.len))
            return tp_jinja_fail(f->run, "format(): a field that is not complete");
        tp_any object = *ret, key = tp_any_text(name.data, name.len);
        tp_integer index = 0;
        bool overflow = false;
        if (is_attr) {
            TP_TRY(tp_jinja_get_attr(f->run, &object, name, ret));
            continue;
        }
        if (isdigit((unsigned char)name.data[0]) &&
            tp_python_parse_integer(name.data, name.len, 10, &index, &overflow) && !overflow)
            key = tp_any_int(index);
        TP_TRY(tp_jinja_get_item(f->run, &object, &key, ret));
        at++;
    }
    return TP_OK;
}

/* What stands between the braces. */
static tp_status replace_field(formatter *f, tp_slice text, tp_jinja_text *out)
{
    const char *bang = text.len ? memrchr(text.data, '!', text.len) : NULL;
    if (text.len && memchr(text.data, ':', text.len))
        return tp_jinja_unsupported(f->run,
                                    "format(): '{%.*s}': a format behind ':' is not "
                                    "supported",
                                    (int)TP_MIN(text.len, 60), text.data);
    size_t n = bang ? (size_t)(bang - text.data) : text.len;
    char conversion = bang && text.len == n + 2 ? bang[1] : 0;
    if (bang && conversion != 'r' && conversion != 's')
        return tp_jinja_fail(f->run, "format(): only !r and !s are conversions");
    tp_any v;
    TP_TRY(find_field(f, (tp_slice){text.data, n}, &v));
    return conversion == 'r' ? tp_any_repr(out, &v) : tp_any_str(out, &v);
}

tp_status tp_jinja_str_format(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    formatter f = {.run = run, .args = c->args};
    tp_jinja_text out = {.run = run};
    tp_slice format = c->self->text;
    for (size_t at = 0; at < format.len; at++) {
        char brace = format.data[at];
        if (brace != '{' && brace != '}') {
            TP_TRY(tp_jinja_add(&out, &brace, 1));
            continue;
        }
        if (at + 1 < format.len && format.data[at + 1] == brace) {
            TP_TRY(tp_jinja_add(&out, &brace, 1));
            at++;
            continue;
        }
        size_t begin = at + 1;
        while (brace == '{' && ++at < format.len && format.data[at] != '}')
            ;
        if (brace == '}' || at == format.len)
            return tp_jinja_fail(run, "format(): a single '%c' in the format", brace);
        TP_TRY(tp_jinja_charge(run, 1));
        TP_TRY(replace_field(&f, (tp_slice){format.data + begin, at - begin}, &out));
    }
    *ret = tp_jinja_text_value(&out);
    return TP_OK;
}
