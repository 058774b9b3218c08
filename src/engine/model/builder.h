/* builder.h - the vocabulary of the forward builders; private to engine/model.
 *
 * A builder knows the graph and the layer it is in: weights are asked for by the
 * part of their name after the layer's prefix, labels likewise. */
#ifndef TP_ENGINE_MODEL_BUILDER_H
#define TP_ENGINE_MODEL_BUILDER_H

#include "engine/model/family.h"

typedef struct {
    const tp_model *model;
    tp_graph *g;
    const tp_forward *f;
    int64_t layer; /* -1 outside of any */
} tp_builder;

/* Nodes that follow belong to `layer`. */
void tp_build_enter(tp_builder *b, int64_t layer);

/* The state of a parameter: inside a layer "norm.weight" means that layer's. */
tp_ref tp_build_weight(const tp_builder *b, const char *name);
tp_ref tp_build_op(const tp_builder *b, tp_op op, const tp_attrs *attrs, int n_in, const tp_ref *in,
                   const char *label);

/* y = x W + b with "<name>.weight" and, if has_bias, "<name>.bias". */
tp_ref tp_build_linear(const tp_builder *b, tp_ref x, const char *name, bool has_bias,
                       const char *label);
tp_ref tp_build_add(const tp_builder *b, tp_ref x, tp_ref y, const char *label);
tp_ref tp_build_activation(const tp_builder *b, tp_ref x, const char *label);
/* Packed sequences or the caches, as tp_forward says. */
tp_ref tp_build_attention(const tp_builder *b, tp_ref q, tp_ref k, tp_ref v);

#endif
