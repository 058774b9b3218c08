/* objective.h - losses as graphs.
 *
 * An objective adds inputs, the model's forward graph and its loss to a graph, and
 * the gradient when training.  Inputs by name: tokens, positions, targets, cu_seqlens,
 * loss_weights, loss_scale.  The first graph outputs are the loss and the
 * log-probabilities of the targets. */
#ifndef TP_ENGINE_TRAIN_OBJECTIVE_H
#define TP_ENGINE_TRAIN_OBJECTIVE_H

#include "engine/model/model.h"

enum { TP_OUTPUT_LOSS = 0, TP_OUTPUT_LOGP = 1 };

typedef struct {
    int64_t tokens, max_positions;
    int32_t loss_chunk;
    bool with_gradient;
} tp_objective_options;

/* Supervised fine-tuning: loss = sum_t -w_t log p(target_t); the loader's weights
 * carry the mask and the normalisation by the step's trained tokens
 * (nemo-rl.md 1.5). */
TP_CHECKED tp_status tp_objective_sft(const tp_model *model, const tp_objective_options *options,
                                      tp_graph *g, tp_error *err);

/* Rows of logits alive at once, for the fused head; 0 leaves the choice to the kernel. */
void tp_objective_set_chunk(tp_graph *g, int32_t rows);

#endif
