/* blocks.h - which blocks of the cache are free; private to engine/generate.
 *
 * A block belongs to everyone who keeps it: the samples whose tables name it and the
 * prefix of a request that waits for more of its samples to start. */
#ifndef TP_ENGINE_GENERATE_BLOCKS_H
#define TP_ENGINE_GENERATE_BLOCKS_H

#include <stdint.h>

typedef struct {
    int32_t n, n_free, least_free; /* least_free: since the last reset */
    int32_t *free;                 /* a stack */
    int32_t *keepers;              /* of each block */
} tp_blocks;

void tp_blocks_init(tp_blocks *blocks, int32_t n);
void tp_blocks_release(tp_blocks *blocks);

/* A free block, kept once; the caller knows that there is one. */
int32_t tp_blocks_take(tp_blocks *blocks);
void tp_blocks_keep(tp_blocks *blocks, int32_t block);
void tp_blocks_drop(tp_blocks *blocks, int32_t block); /* free when the last keeper drops it */

#endif
