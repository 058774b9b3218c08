/* config.c - files, parents and overrides become one tree whose every value knows its origin. */
#include "config/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/platform.h"
#include "config/config_internal.h"
#include "text/yaml/yaml.h"

static const char command_line[] = "command line";

static tp_status load_file(tp_config *config, const char *path, tp_config_node **ret,
                           tp_error *err);

static tp_status merge(tp_config *config, tp_config_node *onto, tp_config_node *from,
                       tp_error *err);

/* A reference to a section becomes a copy of that, as it stands by now: as in OmegaConf, the
 * members that the heir does not set are then still there. */
static tp_status expand(tp_config *config, tp_config_node **old, tp_error *err)
{
    tp_config_node *copy = NULL;
    const tp_config_node *target = NULL;
    TP_TRY(tp_config_section(*old, &target, err));
    if (!target)
        return TP_OK;
    TP_TRY(tp_node_import(config, &target->value, NULL, NULL, tp_node_depth(*old), &copy, err));
    tp_node_replace(*old, copy);
    *old = copy;
    return TP_OK;
}

static tp_status check_kinds(const tp_config_node *old, const tp_config_node *node, tp_error *err)
{
    bool is_map = node->value.type == TP_JSON_OBJECT;
    if (!tp_node_is_container(old) || !tp_node_is_container(node) || node->replaces ||
        old->value.type == node->value.type)
        return TP_OK;
    return tp_node_fail(old, err,
                        "a %s, with which a %s (%s) cannot be merged; write the same in both%s",
                        is_map ? "list" : "mapping", is_map ? "mapping" : "list", node->origin,
                        is_map ? ", or _override_: true in the mapping" : "");
}

static bool are_sections(const tp_config_node *old, const tp_config_node *node)
{
    return old->value.type == TP_JSON_OBJECT && node->value.type == TP_JSON_OBJECT &&
           !node->replaces;
}

static tp_status merge_member(tp_config *config, tp_config_node *old, tp_config_node *node,
                              tp_error *err)
{
    bool is_silent = config->is_old && tp_node_is_missing(node); /* as OmegaConf takes it */
    if (is_silent || (tp_node_is_container(node) && !node->replaces))
        TP_TRY(expand(config, &old, err));
    if (is_silent)
        return TP_OK;
    TP_TRY(check_kinds(old, node, err));
    if (!are_sections(old, node)) {
        tp_node_replace(old, node);
        return TP_OK;
    }
    old->origin = node->origin;
    return merge(config, old, node, err);
}

/* Lay `from` over `onto`: mappings merge member by member, anything else takes the
 * place of what was there.  Nodes of `from` move.  Calls nest as deep as the tree. */
static tp_status merge(tp_config *config, tp_config_node *onto, tp_config_node *from, tp_error *err)
{
    for (const tp_json *v = from->value.child, *next; v; v = next) {
        next = v->next;
        tp_config_node *old = tp_node_child(onto, v->key);
        if (!old)
            tp_node_append(onto, v->key, tp_node_of(v));
        else
            TP_TRY(merge_member(config, old, tp_node_of(v), err));
    }
    return TP_OK;
}

static tp_status load_parent(tp_config *config, const char *path, const tp_config_node *named_by,
                             tp_config_node *onto, tp_error *err)
{
    const char *parent = tp_node_text(named_by);
    if (!parent)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s: defaults takes a path or a list of paths to other recipes",
                       named_by->origin);
    const char *slash = strrchr(path, '/');
    while (tp_str_starts(parent, "./"))
        parent += 2;
    TP_OWN(tp_buf) full = {0};
    if (slash && parent[0] != '/')
        tp_buf_add(&full, path, (size_t)(slash + 1 - path));
    tp_buf_adds(&full, parent);
    tp_config_node *tree = NULL;
    tp_status status = load_file(config, full.data, &tree, err);
    if (status != TP_OK)
        return tp_error_prefix(err, status, "%s: defaults: ", named_by->origin);
    return merge(config, onto, tree, err);
}

/* The parents that `tree` names, merged in order, with `tree` itself on top. */
static tp_status inherit(tp_config *config, const char *path, tp_config_node *tree,
                         tp_config_node **ret, tp_error *err)
{
    tp_config_node *defaults = tp_node_child(tree, TP_SLICE("defaults"));
    if (!defaults) {
        *ret = tree;
        return TP_OK;
    }
    tp_config_node *base = NULL;
    TP_TRY(tp_node_new(config, TP_JSON_OBJECT, tree->origin, &base, err));
    if (defaults->value.type == TP_JSON_ARRAY) {
        for (const tp_json *v = defaults->value.child; v; v = v->next)
            TP_TRY(load_parent(config, path, tp_node_of(v), base, err));
    } else {
        TP_TRY(load_parent(config, path, defaults, base, err));
    }
    tp_node_remove(defaults);
    *ret = base;
    return merge(config, base, tree, err);
}

static tp_status parse_file(tp_config *config, const char *path, tp_config_node **ret,
                            tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    const tp_json *tree = NULL;
    tp_status status = tp_file_read(path, TP_YAML_MAX_BYTES, &text, err);
    if (status == TP_OK)
        status = (config->is_old ? tp_yaml_parse_old : tp_yaml_parse)(
            &config->arena, path, tp_buf_str(&text), text.len, &tree, err);
    TP_TRY(status);
    if (tree->type == TP_JSON_NULL)
        return tp_node_new(config, TP_JSON_OBJECT, path, ret, err);
    if (tree->type != TP_JSON_OBJECT)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s:%u: a recipe is a mapping of keys to values, as in \"policy:\"", path,
                       tree->line);
    return tp_node_import(config, tree, path, NULL, 0, ret, err);
}

static tp_status load_open_file(tp_config *config, const char *path, tp_config_node **ret,
                                tp_error *err)
{
    tp_config_node *tree = NULL;
    TP_TRY(parse_file(config, path, &tree, err));
    return inherit(config, path, tree, ret, err);
}

static tp_status load_file(tp_config *config, const char *path, tp_config_node **ret, tp_error *err)
{
    TP_FREED char *real = realpath(path, NULL);
    if (!real)
        return tp_fail(err, TP_ERR_IO, "cannot open %s: no such file; check the path", path);
    const char *name = tp_arena_strdup(&config->arena, real);
    for (int i = 0; i < config->n_open_files; i++) {
        if (!strcmp(config->files[i], name))
            return tp_fail(err, TP_ERR_CONFIG,
                           "%s inherits from itself; take it out of one `defaults:`", path);
    }
    if (config->n_open_files == (int)TP_COUNTOF(config->files) ||
        ++config->n_files > TP_CONFIG_MAX_FILES)
        return tp_fail(err, TP_ERR_CONFIG, "%s: recipes inherit from too many others", path);
    config->files[config->n_open_files++] = name;
    tp_status status = load_open_file(config, path, ret, err);
    config->n_open_files--;
    return status;
}

static tp_status load_root(tp_config *config, const char *path, tp_error *err)
{
    TP_TRY(tp_arena_init(&config->arena, TP_CONFIG_ARENA_BYTES, err));
    if (path) {
        config->file = tp_arena_strdup(&config->arena, path);
        /* Standard input has no place of its own and cannot be read again. */
        return strcmp(path, "-") == 0 ? load_open_file(config, path, &config->root, err)
                                      : load_file(config, path, &config->root, err);
    }
    return tp_node_new(config, TP_JSON_OBJECT, "default", &config->root, err);
}

static tp_status load(tp_config **ret, const char *path, bool is_old, tp_error *err)
{
    tp_config *config = tp_new(1, sizeof *config);
    config->is_old = is_old;
    TP_HAND_OVER(load_root(config, path, err), ret, config, tp_config_release(config));
}

tp_status tp_config_load(tp_config **ret, const char *path, tp_error *err)
{
    return load(ret, path, false, err);
}

tp_status tp_config_load_old(tp_config **ret, const char *path, tp_error *err)
{
    return load(ret, path, true, err);
}

/* What a copied tree still points to in the first one. */
static tp_status own_texts(tp_config *config, tp_config_node *node, tp_error *err)
{
    tp_json *v = &node->value;
    if (v->text.data)
        TP_TRY(tp_node_text_copy(config, v->text.data, v->text.len, &v->text, err));
    if (v->key.data)
        TP_TRY(tp_node_text_copy(config, v->key.data, v->key.len, &v->key, err));
    node->origin = tp_arena_strdup(&config->arena, node->origin);
    for (const tp_json *child = v->child; child; child = child->next)
        TP_TRY(own_texts(config, tp_node_of(child), err));
    return TP_OK;
}

tp_status tp_config_copy(const tp_config *config, tp_config **ret, tp_error *err)
{
    tp_config *copy = NULL;
    TP_TRY(tp_config_load(&copy, NULL, err));
    copy->file = config->file ? tp_arena_strdup(&copy->arena, config->file) : NULL;
    copy->translate = config->translate;
    tp_status status = tp_node_import(copy, &config->root->value, NULL, NULL, 0, &copy->root, err);
    if (status == TP_OK)
        status = own_texts(copy, copy->root, err);
    TP_HAND_OVER(status, ret, copy, tp_config_release(copy));
}

void tp_config_release(tp_config *config)
{
    if (!config)
        return;
    tp_arena_release(&config->arena);
    free(config);
}

static tp_status check_override_path(const char *text, tp_slice path, tp_error *err)
{
    enum { MAX_PARTS = 16 };
    size_t n_parts = 0;
    tp_slice part;
    while (tp_path_next(&path, &part)) {
        if (part.len == 0 || memchr(part.data, ' ', part.len) || ++n_parts > MAX_PARTS)
            return tp_fail(err, TP_ERR_CONFIG,
                           "override \"%.200s\": write it as section.key=value, without spaces "
                           "around '='",
                           text);
    }
    return TP_OK;
}

static tp_status delete_key(tp_config *config, const char *text, tp_error *err)
{
    tp_slice path = tp_slice_of(text + 1);
    if (memchr(path.data, '=', path.len))
        return tp_fail(err, TP_ERR_CONFIG, "override \"%.200s\": ~ takes a key alone", text);
    TP_TRY(check_override_path(text, path, err));
    tp_config_node *node = path.len ? tp_path_find(config->root, path) : NULL;
    if (!node)
        return tp_fail(err, TP_ERR_CONFIG, "override \"%.200s\": there is no such key to take out",
                       text);
    tp_node_remove(node);
    return TP_OK;
}

/* The section that holds the last part of the path, made where it is missing. */
static tp_status make_parents(tp_config *config, const char *text, tp_slice path,
                              const char *origin, tp_config_node **ret_parent, tp_slice *ret_last,
                              tp_error *err)
{
    tp_config_node *at = config->root;
    tp_slice part, next;
    tp_path_next(&path, &part);
    for (; tp_path_next(&path, &next); part = next) {
        tp_config_node *child = tp_node_child(at, part);
        if (!child && at->value.type == TP_JSON_ARRAY)
            break;
        if (!child || child->value.type == TP_JSON_NULL || tp_node_is_missing(child)) {
            tp_config_node *section = NULL;
            TP_TRY(tp_node_new(config, TP_JSON_OBJECT, origin, &section, err));
            section->replaces = child != NULL;
            if (child)
                tp_node_replace(child, section);
            else
                tp_node_append(at, part, section);
            child = section;
        }
        if (!tp_node_is_container(child))
            return tp_fail(err, TP_ERR_CONFIG,
                           "override \"%.200s\": %.*s is a single value (%s), not a section", text,
                           (int)part.len, part.data, child->origin);
        at = child;
    }
    if (at->value.type == TP_JSON_ARRAY && !tp_node_child(at, part))
        return tp_fail(err, TP_ERR_CONFIG,
                       "override \"%.200s\": the list has %zu entries, numbered from 0", text,
                       at->value.n);
    *ret_parent = at;
    *ret_last = part;
    return TP_OK;
}

/* Hydra ends a key at its ':', YAML at a ':' with a blank behind it. */
static void space_keys(const char *text, tp_buf *out)
{
    TP_OWN(tp_buf) around = {0}; /* the brackets that are open */
    bool is_key = false;
    char quote = 0, last = '['; /* last: before this one, blanks aside */
    for (const char *p = text; *p; p++) {
        tp_buf_addc(out, *p);
        if (*p == '\\' && quote == '"' && p[1])
            tp_buf_addc(out, *++p);
        else if (quote)
            quote = *p == quote ? 0 : quote;
        else if ((*p == '"' || *p == '\'') && strchr("[{,:", last))
            quote = *p;
        else if (*p == '[' || *p == '{')
            tp_buf_addc(&around, *p);
        else if ((*p == ']' || *p == '}') && around.len)
            around.len--;
        else if (*p == ':' && is_key)
            tp_buf_addc(out, ' ');
        if (!quote && strchr("[]{}:,", *p))
            is_key = strchr("{,", *p) && around.len && around.data[around.len - 1] == '{';
        last = *p == ' ' ? last : *p;
    }
}

static tp_status parse_value(tp_config *config, const char *text, const char *value,
                             const tp_json **ret, tp_error *err)
{
    if (*value == 0)
        value = "\"\"";
    TP_OWN(tp_buf) spaced = {0};
    space_keys(value, &spaced);
    tp_status status =
        strchr("[{\"'", *value)
            ? tp_yaml_parse_words(&config->arena, "value", spaced.data, spaced.len, ret, err)
            : tp_yaml_parse_plain(&config->arena, "value", value, ret, err);
    if (status != TP_OK)
        return tp_error_prefix(err, status, "override \"%.200s\": ", text);
    return TP_OK;
}

static tp_status set_key(tp_config *config, const char *text, const char *origin, tp_error *err)
{
    const char *start = text + (*text == '+') + (text[0] == '+' && text[1] == '+');
    const char *equals = strchr(start, '=');
    if (!equals)
        return tp_fail(err, TP_ERR_CONFIG,
                       "override \"%.200s\" has no '='; write section.key=value", text);
    /* The path must outlive this call: keys point into it. */
    const char *copy = tp_arena_try_alloc(&config->arena, 1, strlen(text) + 1, 1);
    if (!copy || strlen(text) > TP_CONFIG_MAX_TEXT)
        return tp_fail(err, TP_ERR_CONFIG, "override \"%.200s...\" is too long", text);
    memcpy((char *)(uintptr_t)copy, text, strlen(text) + 1);
    tp_slice path = {copy + (start - text), (size_t)(equals - start)};
    TP_TRY(check_override_path(text, path, err));

    const tp_json *value = NULL;
    TP_TRY(parse_value(config, copy, equals + 1, &value, err));
    tp_config_node *parent = NULL, *node = NULL;
    tp_slice last = {0};
    TP_TRY(make_parents(config, text, path, origin, &parent, &last, err));
    TP_TRY(tp_node_import(config, value, NULL, origin, tp_node_depth(parent) + 1, &node, err));
    tp_config_node *old = tp_node_child(parent, last);
    if (old && origin == command_line)
        TP_TRY(check_kinds(old, node, err));
    if (!old)
        tp_node_append(parent, last, node);
    else if (are_sections(old, node))
        return merge(config, old, node, err);
    else {
        node->replaces |= old->value.type != TP_JSON_OBJECT;
        tp_node_replace(old, node);
    }
    return TP_OK;
}

tp_status tp_config_override(tp_config *config, const char *text, tp_error *err)
{
    size_t n_valid = tp_utf8_valid_len(text, strlen(text));
    if (text[n_valid])
        return tp_fail(err, TP_ERR_CONFIG, "override \"%.*s...\" is not UTF-8 from byte %zu on",
                       (int)TP_MIN(n_valid, (size_t)200), text, n_valid + 1);
    return *text == '~' ? delete_key(config, text, err) : set_key(config, text, command_line, err);
}

tp_status tp_config_set(tp_config *config, const char *text, const char *origin, tp_error *err)
{
    return set_key(config, text, origin, err);
}

const tp_json *tp_config_resolved(const tp_config *config) { return &config->root->value; }

static const char *origin_of(void *context, const tp_json *leaf)
{
    (void)context;
    return tp_node_of(leaf)->origin;
}

void tp_config_write(const tp_config *config, tp_buf *out)
{
    tp_yaml_write_remarked(&config->root->value, out, origin_of, NULL);
}

const tp_json *tp_config_find(const tp_config *config, const char *path)
{
    tp_config_node *node = tp_path_find(config->root, tp_slice_of(path));
    return node ? &node->value : NULL;
}

const char *tp_config_origin(const tp_config *config, const char *path)
{
    tp_config_node *node = tp_path_find(config->root, tp_slice_of(path));
    return node ? node->origin : NULL;
}

tp_status tp_config_fail(const tp_config *config, const char *path, tp_error *err, const char *fmt,
                         ...)
{
    char message[sizeof err->message / 2];
    TP_FORMAT(message, fmt);
    const char *origin = tp_config_origin(config, path);
    return tp_fail(err, TP_ERR_CONFIG, "%s: %s: %s", origin ? origin : "default", path, message);
}

tp_status tp_config_refuse_empty(const tp_config *config, const char *path,
                                 const tp_str_list *texts, tp_error *err)
{
    for (size_t i = 0; i < texts->n; i++)
        if (!*texts->v[i])
            return tp_config_fail(config, path, err, "the text at place %zu is empty", i + 1);
    return TP_OK;
}

const char *tp_config_file(const tp_config *config) { return config->file; }

bool tp_config_is_derived(const tp_config *config, const char *path)
{
    const tp_config_node *node = tp_path_find(config->root, tp_slice_of(path));
    return node && node->is_derived;
}
