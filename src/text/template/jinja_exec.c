/* jinja_exec.c - statements and scopes. */

#include "text/template/jinja_run.h"

/* Run a body whose names are its own. */
static tp_status exec_scoped(tp_jinja_run *run, const tp_jinja_node *body, tp_jinja_scope *parent,
                             tp_jinja_flow *flow)
{
    tp_jinja_scope *outer = run->scope;
    TP_TRY(tp_jinja_new_scope(run, parent, &run->scope));
    TP_TRY(tp_jinja_exec(run, body, flow));
    run->scope = outer;
    return TP_OK;
}

/* The text of a body with its own names. */
static tp_status capture_scoped(tp_jinja_run *run, const tp_jinja_node *body, tp_any *ret)
{
    tp_jinja_scope *outer = run->scope;
    TP_TRY(tp_jinja_new_scope(run, outer, &run->scope));
    TP_TRY(tp_jinja_capture(run, body, ret));
    run->scope = outer;
    return TP_OK;
}

static tp_status exec_if(tp_jinja_run *run, const tp_jinja_node *node, tp_jinja_flow *flow)
{
    tp_any condition;
    uint32_t i = 0;
    for (; i + 1 < node->n_kids; i += 2) {
        TP_TRY(tp_jinja_eval(run, node->kids[i], &condition));
        if (tp_any_is_true(&condition))
            return tp_jinja_exec(run, node->kids[i + 1], flow);
    }
    return i < node->n_kids ? tp_jinja_exec(run, node->kids[i], flow) : TP_OK;
}

static tp_status exec_set(tp_jinja_run *run, const tp_jinja_node *node)
{
    tp_any value;
    TP_TRY(tp_jinja_eval(run, node->kids[1], &value));
    return tp_jinja_assign(run, node->kids[0], &value);
}

static tp_status exec_set_block(tp_jinja_run *run, const tp_jinja_node *node)
{
    tp_any text, value;
    TP_TRY(capture_scoped(run, node->kids[2], &text));
    value = text;
    if (node->kids[1])
        TP_TRY(tp_jinja_filter_node(run, node->kids[1], &text, &value));
    return tp_jinja_assign(run, node->kids[0], &value);
}

/* A macro sees the scopes around it for as long as it lives. */
static tp_status new_macro(tp_jinja_run *run, const tp_jinja_macro *definition, tp_any *ret)
{
    void *memory = NULL;
    TP_TRY(tp_jinja_take(run, 1, sizeof(struct tp_any_macro), &memory));
    struct tp_any_macro *macro = memory;
    *macro = (struct tp_any_macro){definition, run->scope};
    for (tp_jinja_scope *s = run->scope; s; s = s->parent)
        s->is_captured = true;
    *ret = (tp_any){.type = TP_ANY_MACRO, .macro = macro};
    return TP_OK;
}

static tp_status exec_macro(tp_jinja_run *run, const tp_jinja_node *node)
{
    tp_any macro;
    TP_TRY(new_macro(run, node->macro, &macro));
    return tp_jinja_bind_name(run, run->scope, node->symbol, &macro);
}

/* The call gets the block's body as its argument `caller`. */
static tp_status exec_call_block(tp_jinja_run *run, const tp_jinja_node *node)
{
    const tp_jinja_node *call = node->kids[0];
    tp_any callee, result;
    tp_jinja_args args;
    TP_TRY(tp_jinja_eval(run, call->kids[0], &callee));
    TP_TRY(tp_jinja_eval_args(run, call->call, &args));
    if (!args.named) {
        void *names, *named;
        TP_TRY(tp_jinja_take(run, 1, sizeof(tp_slice), &names));
        TP_TRY(tp_jinja_take(run, 1, sizeof(tp_any), &named));
        args.names = names;
        args.named = named;
    }
    args.names[args.n_named] = TP_SLICE("caller");
    TP_TRY(new_macro(run, node->macro, &args.named[args.n_named]));
    args.n_named++;
    run->line = node->line;
    TP_TRY(tp_jinja_call_value(run, &callee, &args, &result));
    return tp_any_str(run->out, &result);
}

/* Values are found outside, names are bound inside. */
static tp_status exec_with(tp_jinja_run *run, const tp_jinja_node *node, tp_jinja_flow *flow)
{
    tp_jinja_scope *outer = run->scope, *inner;
    tp_any value;
    TP_TRY(tp_jinja_new_scope(run, outer, &inner));
    for (uint32_t i = 0; i + 1 < node->n_kids; i += 2) {
        run->scope = outer;
        TP_TRY(tp_jinja_eval(run, node->kids[i + 1], &value));
        run->scope = inner;
        TP_TRY(tp_jinja_assign(run, node->kids[i], &value));
    }
    run->scope = inner;
    TP_TRY(tp_jinja_exec(run, node->kids[node->n_kids - 1], flow));
    run->scope = outer;
    return TP_OK;
}

static tp_status exec_generation(tp_jinja_run *run, const tp_jinja_node *node, tp_jinja_flow *flow)
{
    size_t begin = run->out->len;
    TP_TRY(exec_scoped(run, node->kids[0], run->scope, flow));
    if (!run->spans)
        return TP_OK;
    if (run->out != run->root_out) {
        run->line = node->line;
        return tp_jinja_unsupported(run, "a {%% generation %%} block within a macro or set block "
                                         "has no known place in the text");
    }
    tp_spans *spans = run->spans;
    if (spans->n == run->spans_cap) {
        run->spans_cap = 2 * run->spans_cap + 8;
        spans->begin = tp_grow(spans->begin, run->spans_cap, sizeof *spans->begin);
        spans->end = tp_grow(spans->end, run->spans_cap, sizeof *spans->end);
    }
    spans->begin[spans->n] = begin;
    spans->end[spans->n++] = run->out->len;
    return TP_OK;
}

static tp_status exec_print(tp_jinja_run *run, const tp_jinja_node *node)
{
    tp_any value;
    for (uint32_t i = 0; i < node->n_kids; i++) {
        TP_TRY(tp_jinja_eval(run, node->kids[i], &value));
        TP_TRY(tp_any_str(run->out, &value));
    }
    return TP_OK;
}

static tp_status exec_body(tp_jinja_run *run, const tp_jinja_node *node, tp_jinja_flow *flow)
{
    for (uint32_t i = 0; i < node->n_kids && *flow == TP_JINJA_FLOW_NEXT; i++)
        TP_TRY(tp_jinja_exec(run, node->kids[i], flow));
    return TP_OK;
}

static tp_status exec_inner(tp_jinja_run *run, const tp_jinja_node *node, tp_jinja_flow *flow)
{
    switch ((tp_jinja_node_kind)node->kind) {
    case TP_JINJA_NODE_BODY:
        return exec_body(run, node, flow);
    case TP_JINJA_NODE_PRINT:
        return exec_print(run, node);
    case TP_JINJA_NODE_IF:
        return exec_if(run, node, flow);
    case TP_JINJA_NODE_FOR:
        return tp_jinja_exec_for(run, node, flow);
    case TP_JINJA_NODE_SET:
        return exec_set(run, node);
    case TP_JINJA_NODE_SET_BLOCK:
        return exec_set_block(run, node);
    case TP_JINJA_NODE_MACRO:
        return exec_macro(run, node);
    case TP_JINJA_NODE_CALL_BLOCK:
        return exec_call_block(run, node);
    case TP_JINJA_NODE_WITH:
        return exec_with(run, node, flow);
    case TP_JINJA_NODE_GENERATION:
        return exec_generation(run, node, flow);
    case TP_JINJA_NODE_BREAK:
        *flow = TP_JINJA_FLOW_BREAK;
        return TP_OK;
    case TP_JINJA_NODE_CONTINUE:
        *flow = TP_JINJA_FLOW_CONTINUE;
        return TP_OK;
    default:
        return tp_jinja_fail(run, "this is not a statement");
    }
}

tp_status tp_jinja_exec(tp_jinja_run *run, const tp_jinja_node *node, tp_jinja_flow *flow)
{
    run->line = node->line;
    if (node->kind == TP_JINJA_NODE_DATA)
        return tp_jinja_add(run->out, node->text.data, node->text.len);
    TP_TRY(tp_jinja_enter(run));
    TP_TRY(tp_jinja_charge(run, 1));
    TP_TRY(exec_inner(run, node, flow));
    tp_jinja_leave(run);
    return TP_OK;
}
