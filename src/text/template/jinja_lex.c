/* jinja_lex.c - template text to tokens, white space control included.
 *
 * The text between tags is cut by three rules: a '-' inside a tag takes all white
 * space on its side; a block or comment that stands alone before its line's text
 * takes the indentation before it (lstrip_blocks) unless it says '+'; the newline
 * right after a block or comment goes (trim_blocks) unless it says '+'. */
#include <string.h>

#include "text/template/jinja.h"
#include "text/template/python_text.h"

enum { MAX_BRACKETS = 256 };

typedef struct {
    tp_arena *arena;
    const char *name, *text;
    size_t n, at;
    uint32_t line;
    bool at_line_start; /* what was read last ended a line, or nothing was read */
    tp_jinja_token *tokens;
    size_t n_tokens, cap;
    char brackets[MAX_BRACKETS]; /* the closing ones that are awaited */
    size_t n_brackets;
    tp_error *err;
} lexer;

static tp_status fail(const lexer *l, const char *what)
{
    return tp_fail(l->err, TP_ERR_FORMAT, "%s:%u: %s", l->name, (unsigned)l->line, what);
}

static void push(lexer *l, tp_jinja_token_type type, uint32_t line, tp_slice text)
{
    if (l->n_tokens == l->cap) {
        l->cap = 2 * l->cap + 64;
        l->tokens = tp_grow(l->tokens, l->cap, sizeof *l->tokens);
    }
    l->tokens[l->n_tokens++] = (tp_jinja_token){.type = type, .line = line, .text = text};
}

static char peek(const lexer *l, size_t ahead)
{
    return l->at + ahead < l->n ? l->text[l->at + ahead] : 0;
}

static bool starts(const lexer *l, size_t at, const char *s)
{
    size_t n = strlen(s);
    return l->n - at >= n && memcmp(l->text + at, s, n) == 0;
}

/* Move on to `end`, counting lines. */
static void advance(lexer *l, size_t end)
{
    for (; l->at < end; l->at++)
        l->line += l->text[l->at] == '\n';
    l->at_line_start = end > 0 && l->text[end - 1] == '\n';
}

static size_t skip_space(const lexer *l, size_t at)
{
    size_t len;
    while (at < l->n && tp_python_space_at(l->text + at, l->n - at, &len))
        at += len;
    return at;
}

/* A tag's end at `at`: "-%}" with the white space after it, "+%}", or "%}" with one
 * newline when `trims`.  0 when there is none. */
static size_t tag_end(const lexer *l, size_t at, const char *close, bool has_plus, bool trims)
{
    char sign = at < l->n ? l->text[at] : 0;
    if (sign == '-' && starts(l, at + 1, close))
        return skip_space(l, at + 1 + strlen(close));
    if (sign == '+' && has_plus && starts(l, at + 1, close))
        return at + 1 + strlen(close);
    if (!starts(l, at, close))
        return 0;
    at += strlen(close);
    return at + (trims && at < l->n && l->text[at] == '\n');
}

/* "{% raw %}" at `at`, or with "endraw": its end, or 0. */
static size_t raw_tag(const lexer *l, size_t at, const char *word, bool is_end, char *ret_sign)
{
    if (!starts(l, at, "{%"))
        return 0;
    size_t i = at + 2;
    char sign = i < l->n ? l->text[i] : 0;
    *ret_sign = sign == '-' || sign == '+' ? sign : 0;
    i = skip_space(l, i + (*ret_sign != 0));
    if (!starts(l, i, word))
        return 0;
    return tag_end(l, skip_space(l, i + strlen(word)), "%}", is_end, is_end);
}

/* Text up to a tag whose sign is `sign`, cut as that tag asks for. */
static void push_data(lexer *l, size_t begin, size_t end, char sign, bool is_print,
                      bool at_line_start)
{
    tp_slice data = {l->text + begin, end - begin};
    if (sign == '-') {
        data.len = tp_python_rstrip(data.data, data.len);
    } else if (sign != '+' && !is_print) {
        size_t last = data.len;
        while (last > 0 && data.data[last - 1] != '\n')
            last--;
        bool alone = last > 0 || at_line_start;
        if (alone && last < data.len && skip_space(l, begin + last) >= end)
            data.len = last;
    }
    if (data.len)
        push(l, TP_JINJA_TOKEN_DATA, l->line, data);
}

static tp_status lex_comment(lexer *l)
{
    for (size_t i = l->at; i < l->n; i++) {
        size_t end = tag_end(l, i, "#}", true, true);
        if (end) {
            advance(l, end);
            return TP_OK;
        }
    }
    if (l->at < l->n)
        return fail(l, "missing end of comment tag '#}'");
    return TP_OK;
}

static tp_status lex_raw(lexer *l, bool at_line_start)
{
    for (size_t i = l->at; i < l->n; i++) {
        char sign = 0;
        size_t end = raw_tag(l, i, "endraw", true, &sign);
        if (end) {
            push_data(l, l->at, i, sign, false, at_line_start);
            advance(l, end);
            return TP_OK;
        }
    }
    if (l->at < l->n)
        return fail(l, "missing end of raw block '{% endraw %}'");
    return TP_OK;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Digits with single underscores between them: their end, or `at`. */
static size_t digits_end(const lexer *l, size_t at)
{
    size_t end = at;
    while (end < l->n && (is_digit(l->text[end]) || (l->text[end] == '_' && end > at &&
                                                     end + 1 < l->n && is_digit(l->text[end + 1]))))
        end++;
    return end;
}

/* The end of a float at l->at, or 0. */
static size_t float_end(const lexer *l)
{
    if (l->at > 0 && l->text[l->at - 1] == '.')
        return 0;
    size_t whole = digits_end(l, l->at), end = whole;
    if (whole == l->at)
        return 0;
    bool has_fraction =
        whole < l->n && l->text[whole] == '.' && digits_end(l, whole + 1) > whole + 1;
    if (has_fraction)
        end = digits_end(l, whole + 1);
    if (end < l->n && (l->text[end] == 'e' || l->text[end] == 'E')) {
        size_t exponent = end + 1;
        exponent += exponent < l->n && (l->text[exponent] == '+' || l->text[exponent] == '-');
        size_t exponent_end = digits_end(l, exponent);
        if (exponent_end > exponent)
            return exponent_end;
    }
    return has_fraction ? end : 0;
}

static tp_slice without_underscores(lexer *l, size_t begin, size_t end)
{
    char *copy = tp_arena_array(l->arena, char, end - begin + 1);
    size_t n = 0;
    for (size_t i = begin; i < end; i++)
        if (l->text[i] != '_')
            copy[n++] = l->text[i];
    return (tp_slice){copy, n};
}

static int digit_value(char c, int base)
{
    int v = is_digit(c)                              ? c - '0'
            : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                     : 99;
    return v < base ? v : -1;
}

/* The digits of a base from `at`, each with at most one '_' before it. */
static size_t based_end(const lexer *l, size_t at, int base)
{
    for (;;) {
        size_t next = at + (at < l->n && l->text[at] == '_');
        if (next >= l->n || digit_value(l->text[next], base) < 0)
            return at;
        at = next + 1;
    }
}

static tp_status lex_integer(lexer *l)
{
    static const struct {
        char letter;
        int base;
    } kinds[] = {{'b', 2}, {'o', 8}, {'x', 16}};
    size_t begin = l->at, end = l->at + 1;
    int base = 10;
    for (size_t i = 0; i < 3 && peek(l, 0) == '0'; i++)
        if ((peek(l, 1) | 0x20) == kinds[i].letter &&
            based_end(l, begin + 2, kinds[i].base) > begin + 2) {
            base = kinds[i].base;
            begin += 2;
            end = based_end(l, begin, base);
        }
    if (base == 10) /* zero is followed by zeros only */
        end = peek(l, 0) == '0' ? based_end(l, end, 1) : based_end(l, end, 10);
    tp_slice digits = without_underscores(l, begin, end);
    tp_integer value = 0;
    for (size_t i = 0; i < digits.len; i++)
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit_value(digits.data[i], base), &value))
            return fail(l, "an integer beyond 127 bits is not supported");
    push(l, TP_JINJA_TOKEN_INTEGER, l->line, digits);
    l->tokens[l->n_tokens - 1].value = tp_any_int(value);
    advance(l, end);
    return TP_OK;
}

static void lex_float(lexer *l, size_t end)
{
    tp_slice digits = without_underscores(l, l->at, end);
    double value = 0;
    tp_python_parse_float(digits.data, digits.len, &value);
    push(l, TP_JINJA_TOKEN_FLOAT, l->line, digits);
    l->tokens[l->n_tokens - 1].value = tp_any_float(value);
    advance(l, end);
}

static bool is_name_character(const lexer *l, size_t at, size_t *ret_len)
{
    char c = l->text[at];
    *ret_len = 1;
    if (is_digit(c) || c == '_' || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'))
        return true;
    uint32_t cp;
    size_t len = (uint8_t)c < 128 ? 0 : tp_utf8_decode(l->text + at, l->n - at, &cp);
    *ret_len = len;
    return len && tp_python_is_alnum(cp);
}

static size_t name_end(const lexer *l)
{
    size_t end = l->at, len;
    while (end < l->n && is_name_character(l, end, &len))
        end += len;
    return end;
}

static tp_status lex_string(lexer *l)
{
    char quote = peek(l, 0);
    size_t end = l->at + 1;
    while (end < l->n && l->text[end] != quote)
        end += l->text[end] == '\\' ? 2 : 1;
    if (end >= l->n)
        return fail(l, "a string without its closing quote");
    tp_slice raw = {l->text + l->at + 1, end - l->at - 1}, text;
    char *out = tp_arena_array(l->arena, char, 2 * raw.len + 8);
    const char *problem = tp_python_unescape(raw, out, &text);
    if (problem)
        return fail(l, problem);
    push(l, TP_JINJA_TOKEN_STRING, l->line, text);
    advance(l, end + 1);
    return TP_OK;
}

static tp_status lex_operator(lexer *l)
{
    static const char *const operators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                            "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                            ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    const char *op = NULL;
    for (size_t i = 0; i < sizeof operators / sizeof *operators && !op; i++)
        if (starts(l, l->at, operators[i]))
            op = operators[i];
    if (!op) {
        char message[64];
        unsigned char c = (unsigned char)peek(l, 0);
        snprintf(message, sizeof message,
                 c >= 32 && c < 127 ? "unexpected character '%c'" : "unexpected byte 0x%02x", c);
        return fail(l, message);
    }
    char close = *op == '(' ? ')' : *op == '[' ? ']' : *op == '{' ? '}' : 0;
    if (close) {
        if (l->n_brackets == MAX_BRACKETS)
            return fail(l, "brackets are nested too deep");
        l->brackets[l->n_brackets++] = close;
    } else if (*op == ')' || *op == ']' || *op == '}') {
        if (l->n_brackets == 0 || l->brackets[--l->n_brackets] != *op)
            return fail(l, "a closing bracket that does not match");
    }
    push(l, TP_JINJA_TOKEN_OPERATOR, l->line, tp_slice_of(op));
    advance(l, l->at + strlen(op));
    return TP_OK;
}

/* Tokens up to and including the tag's end. */
static tp_status lex_tag(lexer *l, const char *close, bool is_block)
{
    l->n_brackets = 0;
    while (l->at < l->n) {
        size_t end = l->n_brackets ? 0 : tag_end(l, l->at, close, is_block, is_block);
        if (end) {
            push(l, is_block ? TP_JINJA_TOKEN_BLOCK_END : TP_JINJA_TOKEN_PRINT_END, l->line,
                 tp_slice_of(close));
            advance(l, end);
            return TP_OK;
        }
        size_t space = skip_space(l, l->at), name;
        if (space > l->at)
            advance(l, space);
        else if ((end = float_end(l)) != 0)
            lex_float(l, end);
        else if (is_digit(peek(l, 0)))
            TP_TRY(lex_integer(l));
        else if ((name = name_end(l)) > l->at) {
            push(l, TP_JINJA_TOKEN_NAME, l->line, (tp_slice){l->text + l->at, name - l->at});
            advance(l, name);
        } else if (peek(l, 0) == '\'' || peek(l, 0) == '"')
            TP_TRY(lex_string(l));
        else
            TP_TRY(lex_operator(l));
    }
    return TP_OK;
}

/* Text up to the next tag, and that tag. */
static tp_status lex_once(lexer *l)
{
    size_t at = l->at;
    while (at < l->n && !(l->text[at] == '{' && at + 1 < l->n && l->text[at + 1] &&
                          strchr("%{#", l->text[at + 1])))
        at++;
    bool line_start = l->at_line_start;
    if (at >= l->n) {
        push(l, TP_JINJA_TOKEN_DATA, l->line, (tp_slice){l->text + l->at, l->n - l->at});
        advance(l, l->n);
        return TP_OK;
    }
    char kind = l->text[at + 1], raw_sign = 0;
    size_t raw_end = raw_tag(l, at, "raw", false, &raw_sign);
    char sign = at + 2 < l->n ? l->text[at + 2] : 0;
    sign = sign == '-' || sign == '+' ? sign : 0;
    push_data(l, l->at, at, sign, kind == '{', line_start);
    if (raw_end) {
        advance(l, raw_end);
        return lex_raw(l, l->at_line_start);
    }
    advance(l, at + 2 + (sign != 0));
    if (kind == '#')
        return lex_comment(l);
    push(l, kind == '%' ? TP_JINJA_TOKEN_BLOCK_BEGIN : TP_JINJA_TOKEN_PRINT_BEGIN, l->line,
         (tp_slice){"", 0});
    return lex_tag(l, kind == '%' ? "%}" : "}}", kind == '%');
}

/* Lines end in '\n', and the last one has no end. */
static tp_slice normalise_lines(tp_arena *arena, const char *text, size_t n)
{
    char *copy = tp_arena_array(arena, char, n + 1);
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_return = text[i] == '\r';
        i += is_return && i + 1 < n && text[i + 1] == '\n';
        copy[out++] = is_return ? '\n' : text[i];
    }
    out -= out > 0 && copy[out - 1] == '\n';
    return (tp_slice){copy, out};
}

tp_status tp_jinja_lex(tp_arena *arena, const char *name, const char *text, size_t n,
                       tp_jinja_token **ret, size_t *ret_n, tp_error *err)
{
    if (n > TP_JINJA_MAX_SOURCE)
        return tp_fail(err, TP_ERR_FORMAT, "%s: a template of %zu bytes; %d is the limit", name, n,
                       TP_JINJA_MAX_SOURCE);
    if (!tp_utf8_valid(text, n))
        return tp_fail(err, TP_ERR_FORMAT, "%s: the template is not valid UTF-8", name);
    tp_slice source = normalise_lines(arena, text, n);
    lexer l = {.arena = arena,
               .name = name,
               .text = source.data,
               .n = source.len,
               .line = 1,
               .at_line_start = true,
               .err = err};
    tp_status status = TP_OK;
    while (status == TP_OK && l.at < l.n)
        status = lex_once(&l);
    push(&l, TP_JINJA_TOKEN_EOF, l.line, (tp_slice){"", 0});
    if (status == TP_OK) {
        *ret = tp_arena_array(arena, tp_jinja_token, l.n_tokens);
        memcpy(*ret, l.tokens, l.n_tokens * sizeof **ret);
        *ret_n = l.n_tokens;
    }
    free(l.tokens);
    return status;
}
