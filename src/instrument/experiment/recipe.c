/* recipe.c - "a.b=c" texts put into one YAML tree. */
#include "instrument/experiment/recipe.h"

#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "text/json/json.h"

/* "+a.b=c" and "++a.b=c" mean the same here. */
static const char *without_plus(const char *setting) { return setting + strspn(setting, "+"); }

tp_status tp_recipe_check(const char *const *settings, size_t n, tp_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const char *s = without_plus(settings[i]);
        bool is_listed = false;
        for (const char *p = s; *p && *p != '='; p++)
            is_listed |= p[0] == '.' && isdigit((unsigned char)p[1]);
        if (*s == '~' || !strchr(s, '=') || is_listed)
            return tp_fail(err, TP_ERR_ARG,
                           "'%.200s' cannot be said in a recipe of its own; put it into the "
                           "configuration",
                           settings[i]);
    }
    return TP_OK;
}

/* A mapping or, with `value`, a leaf. */
typedef struct node node;
struct node {
    tp_slice key;
    const char *value;
    node *child, *next;
};

static node *member(tp_arena *arena, node *parent, tp_slice key)
{
    node **at = &parent->child;
    for (; *at; at = &(*at)->next)
        if (tp_slice_eq((*at)->key, key))
            return *at;
    *at = tp_arena_new(arena, node);
    (*at)->key = key;
    return *at;
}

static void add(tp_arena *arena, node *root, const char *setting)
{
    const char *s = without_plus(setting);
    node *at = root;
    while (*s && *s != '=') {
        size_t n = strcspn(s, ".=");
        at = member(arena, at, (tp_slice){s, n});
        s += n + (s[n] == '.');
    }
    at->value = *s == '=' ? s + 1 : "";
    at->child = NULL;
}

static void write(const node *parent, int depth, tp_buf *out)
{
    for (const node *m = parent->child; m; m = m->next) {
        tp_buf_addf(out, "%*s%.*s:", 2 * depth, "", (int)m->key.len, m->key.data);
        if (m->child) {
            tp_buf_addc(out, '\n');
            write(m, depth + 1, out);
        } else
            tp_buf_addf(out, " %s\n", *m->value ? m->value : "\"\"");
    }
}

void tp_recipe_write(const char *parent, const char *const *settings, size_t n, tp_buf *out)
{
    TP_OWN(tp_arena) arena = {0};
    node root = {0};
    TP_ASSERT(tp_arena_init(&arena, 64 << 20, NULL) == TP_OK);
    if (parent) {
        tp_buf_adds(out, "defaults: ");
        tp_json_quote(out, parent, strlen(parent));
        tp_buf_addc(out, '\n');
    }
    for (size_t i = 0; i < n; i++)
        add(&arena, &root, settings[i]);
    write(&root, 0, out);
}
