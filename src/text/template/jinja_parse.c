/* jinja_parse.c - statements. */
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja.h"
#include "text/template/python_text.h"

static void expect_block_end(tp_jinja_parser *p)
{
    if (tp_jinja_peek(p)->type != TP_JINJA_TOKEN_BLOCK_END)
        tp_jinja_unexpected(p, "'%}'");
    p->at++;
}

static tp_jinja_node *parse_statement(tp_jinja_parser *p);

static tp_jinja_node *parse_print(tp_jinja_parser *p, uint32_t line)
{
    tp_jinja_node *node = tp_jinja_new(p, TP_JINJA_NODE_PRINT, line);
    tp_jinja_push(p, node, tp_jinja_parse_tuple(p, (tp_jinja_tuple_options){0}));
    if (tp_jinja_peek(p)->type != TP_JINJA_TOKEN_PRINT_END)
        tp_jinja_unexpected(p, "'}}'");
    p->at++;
    return node;
}

/* Text, prints and statements up to a block that begins with one of the words `ends`, which
 * becomes the current token; up to the end of the template when `ends` is NULL. */
static tp_jinja_node *parse_body(tp_jinja_parser *p, const char *ends)
{
    uint32_t line = ends ? p->tokens[p->at - 1].line : 1; /* of the opening tag */
    tp_jinja_node *body = tp_jinja_new(p, TP_JINJA_NODE_BODY, line), *node;
    for (;;) {
        const tp_jinja_token *token = tp_jinja_peek(p);
        if (token->type == TP_JINJA_TOKEN_EOF) {
            if (!ends)
                return body;
            tp_jinja_syntax_error(p, token->line,
                                  "the template ends where '{%% %.*s %%}' is expected; the "
                                  "block began in line %u",
                                  (int)strcspn(ends, " "), ends, (unsigned)line);
        }
        p->at++;
        if (token->type == TP_JINJA_TOKEN_DATA) {
            node = tp_jinja_new(p, TP_JINJA_NODE_DATA, token->line);
            node->text = token->text;
        } else if (token->type == TP_JINJA_TOKEN_PRINT_BEGIN) {
            node = parse_print(p, token->line);
        } else {
            const tp_jinja_token *word = tp_jinja_peek(p);
            if (ends && word->type == TP_JINJA_TOKEN_NAME && tp_python_word(ends, word->text) >= 0)
                return body;
            node = parse_statement(p);
            expect_block_end(p);
        }
        tp_jinja_push(p, body, node);
    }
}

/* The rest of a block's opening tag, then its body. */
static tp_jinja_node *parse_block_body(tp_jinja_parser *p, const char *ends)
{
    tp_jinja_skip_op(p, ":"); /* as Python has it */
    expect_block_end(p);
    tp_jinja_deeper(p);
    tp_jinja_node *body = parse_body(p, ends);
    p->depth--;
    return body;
}

/* The same with a single possible end, which is taken. */
static tp_jinja_node *parse_closed_body(tp_jinja_parser *p, const char *end)
{
    tp_jinja_node *body = parse_block_body(p, end);
    p->at++;
    return body;
}

/* Behind a body that ends in "else" or `end`: what else holds, or NULL. */
static tp_jinja_node *parse_else(tp_jinja_parser *p, const char *end)
{
    if (tp_jinja_skip_name(p, "else"))
        return parse_closed_body(p, end);
    p->at++;
    return NULL;
}

static void check_target(tp_jinja_parser *p, const tp_jinja_node *target, size_t depth)
{
    if (target->kind == TP_JINJA_NODE_NAME && p->for_depth && target->symbol == p->t->symbol_loop)
        tp_jinja_syntax_error(p, target->line, "'loop' cannot be assigned in a for loop");
    if (target->kind == TP_JINJA_NODE_NAME || target->kind == TP_JINJA_NODE_NSREF)
        return;
    if (target->kind != TP_JINJA_NODE_TUPLE || depth > TP_JINJA_MAX_NESTING)
        tp_jinja_syntax_error(p, target->line, "cannot assign to this");
    for (size_t i = 0; i < target->n_kids; i++)
        check_target(p, target->kids[i], depth + 1);
}

/* The first kid of `node`. */
static void parse_target(tp_jinja_parser *p, bool with_namespace, tp_jinja_node *node)
{
    tp_jinja_tuple_options options = {.simple = true, .with_namespace = with_namespace};
    tp_jinja_node *target = tp_jinja_parse_tuple(p, options);
    check_target(p, target, 0);
    tp_jinja_push(p, node, target);
}

static uint32_t parse_name_target(tp_jinja_parser *p)
{
    uint32_t line = tp_jinja_peek(p)->line;
    tp_slice name = tp_jinja_expect_name(p);
    if (tp_python_word("true false none True False None", name) >= 0)
        tp_jinja_syntax_error(p, line, "cannot assign to '%.*s'", (int)name.len, name.data);
    return tp_jinja_symbol(p, name);
}

/* A statement's node, its word being behind us. */
static tp_jinja_node *new_statement(tp_jinja_parser *p, tp_jinja_node_kind kind)
{
    return tp_jinja_new(p, kind, p->tokens[p->at - 1].line);
}

static tp_jinja_node *parse_set(tp_jinja_parser *p)
{
    tp_jinja_node *node = new_statement(p, TP_JINJA_NODE_SET);
    parse_target(p, true, node);
    if (tp_jinja_skip_op(p, "=")) {
        tp_jinja_push(p, node, tp_jinja_parse_tuple(p, (tp_jinja_tuple_options){0}));
        return node;
    }
    node->kind = TP_JINJA_NODE_SET_BLOCK;
    tp_jinja_push(p, node, tp_jinja_parse_filters(p, NULL));
    tp_jinja_push(p, node, parse_closed_body(p, "endset"));
    return node;
}

static tp_jinja_node *parse_for(tp_jinja_parser *p)
{
    tp_jinja_node *node = new_statement(p, TP_JINJA_NODE_FOR), *condition = NULL;
    p->for_depth++;
    parse_target(p, false, node);
    if (!tp_jinja_skip_name(p, "in"))
        tp_jinja_unexpected(p, "'in'");
    tp_jinja_push(p, node, tp_jinja_parse_tuple(p, (tp_jinja_tuple_options){.no_condition = true}));
    if (tp_jinja_skip_name(p, "if"))
        condition = tp_jinja_parse_expression(p);
    tp_jinja_push(p, node, condition);
    if (tp_jinja_is_name(p, "recursive"))
        tp_jinja_refuse(p, TP_ERR_UNSUPPORTED, node->line, "a recursive loop is not supported");
    p->n_loops++;
    tp_jinja_push(p, node, parse_block_body(p, "endfor else"));
    p->n_loops--;
    tp_jinja_push(p, node, parse_else(p, "endfor"));
    p->for_depth--;
    return node;
}

static tp_jinja_node *parse_if(tp_jinja_parser *p)
{
    tp_jinja_node *node = new_statement(p, TP_JINJA_NODE_IF);
    p->n_ifs++;
    do {
        tp_jinja_push(p, node,
                      tp_jinja_parse_tuple(p, (tp_jinja_tuple_options){.no_condition = true}));
        tp_jinja_push(p, node, parse_block_body(p, "endif elif else"));
    } while (tp_jinja_skip_name(p, "elif"));
    tp_jinja_node *otherwise = parse_else(p, "endif");
    if (otherwise)
        tp_jinja_push(p, node, otherwise);
    p->n_ifs--;
    return node;
}

/* "(a, b=1)": the parameters of a macro. */
static void parse_signature(tp_jinja_parser *p, tp_jinja_node *macro)
{
    bool has_default = false;
    tp_jinja_expect_op(p, "(");
    while (!tp_jinja_skip_op(p, ")")) {
        if (macro->n_kids)
            tp_jinja_expect_op(p, ",");
        tp_jinja_node *name = tp_jinja_new(p, TP_JINJA_NODE_NAME, tp_jinja_peek(p)->line);
        name->symbol = parse_name_target(p);
        if (tp_jinja_skip_op(p, "=")) {
            tp_jinja_push(p, name, tp_jinja_parse_expression(p));
            has_default = true;
        } else if (has_default) {
            tp_jinja_syntax_error(p, name->line, "a parameter without default follows one with");
        }
        for (size_t i = 0; i < macro->n_kids; i++)
            if (macro->kids[i]->symbol == name->symbol)
                tp_jinja_syntax_error(p, name->line, "two parameters have the same name");
        if (name->symbol == p->t->symbol_caller) {
            macro->macro.caller_is_param = true;
            macro->macro.caller_is_needed = name->n_kids == 0;
        }
        tp_jinja_push(p, macro, name);
    }
}

/* A body that runs like a function: loops around it are out of reach.  `macro`: whose names it
 * mentions, or NULL. */
static tp_jinja_node *parse_function_body(tp_jinja_parser *p, const char *end,
                                          tp_jinja_macro *macro)
{
    tp_jinja_macro *outer = p->macro;
    size_t n_loops = p->n_loops;
    p->n_loops = 0;
    p->macro = macro ? macro : outer;
    tp_jinja_node *body = parse_closed_body(p, end);
    p->macro = outer;
    p->n_loops = n_loops;
    if (macro && macro->uses_caller && macro->caller_is_needed)
        tp_jinja_syntax_error(p, body->line, "the parameter 'caller' of a macro needs a default");
    if (macro && outer) { /* what an inner macro mentions, the outer one does */
        outer->uses_caller |= macro->uses_caller;
        outer->uses_varargs |= macro->uses_varargs;
        outer->uses_kwargs |= macro->uses_kwargs;
    }
    return body;
}

static tp_jinja_node *parse_macro(tp_jinja_parser *p)
{
    tp_jinja_node *node = new_statement(p, TP_JINJA_NODE_MACRO);
    node->symbol = parse_name_target(p);
    node->text = p->t->names[node->symbol];
    parse_signature(p, node);
    tp_jinja_push(p, node, parse_function_body(p, "endmacro", &node->macro));
    return node;
}

static tp_jinja_node *parse_call_block(tp_jinja_parser *p)
{
    tp_jinja_node *node = new_statement(p, TP_JINJA_NODE_CALL_BLOCK);
    tp_jinja_node *macro = new_statement(p, TP_JINJA_NODE_MACRO);
    if (tp_jinja_is_op(p, "("))
        parse_signature(p, macro);
    tp_jinja_push(p, node, tp_jinja_parse_expression(p));
    if (node->kids[0]->kind != TP_JINJA_NODE_CALL)
        tp_jinja_syntax_error(p, node->line, "'call' needs a call");
    tp_jinja_push(p, macro, parse_function_body(p, "endcall", &macro->macro));
    tp_jinja_push(p, node, macro);
    return node;
}

static tp_jinja_node *parse_with(tp_jinja_parser *p)
{
    tp_jinja_node *node = new_statement(p, TP_JINJA_NODE_WITH);
    while (tp_jinja_peek(p)->type != TP_JINJA_TOKEN_BLOCK_END) {
        if (node->n_kids)
            tp_jinja_expect_op(p, ",");
        parse_target(p, false, node);
        tp_jinja_expect_op(p, "=");
        tp_jinja_push(p, node, tp_jinja_parse_expression(p));
    }
    tp_jinja_push(p, node, parse_closed_body(p, "endwith"));
    return node;
}

static tp_jinja_node *parse_generation(tp_jinja_parser *p)
{
    tp_jinja_node *node = new_statement(p, TP_JINJA_NODE_GENERATION);
    p->t->has_generation = true;
    tp_jinja_push(p, node, parse_function_body(p, "endgeneration", NULL));
    return node;
}

static tp_jinja_node *parse_jump(tp_jinja_parser *p)
{
    const tp_jinja_token *token = &p->tokens[p->at - 1];
    bool is_break = tp_slice_is(token->text, "break");
    if (p->n_loops == 0)
        tp_jinja_syntax_error(p, token->line, "'%.*s' outside of a for loop", (int)token->text.len,
                              token->text.data);
    return new_statement(p, is_break ? TP_JINJA_NODE_BREAK : TP_JINJA_NODE_CONTINUE);
}

static tp_jinja_node *parse_statement(tp_jinja_parser *p)
{
    static const struct {
        const char *name;
        tp_jinja_node *(*parse)(tp_jinja_parser *p);
    } statements[] = {{"set", parse_set},
                      {"if", parse_if},
                      {"for", parse_for},
                      {"macro", parse_macro},
                      {"call", parse_call_block},
                      {"with", parse_with},
                      {"generation", parse_generation},
                      {"break", parse_jump},
                      {"continue", parse_jump}};
    static const char unsupported[] = "include extends import from autoescape block filter print";
    uint32_t line = tp_jinja_peek(p)->line;
    tp_slice name = tp_jinja_expect_name(p);
    for (size_t i = 0; i < TP_COUNTOF(statements); i++)
        if (tp_slice_is(name, statements[i].name))
            return statements[i].parse(p);
    if (tp_python_word(unsupported, name) >= 0)
        tp_jinja_refuse(p, TP_ERR_UNSUPPORTED, line, "'{%% %.*s %%}' is not supported",
                        (int)name.len, name.data);
    tp_jinja_syntax_error(p, line, "'{%% %.*s %%}' is not expected here", (int)name.len, name.data);
}

/* What is wrong further down ends here. */
static tp_status parse(tp_jinja_parser *p, const char *text, size_t n)
{
    enum { OWN_NAMES = 4 };
    struct tp_template *t = p->t;
    if (setjmp(p->failed))
        return p->status;
    tp_jinja_lex(p, text, n);
    size_t n_names = OWN_NAMES;
    for (size_t i = 0; i < p->n_tokens; i++)
        n_names += p->tokens[i].type == TP_JINJA_TOKEN_NAME;
    p->n_slots = 16;
    while (p->n_slots < 2 * n_names)
        p->n_slots *= 2;
    t->names = tp_arena_array(&t->arena, tp_slice, n_names);
    p->slots = tp_arena_array(&t->arena, uint32_t, p->n_slots);
    t->symbol_loop = tp_jinja_symbol(p, TP_SLICE("loop"));
    t->symbol_caller = tp_jinja_symbol(p, TP_SLICE("caller"));
    t->symbol_varargs = tp_jinja_symbol(p, TP_SLICE("varargs"));
    t->symbol_kwargs = tp_jinja_symbol(p, TP_SLICE("kwargs"));
    t->body = parse_body(p, NULL);
    return TP_OK;
}

tp_status tp_jinja_parse(struct tp_template *t, const char *text, size_t n, tp_error *err)
{
    tp_jinja_parser p = {.t = t, .err = err};
    if (n > TP_JINJA_MAX_SOURCE)
        return tp_fail(err, TP_ERR_FORMAT, "%s: a template of %zu bytes; %d is the limit", t->name,
                       n, TP_JINJA_MAX_SOURCE);
    if (!tp_utf8_valid(text, n))
        return tp_fail(err, TP_ERR_FORMAT, "%s: the template is not valid UTF-8", t->name);
    return parse(&p, text, n);
}
