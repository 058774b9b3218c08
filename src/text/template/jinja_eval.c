/* jinja_eval.c - expressions. */
#include "base/platform.h"
#include "text/template/jinja_run.h"

static tp_any eval_name(tp_jinja_run *run, const tp_jinja_node *node)
{
    for (const tp_jinja_scope *s = run->scope; s; s = s->parent) {
        if (s == run->root_scope && run->root[node->symbol].type != TP_ANY_MISSING)
            return run->root[node->symbol];
        for (size_t i = s->n; i-- > 0;)
            if (s->bindings[i].symbol == node->symbol)
                return s->bindings[i].value;
    }
    tp_slice name = run->template->names[node->symbol];
    const tp_jinja_function *global = tp_jinja_global(name);
    if (global)
        return (tp_any){.type = TP_ANY_FUNCTION, .function = global};
    return tp_any_undefined(run, (struct tp_any_undefined){.name = name});
}

static tp_any eval_list(tp_jinja_run *run, const tp_jinja_node *node)
{
    tp_any_type type = node->kind == TP_JINJA_NODE_TUPLE ? TP_ANY_TUPLE : TP_ANY_LIST;
    tp_any list = tp_any_new_list(run, type, node->n_kids);
    for (size_t i = 0; i < node->n_kids; i++)
        list.items->values[i] = tp_jinja_eval(run, node->kids[i]);
    return list;
}

static tp_any eval_dict(tp_jinja_run *run, const tp_jinja_node *node)
{
    tp_any dict = tp_any_new_dict(run, node->n_kids / 2);
    for (size_t i = 0; i < node->n_kids; i += 2) {
        tp_any key = tp_jinja_eval(run, node->kids[i]);
        tp_any_dict_put(run, dict.dict, key, tp_jinja_eval(run, node->kids[i + 1]));
    }
    return dict;
}

static tp_any eval_slice(tp_jinja_run *run, const tp_jinja_node *node)
{
    tp_any bounds[3], object = tp_jinja_eval(run, node->kids[0]);
    for (int i = 0; i < 3; i++)
        bounds[i] = node->kids[i + 1] ? tp_jinja_eval(run, node->kids[i + 1]) : tp_any_none();
    return tp_jinja_get_slice(run, object, bounds);
}

/* One operator after the other: the result of one is the left side of the next; of comparisons,
 * which go on while they hold, it is the right side. */
static tp_any eval_chain(tp_jinja_run *run, const tp_jinja_node *node)
{
    tp_any left = tp_jinja_eval(run, node->kids[0]), result = left;
    for (size_t i = 1; i < node->n_kids; i++) {
        tp_any right = tp_jinja_eval(run, node->kids[i]);
        result = tp_jinja_binary(run, (tp_jinja_op)node->kids[i]->op, left, right);
        if (node->kind == TP_JINJA_NODE_COMPARE && !result.truth)
            break;
        left = node->kind == TP_JINJA_NODE_COMPARE ? right : result;
    }
    return result;
}

static tp_any eval_concat(tp_jinja_run *run, const tp_jinja_node *node)
{
    tp_jinja_text out = {.run = run};
    for (size_t i = 0; i < node->n_kids; i++)
        tp_any_str(&out, tp_jinja_eval(run, node->kids[i]));
    return tp_jinja_text_value(&out);
}

/* The value that decides, as in Python. */
static tp_any eval_logic(tp_jinja_run *run, const tp_jinja_node *node)
{
    for (size_t i = 0;; i++) {
        tp_any v = tp_jinja_eval(run, node->kids[i]);
        if (i + 1 == node->n_kids || tp_any_is_true(v) == (node->kind == TP_JINJA_NODE_OR))
            return v;
    }
}

static tp_any eval_condition(tp_jinja_run *run, const tp_jinja_node *node)
{
    size_t i = 0;
    while (i + 1 < node->n_kids && !tp_any_is_true(tp_jinja_eval(run, node->kids[i + 1])))
        i += 2;
    if (i < node->n_kids)
        return tp_jinja_eval(run, node->kids[i]);
    return tp_any_hint(run, "an inline 'if' was false and has no 'else', so it has no value");
}

static void add_keyword(tp_jinja_run *run, tp_jinja_args *args, tp_any name, tp_any value)
{
    if (tp_any_dict_get(run, &args->named, name))
        tp_jinja_fail(run, "argument '%.*s' is given twice", (int)TP_MIN(name.text.len, 60),
                      name.text.data);
    tp_any_dict_put(run, &args->named, name, value);
}

/* **v */
static void add_keywords(tp_jinja_run *run, tp_jinja_args *args, tp_any v)
{
    if (v.type != TP_ANY_DICT)
        tp_jinja_fail(run, "** needs a dict, not '%s'", tp_any_type_name(v));
    for (size_t i = 0; i < v.dict->n; i++) {
        if (v.dict->entries[i].key.type != TP_ANY_STR)
            tp_jinja_fail(run, "** needs a dict whose keys are strings");
        add_keyword(run, args, v.dict->entries[i].key, v.dict->entries[i].value);
    }
}

tp_jinja_args tp_jinja_eval_args(tp_jinja_run *run, const tp_jinja_node *call)
{
    tp_jinja_args args = {0};
    for (size_t i = 1; i < call->n_kids; i++) {
        const tp_jinja_node *arg = call->kids[i];
        bool is_plain = arg->kind != TP_JINJA_NODE_KEYWORD && arg->kind != TP_JINJA_NODE_ARGS &&
                        arg->kind != TP_JINJA_NODE_KEYWORDS;
        tp_any value = tp_jinja_eval(run, is_plain ? arg : arg->kids[0]);
        if (is_plain) {
            tp_any_append(run, &args.values, value);
        } else if (arg->kind == TP_JINJA_NODE_KEYWORD) {
            add_keyword(run, &args, tp_any_text(arg->text), value);
        } else if (arg->kind == TP_JINJA_NODE_KEYWORDS) {
            add_keywords(run, &args, value);
        } else {
            tp_any_walk walk = tp_any_walk_begin(run, value);
            for (tp_any element; tp_any_walk_next(run, &walk, &element);)
                tp_any_append(run, &args.values, element);
        }
    }
    return args;
}

static tp_any eval_call(tp_jinja_run *run, const tp_jinja_node *node)
{
    tp_any callee = tp_jinja_eval(run, node->kids[0]);
    tp_jinja_args args = tp_jinja_eval_args(run, node);
    run->line = node->line;
    return tp_jinja_call_value(run, callee, &args);
}

tp_any tp_jinja_filter_node(tp_jinja_run *run, const tp_jinja_node *node, tp_any text)
{
    const tp_jinja_node *inner = node->kids[0];
    tp_any self = text;
    tp_jinja_enter(run);
    if (inner && inner->kind == TP_JINJA_NODE_FILTER)
        self = tp_jinja_filter_node(run, inner, text);
    else if (inner)
        self = tp_jinja_eval(run, inner);
    tp_jinja_args args = tp_jinja_eval_args(run, node);
    run->line = node->line;
    tp_any result = tp_jinja_call_filter(run, node->text, self, &args);
    run->depth--;
    return result;
}

static tp_any eval_test(tp_jinja_run *run, const tp_jinja_node *node)
{
    tp_any self = tp_jinja_eval(run, node->kids[0]);
    tp_jinja_args args = tp_jinja_eval_args(run, node);
    run->line = node->line;
    return tp_any_bool(tp_jinja_call_test(run, node->text, self, &args));
}

static tp_any eval_filter(tp_jinja_run *run, const tp_jinja_node *node)
{
    return tp_jinja_filter_node(run, node, (tp_any){0});
}

static tp_any eval_attr(tp_jinja_run *run, const tp_jinja_node *node)
{
    tp_any object = tp_jinja_eval(run, node->kids[0]);
    run->line = node->line;
    return tp_jinja_get_attr(run, object, node->text);
}

static tp_any eval_item(tp_jinja_run *run, const tp_jinja_node *node)
{
    tp_any object = tp_jinja_eval(run, node->kids[0]), key = tp_jinja_eval(run, node->kids[1]);
    run->line = node->line;
    return tp_jinja_get_item(run, object, key);
}

static tp_any eval_not(tp_jinja_run *run, const tp_jinja_node *node)
{
    return tp_any_bool(!tp_any_is_true(tp_jinja_eval(run, node->kids[0])));
}

static tp_any eval_sign(tp_jinja_run *run, const tp_jinja_node *node)
{
    tp_any v = tp_jinja_eval(run, node->kids[0]);
    return tp_jinja_signed(run, v, node->kind == TP_JINJA_NODE_NEGATE);
}

/* Of the expressions; the parser puts no other node where one is wanted. */
static tp_any (*const evaluations[TP_JINJA_NODE_CONTINUE + 1])(tp_jinja_run *,
                                                               const tp_jinja_node *) = {
    [TP_JINJA_NODE_TUPLE] = eval_list,    [TP_JINJA_NODE_LIST] = eval_list,
    [TP_JINJA_NODE_DICT] = eval_dict,     [TP_JINJA_NODE_ATTR] = eval_attr,
    [TP_JINJA_NODE_ITEM] = eval_item,     [TP_JINJA_NODE_SLICE] = eval_slice,
    [TP_JINJA_NODE_CALL] = eval_call,     [TP_JINJA_NODE_FILTER] = eval_filter,
    [TP_JINJA_NODE_TEST] = eval_test,     [TP_JINJA_NODE_NOT] = eval_not,
    [TP_JINJA_NODE_NEGATE] = eval_sign,   [TP_JINJA_NODE_PLUS] = eval_sign,
    [TP_JINJA_NODE_CHAIN] = eval_chain,   [TP_JINJA_NODE_COMPARE] = eval_chain,
    [TP_JINJA_NODE_CONCAT] = eval_concat, [TP_JINJA_NODE_AND] = eval_logic,
    [TP_JINJA_NODE_OR] = eval_logic,      [TP_JINJA_NODE_COND] = eval_condition,
};

tp_any tp_jinja_eval(tp_jinja_run *run, const tp_jinja_node *node)
{
    run->line = node->line;
    if (node->kind == TP_JINJA_NODE_CONST)
        return node->value;
    if (node->kind == TP_JINJA_NODE_NAME)
        return eval_name(run, node);
    TP_ASSERT(evaluations[node->kind]);
    tp_jinja_enter(run);
    tp_jinja_charge(run, 1);
    tp_any value = evaluations[node->kind](run, node);
    run->depth--;
    return value;
}
