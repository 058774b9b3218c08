/* dropout.h - which elements dropout keeps; the same on every backend. */
#ifndef TP_ENGINE_BACKEND_DROPOUT_H
#define TP_ENGINE_BACKEND_DROPOUT_H

#include <stdbool.h>

#include "base/rng.h"
#include "engine/backend/backend.h"

typedef struct {
    uint64_t seed, stream;
    uint32_t least; /* draws below it drop */
    float factor;   /* of what stays */
} tp_dropout;

static inline tp_dropout tp_dropout_of(const tp_launch *launch)
{
    const int32_t *seed = launch->in[1].data;
    double p = (double)launch->attrs.probability;
    return (tp_dropout){.seed = (uint64_t)(uint32_t)seed[0] | (uint64_t)(uint32_t)seed[1] << 32,
                        .stream = (uint64_t)(uint32_t)launch->attrs.stream,
                        .least = (uint32_t)(p * 4294967296.0),
                        .factor = (float)(1 / (1 - p))};
}

/* What the four elements from 4 * `block` on are multiplied with. */
static inline void tp_dropout_factors(const tp_dropout *d, uint64_t block, float ret[4])
{
    uint32_t words[4];
    tp_philox(d->seed, d->stream, block, words);
    for (int i = 0; i < 4; i++)
        ret[i] = words[i] < d->least ? 0 : d->factor;
}

#endif
