/* jinja_parse_base.c - tokens looked at and taken, nodes made: what the parsers share. */
#include <stdarg.h>
#include <stdio.h>

#include "base/platform.h"
#include "text/template/jinja.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

tp_status tp_jinja_syntax_error(const tp_jinja_parser *p, uint32_t line, const char *fmt, ...)
{
    char message[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    return tp_fail(p->err, TP_ERR_FORMAT, "%s:%u: %s", p->t->name, (unsigned)line, message);
}

const tp_jinja_token *tp_jinja_peek(const tp_jinja_parser *p) { return &p->tokens[p->at]; }

static bool is_op_token(const tp_jinja_token *token, const char *op)
{
    return token->type == TP_JINJA_TOKEN_OPERATOR && tp_slice_is(token->text, op);
}

static bool is_name_token(const tp_jinja_token *token, const char *name)
{
    return token->type == TP_JINJA_TOKEN_NAME && tp_slice_is(token->text, name);
}

bool tp_jinja_is_op(const tp_jinja_parser *p, const char *op)
{
    return is_op_token(tp_jinja_peek(p), op);
}

bool tp_jinja_is_name(const tp_jinja_parser *p, const char *name)
{
    return is_name_token(tp_jinja_peek(p), name);
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

static const char *describe(const tp_jinja_token *token)
{
    static const char *const names[] = {
        "the end of the template", "text", "'{{'", "'}}'", "'{%'", "'%}'"};
    return token->type < TP_COUNTOF(names) ? names[token->type] : token->text.data;
}

tp_status tp_jinja_unexpected(const tp_jinja_parser *p, const char *wanted)
{
    const tp_jinja_token *token = tp_jinja_peek(p);
    int n = token->type >= TP_JINJA_TOKEN_NAME ? (int)TP_MIN(token->text.len, 60) : 60;
    return tp_jinja_syntax_error(p, token->line, "expected %s, got '%.*s'", wanted, n,
                                 describe(token));
}

tp_status tp_jinja_expect_op(tp_jinja_parser *p, const char *op)
{
    char wanted[16];
    snprintf(wanted, sizeof wanted, "'%s'", op);
    return tp_jinja_skip_op(p, op) ? TP_OK : tp_jinja_unexpected(p, wanted);
}

tp_status tp_jinja_expect_name(tp_jinja_parser *p, tp_slice *ret)
{
    if (tp_jinja_peek(p)->type != TP_JINJA_TOKEN_NAME)
        return tp_jinja_unexpected(p, "a name");
    *ret = p->tokens[p->at++].text;
    return TP_OK;
}

tp_jinja_node *tp_jinja_new(tp_jinja_parser *p, tp_jinja_node_kind kind, uint32_t line,
                            size_t n_kids)
{
    tp_jinja_node *node = tp_arena_new(&p->t->arena, tp_jinja_node);
    node->kind = (uint8_t)kind;
    node->line = line;
    node->n_kids = (uint32_t)n_kids;
    node->kids = tp_arena_array(&p->t->arena, tp_jinja_node *, n_kids);
    return node;
}

void tp_jinja_push(tp_jinja_parser *p, tp_jinja_list *list, tp_jinja_node *node)
{
    *TP_ARENA_PUSH(&p->t->arena, list->items, list->n, list->cap) = node;
}

tp_jinja_node *tp_jinja_new_list(tp_jinja_parser *p, tp_jinja_node_kind kind, uint32_t line,
                                 const tp_jinja_list *list)
{
    tp_jinja_node *node = tp_jinja_new(p, kind, line, 0);
    node->kids = list->items;
    node->n_kids = (uint32_t)list->n;
    return node;
}

tp_status tp_jinja_deeper(tp_jinja_parser *p)
{
    if (++p->depth > TP_JINJA_MAX_NESTING)
        return tp_jinja_syntax_error(p, tp_jinja_peek(p)->line,
                                     "expressions and blocks nest deeper than %d",
                                     TP_JINJA_MAX_NESTING);
    return TP_OK;
}

tp_jinja_node *tp_jinja_new_const(tp_jinja_parser *p, uint32_t line, tp_any value)
{
    tp_jinja_node *node = tp_jinja_new(p, TP_JINJA_NODE_CONST, line, 0);
    node->value = value;
    return node;
}

static void index_name(tp_jinja_parser *p, uint32_t symbol)
{
    tp_slice name = p->t->names[symbol];
    size_t slot = XXH3_64bits(name.data, name.len);
    while (p->index.slots[slot & (p->index.n_slots - 1)])
        slot++;
    p->index.slots[slot & (p->index.n_slots - 1)] = symbol + 1;
}

uint32_t tp_jinja_symbol(tp_jinja_parser *p, tp_slice name)
{
    struct tp_template *t = p->t;
    for (size_t slot = XXH3_64bits(name.data, name.len);; slot++) {
        uint32_t found = p->index.slots[slot & (p->index.n_slots - 1)];
        if (!found)
            break;
        if (tp_slice_eq(t->names[found - 1], name))
            return found - 1;
    }
    t->names[t->n_names] = name;
    index_name(p, t->n_names);
    return t->n_names++;
}
