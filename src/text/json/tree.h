/* tree.h - JSON that is built rather than read: messages, and what a template sees; two values
 * compared.
 *
 * Nodes live in an arena; names and texts are shared with whoever gave them. */
#ifndef TP_TEXT_JSON_TREE_H
#define TP_TEXT_JSON_TREE_H

#include "text/json/json.h"

tp_json *tp_tree_new(tp_arena *arena, tp_json_type type);
void tp_tree_append(tp_json *parent, tp_json *child);

/* A member that is a text, not in an object yet. */
tp_json *tp_tree_text(tp_arena *arena, const char *key, tp_slice text);
/* {"role": role, "content": content} */
tp_json *tp_tree_message(tp_arena *arena, const char *role, tp_slice content);

/* Do both say the same?  Numbers by value, wherever they are: 1e-3 is 0.0010. */
bool tp_json_same(const tp_json *a, const tp_json *b); /* NULL: nothing is there */

#endif
