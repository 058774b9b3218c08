/* jinja_scope.c - names, what is assigned to them, and bodies whose text is caught. */
#include <string.h>

#include "text/template/jinja_run.h"

tp_status tp_jinja_new_scope(tp_jinja_run *run, tp_jinja_scope *parent, tp_jinja_scope **ret)
{
    void *memory = NULL;
    TP_TRY(tp_jinja_take(run, 1, sizeof(tp_jinja_scope), &memory));
    *ret = memory;
    (*ret)->parent = parent;
    return TP_OK;
}

tp_status tp_jinja_bind_name(tp_jinja_run *run, tp_jinja_scope *scope, uint32_t symbol,
                             const tp_any *value)
{
    if (scope == run->root_scope) {
        run->root[symbol] = *value;
        return TP_OK;
    }
    for (uint32_t i = 0; i < scope->n; i++)
        if (scope->bindings[i].symbol == symbol) {
            scope->bindings[i].value = *value;
            return TP_OK;
        }
    if (scope->n == scope->cap) {
        uint32_t cap = 2 * scope->cap + 4;
        void *bindings;
        TP_TRY(tp_jinja_take(run, cap, sizeof *scope->bindings, &bindings));
        if (scope->n)
            memcpy(bindings, scope->bindings, scope->n * sizeof *scope->bindings);
        scope->bindings = bindings;
        scope->cap = cap;
    }
    scope->bindings[scope->n].symbol = symbol;
    scope->bindings[scope->n++].value = *value;
    return TP_OK;
}

static tp_status assign_attribute(tp_jinja_run *run, const tp_jinja_node *target,
                                  const tp_any *value)
{
    tp_jinja_node name = {
        .kind = TP_JINJA_NODE_NAME, .line = target->line, .symbol = target->symbol};
    tp_any object, key = tp_any_text(target->text.data, target->text.len);
    TP_TRY(run->eval(run, &name, &object));
    if (object.type != TP_ANY_NAMESPACE)
        return tp_jinja_fail(run, "'%.*s' is not a namespace: only of those can attributes be set",
                             (int)run->template->names[target->symbol].len,
                             run->template->names[target->symbol].data);
    if (target->text.data[0] == '_')
        return tp_jinja_fail(run, "attributes of a namespace cannot begin with '_'");
    return tp_any_dict_put(run, object.dict, &key, value);
}

tp_status tp_jinja_assign(tp_jinja_run *run, const tp_jinja_node *target, const tp_any *value)
{
    run->line = target->line;
    if (target->kind == TP_JINJA_NODE_NAME)
        return tp_jinja_bind_name(run, run->scope, target->symbol, value);
    if (target->kind == TP_JINJA_NODE_NSREF)
        return assign_attribute(run, target, value);
    tp_any list;
    if (!tp_any_is_iterable(value))
        return tp_jinja_fail(run, "a '%s' cannot be unpacked into %u names",
                             tp_any_type_name(value), (unsigned)target->n_kids);
    TP_TRY(tp_any_list_of(run, value, &list));
    if (list.items->n != target->n_kids)
        return tp_jinja_fail(run, "%zu values are unpacked into %u names", list.items->n,
                             (unsigned)target->n_kids);
    for (uint32_t i = 0; i < target->n_kids; i++)
        TP_TRY(tp_jinja_assign(run, target->kids[i], &list.items->values[i]));
    return TP_OK;
}

tp_status tp_jinja_capture(tp_jinja_run *run, const tp_jinja_node *body, tp_any *ret)
{
    tp_jinja_text text = {.run = run}, *outer = run->out;
    tp_jinja_flow flow = TP_JINJA_FLOW_NEXT;
    run->out = &text;
    TP_TRY(run->exec(run, body, &flow));
    run->out = outer;
    *ret = tp_jinja_text_value(&text);
    return TP_OK;
}
