/* evaluate.h - what a graph means, computed in the most obvious way.
 *
 * Every value has memory of its own, nodes run in order with the kernels of `ref`,
 * nothing is shared but states.  In exact mode all floats are f64, so two graphs
 * that mean the same agree to about 1e-12 whatever their order of summation; in
 * native mode the bits are those that any memory plan must give.
 *
 * An environment holds inputs and states by name. */
#ifndef TP_TESTS_PROPERTY_EVALUATE_H
#define TP_TESTS_PROPERTY_EVALUATE_H

#include "engine/backend/backend.h"
#include "engine/device/states.h"
#include "engine/ir/graph.h"

typedef struct {
    tp_states states;
    bool is_exact; /* floats are held as f64 */
    uint64_t seed; /* decides the contents */
    int sequences; /* how the tokens are packed */
} environment;

void environment_init(environment *env, uint64_t seed, bool is_exact);
void environment_release(environment *env);

/* Give every source of `g` that is not there yet its contents: weights are random by
 * their name, gradients zero, a shadow "w.bf16" is its master rounded. */
void environment_add(environment *env, const tp_graph *g);

/* What an earlier step left in the gradients: the first micro-batch must not see it. */
void environment_spoil_gradients(environment *env);

/* The inputs of another micro-batch. */
void environment_next_batch(environment *env, int batch);

tp_operand environment_operand(const environment *env, const char *name);

/* Run all nodes.  The operands of all values, by reference, in `arena`. */
tp_operand *evaluate(const tp_graph *g, environment *env, bool accumulate, tp_arena *arena);

double element(const tp_operand *o, int64_t row, int64_t column);
void set_element(const tp_operand *o, int64_t row, int64_t column, double value);

/* |a - b| / |a| over all elements (0 when equal, infinity when one is not finite). */
double relative_distance(const tp_operand *a, const tp_operand *b);
bool same_bits(const tp_operand *a, const tp_operand *b);

#endif
