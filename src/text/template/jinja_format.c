/* jinja_format.c - fields, and the "%" operator on strings. */
#include "text/template/jinja_format.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "text/template/python_text.h"

static size_t sign_length(tp_slice s)
{
    size_t n = s.len && (s.data[0] == '-' || s.data[0] == '+' || s.data[0] == ' ');
    bool prefixed = s.len > n + 1 && s.data[n] == '0' && isalpha((unsigned char)s.data[n + 1]);
    return n + (prefixed ? 2 : 0);
}

tp_status tp_jinja_pad(tp_jinja_text *out, const tp_jinja_spec *spec, tp_slice s,
                       char default_align)
{
    int64_t chars = (int64_t)tp_utf8_count(s.data, s.len);
    char align = spec->align ? spec->align : default_align;
    if (spec->width > TP_JINJA_MAX_WIDTH)
        return tp_jinja_fail(out->run, "a field wider than %d characters", TP_JINJA_MAX_WIDTH);
    int64_t room = TP_MAX(spec->width - chars, 0);
    int64_t before = align == '<' ? 0 : align == '^' ? room / 2 : room;
    size_t lead = align == '=' ? sign_length(s) : 0;
    const char *fill = spec->fill_len ? spec->fill : " ";
    size_t fill_len = spec->fill_len ? spec->fill_len : 1;
    TP_TRY(tp_jinja_add(out, s.data, lead));
    for (int64_t i = 0; i < before; i++)
        TP_TRY(tp_jinja_add(out, fill, fill_len));
    TP_TRY(tp_jinja_add(out, s.data + lead, s.len - lead));
    for (int64_t i = before; i < room; i++)
        TP_TRY(tp_jinja_add(out, fill, fill_len));
    return TP_OK;
}

/* Digits with a separator every three (or four), from the right; `out` is large. */
static size_t group_digits(const char *digits, size_t n, char separator, size_t every, char *out)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (i && (n - i) % every == 0)
            out[len++] = separator;
        out[len++] = digits[i];
    }
    return len;
}

static size_t digits_in_base(unsigned __int128 value, unsigned base, bool upper, char *out)
{
    char reversed[130];
    size_t n = 0;
    do {
        unsigned digit = (unsigned)(value % base);
        reversed[n++] = (char)(digit < 10 ? '0' + digit : (upper ? 'A' : 'a') + digit - 10);
        value /= base;
    } while (value);
    for (size_t i = 0; i < n; i++)
        out[i] = reversed[n - 1 - i];
    return n;
}

tp_status tp_jinja_format_integer(tp_jinja_text *out, const tp_jinja_spec *spec, tp_integer value)
{
    char digits[130], text[700];
    bool upper = spec->type == 'X';
    unsigned base = upper || spec->type == 'x' ? 16
                    : spec->type == 'o'        ? 8
                    : spec->type == 'b'        ? 2
                                               : 10;
    unsigned __int128 size = value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;
    size_t n = digits_in_base(size, base, upper, digits), len = 0;
    if (value < 0)
        text[len++] = '-';
    else if (spec->sign)
        text[len++] = spec->sign;
    if (spec->alternate && base != 10) {
        text[len++] = '0';
        text[len++] = base == 8 ? 'o' : base == 2 ? 'b' : upper ? 'X' : 'x';
    }
    if (spec->precision > TP_JINJA_MAX_PRECISION)
        return tp_jinja_fail(out->run, "a precision above %d", TP_JINJA_MAX_PRECISION);
    for (int64_t i = (int64_t)n; i < spec->precision; i++)
        text[len++] = '0';
    if (spec->grouping)
        len += group_digits(digits, n, spec->grouping, base == 10 ? 3 : 4, text + len);
    else {
        memcpy(text + len, digits, n);
        len += n;
    }
    return tp_jinja_pad(out, spec, (tp_slice){text, len}, '>');
}

/* Without a type: as repr(), or with a precision as %g that keeps a ".0". */
static void general_float(double size, int64_t precision, char *out, size_t cap)
{
    if (precision < 0) {
        char number[TP_PYTHON_NUMBER_MAX];
        tp_python_float(size, number);
        snprintf(out, cap, "%s", number);
        return;
    }
    int p = precision ? (int)precision : 1;
    snprintf(out, cap, "%.*e", p - 1, size);
    int exponent = atoi(strchr(out, 'e') + 1);
    bool scientific = exponent < -4 || exponent >= (p > 1 ? p - 1 : p);
    if (!scientific) {
        snprintf(out, cap, "%.*g", p, size);
        if (!strpbrk(out, ".e"))
            strcat(out, ".0");
        return;
    }
    char *e = strchr(out, 'e'), tail[16];
    snprintf(tail, sizeof tail, "%s", e);
    if (strchr(out, '.'))
        while (e[-1] == '0')
            e--;
    e -= e[-1] == '.';
    memcpy(e, tail, strlen(tail) + 1);
}

tp_status tp_jinja_format_float(tp_jinja_text *out, const tp_jinja_spec *spec, double value)
{
    enum { MOST = 320 + TP_JINJA_MAX_PRECISION };
    char text[MOST + 110], number[MOST];
    size_t len = 0;
    if (spec->precision > TP_JINJA_MAX_PRECISION)
        return tp_jinja_fail(out->run, "a precision above %d", TP_JINJA_MAX_PRECISION);
    int precision = spec->precision < 0 ? 6 : (int)spec->precision;
    double size = fabs(value);
    bool upper = spec->type == 'E' || spec->type == 'F' || spec->type == 'G';
    if (signbit(value) && !isnan(value))
        text[len++] = '-';
    else if (spec->sign)
        text[len++] = spec->sign;
    if (!isfinite(value))
        snprintf(number, sizeof number, "%s",
                 isnan(value) ? (upper ? "NAN" : "nan")
                 : upper      ? "INF"
                              : "inf");
    else if (spec->type == 'f' || spec->type == 'F' || spec->type == '%')
        snprintf(number, sizeof number, spec->alternate ? "%#.*f" : "%.*f", precision,
                 spec->type == '%' ? size * 100 : size);
    else if (spec->type == 'e' || spec->type == 'E')
        snprintf(number, sizeof number, upper ? "%.*E" : "%.*e", precision, size);
    else if (spec->type == 'g' || spec->type == 'G' || spec->type == 'n')
        snprintf(number, sizeof number,
                 upper ? (spec->alternate ? "%#.*G" : "%.*G")
                       : (spec->alternate ? "%#.*g" : "%.*g"),
                 precision, size);
    else
        general_float(size, spec->precision, number, sizeof number);
    size_t whole = strspn(number, "0123456789");
    if (spec->grouping && whole)
        len += group_digits(number, whole, spec->grouping, 3, text + len);
    else {
        memcpy(text + len, number, whole);
        len += whole;
    }
    size_t rest = strlen(number) - whole;
    memcpy(text + len, number + whole, rest);
    len += rest;
    if (spec->type == '%')
        text[len++] = '%';
    return tp_jinja_pad(out, spec, (tp_slice){text, len}, '>');
}

/* --- "%" --- */

typedef struct {
    tp_jinja_run *run;
    tp_slice format;
    size_t at;
    const tp_any *args; /* what stands on the right */
    size_t n_used;
    tp_jinja_text out;
} percent;

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

/* Digits, or '*' for the next argument. */
static tp_status read_size(percent *p, int64_t *ret)
{
    if (current(p) == '*') {
        tp_any v;
        p->at++;
        TP_TRY(next_argument(p, &v));
        TP_TRY(tp_jinja_want_int(p->run, "'%': *", &v, ret));
    } else {
        *ret = 0;
        for (; isdigit((unsigned char)current(p)); p->at++)
            *ret = TP_MIN(*ret * 10 + (current(p) - '0'), (int64_t)1 << 40);
    }
    if (*ret > TP_JINJA_MAX_WIDTH)
        return tp_jinja_fail(p->run, "'%%': a field wider than %d", TP_JINJA_MAX_WIDTH);
    return TP_OK;
}

static tp_status percent_text(percent *p, tp_jinja_spec *spec, const tp_any *v)
{
    tp_jinja_text text = {.run = p->run};
    TP_TRY(spec->type == 's' ? tp_any_str(&text, v) : tp_any_repr(&text, v));
    tp_slice s = tp_jinja_text_value(&text).text;
    if (spec->precision >= 0)
        s.len = tp_utf8_offset(s.data, s.len, (size_t)spec->precision);
    if (!spec->align)
        spec->align = '>';
    if (spec->align == '=')
        spec->align = '>';
    spec->fill_len = 0;
    return tp_jinja_pad(&p->out, spec, s, '>');
}

static tp_status percent_number(percent *p, tp_jinja_spec *spec, const tp_any *v)
{
    tp_integer integer = 0;
    double real = 0;
    bool is_int = tp_any_as_int(v, &integer), is_number = tp_any_as_float(v, &real);
    bool hex = strchr("xXo", spec->type) != NULL;
    if (!is_number || (hex && !is_int))
        return tp_jinja_fail(p->run, "'%%%c' needs a number, not '%s'", spec->type,
                             tp_any_type_name(v));
    if (!hex && !strchr("diu", spec->type))
        return tp_jinja_format_float(&p->out, spec, real);
    if (!is_int) {
        if (!isfinite(real) || fabs(real) > 1e37)
            return tp_jinja_fail(p->run, "'%%%c': this float is no integer", spec->type);
        integer = (tp_integer)real;
    }
    return tp_jinja_format_integer(&p->out, spec, integer);
}

static tp_status percent_character(percent *p, const tp_jinja_spec *spec, const tp_any *v)
{
    tp_integer cp = 0;
    char utf8[4];
    tp_slice s;
    if (v->type == TP_ANY_STR && tp_utf8_count(v->text.data, v->text.len) == 1)
        s = v->text;
    else if (tp_any_as_int(v, &cp) && cp >= 0 && cp <= 0x10ffff && !(cp >= 0xd800 && cp < 0xe000))
        s = (tp_slice){utf8, tp_utf8_encode((uint32_t)cp, utf8)};
    else
        return tp_jinja_fail(p->run, "'%%c' needs a character");
    return tp_jinja_pad(&p->out, spec, s, '>');
}

/* One "%...", the '%' being behind us. */
static tp_status percent_field(percent *p)
{
    tp_jinja_spec spec = {.width = 0, .precision = -1};
    tp_any v = {0};
    bool has_key = current(p) == '(';
    if (has_key)
        TP_TRY(keyed_argument(p, &v));
    for (; current(p) && strchr("#0- +", current(p)); p->at++) {
        char c = current(p);
        spec.alternate |= c == '#';
        spec.zero |= c == '0';
        spec.align = c == '-' ? '<' : spec.align;
        spec.sign = c == '+' || (c == ' ' && !spec.sign) ? c : spec.sign;
    }
    TP_TRY(read_size(p, &spec.width));
    if (spec.width < 0) {
        spec.align = '<';
        spec.width = -spec.width;
    }
    if (current(p) == '.') {
        p->at++;
        TP_TRY(read_size(p, &spec.precision));
        spec.precision = TP_MAX(spec.precision, 0);
    }
    p->at += current(p) && strchr("hlL", current(p));
    spec.type = current(p);
    if (!spec.type)
        return tp_jinja_fail(p->run, "'%%': the format ends within a field");
    p->at++;
    if (spec.type == '%')
        return tp_jinja_adds(&p->out, "%");
    if (!has_key)
        TP_TRY(next_argument(p, &v));
    if (spec.zero && spec.align != '<') {
        spec.align = '=';
        spec.fill[0] = '0';
        spec.fill_len = 1;
    }
    if (spec.type == 's' || spec.type == 'r')
        return percent_text(p, &spec, &v);
    if (spec.type == 'c')
        return percent_character(p, &spec, &v);
    if (strchr("diuxXoeEfFgG", spec.type))
        return percent_number(p, &spec, &v);
    return tp_jinja_fail(p->run, "'%%': there is no format character '%c'", spec.type);
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
