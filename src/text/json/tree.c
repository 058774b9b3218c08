/* tree.c - building JSON trees in an arena, and comparing them. */
#include "text/json/tree.h"

#include <string.h>

tp_json *tp_tree_new(tp_arena *arena, tp_json_type type)
{
    tp_json *node = tp_arena_new(arena, tp_json);
    node->type = type;
    return node;
}

void tp_tree_append(tp_json *parent, tp_json *child)
{
    tp_json **end = &parent->child;
    while (*end)
        end = &(*end)->next;
    *end = child;
    parent->n++;
}

tp_json *tp_tree_text(tp_arena *arena, const char *key, tp_slice text)
{
    tp_json *node = tp_tree_new(arena, TP_JSON_STRING);
    node->key = tp_slice_of(key);
    node->text = text;
    return node;
}

tp_json *tp_tree_message(tp_arena *arena, const char *role, tp_slice content)
{
    tp_json *message = tp_tree_new(arena, TP_JSON_OBJECT);
    tp_tree_append(message, tp_tree_text(arena, "role", tp_slice_of(role)));
    tp_tree_append(message, tp_tree_text(arena, "content", content));
    return message;
}

/* The order of members says nothing, and the last of a key counts. */
static bool members_are_same(const tp_json *a, const tp_json *b)
{
    for (const tp_json *v = a->child; v; v = v->next)
        if (!tp_json_same(tp_json_find(a, v->key), tp_json_find(b, v->key)))
            return false;
    for (const tp_json *v = b->child; v; v = v->next)
        if (!tp_json_find(a, v->key))
            return false;
    return true;
}

bool tp_json_same(const tp_json *a, const tp_json *b)
{
    double x, y;
    if (!a || !b)
        return a == b;
    if (tp_json_f64(a, &x) && tp_json_f64(b, &y))
        return x <= y && x >= y;
    bool is_text = a->type == TP_JSON_STRING || a->type == TP_JSON_NUMBER;
    if (a->type == TP_JSON_OBJECT && b->type == TP_JSON_OBJECT)
        return members_are_same(a, b);
    if (a->type != b->type || a->n != b->n || (is_text && !tp_slice_eq(a->text, b->text)))
        return false;
    const tp_json *v = a->child, *w = b->child;
    while (v && w && tp_json_same(v, w)) {
        v = v->next;
        w = w->next;
    }
    return !v && !w;
}
