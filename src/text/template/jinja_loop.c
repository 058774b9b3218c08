/* jinja_loop.c - for, and the `loop` that its body sees.
 *
 * Elements are fetched one at a time, and one ahead only when loop.last or
 * loop.nextitem asks: a filter in the head of the loop sees what the body has
 * changed, as in jinja2. */
#include <string.h>

#include "text/template/jinja_run.h"

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
static tp_status passes(tp_jinja_run *run, const struct tp_jinja_loop *loop, const tp_any *element,
                        bool *ret)
{
    tp_jinja_scope *scope = run->scope;
    tp_any condition;
    TP_TRY(tp_jinja_new_scope(run, loop->outer, &run->scope));
    TP_TRY(tp_jinja_assign(run, loop->node->kids[0], element));
    TP_TRY(run->eval(run, loop->node->kids[4], &condition));
    *ret = tp_any_is_true(&condition);
    run->scope = scope;
    return TP_OK;
}

/* The next element of the source; MISSING at the end. */
static tp_status fetch(tp_jinja_run *run, struct tp_jinja_loop *loop, tp_any *ret)
{
    bool more = false, good = true;
    do {
        TP_TRY(tp_any_walk_next(run, &loop->walk, ret, &more));
        if (!more) {
            *ret = (tp_any){0};
            return TP_OK;
        }
        if (loop->filters)
            TP_TRY(passes(run, loop, ret, &good));
    } while (!good);
    return TP_OK;
}

static tp_status peek(tp_jinja_run *run, struct tp_jinja_loop *loop)
{
    return loop->after.type == TP_ANY_MISSING ? fetch(run, loop, &loop->after) : TP_OK;
}

/* What has no length of its own is read to its end. */
static tp_status find_length(tp_jinja_run *run, struct tp_jinja_loop *loop)
{
    if (loop->length >= 0)
        return TP_OK;
    if (!loop->filters && loop->source.type != TP_ANY_ITERATOR) {
        size_t n = 0;
        TP_TRY(tp_any_length(run, &loop->source, &n));
        loop->length = (int64_t)n;
        return TP_OK;
    }
    tp_any rest, *values, element;
    void *memory = NULL;
    size_t n = 0, cap = 0;
    for (;;) {
        TP_TRY(fetch(run, loop, &element));
        if (element.type == TP_ANY_MISSING)
            break;
        if (n == cap) {
            void *more;
            cap = 2 * cap + 8;
            TP_TRY(tp_jinja_take(run, cap, sizeof element, &more));
            if (n)
                memcpy(more, memory, n * sizeof element);
            memory = more;
        }
        ((tp_any *)memory)[n++] = element;
    }
    TP_TRY(tp_any_new_list(run, TP_ANY_LIST, n, &rest, &values));
    if (n)
        memcpy(values, memory, n * sizeof *values);
    loop->filters = false;
    loop->length = (int64_t)n + loop->index0 + 1 + (loop->after.type != TP_ANY_MISSING);
    return tp_any_walk_begin(run, &rest, &loop->walk);
}

static tp_status run_body(tp_jinja_run *run, struct tp_jinja_loop *loop, tp_jinja_scope *scope,
                          tp_jinja_flow *flow)
{
    tp_any self = {.type = TP_ANY_LOOP, .loop = loop};
    scope->n = 0;
    run->scope = scope;
    TP_TRY(tp_jinja_bind_name(run, scope, run->template->symbol_loop, &self));
    TP_TRY(tp_jinja_assign(run, loop->node->kids[0], &loop->current));
    return run->exec(run, loop->node->kids[2], flow);
}

/* All turns, then the else part when no turn reached its end. */
static tp_status run_loop(tp_jinja_run *run, struct tp_jinja_loop *loop, tp_jinja_flow *flow)
{
    const tp_jinja_node *node = loop->node;
    tp_jinja_scope *caller_scope = run->scope, *scope = NULL;
    bool completed = false;
    for (tp_jinja_flow turn = TP_JINJA_FLOW_NEXT; turn != TP_JINJA_FLOW_BREAK;) {
        run->scope = loop->outer;
        TP_TRY(peek(run, loop));
        if (loop->after.type == TP_ANY_MISSING)
            break;
        loop->before = loop->current;
        loop->current = loop->after;
        loop->after = (tp_any){0};
        loop->index0++;
        if (!scope || scope->is_captured)
            TP_TRY(tp_jinja_new_scope(run, loop->outer, &scope));
        turn = TP_JINJA_FLOW_NEXT;
        TP_TRY(run_body(run, loop, scope, &turn));
        completed |= turn == TP_JINJA_FLOW_NEXT;
    }
    run->scope = loop->outer;
    if (!completed && node->kids[3]) {
        TP_TRY(tp_jinja_new_scope(run, loop->outer, &run->scope));
        TP_TRY(run->exec(run, node->kids[3], flow));
    }
    run->scope = caller_scope;
    return TP_OK;
}

static tp_status begin_loop(tp_jinja_run *run, const tp_jinja_node *node, tp_jinja_scope *outer,
                            const tp_any *source, struct tp_jinja_loop **ret)
{
    void *memory = NULL;
    TP_TRY(tp_jinja_take(run, 1, sizeof(struct tp_jinja_loop), &memory));
    struct tp_jinja_loop *loop = memory;
    *loop = (struct tp_jinja_loop){.node = node,
                                   .outer = outer,
                                   .source = *source,
                                   .filters = node->kids[4] != NULL,
                                   .index0 = -1,
                                   .length = -1};
    run->line = node->line;
    TP_TRY(tp_any_walk_begin(run, source, &loop->walk));
    *ret = loop;
    return TP_OK;
}

tp_status tp_jinja_exec_for(tp_jinja_run *run, const tp_jinja_node *node, tp_jinja_flow *flow)
{
    tp_any source;
    struct tp_jinja_loop *loop;
    TP_TRY(run->eval(run, node->kids[1], &source));
    TP_TRY(begin_loop(run, node, run->scope, &source, &loop));
    return run_loop(run, loop, flow);
}

static tp_status loop_cycle(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    if (c->args->n == 0 || c->args->n_named)
        return tp_jinja_fail(run, "loop.cycle() needs the values to go through");
    *ret = c->args->values[(size_t)c->self->loop->index0 % c->args->n];
    return TP_OK;
}

static tp_status loop_changed(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    struct tp_jinja_loop *loop = c->self->loop;
    tp_any seen, *values;
    bool same = false;
    TP_TRY(tp_any_new_list(run, TP_ANY_TUPLE, c->args->n, &seen, &values));
    if (c->args->n)
        memcpy(values, c->args->values, c->args->n * sizeof *values);
    if (loop->changed.type != TP_ANY_MISSING)
        TP_TRY(tp_any_equal(run, &loop->changed, &seen, &same));
    loop->changed = seen;
    *ret = tp_any_bool(!same);
    return TP_OK;
}

tp_status tp_jinja_loop_attr(tp_jinja_run *run, struct tp_jinja_loop *loop, tp_slice name,
                             tp_any *ret, bool *ret_found)
{
    static const tp_jinja_function cycle = {"cycle", loop_cycle, NULL, 0, NULL},
                                   changed = {"changed", loop_changed, NULL, 0, NULL};
    const tp_any self = {.type = TP_ANY_LOOP, .loop = loop};
    int64_t index0 = loop->index0;
    *ret_found = true;
    if (tp_slice_is(name, "index0"))
        *ret = tp_any_int(index0);
    else if (tp_slice_is(name, "index"))
        *ret = tp_any_int(index0 + 1);
    else if (tp_slice_is(name, "first"))
        *ret = tp_any_bool(index0 == 0);
    else if (tp_slice_is(name, "depth0"))
        *ret = tp_any_int(0); /* no loop is recursive */
    else if (tp_slice_is(name, "depth"))
        *ret = tp_any_int(1);
    else if (tp_slice_is(name, "cycle"))
        return tp_jinja_new_method(run, &cycle, &self, ret);
    else if (tp_slice_is(name, "changed"))
        return tp_jinja_new_method(run, &changed, &self, ret);
    else if (tp_slice_is(name, "last")) {
        TP_TRY(peek(run, loop));
        *ret = tp_any_bool(loop->after.type == TP_ANY_MISSING);
    } else if (tp_slice_is(name, "nextitem")) {
        TP_TRY(peek(run, loop));
        *ret = loop->after;
        if (ret->type == TP_ANY_MISSING)
            return tp_any_undefined_hint(run, "there is no next item", ret);
    } else if (tp_slice_is(name, "previtem")) {
        *ret = loop->before;
        if (index0 == 0)
            return tp_any_undefined_hint(run, "there is no previous item", ret);
    } else if (tp_slice_is(name, "length") || tp_slice_is(name, "revindex") ||
               tp_slice_is(name, "revindex0")) {
        TP_TRY(find_length(run, loop));
        int64_t from = tp_slice_is(name, "length")     ? 0
                       : tp_slice_is(name, "revindex") ? index0
                                                       : index0 + 1;
        *ret = tp_any_int(loop->length - from);
    } else {
        *ret_found = false;
    }
    return TP_OK;
}

tp_status tp_jinja_loop_print(tp_jinja_text *out, struct tp_jinja_loop *loop)
{
    TP_TRY(find_length(out->run, loop));
    return tp_jinja_addf(out, "<LoopContext %lld/%lld>", (long long)loop->index0 + 1,
                         (long long)loop->length);
}
