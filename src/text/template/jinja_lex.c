/* jinja_lex.c - template text to tokens, white space control included.
 *
 * The text between tags is cut by three rules: a '-' inside a tag takes all white
 * space on its side; a block or comment that stands alone before its line's text
 * takes the indentation before it (lstrip_blocks) unless it says '+'; the newline
 * right after a block or comment goes (trim_blocks) unless it says '+'. */
#include <ctype.h>
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja.h"
#include "text/template/python_text.h"

enum { MAX_BRACKETS = 256 };

typedef struct {
    tp_jinja_parser *p; /* gets the tokens */
    tp_slice text;
    size_t at;
    uint32_t line;
    bool at_line_start;          /* what was read last ended a line, or nothing was read */
    char brackets[MAX_BRACKETS]; /* the closing ones that are awaited */
    size_t n_brackets;
} lexer;

static _Noreturn void fail(const lexer *l, const char *what)
{
    tp_jinja_syntax_error(l->p, l->line, "%s", what);
}

/* The character at a place, 0 behind the end. */
static char at(const lexer *l, size_t place)
{
    return place < l->text.len ? l->text.data[place] : 0;
}

static bool starts(const lexer *l, size_t place, const char *s)
{
    size_t n = strlen(s);
    return l->text.len - place >= n && memcmp(l->text.data + place, s, n) == 0;
}

/* Move on to `end`, counting lines. */
static void advance(lexer *l, size_t end)
{
    for (; l->at < end; l->at++)
        l->line += l->text.data[l->at] == '\n';
    l->at_line_start = end > 0 && l->text.data[end - 1] == '\n';
}

/* A token whose source ends at `end`, and on behind it. */
static tp_jinja_token *push(lexer *l, tp_jinja_token_type type, tp_slice text, size_t end)
{
    tp_jinja_parser *p = l->p;
    tp_jinja_token *token = TP_ARENA_PUSH(&p->t->arena, p->tokens, p->n_tokens, p->cap);
    *token = (tp_jinja_token){.type = type, .line = l->line, .text = text};
    advance(l, end);
    return token;
}

static tp_slice between(const lexer *l, size_t begin, size_t end)
{
    return (tp_slice){l->text.data + begin, end - begin};
}

static size_t skip_space(const lexer *l, size_t place)
{
    return l->text.len - tp_python_strip(tp_python_from(l->text, place), NULL, true, false).len;
}

/* A tag's end at a place: "-%}" with the white space after it, "+%}", or "%}" with one
 * newline when `trims`.  0 when there is none. */
static size_t tag_end(const lexer *l, size_t place, const char *close, bool has_plus, bool trims)
{
    char sign = at(l, place);
    if (sign == '-' && starts(l, place + 1, close))
        return skip_space(l, place + 1 + strlen(close));
    if (sign == '+' && has_plus && starts(l, place + 1, close))
        return place + 1 + strlen(close);
    if (!starts(l, place, close))
        return 0;
    place += strlen(close);
    return place + (trims && at(l, place) == '\n');
}

static char sign_at(const lexer *l, size_t place)
{
    char sign = at(l, place);
    return sign == '-' || sign == '+' ? sign : 0;
}

/* "{% raw %}" at a place, or with "endraw": its end, or 0. */
static size_t raw_tag(const lexer *l, size_t place, const char *word, bool is_end)
{
    if (!starts(l, place, "{%"))
        return 0;
    place = skip_space(l, place + 2 + (sign_at(l, place + 2) != 0));
    if (!starts(l, place, word))
        return 0;
    return tag_end(l, skip_space(l, place + strlen(word)), "%}", is_end, is_end);
}

/* Text up to a tag at `end`, cut as that tag asks for; on to `next`. */
static void push_data(lexer *l, size_t end, size_t next)
{
    tp_slice data = between(l, l->at, end);
    char sign = sign_at(l, end + 2);
    if (sign == '-') {
        data = tp_python_strip(data, NULL, false, true);
    } else if (sign != '+' && at(l, end + 1) != '{') {
        size_t last = data.len;
        while (last > 0 && data.data[last - 1] != '\n')
            last--;
        bool alone = last > 0 || l->at_line_start;
        if (alone && last < data.len && skip_space(l, l->at + last) >= end)
            data.len = last;
    }
    if (data.len)
        push(l, TP_JINJA_TOKEN_DATA, data, next);
    advance(l, next);
}

/* On behind the end of a comment, or of a raw block, which is data. */
static void lex_until_end(lexer *l, bool is_raw)
{
    for (size_t i = l->at; i < l->text.len; i++) {
        size_t end = is_raw ? raw_tag(l, i, "endraw", true) : tag_end(l, i, "#}", true, true);
        if (!end)
            continue;
        if (is_raw)
            push_data(l, i, end);
        advance(l, end);
        return;
    }
    if (l->at < l->text.len)
        fail(l, is_raw ? "missing end of raw block '{% endraw %}'"
                       : "missing end of comment tag '#}'");
}

/* The digits of a base from a place, each with at most one '_' before it. */
static size_t more_digits_end(const lexer *l, size_t place, int base)
{
    for (;;) {
        size_t next = place + (at(l, place) == '_');
        if (tp_python_digit(at(l, next)) >= base)
            return place;
        place = next + 1;
    }
}

/* Decimal digits with single underscores between them: their end, or the place. */
static size_t digits_end(const lexer *l, size_t place)
{
    return tp_python_digit(at(l, place)) < 10 ? more_digits_end(l, place + 1, 10) : place;
}

/* The end of a float at l->at, or 0. */
static size_t float_end(const lexer *l)
{
    size_t whole = digits_end(l, l->at), end = whole;
    if (whole == l->at || (l->at > 0 && at(l, l->at - 1) == '.'))
        return 0;
    if (at(l, whole) == '.' && digits_end(l, whole + 1) > whole + 1)
        end = digits_end(l, whole + 1);
    if ((at(l, end) | 0x20) == 'e') {
        size_t exponent = end + 1 + (sign_at(l, end + 1) != 0);
        if (digits_end(l, exponent) > exponent)
            return digits_end(l, exponent);
    }
    return end > whole ? end : 0;
}

static void lex_integer(lexer *l)
{
    static const char letters[] = "box";
    static const int bases[] = {2, 8, 16};
    /* Zero is followed by zeros only. */
    bool is_zero = at(l, l->at) == '0', overflow = false;
    size_t end = more_digits_end(l, l->at + 1, is_zero ? 1 : 10);
    for (size_t i = 0; i < TP_COUNTOF(bases) && is_zero; i++)
        if ((at(l, l->at + 1) | 0x20) == letters[i] &&
            more_digits_end(l, l->at + 2, bases[i]) > l->at + 2)
            end = more_digits_end(l, l->at + 2, bases[i]);
    tp_integer value = 0;
    tp_slice digits = between(l, l->at, end);
    if (!tp_python_parse_integer(digits, 0, &value, &overflow) || overflow)
        fail(l, "an integer beyond 127 bits is not supported");
    push(l, TP_JINJA_TOKEN_NUMBER, digits, end)->value = tp_any_int(value);
}

static void lex_float(lexer *l, size_t end)
{
    double value = 0;
    tp_slice digits = between(l, l->at, end);
    if (!tp_python_parse_float(digits, &value))
        fail(l, "a number of so many digits is not supported");
    push(l, TP_JINJA_TOKEN_NUMBER, digits, end)->value = tp_any_float(value);
}

static size_t name_end(const lexer *l)
{
    size_t end = l->at;
    for (size_t next = end; next < l->text.len; end = next) {
        uint32_t cp = tp_python_next(l->text, &next);
        if (cp != '_' && !(cp < 128 ? isalnum((int)cp) : tp_python_is_alnum(cp)))
            break;
    }
    return end;
}

static void lex_string(lexer *l)
{
    char quote = at(l, l->at);
    size_t end = l->at + 1;
    while (end < l->text.len && l->text.data[end] != quote)
        end += l->text.data[end] == '\\' ? 2 : 1;
    if (end >= l->text.len)
        fail(l, "a string without its closing quote");
    tp_slice raw = between(l, l->at + 1, end), text;
    char *out = tp_arena_array(&l->p->t->arena, char, 2 * raw.len + 8);
    const char *problem = tp_python_unescape(raw, out, &text);
    if (problem)
        fail(l, problem);
    push(l, TP_JINJA_TOKEN_STRING, text, end + 1);
}

static void lex_operator(lexer *l)
{
    static const char *const operators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                            "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                            ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    const char *op = NULL;
    for (size_t i = 0; i < TP_COUNTOF(operators) && !op; i++)
        if (starts(l, l->at, operators[i]))
            op = operators[i];
    unsigned char c = (unsigned char)at(l, l->at);
    if (!op)
        tp_jinja_syntax_error(
            l->p, l->line,
            c >= 32 && c < 127 ? "unexpected character '%c'" : "unexpected byte 0x%02x", c);
    char close = *op == '(' ? ')' : *op == '[' ? ']' : *op == '{' ? '}' : 0;
    if (close) {
        if (l->n_brackets == MAX_BRACKETS)
            fail(l, "brackets are nested too deep");
        l->brackets[l->n_brackets++] = close;
    } else if (strchr(")]}", *op) && (!l->n_brackets || l->brackets[--l->n_brackets] != *op)) {
        fail(l, "a closing bracket that does not match");
    }
    push(l, TP_JINJA_TOKEN_OPERATOR, tp_slice_of(op), l->at + strlen(op));
}

/* Tokens up to and including the tag's end. */
static void lex_tag(lexer *l, bool is_block)
{
    const char *close = is_block ? "%}" : "}}";
    tp_jinja_token_type type = is_block ? TP_JINJA_TOKEN_BLOCK_END : TP_JINJA_TOKEN_PRINT_END;
    l->n_brackets = 0;
    while (l->at < l->text.len) {
        size_t end = l->n_brackets ? 0 : tag_end(l, l->at, close, is_block, is_block);
        if (end) {
            push(l, type, tp_slice_of(close), end);
            return;
        }
        if ((end = skip_space(l, l->at)) > l->at)
            advance(l, end);
        else if ((end = float_end(l)) != 0)
            lex_float(l, end);
        else if (tp_python_digit(at(l, l->at)) < 10)
            lex_integer(l);
        else if ((end = name_end(l)) > l->at)
            push(l, TP_JINJA_TOKEN_NAME, between(l, l->at, end), end);
        else if (at(l, l->at) == '\'' || at(l, l->at) == '"')
            lex_string(l);
        else
            lex_operator(l);
    }
}

/* Text up to the next tag, and that tag. */
static void lex_once(lexer *l)
{
    size_t tag = l->at;
    while (tag < l->text.len &&
           !(starts(l, tag, "{%") || starts(l, tag, "{{") || starts(l, tag, "{#")))
        tag++;
    if (tag == l->text.len) {
        push(l, TP_JINJA_TOKEN_DATA, between(l, l->at, tag), tag);
        return;
    }
    char kind = at(l, tag + 1);
    size_t raw_end = raw_tag(l, tag, "raw", false);
    size_t inner = tag + 2 + (sign_at(l, tag + 2) != 0);
    push_data(l, tag, raw_end ? raw_end : inner);
    if (raw_end || kind == '#') {
        lex_until_end(l, raw_end != 0);
    } else {
        bool is_block = kind == '%';
        push(l, is_block ? TP_JINJA_TOKEN_BLOCK_BEGIN : TP_JINJA_TOKEN_PRINT_BEGIN, TP_SLICE(""),
             inner);
        lex_tag(l, is_block);
    }
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

void tp_jinja_lex(tp_jinja_parser *p, const char *text, size_t n)
{
    lexer l = {
        .p = p, .text = normalise_lines(&p->t->arena, text, n), .line = 1, .at_line_start = true};
    while (l.at < l.text.len)
        lex_once(&l);
    push(&l, TP_JINJA_TOKEN_EOF, TP_SLICE(""), l.at);
}
