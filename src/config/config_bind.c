/* config_bind.c - the tree against a table of options: types, ranges, defaults, names that are
 * not known. */
#include "config/config.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "config/config_internal.h"
#include "text/json/tree.h"
#include "text/yaml/yaml.h"

static bool allows_null(const tp_option *option)
{
    return option->nullable || !option->default_value || !strcmp(option->default_value, "null");
}

/* Put the default of a row where the tree has nothing.  What a section refers to
 * elsewhere (`${...}`) is left alone until it is resolved. */
static tp_status insert_default(tp_binder *b, const tp_option *option, tp_error *err)
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

static tp_status insert_defaults(tp_binder *b, tp_error *err)
{
    for (size_t i = 0; i < b->n; i++)
        if (!b->table[i].belongs_to && !b->table[i].accepted && !b->table[i].when)
            TP_TRY(insert_default(b, &b->table[i], err));
    return TP_OK;
}

/* "recipes/sft.yaml:12" -> the length of "recipes/", 0 when no file said it. */
static size_t folder_of(const char *origin)
{
    const char *slash = strrchr(origin, '/');
    return slash && strrchr(slash, ':') ? (size_t)(slash + 1 - origin) : 0;
}

/* A file named in a recipe may lie beside it.  Before interpolation, so that whoever refers
 * to the value finds the same file. */
static tp_status find_beside(tp_binder *b, const tp_option *option, tp_error *err)
{
    tp_config_node *node = tp_path_find(b->root, tp_slice_of(option->name));
    const char *text = node ? tp_node_text(node) : NULL;
    struct stat st;
    if (!text || !*text || *text == '/' || strpbrk(text, "${\n") || stat(text, &st) == 0)
        return TP_OK;
    size_t n = folder_of(node->origin);
    TP_OWN(tp_buf) full = {0};
    tp_buf_add(&full, node->origin, n);
    tp_buf_adds(&full, text);
    if (n && stat(full.data, &st) == 0)
        TP_TRY(tp_node_text_copy(b->config, full.data, full.len, &node->value.text, err));
    return TP_OK;
}

/* The only file of its kind in a folder; of several somebody else says which there are. */
static tp_status find_inside(tp_binder *b, const tp_option *option, tp_error *err)
{
    tp_config_node *node = tp_path_find(b->root, tp_slice_of(option->name));
    const char *text = node ? tp_node_text(node) : NULL;
    TP_OWN(tp_buf) file = {0};
    if (text && option->ending && tp_dir_count(text, option->ending, &file) == 1)
        TP_TRY(tp_node_text_copy(b->config, file.data, file.len, &node->value.text, err));
    return TP_OK;
}

static tp_status find_files(tp_binder *b, tp_error *err)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->table[i].is_path) {
            TP_TRY(find_beside(b, &b->table[i], err));
            TP_TRY(find_inside(b, &b->table[i], err));
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
    const tp_json *v = &node->value;
    if (v->type == TP_JSON_STRING && strlen(v->text.data) != v->text.len)
        return tp_node_fail(node, err, "the text contains a NUL character");
    *ret = v->type == TP_JSON_NULL ? NULL : tp_json_word(v);
    return *ret ? TP_OK : refuse(node, "text", err);
}

bool tp_option_word(const tp_option *option, int i, tp_slice *ret)
{
    if (option->rows) {
        const char *row = (const char *)option->rows + (size_t)i * option->row_bytes;
        const char *name = *(const char *const *)(const void *)row;
        *ret = name ? tp_slice_of(name) : (tp_slice){0};
        return name != NULL;
    }
    const char *p = option->choices;
    for (; i > 0 && *p; i--) {
        p += strcspn(p, "|");
        p += *p == '|';
    }
    *ret = (tp_slice){p, strcspn(p, "|")};
    return *p != 0;
}

static tp_status read_enum(const tp_option *option, const tp_config_node *node, int *ret,
                           tp_error *err)
{
    const char *text = NULL;
    TP_OWN(tp_buf) choices = {0};
    tp_slice word;
    TP_TRY(read_string(node, &text, err));
    for (int i = 0; tp_option_word(option, i, &word); i++) {
        if (tp_slice_is(word, text)) {
            *ret = i;
            return TP_OK;
        }
        tp_buf_addf(&choices, "%s%.*s", i ? ", " : "", (int)word.len, word.data);
    }
    char value[80];
    tp_status status =
        tp_node_fail(node, err, "%s is not one of %s", shown(node, value), tp_buf_str(&choices));
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

static tp_status read_list(const tp_binder *b, const tp_option *option, const tp_config_node *node,
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

/* A value that refers to one that is missing is not missing by itself. */
static void note_missing(const tp_binder *b, const tp_option *option, const tp_config_node *node)
{
    if (node->is_derived)
        return;
    const char *name = tp_arena_printf(&b->config->arena, "%s%s", b->prefix, option->name);
    tp_config_remark_add(b->config, &b->config->missing, name, node->origin);
}

/* How a value is written in tp_option.accepted; NULL when it is none of those. */
static const char *plain_word(const tp_config_node *node)
{
    const tp_json *v = &node->value;
    if (v->type == TP_JSON_ARRAY || v->type == TP_JSON_OBJECT)
        return v->n ? NULL : v->type == TP_JSON_ARRAY ? "[]" : "{}";
    return tp_json_word(v);
}

static bool is_one_of(const char *word, const char *choices)
{
    for (const char *p = choices;; p++) {
        size_t n = strcspn(p, "|");
        if (strlen(word) == n && !memcmp(word, p, n))
            return true;
        p += n;
        if (!*p)
            return false;
    }
}

/* Does the key count, as things stand? */
static bool applies(const tp_binder *b, const tp_option *option)
{
    bool is_on = false;
    if (!option->when)
        return true;
    const tp_config_node *node = tp_path_find(b->root, tp_slice_of(option->when));
    return node && tp_json_bool(&node->value, &is_on) && is_on;
}

/* Of a key that is known and whose value must be the one that Temper acts on anyway. */
static tp_status check_accepted(const tp_binder *b, const tp_option *option, tp_error *err)
{
    char value[80];
    const tp_config_node *node = tp_path_find(b->root, tp_slice_of(option->name));
    if (!node || !applies(b, option))
        return TP_OK;
    const char *word = plain_word(node);
    if (word && is_one_of(word, option->accepted))
        return TP_OK;
    return tp_node_fail(node, err,
                        "%s is refused, as the result would be another: %.*s; set it to %.*s",
                        shown(node, value), tp_sentence_len(option->doc), option->doc,
                        (int)strcspn(option->accepted, "|"), option->accepted);
}

/* The same inside a section that is not looked into; nests as deep as the file. */
static void note_missing_below(const tp_binder *b, const tp_config_node *node)
{
    TP_OWN(tp_buf) path = {0};
    for (const tp_json *v = node->value.child; v; v = v->next) {
        note_missing_below(b, tp_node_of(v));
        if (!tp_node_is_missing(tp_node_of(v)))
            continue;
        tp_buf_clear(&path);
        tp_node_path(tp_node_of(v), &path);
        tp_config_remark_add(b->config, &b->config->missing, path.data, tp_node_of(v)->origin);
    }
}

static tp_status bind_one(const tp_binder *b, const tp_option *option, tp_error *err)
{
    const tp_config_node *node = tp_path_find(b->root, tp_slice_of(option->name));
    if (option->accepted)
        return check_accepted(b, option, err);
    if (!node || option->when)
        return TP_OK; /* below something that is no section, which is a fault already */
    any_value value = null_value(option->type);
    if (node->value.type == TP_JSON_NULL) {
        if (!allows_null(option))
            return tp_node_fail(node, err, "null is no value for this key; its default is %s",
                                option->default_value);
    } else if (tp_node_is_missing(node)) {
        note_missing(b, option, node);
    } else if (option->type == TP_OPT_FLOAT_LIST || option->type == TP_OPT_STRING_LIST) {
        return read_list(b, option, node, err);
    } else {
        TP_TRY(read_value(option, node, &value, err));
        if (option->type == TP_OPT_SECTION && !option->ignored)
            note_missing_below(b, node);
    }
    if (option->offset != TP_OPT_NOT_STORED)
        memcpy(b->target + option->offset, &value, size_of(option->type));
    return TP_OK;
}

/* A section that says `enabled: false` asks for nothing. */
static bool is_switched_off(const tp_json *v)
{
    bool enabled = true;
    return v->type == TP_JSON_NULL || (v->type == TP_JSON_OBJECT && v->n == 0) ||
           (tp_json_bool(tp_json_get(v, "enabled"), &enabled) && !enabled);
}

/* The default; where that is "${a.b}", what a.b says here (NULL: nothing). */
static tp_status usual_value(const tp_binder *b, const tp_option *option, const tp_json **ret,
                             tp_error *err)
{
    const char *text = option->default_value;
    size_t n = strlen(text);
    if (tp_str_starts(text, "${") && strcspn(text, "}") == n - 1) {
        const tp_config_node *node = tp_path_find(b->root, (tp_slice){text + 2, n - 3});
        *ret = node ? &node->value : NULL;
        return TP_OK;
    }
    return tp_yaml_parse(&b->config->arena, option->name, text, n, ret, err);
}

/* Saying what is the case anyway needs no announcement. */
static tp_status announce(const tp_binder *b, const tp_option *option, tp_error *err)
{
    const tp_config_node *node = tp_path_find(b->root, tp_slice_of(option->name));
    tp_config *config = b->config;
    const tp_json *usual = NULL;
    if (!option->ignored || option->unannounced || option->accepted || !node ||
        !applies(b, option) || !strcmp(node->origin, "default") || is_switched_off(&node->value))
        return TP_OK;
    if (option->default_value) {
        TP_TRY(usual_value(b, option, &usual, err));
        if (usual && tp_json_same(&node->value, usual))
            return TP_OK;
    }
    const char *name = tp_arena_printf(&config->arena, "%s%s", b->prefix, option->name);
    tp_config_remark_add(config, &config->idle, name, option->doc ? option->doc : "");
    return TP_OK;
}

/* Keys in the order of the table, so that config.yaml always reads the same. */
static void sort_like_table(const tp_binder *b)
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

/* Errors are those after which the tree cannot be looked at; the rest are faults. */
static tp_status bind_from(tp_binder *b, tp_error *err)
{
    TP_TRY(find_files(b, err));
    /* Defaults first, so that recipes may refer to them; once more for sections
     * that turned out to be references to others. */
    for (int round = 0; round < 2; round++) {
        tp_status status = insert_defaults(b, err);
        if (status == TP_OK)
            status = tp_config_resolve(b->config, b->root, err);
        if (status == TP_OK)
            continue;
        tp_binder_check_keys(b); /* a section that was given a value misses its keys */
        return b->config->faults.n ? TP_OK : status;
    }
    tp_binder_check_keys(b);
    for (size_t i = 0; i < b->n; i++) {
        tp_error fault = {0};
        if (b->table[i].belongs_to || bind_one(b, &b->table[i], &fault) == TP_OK)
            continue;
        /* What was taken from a faulty value is not said again. */
        const tp_config_node *node = tp_path_find(b->root, tp_slice_of(b->table[i].name));
        if (!b->config->faults.n || !node || !node->is_derived)
            tp_config_remark_add(b->config, &b->config->faults, fault.message, NULL);
    }
    sort_like_table(b);
    for (size_t i = 0; i < b->n; i++)
        TP_TRY(announce(b, &b->table[i], err));
    tp_config_make_notice(b->config);
    b->config->is_bound = true;
    return TP_OK;
}

static tp_status config_collect(tp_config *config, const tp_option *table, size_t n, void *target,
                                tp_error *err)
{
    tp_binder b = {.config = config,
                   .root = config->root,
                   .prefix = "",
                   .table = table,
                   .n = n,
                   .target = target};
    return bind_from(&b, err);
}

tp_status tp_config_bind(tp_config *config, const tp_option *table, size_t n, void *target,
                         tp_error *err)
{
    TP_TRY(config_collect(config, table, n, target, err));
    return tp_config_end(config, err);
}

tp_status tp_config_bind_section(tp_config *config, const tp_json *section, const tp_option *table,
                                 size_t n, void *target, tp_error *err)
{
    tp_config_node *root = tp_node_of(section);
    if (section->type != TP_JSON_OBJECT)
        return tp_node_fail(root, err, "expected a section with keys below it");
    TP_OWN(tp_buf) prefix = {0};
    tp_node_path(root, &prefix);
    tp_buf_addc(&prefix, '.');
    tp_binder b = {.config = config,
                   .root = root,
                   .prefix = tp_buf_str(&prefix),
                   .table = table,
                   .n = n,
                   .target = target};
    TP_TRY(bind_from(&b, err));
    return tp_config_end(config, err);
}
