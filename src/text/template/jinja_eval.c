/* jinja_eval.c - expressions. */
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_run.h"

/* The value of a name, or NULL. */
static const tp_any *find_name(const tp_jinja_run *run, uint32_t symbol)
{
    for (const tp_jinja_scope *s = run->scope; s; s = s->parent) {
        if (s == run->root_scope)
            return run->root[symbol].type == TP_ANY_MISSING ? NULL : &run->root[symbol];
        for (uint32_t i = s->n; i-- > 0;)
            if (s->bindings[i].symbol == symbol)
                return &s->bindings[i].value;
    }
    return NULL;
}

static tp_status eval_name(tp_jinja_run *run, const tp_jinja_node *node, tp_any *ret)
{
    const tp_any *found = find_name(run, node->symbol);
    if (found) {
        *ret = *found;
        return TP_OK;
    }
    tp_slice name = run->template->names[node->symbol];
    const tp_jinja_function *global = tp_jinja_global(name);
    if (!global)
        return tp_any_undefined_name(run, name, ret);
    *ret = (tp_any){.type = TP_ANY_FUNCTION, .function = global};
    return TP_OK;
}

static tp_status eval_list(tp_jinja_run *run, const tp_jinja_node *node, tp_any *ret)
{
    tp_any *values;
    tp_any_type type = node->kind == TP_JINJA_NODE_TUPLE ? TP_ANY_TUPLE : TP_ANY_LIST;
    TP_TRY(tp_any_new_list(run, type, node->n_kids, ret, &values));
    for (uint32_t i = 0; i < node->n_kids; i++)
        TP_TRY(tp_jinja_eval(run, node->kids[i], &values[i]));
    return TP_OK;
}

static tp_status eval_dict(tp_jinja_run *run, const tp_jinja_node *node, tp_any *ret)
{
    tp_any key, value;
    TP_TRY(tp_any_new_dict(run, node->n_kids / 2, ret));
    for (uint32_t i = 0; i < node->n_kids; i += 2) {
        TP_TRY(tp_jinja_eval(run, node->kids[i], &key));
        TP_TRY(tp_jinja_eval(run, node->kids[i + 1], &value));
        TP_TRY(tp_any_dict_put(run, ret->dict, &key, &value));
    }
    return TP_OK;
}

static tp_status eval_slice(tp_jinja_run *run, const tp_jinja_node *node, tp_any *ret)
{
    tp_any object, bounds[3];
    TP_TRY(tp_jinja_eval(run, node->kids[0], &object));
    for (int i = 0; i < 3; i++) {
        bounds[i] = tp_any_none();
        if (node->kids[i + 1])
            TP_TRY(tp_jinja_eval(run, node->kids[i + 1], &bounds[i]));
    }
    return tp_jinja_get_slice(run, &object, bounds, ret);
}

static tp_status eval_chain(tp_jinja_run *run, const tp_jinja_node *node, tp_any *ret)
{
    tp_any left, right;
    TP_TRY(tp_jinja_eval(run, node->kids[0], ret));
    for (uint32_t i = 1; i < node->n_kids; i++) {
        left = *ret;
        TP_TRY(tp_jinja_eval(run, node->kids[i], &right));
        TP_TRY(tp_jinja_binary(run, (tp_jinja_op)node->ops[i - 1], &left, &right, ret));
    }
    return TP_OK;
}

static tp_status eval_compare(tp_jinja_run *run, const tp_jinja_node *node, tp_any *ret)
{
    tp_any left, right;
    TP_TRY(tp_jinja_eval(run, node->kids[0], &left));
    for (uint32_t i = 1; i < node->n_kids; i++) {
        TP_TRY(tp_jinja_eval(run, node->kids[i], &right));
        TP_TRY(tp_jinja_binary(run, (tp_jinja_op)node->ops[i - 1], &left, &right, ret));
        if (!ret->truth)
            return TP_OK;
        left = right;
    }
    return TP_OK;
}

static tp_status eval_concat(tp_jinja_run *run, const tp_jinja_node *node, tp_any *ret)
{
    tp_jinja_text out = {.run = run};
    tp_any v;
    for (uint32_t i = 0; i < node->n_kids; i++) {
        TP_TRY(tp_jinja_eval(run, node->kids[i], &v));
        TP_TRY(tp_any_str(&out, &v));
    }
    *ret = tp_jinja_text_value(&out);
    return TP_OK;
}

/* The value that decides, as in Python. */
static tp_status eval_logic(tp_jinja_run *run, const tp_jinja_node *node, tp_any *ret)
{
    for (uint32_t i = 0; i < node->n_kids; i++) {
        TP_TRY(tp_jinja_eval(run, node->kids[i], ret));
        if (tp_any_is_true(ret) == (node->kind == TP_JINJA_NODE_OR))
            return TP_OK;
    }
    return TP_OK;
}

static tp_status eval_condition(tp_jinja_run *run, const tp_jinja_node *node, tp_any *ret)
{
    tp_any condition;
    uint32_t i = 0;
    for (; i + 1 < node->n_kids; i += 2) {
        TP_TRY(tp_jinja_eval(run, node->kids[i + 1], &condition));
        if (tp_any_is_true(&condition))
            return tp_jinja_eval(run, node->kids[i], ret);
    }
    if (i < node->n_kids)
        return tp_jinja_eval(run, node->kids[i], ret);
    return tp_any_undefined_hint(
        run, "an inline 'if' was false and has no 'else', so it has no value", ret);
}

static tp_status add_keyword(tp_jinja_run *run, tp_jinja_args *args, tp_slice name,
                             const tp_any *value)
{
    for (size_t i = 0; i < args->n_named; i++)
        if (tp_slice_eq(args->names[i], name))
            return tp_jinja_fail(run, "argument '%.*s' is given twice", (int)TP_MIN(name.len, 60),
                                 name.data);
    args->names[args->n_named] = name;
    args->named[args->n_named++] = *value;
    return TP_OK;
}

tp_status tp_jinja_eval_args(tp_jinja_run *run, const tp_jinja_call *call, tp_jinja_args *ret)
{
    void *values = NULL, *names = NULL, *named = NULL;
    tp_any more = {0}, keywords = {0};
    size_t n_more = 0, n_keywords = 0;
    *ret = (tp_jinja_args){0};
    if (call->n_args == 0 && call->n_keywords == 0 && !call->more_args && !call->more_keywords)
        return TP_OK;
    TP_TRY(tp_jinja_take(run, call->n_args, sizeof(tp_any), &values));
    ret->values = values;
    for (size_t i = 0; i < call->n_args; i++)
        TP_TRY(tp_jinja_eval(run, call->args[i], &ret->values[i]));
    ret->n = call->n_args;
    if (call->more_args) {
        tp_any source;
        TP_TRY(tp_jinja_eval(run, call->more_args, &source));
        TP_TRY(tp_any_list_of(run, &source, &more));
        n_more = more.items->n;
        TP_TRY(tp_jinja_take(run, ret->n + n_more, sizeof(tp_any), &values));
        if (ret->n)
            memcpy(values, ret->values, ret->n * sizeof(tp_any));
        ret->values = values;
        for (size_t i = 0; i < n_more; i++)
            ret->values[ret->n++] = more.items->values[i];
    }
    if (call->more_keywords) {
        TP_TRY(tp_jinja_eval(run, call->more_keywords, &keywords));
        if (keywords.type != TP_ANY_DICT)
            return tp_jinja_fail(run, "** needs a dict, not '%s'", tp_any_type_name(&keywords));
        n_keywords = keywords.dict->n;
    }
    /* One more for the caller of a call block. */
    TP_TRY(tp_jinja_take(run, call->n_keywords + n_keywords + 1, sizeof(tp_slice), &names));
    TP_TRY(tp_jinja_take(run, call->n_keywords + n_keywords + 1, sizeof(tp_any), &named));
    ret->names = names;
    ret->named = named;
    for (size_t i = 0; i < call->n_keywords; i++) {
        tp_any value;
        TP_TRY(tp_jinja_eval(run, call->values[i], &value));
        TP_TRY(add_keyword(run, ret, call->names[i], &value));
    }
    for (size_t i = 0; i < n_keywords; i++) {
        const struct tp_any_entry *e = &keywords.dict->entries[i];
        if (e->key.type != TP_ANY_STR)
            return tp_jinja_fail(run, "** needs a dict whose keys are strings");
        TP_TRY(add_keyword(run, ret, e->key.text, &e->value));
    }
    return TP_OK;
}

static tp_status eval_call(tp_jinja_run *run, const tp_jinja_node *node, tp_any *ret)
{
    tp_any callee;
    tp_jinja_args args;
    TP_TRY(tp_jinja_eval(run, node->kids[0], &callee));
    TP_TRY(tp_jinja_eval_args(run, node->call, &args));
    run->line = node->line;
    return tp_jinja_call_value(run, &callee, &args, ret);
}

tp_status tp_jinja_filter_node(tp_jinja_run *run, const tp_jinja_node *node, const tp_any *text,
                               tp_any *ret)
{
    tp_any self;
    tp_jinja_args args;
    TP_TRY(tp_jinja_enter(run));
    if (!node->kids[0])
        self = *text;
    else if (node->kids[0]->kind == TP_JINJA_NODE_FILTER)
        TP_TRY(tp_jinja_filter_node(run, node->kids[0], text, &self));
    else
        TP_TRY(tp_jinja_eval(run, node->kids[0], &self));
    TP_TRY(tp_jinja_eval_args(run, node->call, &args));
    run->line = node->line;
    TP_TRY(tp_jinja_call_filter(run, node->text, &self, &args, ret));
    tp_jinja_leave(run);
    return TP_OK;
}

static tp_status eval_test(tp_jinja_run *run, const tp_jinja_node *node, tp_any *ret)
{
    tp_any self;
    tp_jinja_args args;
    bool holds = false;
    TP_TRY(tp_jinja_eval(run, node->kids[0], &self));
    TP_TRY(tp_jinja_eval_args(run, node->call, &args));
    run->line = node->line;
    TP_TRY(tp_jinja_call_test(run, node->text, &self, &args, &holds));
    *ret = tp_any_bool(holds);
    return TP_OK;
}

static tp_status eval_inner(tp_jinja_run *run, const tp_jinja_node *node, tp_any *ret)
{
    tp_any a, b;
    switch ((tp_jinja_node_kind)node->kind) {
    case TP_JINJA_NODE_TUPLE:
    case TP_JINJA_NODE_LIST:
        return eval_list(run, node, ret);
    case TP_JINJA_NODE_DICT:
        return eval_dict(run, node, ret);
    case TP_JINJA_NODE_ATTR:
        TP_TRY(tp_jinja_eval(run, node->kids[0], &a));
        run->line = node->line;
        return tp_jinja_get_attr(run, &a, node->text, ret);
    case TP_JINJA_NODE_ITEM:
        TP_TRY(tp_jinja_eval(run, node->kids[0], &a));
        TP_TRY(tp_jinja_eval(run, node->kids[1], &b));
        run->line = node->line;
        return tp_jinja_get_item(run, &a, &b, ret);
    case TP_JINJA_NODE_SLICE:
        return eval_slice(run, node, ret);
    case TP_JINJA_NODE_CALL:
        return eval_call(run, node, ret);
    case TP_JINJA_NODE_FILTER:
        return tp_jinja_filter_node(run, node, NULL, ret);
    case TP_JINJA_NODE_TEST:
        return eval_test(run, node, ret);
    case TP_JINJA_NODE_NOT:
        TP_TRY(tp_jinja_eval(run, node->kids[0], &a));
        *ret = tp_any_bool(!tp_any_is_true(&a));
        return TP_OK;
    case TP_JINJA_NODE_NEGATE:
    case TP_JINJA_NODE_PLUS:
        TP_TRY(tp_jinja_eval(run, node->kids[0], &a));
        return tp_jinja_negate(run, &a, node->kind == TP_JINJA_NODE_NEGATE, ret);
    case TP_JINJA_NODE_CHAIN:
        return eval_chain(run, node, ret);
    case TP_JINJA_NODE_CONCAT:
        return eval_concat(run, node, ret);
    case TP_JINJA_NODE_COMPARE:
        return eval_compare(run, node, ret);
    case TP_JINJA_NODE_AND:
    case TP_JINJA_NODE_OR:
        return eval_logic(run, node, ret);
    case TP_JINJA_NODE_COND:
        return eval_condition(run, node, ret);
    default:
        return tp_jinja_fail(run, "this is not an expression");
    }
}

tp_status tp_jinja_eval(tp_jinja_run *run, const tp_jinja_node *node, tp_any *ret)
{
    run->line = node->line;
    if (node->kind == TP_JINJA_NODE_CONST) {
        *ret = node->value;
        return TP_OK;
    }
    if (node->kind == TP_JINJA_NODE_NAME)
        return eval_name(run, node, ret);
    TP_TRY(tp_jinja_enter(run));
    TP_TRY(tp_jinja_charge(run, 1));
    TP_TRY(eval_inner(run, node, ret));
    tp_jinja_leave(run);
    return TP_OK;
}
