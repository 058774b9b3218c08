/* pack.h - which sequences make up a step, and how they lie in its micro-batches.
 *
 * Step s of an epoch takes samples [s * batch_size, (s + 1) * batch_size) of a
 * permutation that is a function of (seed, epoch) alone: any step can be made
 * without the steps before it.  The sequences of a step are packed into micro-batches
 * of a fixed number of tokens N (bins.h):
 *
 *     tokens        a0 a1 a2 a3 | b0 b1 b2 | . . .        the tail is not computed
 *     positions      0  1  2  3    0  1  2    0 0 0
 *     targets       a1 a2 a3  0   b1 b2  0    0 0 0
 *     loss_weights   0  w  w  0    0  w  0    0 0 0
 *     cu             0  4  7  7 ...
 *
 * w = 1 / (tokens to be learned in the whole step), so the losses of micro-batches
 * add up to the mean over the step whatever their number.  Without packing a
 * micro-batch holds micro_batch_size rows, each padded to row_length. */
#ifndef TP_ENGINE_DATA_PACK_H
#define TP_ENGINE_DATA_PACK_H

#include "base/error.h"
#include "engine/data/cache.h"

typedef struct {
    uint64_t seed;
    bool shuffle;
    uint64_t batch_size; /* sequences per step */
    bool drop_last;      /* leave out an epoch's last, smaller step */
    bool packing;
    int32_t budget;           /* with packing: N, tokens of a micro-batch */
    int32_t micro_batch_size; /* without: rows of a micro-batch ... */
    int32_t row_length;       /* ... and their length; N is the product */
    bool refuse_overlong;     /* a sequence that does not fit is an error, else it is cut */
    int32_t vocab_size;       /* token ids are below */
    int rank, ranks;          /* every rank takes its share of a step; ranks 0: there is one */
} tp_pack_options;

TP_CHECKED tp_status tp_pack_check(const tp_pack_options *options, tp_error *err);
int32_t tp_pack_capacity(const tp_pack_options *options); /* N */
/* 0 only when the set is smaller than a batch and the last one is dropped. */
uint64_t tp_pack_steps_per_epoch(const tp_pack_options *options, uint64_t n_samples);

typedef struct {
    int32_t *tokens, *positions, *targets; /* [N] */
    float *loss_weights;                   /* [N] */
    int32_t *cu;      /* [N + 1]: starts of the sequences, then their end, repeated */
    int32_t capacity; /* N */
    int32_t n_used;   /* end of the last sequence: what has to be computed */
    int32_t n_tokens; /* of them, tokens of the data; the rest of N is padding */
    int32_t n_sequences;
    int32_t n_trained;       /* positions with a weight */
    uint64_t sum_of_squares; /* of the sequence lengths in cu: the cost of attention */

    uint64_t step, epoch;                               /* step counts on through the epochs */
    uint32_t index, n_in_step;                          /* of this micro-batch in its step */
    uint64_t step_sequences, step_tokens, step_trained; /* of the whole step */
} tp_microbatch;

/* One block of memory of kind "data". */
TP_CHECKED tp_status tp_microbatch_init(tp_microbatch *mb, int32_t capacity, tp_error *err);
void tp_microbatch_release(tp_microbatch *mb); /* zeroed is a no-op */
size_t tp_microbatch_bytes(int32_t capacity);

/* For whoever fills one, sequence after sequence: targets and positions of the n >= 1 tokens that
 * were put at `at`; nothing in [at, end); the places and starts behind the last of n sequences. */
void tp_microbatch_place(tp_microbatch *mb, int32_t at, int32_t n);
void tp_microbatch_clear(tp_microbatch *mb, int32_t at, int32_t end);
void tp_microbatch_end(tp_microbatch *mb, int32_t n_starts, int32_t end);

/* One sequence of a step. */
typedef struct {
    uint64_t sample; /* in the set */
    int32_t n_tokens, n_targets;
} tp_pack_item;

/* A step's sequences by micro-batch.  Invariant: micro-batch m holds items
 * [starts[m], starts[m + 1]), in the order in which they lie there. */
/* With several ranks a plan holds the micro-batches that are this rank's: each has as many of
 * them, some may be empty, and the totals are those of all. */
typedef struct {
    uint64_t step, epoch;
    tp_pack_item *items; /* [batch_size] */
    uint32_t *starts;    /* [batch_size + ranks + 1] */
    uint32_t n_micro, n_items;
    uint32_t n_sequences; /* of the whole step */
    uint64_t n_tokens, n_trained;
    uint64_t n_truncated; /* sequences that were cut to fit */

    tp_pack_item *drawn; /* work space */
    uint64_t *order;
    uint32_t *bin;
    int32_t *end;
} tp_pack_plan;

TP_CHECKED tp_status tp_pack_plan_init(tp_pack_plan *plan, const tp_pack_options *options,
                                       tp_error *err);
size_t tp_pack_plan_bytes(const tp_pack_options *options);
void tp_pack_plan_release(tp_pack_plan *plan); /* zeroed is a no-op */

/* Choose and arrange the sequences of `step` >= 0; allocates nothing. */
TP_CHECKED tp_status tp_pack_plan_step(tp_pack_plan *plan, const tp_pack_options *options,
                                       const tp_sample_set *set, uint64_t step, tp_error *err);

/* Micro-batch m of a plan, from its n items; the step's totals come from `plan`, of
 * which nothing else is read.  Allocates nothing. */
TP_CHECKED tp_status tp_pack_fill(const tp_pack_options *options, const tp_sample_set *set,
                                  const tp_pack_item *items, uint32_t n, tp_microbatch *mb,
                                  tp_error *err);
/* Copy what a plan says about its step and micro-batch m. */
void tp_pack_label(const tp_pack_plan *plan, uint32_t m, tp_microbatch *mb);

#endif
