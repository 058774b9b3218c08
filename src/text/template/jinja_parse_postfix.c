/* jinja_parse_postfix.c - what follows a value: .a [i] [i:j] (args) |filter is test. */
#include <string.h>

#include "text/template/jinja.h"

/* "[a]", "[a, b]", "[a:b:c]" after its bracket. */
static tp_status parse_subscript(tp_jinja_parser *p, uint32_t line, tp_jinja_node *object,
                                 tp_jinja_node **ret)
{
    tp_jinja_list list = {0};
    tp_jinja_node *parts[3] = {0};
    bool is_slice = false;
    while (!tp_jinja_is_op(p, "]")) {
        if (list.n)
            TP_TRY(tp_jinja_expect_op(p, ","));
        size_t n = 0;
        for (;;) {
            bool ends =
                tp_jinja_is_op(p, ":") || (n && (tp_jinja_is_op(p, "]") || tp_jinja_is_op(p, ",")));
            parts[n] = NULL;
            if (!ends)
                TP_TRY(p->expression(p, &parts[n]));
            n++;
            if (n == 3 || !tp_jinja_skip_op(p, ":"))
                break;
            is_slice = true;
        }
        tp_jinja_push(p, &list, parts[0]);
        if (is_slice && list.n > 1)
            return tp_fail(p->err, TP_ERR_UNSUPPORTED,
                           "%s:%u: a slice among several subscripts is not supported", p->t->name,
                           (unsigned)line);
    }
    p->at++;
    if (is_slice) {
        *ret = tp_jinja_new(p, TP_JINJA_NODE_SLICE, line, 4);
        memcpy(&(*ret)->kids[1], parts, sizeof parts);
    } else {
        *ret = tp_jinja_new(p, TP_JINJA_NODE_ITEM, line, 2);
        (*ret)->kids[1] =
            list.n == 1 ? list.items[0] : tp_jinja_new_list(p, TP_JINJA_NODE_TUPLE, line, &list);
    }
    (*ret)->kids[0] = object;
    return TP_OK;
}

static tp_status parse_attribute(tp_jinja_parser *p, uint32_t line, tp_jinja_node *object,
                                 tp_jinja_node **ret)
{
    const tp_jinja_token *token = tp_jinja_peek(p);
    if (token->type == TP_JINJA_TOKEN_INTEGER) {
        p->at++;
        *ret = tp_jinja_new(p, TP_JINJA_NODE_ITEM, line, 2);
        (*ret)->kids[1] = tp_jinja_new_const(p, token->line, token->value);
    } else {
        tp_slice name;
        TP_TRY(tp_jinja_expect_name(p, &name));
        *ret = tp_jinja_new(p, TP_JINJA_NODE_ATTR, line, 1);
        (*ret)->text = name;
    }
    (*ret)->kids[0] = object;
    return TP_OK;
}

static void push_keyword(tp_jinja_parser *p, tp_jinja_call *call, tp_jinja_list *values,
                         size_t *cap, tp_slice name, tp_jinja_node *value)
{
    if (call->n_keywords == *cap) {
        size_t more = *cap ? 2 * *cap : 4;
        tp_slice *names = tp_arena_array(&p->t->arena, tp_slice, more);
        if (*cap)
            memcpy(names, call->names, *cap * sizeof *names);
        call->names = names;
        *cap = more;
    }
    call->names[call->n_keywords++] = name;
    tp_jinja_push(p, values, value);
}

/* Arguments after their opening parenthesis. */
static tp_status parse_args(tp_jinja_parser *p, tp_jinja_call *call)
{
    tp_jinja_list args = {0}, values = {0};
    size_t cap = 0;
    uint32_t line = tp_jinja_peek(p)->line;
    bool first = true;
    for (; !tp_jinja_is_op(p, ")"); first = false) {
        if (!first) {
            TP_TRY(tp_jinja_expect_op(p, ","));
            if (tp_jinja_is_op(p, ")"))
                break;
        }
        const tp_jinja_token *token = tp_jinja_peek(p), *next = token + 1;
        bool valid = !call->more_keywords, is_keyword = false;
        tp_jinja_node *value = NULL;
        if (tp_jinja_skip_op(p, "*")) {
            valid = valid && !call->more_args;
            TP_TRY(p->expression(p, &call->more_args));
        } else if (tp_jinja_skip_op(p, "**")) {
            TP_TRY(p->expression(p, &call->more_keywords));
        } else {
            is_keyword = token->type == TP_JINJA_TOKEN_NAME &&
                         next->type == TP_JINJA_TOKEN_OPERATOR && tp_slice_is(next->text, "=");
            valid = valid && (is_keyword || (!call->more_args && call->n_keywords == 0));
            p->at += is_keyword ? 2 : 0;
            TP_TRY(p->expression(p, &value));
        }
        if (!valid)
            return tp_jinja_syntax_error(p, line, "arguments in an order that is not allowed");
        if (is_keyword)
            push_keyword(p, call, &values, &cap, token->text, value);
        else if (value)
            tp_jinja_push(p, &args, value);
    }
    call->args = args.items;
    call->n_args = args.n;
    call->values = values.items;
    return tp_jinja_expect_op(p, ")");
}

static tp_status parse_call(tp_jinja_parser *p, uint32_t line, tp_jinja_node *object,
                            tp_jinja_node **ret)
{
    *ret = tp_jinja_new(p, TP_JINJA_NODE_CALL, line, 1);
    (*ret)->kids[0] = object;
    (*ret)->call = tp_arena_new(&p->t->arena, tp_jinja_call);
    TP_TRY(tp_jinja_deeper(p));
    TP_TRY(parse_args(p, (*ret)->call));
    p->depth--;
    return TP_OK;
}

tp_status tp_jinja_parse_postfix(tp_jinja_parser *p, tp_jinja_node *node, tp_jinja_node **ret)
{
    for (;;) {
        uint32_t line = tp_jinja_peek(p)->line;
        if (tp_jinja_skip_op(p, "."))
            TP_TRY(parse_attribute(p, line, node, &node));
        else if (tp_jinja_skip_op(p, "["))
            TP_TRY(parse_subscript(p, line, node, &node));
        else if (tp_jinja_skip_op(p, "("))
            TP_TRY(parse_call(p, line, node, &node));
        else
            break;
    }
    *ret = node;
    return TP_OK;
}

/* "name" or "name.name" of a filter or test. */
static tp_status parse_dotted(tp_jinja_parser *p, tp_slice *ret)
{
    TP_TRY(tp_jinja_expect_name(p, ret));
    while (tp_jinja_skip_op(p, ".")) {
        tp_slice more;
        TP_TRY(tp_jinja_expect_name(p, &more));
        char *joined = tp_arena_printf(&p->t->arena, "%.*s.%.*s", (int)ret->len, ret->data,
                                       (int)more.len, more.data);
        *ret = tp_slice_of(joined);
    }
    return TP_OK;
}

tp_status tp_jinja_parse_filters(tp_jinja_parser *p, tp_jinja_node *node, bool inline_first,
                                 tp_jinja_node **ret)
{
    while (inline_first || tp_jinja_is_op(p, "|")) {
        p->at += !inline_first;
        inline_first = false;
        tp_jinja_node *filter = tp_jinja_new(p, TP_JINJA_NODE_FILTER, tp_jinja_peek(p)->line, 1);
        filter->kids[0] = node;
        filter->call = tp_arena_new(&p->t->arena, tp_jinja_call);
        TP_TRY(parse_dotted(p, &filter->text));
        if (p->n_ifs == 0 && !tp_jinja_has_filter(filter->text))
            return tp_jinja_syntax_error(p, filter->line, "there is no filter '%.*s'",
                                         (int)filter->text.len, filter->text.data);
        if (tp_jinja_skip_op(p, "(")) {
            TP_TRY(tp_jinja_deeper(p));
            TP_TRY(parse_args(p, filter->call));
            p->depth--;
        }
        node = filter;
    }
    *ret = node;
    return TP_OK;
}

/* A test may take one argument without parentheses. */
static bool test_argument_follows(const tp_jinja_parser *p)
{
    const tp_jinja_token *token = tp_jinja_peek(p);
    if (token->type == TP_JINJA_TOKEN_NAME)
        return !tp_jinja_is_name(p, "else") && !tp_jinja_is_name(p, "or") &&
               !tp_jinja_is_name(p, "and");
    return token->type == TP_JINJA_TOKEN_STRING || token->type == TP_JINJA_TOKEN_INTEGER ||
           token->type == TP_JINJA_TOKEN_FLOAT || tp_jinja_is_op(p, "[") || tp_jinja_is_op(p, "{");
}

static tp_status parse_test(tp_jinja_parser *p, uint32_t line, tp_jinja_node *node,
                            tp_jinja_node **ret)
{
    bool negated = tp_jinja_skip_name(p, "not");
    tp_jinja_node *test = tp_jinja_new(p, TP_JINJA_NODE_TEST, line, 1);
    test->kids[0] = node;
    test->call = tp_arena_new(&p->t->arena, tp_jinja_call);
    TP_TRY(parse_dotted(p, &test->text));
    if (p->n_ifs == 0 && !tp_jinja_has_test(test->text))
        return tp_jinja_syntax_error(p, line, "there is no test '%.*s'", (int)test->text.len,
                                     test->text.data);
    if (tp_jinja_skip_op(p, "(")) {
        TP_TRY(tp_jinja_deeper(p));
        TP_TRY(parse_args(p, test->call));
        p->depth--;
    } else if (test_argument_follows(p)) {
        tp_jinja_list args = {0};
        tp_jinja_node *arg = NULL;
        if (tp_jinja_is_name(p, "is"))
            return tp_jinja_syntax_error(p, line, "tests cannot be chained with 'is'");
        TP_TRY(tp_jinja_deeper(p));
        TP_TRY(p->primary(p, false, &arg));
        TP_TRY(tp_jinja_parse_postfix(p, arg, &arg));
        p->depth--;
        tp_jinja_push(p, &args, arg);
        test->call->args = args.items;
        test->call->n_args = args.n;
    }
    *ret = test;
    if (negated) {
        *ret = tp_jinja_new(p, TP_JINJA_NODE_NOT, line, 1);
        (*ret)->kids[0] = test;
    }
    return TP_OK;
}

tp_status tp_jinja_parse_filters_and_tests(tp_jinja_parser *p, tp_jinja_node *node,
                                           tp_jinja_node **ret)
{
    for (;;) {
        uint32_t line = tp_jinja_peek(p)->line;
        if (tp_jinja_is_op(p, "|"))
            TP_TRY(tp_jinja_parse_filters(p, node, false, &node));
        else if (tp_jinja_skip_name(p, "is"))
            TP_TRY(parse_test(p, line, node, &node));
        else if (tp_jinja_skip_op(p, "("))
            TP_TRY(parse_call(p, line, node, &node));
        else
            break;
    }
    *ret = node;
    return TP_OK;
}
