/* dpo_internal.h - training on preferences, shared between its files.
 *
 *     dpo.c            the step and its validation
 *     dpo_batch.c      pairs in micro-batches
 *     dpo_data.c       from the configuration to pairs
 *     dpo_reference.c  the reference model's log-probabilities: once, and kept on disk */
#ifndef TP_ENGINE_ALGORITHMS_DPO_INTERNAL_H
#define TP_ENGINE_ALGORITHMS_DPO_INTERNAL_H

#include "engine/algorithms/loss_preference.h"
#include "engine/data/preference.h"
#include "engine/train/algorithm.h"
#include "engine/train/batch.h"

/* One pair with what the reference model says about it. */
typedef struct {
    const tp_preference_pair *pair;
    double ref_chosen, ref_rejected; /* sums over the answers' tokens */
} dpo_pair;

typedef struct {
    dpo_pair *v;
    uint64_t n;
} dpo_pairs;

/* Pairs of a step or a part of a validation, arranged in micro-batches. */
typedef struct {
    tp_batch arrangement;
    const dpo_pair **pairs;       /* [n] */
    tp_batch_sequence *sequences; /* [2n]: chosen, rejected, chosen ... */
    uint32_t n, cap;
} dpo_batch;

typedef struct {
    tp_buf template_text;
    tp_renderer *renderer;
    tp_preferences file, val_file; /* val_file.n is 0 without a file of its own */
    dpo_pairs train, validation;
    tp_microbatch mb;
    dpo_batch batch;
    tp_preference_loss loss;
    bool reference_was_cached;
    double reference_s;

    /* the step at work */
    tp_preference_sums sums, replayed;
    tp_preference_sums *into; /* one of them */
    uint32_t micro;
    bool is_idle; /* this rank has no micro-batch in the round: what it computes weighs nothing */
} dpo;

/* dpo_data.c */
TP_CHECKED tp_status tp_dpo_open_data(trainer *t, tp_error *err);
TP_CHECKED tp_status tp_dpo_open_validation(trainer *t, tp_error *err);
TP_CHECKED tp_status tp_dpo_split_data(trainer *t, tp_error *err);
void tp_dpo_describe_data(const trainer *t, tp_buf *out);
void tp_dpo_describe_validation(const trainer *t, tp_buf *out);
void tp_dpo_close_data(dpo *d);

/* dpo_batch.c */
void tp_dpo_batch_begin(dpo_batch *b, uint32_t n);
void tp_dpo_batch_add(dpo_batch *b, const dpo_pair *pair);
/* In micro-batches, which so many ranks share. */
TP_CHECKED tp_status tp_dpo_batch_arrange(trainer *t, dpo_batch *b, uint32_t ranks, tp_error *err);
/* Sums of pair i's sides in a micro-batch's log-probabilities. */
void tp_dpo_sides(const dpo_batch *b, uint32_t i, const float *logp, tp_preference_side *chosen,
                  tp_preference_side *rejected);

/* dpo_reference.c: fills ref_chosen and ref_rejected of all pairs. */
TP_CHECKED tp_status tp_dpo_reference(trainer *t, tp_error *err);

#endif
