/* config_tree.c - the tree of a configuration: nodes, dotted paths, and errors that name file
 * and line. */
#include "config/config_internal.h"

#include <string.h>

#include "base/platform.h"

static tp_status out_of_room(tp_error *err)
{
    return tp_fail(err, TP_ERR_CONFIG,
                   "the configuration has more than %d values or %d MiB, interpolations expanded; "
                   "simplify it",
                   TP_CONFIG_MAX_NODES, TP_CONFIG_ARENA_BYTES >> 20);
}

bool tp_node_is_missing(const tp_config_node *node)
{
    const char *text = tp_node_text(node);
    return text && !strcmp(text, "???");
}

tp_status tp_node_new(tp_config *config, tp_json_type type, const char *origin,
                      tp_config_node **ret, tp_error *err)
{
    if (config->n_nodes >= TP_CONFIG_MAX_NODES)
        return out_of_room(err);
    tp_config_node *node =
        tp_arena_try_alloc(&config->arena, 1, sizeof *node, _Alignof(tp_config_node));
    if (!node)
        return out_of_room(err);
    config->n_nodes++;
    node->value.type = type;
    node->origin = origin;
    *ret = node;
    return TP_OK;
}

tp_status tp_node_text_copy(tp_config *config, const char *text, size_t n, tp_slice *ret,
                            tp_error *err)
{
    char *copy = tp_arena_try_alloc(&config->arena, n + 1, 1, 1);
    if (!copy)
        return out_of_room(err);
    if (n)
        memcpy(copy, text, n);
    *ret = (tp_slice){copy, n};
    return TP_OK;
}

/* `_override_` says how to merge and is no value of its own. */
static bool is_marker(const tp_json *member, tp_config_node *node)
{
    if (!tp_slice_is(member->key, "_override_"))
        return false;
    node->replaces = member->type == TP_JSON_TRUE;
    return true;
}

static tp_status origin_for(tp_config *config, const tp_json *tree, const char *file,
                            const char *origin, const char **ret, tp_error *err)
{
    if (!file) {
        *ret = origin ? origin : tp_node_of(tree)->origin;
        return TP_OK;
    }
    char line[16];
    int n = snprintf(line, sizeof line, ":%u", tree->line);
    size_t n_file = strlen(file);
    char *copy = tp_arena_try_alloc(&config->arena, n_file + (size_t)n + 1, 1, 1);
    if (!copy)
        return out_of_room(err);
    memcpy(copy, file, n_file);
    memcpy(copy + n_file, line, (size_t)n + 1);
    *ret = copy;
    return TP_OK;
}

tp_status tp_node_import(tp_config *config, const tp_json *tree, const char *file,
                         const char *origin, int depth, tp_config_node **ret, tp_error *err)
{
    const char *own_origin = NULL;
    TP_TRY(origin_for(config, tree, file, origin, &own_origin, err));
    if (depth >= TP_CONFIG_MAX_DEPTH)
        return tp_fail(err, TP_ERR_CONFIG, "%s: nested more than %d levels deep", own_origin,
                       TP_CONFIG_MAX_DEPTH);
    tp_config_node *node = NULL;
    TP_TRY(tp_node_new(config, tree->type, own_origin, &node, err));
    node->value.line = tree->line;
    node->value.text = tree->text;
    if (!file && !origin)
        node->state = tp_node_of(tree)->state;
    tp_json **link = &node->value.child;
    for (const tp_json *v = tree->child; v; v = v->next) {
        if (tree->type == TP_JSON_OBJECT && is_marker(v, node))
            continue;
        tp_config_node *child = NULL;
        TP_TRY(tp_node_import(config, v, file, origin, depth + 1, &child, err));
        child->parent = node;
        child->value.key = v->key;
        *link = &child->value;
        link = &child->value.next;
        node->value.n++;
    }
    *ret = node;
    return TP_OK;
}

/* "12" as a list index; SIZE_MAX when it is not one. */
static size_t index_of(tp_slice name)
{
    size_t index = 0;
    if (name.len == 0 || name.len > 6)
        return SIZE_MAX;
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] < '0' || name.data[i] > '9')
            return SIZE_MAX;
        index = index * 10 + (size_t)(name.data[i] - '0');
    }
    return index;
}

tp_config_node *tp_node_child(const tp_config_node *parent, tp_slice name)
{
    if (parent->value.type == TP_JSON_ARRAY)
        return tp_node_of(tp_json_at(&parent->value, index_of(name)));
    if (parent->value.type != TP_JSON_OBJECT)
        return NULL;
    for (const tp_json *v = parent->value.child; v; v = v->next) {
        if (tp_slice_eq(v->key, name))
            return tp_node_of(v);
    }
    return NULL;
}

/* The link that points to `node`, or the one at the end when node is NULL. */
static tp_json **link_to(tp_config_node *parent, const tp_config_node *node)
{
    tp_json **link = &parent->value.child;
    while (*link && (!node || *link != &node->value))
        link = &(*link)->next;
    return link;
}

void tp_node_append(tp_config_node *parent, tp_slice key, tp_config_node *child)
{
    *link_to(parent, NULL) = &child->value;
    child->value.next = NULL;
    child->value.key = parent->value.type == TP_JSON_OBJECT ? key : (tp_slice){0};
    child->parent = parent;
    parent->value.n++;
    /* Whoever resolved the parent has not seen this child. */
    for (tp_config_node *p = parent; p; p = p->parent)
        p->state = TP_NODE_NEW;
}

void tp_node_replace(tp_config_node *old, tp_config_node *node)
{
    tp_json **link = link_to(old->parent, old);
    TP_ASSERT(*link);
    node->value.next = old->value.next;
    node->value.key = old->value.key;
    node->parent = old->parent;
    *link = &node->value;
    for (tp_config_node *p = node->parent; p; p = p->parent)
        p->state = TP_NODE_NEW;
}

void tp_node_remove(tp_config_node *node)
{
    tp_json **link = link_to(node->parent, node);
    TP_ASSERT(*link);
    *link = node->value.next;
    node->parent->value.n--;
}

int tp_node_depth(const tp_config_node *node)
{
    int depth = 0;
    while ((node = node->parent))
        depth++;
    return depth;
}

static void add_part(const tp_config_node *node, tp_buf *out)
{
    if (node->parent->value.type == TP_JSON_OBJECT) {
        tp_buf_add(out, node->value.key.data, node->value.key.len);
        return;
    }
    size_t index = 0;
    for (const tp_json *v = node->parent->value.child; v && v != &node->value; v = v->next)
        index++;
    tp_buf_addf(out, "%zu", index);
}

void tp_node_path(const tp_config_node *node, tp_buf *out)
{
    const tp_config_node *chain[TP_CONFIG_MAX_DEPTH + 1];
    size_t n = 0;
    for (; node && node->parent && n < TP_COUNTOF(chain); node = node->parent)
        chain[n++] = node;
    if (!n)
        tp_buf_adds(out, "the configuration");
    while (n--) {
        add_part(chain[n], out);
        if (n)
            tp_buf_addc(out, '.');
    }
}

bool tp_path_next(tp_slice *path, tp_slice *ret_part)
{
    if (!path->data)
        return false;
    const char *dot = memchr(path->data, '.', path->len);
    size_t n = dot ? (size_t)(dot - path->data) : path->len;
    *ret_part = (tp_slice){path->data, n};
    *path = dot ? (tp_slice){dot + 1, path->len - n - 1} : (tp_slice){0};
    return true;
}

tp_config_node *tp_path_find(tp_config_node *start, tp_slice path)
{
    tp_slice part;
    while (start && tp_path_next(&path, &part))
        start = tp_node_child(start, part);
    return start;
}

tp_status tp_node_fail(const tp_config_node *node, tp_error *err, const char *fmt, ...)
{
    char message[sizeof err->message / 2];
    TP_FORMAT(message, fmt);
    TP_OWN(tp_buf) path = {0};
    tp_node_path(node, &path);
    return tp_fail(err, TP_ERR_CONFIG, "%s: %s: %s", node->origin, path.data, message);
}
