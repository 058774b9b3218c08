/* config_keys.c - keys that no option has, and what was probably meant. */
#include <string.h>

#include "config/config_internal.h"

static const tp_option *find_option(const tp_binder *b, const char *name)
{
    for (size_t i = 0; i < b->n; i++) {
        if (!strcmp(b->table[i].name, name))
            return &b->table[i];
    }
    return NULL;
}

/* Does some option live below this section? */
static bool is_section(const tp_binder *b, const char *path)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < b->n; i++) {
        if (!strncmp(b->table[i].name, path, n) && b->table[i].name[n] == '.')
            return true;
    }
    return false;
}

/* The best guess so far at what was meant by `path`. */
typedef struct {
    const char *path;
    tp_slice best;
    size_t distance;
    bool is_tie;
} guess;

static void consider(guess *g, tp_slice name, size_t distance)
{
    /* Letters are rather swapped than lost. */
    bool same_length = name.len == strlen(g->path);
    bool best_has = g->best.len == strlen(g->path);
    bool is_equal = g->best.data && distance == g->distance;
    if (tp_slice_eq(name, g->best))
        return;
    if (distance < g->distance || (is_equal && same_length && !best_has)) {
        g->best = name;
        g->distance = distance;
        g->is_tie = false;
    } else if (is_equal && same_length == best_has) {
        g->is_tie = true;
    }
}

/* The section that an option lies in, as deep as `path`; empty where the option is no deeper. */
static tp_slice section_of(const tp_option *o, const char *path)
{
    const char *end = o->name + strcspn(o->name, ".");
    for (const char *at = path; *end && (at = strchr(at, '.')); at++)
        end += 1 + strcspn(end + 1, ".");
    return (tp_slice){o->name, *end ? (size_t)(end - o->name) : 0};
}

/* The known key or section that the user most likely meant: a slip of the finger or two away, or
 * the same word in one other section.  Two that are equally near are both a guess: then none. */
static tp_slice nearest(const tp_binder *b, const char *path)
{
    guess g = {.path = path, .distance = strlen(tp_str_after(path, '.')) < 6 ? 2 : 3};
    for (size_t i = 0; i < b->n; i++) {
        const char *name = b->table[i].name;
        tp_slice section = section_of(&b->table[i], path);
        size_t distance = tp_str_distance(name, path);
        if (distance > 1 && !strcmp(tp_str_after(name, '.'), tp_str_after(path, '.')))
            distance = 1;
        consider(&g, tp_slice_of(name), distance);
        if (section.len) {
            char text[128];
            snprintf(text, sizeof text, "%.*s", (int)section.len, section.data);
            consider(&g, section, tp_str_distance(text, path));
        }
    }
    return g.is_tie ? (tp_slice){0} : g.best;
}

/* "policy.model_name" has the word "model". */
static bool has_word(const char *key, const char *word)
{
    size_t n = strlen(word);
    for (const char *last = tp_str_after(key, '.'), *at = last; (at = strstr(at, word)); at++)
        if ((at == last || at[-1] == '_') && (!at[n] || at[n] == '_'))
            return true;
    return false;
}

static bool must_be_set(const tp_binder *b, const char *key)
{
    const tp_config_node *node = tp_path_find(b->root, tp_slice_of(key));
    return node && tp_node_is_missing(node);
}

/* How likely a key is meant by a word that is only a part of it; 0: it is not. */
static int likeness(const tp_binder *b, const tp_option *o, const char *section, size_t n_section,
                    const char *word)
{
    bool is_below =
        !n_section || (strncmp(o->name, section, n_section) == 0 && o->name[n_section] == '.');
    bool is_equal = strcmp(tp_str_after(o->name, '.'), word) == 0;
    if (!is_below || o->ignored || o->belongs_to || !has_word(o->name, word))
        return 0;
    return 1 + 2 * is_equal + must_be_set(b, o->name);
}

/* "; did you mean a, b or c?" of what comes into question in a section, the likeliest: keys of that
 * name go before those that have it as a part, and what has to be set before what has not. */
static void add_likely(const tp_binder *b, const char *section, size_t n_section, const char *word,
                       tp_buf *out)
{
    enum { MOST = 4 };
    const char *found[MOST];
    size_t n = 0;
    int best = 1;
    for (size_t i = 0; i < b->n; i++) {
        int likely = likeness(b, &b->table[i], section, n_section, word);
        if (likely > best)
            n = 0;
        if (likely < best)
            continue;
        best = likely;
        if (n < MOST)
            found[n] = b->table[i].name;
        n++;
    }
    for (size_t i = 0; i < n && n <= MOST; i++) {
        const char *between = i + 1 < n ? ", " : " or ";
        tp_buf_addf(out, "%s%s%s", i ? between : "; did you mean ", b->prefix, found[i]);
    }
    if (n > 0 && n <= MOST)
        tp_buf_addc(out, '?');
}

/* The key that another program's name means. */
static const char *translated(const tp_binder *b, const char *path)
{
    tp_slice meant = b->config->translate ? b->config->translate(path) : (tp_slice){0};
    for (size_t i = 0; i < b->n && meant.len; i++) {
        const char *name = b->table[i].name, *end = name + strcspn(name, ".");
        char section[64];
        if (meant.data[0] != '@') {
            if (tp_slice_is(meant, name))
                return name;
            continue;
        }
        snprintf(section, sizeof section, "%.*s", (int)(end - name), name);
        if (tp_slice_is((tp_slice){meant.data + 1, meant.len - 1}, end) &&
            tp_config_find(b->config, section))
            return name;
    }
    return NULL;
}

/* A key below a section that has a use: a file, where there is one. */
static const char *key_below(const tp_binder *b, const char *section)
{
    const char *first = NULL;
    size_t n = strlen(section);
    for (size_t i = 0; i < b->n; i++) {
        const tp_option *o = &b->table[i];
        if (strncmp(o->name, section, n) != 0 || o->name[n] != '.' || o->ignored || o->belongs_to)
            continue;
        if (o->is_path)
            return o->name;
        if (!first)
            first = o->name;
    }
    return first;
}

/* "a, b, c" of the keys directly below a section. */
static void list_keys(const tp_binder *b, const char *section, size_t n_section, tp_buf *out)
{
    enum { ENOUGH = 400 };
    tp_slice previous = {0};
    for (size_t i = 0; i < b->n && out->len < ENOUGH; i++) {
        const char *name = b->table[i].name;
        if (b->table[i].ignored ||
            (n_section && (strncmp(name, section, n_section) != 0 || name[n_section] != '.')))
            continue;
        name += n_section ? n_section + 1 : 0;
        tp_slice key = {name, strcspn(name, ".")};
        if (tp_slice_eq(key, previous))
            continue;
        tp_buf_addf(out, "%s%.*s", out->len ? ", " : "", (int)key.len, key.data);
        previous = key;
    }
}

/* The innermost section of `path` that exists; its length, 0 for the top. */
static size_t known_section(const tp_binder *b, const char *path, char section[256])
{
    size_t n = strlen(path);
    snprintf(section, 256, "%.255s", path);
    while (n && !is_section(b, section)) {
        char *dot = strrchr(section, '.');
        n = dot ? (size_t)(dot - section) : 0;
        section[n] = 0;
    }
    return n;
}

static void note_unknown(const tp_binder *b, const tp_config_node *node, const char *path,
                         bool is_only)
{
    TP_OWN(tp_buf) text = {0}, keys = {0};
    char section[256];
    const char *meant = translated(b, path);
    tp_slice known = meant ? tp_slice_of(meant) : nearest(b, path);
    const char *word = tp_str_after(path, '.');
    tp_buf_addf(&text, "%s: unknown key %s%.200s", node->origin, b->prefix, path);
    size_t n_text = text.len;
    if (known.data)
        tp_buf_addf(&text, "; did you mean %s%.*s?", b->prefix, (int)known.len, known.data);
    else if (strlen(word) > 2)
        add_likely(b, path, word > path ? (size_t)(word - path) - 1 : 0, word, &text);
    if (text.len == n_text && is_only) {
        size_t n = known_section(b, path, section);
        list_keys(b, section, n, &keys);
        size_t n_prefix = strlen(b->prefix); /* ends with a dot, for a name behind it */
        tp_buf_addf(&text, "; known keys %s%.*s%s are %s", n || n_prefix ? "in " : "at the top",
                    (int)(n_prefix && !n ? n_prefix - 1 : n_prefix), b->prefix, section,
                    tp_buf_str(&keys));
    }
    tp_config_remark_add(b->config, &b->config->faults, text.data, NULL);
}

static void note_foreign(const tp_binder *b, const tp_config_node *node, const tp_option *option)
{
    bool says = option->present != NULL;
    char *text =
        tp_arena_printf(&b->config->arena, "%s: %s is part of %s%s%s", node->origin, option->name,
                        option->belongs_to, says ? ", and this configuration has a section " : "",
                        says ? option->present : "");
    tp_config_remark_add(b->config, &b->config->faults, text, NULL);
}

/* Notes unknown keys, or only counts them; nests as deep as the table's names do. */
static size_t check_keys(const tp_binder *b, const tp_config_node *node, tp_buf *path, bool is_only,
                         bool counts_only)
{
    size_t n_path = path->len, n_unknown = 0;
    for (const tp_json *v = node->value.child; v; v = v->next) {
        const tp_config_node *child = tp_node_of(v);
        if (n_path)
            tp_buf_addc(path, '.');
        tp_buf_add(path, v->key.data, v->key.len);
        const tp_option *option = find_option(b, path->data);
        if (option && option->belongs_to && !counts_only) {
            note_foreign(b, child, option);
        } else if (!option && !is_section(b, path->data)) {
            n_unknown++;
            if (!counts_only)
                note_unknown(b, child, path->data, is_only);
        } else if (!option && v->type != TP_JSON_OBJECT && !counts_only) {
            tp_error err = {0};
            const char *key = key_below(b, path->data);
            (void)tp_node_fail(child, &err, "it has keys below it and takes no value%s%s%s",
                               key ? "; they do, such as " : "", key ? b->prefix : "",
                               key ? key : "");
            tp_config_remark_add(b->config, &b->config->faults, err.message, NULL);
        } else if (!option) {
            n_unknown += check_keys(b, child, path, is_only, counts_only);
        }
        path->len = n_path;
        if (path->data)
            path->data[n_path] = 0;
    }
    return n_unknown;
}

void tp_binder_check_keys(const tp_binder *b)
{
    TP_OWN(tp_buf) path = {0};
    size_t n_unknown = check_keys(b, b->root, &path, false, true);
    check_keys(b, b->root, &path, n_unknown == 1, false);
}
