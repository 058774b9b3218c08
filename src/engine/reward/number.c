/* number.c - a scanner by hand: at a place in the text, sign, currency, digits, fraction
 * and exponent are tried in this order; what fits is the number, the rest is text.  What is
 * written like a number and has no value (1/0, 1,00) is read as one that is NaN, and passed over
 * as a whole. */
#include "engine/reward/number.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <strings.h>
#include <utf8proc.h>

#include "base/platform.h"
#include "base/strings.h"
#include "text/json/json.h"

enum { MOST_DIGITS = 400, MOST_EXPONENT = 9999 };

typedef struct {
    const char *s;
    size_t n, at;
    bool is_behind_slash; /* the number is the denominator of something: no fraction */
} scan;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static char peek(const scan *s, size_t ahead)
{
    return s->at + ahead < s->n ? s->s[s->at + ahead] : 0;
}

static bool take(scan *s, const char *word)
{
    size_t n = strlen(word);
    if (s->n - s->at < n || memcmp(s->s + s->at, word, n) != 0)
        return false;
    s->at += n;
    return true;
}

static bool take_any(scan *s, const char *const *words)
{
    for (; *words; words++)
        if (take(s, *words))
            return true;
    return false;
}

static void skip_spaces(scan *s)
{
    while (peek(s, 0) == ' ' || peek(s, 0) == '\t')
        s->at++;
}

/* ---- digits ---- */

/* Decimal digits with a power of ten behind them. */
typedef struct {
    char digit[MOST_DIGITS];
    int n;        /* digits, leading zeros left out */
    int exponent; /* value = digits * 10^exponent */
    bool is_whole;
    bool is_void; /* digits and marks that make no number */
} decimal;

static void add_digit(decimal *d, char c)
{
    if (d->n == 0 && c == '0')
        return;
    if (d->n < MOST_DIGITS)
        d->digit[d->n++] = c;
    else
        d->exponent++; /* too long to be exact: its size stays right */
}

/* What may stand between groups of three digits; the point only more than once.  The longest first
 * where one begins another. */
static const char *const group_marks[] = {
    ", \\! ",   ",\\! ",        ",\\!",         ",", "{,}", "_", "'", "\\,", "\\ ",
    "\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x89", NULL};

static bool is_group(const scan *s, size_t ahead)
{
    return is_digit(peek(s, ahead)) && is_digit(peek(s, ahead + 1)) &&
           is_digit(peek(s, ahead + 2)) && !is_digit(peek(s, ahead + 3));
}

bool tp_number_group_at(tp_slice text, size_t at)
{
    scan s = {text.data, text.len, at, false};
    return is_group(&s, 0);
}

/* The mark in front of a group: "1,234", in LaTeX "1{,}234", "1,\!234", "1.234.567"; else NULL. */
static const char *find_mark(const scan *s)
{
    for (const char *const *mark = group_marks; *mark; mark++) {
        scan t = *s;
        if (take(&t, *mark))
            return is_group(&t, 0) ? *mark : NULL;
    }
    if (peek(s, 0) == '.' && is_group(s, 1) && peek(s, 4) == '.' && is_group(s, 5))
        return ".";
    /* "1 000"; "100 200" may be two numbers */
    return peek(s, 0) == ' ' && peek(s, 1) == '0' && is_group(s, 1) ? " " : NULL;
}

/* Groups behind a 0 make no number: "0,245". */
static void read_whole_part(scan *s, decimal *d)
{
    size_t first = s->at;
    while (is_digit(peek(s, 0)))
        add_digit(d, s->s[s->at++]);
    size_t n_first = s->at - first;
    const char *mark = n_first >= 1 && n_first <= 3 ? find_mark(s) : NULL;
    d->is_void = mark && s->s[first] == '0';
    for (scan t = *s; mark && take(&t, mark) && is_group(&t, 0); *s = t)
        for (int i = 0; i < 3; i++)
            add_digit(d, t.s[t.at++]);
}

static void read_decimals(scan *s, decimal *d)
{
    s->at++; /* the point */
    d->is_whole = false;
    while (is_digit(peek(s, 0))) {
        bool fits = d->n < MOST_DIGITS;
        add_digit(d, s->s[s->at++]);
        d->exponent -= fits;
    }
}

/* "e-3", " \times 10^{23}" */
static void read_exponent(scan *s, decimal *d)
{
    static const char *const times[] = {"\\times", "\\cdot", "×", "·", "x", "*", NULL};
    scan t = *s;
    bool is_short = peek(&t, 0) == 'e' || peek(&t, 0) == 'E', braced = false;
    if (is_short) {
        t.at++;
    } else {
        skip_spaces(&t);
        if (!take_any(&t, times))
            return;
        skip_spaces(&t);
        if (!take(&t, "10^"))
            return;
        braced = take(&t, "{");
    }
    bool negative = take(&t, "-") || take(&t, "−");
    if (!negative)
        take(&t, "+");
    if (!is_digit(peek(&t, 0)))
        return;
    int value = 0;
    for (; is_digit(peek(&t, 0)); t.at++)
        value = TP_MIN(value * 10 + (t.s[t.at] - '0'), MOST_EXPONENT);
    if (braced && !take(&t, "}"))
        return;
    if (is_short && is_letter(peek(&t, 0)))
        return;
    d->exponent += negative ? -value : value;
    d->is_whole = false;
    *s = t;
}

/* Digits go on behind a number as in no other one: "1.2.3", "1,00", "1.000,50". */
static bool is_joined(const scan *s, size_t first)
{
    static const char *const comma[] = {",", NULL};
    scan t = *s;
    if (peek(s, 0) == '.')
        return is_digit(peek(s, 1));
    if (s->at - first > 4 && s->s[s->at - 4] == '.' && take_any(&t, comma) &&
        is_digit(peek(&t, 0))) {
        while (is_digit(peek(&t, 0)))
            t.at++;
        return peek(&t, 0) != '.';
    }
    return take_any(&t, group_marks) && peek(&t, 0) == '0' && is_digit(peek(&t, 1));
}

static void pass_joined(scan *s, decimal *d)
{
    scan t = *s;
    *d = (decimal){.is_void = true};
    while (take(&t, ".") || take_any(&t, group_marks)) {
        if (!is_digit(peek(&t, 0)))
            return;
        while (is_digit(peek(&t, 0)))
            t.at++;
        *s = t;
    }
}

static bool read_decimal(scan *s, decimal *ret)
{
    size_t first = s->at;
    bool starts = is_digit(peek(s, 0)) || (peek(s, 0) == '.' && is_digit(peek(s, 1)));
    if (!starts)
        return false;
    *ret = (decimal){.is_whole = true};
    read_whole_part(s, ret);
    if (peek(s, 0) == '.' && is_digit(peek(s, 1)))
        read_decimals(s, ret);
    if (ret->is_void || is_joined(s, first)) {
        pass_joined(s, ret);
        return true;
    }
    read_exponent(s, ret);
    while (ret->n && ret->digit[ret->n - 1] == '0') {
        ret->n--;
        ret->exponent++;
    }
    if (ret->n == 0)
        ret->exponent = 0;
    return true;
}

/* ---- values ---- */

static bool power_of_ten(int exponent, tp_int128 *ret)
{
    tp_int128 v = 1;
    for (; exponent > 0; exponent--)
        if (__builtin_mul_overflow(v, (tp_int128)10, &v))
            return false;
    *ret = v;
    return true;
}

static bool exact_of(const decimal *d, tp_rational *ret)
{
    tp_int128 num = 0, power;
    for (int i = 0; i < d->n; i++)
        if (__builtin_mul_overflow(num, (tp_int128)10, &num) ||
            __builtin_add_overflow(num, (tp_int128)(d->digit[i] - '0'), &num))
            return false;
    if (!power_of_ten(d->exponent < 0 ? -d->exponent : d->exponent, &power))
        return false;
    tp_rational whole = {num, 1}, scale = {power, 1};
    return d->exponent < 0 ? tp_rational_div(whole, scale, ret)
                           : tp_rational_mul(whole, scale, ret);
}

static double approximate(const decimal *d)
{
    char text[MOST_DIGITS + 16];
    double value = 0;
    snprintf(text, sizeof text, "%.*se%d", d->n ? d->n : 1, d->n ? d->digit : "0", d->exponent);
    /* Beyond doubles the digits tell numbers apart. */
    if (!tp_str_to_f64(text, &value) || isinf(value))
        value = d->exponent > 0 ? DBL_MAX : 0;
    return value;
}

/* FNV-1a; never 0. */
static uint64_t hash_digits(const decimal *d)
{
    uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)(int64_t)d->exponent;
    for (int i = 0; i < d->n; i++)
        hash = (hash ^ (uint8_t)d->digit[i]) * 0x100000001b3u;
    return hash | 1;
}

static void set_void(tp_number *v)
{
    v->is_exact = false;
    v->digits = 0;
    v->value = NAN;
}

static void set_decimal(const decimal *d, tp_number *v)
{
    if (d->is_void) {
        set_void(v);
        return;
    }
    v->is_exact = exact_of(d, &v->exact);
    v->digits = v->is_exact ? 0 : hash_digits(d);
    v->value = v->is_exact ? tp_rational_f64(v->exact) : approximate(d);
}

static void set_exact(tp_rational exact, tp_number *v)
{
    v->is_exact = true;
    v->exact = exact;
    v->value = tp_rational_f64(exact);
}

static void divide(const tp_number *a, const tp_number *b, tp_number *ret)
{
    tp_rational exact;
    if (a->is_exact && b->is_exact && tp_rational_div(a->exact, b->exact, &exact)) {
        set_exact(exact, ret);
        return;
    }
    double value = a->value / b->value;
    set_void(ret);
    if (b->value != 0 && isfinite(value)) /* not 1/0, 6/1e-310 */
        ret->value = value;
}

/* ---- signs ---- */

/* U+2212, and the hyphens and the dash that stand in its place. */
static bool take_minus(scan *s)
{
    static const char *const signs[] = {"-", "−", "‐", "‑", "‒", "–", "﹣", "－", "\\minus", NULL};
    return take_any(s, signs);
}

static void negate(tp_number *v)
{
    v->exact.num = v->is_exact ? -v->exact.num : 0;
    v->value = -v->value;
}

/* ---- fractions ---- */

/* "\frac{3}{4}", "\frac{-3}{4}", "\frac34". */
static bool read_side(scan *s, tp_number *ret)
{
    decimal d;
    bool is_negative = false;
    skip_spaces(s);
    if (take(s, "{")) {
        skip_spaces(s);
        is_negative = take_minus(s);
        skip_spaces(s);
        if (!read_decimal(s, &d))
            return false;
        skip_spaces(s);
        if (!take(s, "}"))
            return false;
    } else {
        if (!is_digit(peek(s, 0)))
            return false;
        d = (decimal){.is_whole = true};
        add_digit(&d, s->s[s->at++]);
    }
    set_decimal(&d, ret);
    if (is_negative)
        negate(ret);
    return true;
}

static bool read_latex_fraction(scan *s, tp_number *ret)
{
    static const char *const names[] = {"\\frac", "\\dfrac", "\\tfrac", NULL};
    scan t = *s;
    tp_number a, b;
    if (!take_any(&t, names) || !read_side(&t, &a) || !read_side(&t, &b))
        return false;
    divide(&a, &b, ret);
    *s = t;
    return true;
}

static bool read_fraction_sign(scan *s, tp_number *ret)
{
    static const struct {
        const char *sign;
        int num, den;
    } signs[] = {{"½", 1, 2}, {"⅓", 1, 3}, {"⅔", 2, 3}, {"¼", 1, 4}, {"¾", 3, 4},
                 {"⅕", 1, 5}, {"⅖", 2, 5}, {"⅗", 3, 5}, {"⅘", 4, 5}, {"⅙", 1, 6},
                 {"⅚", 5, 6}, {"⅛", 1, 8}, {"⅜", 3, 8}, {"⅝", 5, 8}, {"⅞", 7, 8}};
    for (size_t i = 0; i < TP_COUNTOF(signs); i++)
        if (take(s, signs[i].sign)) {
            set_exact((tp_rational){signs[i].num, signs[i].den}, ret);
            return true;
        }
    return false;
}

/* " / 4" behind a number; not the day in 3/4/2021. */
static bool read_slash(scan *s, const tp_number *a, tp_number *ret)
{
    scan t = *s;
    decimal d;
    tp_number b;
    skip_spaces(&t);
    if (s->is_behind_slash || !take(&t, "/"))
        return false;
    skip_spaces(&t);
    if (!read_decimal(&t, &d) || peek(&t, 0) == '/')
        return false;
    set_decimal(&d, &b);
    divide(a, &b, ret);
    *s = t;
    return true;
}

/* "1 1/2", "1\frac{1}{2}", "1½": the part behind a whole number. */
static bool read_mixed(scan *s, const tp_number *whole, tp_number *ret)
{
    scan t = *s;
    tp_number part;
    decimal d;
    bool spaced = peek(&t, 0) == ' ';
    skip_spaces(&t);
    if (!read_fraction_sign(&t, &part) && !read_latex_fraction(&t, &part)) {
        tp_number a;
        if (!spaced || !read_decimal(&t, &d) || !d.is_whole)
            return false;
        set_decimal(&d, &a);
        if (!read_slash(&t, &a, &part) || part.value >= 1)
            return false;
    }
    tp_rational exact;
    if (isnan(part.value))
        set_void(ret);
    else if (whole->is_exact && part.is_exact && tp_rational_add(whole->exact, part.exact, &exact))
        set_exact(exact, ret);
    else
        return false;
    *s = t;
    return true;
}

static bool read_unsigned(scan *s, tp_number *ret)
{
    decimal d;
    if (read_latex_fraction(s, ret) || read_fraction_sign(s, ret))
        return true;
    if (!read_decimal(s, &d))
        return false;
    tp_number first = {0};
    set_decimal(&d, &first);
    if (d.is_whole && read_mixed(s, &first, ret))
        return true;
    if (!read_slash(s, &first, ret))
        *ret = first;
    return true;
}

/* ---- a number with what belongs to it ---- */

static bool take_currency(scan *s)
{
    static const char *const signs[] = {"$", "\\$", "€", "£", "¥", NULL};
    if (!take_any(s, signs))
        return false;
    skip_spaces(s);
    return true;
}

/* Scripts without spaces between words: their letters do not join what follows. */
static bool is_unspaced(uint32_t code)
{
    static const uint32_t ranges[][2] = {
        {0x0e00, 0x109f}, /* Thai, Lao, Tibetan, Burmese */
        {0x1780, 0x17ff}, /* Khmer */
        {0x2e80, 0xa4cf}, /* Chinese, Japanese, Yi */
        {0xf900, 0xfaff}, {0xff66, 0xff9f}, {0x20000, 0x3ffff},
    };
    for (size_t i = 0; i < TP_COUNTOF(ranges); i++)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return true;
    return false;
}

/* Behind what a minus joins two things: a number, a unit, a word or a closing bracket. */
static bool joins(uint32_t code)
{
    enum { DEGREE = 0xb0, PER_MILLE = 0x2030, PRIME = 0x2032, DOUBLE_PRIME = 0x2033 };
    utf8proc_category_t kind = utf8proc_category((utf8proc_int32_t)code);
    bool is_variation = code >= 0xfe00 && code <= 0xfe0f; /* of an emoji */
    if (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO)
        return true;
    if (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_ME)
        return !is_unspaced(code) && !is_variation;
    return kind == UTF8PROC_CATEGORY_PE || code == '.' || code == '%' || code == DEGREE ||
           code == PER_MILLE || code == PRIME || code == DOUBLE_PRIME;
}

/* Where a \text{...} begins that ends at `end`; else `end`. */
static size_t skip_text_back(tp_slice text, size_t end)
{
    enum { FAR = 64 };
    static const char command[] = "\\text{";
    size_t n = sizeof command - 1, least = end > FAR ? end - FAR : 0;
    if (end < n || text.data[end - 1] != '}')
        return end;
    for (size_t at = end - 1; at >= least + n; at--)
        if (text.data[at - 1] == '{')
            return memcmp(text.data + at - n, command, n) == 0 ? at - n : end;
    return end;
}

/* Is a plus or minus at `at` a sign?  Behind a number, a word or a bracket it joins two things. */
static bool is_sign(tp_slice text, size_t at)
{
    uint32_t code = 0;
    size_t n = 1;
    at = skip_text_back(text, at);
    if (at == 0)
        return true;
    while (n < 4 && n < at && ((unsigned char)text.data[at - n] & 0xc0) == 0x80)
        n++;
    return tp_utf8_decode(text.data + at - n, n, &code) != n || !joins(code);
}

static void take_percent(scan *s, tp_number *v)
{
    static const char *const words[] = {"%", "\\%", "percent", NULL};
    scan t = *s;
    skip_spaces(&t);
    v->is_percent = take_any(&t, words);
    if (v->is_percent)
        *s = t;
}

static bool read_number(tp_slice text, size_t at, tp_number *ret)
{
    scan s = {text.data, text.len, at, at > 0 && text.data[at - 1] == '/'};
    tp_number v = {0};
    bool priced = take_currency(&s), negative = false;
    if (take_minus(&s)) {
        if (!priced && !is_sign(text, at))
            return false;
        negative = true;
        take_currency(&s);
    } else if (peek(&s, 0) == '+' && !priced) {
        if (!is_sign(text, at))
            return false;
        s.at++;
    }
    if (!read_unsigned(&s, &v))
        return false;
    if (negative)
        negate(&v);
    take_percent(&s, &v);
    v.begin = at;
    v.end = s.at;
    *ret = v;
    return true;
}

bool tp_number_next(tp_slice text, size_t from, tp_number *ret)
{
    tp_number v;
    /* What may begin a number: digits, point, signs, backslash, and the lead bytes of the
     * characters above ASCII that are known here. */
    for (size_t at = from; at < text.len; at++) {
        char c = text.data[at];
        bool may = is_digit(c) || strchr(".-+$\\", c) || (unsigned char)c >= 0xc2;
        if (!may || !c || !read_number(text, at, &v))
            continue;
        if (!isnan(v.value)) {
            *ret = v;
            return true;
        }
        at = v.end - 1;
    }
    return false;
}

bool tp_number_last(tp_slice text, tp_number *ret)
{
    tp_number v;
    bool found = false;
    for (size_t at = 0; tp_number_next(text, at, &v); at = v.end) {
        *ret = v;
        found = true;
    }
    return found;
}

/* ---- comparing ---- */

static bool equal_scaled(const tp_number *a, const tp_number *b, double absolute, double relative)
{
    if (a->is_exact && b->is_exact && tp_rational_equal(a->exact, b->exact))
        return true;
    bool quotient = (!a->is_exact && !a->digits) || (!b->is_exact && !b->digits);
    if (quotient ? a->value == b->value /* the double is all that is known */
                 : a->digits && a->digits == b->digits && a->value == b->value)
        return true;
    double far = fabs(a->value - b->value);
    return (absolute > 0 && far <= absolute) || (relative > 0 && far <= relative * fabs(b->value));
}

static tp_number hundredth(const tp_number *v)
{
    tp_number r = *v;
    r.value /= 100;
    r.is_exact = v->is_exact && tp_rational_div(v->exact, (tp_rational){100, 1}, &r.exact);
    return r;
}

bool tp_number_equal(const tp_number *a, const tp_number *b, double absolute, double relative)
{
    if (equal_scaled(a, b, absolute, relative))
        return true;
    if (a->is_percent == b->is_percent)
        return false;
    tp_number p = a->is_percent ? hundredth(a) : *a, q = b->is_percent ? hundredth(b) : *b;
    return equal_scaled(&p, &q, absolute, relative);
}

void tp_number_text(const tp_number *v, char out[TP_RATIONAL_TEXT])
{
    tp_number share = v->is_percent ? hundredth(v) : *v;
    if (share.is_exact)
        tp_rational_text(share.exact, out);
    else
        tp_json_f64_text(share.value, out);
}
