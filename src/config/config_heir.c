/* config_heir.c - settings of a command line as a recipe that inherits from another: they are
 * applied to an empty configuration, as a command line applies them, and that is written. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/platform.h"
#include "config/config_internal.h"
#include "text/yaml/yaml.h"

/* What an empty configuration cannot hold. */
static tp_status check(const char *setting, tp_error *err)
{
    bool is_listed = false;
    for (const char *p = setting; *p && *p != '='; p++)
        is_listed |= p[0] == '.' && isdigit((unsigned char)p[1]);
    if (*setting == '~' || is_listed)
        return tp_fail(err, TP_ERR_ARG,
                       "'%.200s' cannot be said in a recipe of its own; put it into the "
                       "configuration",
                       setting);
    return TP_OK;
}

/* A file is named from the root, so that the recipe finds it from any folder. */
static tp_status name_from_root(tp_config *config, const tp_option *option, tp_config_node *node,
                                tp_error *err)
{
    struct stat st;
    const char *text = tp_node_text(node), *usual = option->default_value;
    bool is_word = text && usual && strcmp(text, usual) == 0;
    if (!text || !*text || *text == '/' || is_word || strpbrk(text, "${\n") || stat(text, &st) != 0)
        return TP_OK;
    TP_FREED char *here = realpath(".", NULL);
    TP_OWN(tp_buf) full = {0};
    if (!here)
        return tp_fail(err, TP_ERR_IO, "the working directory is gone");
    tp_buf_addf(&full, "%s/%s", here, text);
    return tp_node_text_copy(config, tp_buf_str(&full), full.len, &node->value.text, err);
}

/* A number with an exponent is spelled anew where it is written, a text is not. */
static void keep_spelling(const tp_option *option, tp_config_node *node)
{
    bool is_text = option->type == TP_OPT_STRING || option->type == TP_OPT_STRING_LIST;
    if (is_text && node->value.type == TP_JSON_NUMBER && strpbrk(node->value.text.data, "eE"))
        node->value.type = TP_JSON_STRING;
    for (const tp_json *v = node->value.child; v && is_text; v = v->next)
        keep_spelling(option, tp_node_of(v));
}

/* What replaces a section is said to do so.  Calls nest as deep as the tree. */
static tp_status write_markers(tp_config *config, tp_config_node *node, tp_error *err)
{
    for (const tp_json *v = node->value.child; v; v = v->next)
        TP_TRY(write_markers(config, tp_node_of(v), err));
    if (node->replaces && node->value.type == TP_JSON_OBJECT) {
        tp_config_node *marker = NULL;
        TP_TRY(tp_node_new(config, TP_JSON_TRUE, node->origin, &marker, err));
        tp_node_append(node, TP_SLICE("_override_"), marker);
    }
    return TP_OK;
}

static tp_status name_parent(tp_config *config, const char *parent, tp_error *err)
{
    tp_config_node *first = NULL;
    TP_TRY(tp_node_new(config, TP_JSON_STRING, "default", &first, err));
    TP_TRY(tp_node_text_copy(config, parent, strlen(parent), &first->value.text, err));
    first->value.key = TP_SLICE("defaults");
    first->value.next = config->root->value.child;
    config->root->value.child = &first->value;
    config->root->value.n++;
    return TP_OK;
}

static tp_status fill(tp_config *config, const char *parent, const char *const *settings, size_t n,
                      const tp_option *table, size_t n_options, tp_error *err)
{
    for (size_t i = 0; i < n; i++) {
        TP_TRY(check(settings[i], err));
        TP_TRY(tp_config_override(config, settings[i], err));
    }
    for (size_t i = 0; i < n_options; i++) {
        tp_config_node *node = tp_path_find(config->root, tp_slice_of(table[i].name));
        if (!node)
            continue;
        keep_spelling(&table[i], node);
        if (table[i].is_path)
            TP_TRY(name_from_root(config, &table[i], node, err));
    }
    TP_TRY(write_markers(config, config->root, err));
    return parent ? name_parent(config, parent, err) : TP_OK;
}

tp_status tp_config_heir(const char *parent, const char *const *settings, size_t n,
                         const tp_option *table, size_t n_options, tp_buf *out, tp_error *err)
{
    tp_config *config = NULL;
    TP_TRY(tp_config_load(&config, NULL, err));
    tp_status status = fill(config, parent, settings, n, table, n_options, err);
    if (status == TP_OK)
        tp_yaml_write_remarked(&config->root->value, out, NULL, NULL);
    tp_config_release(config);
    return status;
}
