/* jinja_parse_expr.c - expressions, loosest first:
 *
 *     x if y else z, or, and, not, comparisons and in, + -, ~, * / // %, **,
 *     unary + -, then what follows a value (jinja_parse_postfix.c)
 *
 * Operators of one level form one flat node, so that a long sum is not a deep
 * tree. */
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja.h"

static tp_status parse_unary(tp_jinja_parser *p, bool with_filters, tp_jinja_node **ret);

typedef tp_status (*level)(tp_jinja_parser *p, tp_jinja_node **ret);

/* `next` op `next` op ... with any of the operators; one operand is itself. */
static tp_status parse_chain(tp_jinja_parser *p, level next, tp_jinja_node_kind kind,
                             const char *const *operators, const uint8_t *ops, tp_jinja_node **ret)
{
    enum { FEW = 16 };
    uint8_t few[FEW], *found = few;
    size_t cap = FEW;
    tp_jinja_list list = {0};
    tp_jinja_node *node = NULL;
    uint32_t line = tp_jinja_peek(p)->line;
    TP_TRY(next(p, &node));
    for (;;) {
        size_t i = 0;
        while (operators[i] && !tp_jinja_is_op(p, operators[i]))
            i++;
        if (!operators[i])
            break;
        if (list.n == 0)
            tp_jinja_push(p, &list, node);
        if (list.n == cap) {
            uint8_t *more = tp_arena_array(&p->t->arena, uint8_t, 2 * cap);
            memcpy(more, found, cap);
            found = more;
            cap *= 2;
        }
        found[list.n - 1] = ops ? ops[i] : 0;
        p->at++;
        TP_TRY(next(p, &node));
        tp_jinja_push(p, &list, node);
    }
    if (list.n) {
        node = tp_jinja_new_list(p, kind, line, &list);
        node->ops = tp_arena_array(&p->t->arena, uint8_t, list.n);
        memcpy(node->ops, found, list.n - 1);
    }
    *ret = node;
    return TP_OK;
}

static tp_status parse_operand(tp_jinja_parser *p, tp_jinja_node **ret)
{
    return parse_unary(p, true, ret);
}

static tp_status parse_power(tp_jinja_parser *p, tp_jinja_node **ret)
{
    static const char *const operators[] = {"**", NULL};
    static const uint8_t ops[] = {TP_JINJA_OP_POW};
    return parse_chain(p, parse_operand, TP_JINJA_NODE_CHAIN, operators, ops, ret);
}

static tp_status parse_product(tp_jinja_parser *p, tp_jinja_node **ret)
{
    static const char *const operators[] = {"*", "/", "//", "%", NULL};
    static const uint8_t ops[] = {TP_JINJA_OP_MUL, TP_JINJA_OP_DIV, TP_JINJA_OP_FLOORDIV,
                                  TP_JINJA_OP_MOD};
    return parse_chain(p, parse_power, TP_JINJA_NODE_CHAIN, operators, ops, ret);
}

static tp_status parse_concat(tp_jinja_parser *p, tp_jinja_node **ret)
{
    static const char *const operators[] = {"~", NULL};
    return parse_chain(p, parse_product, TP_JINJA_NODE_CONCAT, operators, NULL, ret);
}

static tp_status parse_sum(tp_jinja_parser *p, tp_jinja_node **ret)
{
    static const char *const operators[] = {"+", "-", NULL};
    static const uint8_t ops[] = {TP_JINJA_OP_ADD, TP_JINJA_OP_SUB};
    return parse_chain(p, parse_concat, TP_JINJA_NODE_CHAIN, operators, ops, ret);
}

/* The comparison at the current place, which is taken; false when there is none. */
static bool take_comparison(tp_jinja_parser *p, uint8_t *ret)
{
    static const char *const operators[] = {"==", "!=", "<", "<=", ">", ">="};
    for (size_t i = 0; i < TP_COUNTOF(operators); i++)
        if (tp_jinja_skip_op(p, operators[i])) {
            *ret = (uint8_t)(TP_JINJA_OP_EQ + i);
            return true;
        }
    if (tp_jinja_skip_name(p, "in")) {
        *ret = TP_JINJA_OP_IN;
        return true;
    }
    const tp_jinja_token *next = &p->tokens[p->at + 1 < p->n_tokens ? p->at + 1 : p->at];
    if (tp_jinja_is_name(p, "not") && next->type == TP_JINJA_TOKEN_NAME &&
        tp_slice_is(next->text, "in")) {
        p->at += 2;
        *ret = TP_JINJA_OP_NOT_IN;
        return true;
    }
    return false;
}

static tp_status parse_compare(tp_jinja_parser *p, tp_jinja_node **ret)
{
    uint32_t line = tp_jinja_peek(p)->line;
    tp_jinja_node *node = NULL;
    tp_jinja_list list = {0};
    uint8_t op = 0, ops[TP_JINJA_MAX_NESTING];
    TP_TRY(parse_sum(p, &node));
    tp_jinja_push(p, &list, node);
    while (take_comparison(p, &op)) {
        if (list.n == TP_JINJA_MAX_NESTING)
            return tp_jinja_syntax_error(p, line, "more than %d comparisons in a row",
                                         TP_JINJA_MAX_NESTING);
        ops[list.n - 1] = op;
        TP_TRY(parse_sum(p, &node));
        tp_jinja_push(p, &list, node);
    }
    *ret = list.items[0];
    if (list.n > 1) {
        *ret = tp_jinja_new_list(p, TP_JINJA_NODE_COMPARE, line, &list);
        (*ret)->ops = tp_arena_array(&p->t->arena, uint8_t, list.n);
        memcpy((*ret)->ops, ops, list.n - 1);
    }
    return TP_OK;
}

static tp_status parse_not(tp_jinja_parser *p, tp_jinja_node **ret)
{
    uint32_t line = tp_jinja_peek(p)->line;
    if (!tp_jinja_skip_name(p, "not"))
        return parse_compare(p, ret);
    TP_TRY(tp_jinja_deeper(p));
    *ret = tp_jinja_new(p, TP_JINJA_NODE_NOT, line, 1);
    TP_TRY(parse_not(p, &(*ret)->kids[0]));
    p->depth--;
    return TP_OK;
}

static tp_status parse_logic(tp_jinja_parser *p, const char *word, tp_jinja_node_kind kind,
                             level next, tp_jinja_node **ret)
{
    uint32_t line = tp_jinja_peek(p)->line;
    tp_jinja_list list = {0};
    tp_jinja_node *node = NULL;
    do {
        TP_TRY(next(p, &node));
        tp_jinja_push(p, &list, node);
    } while (tp_jinja_skip_name(p, word));
    *ret = list.n > 1 ? tp_jinja_new_list(p, kind, line, &list) : node;
    return TP_OK;
}

static tp_status parse_and(tp_jinja_parser *p, tp_jinja_node **ret)
{
    return parse_logic(p, "and", TP_JINJA_NODE_AND, parse_not, ret);
}

static tp_status parse_or(tp_jinja_parser *p, tp_jinja_node **ret)
{
    return parse_logic(p, "or", TP_JINJA_NODE_OR, parse_and, ret);
}

/* "a if b" without else is a value of its own, which another "if" may follow. */
static tp_status parse_condition(tp_jinja_parser *p, tp_jinja_node **ret)
{
    uint32_t line = tp_jinja_peek(p)->line;
    tp_jinja_list list = {0};
    tp_jinja_node *value = NULL, *condition = NULL;
    TP_TRY(parse_or(p, &value));
    while (tp_jinja_skip_name(p, "if")) {
        TP_TRY(parse_or(p, &condition));
        if (tp_jinja_skip_name(p, "else")) {
            tp_jinja_push(p, &list, value);
            tp_jinja_push(p, &list, condition);
            TP_TRY(parse_or(p, &value));
            continue;
        }
        tp_jinja_node *alone = tp_jinja_new(p, TP_JINJA_NODE_COND, line, 2);
        alone->kids[0] = value;
        alone->kids[1] = condition;
        value = alone;
    }
    if (list.n) {
        tp_jinja_push(p, &list, value);
        value = tp_jinja_new_list(p, TP_JINJA_NODE_COND, line, &list);
    }
    *ret = value;
    return TP_OK;
}

tp_status tp_jinja_parse_expression(tp_jinja_parser *p, tp_jinja_node **ret)
{
    TP_TRY(tp_jinja_deeper(p));
    TP_TRY(parse_condition(p, ret));
    p->depth--;
    return TP_OK;
}

static bool is_tuple_end(const tp_jinja_parser *p)
{
    const tp_jinja_token *token = tp_jinja_peek(p);
    return token->type == TP_JINJA_TOKEN_PRINT_END || token->type == TP_JINJA_TOKEN_BLOCK_END ||
           tp_jinja_is_op(p, ")");
}

static tp_status parse_element(tp_jinja_parser *p, tp_jinja_tuple_options options,
                               tp_jinja_node **ret)
{
    if (options.simple)
        return tp_jinja_parse_primary(p, options.with_namespace, ret);
    if (!options.no_condition)
        return tp_jinja_parse_expression(p, ret);
    TP_TRY(tp_jinja_deeper(p));
    TP_TRY(parse_or(p, ret));
    p->depth--;
    return TP_OK;
}

tp_status tp_jinja_parse_tuple(tp_jinja_parser *p, tp_jinja_tuple_options options,
                               tp_jinja_node **ret)
{
    uint32_t line = tp_jinja_peek(p)->line;
    tp_jinja_list list = {0};
    tp_jinja_node *node = NULL;
    bool is_tuple = false;
    for (;;) {
        if (list.n)
            TP_TRY(tp_jinja_expect_op(p, ","));
        if (is_tuple_end(p))
            break;
        TP_TRY(parse_element(p, options, &node));
        tp_jinja_push(p, &list, node);
        if (!tp_jinja_is_op(p, ","))
            break;
        is_tuple = true;
    }
    if (!is_tuple && list.n) {
        *ret = list.items[0];
        return TP_OK;
    }
    if (!is_tuple && !options.parenthesised)
        return tp_jinja_syntax_error(p, line, "an expression is expected here");
    *ret = tp_jinja_new_list(p, TP_JINJA_NODE_TUPLE, line, &list);
    return TP_OK;
}

static tp_status parse_list(tp_jinja_parser *p, uint32_t line, tp_jinja_node **ret)
{
    tp_jinja_list list = {0};
    tp_jinja_node *node = NULL;
    while (!tp_jinja_is_op(p, "]")) {
        if (list.n) {
            TP_TRY(tp_jinja_expect_op(p, ","));
            if (tp_jinja_is_op(p, "]"))
                break;
        }
        TP_TRY(tp_jinja_parse_expression(p, &node));
        tp_jinja_push(p, &list, node);
    }
    *ret = tp_jinja_new_list(p, TP_JINJA_NODE_LIST, line, &list);
    return tp_jinja_expect_op(p, "]");
}

static tp_status parse_dict(tp_jinja_parser *p, uint32_t line, tp_jinja_node **ret)
{
    tp_jinja_list list = {0};
    tp_jinja_node *node = NULL;
    while (!tp_jinja_is_op(p, "}")) {
        if (list.n) {
            TP_TRY(tp_jinja_expect_op(p, ","));
            if (tp_jinja_is_op(p, "}"))
                break;
        }
        TP_TRY(tp_jinja_parse_expression(p, &node));
        tp_jinja_push(p, &list, node);
        TP_TRY(tp_jinja_expect_op(p, ":"));
        TP_TRY(tp_jinja_parse_expression(p, &node));
        tp_jinja_push(p, &list, node);
    }
    *ret = tp_jinja_new_list(p, TP_JINJA_NODE_DICT, line, &list);
    return tp_jinja_expect_op(p, "}");
}

static void note_special_name(tp_jinja_parser *p, uint32_t symbol)
{
    if (!p->uses_caller)
        return;
    *p->uses_caller |= symbol == p->t->symbol_caller;
    *p->uses_varargs |= symbol == p->t->symbol_varargs;
    *p->uses_kwargs |= symbol == p->t->symbol_kwargs;
}

static tp_status parse_name(tp_jinja_parser *p, bool with_namespace, tp_jinja_node **ret)
{
    const tp_jinja_token *token = &p->tokens[p->at++];
    tp_slice name = token->text;
    bool is_true = tp_slice_is(name, "true") || tp_slice_is(name, "True");
    if (is_true || tp_slice_is(name, "false") || tp_slice_is(name, "False")) {
        *ret = tp_jinja_new_const(p, token->line, tp_any_bool(is_true));
        return TP_OK;
    }
    if (tp_slice_is(name, "none") || tp_slice_is(name, "None")) {
        *ret = tp_jinja_new_const(p, token->line, tp_any_none());
        return TP_OK;
    }
    bool is_reference = with_namespace && tp_jinja_skip_op(p, ".");
    *ret = tp_jinja_new(p, is_reference ? TP_JINJA_NODE_NSREF : TP_JINJA_NODE_NAME, token->line, 0);
    (*ret)->symbol = tp_jinja_symbol(p, name);
    if (is_reference)
        return tp_jinja_expect_name(p, &(*ret)->text);
    note_special_name(p, (*ret)->symbol);
    return TP_OK;
}

/* Strings next to each other are one. */
static void parse_strings(tp_jinja_parser *p, tp_jinja_node **ret)
{
    const tp_jinja_token *first = tp_jinja_peek(p);
    size_t n = 0, end = p->at;
    for (; p->tokens[end].type == TP_JINJA_TOKEN_STRING; end++)
        n += p->tokens[end].text.len;
    char *text = tp_arena_array(&p->t->arena, char, n + 1);
    n = 0;
    for (; p->at < end; p->at++) {
        tp_slice part = p->tokens[p->at].text;
        if (part.len)
            memcpy(text + n, part.data, part.len);
        n += part.len;
    }
    *ret = tp_jinja_new_const(p, first->line, tp_any_text(text, n));
}

tp_status tp_jinja_parse_primary(tp_jinja_parser *p, bool with_namespace, tp_jinja_node **ret)
{
    const tp_jinja_token *token = tp_jinja_peek(p);
    switch (token->type) {
    case TP_JINJA_TOKEN_NAME:
        return parse_name(p, with_namespace, ret);
    case TP_JINJA_TOKEN_STRING:
        parse_strings(p, ret);
        return TP_OK;
    case TP_JINJA_TOKEN_INTEGER:
    case TP_JINJA_TOKEN_FLOAT:
        p->at++;
        *ret = tp_jinja_new_const(p, token->line, token->value);
        return TP_OK;
    default:
        break;
    }
    if (tp_jinja_skip_op(p, "(")) {
        TP_TRY(tp_jinja_deeper(p));
        TP_TRY(tp_jinja_parse_tuple(p, (tp_jinja_tuple_options){.parenthesised = true}, ret));
        p->depth--;
        return tp_jinja_expect_op(p, ")");
    }
    if (tp_jinja_skip_op(p, "["))
        return parse_list(p, token->line, ret);
    if (tp_jinja_skip_op(p, "{"))
        return parse_dict(p, token->line, ret);
    return tp_jinja_syntax_error(p, token->line, "an expression is expected here");
}

static tp_status parse_unary(tp_jinja_parser *p, bool with_filters, tp_jinja_node **ret)
{
    uint32_t line = tp_jinja_peek(p)->line;
    bool minus = tp_jinja_skip_op(p, "-"), plus = !minus && tp_jinja_skip_op(p, "+");
    tp_jinja_node *node = NULL;
    if (minus || plus) {
        TP_TRY(tp_jinja_deeper(p));
        node = tp_jinja_new(p, minus ? TP_JINJA_NODE_NEGATE : TP_JINJA_NODE_PLUS, line, 1);
        TP_TRY(parse_unary(p, false, &node->kids[0]));
        p->depth--;
    } else {
        TP_TRY(tp_jinja_parse_primary(p, false, &node));
    }
    TP_TRY(tp_jinja_parse_postfix(p, node, &node));
    if (with_filters)
        TP_TRY(tp_jinja_parse_filters_and_tests(p, node, &node));
    *ret = node;
    return TP_OK;
}
