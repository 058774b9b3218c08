/* random_graph.h - small language models that nobody would write.
 *
 * Blocks of a transformer in all the ways that families build them (norms, fused or
 * separate q, k, v, slices, positions, gates, biases, transposed and tied weights),
 * mixed with a random tangle of elementwise ops, splits, products and repeated,
 * unused or many times read values. */
#ifndef TP_TESTS_PROPERTY_RANDOM_GRAPH_H
#define TP_TESTS_PROPERTY_RANDOM_GRAPH_H

#include "base/rng.h"
#include "engine/ir/graph.h"

typedef struct {
    bool with_gradient;
    bool freeze_some; /* some weights are no parameters */
} random_graph_options;

/* Outputs: the loss, the log-probabilities, perhaps more, then the gradients.
 * The same seed gives the same graph. */
void random_graph(uint64_t seed, const random_graph_options *options, tp_graph *ret);

/* A graph of its own that is equal to `g`. */
void copy_graph(const tp_graph *g, tp_graph *ret);

#endif
