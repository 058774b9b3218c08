/* ops.h - the vocabulary of the graph.
 *
 * T tokens of a packed micro-batch; C width; K, N contraction and output widths;
 * F feed-forward width; V vocabulary.  Every op computes in f32 whatever its operands are
 * and rounds once on output.  Rows of an operand are `stride` elements apart (split makes
 * views); everything inside a row is contiguous.
 *
 * An op is one row, and its signature says which operands it takes and gives:
 * "x:f[T,K] w:w[N,K]^ b:w[N]? -> y:f[T,N]".  An operand is name:kind[shape] and marks.
 * A dimension is a number, a letter, an attribute, or some of them joined by * / + from left
 * to right; the first operand whose dimension is a letter alone decides what it is.
 * [..] is any shape, the same in all such operands; it sets T and C.  Kinds:
 *
 *   f w        f32, bf16 or f16: activations, weights
 *   s d        always f32, f64;   half   bf16 or f16;   codes   bytes;   any   every dtype
 *   positive   f32, none below zero;   weights    f32, often zero
 *   table      f32, cosines then sines;   scalars    f64, the eight of an optimizer
 *   sampling   f32, rows of sample's parameters;   draws    f64 in [0, 1)
 *   ids positions cu targets   i32;   seed   i32, two halves of 64 bits
 *   places slots tables   i32: of sequences in a paged cache
 *
 *   ?   optional: an absent input is reference 0, written `_` in text; an optional output
 *       exists when its dimensions are not 0 and the input it shares memory with does
 *   ^   the two dimensions swap when `transposed`
 *   ~   may pass through bf16 on the way when an input is bf16
 *
 * Names connect.  An output that is called like an input, or whose name with _acc an input
 * has, is the next version of that input, in its memory; without it the output is fresh.  An
 * output d<name> has the dtype of <name>; another of kind f or w takes that of the first
 * such input.  What an operand of a gradient is called is what autodiff gives it: an operand
 * of the forward op, d<its output>, <d its input>_acc what the gradient adds to, dres what dx
 * adds to. */
#ifndef TP_ENGINE_IR_OPS_H
#define TP_ENGINE_IR_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/device/dtype.h"

enum { TP_MAX_RANK = 2, TP_MAX_IN = 8, TP_MAX_OUT = 5 };
enum { TP_PANEL = 64 }; /* outputs of a weight that lie together in pack_panels */

typedef enum {
#define OP(name) TP_OP_##name,
#include "engine/ir/ops.def"
    TP_OP_COUNT,
    TP_OP_NONE = 0 /* where a row names another op: input, which no row names */
} tp_op;

enum {
    TP_OP_SOURCE = 1 << 0,       /* has no inputs; bound before the run            */
    TP_OP_ELEMENTWISE = 1 << 1,  /* output element i depends on input elements i   */
    TP_OP_INPLACE = 1 << 2,      /* output 0 may share input 0's memory            */
    TP_OP_CHEAP = 1 << 3,        /* selective recompute repeats it                 */
    TP_OP_CONTRACTS = 1 << 4,    /* dominated by multiply-adds                     */
    TP_OP_VIEW = 1 << 5,         /* outputs are views of input 0; nothing runs     */
    TP_OP_ACCUMULATES = 1 << 6,  /* has an optional accumulator input              */
    TP_OP_UPDATE = 1 << 7,       /* belongs to the optimizer's graph               */
    TP_OP_COMMUNICATES = 1 << 8, /* is a matter of all ranks                      */
    TP_OP_UNPACKS = 1 << 9,      /* of constants alone: a gradient makes it again  */
    TP_OP_UNWRITTEN = 1 << 10    /* its output is memory alone; nothing runs       */
};

typedef struct {
#define ATTR(type, name) type name;
#include "engine/ir/attrs.def"
#undef ATTR
} tp_attrs;

struct tp_graph;
struct tp_node;
struct tp_shapes;
struct tp_differ;

typedef struct {
    const char *name;
    const char *signature;
    const char *attributes; /* of attrs.def, "heads, scale"; any other must be 0 */
    uint32_t traits;
    /* Floating-point operations of one node, as an expression of the signature's letters and
     * of A, the pairs of query and key that attend to each other.  NULL: none. */
    const char *flops;
    /* (optional) bytes moved, where it is not every operand once. */
    double (*bytes)(const struct tp_graph *g, const struct tp_node *n, double avg_context);
    /* (optional) what the signature cannot say, after the inputs were found to follow it;
     * sets the letters that only outputs have. */
    void (*check)(struct tp_shapes *s);
    /* The ops that together give the gradient, or a function where ops of their own do not. */
    tp_op gradients[3];
    void (*gradient)(struct tp_differ *d, const struct tp_node *n, const uint32_t *dy);
    const char *suffix; /* of the label that autodiff gives it; NULL: dx */
    /* (optional) ways in which the ranks that share a layer may divide it: names of dimensions of
     * the signature, "N; K", those that are divided together "heads+kv_heads".  An operand has
     * such a dimension in part, or is whole where it has none; an output that has none is a sum
     * over the ranks.  "T": ranks may share its rows as well.  See passes/tensor_parallel.c. */
    const char *splits;
    tp_op rest; /* makes outputs 1.. from output 0 and inputs 2.., bit for bit */
} tp_op_def;

/* A row: the op, its signature, and what else it has. */
#define TP_OP(op, signature_, ...) \
    const tp_op_def tp_op_##op = {.name = #op, .signature = signature_, __VA_ARGS__}

extern const tp_op_def *const tp_ops[TP_OP_COUNT];

/* ---- a signature, read ---- */

/* In the order: any dtype, any float dtype, one float dtype, integers. */
/* clang-format off */
#define TP_KINDS(KIND)                                                                 \
    KIND(any) KIND(f) KIND(w)                                                          \
    KIND(s) KIND(d) KIND(b) KIND(half) KIND(positive) KIND(weights) KIND(table)        \
    KIND(scalars) KIND(sampling) KIND(draws) KIND(codes)                               \
    KIND(ids) KIND(positions) KIND(places) KIND(slots) KIND(tables) KIND(cu) KIND(targets)        \
    KIND(seed)
/* clang-format on */

typedef enum {
#define KIND(name) TP_KIND_##name,
    TP_KINDS(KIND) TP_KIND_COUNT
#undef KIND
} tp_operand_kind;

static inline bool tp_is_float(tp_dtype d)
{
    return d == TP_DTYPE_F32 || d == TP_DTYPE_BF16 || d == TP_DTYPE_F16;
}

typedef struct {
    char name[16];
    tp_operand_kind kind;
    bool is_optional, swaps, through_bf16, any_shape;
    uint8_t rank;
    char dim[TP_MAX_RANK][24]; /* expressions */
} tp_operand_spec;

typedef struct {
    int n_in, n_out; /* the largest counts */
    tp_operand_spec in[TP_MAX_IN], out[TP_MAX_OUT];
    int alias[TP_MAX_OUT]; /* the input that an output is the next version of, or -1 */
} tp_signature;

const tp_signature *tp_op_signature(tp_op op);

/* Which input an output must share memory with (accumulators, caches, in-place
 * state), or -1.  Independent of TP_OP_INPLACE, which only permits sharing. */
static inline int tp_op_alias(tp_op op, int output) { return tp_op_signature(op)->alias[output]; }

/* True when this output has one dtype whatever the activations are. */
bool tp_op_out_fixed(tp_op op, int output);
bool tp_op_has_attribute(tp_op op, const char *name);
bool tp_op_has_gradient(tp_op op);

/* Index of the operand of that name in a list of n, or -1. */
int tp_operand_find(const tp_operand_spec *list, int n, const char *name);

/* The value of an expression of dimensions; NaN when a letter of it is. */
typedef struct {
    double value['Z' + 1];
} tp_letters;
double tp_dimension(const char *expression, const tp_letters *letters, const tp_attrs *attrs);

#endif
