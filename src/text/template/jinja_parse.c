/* jinja_parse.c - statements. */

#include "base/platform.h"
#include "text/template/jinja.h"

static tp_status expect_block_end(tp_jinja_parser *p)
{
    if (tp_jinja_peek(p)->type != TP_JINJA_TOKEN_BLOCK_END)
        return tp_jinja_unexpected(p, "'%}'");
    p->at++;
    return TP_OK;
}

static tp_status parse_statement(tp_jinja_parser *p, tp_jinja_node **ret);

static bool is_any_name(const tp_jinja_parser *p, const char *const *names)
{
    for (; *names; names++)
        if (tp_jinja_is_name(p, *names))
            return true;
    return false;
}

/* Text, prints and statements up to a block that begins with one of `ends`, which
 * becomes the current token; up to the end of the template when `ends` is NULL. */
static tp_status parse_body(tp_jinja_parser *p, const char *const *ends, tp_jinja_node **ret)
{
    tp_jinja_list list = {0};
    uint32_t line = ends ? p->tokens[p->at - 1].line : 1; /* of the opening tag */
    for (;;) {
        const tp_jinja_token *token = tp_jinja_peek(p);
        tp_jinja_node *node = NULL;
        if (token->type == TP_JINJA_TOKEN_EOF) {
            if (ends)
                return tp_jinja_syntax_error(
                    p, token->line,
                    "the template ends where '{%% %s %%}' is expected; the "
                    "block began in line %u",
                    ends[0], (unsigned)line);
            break;
        }
        p->at++;
        if (token->type == TP_JINJA_TOKEN_DATA) {
            node = tp_jinja_new(p, TP_JINJA_NODE_DATA, token->line, 0);
            node->text = token->text;
        } else if (token->type == TP_JINJA_TOKEN_PRINT_BEGIN) {
            node = tp_jinja_new(p, TP_JINJA_NODE_PRINT, token->line, 1);
            TP_TRY(tp_jinja_parse_tuple(p, (tp_jinja_tuple_options){0}, &node->kids[0]));
            if (tp_jinja_peek(p)->type != TP_JINJA_TOKEN_PRINT_END)
                return tp_jinja_unexpected(p, "'}}'");
            p->at++;
        } else {
            if (ends && is_any_name(p, ends))
                break;
            TP_TRY(parse_statement(p, &node));
            TP_TRY(expect_block_end(p));
        }
        tp_jinja_push(p, &list, node);
    }
    *ret = tp_jinja_new_list(p, TP_JINJA_NODE_BODY, line, &list);
    return TP_OK;
}

/* The rest of a block's opening tag, then its body. */
static tp_status parse_block_body(tp_jinja_parser *p, const char *const *ends, tp_jinja_node **ret)
{
    tp_jinja_skip_op(p, ":"); /* as Python has it */
    TP_TRY(expect_block_end(p));
    if (++p->depth > TP_JINJA_MAX_NESTING)
        return tp_jinja_syntax_error(p, tp_jinja_peek(p)->line,
                                     "expressions and blocks nest deeper than %d",
                                     TP_JINJA_MAX_NESTING);
    TP_TRY(parse_body(p, ends, ret));
    p->depth--;
    return TP_OK;
}

/* The same with a single possible end, which is taken. */
static tp_status parse_closed_body(tp_jinja_parser *p, const char *end, tp_jinja_node **ret)
{
    TP_TRY(parse_block_body(p, (const char *const[]){end, NULL}, ret));
    p->at++;
    return TP_OK;
}

static tp_status check_target(const tp_jinja_parser *p, const tp_jinja_node *target, size_t depth)
{
    if (target->kind == TP_JINJA_NODE_NAME) {
        if (p->for_depth && target->symbol == p->t->symbol_loop)
            return tp_jinja_syntax_error(p, target->line,
                                         "'loop' cannot be assigned in a for loop");
        return TP_OK;
    }
    if (target->kind == TP_JINJA_NODE_NSREF)
        return TP_OK;
    if (target->kind != TP_JINJA_NODE_TUPLE || depth > TP_JINJA_MAX_NESTING)
        return tp_jinja_syntax_error(p, target->line, "cannot assign to this");
    for (uint32_t i = 0; i < target->n_kids; i++)
        TP_TRY(check_target(p, target->kids[i], depth + 1));
    return TP_OK;
}

static tp_status parse_target(tp_jinja_parser *p, bool with_namespace, tp_jinja_node **ret)
{
    tp_jinja_tuple_options options = {.simple = true, .with_namespace = with_namespace};
    TP_TRY(tp_jinja_parse_tuple(p, options, ret));
    return check_target(p, *ret, 0);
}

static bool is_constant_name(tp_slice name)
{
    static const char *const names[] = {"true", "false", "none", "True", "False", "None"};
    for (size_t i = 0; i < TP_COUNTOF(names); i++)
        if (tp_slice_is(name, names[i]))
            return true;
    return false;
}

static tp_status parse_name_target(tp_jinja_parser *p, uint32_t *ret)
{
    tp_slice name;
    uint32_t line = tp_jinja_peek(p)->line;
    TP_TRY(tp_jinja_expect_name(p, &name));
    if (is_constant_name(name))
        return tp_jinja_syntax_error(p, line, "cannot assign to '%.*s'", (int)name.len, name.data);
    *ret = tp_jinja_symbol(p, name);
    return TP_OK;
}

static tp_status parse_set(tp_jinja_parser *p, tp_jinja_node **ret)
{
    uint32_t line = p->tokens[p->at - 1].line;
    tp_jinja_node *target, *filter = NULL;
    TP_TRY(parse_target(p, true, &target));
    if (tp_jinja_skip_op(p, "=")) {
        *ret = tp_jinja_new(p, TP_JINJA_NODE_SET, line, 2);
        (*ret)->kids[0] = target;
        return tp_jinja_parse_tuple(p, (tp_jinja_tuple_options){0}, &(*ret)->kids[1]);
    }
    TP_TRY(tp_jinja_parse_filters(p, NULL, false, &filter));
    *ret = tp_jinja_new(p, TP_JINJA_NODE_SET_BLOCK, line, 3);
    (*ret)->kids[0] = target;
    (*ret)->kids[1] = filter;
    return parse_closed_body(p, "endset", &(*ret)->kids[2]);
}

static tp_status parse_for(tp_jinja_parser *p, tp_jinja_node **ret)
{
    tp_jinja_node *node = tp_jinja_new(p, TP_JINJA_NODE_FOR, p->tokens[p->at - 1].line, 5);
    p->for_depth++;
    TP_TRY(parse_target(p, false, &node->kids[0]));
    if (!tp_jinja_skip_name(p, "in"))
        return tp_jinja_unexpected(p, "'in'");
    tp_jinja_tuple_options options = {.no_condition = true};
    TP_TRY(tp_jinja_parse_tuple(p, options, &node->kids[1]));
    if (tp_jinja_skip_name(p, "if"))
        TP_TRY(tp_jinja_parse_expression(p, &node->kids[4]));
    if (tp_jinja_is_name(p, "recursive"))
        return tp_fail(p->err, TP_ERR_UNSUPPORTED, "%s:%u: a recursive loop is not supported",
                       p->t->name, (unsigned)node->line);
    p->n_loops++;
    TP_TRY(parse_block_body(p, (const char *const[]){"endfor", "else", NULL}, &node->kids[2]));
    p->n_loops--;
    if (tp_jinja_skip_name(p, "else"))
        TP_TRY(parse_closed_body(p, "endfor", &node->kids[3]));
    else
        p->at++;
    p->for_depth--;
    *ret = node;
    return TP_OK;
}

static tp_status parse_if(tp_jinja_parser *p, tp_jinja_node **ret)
{
    static const char *const ends[] = {"endif", "elif", "else", NULL};
    uint32_t line = p->tokens[p->at - 1].line;
    tp_jinja_list list = {0};
    tp_jinja_node *node = NULL;
    p->n_ifs++;
    do {
        TP_TRY(tp_jinja_parse_tuple(p, (tp_jinja_tuple_options){.no_condition = true}, &node));
        tp_jinja_push(p, &list, node);
        TP_TRY(parse_block_body(p, ends, &node));
        tp_jinja_push(p, &list, node);
    } while (tp_jinja_skip_name(p, "elif"));
    if (tp_jinja_skip_name(p, "else")) {
        TP_TRY(parse_closed_body(p, "endif", &node));
        tp_jinja_push(p, &list, node);
    } else {
        p->at++;
    }
    p->n_ifs--;
    *ret = tp_jinja_new_list(p, TP_JINJA_NODE_IF, line, &list);
    return TP_OK;
}

/* "(a, b=1)" */
static tp_status parse_signature(tp_jinja_parser *p, tp_jinja_macro *macro)
{
    tp_jinja_list defaults = {0};
    tp_jinja_node *value;
    bool has_default = false;
    TP_TRY(tp_jinja_expect_op(p, "("));
    size_t cap = 0;
    while (!tp_jinja_is_op(p, ")")) {
        if (macro->n_params)
            TP_TRY(tp_jinja_expect_op(p, ","));
        uint32_t line = tp_jinja_peek(p)->line, symbol = 0;
        TP_TRY(parse_name_target(p, &symbol));
        value = NULL;
        if (tp_jinja_skip_op(p, "=")) {
            TP_TRY(tp_jinja_parse_expression(p, &value));
            has_default = true;
        } else if (has_default) {
            return tp_jinja_syntax_error(p, line, "a parameter without default follows one with");
        }
        for (size_t i = 0; i < macro->n_params; i++)
            if (macro->params[i] == symbol)
                return tp_jinja_syntax_error(p, line, "two parameters have the same name");
        macro->caller_is_param |= symbol == p->t->symbol_caller;
        *TP_ARENA_PUSH(&p->t->arena, macro->params, macro->n_params, cap) = symbol;
        tp_jinja_push(p, &defaults, value);
    }
    macro->defaults = defaults.items;
    return tp_jinja_expect_op(p, ")");
}

/* A body that runs like a function: loops around it are out of reach. */
static tp_status parse_function_body(tp_jinja_parser *p, const char *end, tp_jinja_macro *macro,
                                     tp_jinja_node **ret)
{
    bool *caller = p->uses_caller, *varargs = p->uses_varargs, *kwargs = p->uses_kwargs;
    size_t n_loops = p->n_loops;
    p->n_loops = 0;
    if (macro) {
        p->uses_caller = &macro->uses_caller;
        p->uses_varargs = &macro->uses_varargs;
        p->uses_kwargs = &macro->uses_kwargs;
    }
    TP_TRY(parse_closed_body(p, end, ret));
    p->uses_caller = caller;
    p->uses_varargs = varargs;
    p->uses_kwargs = kwargs;
    p->n_loops = n_loops;
    if (macro && caller) { /* what an inner macro mentions, the outer one does */
        *caller |= macro->uses_caller;
        *varargs |= macro->uses_varargs;
        *kwargs |= macro->uses_kwargs;
    }
    return TP_OK;
}

static tp_status parse_macro(tp_jinja_parser *p, tp_jinja_node **ret)
{
    *ret = tp_jinja_new(p, TP_JINJA_NODE_MACRO, p->tokens[p->at - 1].line, 0);
    tp_jinja_macro *macro = tp_arena_new(&p->t->arena, tp_jinja_macro);
    (*ret)->macro = macro;
    TP_TRY(parse_name_target(p, &(*ret)->symbol));
    macro->name = p->t->names[(*ret)->symbol];
    TP_TRY(parse_signature(p, macro));
    return parse_function_body(p, "endmacro", macro, &macro->body);
}

static tp_status parse_call_block(tp_jinja_parser *p, tp_jinja_node **ret)
{
    uint32_t line = p->tokens[p->at - 1].line;
    tp_jinja_macro *macro = tp_arena_new(&p->t->arena, tp_jinja_macro);
    *ret = tp_jinja_new(p, TP_JINJA_NODE_CALL_BLOCK, line, 1);
    if (tp_jinja_is_op(p, "("))
        TP_TRY(parse_signature(p, macro));
    TP_TRY(tp_jinja_parse_expression(p, &(*ret)->kids[0]));
    if ((*ret)->kids[0]->kind != TP_JINJA_NODE_CALL)
        return tp_jinja_syntax_error(p, line, "'call' needs a call");
    (*ret)->macro = macro;
    return parse_function_body(p, "endcall", macro, &macro->body);
}

static tp_status parse_with(tp_jinja_parser *p, tp_jinja_node **ret)
{
    uint32_t line = p->tokens[p->at - 1].line;
    tp_jinja_list list = {0};
    tp_jinja_node *node = NULL;
    while (tp_jinja_peek(p)->type != TP_JINJA_TOKEN_BLOCK_END) {
        if (list.n)
            TP_TRY(tp_jinja_expect_op(p, ","));
        TP_TRY(parse_target(p, false, &node));
        tp_jinja_push(p, &list, node);
        TP_TRY(tp_jinja_expect_op(p, "="));
        TP_TRY(tp_jinja_parse_expression(p, &node));
        tp_jinja_push(p, &list, node);
    }
    TP_TRY(parse_closed_body(p, "endwith", &node));
    tp_jinja_push(p, &list, node);
    *ret = tp_jinja_new_list(p, TP_JINJA_NODE_WITH, line, &list);
    return TP_OK;
}

static tp_status parse_generation(tp_jinja_parser *p, tp_jinja_node **ret)
{
    p->t->has_generation = true;
    *ret = tp_jinja_new(p, TP_JINJA_NODE_GENERATION, p->tokens[p->at - 1].line, 1);
    return parse_function_body(p, "endgeneration", NULL, &(*ret)->kids[0]);
}

static tp_status parse_jump(tp_jinja_parser *p, tp_jinja_node **ret)
{
    const tp_jinja_token *token = &p->tokens[p->at - 1];
    bool is_break = tp_slice_is(token->text, "break");
    if (p->n_loops == 0)
        return tp_jinja_syntax_error(p, token->line, "'%.*s' outside of a for loop",
                                     (int)token->text.len, token->text.data);
    *ret = tp_jinja_new(p, is_break ? TP_JINJA_NODE_BREAK : TP_JINJA_NODE_CONTINUE, token->line, 0);
    return TP_OK;
}

static tp_status parse_statement(tp_jinja_parser *p, tp_jinja_node **ret)
{
    static const struct {
        const char *name;
        tp_status (*parse)(tp_jinja_parser *p, tp_jinja_node **ret);
    } statements[] = {{"set", parse_set},
                      {"if", parse_if},
                      {"for", parse_for},
                      {"macro", parse_macro},
                      {"call", parse_call_block},
                      {"with", parse_with},
                      {"generation", parse_generation},
                      {"break", parse_jump},
                      {"continue", parse_jump}};
    static const char *const unsupported[] = {"include",    "extends", "import", "from",
                                              "autoescape", "block",   "filter", "print"};
    tp_slice name;
    uint32_t line = tp_jinja_peek(p)->line;
    TP_TRY(tp_jinja_expect_name(p, &name));
    for (size_t i = 0; i < TP_COUNTOF(statements); i++)
        if (tp_slice_is(name, statements[i].name))
            return statements[i].parse(p, ret);
    for (size_t i = 0; i < TP_COUNTOF(unsupported); i++)
        if (tp_slice_is(name, unsupported[i]))
            return tp_fail(p->err, TP_ERR_UNSUPPORTED, "%s:%u: '{%% %s %%}' is not supported",
                           p->t->name, (unsigned)line, unsupported[i]);
    return tp_jinja_syntax_error(p, line, "'{%% %.*s %%}' is not expected here", (int)name.len,
                                 name.data);
}

tp_status tp_jinja_parse(struct tp_template *t, const char *text, size_t n, tp_error *err)
{
    tp_jinja_token *tokens = NULL;
    size_t n_tokens = 0;
    TP_TRY(tp_jinja_lex(&t->arena, t->name, text, n, &tokens, &n_tokens, err));

    enum { OWN_NAMES = 4 };
    size_t n_names = OWN_NAMES, n_slots = 16;
    for (size_t i = 0; i < n_tokens; i++)
        n_names += tokens[i].type == TP_JINJA_TOKEN_NAME;
    while (n_slots < 2 * n_names)
        n_slots *= 2;
    tp_jinja_parser p = {.t = t,
                         .tokens = tokens,
                         .n_tokens = n_tokens,
                         .expression = tp_jinja_parse_expression,
                         .primary = tp_jinja_parse_primary,
                         .err = err};
    t->names = tp_arena_array(&t->arena, tp_slice, n_names);
    p.index.slots = tp_arena_array(&t->arena, uint32_t, n_slots);
    p.index.n_slots = n_slots;
    t->symbol_loop = tp_jinja_symbol(&p, TP_SLICE("loop"));
    t->symbol_caller = tp_jinja_symbol(&p, TP_SLICE("caller"));
    t->symbol_varargs = tp_jinja_symbol(&p, TP_SLICE("varargs"));
    t->symbol_kwargs = tp_jinja_symbol(&p, TP_SLICE("kwargs"));
    return parse_body(&p, NULL, &t->body);
}
