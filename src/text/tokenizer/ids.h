/* ids.h - a growing list of token ids; a zeroed one is empty and valid. */
#ifndef TP_TEXT_TOKENIZER_IDS_H
#define TP_TEXT_TOKENIZER_IDS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int32_t *data;
    size_t len, cap;
} tp_ids;

void tp_ids_release(tp_ids *ids);
void tp_ids_add(tp_ids *ids, int32_t id);
int32_t *tp_ids_extend(tp_ids *ids, size_t n); /* room for n more: where they go */

#endif
