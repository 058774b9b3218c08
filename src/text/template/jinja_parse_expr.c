/* jinja_parse_expr.c - what the parsers share, and expressions, loosest first:
 *
 *     x if y else z, or, and, not, comparisons and in, + -, ~, * / // %, **,
 *     unary + -, then what follows a value: .a [i] [i:j] (args) |filter is test
 *
 * Operators of one level form one flat node, so that a long sum is not a deep
 * tree. */
#include <stdio.h>
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja.h"
#include "text/template/python_text.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* --- tokens looked at and taken, nodes made --- */

void tp_jinja_refuse(tp_jinja_parser *p, tp_status status, uint32_t line, const char *fmt, ...)
{
    char message[400];
    TP_FORMAT(message, fmt);
    p->status = tp_fail(p->err, status, "%s:%u: %s", p->t->name, (unsigned)line, message);
    longjmp(p->failed, 1);
}

const tp_jinja_token *tp_jinja_peek(const tp_jinja_parser *p) { return &p->tokens[p->at]; }

bool tp_jinja_is_op(const tp_jinja_parser *p, const char *op)
{
    const tp_jinja_token *token = tp_jinja_peek(p);
    return token->type == TP_JINJA_TOKEN_OPERATOR && tp_slice_is(token->text, op);
}

bool tp_jinja_is_name(const tp_jinja_parser *p, const char *name)
{
    const tp_jinja_token *token = tp_jinja_peek(p);
    return token->type == TP_JINJA_TOKEN_NAME && tp_slice_is(token->text, name);
}

bool tp_jinja_skip_op(tp_jinja_parser *p, const char *op)
{
    bool is = tp_jinja_is_op(p, op);
    p->at += is;
    return is;
}

bool tp_jinja_skip_name(tp_jinja_parser *p, const char *name)
{
    bool is = tp_jinja_is_name(p, name);
    p->at += is;
    return is;
}

void tp_jinja_unexpected(tp_jinja_parser *p, const char *wanted)
{
    static const char *const names[] = {
        "the end of the template", "text", "'{{'", "'}}'", "'{%'", "'%}'"};
    const tp_jinja_token *token = tp_jinja_peek(p);
    tp_slice found =
        token->type < TP_COUNTOF(names) ? tp_slice_of(names[token->type]) : token->text;
    tp_jinja_syntax_error(p, token->line, "expected %s, got '%.*s'", wanted,
                          (int)TP_MIN(found.len, 60), found.data);
}

void tp_jinja_expect_op(tp_jinja_parser *p, const char *op)
{
    char wanted[16];
    snprintf(wanted, sizeof wanted, "'%s'", op);
    if (!tp_jinja_skip_op(p, op))
        tp_jinja_unexpected(p, wanted);
}

tp_slice tp_jinja_expect_name(tp_jinja_parser *p)
{
    if (tp_jinja_peek(p)->type != TP_JINJA_TOKEN_NAME)
        tp_jinja_unexpected(p, "a name");
    return p->tokens[p->at++].text;
}

tp_jinja_node *tp_jinja_new(tp_jinja_parser *p, tp_jinja_node_kind kind, uint32_t line)
{
    tp_jinja_node *node = tp_arena_new(&p->t->arena, tp_jinja_node);
    node->kind = (uint8_t)kind;
    node->line = line;
    return node;
}

void tp_jinja_push(tp_jinja_parser *p, tp_jinja_node *node, tp_jinja_node *kid)
{
    *TP_ARENA_PUSH(&p->t->arena, node->kids, node->n_kids, node->cap) = kid;
}

/* A node with its first kid. */
static tp_jinja_node *new_over(tp_jinja_parser *p, tp_jinja_node_kind kind, uint32_t line,
                               tp_jinja_node *kid)
{
    tp_jinja_node *node = tp_jinja_new(p, kind, line);
    tp_jinja_push(p, node, kid);
    return node;
}

static tp_jinja_node *new_const(tp_jinja_parser *p, uint32_t line, tp_any value)
{
    tp_jinja_node *node = tp_jinja_new(p, TP_JINJA_NODE_CONST, line);
    node->value = value;
    return node;
}

void tp_jinja_deeper(tp_jinja_parser *p)
{
    if (++p->depth > TP_JINJA_MAX_NESTING)
        tp_jinja_syntax_error(p, tp_jinja_peek(p)->line,
                              "expressions and blocks nest deeper than %d", TP_JINJA_MAX_NESTING);
}

uint32_t tp_jinja_symbol(tp_jinja_parser *p, tp_slice name)
{
    struct tp_template *t = p->t;
    for (size_t slot = XXH3_64bits(name.data, name.len);; slot++) {
        uint32_t *found = &p->slots[slot & (p->n_slots - 1)];
        if (!*found) {
            t->names[t->n_names++] = name;
            *found = t->n_names;
        }
        if (tp_slice_eq(t->names[*found - 1], name))
            return *found - 1;
    }
}

/* --- values --- */

static bool is_tuple_end(const tp_jinja_parser *p)
{
    const tp_jinja_token *token = tp_jinja_peek(p);
    return token->type == TP_JINJA_TOKEN_PRINT_END || token->type == TP_JINJA_TOKEN_BLOCK_END ||
           tp_jinja_is_op(p, ")");
}

/* "[a, b]" or "{a: b, c: d}" after its bracket. */
static tp_jinja_node *parse_items(tp_jinja_parser *p, uint32_t line, bool is_dict)
{
    const char *close = is_dict ? "}" : "]";
    tp_jinja_node *node = tp_jinja_new(p, is_dict ? TP_JINJA_NODE_DICT : TP_JINJA_NODE_LIST, line);
    while (!tp_jinja_skip_op(p, close)) {
        if (node->n_kids) {
            tp_jinja_expect_op(p, ",");
            if (tp_jinja_skip_op(p, close))
                break;
        }
        tp_jinja_push(p, node, tp_jinja_parse_expression(p));
        if (is_dict) {
            tp_jinja_expect_op(p, ":");
            tp_jinja_push(p, node, tp_jinja_parse_expression(p));
        }
    }
    return node;
}

static tp_jinja_node *parse_name(tp_jinja_parser *p, bool with_namespace)
{
    uint32_t line = tp_jinja_peek(p)->line;
    tp_slice name = tp_jinja_expect_name(p);
    int constant = tp_python_word("none None false False true True", name);
    if (constant >= 0)
        return new_const(p, line, constant < 2 ? tp_any_none() : tp_any_bool(constant > 3));
    bool is_reference = with_namespace && tp_jinja_skip_op(p, ".");
    tp_jinja_node *node =
        tp_jinja_new(p, is_reference ? TP_JINJA_NODE_NSREF : TP_JINJA_NODE_NAME, line);
    node->symbol = tp_jinja_symbol(p, name);
    if (is_reference) {
        node->text = tp_jinja_expect_name(p);
    } else if (p->macro) {
        p->macro->uses_caller |= node->symbol == p->t->symbol_caller;
        p->macro->uses_varargs |= node->symbol == p->t->symbol_varargs;
        p->macro->uses_kwargs |= node->symbol == p->t->symbol_kwargs;
    }
    return node;
}

/* Strings next to each other are one. */
static tp_jinja_node *parse_strings(tp_jinja_parser *p)
{
    uint32_t line = tp_jinja_peek(p)->line;
    size_t n = 0, end = p->at;
    for (; p->tokens[end].type == TP_JINJA_TOKEN_STRING; end++)
        n += p->tokens[end].text.len;
    char *text = tp_arena_array(&p->t->arena, char, n + 1), *out = text;
    for (; p->at < end; p->at++) {
        tp_slice part = p->tokens[p->at].text;
        if (part.len)
            out = mempcpy(out, part.data, part.len);
    }
    return new_const(p, line, tp_any_text((tp_slice){text, n}));
}

static tp_jinja_node *parse_primary(tp_jinja_parser *p, bool with_namespace)
{
    const tp_jinja_token *token = tp_jinja_peek(p);
    if (token->type == TP_JINJA_TOKEN_NAME)
        return parse_name(p, with_namespace);
    if (token->type == TP_JINJA_TOKEN_STRING)
        return parse_strings(p);
    if (token->type == TP_JINJA_TOKEN_NUMBER) {
        p->at++;
        return new_const(p, token->line, token->value);
    }
    if (tp_jinja_skip_op(p, "(")) {
        tp_jinja_deeper(p);
        tp_jinja_node *node =
            tp_jinja_parse_tuple(p, (tp_jinja_tuple_options){.parenthesised = true});
        p->depth--;
        tp_jinja_expect_op(p, ")");
        return node;
    }
    bool is_list = tp_jinja_skip_op(p, "[");
    if (!is_list && !tp_jinja_skip_op(p, "{"))
        tp_jinja_syntax_error(p, token->line, "an expression is expected here");
    return parse_items(p, token->line, !is_list);
}

/* --- what follows a value --- */

/* "[a]", "[a, b]", "[a:b:c]" after its bracket. */
static tp_jinja_node *parse_subscript(tp_jinja_parser *p, uint32_t line, tp_jinja_node *object)
{
    tp_jinja_node *keys = tp_jinja_new(p, TP_JINJA_NODE_TUPLE, line), *slice = NULL;
    while (!tp_jinja_skip_op(p, "]")) {
        if (keys->n_kids)
            tp_jinja_expect_op(p, ",");
        tp_jinja_node *part = tp_jinja_is_op(p, ":") ? NULL : tp_jinja_parse_expression(p);
        tp_jinja_push(p, keys, part);
        if (tp_jinja_is_op(p, ":")) {
            slice = new_over(p, TP_JINJA_NODE_SLICE, line, object);
            tp_jinja_push(p, slice, part);
        }
        while (slice && slice->n_kids < 4) {
            bool is_there = tp_jinja_skip_op(p, ":") && !tp_jinja_is_op(p, ":") &&
                            !tp_jinja_is_op(p, "]") && !tp_jinja_is_op(p, ",");
            tp_jinja_push(p, slice, is_there ? tp_jinja_parse_expression(p) : NULL);
        }
        if (slice && keys->n_kids > 1)
            tp_jinja_refuse(p, TP_ERR_UNSUPPORTED, line,
                            "a slice among several subscripts is not supported");
    }
    if (slice)
        return slice;
    tp_jinja_node *item = new_over(p, TP_JINJA_NODE_ITEM, line, object);
    tp_jinja_push(p, item, keys->n_kids == 1 ? keys->kids[0] : keys);
    return item;
}

static tp_jinja_node *parse_attribute(tp_jinja_parser *p, uint32_t line, tp_jinja_node *object)
{
    const tp_jinja_token *token = tp_jinja_peek(p);
    if (token->type == TP_JINJA_TOKEN_NUMBER && token->value.type == TP_ANY_INT) {
        tp_jinja_node *item = new_over(p, TP_JINJA_NODE_ITEM, line, object);
        p->at++;
        tp_jinja_push(p, item, new_const(p, token->line, token->value));
        return item;
    }
    tp_jinja_node *node = new_over(p, TP_JINJA_NODE_ATTR, line, object);
    node->text = tp_jinja_expect_name(p);
    return node;
}

/* Behind "(": the arguments, as further kids of a call, filter or test. */
static void parse_args(tp_jinja_parser *p, tp_jinja_node *call)
{
    uint32_t line = tp_jinja_peek(p)->line;
    bool has_args = false, has_keyword = false, has_keywords = false;
    tp_jinja_deeper(p);
    for (bool first = true; !tp_jinja_is_op(p, ")"); first = false) {
        if (!first) {
            tp_jinja_expect_op(p, ",");
            if (tp_jinja_is_op(p, ")"))
                break;
        }
        const tp_jinja_token *token = tp_jinja_peek(p), *next = token + 1;
        bool valid = !has_keywords;
        tp_jinja_node *arg = NULL;
        if (tp_jinja_skip_op(p, "*")) {
            valid = valid && !has_args;
            has_args = true;
            arg = tp_jinja_new(p, TP_JINJA_NODE_ARGS, line);
        } else if (tp_jinja_skip_op(p, "**")) {
            has_keywords = true;
            arg = tp_jinja_new(p, TP_JINJA_NODE_KEYWORDS, line);
        } else if (token->type == TP_JINJA_TOKEN_NAME && next->type == TP_JINJA_TOKEN_OPERATOR &&
                   tp_slice_is(next->text, "=")) {
            has_keyword = true;
            p->at += 2;
            arg = tp_jinja_new(p, TP_JINJA_NODE_KEYWORD, line);
            arg->text = token->text;
        } else {
            valid = valid && !has_args && !has_keyword;
        }
        tp_jinja_node *value = tp_jinja_parse_expression(p);
        if (!valid)
            tp_jinja_syntax_error(p, line, "arguments in an order that is not allowed");
        if (arg)
            tp_jinja_push(p, arg, value);
        tp_jinja_push(p, call, arg ? arg : value);
    }
    tp_jinja_expect_op(p, ")");
    p->depth--;
}

static tp_jinja_node *parse_call(tp_jinja_parser *p, uint32_t line, tp_jinja_node *callee)
{
    tp_jinja_node *call = new_over(p, TP_JINJA_NODE_CALL, line, callee);
    parse_args(p, call);
    return call;
}

static tp_jinja_node *parse_postfix(tp_jinja_parser *p, tp_jinja_node *node)
{
    for (;;) {
        uint32_t line = tp_jinja_peek(p)->line;
        if (tp_jinja_skip_op(p, "."))
            node = parse_attribute(p, line, node);
        else if (tp_jinja_skip_op(p, "["))
            node = parse_subscript(p, line, node);
        else if (tp_jinja_skip_op(p, "("))
            node = parse_call(p, line, node);
        else
            return node;
    }
}

/* "name" or "name.name" of a filter or test. */
static tp_slice parse_dotted(tp_jinja_parser *p)
{
    tp_slice name = tp_jinja_expect_name(p);
    while (tp_jinja_skip_op(p, ".")) {
        tp_slice more = tp_jinja_expect_name(p);
        name = tp_slice_of(tp_arena_printf(&p->t->arena, "%.*s.%.*s", (int)name.len, name.data,
                                           (int)more.len, more.data));
    }
    return name;
}

tp_jinja_node *tp_jinja_parse_filters(tp_jinja_parser *p, tp_jinja_node *node)
{
    while (tp_jinja_skip_op(p, "|")) {
        node = new_over(p, TP_JINJA_NODE_FILTER, tp_jinja_peek(p)->line, node);
        node->text = parse_dotted(p);
        if (p->n_ifs == 0 && !tp_jinja_has_filter(node->text))
            tp_jinja_syntax_error(p, node->line, "there is no filter '%.*s'", (int)node->text.len,
                                  node->text.data);
        if (tp_jinja_skip_op(p, "("))
            parse_args(p, node);
    }
    return node;
}

/* A test may take one argument without parentheses. */
static bool test_argument_follows(const tp_jinja_parser *p)
{
    const tp_jinja_token *token = tp_jinja_peek(p);
    if (token->type == TP_JINJA_TOKEN_NAME)
        return tp_python_word("else or and", token->text) < 0;
    return token->type == TP_JINJA_TOKEN_STRING || token->type == TP_JINJA_TOKEN_NUMBER ||
           tp_jinja_is_op(p, "[") || tp_jinja_is_op(p, "{");
}

static tp_jinja_node *parse_test(tp_jinja_parser *p, uint32_t line, tp_jinja_node *node)
{
    bool negated = tp_jinja_skip_name(p, "not");
    tp_jinja_node *test = new_over(p, TP_JINJA_NODE_TEST, line, node);
    test->text = parse_dotted(p);
    if (p->n_ifs == 0 && !tp_jinja_has_test(test->text))
        tp_jinja_syntax_error(p, line, "there is no test '%.*s'", (int)test->text.len,
                              test->text.data);
    if (tp_jinja_skip_op(p, "(")) {
        parse_args(p, test);
    } else if (test_argument_follows(p)) {
        if (tp_jinja_is_name(p, "is"))
            tp_jinja_syntax_error(p, line, "tests cannot be chained with 'is'");
        tp_jinja_deeper(p);
        tp_jinja_push(p, test, parse_postfix(p, parse_primary(p, false)));
        p->depth--;
    }
    return negated ? new_over(p, TP_JINJA_NODE_NOT, line, test) : test;
}

static tp_jinja_node *parse_filters_and_tests(tp_jinja_parser *p, tp_jinja_node *node)
{
    for (;;) {
        uint32_t line = tp_jinja_peek(p)->line;
        if (tp_jinja_is_op(p, "|"))
            node = tp_jinja_parse_filters(p, node);
        else if (tp_jinja_skip_name(p, "is"))
            node = parse_test(p, line, node);
        else if (tp_jinja_skip_op(p, "("))
            node = parse_call(p, line, node);
        else
            return node;
    }
}

static tp_jinja_node *parse_unary(tp_jinja_parser *p, bool with_filters)
{
    uint32_t line = tp_jinja_peek(p)->line;
    bool minus = tp_jinja_skip_op(p, "-");
    tp_jinja_node *node;
    if (minus || tp_jinja_skip_op(p, "+")) {
        tp_jinja_deeper(p);
        node = new_over(p, minus ? TP_JINJA_NODE_NEGATE : TP_JINJA_NODE_PLUS, line,
                        parse_unary(p, false));
        p->depth--;
    } else {
        node = parse_primary(p, false);
    }
    node = parse_postfix(p, node);
    return with_filters ? parse_filters_and_tests(p, node) : node;
}

/* --- operators --- */

/* Loosest first; the ops of a level follow each other as its words do. */
static const struct {
    tp_jinja_node_kind kind;
    const char *words;
    tp_jinja_op first;
} levels[] = {{TP_JINJA_NODE_OR, "or", 0},
              {TP_JINJA_NODE_AND, "and", 0},
              {TP_JINJA_NODE_COMPARE, "== != < <= > >= in not", TP_JINJA_OP_EQ},
              {TP_JINJA_NODE_CHAIN, "+ -", TP_JINJA_OP_ADD},
              {TP_JINJA_NODE_CONCAT, "~", 0},
              {TP_JINJA_NODE_CHAIN, "* / // %", TP_JINJA_OP_MUL},
              {TP_JINJA_NODE_CHAIN, "**", TP_JINJA_OP_POW}};

/* The operator at the current place, which is taken, as the place of its word; -1: none. */
static int take_operator(tp_jinja_parser *p, const char *words)
{
    const tp_jinja_token *token = tp_jinja_peek(p);
    bool may_be = token->type == TP_JINJA_TOKEN_NAME || token->type == TP_JINJA_TOKEN_OPERATOR;
    int found = may_be ? tp_python_word(words, token->text) : -1;
    bool is_not = found >= 0 && tp_slice_is(token->text, "not");
    if (is_not && !(token[1].type == TP_JINJA_TOKEN_NAME && tp_slice_is(token[1].text, "in")))
        return -1;
    p->at += found < 0 ? 0 : is_not ? 2 : 1;
    return found;
}

/* Operands of a level with its operators between them; one operand is itself. */
static tp_jinja_node *parse_level(tp_jinja_parser *p, size_t level)
{
    if (level == TP_COUNTOF(levels))
        return parse_unary(p, true);
    uint32_t line = tp_jinja_peek(p)->line;
    if (levels[level].kind == TP_JINJA_NODE_COMPARE && tp_jinja_skip_name(p, "not")) {
        tp_jinja_deeper(p);
        tp_jinja_node *negated = new_over(p, TP_JINJA_NODE_NOT, line, parse_level(p, level));
        p->depth--;
        return negated;
    }
    tp_jinja_node *first = parse_level(p, level + 1), *chain = NULL;
    for (int op; (op = take_operator(p, levels[level].words)) >= 0;) {
        chain = chain ? chain : new_over(p, levels[level].kind, line, first);
        tp_jinja_node *operand = parse_level(p, level + 1);
        operand->op = (uint8_t)((int)levels[level].first + op);
        tp_jinja_push(p, chain, operand);
    }
    return chain ? chain : first;
}

/* "a if b" without else is a value of its own, which another "if" may follow. */
static tp_jinja_node *parse_condition(tp_jinja_parser *p)
{
    uint32_t line = tp_jinja_peek(p)->line;
    tp_jinja_node *chain = NULL, *value = parse_level(p, 0);
    while (tp_jinja_skip_name(p, "if")) {
        tp_jinja_node *condition = parse_level(p, 0);
        if (tp_jinja_skip_name(p, "else")) {
            chain = chain ? chain : tp_jinja_new(p, TP_JINJA_NODE_COND, line);
            tp_jinja_push(p, chain, value);
            tp_jinja_push(p, chain, condition);
            value = parse_level(p, 0);
        } else {
            value = new_over(p, TP_JINJA_NODE_COND, line, value);
            tp_jinja_push(p, value, condition);
        }
    }
    if (!chain)
        return value;
    tp_jinja_push(p, chain, value);
    return chain;
}

tp_jinja_node *tp_jinja_parse_expression(tp_jinja_parser *p)
{
    tp_jinja_deeper(p);
    tp_jinja_node *node = parse_condition(p);
    p->depth--;
    return node;
}

static tp_jinja_node *parse_element(tp_jinja_parser *p, tp_jinja_tuple_options options)
{
    if (options.simple)
        return parse_primary(p, options.with_namespace);
    if (!options.no_condition)
        return tp_jinja_parse_expression(p);
    tp_jinja_deeper(p);
    tp_jinja_node *node = parse_level(p, 0);
    p->depth--;
    return node;
}

tp_jinja_node *tp_jinja_parse_tuple(tp_jinja_parser *p, tp_jinja_tuple_options options)
{
    tp_jinja_node *tuple = tp_jinja_new(p, TP_JINJA_NODE_TUPLE, tp_jinja_peek(p)->line);
    bool is_tuple = false;
    for (;;) {
        if (tuple->n_kids)
            tp_jinja_expect_op(p, ",");
        if (is_tuple_end(p))
            break;
        tp_jinja_push(p, tuple, parse_element(p, options));
        if (!tp_jinja_is_op(p, ","))
            break;
        is_tuple = true;
    }
    if (!is_tuple && tuple->n_kids)
        return tuple->kids[0];
    if (!is_tuple && !options.parenthesised)
        tp_jinja_syntax_error(p, tuple->line, "an expression is expected here");
    return tuple;
}
