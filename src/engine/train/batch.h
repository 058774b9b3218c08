/* batch.h - sequences in memory become micro-batches.
 *
 * What the loader does for a data set, for sequences that are made as the run goes:
 * rollouts, and pairs of answers.  Consecutive sequences may form units that lie in one
 * micro-batch together (the two of a pair).  Units are packed into micro-batches of N tokens
 * (data/bins.h), at most max_units each; nothing is cut.
 *
 * Attention in bf16 rounds block by block, so a sequence's log-probabilities depend a
 * little on where in a block it starts.  `align` makes every sequence start at a block;
 * the gaps are sequences of their own that nobody looks at, and count as padding.
 *
 * Position at + k - 1 of a micro-batch predicts token k of the sequence that starts at
 * `at`: that is where its log-probability is. */
#ifndef TP_ENGINE_TRAIN_BATCH_H
#define TP_ENGINE_TRAIN_BATCH_H

#include "engine/data/pack.h"

typedef struct {
    const int32_t *ids;
    const uint8_t *mask; /* n of them: 1 = trained; NULL: all from `first` on */
    int32_t n;           /* >= 1 */
    int32_t first;       /* >= 1: tokens before are never trained */
} tp_batch_sequence;

/* Where a sequence lies. */
typedef struct {
    uint32_t micro;
    int32_t at;
} tp_batch_place;

typedef struct {
    int32_t capacity;   /* N */
    uint32_t unit;      /* sequences of a unit: 1 or 2 */
    uint32_t max_units; /* of a micro-batch; 0: as many as fit */
    int32_t align;      /* sequences start at multiples of this; 0: anywhere */
    uint32_t ranks;     /* that share the micro-batches; 0: there is one */

    uint32_t n, n_micro;
    tp_batch_place *places; /* [n] */
    uint32_t *order;        /* [n] sequences by micro-batch, in the order they lie there */
    uint32_t *starts;       /* [n_micro + 1] into order */
} tp_batch;

/* Arrange n sequences, a multiple of unit.  TP_ERR_CONFIG when a unit is longer than N. */
TP_CHECKED tp_status tp_batch_arrange(tp_batch *b, const tp_batch_sequence *sequences, uint32_t n,
                                      tp_error *err);
void tp_batch_release(tp_batch *b); /* zeroed is a no-op */

/* Micro-batch m; loss_weights are 1 where a trained token is predicted, else 0. */
void tp_batch_fill(const tp_batch *b, const tp_batch_sequence *sequences, uint32_t m,
                   tp_microbatch *mb);

#endif
