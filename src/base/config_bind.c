#include "base/config.h"

#include <math.h>
#include <string.h>

#include "base/config_internal.h"
#include "base/platform.h"
#include "base/yaml.h"

typedef struct {
    tp_config *config;
    tp_config_node *root; /* names of the table start here ... */
    const char *prefix;   /* ... which is this path of the configuration: "" or "env.math." */
    const tp_option *table;
    size_t n;
    char *target;
} binder;

static bool allows_null(const tp_option *option)
{
    return option->nullable || !option->default_value || !strcmp(option->default_value, "null");
}

static const tp_option *find_option(const binder *b, const char *name)
{
    for (size_t i = 0; i < b->n; i++) {
        if (!strcmp(b->table[i].name, name))
            return &b->table[i];
    }
    return NULL;
}

/* Does some option live below this section? */
static bool is_section(const binder *b, const char *path)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < b->n; i++) {
        if (!strncmp(b->table[i].name, path, n) && b->table[i].name[n] == '.')
            return true;
    }
    return false;
}

/* Put the default of a row where the tree has nothing.  What a section refers to
 * elsewhere (`${...}`) is left alone until it is resolved. */
static tp_status insert_default(binder *b, const tp_option *option, tp_error *err)
{
    tp_config *config = b->config;
    tp_config_node *at = b->root;
    tp_slice path = tp_slice_of(option->name), part, next;
    tp_path_next(&path, &part);
    for (; tp_path_next(&path, &next); part = next) {
        tp_config_node *child = tp_node_child(at, part);
        if (!child || child->value.type == TP_JSON_NULL) {
            tp_config_node *section = NULL;
            const char *origin = child ? child->origin : "default";
            TP_TRY(tp_node_new(config, TP_JSON_OBJECT, origin, &section, err));
            if (child)
                tp_node_replace(child, section);
            else
                tp_node_append(at, part, section);
            child = section;
        }
        if (child->value.type != TP_JSON_OBJECT)
            return TP_OK;
        at = child;
    }
    if (tp_node_child(at, part))
        return TP_OK;
    const char *text = option->default_value ? option->default_value : "null";
    const tp_json *value = NULL;
    tp_config_node *node = NULL;
    TP_TRY(tp_yaml_parse(&config->arena, option->name, text, strlen(text), &value, err));
    TP_TRY(tp_node_import(config, value, NULL, "default", tp_node_depth(at) + 1, &node, err));
    tp_node_append(at, part, node);
    return TP_OK;
}

static tp_status insert_defaults(binder *b, tp_error *err)
{
    for (size_t i = 0; i < b->n; i++)
        TP_TRY(insert_default(b, &b->table[i], err));
    return TP_OK;
}

static const char *last_part(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

/* The known key that the user most likely meant: few edits away, or the same word
 * in another section. */
static const char *nearest(const binder *b, const char *path)
{
    const char *best = NULL;
    size_t best_distance = TP_MAX(strlen(last_part(path)) / 3 + 1, (size_t)2);
    for (size_t i = 0; i < b->n; i++) {
        const char *name = b->table[i].name;
        size_t distance = tp_str_distance(name, path);
        if (!strcmp(last_part(name), last_part(path)))
            distance = TP_MIN(distance, (size_t)1);
        if (distance < best_distance || (distance == best_distance && !best)) {
            best = name;
            best_distance = distance;
        }
    }
    return best;
}

/* "a, b, c" of the keys directly below a section. */
static void list_keys(const binder *b, const char *section, size_t n_section, tp_buf *out)
{
    enum { ENOUGH = 400 };
    tp_slice previous = {0};
    for (size_t i = 0; i < b->n && out->len < ENOUGH; i++) {
        const char *name = b->table[i].name;
        if (n_section && (strncmp(name, section, n_section) != 0 || name[n_section] != '.'))
            continue;
        name += n_section ? n_section + 1 : 0;
        tp_slice key = {name, strcspn(name, ".")};
        if (tp_slice_eq(key, previous))
            continue;
        tp_buf_addf(out, "%s%.*s", out->len ? ", " : "", (int)key.len, key.data);
        previous = key;
    }
}

static tp_status unknown_key(const binder *b, const tp_config_node *node, const char *path,
                             tp_error *err)
{
    const char *known = nearest(b, path);
    if (known)
        return tp_fail(err, TP_ERR_CONFIG, "%s: unknown key %s%.200s; did you mean %s%s?",
                       node->origin, b->prefix, path, b->prefix, known);
    /* Name the keys of the innermost section that exists. */
    size_t n = strlen(path);
    char section[256];
    snprintf(section, sizeof section, "%.255s", path);
    while (n && !is_section(b, section)) {
        char *dot = strrchr(section, '.');
        n = dot ? (size_t)(dot - section) : 0;
        section[n] = 0;
    }
    tp_buf keys = {0};
    list_keys(b, section, n, &keys);
    bool has_section = n || b->prefix[0];
    size_t n_prefix = strlen(b->prefix); /* ends with a dot, which only a name behind it needs */
    tp_status status = tp_fail(
        err, TP_ERR_CONFIG, "%s: unknown key %s%.200s; known keys %s%.*s%s are %s", node->origin,
        b->prefix, path, has_section ? "in " : "at the top",
        (int)(n_prefix && !n ? n_prefix - 1 : n_prefix), b->prefix, section, tp_buf_str(&keys));
    tp_buf_release(&keys);
    return status;
}

/* Calls nest as deep as the table's names do. */
static tp_status check_keys(const binder *b, const tp_config_node *node, tp_buf *path,
                            tp_error *err)
{
    size_t n_path = path->len;
    for (const tp_json *v = node->value.child; v; v = v->next) {
        const tp_config_node *child = tp_node_of(v);
        if (n_path)
            tp_buf_addc(path, '.');
        tp_buf_add(path, v->key.data, v->key.len);
        if (!find_option(b, path->data)) {
            if (!is_section(b, path->data))
                return unknown_key(b, child, path->data, err);
            if (v->type != TP_JSON_OBJECT)
                return tp_node_fail(child, err,
                                    "expected a section with keys below it, as in \"%s:\"",
                                    last_part(path->data));
            TP_TRY(check_keys(b, child, path, err));
        }
        path->len = n_path;
        if (path->data)
            path->data[n_path] = 0;
    }
    return TP_OK;
}

/* How a value looks in a message. */
static const char *shown(const tp_config_node *node, char out[80])
{
    static const char *const words[] = {
        [TP_JSON_NULL] = "null",    [TP_JSON_FALSE] = "false",      [TP_JSON_TRUE] = "true",
        [TP_JSON_ARRAY] = "a list", [TP_JSON_OBJECT] = "a section", [TP_JSON_NUMBER] = NULL,
        [TP_JSON_STRING] = NULL};
    if (words[node->value.type])
        return words[node->value.type];
    bool is_text = node->value.type == TP_JSON_STRING;
    snprintf(out, 80, is_text ? "\"%.60s\"" : "%.60s", node->value.text.data);
    return out;
}

static tp_status refuse(const tp_config_node *node, const char *expected, tp_error *err)
{
    char value[80];
    return tp_node_fail(node, err, "%s is not %s", shown(node, value), expected);
}

static tp_status check_range(const tp_option *option, const tp_config_node *node, double v,
                             tp_error *err)
{
    bool is_free = option->min == 0 && option->max == 0;
    if (is_free || (v >= option->min && v <= option->max))
        return TP_OK;
    char least[32], most[32], value[80];
    if (isinf(option->max)) {
        tp_json_f64_text(option->min, least);
        return tp_node_fail(node, err, "%s is too small; expected at least %s", shown(node, value),
                            least);
    }
    if (isinf(option->min)) {
        tp_json_f64_text(option->max, most);
        return tp_node_fail(node, err, "%s is too large; expected at most %s", shown(node, value),
                            most);
    }
    tp_json_f64_text(option->min, least);
    tp_json_f64_text(option->max, most);
    return tp_node_fail(node, err, "%s is out of range; expected %s to %s", shown(node, value),
                        least, most);
}

static tp_status read_int(const tp_option *option, const tp_config_node *node, int64_t *ret,
                          tp_error *err)
{
    if (!tp_json_i64(&node->value, ret))
        return refuse(node, "a whole number", err);
    return check_range(option, node, (double)*ret, err);
}

static tp_status read_float(const tp_option *option, const tp_config_node *node, double *ret,
                            tp_error *err)
{
    if (!tp_json_f64(&node->value, ret) || isnan(*ret))
        return refuse(node, "a number", err);
    return check_range(option, node, *ret, err);
}

static tp_status read_bool(const tp_config_node *node, bool *ret, tp_error *err)
{
    return tp_json_bool(&node->value, ret) ? TP_OK : refuse(node, "true or false", err);
}

static tp_status read_string(const tp_config_node *node, const char **ret, tp_error *err)
{
    switch (node->value.type) {
    case TP_JSON_STRING:
        if (strlen(node->value.text.data) != node->value.text.len)
            return tp_node_fail(node, err, "the text contains a NUL character");
        *ret = node->value.text.data;
        return TP_OK;
    case TP_JSON_NUMBER:
        *ret = node->value.text.data;
        return TP_OK;
    case TP_JSON_TRUE:
        *ret = "true";
        return TP_OK;
    case TP_JSON_FALSE:
        *ret = "false";
        return TP_OK;
    default:
        return refuse(node, "text", err);
    }
}

static tp_status read_enum(const tp_option *option, const tp_config_node *node, int *ret,
                           tp_error *err)
{
    const char *text = NULL;
    TP_TRY(read_string(node, &text, err));
    int index = 0;
    for (const char *p = option->choices;; index++) {
        size_t n = strcspn(p, "|");
        if (strlen(text) == n && !memcmp(text, p, n)) {
            *ret = index;
            return TP_OK;
        }
        if (!p[n])
            break;
        p += n + 1;
    }
    char value[80];
    tp_buf choices = {0};
    for (const char *p = option->choices; *p; p++)
        tp_buf_adds(&choices, *p == '|' ? ", " : (char[]){*p, 0});
    tp_status status =
        tp_node_fail(node, err, "%s is not one of %s", shown(node, value), tp_buf_str(&choices));
    tp_buf_release(&choices);
    return status;
}

/* The elements of a list; a single value stands for a list of one. */
static size_t count_elements(const tp_config_node *node)
{
    return node->value.type == TP_JSON_ARRAY ? node->value.n : 1;
}

static const tp_config_node *first_element(const tp_config_node *node)
{
    return node->value.type == TP_JSON_ARRAY ? tp_node_of(node->value.child) : node;
}

static tp_status read_list(const binder *b, const tp_option *option, const tp_config_node *node,
                           tp_error *err)
{
    size_t n = count_elements(node);
    bool is_float = option->type == TP_OPT_FLOAT_LIST;
    void *v = tp_arena_try_alloc(&b->config->arena, n + 1, 8, 8);
    if (!v)
        return refuse(node, "a list of reasonable length", err);
    double *floats = v;
    const char **strings = v;
    const tp_config_node *element = first_element(node);
    for (size_t i = 0; i < n; i++) {
        if (is_float)
            TP_TRY(read_float(option, element, &floats[i], err));
        else
            TP_TRY(read_string(element, &strings[i], err));
        element = tp_node_of(element->value.next);
    }
    if (option->offset == TP_OPT_NOT_STORED)
        return TP_OK;
    if (is_float)
        *(tp_f64_list *)(void *)(b->target + option->offset) = (tp_f64_list){floats, n};
    else
        *(tp_str_list *)(void *)(b->target + option->offset) = (tp_str_list){strings, n};
    return TP_OK;
}

static size_t size_of(tp_option_type type)
{
    static const size_t sizes[] = {
        [TP_OPT_BOOL] = sizeof(bool),
        [TP_OPT_INT] = sizeof(int64_t),
        [TP_OPT_FLOAT] = sizeof(double),
        [TP_OPT_STRING] = sizeof(const char *),
        [TP_OPT_ENUM] = sizeof(int),
        [TP_OPT_FLOAT_LIST] = sizeof(tp_f64_list),
        [TP_OPT_STRING_LIST] = sizeof(tp_str_list),
        [TP_OPT_SECTION] = sizeof(const tp_json *),
    };
    return sizes[type];
}

/* One value of any type that is not a list. */
typedef union {
    bool b;
    int64_t i;
    double f;
    const char *s;
    int e;
    const tp_json *j;
    tp_f64_list floats;
    tp_str_list strings;
} any_value;

static any_value null_value(tp_option_type type)
{
    any_value v;
    memset(&v, 0, sizeof v);
    if (type == TP_OPT_INT)
        v.i = TP_OPT_UNSET_INT;
    else if (type == TP_OPT_FLOAT)
        v.f = NAN;
    else if (type == TP_OPT_ENUM)
        v.e = TP_OPT_UNSET_ENUM;
    return v;
}

static tp_status read_value(const tp_option *option, const tp_config_node *node, any_value *ret,
                            tp_error *err)
{
    switch (option->type) {
    case TP_OPT_BOOL:
        return read_bool(node, &ret->b, err);
    case TP_OPT_INT:
        return read_int(option, node, &ret->i, err);
    case TP_OPT_FLOAT:
        return read_float(option, node, &ret->f, err);
    case TP_OPT_STRING:
        return read_string(node, &ret->s, err);
    case TP_OPT_ENUM:
        return read_enum(option, node, &ret->e, err);
    default:
        ret->j = &node->value;
        return TP_OK;
    }
}

static tp_status bind_one(const binder *b, const tp_option *option, tp_error *err)
{
    const tp_config_node *node = tp_path_find(b->root, tp_slice_of(option->name));
    TP_ASSERT(node);
    any_value value = null_value(option->type);
    if (node->value.type == TP_JSON_NULL) {
        if (!allows_null(option))
            return tp_node_fail(node, err, "null is no value for this key; its default is %s",
                                option->default_value);
    } else if (tp_node_is_missing(node)) {
        return tp_node_fail(node, err,
                            "must be set (it is \?\?\?); write it in the recipe or add %s%s=... "
                            "to the command line",
                            b->prefix, option->name);
    } else if (option->type == TP_OPT_FLOAT_LIST || option->type == TP_OPT_STRING_LIST) {
        return read_list(b, option, node, err);
    } else {
        TP_TRY(read_value(option, node, &value, err));
    }
    if (option->offset != TP_OPT_NOT_STORED)
        memcpy(b->target + option->offset, &value, size_of(option->type));
    return TP_OK;
}

static bool same_tree(const tp_json *a, const tp_json *b)
{
    double x, y;
    if (tp_json_f64(a, &x) && tp_json_f64(b, &y))
        return x == y;
    if (a->type != b->type || a->n != b->n || !tp_slice_eq(a->text, b->text))
        return false;
    const tp_json *p = a->child, *q = b->child;
    for (; p && q; p = p->next, q = q->next) {
        if (!tp_slice_eq(p->key, q->key) || !same_tree(p, q))
            return false;
    }
    return true;
}

/* A section that says `enabled: false` asks for nothing. */
static bool is_switched_off(const tp_json *v)
{
    bool enabled = true;
    return v->type == TP_JSON_NULL || (v->type == TP_JSON_OBJECT && v->n == 0) ||
           (tp_json_bool(tp_json_get(v, "enabled"), &enabled) && !enabled);
}

/* Saying what is the case anyway needs no announcement. */
static tp_status announce(const binder *b, const tp_option *option, tp_config_notice_link ***tail,
                          tp_error *err)
{
    const tp_config_node *node = tp_path_find(b->root, tp_slice_of(option->name));
    tp_config *config = b->config;
    const tp_json *usual = NULL;
    if (!option->ignored || option->unannounced || !strcmp(node->origin, "default") ||
        is_switched_off(&node->value))
        return TP_OK;
    if (option->default_value) {
        TP_TRY(tp_yaml_parse(&config->arena, option->name, option->default_value,
                             strlen(option->default_value), &usual, err));
        if (same_tree(&node->value, usual))
            return TP_OK;
    }
    tp_config_notice_link *link = tp_arena_new(&config->arena, tp_config_notice_link);
    link->text = tp_arena_printf(&config->arena, "%s: %s%s has no effect in this version",
                                 node->origin, b->prefix, option->name);
    **tail = link;
    *tail = &link->next;
    return TP_OK;
}

/* Keys in the order of the table, so that config.yaml always reads the same. */
static void sort_like_table(const binder *b)
{
    for (size_t i = b->n; i-- > 0;) {
        tp_slice path = tp_slice_of(b->table[i].name), part;
        tp_config_node *at = b->root;
        while (at && at->value.type == TP_JSON_OBJECT && tp_path_next(&path, &part)) {
            tp_config_node *child = tp_node_child(at, part);
            if (!child)
                break;
            tp_json **link = &at->value.child;
            while (*link != &child->value)
                link = &(*link)->next;
            *link = child->value.next;
            child->value.next = at->value.child;
            at->value.child = &child->value;
            at = child;
        }
    }
}

static tp_status check_all_keys(const binder *b, tp_error *err)
{
    tp_buf path = {0};
    tp_status status = check_keys(b, b->root, &path, err);
    tp_buf_release(&path);
    return status;
}

static tp_status bind_from(binder *b, tp_error *err)
{
    /* Defaults first, so that recipes may refer to them; once more for sections
     * that turned out to be references to others. */
    for (int round = 0; round < 2; round++) {
        TP_TRY(insert_defaults(b, err));
        TP_TRY(tp_config_resolve(b->config, b->root, err));
    }
    TP_TRY(check_all_keys(b, err));
    for (size_t i = 0; i < b->n; i++)
        TP_TRY(bind_one(b, &b->table[i], err));
    sort_like_table(b);
    tp_config_notice_link **tail = &b->config->notices;
    while (*tail)
        tail = &(*tail)->next;
    for (size_t i = 0; i < b->n; i++)
        TP_TRY(announce(b, &b->table[i], &tail, err));
    return TP_OK;
}

tp_status tp_config_bind(tp_config *config, const tp_option *table, size_t n, void *target,
                         tp_error *err)
{
    binder b = {.config = config,
                .root = config->root,
                .prefix = "",
                .table = table,
                .n = n,
                .target = target};
    return bind_from(&b, err);
}

tp_status tp_config_bind_section(tp_config *config, const tp_json *section, const tp_option *table,
                                 size_t n, void *target, tp_error *err)
{
    tp_config_node *root = tp_node_of(section);
    if (section->type != TP_JSON_OBJECT)
        return tp_node_fail(root, err, "expected a section with keys below it");
    tp_buf prefix = {0};
    tp_node_path(root, &prefix);
    tp_buf_addc(&prefix, '.');
    binder b = {.config = config,
                .root = root,
                .prefix = tp_buf_str(&prefix),
                .table = table,
                .n = n,
                .target = target};
    tp_status status = bind_from(&b, err);
    tp_buf_release(&prefix);
    return status;
}
