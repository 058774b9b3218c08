/* jinja_loop.c - for, and the `loop` that its body sees.
 *
 * Elements are fetched one at a time, and one ahead only when loop.last or
 * loop.nextitem asks: a filter in the head of the loop sees what the body has
 * changed, as in jinja2. */
#include "text/template/jinja_run.h"

enum { TARGET, ITERABLE, CONDITION, BODY, ELSE }; /* the node's kids */

struct tp_jinja_loop {
    const tp_jinja_node *node;
    tp_jinja_scope *outer; /* where the loop stands */
    tp_any source;
    tp_any_walk walk;
    bool filters;                  /* the head has a condition that still applies */
    tp_any after, current, before; /* MISSING: none, or not fetched */
    int64_t index0, length;        /* length -1: not known */
    tp_any changed;                /* what loop.changed() saw last */
};

/* Does the head's condition hold for an element? */
static bool passes(tp_jinja_run *run, const struct tp_jinja_loop *loop, tp_any element)
{
    tp_jinja_scope *scope = run->scope;
    run->scope = tp_jinja_new_scope(run, loop->outer);
    tp_jinja_assign(run, loop->node->kids[TARGET], element);
    bool holds = tp_any_is_true(run->eval(run, loop->node->kids[CONDITION]));
    run->scope = scope;
    return holds;
}

/* The next element of the source; MISSING at the end. */
static tp_any fetch(tp_jinja_run *run, struct tp_jinja_loop *loop)
{
    tp_any element;
    while (tp_any_walk_next(run, &loop->walk, &element))
        if (!loop->filters || passes(run, loop, element))
            return element;
    return (tp_any){0};
}

/* Is there another element?  It is in loop->after. */
static bool peek(tp_jinja_run *run, struct tp_jinja_loop *loop)
{
    if (loop->after.type == TP_ANY_MISSING)
        loop->after = fetch(run, loop);
    return loop->after.type != TP_ANY_MISSING;
}

/* What has no length of its own is read to its end. */
static int64_t length_of(tp_jinja_run *run, struct tp_jinja_loop *loop)
{
    if (loop->length >= 0)
        return loop->length;
    if (!loop->filters && loop->source.type != TP_ANY_ITERATOR) {
        loop->length = (int64_t)tp_any_length(run, loop->source);
        return loop->length;
    }
    tp_any rest = tp_any_new_list(run, TP_ANY_LIST, 0), element;
    while ((element = fetch(run, loop)).type != TP_ANY_MISSING)
        tp_any_append(run, rest.items, element);
    loop->filters = false;
    loop->length = (int64_t)rest.items->n + loop->index0 + 1 + (loop->after.type != TP_ANY_MISSING);
    loop->walk = tp_any_walk_begin(run, rest);
    return loop->length;
}

static tp_jinja_flow run_body(tp_jinja_run *run, struct tp_jinja_loop *loop, tp_jinja_scope *scope)
{
    scope->n = 0;
    run->scope = scope;
    tp_jinja_bind_name(run, scope, run->template->symbol_loop,
                       (tp_any){.type = TP_ANY_LOOP, .loop = loop});
    tp_jinja_assign(run, loop->node->kids[TARGET], loop->current);
    return run->exec(run, loop->node->kids[BODY]);
}

/* All turns, then the else part when no turn reached its end. */
tp_jinja_flow tp_jinja_exec_for(tp_jinja_run *run, const tp_jinja_node *node)
{
    struct tp_jinja_loop *loop = tp_jinja_take(run, 1, sizeof *loop);
    tp_jinja_scope *outer = run->scope, *scope = NULL;
    tp_jinja_flow turn = TP_JINJA_FLOW_NEXT, flow = TP_JINJA_FLOW_NEXT;
    bool completed = false;
    *loop = (struct tp_jinja_loop){.node = node,
                                   .outer = outer,
                                   .source = run->eval(run, node->kids[ITERABLE]),
                                   .filters = node->kids[CONDITION] != NULL,
                                   .index0 = -1,
                                   .length = -1};
    run->line = node->line;
    loop->walk = tp_any_walk_begin(run, loop->source);
    while (turn != TP_JINJA_FLOW_BREAK && peek(run, loop)) {
        loop->before = loop->current;
        loop->current = loop->after;
        loop->after = (tp_any){0};
        loop->index0++;
        if (!scope || scope->is_captured)
            scope = tp_jinja_new_scope(run, outer);
        turn = run_body(run, loop, scope);
        completed |= turn == TP_JINJA_FLOW_NEXT;
        run->scope = outer;
    }
    if (!completed && node->kids[ELSE]) {
        run->scope = tp_jinja_new_scope(run, outer);
        flow = run->exec(run, node->kids[ELSE]);
        run->scope = outer;
    }
    return flow;
}

static tp_any loop_cycle(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    const struct tp_any_items *values = &c->args->values;
    if (values->n == 0 || c->args->named.n)
        tp_jinja_fail(run, "loop.cycle() needs the values to go through");
    return values->values[(size_t)c->self.loop->index0 % values->n];
}

static tp_any loop_changed(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    struct tp_jinja_loop *loop = c->self.loop;
    tp_any seen = tp_any_new_list(run, TP_ANY_TUPLE, 0);
    *seen.items = c->args->values;
    bool same = loop->changed.type != TP_ANY_MISSING && tp_any_equal(run, loop->changed, seen);
    loop->changed = seen;
    return tp_any_bool(!same);
}

const tp_jinja_function tp_jinja_loop_methods[] = {
    {"changed", loop_changed, NULL, 0}, {"cycle", loop_cycle, NULL, 0}, {0}};

static tp_any item_or(tp_jinja_run *run, bool is_there, tp_any item, const char *hint)
{
    return is_there ? item : tp_any_hint(run, hint);
}

tp_any tp_jinja_loop_attr(tp_jinja_run *run, struct tp_jinja_loop *loop, tp_slice name)
{
    enum { INDEX0, INDEX, FIRST, DEPTH0, DEPTH, LAST, NEXT, PREVIOUS, LENGTH, REVERSE, REVERSE0 };
    static const char names[] = "index0 index first depth0 depth last nextitem previtem length "
                                "revindex revindex0";
    int64_t index0 = loop->index0;
    switch (tp_python_word(names, name)) {
    case INDEX0:
        return tp_any_int(index0);
    case INDEX:
        return tp_any_int(index0 + 1);
    case FIRST:
        return tp_any_bool(index0 == 0);
    case DEPTH0:
        return tp_any_int(0); /* no loop is recursive */
    case DEPTH:
        return tp_any_int(1);
    case LAST:
        return tp_any_bool(!peek(run, loop));
    case NEXT:
        return item_or(run, peek(run, loop), loop->after, "there is no next item");
    case PREVIOUS:
        return item_or(run, index0 > 0, loop->before, "there is no previous item");
    case LENGTH:
        return tp_any_int(length_of(run, loop));
    case REVERSE:
        return tp_any_int(length_of(run, loop) - index0);
    case REVERSE0:
        return tp_any_int(length_of(run, loop) - index0 - 1);
    default:
        return (tp_any){0};
    }
}

void tp_jinja_loop_print(tp_jinja_text *out, struct tp_jinja_loop *loop)
{
    int64_t length = length_of(out->run, loop);
    tp_jinja_addf(out, "<LoopContext %lld/%lld>", (long long)loop->index0 + 1, (long long)length);
}
