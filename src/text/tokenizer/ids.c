/* ids.c - growing lists of token ids. */
#include "text/tokenizer/ids.h"

#include <stdlib.h>

#include "base/no_memory.h"
#include "base/platform.h"

void tp_ids_release(tp_ids *ids)
{
    free(ids->data);
    *ids = (tp_ids){0};
}

int32_t *tp_ids_extend(tp_ids *ids, size_t n)
{
    if (ids->cap - ids->len < n) {
        ids->cap = TP_MAX(2 * ids->cap, ids->len + n + 64);
        ids->data = tp_grow(ids->data, ids->cap, sizeof *ids->data);
    }
    int32_t *added = ids->data + ids->len;
    ids->len += n;
    return added;
}

void tp_ids_add(tp_ids *ids, int32_t id) { *tp_ids_extend(ids, 1) = id; }
