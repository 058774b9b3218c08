/* jinja_str_format.c - str.format(): "{}", "{0.a[b]!r:>{width}}". */
#include <ctype.h>
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_format.h"
#include "text/template/python_text.h"

typedef struct {
    tp_jinja_run *run;
    const tp_jinja_args *args;
    size_t n_auto;
    bool is_auto, is_numbered;
} formatter;

static tp_status expand(formatter *f, tp_slice format, int depth, tp_jinja_text *out);

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
static tp_status find_field(formatter *f, tp_slice field, tp_any *ret)
{
    size_t at = 0;
    while (at < field.len && field.data[at] != '.' && field.data[at] != '[')
        at++;
    TP_TRY(find_argument(f, (tp_slice){field.data, at}, ret));
    while (at < field.len) {
        bool is_attr = field.data[at] == '.';
        size_t begin = ++at;
        while (at < field.len &&
               (is_attr ? field.data[at] != '.' && field.data[at] != '[' : field.data[at] != ']'))
            at++;
        tp_slice name = {field.data + begin, at - begin};
        if (name.len == 0 || (!is_attr && at == field.len))
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

static bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

static size_t read_number(tp_slice s, size_t at, int64_t *ret)
{
    size_t begin = at;
    int64_t value = 0;
    for (; at < s.len && isdigit((unsigned char)s.data[at]); at++)
        value = TP_MIN(value * 10 + (s.data[at] - '0'), (int64_t)1 << 40);
    if (at > begin)
        *ret = value;
    return at;
}

/* [[fill]align][sign][#][0][width][grouping][.precision][type] */
static tp_status parse_spec(const formatter *f, tp_slice s, tp_jinja_spec *spec)
{
    *spec = (tp_jinja_spec){.width = -1, .precision = -1};
    size_t at = 0, first = s.len ? tp_utf8_length(s.data, s.len) : 0;
    if (first < s.len && is_align(s.data[first])) {
        memcpy(spec->fill, s.data, first);
        spec->fill_len = first;
        spec->align = s.data[first];
        at = first + 1;
    } else if (s.len && is_align(s.data[0])) {
        spec->align = s.data[0];
        at = 1;
    }
    if (at < s.len && strchr("+- ", s.data[at]) && s.data[at]) {
        spec->sign = s.data[at] == '-' ? 0 : s.data[at];
        at++;
    }
    if (at < s.len && s.data[at] == '#') {
        spec->alternate = true;
        at++;
    }
    if (at < s.len && s.data[at] == '0') {
        spec->zero = true;
        at++;
    }
    at = read_number(s, at, &spec->width);
    if (at < s.len && (s.data[at] == ',' || s.data[at] == '_'))
        spec->grouping = s.data[at++];
    if (at < s.len && s.data[at] == '.') {
        size_t begin = ++at;
        at = read_number(s, at, &spec->precision);
        if (at == begin)
            return tp_jinja_fail(f->run, "format(): a '.' without precision");
    }
    if (at < s.len && (uint8_t)s.data[at] < 128)
        spec->type = s.data[at++];
    if (at < s.len)
        return tp_jinja_fail(f->run, "format(): '%.*s' is not a format", (int)TP_MIN(s.len, 60),
                             s.data);
    if (spec->zero && !spec->fill_len) {
        spec->fill[0] = '0';
        spec->fill_len = 1;
        spec->align = spec->align ? spec->align : '=';
    }
    return TP_OK;
}

static tp_status format_text(const formatter *f, tp_jinja_spec *spec, tp_slice s,
                             tp_jinja_text *out)
{
    bool zero = spec->zero && spec->align == '=';
    if ((spec->align == '=' && !zero) || spec->sign || spec->alternate || spec->grouping ||
        (spec->type && spec->type != 's'))
        return tp_jinja_fail(f->run, "format(): a format for numbers is given a string");
    if (zero)
        spec->align = '<';
    if (spec->precision >= 0)
        s.len = tp_utf8_offset(s.data, s.len, (size_t)spec->precision);
    return tp_jinja_pad(out, spec, s, '<');
}

static tp_status format_value(const formatter *f, tp_slice text, const tp_any *v,
                              tp_jinja_text *out)
{
    tp_jinja_spec spec;
    tp_integer integer = 0;
    double real = 0;
    if (text.len == 0)
        return tp_any_str(out, v);
    TP_TRY(parse_spec(f, text, &spec));
    if (v->type == TP_ANY_STR)
        return format_text(f, &spec, v->text, out);
    if (tp_any_as_int(v, &integer) && (!spec.type || strchr("bdoxXn", spec.type))) {
        if (spec.precision >= 0)
            return tp_jinja_fail(f->run, "format(): an integer has no precision");
        return tp_jinja_format_integer(out, &spec, integer);
    }
    if (tp_any_as_float(v, &real) && (!spec.type || strchr("eEfFgGn%", spec.type)))
        return tp_jinja_format_float(out, &spec, real);
    return tp_jinja_fail(f->run, "format(): '%.*s' is no format for a '%s'",
                         (int)TP_MIN(text.len, 60), text.data, tp_any_type_name(v));
}

/* What stands between the braces. */
static tp_status replace_field(formatter *f, tp_slice field, int depth, tp_jinja_text *out)
{
    size_t colon = 0, brackets = 0;
    while (colon < field.len &&
           (brackets || (field.data[colon] != ':' && field.data[colon] != '!'))) {
        brackets += field.data[colon] == '[';
        brackets -= brackets && field.data[colon] == ']';
        colon++;
    }
    tp_slice name = {field.data, colon};
    char conversion = 0;
    if (colon < field.len && field.data[colon] == '!') {
        conversion = colon + 1 < field.len ? field.data[colon + 1] : 0;
        colon += 2;
        if (colon < field.len && field.data[colon] != ':')
            conversion = 0;
        if (conversion != 'r' && conversion != 's')
            return tp_jinja_fail(f->run, "format(): only !r and !s are conversions");
    }
    tp_any v;
    TP_TRY(find_field(f, name, &v));
    if (conversion) {
        tp_jinja_text text = {.run = f->run};
        TP_TRY(conversion == 'r' ? tp_any_repr(&text, &v) : tp_any_str(&text, &v));
        v = tp_jinja_text_value(&text);
    }
    tp_jinja_text spec = {.run = f->run};
    if (colon < field.len)
        TP_TRY(
            expand(f, (tp_slice){field.data + colon + 1, field.len - colon - 1}, depth - 1, &spec));
    return format_value(f, tp_jinja_text_value(&spec).text, &v, out);
}

static tp_status expand(formatter *f, tp_slice format, int depth, tp_jinja_text *out)
{
    if (depth < 0)
        return tp_jinja_fail(f->run, "format(): fields within fields within fields");
    for (size_t at = 0; at < format.len; at++) {
        char c = format.data[at];
        if (c != '{' && c != '}') {
            TP_TRY(tp_jinja_add(out, &c, 1));
            continue;
        }
        if (at + 1 < format.len && format.data[at + 1] == c) {
            TP_TRY(tp_jinja_add(out, &c, 1));
            at++;
            continue;
        }
        size_t begin = at + 1, open = c == '{';
        while (open && ++at < format.len)
            open += (size_t)(format.data[at] == '{') - (size_t)(format.data[at] == '}');
        if (c == '}' || at == format.len)
            return tp_jinja_fail(f->run, "format(): a single '%c' in the format", c);
        TP_TRY(tp_jinja_charge(f->run, 1));
        TP_TRY(replace_field(f, (tp_slice){format.data + begin, at - begin}, depth, out));
    }
    return TP_OK;
}

tp_status tp_jinja_str_format(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    formatter f = {.run = run, .args = c->args};
    tp_jinja_text out = {.run = run};
    TP_TRY(expand(&f, c->self->text, 1, &out));
    *ret = tp_jinja_text_value(&out);
    return TP_OK;
}
