/* expression.c - arithmetic by precedence, with two stacks instead of recursion. */
#include <string.h>

#include "base/platform.h"
#include "engine/reward/countdown.h"

enum { MOST_OPERATORS = 4 * TP_EXPRESSION_DEPTH, LARGEST_NUMBER_DIGITS = 15 };

/* Operators by one letter: + - * / and ( as they are, 'n' for a minus in front. */
typedef struct {
    tp_slice text;
    size_t at;
    tp_rational values[TP_EXPRESSION_NUMBERS];
    int n_values;
    char operators[MOST_OPERATORS];
    int n_operators, depth;
    bool lost; /* no exact value from here on */
    tp_expression *out;
    char *why;
} parser;

static bool complain(parser *p, const char *fmt, int place)
{
    snprintf(p->why, 80, fmt, place);
    return false;
}

static int precedence(char op)
{
    return op == 'n' ? 3 : op == '*' || op == '/' ? 2 : op == '+' || op == '-' ? 1 : 0;
}

static void apply(parser *p, char op)
{
    tp_rational *b = &p->values[p->n_values - 1];
    if (op == 'n') {
        b->num = -b->num;
        return;
    }
    tp_rational *a = b - 1, result = {0, 1};
    bool ok = op == '+'   ? tp_rational_add(*a, *b, &result)
              : op == '-' ? tp_rational_sub(*a, *b, &result)
              : op == '*' ? tp_rational_mul(*a, *b, &result)
                          : tp_rational_div(*a, *b, &result);
    p->lost |= !ok;
    *a = result;
    p->n_values--;
}

static void reduce(parser *p, int least)
{
    while (p->n_operators && precedence(p->operators[p->n_operators - 1]) >= least)
        apply(p, p->operators[--p->n_operators]);
}

static bool push(parser *p, char op)
{
    if (p->n_operators == MOST_OPERATORS)
        return complain(p, "more than %d operators are open", MOST_OPERATORS);
    p->operators[p->n_operators++] = op;
    return true;
}

/* One symbol of the text as a letter; 0 at the end, '?' for what has no meaning here. */
static char next_symbol(parser *p, size_t *ret_n)
{
    static const struct {
        const char *text;
        char symbol;
    } words[] = {{"\\times", '*'}, {"\\cdot", '*'}, {"\\div", '/'}, {"\\left", ' '},
                 {"\\right", ' '}, {"×", '*'},      {"·", '*'},     {"÷", '/'},
                 {"−", '-'},       {"[", '('},      {"]", ')'}};
    if (p->at >= p->text.len)
        return *ret_n = 0, 0;
    const char *s = p->text.data + p->at;
    for (size_t i = 0; i < TP_COUNTOF(words); i++) {
        *ret_n = strlen(words[i].text);
        if (p->text.len - p->at >= *ret_n && memcmp(s, words[i].text, *ret_n) == 0)
            return words[i].symbol;
    }
    *ret_n = 1;
    if (*s == ' ' || *s == '\t' || *s == '\n' || *s == '\r' || *s == '$')
        return ' ';
    if (*s >= '0' && *s <= '9')
        return '0';
    return *s && strchr("+-*/()=", *s) ? *s : '?';
}

static bool read_number(parser *p)
{
    int64_t value = 0;
    size_t begin = p->at;
    for (; p->at < p->text.len; p->at++) {
        char c = p->text.data[p->at];
        if (c < '0' || c > '9')
            break;
        if (p->at - begin >= LARGEST_NUMBER_DIGITS)
            return complain(p, "a number has more than %d digits", LARGEST_NUMBER_DIGITS);
        value = value * 10 + (c - '0');
    }
    if (p->out->n_numbers == TP_EXPRESSION_NUMBERS)
        return complain(p, "there are more than %d numbers", TP_EXPRESSION_NUMBERS);
    p->out->numbers[p->out->n_numbers++] = value;
    p->values[p->n_values++] = (tp_rational){value, 1};
    return true;
}

static bool close_bracket(parser *p)
{
    reduce(p, 1);
    if (p->n_operators == 0)
        return complain(p, "a bracket at %d closes none", (int)p->at);
    p->n_operators--; /* the opening one */
    p->depth--;
    return true;
}

/* Where an operand may begin. */
static bool read_operand_part(parser *p, char symbol, size_t n, bool *ret_done)
{
    *ret_done = false;
    if (symbol == '0') {
        *ret_done = true;
        return read_number(p);
    }
    p->at += n;
    if (symbol == '-')
        return push(p, 'n');
    if (symbol == '+')
        return true;
    if (symbol != '(')
        return complain(p, "a number is missing at %d", (int)(p->at - n));
    if (++p->depth > TP_EXPRESSION_DEPTH)
        return complain(p, "brackets are nested deeper than %d", TP_EXPRESSION_DEPTH);
    return push(p, '(');
}

static bool read_operator_part(parser *p, char symbol, size_t n, bool *ret_wants_operand)
{
    *ret_wants_operand = false;
    if (symbol == ')') {
        if (!close_bracket(p))
            return false;
        p->at += n;
        return true;
    }
    if (!precedence(symbol))
        return complain(p, "an operator is missing at %d", (int)p->at);
    reduce(p, precedence(symbol));
    p->at += n;
    *ret_wants_operand = true;
    return push(p, symbol);
}

static bool read_all(parser *p)
{
    bool wants_operand = true, done;
    for (;;) {
        size_t n;
        char symbol = next_symbol(p, &n);
        if (symbol == ' ') {
            p->at += n;
            continue;
        }
        if (symbol == 0 || symbol == '=')
            break;
        if (symbol == '?')
            return complain(p, "the character at %d belongs to no expression", (int)p->at);
        if (wants_operand) {
            if (!read_operand_part(p, symbol, n, &done))
                return false;
            wants_operand = !done;
        } else if (!read_operator_part(p, symbol, n, &wants_operand)) {
            return false;
        }
    }
    if (wants_operand)
        return complain(p, "a number is missing at %d", (int)p->at);
    if (p->depth)
        return complain(p, "%d brackets are not closed", p->depth);
    reduce(p, 1);
    return true;
}

bool tp_expression_read(tp_slice text, tp_expression *ret, char why[80])
{
    tp_expression out = {0};
    parser p = {.text = text, .out = &out, .why = why};
    if (!read_all(&p))
        return false;
    out.has_value = !p.lost;
    out.value = p.lost ? (tp_rational){0, 1} : p.values[0];
    *ret = out;
    return true;
}
