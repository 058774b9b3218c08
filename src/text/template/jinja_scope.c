/* jinja_scope.c - names, what is assigned to them, bodies whose text is caught, and what can be
 * called. */
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_run.h"

tp_jinja_scope *tp_jinja_new_scope(tp_jinja_run *run, tp_jinja_scope *parent)
{
    tp_jinja_scope *scope = tp_jinja_take(run, 1, sizeof *scope);
    scope->parent = parent;
    return scope;
}

void tp_jinja_bind_name(tp_jinja_run *run, tp_jinja_scope *scope, uint32_t symbol, tp_any value)
{
    size_t i = 0;
    if (scope == run->root_scope) {
        run->root[symbol] = value;
        return;
    }
    while (i < scope->n && scope->bindings[i].symbol != symbol)
        i++;
    if (i == scope->n) {
        scope->bindings =
            tp_jinja_room(run, scope->bindings, scope->n, &scope->cap, sizeof *scope->bindings);
        scope->n++;
    }
    scope->bindings[i].symbol = symbol;
    scope->bindings[i].value = value;
}

static void assign_attribute(tp_jinja_run *run, const tp_jinja_node *target, tp_any value)
{
    const tp_jinja_node name = {
        .kind = TP_JINJA_NODE_NAME, .line = target->line, .symbol = target->symbol};
    tp_any object = run->eval(run, &name);
    if (object.type != TP_ANY_NAMESPACE)
        tp_jinja_fail(run, "'%.*s' is not a namespace: only of those can attributes be set",
                      (int)run->template->names[target->symbol].len,
                      run->template->names[target->symbol].data);
    if (target->text.data[0] == '_')
        tp_jinja_fail(run, "attributes of a namespace cannot begin with '_'");
    tp_any_dict_put(run, object.dict, tp_any_text(target->text), value);
}

void tp_jinja_assign(tp_jinja_run *run, const tp_jinja_node *target, tp_any value)
{
    run->line = target->line;
    if (target->kind == TP_JINJA_NODE_NAME) {
        tp_jinja_bind_name(run, run->scope, target->symbol, value);
        return;
    }
    if (target->kind == TP_JINJA_NODE_NSREF) {
        assign_attribute(run, target, value);
        return;
    }
    if (!tp_any_is_iterable(value))
        tp_jinja_fail(run, "a '%s' cannot be unpacked into %zu names", tp_any_type_name(value),
                      target->n_kids);
    const struct tp_any_items *list = tp_any_list_of(run, value);
    if (list->n != target->n_kids)
        tp_jinja_fail(run, "%zu values are unpacked into %zu names", list->n, target->n_kids);
    for (size_t i = 0; i < target->n_kids; i++)
        tp_jinja_assign(run, target->kids[i], list->values[i]);
}

tp_any tp_jinja_capture(tp_jinja_run *run, const tp_jinja_node *body)
{
    tp_jinja_text text = {.run = run}, *outer = run->out;
    run->out = &text;
    run->exec(run, body);
    run->out = outer;
    return tp_jinja_text_value(&text);
}

/* --- macros --- */

/* What was given for a parameter without a place; MISSING. */
static tp_any take_keyword(tp_jinja_run *run, const tp_jinja_args *args, bool *taken, tp_slice name)
{
    const tp_any *found = tp_any_dict_get(run, &args->named, tp_any_text(name));
    for (size_t k = 0; found && k < args->named.n; k++)
        taken[k] |= found == &args->named.entries[k].value;
    return found ? *found : (tp_any){0};
}

/* Keywords that no parameter has taken. */
static void bind_keywords(tp_jinja_run *run, const tp_jinja_node *d, const tp_jinja_args *args,
                          const bool *taken, tp_jinja_scope *scope)
{
    tp_any left = tp_any_new_dict(run, args->named.n);
    for (size_t k = 0; k < args->named.n; k++)
        if (!taken[k])
            tp_any_dict_put(run, left.dict, args->named.entries[k].key,
                            args->named.entries[k].value);
    if (d->macro.uses_kwargs) {
        tp_jinja_bind_name(run, scope, run->template->symbol_kwargs, left);
    } else if (left.dict->n) {
        tp_slice name = left.dict->entries[0].key.text;
        tp_jinja_fail(run, "macro '%.*s' takes no keyword argument '%.*s'", (int)d->text.len,
                      d->text.data, (int)TP_MIN(name.len, 60), name.data);
    }
}

/* Arguments behind the last parameter. */
static void bind_varargs(tp_jinja_run *run, const tp_jinja_node *d, const tp_jinja_args *args,
                         size_t n_params, tp_jinja_scope *scope)
{
    size_t n_more = args->values.n > n_params ? args->values.n - n_params : 0;
    if (d->macro.uses_varargs) {
        tp_any more = tp_any_new_list(run, TP_ANY_TUPLE, n_more);
        if (n_more)
            memcpy(more.items->values, args->values.values + n_params, n_more * sizeof more);
        tp_jinja_bind_name(run, scope, run->template->symbol_varargs, more);
    } else if (n_more) {
        tp_jinja_fail(run, "macro '%.*s' takes not more than %zu arguments", (int)d->text.len,
                      d->text.data, n_params);
    }
}

/* Defaults are found in the macro's own scope, so they see the parameters before. */
static void bind_params(tp_jinja_run *run, const tp_jinja_node *d, size_t n_params,
                        const tp_any *given, tp_jinja_scope *scope)
{
    for (size_t i = 0; i < n_params; i++) {
        const tp_jinja_node *param = d->kids[i];
        tp_any value = given[i];
        if (value.type == TP_ANY_MISSING)
            value = param->n_kids ? run->eval(run, param->kids[0])
                                  : tp_any_hint(run, "a parameter of a macro was not provided");
        tp_jinja_bind_name(run, scope, param->symbol, value);
    }
}

static tp_any call_macro(tp_jinja_run *run, const struct tp_any_macro *macro,
                         const tp_jinja_args *args)
{
    const tp_jinja_node *d = macro->definition;
    tp_jinja_scope *outer = run->scope;
    size_t n_params = d->n_kids - 1;
    tp_jinja_enter(run);
    tp_any *given = tp_jinja_take(run, n_params, sizeof *given);
    bool *taken = tp_jinja_take(run, args->named.n, sizeof *taken);
    for (size_t i = 0; i < n_params; i++)
        given[i] = i < args->values.n
                       ? args->values.values[i]
                       : take_keyword(run, args, taken, run->template->names[d->kids[i]->symbol]);
    tp_jinja_scope *scope = run->scope = tp_jinja_new_scope(run, macro->scope);
    if (d->macro.uses_caller && !d->macro.caller_is_param) {
        tp_any caller = take_keyword(run, args, taken, TP_SLICE("caller"));
        if (caller.type == TP_ANY_MISSING)
            caller = tp_any_hint(run, "No caller defined");
        tp_jinja_bind_name(run, scope, run->template->symbol_caller, caller);
    }
    bind_keywords(run, d, args, taken, scope);
    bind_varargs(run, d, args, n_params, scope);
    bind_params(run, d, n_params, given, scope);
    tp_any text = tp_jinja_capture(run, d->kids[n_params]);
    run->scope = outer;
    run->depth--;
    return text;
}

tp_any tp_jinja_call_value(tp_jinja_run *run, tp_any callee, const tp_jinja_args *args)
{
    tp_jinja_charge(run, 1);
    tp_jinja_want_defined(run, callee);
    if (callee.type == TP_ANY_FUNCTION)
        return tp_jinja_call_function(run, callee.function, (tp_any){0}, args);
    if (callee.type == TP_ANY_METHOD)
        return tp_jinja_call_function(run, callee.method->function, callee.method->self, args);
    if (callee.type == TP_ANY_MACRO)
        return call_macro(run, callee.macro, args);
    tp_jinja_fail(run, "a '%s' cannot be called", tp_any_type_name(callee));
}
