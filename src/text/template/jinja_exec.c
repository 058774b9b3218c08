/* jinja_exec.c - statements. */
#include "text/template/jinja_run.h"

/* Run a body whose names are its own. */
static tp_jinja_flow exec_scoped(tp_jinja_run *run, const tp_jinja_node *body)
{
    tp_jinja_scope *outer = run->scope;
    run->scope = tp_jinja_new_scope(run, outer);
    tp_jinja_flow flow = tp_jinja_exec(run, body);
    run->scope = outer;
    return flow;
}

static tp_jinja_flow exec_if(tp_jinja_run *run, const tp_jinja_node *node)
{
    size_t i = 0;
    for (; i + 1 < node->n_kids; i += 2)
        if (tp_any_is_true(tp_jinja_eval(run, node->kids[i])))
            return tp_jinja_exec(run, node->kids[i + 1]);
    return i < node->n_kids ? tp_jinja_exec(run, node->kids[i]) : TP_JINJA_FLOW_NEXT;
}

static void exec_set_block(tp_jinja_run *run, const tp_jinja_node *node)
{
    tp_jinja_scope *outer = run->scope;
    run->scope = tp_jinja_new_scope(run, outer);
    tp_any text = tp_jinja_capture(run, node->kids[2]);
    run->scope = outer;
    if (node->kids[1])
        text = tp_jinja_filter_node(run, node->kids[1], text);
    tp_jinja_assign(run, node->kids[0], text);
}

/* A macro sees the scopes around it for as long as it lives. */
static tp_any new_macro(tp_jinja_run *run, const tp_jinja_node *definition)
{
    struct tp_any_macro *macro = tp_jinja_take(run, 1, sizeof *macro);
    *macro = (struct tp_any_macro){definition, run->scope};
    for (tp_jinja_scope *s = run->scope; s; s = s->parent)
        s->is_captured = true;
    return (tp_any){.type = TP_ANY_MACRO, .macro = macro};
}

/* The call gets the block's body as its argument `caller`. */
static void exec_call_block(tp_jinja_run *run, const tp_jinja_node *node)
{
    const tp_jinja_node *call = node->kids[0];
    tp_any callee = tp_jinja_eval(run, call->kids[0]);
    tp_jinja_args args = tp_jinja_eval_args(run, call);
    tp_any_dict_put(run, &args.named, tp_any_text(TP_SLICE("caller")),
                    new_macro(run, node->kids[1]));
    run->line = node->line;
    tp_any_str(run->out, tp_jinja_call_value(run, callee, &args));
}

/* Values are found outside, names are bound inside. */
static tp_jinja_flow exec_with(tp_jinja_run *run, const tp_jinja_node *node)
{
    tp_jinja_scope *outer = run->scope, *inner = tp_jinja_new_scope(run, outer);
    for (size_t i = 0; i + 1 < node->n_kids; i += 2) {
        run->scope = outer;
        tp_any value = tp_jinja_eval(run, node->kids[i + 1]);
        run->scope = inner;
        tp_jinja_assign(run, node->kids[i], value);
    }
    run->scope = inner;
    tp_jinja_flow flow = tp_jinja_exec(run, node->kids[node->n_kids - 1]);
    run->scope = outer;
    return flow;
}

static tp_jinja_flow exec_generation(tp_jinja_run *run, const tp_jinja_node *node)
{
    size_t begin = run->out->len;
    tp_jinja_flow flow = exec_scoped(run, node->kids[0]);
    tp_spans *spans = run->spans;
    if (!spans)
        return flow;
    run->line = node->line;
    if (run->out != run->root_out)
        tp_jinja_unsupported(run, "a {%% generation %%} block within a macro or set block "
                                  "has no known place in the text");
    if (spans->n == run->spans_cap) {
        run->spans_cap = 2 * run->spans_cap + 8;
        spans->begin = tp_grow(spans->begin, run->spans_cap, sizeof *spans->begin);
        spans->end = tp_grow(spans->end, run->spans_cap, sizeof *spans->end);
    }
    spans->begin[spans->n] = begin;
    spans->end[spans->n++] = run->out->len;
    return flow;
}

static tp_jinja_flow exec_body(tp_jinja_run *run, const tp_jinja_node *node)
{
    tp_jinja_flow flow = TP_JINJA_FLOW_NEXT;
    for (size_t i = 0; i < node->n_kids && flow == TP_JINJA_FLOW_NEXT; i++)
        flow = tp_jinja_exec(run, node->kids[i]);
    return flow;
}

static tp_jinja_flow exec_inner(tp_jinja_run *run, const tp_jinja_node *node)
{
    switch ((tp_jinja_node_kind)node->kind) {
    case TP_JINJA_NODE_BODY:
        return exec_body(run, node);
    case TP_JINJA_NODE_PRINT:
        tp_any_str(run->out, tp_jinja_eval(run, node->kids[0]));
        return TP_JINJA_FLOW_NEXT;
    case TP_JINJA_NODE_IF:
        return exec_if(run, node);
    case TP_JINJA_NODE_FOR:
        return tp_jinja_exec_for(run, node);
    case TP_JINJA_NODE_SET:
        tp_jinja_assign(run, node->kids[0], tp_jinja_eval(run, node->kids[1]));
        return TP_JINJA_FLOW_NEXT;
    case TP_JINJA_NODE_SET_BLOCK:
        exec_set_block(run, node);
        return TP_JINJA_FLOW_NEXT;
    case TP_JINJA_NODE_MACRO:
        tp_jinja_bind_name(run, run->scope, node->symbol, new_macro(run, node));
        return TP_JINJA_FLOW_NEXT;
    case TP_JINJA_NODE_CALL_BLOCK:
        exec_call_block(run, node);
        return TP_JINJA_FLOW_NEXT;
    case TP_JINJA_NODE_WITH:
        return exec_with(run, node);
    case TP_JINJA_NODE_GENERATION:
        return exec_generation(run, node);
    case TP_JINJA_NODE_BREAK:
        return TP_JINJA_FLOW_BREAK;
    case TP_JINJA_NODE_CONTINUE:
        return TP_JINJA_FLOW_CONTINUE;
    default:
        tp_jinja_fail(run, "this is not a statement");
    }
}

tp_jinja_flow tp_jinja_exec(tp_jinja_run *run, const tp_jinja_node *node)
{
    run->line = node->line;
    if (node->kind == TP_JINJA_NODE_DATA) {
        tp_jinja_add_slice(run->out, node->text);
        return TP_JINJA_FLOW_NEXT;
    }
    tp_jinja_enter(run);
    tp_jinja_charge(run, 1);
    tp_jinja_flow flow = exec_inner(run, node);
    run->depth--;
    return flow;
}
