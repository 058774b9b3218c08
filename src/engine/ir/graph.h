/* graph.h - the program of a step, as data.
 *
 * A graph is a list of nodes in execution order; each applies one op to values
 * and defines new ones.  Values are 32-bit references into an array (0 = none),
 * so a graph can be copied, printed and parsed.  The outputs of one node have
 * consecutive references: output k is `first + k`.
 *
 *     %1 = input i32[64] "tokens"
 *     %2 = state f32[100,32] "embed" role=weight
 *     %3 = embed %1, %2 : f32[64,32]
 *     %4, %5 = rmsnorm %3, %6 {eps=1e-05} : f32[64,32], f32[64,1] block=0 "layers.0.norm"
 *     output %4
 *
 * Values that name persistent memory (`state`) are found by name when a plan is
 * bound, so several graphs share the same weights.  An accumulating op takes the
 * old version of a buffer and defines the new one, in the same memory. */
#ifndef TP_ENGINE_IR_GRAPH_H
#define TP_ENGINE_IR_GRAPH_H

#include "base/arena.h"
#include "base/error.h"
#include "base/strings.h"
#include "engine/device/tensor.h"
#include "engine/ir/ops.h"

typedef uint32_t tp_ref;

typedef enum { TP_PHASE_FORWARD, TP_PHASE_BACKWARD, TP_PHASE_UPDATE, TP_PHASE_COUNT } tp_phase;

typedef struct {
    tp_dtype dtype;
    uint8_t rank;             /* 1 or 2 */
    uint8_t out;              /* which output of its node */
    int64_t dim[TP_MAX_RANK]; /* dim[1] = 1 when rank is 1 */
    uint32_t node;            /* index of the defining node; 0 = not defined */
    uint32_t n_uses;          /* valid after tp_graph_count_uses() */
    const char *name;         /* sources: what it is bound to, unique; others NULL */
    tp_ref next;              /* sources: the next in its chain of `named` */
    const tp_tensor *tensor;  /* `state` only: its record, without memory; others NULL */
    bool is_exact;            /* stays f32 whatever the rest is computed in */
} tp_value;

typedef struct tp_node {
    tp_op op;
    uint8_t n_in, n_out;
    uint8_t phase;
    bool is_clone; /* made by `recompute` */
    bool is_dead;  /* removed by the next tp_graph_compact() */
    int16_t block; /* transformer layer, -1 outside of any */
    tp_ref in[TP_MAX_IN], out[TP_MAX_OUT];
    tp_attrs attrs;
    const char *label; /* "layers.3.q_proj": for people */
} tp_node;

typedef struct tp_graph {
    tp_arena arena; /* nodes, values, names */
    tp_node *nodes; /* nodes[0] is unused */
    uint32_t n_nodes, cap_nodes;
    tp_value *values; /* values[0] is unused */
    uint32_t n_values, cap_values;
    tp_ref *named;   /* heads of chains of sources, by the hash of the name */
    tp_ref *outputs; /* what must be computed; state written in place is kept alive as well */
    uint32_t n_outputs, cap_outputs;
    /* where new nodes belong; set by builders before tp_graph_op() */
    int16_t block;
    uint8_t phase;
    bool stays_exact; /* activations wait for the backward pass as they are: see int8_activations */
    bool weights_stay; /* between most runs: copies in other layouts pay for themselves */
    uint32_t parts;    /* roles, as bits, whose tensors ranks keep in parts: see tp_states */
} tp_graph;

TP_CHECKED tp_status tp_graph_init(tp_graph *g, tp_error *err);
void tp_graph_release(tp_graph *g);

/* Sources.  Names and records are copied. */
tp_ref tp_graph_input(tp_graph *g, const char *name, tp_dtype dtype, uint8_t rank,
                      const int64_t *dim);
tp_ref tp_graph_state(tp_graph *g, const tp_tensor *tensor);
tp_ref tp_graph_find(const tp_graph *g, const char *name); /* a source by name; 0 if none */
/* The state with this role, owner, layout and dtype; 0 if none. */
tp_ref tp_graph_find_tensor(const tp_graph *g, tp_role role, const char *of, tp_layout layout,
                            tp_dtype dtype);

/* Append a node; returns its first output.  Shapes and dtypes of the outputs
 * follow from the op's rule; a violation is an error naming op and operand.
 * `label` may be NULL and is copied. */
TP_CHECKED tp_status tp_graph_try_op(tp_graph *g, tp_op op, const tp_attrs *attrs, int n_in,
                                     const tp_ref *in, const char *label, tp_ref *ret,
                                     tp_error *err);
/* The same for builders whose operands are right by construction (asserted). */
tp_ref tp_graph_op(tp_graph *g, tp_op op, const tp_attrs *attrs, int n_in, const tp_ref *in,
                   const char *label);
void tp_graph_output(tp_graph *g, tp_ref ref);
/* One more operand of a node, and one more output that takes over its memory.  For ops whose
 * last operand and output are optional. */
tp_ref tp_graph_extend(tp_graph *g, uint32_t node, tp_ref operand);

void tp_graph_count_uses(tp_graph *g); /* graph outputs count as a use */
/* Replace every use of `from` in nodes at or after `start`, and in the outputs. */
void tp_graph_replace(tp_graph *g, tp_ref from, tp_ref to, uint32_t start);
/* Drop dead nodes, keeping order. */
void tp_graph_compact(tp_graph *g);
/* New execution order: a permutation of 1..n_nodes-1. */
void tp_graph_reorder(tp_graph *g, const uint32_t *order, uint32_t n);

/* Both dimensions are positive and the elements can be counted (below 2^48). */
bool tp_shape_fits(const int64_t dim[TP_MAX_RANK]);
size_t tp_value_count(const tp_value *v); /* elements */
size_t tp_value_bytes(const tp_value *v);
static inline const tp_node *tp_def(const tp_graph *g, tp_ref ref)
{
    return &g->nodes[g->values[ref].node];
}

/* The input whose memory output k of this very node takes over, or 0. */
static inline tp_ref tp_overwrites(const tp_node *n, int k)
{
    int alias = tp_op_alias(n->op, k);
    return alias >= 0 && alias < n->n_in ? n->in[alias] : 0;
}

/* The value whose memory `ref` is a version or a view of: a source, or the first
 * version of a temporary. */
tp_ref tp_graph_memory(const tp_graph *g, tp_ref ref);

/* What the op's rule says about the outputs: fills n_out and, for each output,
 * dtype, rank, dim. */
TP_CHECKED tp_status tp_op_infer(const tp_graph *g, tp_op op, const tp_attrs *attrs, int n_in,
                                 const tp_ref *in, int *ret_n_out, tp_value ret_out[TP_MAX_OUT],
                                 tp_error *err);

/* Everything documented holds: order, arity, shapes, dtypes; after a buffer has been
 * overwritten, neither its old version nor a view of it is read, and inputs never
 * are overwritten.  The error names the node. */
TP_CHECKED tp_status tp_graph_verify(const tp_graph *g, tp_error *err);

/* Text form: tp_graph_parse() of what tp_graph_print() wrote gives an equal graph. */
void tp_graph_print(const tp_graph *g, tp_buf *out);
TP_CHECKED tp_status tp_graph_parse(const char *name, const char *text, size_t n, tp_graph *ret,
                                    tp_error *err);

/* Append the gradient of `loss` (output 0 of a cross_entropy) to the graph, times
 * the f32[1] value `scale`.  Each weight in `params` accumulates into the state
 * "grad.<name>" (role gradient); the last version of each becomes a graph output. */
TP_CHECKED tp_status tp_graph_autodiff(tp_graph *g, tp_ref loss, tp_ref scale, const tp_ref *params,
                                       uint32_t n_params, tp_error *err);

/* Work of one node: floating-point operations (a multiply-add is two) and bytes
 * read and written once each. `avg_context` is the mean number of keys a query
 * attends to in attention ops (unknown to shapes; the packer knows). */
typedef struct {
    double flops, bytes;
} tp_cost;
tp_cost tp_node_cost(const tp_graph *g, const tp_node *n, double avg_context);

#endif
