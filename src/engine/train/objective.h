/* objective.h - losses as graphs.
 *
 * An objective adds inputs, the model's forward graph and its loss to a graph, and
 * the gradient when training.  Inputs by name: tokens, positions, targets, cu_seqlens,
 * loss_weights, loss_scale.  The first graph outputs are the loss and the
 * log-probabilities of the targets.
 *
 * A loss that is any function of those log-probabilities (DPO, GRPO) is plain C between
 * two launches.  Its gradient is that of sum_t -w_t log p_t with w_t = -dL/dlog p_t, so
 *
 *     hidden, head -> linear_ce (mask) -> log p -> host: L and w -> linear_ce_train (w)
 *
 * and whole logits never exist.  What it costs more than SFT is the head's product once
 * again; tokens whose w is 0 (clipped ones) cost nothing behind the host. */
#ifndef TP_ENGINE_TRAIN_OBJECTIVE_H
#define TP_ENGINE_TRAIN_OBJECTIVE_H

#include "engine/model/model.h"

enum { TP_OUTPUT_LOSS = 0, TP_OUTPUT_LOGP = 1 };

typedef struct {
    int64_t tokens, max_positions;
    int32_t loss_chunk; /* rows of logits alive at once, where they are fused from the start */
    bool with_gradient;
    tp_adapter_use adapter;
    float temperature; /* logits are divided by it; 0: they are not */
} tp_objective_options;

/* Supervised fine-tuning: loss = sum_t -w_t log p(target_t); the loader's weights
 * carry the mask and the normalisation by the step's trained tokens
 * (nemo-rl.md 1.5). */
TP_CHECKED tp_status tp_objective_sft(const tp_model *model, const tp_objective_options *options,
                                      tp_graph *g, tp_error *err);

/* The same with the loss left to the host; loss_weights only says which tokens count. */
TP_CHECKED tp_status tp_objective_weighed(const tp_model *model,
                                          const tp_objective_options *options, tp_graph *g,
                                          tp_error *err);

#endif
