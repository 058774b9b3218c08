/* jinja_call.c - functions: how arguments meet parameters, and the global ones. */
#include <string.h>
#include <time.h>

#include "base/platform.h"
#include "text/template/jinja_run.h"

/* --- arguments --- */

/* One of "old:s new:s [count:i]". */
typedef struct {
    tp_slice name;
    char type; /* 's', 'i' or 0 */
    bool may_be_none;
} parameter;

/* Returns how many there are. */
static size_t read_parameters(const char *at, parameter *list, size_t *ret_required)
{
    size_t n = 0;
    bool is_optional = false;
    *ret_required = 0;
    while (*at) {
        size_t len = strcspn(at, " []"), name = strcspn(at, " []:");
        if (len)
            list[n++] = (parameter){.name = {at, name},
                                    .type = name < len ? at[name + 1] : 0,
                                    .may_be_none = at[len - 1] == '?'};
        is_optional |= at[len] == '[';
        if (!is_optional)
            *ret_required = n;
        at += len + (at[len] != 0);
    }
    return n;
}

tp_slice tp_jinja_want_text(tp_jinja_run *run, const char *what, tp_any v)
{
    tp_jinja_want_defined(run, v);
    if (v.type != TP_ANY_STR)
        tp_jinja_fail(run, "%s: a string is needed, not '%s'", what, tp_any_type_name(v));
    return v.text;
}

/* An argument as its parameter wants it: an integer is within 32 bits. */
static tp_any convert(tp_jinja_run *run, const char *what, const parameter *p, tp_any v)
{
    tp_integer i = 0;
    bool is_int = tp_any_as_int(v, &i), is_named = p->name.data[0] != '_';
    if (v.type == TP_ANY_MISSING || (p->may_be_none && v.type == TP_ANY_NONE))
        return (tp_any){0};
    if (!p->type || (p->type == 's' && v.type == TP_ANY_STR))
        return v;
    if (p->type == 'i' && is_int)
        return tp_any_int(TP_MIN(TP_MAX(i, (tp_integer)INT32_MIN), (tp_integer)INT32_MAX));
    tp_jinja_want_defined(run, v);
    tp_jinja_fail(run, "%.*s%s%.*s: %s is needed, not '%s'", (int)strcspn(what, " "), what,
                  is_named ? ": " : "", is_named ? (int)p->name.len : 0, p->name.data,
                  p->type == 's' ? "a string" : "an integer", tp_any_type_name(v));
}

static void bind(tp_jinja_run *run, const char *what, const tp_jinja_args *args,
                 const char *parameters, tp_any *out)
{
    parameter list[TP_COUNTOF(((tp_jinja_invocation *)0)->arg)];
    size_t n_required, n = read_parameters(parameters, list, &n_required);
    int len = (int)strcspn(what, " ");
    if (args->values.n > n)
        tp_jinja_fail(run, "%.*s takes at most %zu arguments, not %zu", len, what, n,
                      args->values.n);
    for (size_t i = 0; i < args->values.n; i++)
        out[i] = args->values.values[i];
    for (size_t k = 0; k < args->named.n; k++) {
        tp_slice name = args->named.entries[k].key.text;
        size_t i = 0;
        while (i < n && (list[i].name.data[0] == '_' || !tp_slice_eq(name, list[i].name)))
            i++;
        if (i == n || out[i].type != TP_ANY_MISSING)
            tp_jinja_fail(
                run, i == n ? "%.*s has no argument '%.*s'" : "%.*s gets its argument '%.*s' twice",
                len, what, (int)TP_MIN(name.len, 60), name.data);
        out[i] = args->named.entries[k].value;
    }
    for (size_t i = 0; i < n; i++) {
        if (i < n_required && out[i].type == TP_ANY_MISSING)
            tp_jinja_fail(run, "%.*s needs %zu arguments", len, what, n_required);
        out[i] = convert(run, what, &list[i], out[i]);
    }
}

int64_t tp_jinja_int_arg(tp_any argument, int64_t absent)
{
    return argument.type == TP_ANY_INT ? (int64_t)argument.integer : absent;
}

tp_slice tp_jinja_text_arg(tp_any argument, tp_slice absent)
{
    return argument.type == TP_ANY_STR ? argument.text : absent;
}

tp_any tp_jinja_keyword(tp_jinja_run *run, const tp_jinja_args *args, tp_slice name)
{
    const tp_any *found = tp_any_dict_get(run, &args->named, tp_any_text(name));
    return found ? *found : (tp_any){0};
}

const tp_jinja_function *tp_jinja_find_function(const tp_jinja_function *table, tp_slice name)
{
    const tp_jinja_function *f = table;
    while (f->name && tp_python_word(f->name, name) < 0)
        f++;
    return f->name ? f : NULL;
}

tp_any tp_jinja_call_function(tp_jinja_run *run, const tp_jinja_function *function, tp_any self,
                              const tp_jinja_args *args)
{
    tp_jinja_invocation c = {
        .what = function->name, .self = self, .args = args, .variant = function->variant};
    if (!function->call)
        tp_jinja_unsupported(run, "%s is not supported", c.what);
    if (function->parameters)
        bind(run, c.what, args, function->parameters, c.arg);
    return function->call(run, &c);
}

/* --- global functions --- */

static tp_any g_range(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    bool has_start = c->arg[1].type != TP_ANY_MISSING;
    int64_t first = tp_jinja_int_arg(c->arg[0], 0), step = tp_jinja_int_arg(c->arg[2], 1);
    int64_t start = has_start ? first : 0, stop = tp_jinja_int_arg(c->arg[1], first);
    if (step == 0)
        tp_jinja_fail(run, "range() cannot have step 0");
    int64_t distance = step > 0 ? stop - start : start - stop, stride = step > 0 ? step : -step;
    int64_t n = distance > 0 ? (distance + stride - 1) / stride : 0;
    if (n > TP_JINJA_MAX_RANGE)
        tp_jinja_fail(run, "range() of %lld elements; %d is the limit", (long long)n,
                      TP_JINJA_MAX_RANGE);
    struct tp_any_range *range = tp_jinja_take(run, 1, sizeof *range);
    *range = (struct tp_any_range){start, stop, step, n};
    return (tp_any){.type = TP_ANY_RANGE, .range = range};
}

static void put_all(tp_jinja_run *run, struct tp_any_dict *to, const struct tp_any_dict *from)
{
    for (size_t i = 0; i < from->n; i++)
        tp_any_dict_put(run, to, from->entries[i].key, from->entries[i].value);
}

static void put_pairs(tp_jinja_run *run, struct tp_any_dict *dict, tp_any pairs)
{
    tp_any_walk walk = tp_any_walk_begin(run, pairs);
    for (tp_any element; tp_any_walk_next(run, &walk, &element);) {
        const struct tp_any_items *pair = tp_any_list_of(run, element);
        if (pair->n != 2)
            tp_jinja_fail(run, "dict() is made of pairs, not of %zu values", pair->n);
        tp_any_dict_put(run, dict, pair->values[0], pair->values[1]);
    }
}

/* dict(mapping or pairs, name=value ...) */
static tp_any g_dict(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    const struct tp_any_items *values = &c->args->values;
    tp_any dict = tp_any_new_dict(run, c->args->named.n);
    if (values->n > 1)
        tp_jinja_fail(run, "dict() takes at most 1 argument without a name");
    if (values->n)
        tp_jinja_want_defined(run, values->values[0]);
    if (values->n && values->values[0].type == TP_ANY_DICT)
        put_all(run, dict.dict, values->values[0].dict);
    else if (values->n)
        put_pairs(run, dict.dict, values->values[0]);
    put_all(run, dict.dict, &c->args->named);
    return dict;
}

static tp_any g_namespace(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_any names = g_dict(run, c);
    for (size_t i = 0; i < names.dict->n; i++) {
        tp_any key = names.dict->entries[i].key;
        if (key.type == TP_ANY_STR && key.text.len && key.text.data[0] == '_')
            tp_jinja_fail(run, "attributes of a namespace cannot begin with '_'");
    }
    names.type = TP_ANY_NAMESPACE;
    return names;
}

static tp_any g_raise_exception(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_slice s = tp_any_to_text(run, c->arg[0]);
    tp_jinja_fail(run, "%.*s", (int)TP_MIN(s.len, 800), s.data);
}

/* Now, as a clock on the wall has it; a given time is a whole second. */
static struct tm local_time(const tp_jinja_run *run, int *ret_microseconds)
{
    struct tm tm = {0};
    struct timespec now = {.tv_sec = (time_t)run->now};
    if (run->now) {
        gmtime_r(&now.tv_sec, &tm);
    } else {
        clock_gettime(CLOCK_REALTIME, &now);
        localtime_r(&now.tv_sec, &tm);
    }
    *ret_microseconds = (int)(now.tv_nsec / 1000);
    return tm;
}

static tp_any g_strftime_now(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    enum { MOST = 512 };
    tp_slice s = c->arg[0].text;
    char fixed[MOST], *text = tp_jinja_take(run, 8 * MOST, 1);
    size_t n = 0;
    int microseconds;
    struct tm now = local_time(run, &microseconds);
    for (size_t i = 0; i < s.len; i++) {
        char at = s.data[i], next = i + 1 < s.len ? s.data[i + 1] : 0;
        if (n + 8 > MOST || at == 0)
            tp_jinja_fail(run, "strftime_now(): the format is too long or has a NUL");
        if (at != '%') {
            fixed[n++] = at;
            continue;
        }
        i++;
        if (next == 'f') { /* Python's own; the zone of a time without one is empty */
            n += (size_t)snprintf(fixed + n, 7, "%06d", microseconds);
        } else if (next != 'z' && next != 'Z' && next) {
            fixed[n++] = '%';
            fixed[n++] = next;
        }
    }
    fixed[n] = 0;
    return tp_any_text((tp_slice){text, n ? strftime(text, 8 * MOST, fixed, &now) : 0});
}

const tp_jinja_function *tp_jinja_global(tp_slice name)
{
    static const tp_jinja_function globals[] = {
        {"dict()", g_dict, NULL, 0},
        {"namespace()", g_namespace, NULL, 0},
        {"raise_exception()", g_raise_exception, "message", 0},
        {"range()", g_range, "_:i [_:i _:i]", 0},
        {"strftime_now()", g_strftime_now, "format:s", 0},
        {"cycler()", NULL, NULL, 0},
        {"joiner()", NULL, NULL, 0},
        {"lipsum()", NULL, NULL, 0},
        {0}};
    return tp_jinja_find_function(globals, name);
}
