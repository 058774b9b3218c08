/* jinja_filters_choice.c - filters that choose: default, attr, map, select ... */
#include "base/platform.h"
#include "text/template/jinja_path.h"
#include "text/template/jinja_str.h"

static tp_status f_default(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    (void)run;
    bool use = c->self->type == TP_ANY_UNDEFINED ||
               (tp_any_is_true(&c->arg[1]) && !tp_any_is_true(c->self));
    *ret = !use ? *c->self : c->arg[0].type == TP_ANY_MISSING ? tp_any_text("", 0) : c->arg[0];
    return TP_OK;
}

static tp_status f_attr(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_slice name;
    bool found = false;
    TP_TRY(tp_jinja_want_text(run, "attr", &c->arg[0], &name));
    TP_TRY(tp_jinja_find_attr(run, c->self, name, ret, &found));
    return found ? TP_OK : tp_any_undefined_of(run, c->self, &c->arg[0], false, ret);
}

static const tp_any *keyword(const tp_jinja_args *args, const char *name)
{
    for (size_t i = 0; i < args->n_named; i++)
        if (tp_slice_is(args->names[i], name))
            return &args->named[i];
    return NULL;
}

/* map(attribute="a", default=x) or map("filter", args ...) */
static tp_status map_element(tp_jinja_run *run, const tp_jinja_path *path,
                             const tp_jinja_args *args, const tp_any *element, tp_any *ret)
{
    if (path)
        return tp_jinja_path_get(run, path, element, ret);
    tp_slice name;
    tp_jinja_args rest = *args;
    TP_TRY(tp_jinja_want_text(run, "map", &args->values[0], &name));
    rest.values++;
    rest.n--;
    return tp_jinja_call_filter(run, name, element, &rest, ret);
}

static tp_status f_map(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_jinja_builder b = {.run = run};
    tp_any_walk walk;
    tp_any element, mapped, list;
    tp_jinja_path path;
    const tp_any *attribute = c->args->n ? NULL : keyword(c->args, "attribute");
    bool more = tp_any_is_true(c->self);
    if (attribute) {
        const tp_any *fallback = keyword(c->args, "default");
        if (c->args->n_named != (fallback ? 2u : 1u))
            return tp_jinja_fail(run, "map: takes 'attribute' and 'default' and no other names");
        TP_TRY(tp_jinja_path_of(run, attribute, &path));
        path.fallback = fallback ? *fallback : tp_any_none();
    } else if (c->args->n == 0 && more) {
        return tp_jinja_fail(run, "map: the name of a filter is missing");
    }
    if (more)
        TP_TRY(tp_any_walk_begin(run, c->self, &walk));
    while (more) {
        TP_TRY(tp_any_walk_next(run, &walk, &element, &more));
        if (!more)
            break;
        TP_TRY(map_element(run, attribute ? &path : NULL, c->args, &element, &mapped));
        TP_TRY(tp_jinja_append(&b, &mapped));
    }
    TP_TRY(tp_jinja_build(&b, TP_ANY_LIST, &list));
    return tp_any_new_iterator(run, &list, ret);
}

enum { BY_ATTRIBUTE = 1, REJECTED = 2 }; /* variants */

/* select and reject, on elements or on an attribute of them: by a test, or by truth. */
static tp_status choose(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    bool by_attribute = c->variant & BY_ATTRIBUTE, keep = !(c->variant & REJECTED);
    const tp_jinja_args *args = c->args;
    tp_jinja_builder b = {.run = run};
    tp_any_walk walk;
    tp_any element, list, tested, none = {.type = TP_ANY_MISSING};
    tp_jinja_path path;
    tp_jinja_args rest = *args;
    tp_slice test = {0};
    bool more = tp_any_is_true(c->self);
    if (more && by_attribute && args->n == 0)
        return tp_jinja_fail(run, "selectattr: the name of an attribute is missing");
    TP_TRY(tp_jinja_path_of(run, more && by_attribute ? &args->values[0] : &none, &path));
    size_t n_taken = by_attribute ? 1 : 0;
    if (more && args->n > n_taken) {
        TP_TRY(tp_jinja_want_text(run, "select: test", &args->values[n_taken], &test));
        n_taken++;
    }
    n_taken = TP_MIN(n_taken, rest.n);
    if (n_taken) { /* without arguments there is no array to step into */
        rest.values += n_taken;
        rest.n -= n_taken;
    }
    if (more)
        TP_TRY(tp_any_walk_begin(run, c->self, &walk));
    while (more) {
        TP_TRY(tp_any_walk_next(run, &walk, &element, &more));
        if (!more)
            break;
        TP_TRY(tp_jinja_path_get(run, &path, &element, &tested));
        bool holds = tp_any_is_true(&tested);
        if (test.data)
            TP_TRY(tp_jinja_call_test(run, test, &tested, &rest, &holds));
        if (holds == keep)
            TP_TRY(tp_jinja_append(&b, &element));
    }
    TP_TRY(tp_jinja_build(&b, TP_ANY_LIST, &list));
    return tp_any_new_iterator(run, &list, ret);
}

const tp_jinja_function tp_jinja_choice_filters[] = {
    {"attr", f_attr, "name", 0, NULL},
    {"d", f_default, "[default_value boolean]", 0, NULL},
    {"default", f_default, "[default_value boolean]", 0, NULL},
    {"map", f_map, NULL, 0, NULL},
    {"reject", choose, NULL, REJECTED, NULL},
    {"rejectattr", choose, NULL, BY_ATTRIBUTE | REJECTED, NULL},
    {"select", choose, NULL, 0, NULL},
    {"selectattr", choose, NULL, BY_ATTRIBUTE, NULL},
    {0}};
