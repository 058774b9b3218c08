/* blocks.c - reference counts of the blocks of the KV cache and the list of free ones. */
#include "engine/generate/engine_internal.h"

#include <stdlib.h>

#include "base/error.h"

void tp_blocks_init(tp_blocks *b, int32_t n)
{
    *b = (tp_blocks){.n = n, .n_free = n, .least_free = n};
    b->free = tp_new((size_t)n, sizeof *b->free);
    b->keepers = tp_new((size_t)n, sizeof *b->keepers);
    for (int32_t i = 0; i < n; i++) /* the first block lies on top */
        b->free[i] = n - 1 - i;
}

void tp_blocks_release(tp_blocks *b)
{
    free(b->free);
    free(b->keepers);
    *b = (tp_blocks){0};
}

int32_t tp_blocks_take(tp_blocks *b)
{
    TP_ASSERT(b->n_free > 0);
    int32_t block = b->free[--b->n_free];
    b->least_free = b->n_free < b->least_free ? b->n_free : b->least_free;
    b->keepers[block] = 1;
    return block;
}

void tp_blocks_keep(tp_blocks *b, int32_t block)
{
    TP_ASSERT(b->keepers[block] > 0);
    b->keepers[block]++;
}

void tp_blocks_drop(tp_blocks *b, int32_t block)
{
    TP_ASSERT(b->keepers[block] > 0);
    if (--b->keepers[block] == 0)
        b->free[b->n_free++] = block;
}
