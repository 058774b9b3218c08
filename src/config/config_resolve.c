/* config_resolve.c - ${...} in values: references, the environment, arithmetic. */
#include "config/config_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "text/template/python_text.h"
#include "text/yaml/yaml.h"

/* Interpolation.  A value is resolved when somebody asks for it, so references may
 * point forwards; a node that is asked for while it is being resolved closes a
 * circle. */
typedef struct {
    tp_config *config;
    int depth; /* of references that wait for each other */
} resolver;

enum { MAX_CHAIN = 64 };

static tp_status resolve(resolver *r, tp_config_node *node, tp_error *err);
static tp_status evaluate(resolver *r, tp_config_node *at, tp_slice text, bool is_argument,
                          tp_config_node **ret, tp_error *err);

static bool opens_at(tp_slice text, size_t i)
{
    return i + 1 < text.len && text.data[i] == '$' && text.data[i + 1] == '{';
}

static bool is_escaped_at(tp_slice text, size_t i)
{
    return text.data[i] == '\\' && opens_at(text, i + 1);
}

/* Offset of the next "${" that is not "\${", or len. */
static size_t find_opening(tp_slice text, size_t from)
{
    for (size_t i = from; i < text.len; i++) {
        if (is_escaped_at(text, i))
            i += 2;
        else if (opens_at(text, i))
            return i;
    }
    return text.len;
}

/* The '}' that closes the "${" at `open`, or len. */
static size_t find_closing(tp_slice text, size_t open)
{
    int depth = 0;
    for (size_t i = open; i < text.len; i++) {
        if (opens_at(text, i)) {
            depth++;
            i++;
        } else if (text.data[i] == '}' && --depth == 0) {
            return i;
        }
    }
    return text.len;
}

static tp_slice sub(tp_slice text, size_t from, size_t to)
{
    return (tp_slice){text.data + from, to - from};
}

static tp_slice trim(tp_slice s)
{
    while (s.len && (s.data[0] == ' ' || s.data[0] == '\t'))
        s = sub(s, 1, s.len);
    while (s.len && (s.data[s.len - 1] == ' ' || s.data[s.len - 1] == '\t'))
        s.len--;
    return s;
}

static int shown(tp_slice s) { return (int)TP_MIN(s.len, 120); }

/* "; did you mean x?" when a neighbour of the missing name is close. */
static void suggest(const tp_config_node *parent, tp_slice part, char *out, size_t size)
{
    *out = 0;
    char wanted[64];
    if (parent->value.type != TP_JSON_OBJECT || part.len >= sizeof wanted)
        return;
    snprintf(wanted, sizeof wanted, "%.*s", (int)part.len, part.data);
    size_t best = part.len / 3 + 2;
    for (const tp_json *v = parent->value.child; v; v = v->next) {
        size_t distance = tp_str_distance(v->key.data, wanted);
        if (distance < best) {
            best = distance;
            snprintf(out, size, "; did you mean %.60s?", v->key.data);
        }
    }
}

/* Where a path starts, seen from `at`: one leading dot is its parent, each further one a level
 * higher; NULL above the top.  The dots are cut off. */
static tp_config_node *start_of(tp_config_node *at, tp_slice *path)
{
    bool is_relative = path->len && path->data[0] == '.';
    for (; path->len && path->data[0] == '.' && at; *path = sub(*path, 1, path->len))
        at = at->parent;
    while (!is_relative && at->parent)
        at = at->parent;
    return at;
}

/* The node a path names, seen from `at`. */
static tp_status find(resolver *r, tp_config_node *at, tp_slice path, tp_config_node **ret,
                      tp_error *err)
{
    tp_slice rest = path, part;
    tp_config_node *node = start_of(at, &rest);
    if (!node)
        return tp_node_fail(at, err, "${%.*s} goes above the top", shown(path), path.data);
    if (!rest.len)
        return tp_node_fail(at, err, "${%.*s} names nothing", shown(path), path.data);
    while (tp_path_next(&rest, &part)) {
        /* A section may itself be a reference to another. */
        if (!tp_node_is_container(node))
            TP_TRY(resolve(r, node, err));
        tp_config_node *child = tp_node_child(node, part);
        if (!child) {
            char hint[100];
            suggest(node, part, hint, sizeof hint);
            return tp_node_fail(at, err, "${%.*s} is not set anywhere%s", shown(path), path.data,
                                hint);
        }
        node = child;
    }
    *ret = node;
    return TP_OK;
}

static tp_status refer(resolver *r, tp_config_node *at, tp_slice path, tp_config_node **ret,
                       tp_error *err)
{
    tp_config_node *target = NULL;
    TP_TRY(find(r, at, path, &target, err));
    if (target->state == TP_NODE_BUSY)
        return tp_node_fail(at, err, "${%.*s} refers back to this value; break the circle",
                            shown(path), path.data);
    TP_TRY(resolve(r, target, err));
    TP_TRY(tp_node_import(r->config, &target->value, NULL, NULL, tp_node_depth(at), ret, err));
    (*ret)->origin = at->origin;
    return TP_OK;
}

typedef struct {
    bool is_int, is_missing;
    int64_t i;
    double f; /* valid for both */
} number;

typedef enum { ADD, SUB, MUL, DIV, MAX } operation;

static const char *const operation_names[] = {"add", "sub", "mul", "div", "max"};

static bool combine_ints(operation op, int64_t a, int64_t b, int64_t *ret)
{
    switch (op) {
    case ADD:
        return !__builtin_add_overflow(a, b, ret);
    case SUB:
        return !__builtin_sub_overflow(a, b, ret);
    case MUL:
        return !__builtin_mul_overflow(a, b, ret);
    default: /* a quotient is never whole */
        return false;
    }
}

static double combine_floats(operation op, double a, double b)
{
    switch (op) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case MUL:
        return a * b;
    default:
        return a / b;
    }
}

/* As Python computes. */
static number combine(operation op, number a, number b)
{
    if (op == MAX)
        return b.f > a.f ? b : a;
    number result = {.is_int = a.is_int && b.is_int};
    if (result.is_int && combine_ints(op, a.i, b.i, &result.i))
        result.f = (double)result.i;
    else
        result = (number){.f = combine_floats(op, a.f, b.f)};
    return result;
}

static tp_status number_node(resolver *r, const tp_config_node *at, number v, tp_config_node **ret,
                             tp_error *err)
{
    char text[32];
    if (v.is_int)
        snprintf(text, sizeof text, "%lld", (long long)v.i);
    else
        tp_json_f64_text(v.f, text);
    if (!v.is_int && !strpbrk(text, ".e"))
        strcat(text, ".0"); /* and no whole number from here on */
    TP_TRY(tp_node_new(r->config, TP_JSON_NUMBER, at->origin, ret, err));
    return tp_node_text_copy(r->config, text, strlen(text), &(*ret)->value.text, err);
}

static tp_status read_argument(resolver *r, tp_config_node *at, tp_slice text, const char *name,
                               number *ret, tp_error *err)
{
    tp_config_node *value = NULL;
    TP_TRY(evaluate(r, at, trim(text), true, &value, err));
    number v = {.is_int =
                    tp_json_i64(&value->value, &v.i) && !strpbrk(value->value.text.data, ".eE"),
                .is_missing = tp_node_is_missing(value)};
    if (!v.is_missing && !tp_json_f64(&value->value, &v.f)) {
        tp_slice what = trim(text);
        return tp_node_fail(at, err, "${%s:...} takes numbers, and \"%.*s\" is %s", name,
                            shown(what), what.data,
                            value->value.type == TP_JSON_NULL ? "null" : "none");
    }
    *ret = v;
    return TP_OK;
}

/* The end of the argument that begins at `from`: a comma outside of braces. */
static size_t argument_end(tp_slice text, size_t from)
{
    for (size_t i = from; i < text.len; i++) {
        if (text.data[i] == ',')
            return i;
        if (opens_at(text, i))
            i = find_closing(text, i);
    }
    return text.len;
}

/* ${oc.env:NAME} or ${oc.env:NAME, text}: always text, as in OmegaConf. */
static tp_status environment(resolver *r, tp_config_node *at, tp_slice arguments,
                             tp_config_node **ret, tp_error *err)
{
    char name[128];
    size_t end = argument_end(arguments, 0);
    tp_slice word = trim(sub(arguments, 0, end));
    snprintf(name, sizeof name, "%.*s", (int)TP_MIN(word.len, sizeof name - 1), word.data);
    const char *text = getenv(name);
    if (!text && end == arguments.len)
        return tp_node_fail(at, err,
                            "${oc.env:%s}: the environment has no %s; set it, or write "
                            "${oc.env:%s, VALUE} with a value to take instead",
                            name, name, name);
    if (!text)
        return evaluate(r, at, trim(sub(arguments, end + 1, arguments.len)), true, ret, err);
    size_t n = strlen(text);
    if (tp_utf8_valid_len(text, n) != n || n > TP_CONFIG_MAX_TEXT)
        return tp_node_fail(at, err, "${oc.env:%s} is not UTF-8, or too long", name);
    TP_TRY(tp_node_new(r->config, TP_JSON_STRING, at->origin, ret, err));
    return tp_node_text_copy(r->config, text, n, &(*ret)->value.text, err);
}

static tp_status call(resolver *r, tp_config_node *at, tp_slice name, tp_slice arguments,
                      tp_config_node **ret, tp_error *err)
{
    size_t op = 0;
    while (op < TP_COUNTOF(operation_names) && !tp_slice_is(name, operation_names[op]))
        op++;
    if (tp_slice_is(name, "oc.env"))
        return environment(r, at, arguments, ret, err);
    if (op == TP_COUNTOF(operation_names))
        return tp_node_fail(at, err,
                            "unknown function ${%.*s:...}; known are add, sub, mul, div, max, "
                            "oc.env",
                            shown(name), name.data);
    number v[2];
    size_t n = 0, from = 0;
    while (from <= arguments.len && n < 3) {
        size_t to = argument_end(arguments, from);
        if (n < 2)
            TP_TRY(read_argument(r, at, sub(arguments, from, to), operation_names[op], &v[n], err));
        n++;
        from = to + 1;
    }
    if (n != 2)
        return tp_node_fail(at, err, "${%s:...} takes two numbers, as in ${%s:4, 2}",
                            operation_names[op], operation_names[op]);
    if (v[0].is_missing || v[1].is_missing) { /* and so is what follows from it */
        TP_TRY(tp_node_new(r->config, TP_JSON_STRING, at->origin, ret, err));
        return tp_node_text_copy(r->config, "???", 3, &(*ret)->value.text, err);
    }
    number result = combine((operation)op, v[0], v[1]);
    if (!isfinite(result.f))
        return tp_node_fail(at, err, "${%s:%.*s} has no finite value", operation_names[op],
                            shown(arguments), arguments.data);
    return number_node(r, at, result, ret, err);
}

/* What stands between "${" and "}". */
static tp_status expression(resolver *r, tp_config_node *at, tp_slice body, tp_config_node **ret,
                            tp_error *err)
{
    size_t n = 0;
    while (n < body.len && body.data[n] != ':' && body.data[n] != '$')
        n++;
    if (n < body.len && body.data[n] == ':')
        return call(r, at, sub(body, 0, n), sub(body, n + 1, body.len), ret, err);
    if (n == body.len)
        return refer(r, at, trim(body), ret, err);
    /* ${a.${b}}: the path is made first. */
    tp_config_node *path = NULL;
    TP_TRY(evaluate(r, at, body, false, &path, err));
    const char *text = tp_node_text(path);
    if (!text)
        return tp_node_fail(at, err, "${%.*s} does not make a path", shown(body), body.data);
    return refer(r, at, path->value.text, ret, err);
}

static void add_unescaped(tp_buf *out, tp_slice literal)
{
    for (size_t i = 0; i < literal.len; i++) {
        if (!is_escaped_at(literal, i))
            tp_buf_addc(out, literal.data[i]);
    }
}

/* As OmegaConf puts a value into text: by Python's str(). */
static void add_word(tp_buf *out, const tp_json *v)
{
    char spelled[TP_PYTHON_NUMBER_MAX];
    double f = 0;
    bool is_float = v->type == TP_JSON_NUMBER && strpbrk(v->text.data, ".eEIN");
    if (is_float && tp_json_f64(v, &f))
        tp_buf_add(out, spelled, tp_python_float(f, spelled));
    else
        tp_buf_adds(out, v->type == TP_JSON_NULL    ? "None"
                         : v->type == TP_JSON_TRUE  ? "True"
                         : v->type == TP_JSON_FALSE ? "False"
                                                    : tp_json_word(v));
}

/* Text with expressions in it becomes text. */
static tp_status concatenate(resolver *r, tp_config_node *at, tp_slice text, tp_buf *out,
                             tp_error *err)
{
    for (size_t from = 0; from < text.len;) {
        size_t open = find_opening(text, from);
        add_unescaped(out, sub(text, from, open));
        if (open == text.len)
            break;
        size_t close = find_closing(text, open);
        if (close == text.len)
            return tp_node_fail(at, err, "${ is never closed; a plain ${ is written \\${");
        tp_config_node *value = NULL;
        TP_TRY(expression(r, at, sub(text, open + 2, close), &value, err));
        if (tp_node_is_container(value))
            return tp_node_fail(at, err, "%.*s is a section and cannot be put into text",
                                shown(sub(text, open, close + 1)), text.data + open);
        add_word(out, &value->value);
        if (out->len > TP_CONFIG_MAX_TEXT)
            return tp_node_fail(at, err, "the text becomes longer than %d bytes",
                                TP_CONFIG_MAX_TEXT);
        from = close + 1;
    }
    return TP_OK;
}

static tp_status evaluate_parts(resolver *r, tp_config_node *at, tp_slice text, bool is_argument,
                                tp_config_node **ret, tp_error *err)
{
    bool is_single = find_opening(text, 0) == 0 && find_closing(text, 0) == text.len - 1;
    if (text.len && is_single)
        return expression(r, at, sub(text, 2, text.len - 1), ret, err);
    TP_OWN(tp_buf) out = {0};
    const tp_json *plain = NULL;
    tp_status status = concatenate(r, at, text, &out, err);
    if (status == TP_OK && is_argument) {
        status = tp_yaml_parse_plain(&r->config->arena, at->origin, tp_buf_str(&out), &plain, err);
        if (status == TP_OK)
            status = tp_node_import(r->config, plain, NULL, at->origin, 0, ret, err);
    } else if (status == TP_OK) {
        status = tp_node_new(r->config, TP_JSON_STRING, at->origin, ret, err);
        if (status == TP_OK)
            status =
                tp_node_text_copy(r->config, tp_buf_str(&out), out.len, &(*ret)->value.text, err);
    }
    return status;
}

static tp_status evaluate(resolver *r, tp_config_node *at, tp_slice text, bool is_argument,
                          tp_config_node **ret, tp_error *err)
{
    if (r->depth >= MAX_CHAIN)
        return tp_node_fail(at, err, "interpolations are nested more than %d deep", MAX_CHAIN);
    r->depth++;
    tp_status status = evaluate_parts(r, at, text, is_argument, ret, err);
    r->depth--;
    return status;
}

/* `node` takes over the contents of `from`, and stays where it is. */
static void become(tp_config_node *node, const tp_config_node *from)
{
    node->value.type = from->value.type;
    node->value.text = from->value.text;
    node->value.child = from->value.child;
    node->value.n = from->value.n;
    node->is_derived = true;
    for (const tp_json *v = node->value.child; v; v = v->next)
        tp_node_of(v)->parent = node;
}

static tp_status resolve_contents(resolver *r, tp_config_node *node, tp_error *err)
{
    if (tp_node_is_container(node)) {
        for (const tp_json *v = node->value.child; v; v = v->next)
            TP_TRY(resolve(r, tp_node_of(v), err));
        return TP_OK;
    }
    if (!tp_node_text(node) || !strstr(node->value.text.data, "${"))
        return TP_OK;
    tp_config_node *value = NULL;
    TP_TRY(evaluate(r, node, node->value.text, false, &value, err));
    become(node, value);
    return TP_OK;
}

static tp_status resolve(resolver *r, tp_config_node *node, tp_error *err)
{
    if (node->state == TP_NODE_RESOLVED)
        return TP_OK;
    if (node->state == TP_NODE_BUSY)
        return tp_node_fail(node, err, "this value refers back to itself; break the circle");
    node->state = TP_NODE_BUSY;
    TP_TRY(resolve_contents(r, node, err));
    node->state = TP_NODE_RESOLVED;
    return TP_OK;
}

/* At most `left` references are followed, so cycles end.  Calls nest as deep as that. */
static tp_config_node *follow(tp_config_node *node, int *left)
{
    tp_slice text = node->value.text, part;
    if (tp_node_is_container(node))
        return node;
    if (!tp_node_text(node) || !opens_at(text, 0) || find_closing(text, 0) != text.len - 1 ||
        --*left < 0)
        return NULL;
    tp_slice path = trim(sub(text, 2, text.len - 1));
    tp_config_node *at = start_of(node, &path);
    while (at && tp_path_next(&path, &part)) {
        at = follow(at, left);
        at = at ? tp_node_child(at, part) : NULL;
    }
    return at ? follow(at, left) : NULL;
}

tp_status tp_config_section(tp_config_node *node, const tp_config_node **ret, tp_error *err)
{
    int left = MAX_CHAIN;
    const char *text = tp_node_text(node);
    if (text && opens_at(node->value.text, 0) && strstr(text + 2, "${"))
        return tp_node_fail(node, err,
                            "a recipe that inherits from this one sets members of a section that "
                            "is named by ${ within ${; write the name out");
    *ret = text ? follow(node, &left) : NULL;
    for (const tp_config_node *p = node->parent; p; p = p->parent)
        if (p == *ret) /* a circle, for whoever resolves it */
            *ret = NULL;
    return TP_OK;
}

tp_status tp_config_resolve(tp_config *config, tp_config_node *node, tp_error *err)
{
    resolver r = {.config = config};
    return resolve(&r, node, err);
}
