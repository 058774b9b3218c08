/* optimizer.h - optimizers, one row each: what they keep of every parameter, the op that updates
 * one, the numbers of a step, their keys.
 *
 * A row is a file here and a line of optimizers.c.  An update is an op (ir/ops/update.c), so that
 * it is planned, timed and computed on any device like all others. */
#ifndef TP_ENGINE_TRAIN_OPTIMIZERS_OPTIMIZER_H
#define TP_ENGINE_TRAIN_OPTIMIZERS_OPTIMIZER_H

#include <stddef.h>

#include "config/config.h"
#include "engine/ir/graph.h"

enum { TP_OPTIMIZER_STATES = 4, TP_OPTIMIZER_SCALARS = 8, TP_OPTIMIZER_OWN_BYTES = 128 };

typedef struct tp_optimizer tp_optimizer;

/* What policy.optimizer says. */
typedef struct {
    const tp_optimizer *kind;
    int name;                /* row of tp_optimizer_names */
    double lr, weight_decay; /* lr: before the schedule */
    double rest_lr;          /* of the parameters that a row leaves to AdamW, likewise */
    union {
        max_align_t align;
        char bytes[TP_OPTIMIZER_OWN_BYTES];
    } own; /* the struct of that optimizer alone */
} tp_optimizer_settings;

/* The numbers of a step, as the row's op reads them. */
typedef struct {
    double v[TP_OPTIMIZER_SCALARS];
    double rest[TP_OPTIMIZER_SCALARS]; /* adamw's, where the row leaves a rest */
} tp_optimizer_scalars;

typedef struct {
    double lr, rest_lr; /* by the schedule */
    int64_t t;          /* updates so far, this one included: from 1 */
    double grad_factor; /* clip coefficient */
} tp_optimizer_step;

/* A tensor that is kept of a parameter. */
typedef struct {
    const char *name; /* saved as "<name>.<parameter>" */
    tp_dtype dtype;
    uint8_t rank;
    int64_t dim[2];
} tp_optimizer_state;

typedef struct {
    const tp_tensor *tensor;
    bool is_hidden;    /* a matrix inside a block: no embedding, head, norm or bias */
    bool is_embedding; /* a table of tokens or positions */
} tp_optimizer_weight;

/* A parameter with all that belongs to it, in the update graph; its low-precision copy is added by
 * the pass autocast. */
typedef struct {
    tp_optimizer_weight weight;
    tp_ref p, grad, state[TP_OPTIMIZER_STATES], scalars, rest;
} tp_optimizer_operands;

struct tp_optimizer {
    const char *name;         /* "AdamW": torch's, and what checkpoints carry */
    bool looks_at_whole;      /* an element's update depends on others of its weight */
    bool leaves_a_rest;       /* some parameters are AdamW's, with scalars of their own */
    const tp_option *options; /* policy.optimizer.kwargs.*, members of tp_optimizer_settings */
    /* (optional) after binding: what must hold across keys */
    tp_status (*check)(const tp_config *config, const tp_optimizer_settings *s, tp_error *err);
    /* What is kept of a parameter, all zero before the first step.  Returns how many. */
    int (*states)(const tp_optimizer_settings *s, const tp_optimizer_operands *x,
                  tp_optimizer_state ret[TP_OPTIMIZER_STATES]);
    /* Adds the op that updates a parameter in place. */
    void (*update)(const tp_optimizer_settings *s, const tp_optimizer_operands *x, tp_graph *g,
                   const char *label);
    void (*scalars)(const tp_optimizer_settings *s, const tp_optimizer_step *step,
                    tp_optimizer_scalars *ret);
};

extern const tp_optimizer tp_optimizer_adamw, tp_optimizer_adamw_8bit, tp_optimizer_sgd,
    tp_optimizer_adafactor, tp_optimizer_adafactor_transformers, tp_optimizer_muon;

/* Of the parameter's shape, in f32. */
tp_optimizer_state tp_optimizer_state_like(const tp_tensor *weight, const char *name);

/* Inputs of the update graph, "scalars" and "scalars.rest". */
typedef struct {
    tp_ref scalars, rest;
} tp_optimizer_inputs;
tp_optimizer_inputs tp_optimizer_declare(const tp_optimizer_settings *s, tp_graph *g);

/* Adds to `g` the tensors that belong to a parameter, or to a part of it, and the op that updates
 * it. */
void tp_optimizer_add(const tp_optimizer_settings *s, tp_graph *g,
                      const tp_optimizer_weight *weight, const tp_optimizer_inputs *in);

/* Every spelling of policy.optimizer.name; closed by NULL, the default first. */
typedef struct {
    const char *name;
    const tp_optimizer *kind;
} tp_optimizer_name;
extern const tp_optimizer_name tp_optimizer_names[];

/* The next spelling of an optimizer that was not seen yet: walks over the kinds. */
const tp_optimizer *tp_optimizer_at(size_t i); /* NULL: no more */

/* Those of AdamW, for whoever trains without a configuration. */
tp_optimizer_scalars tp_adamw_scalars(double lr, double beta1, double beta2, double eps,
                                      double weight_decay, int64_t t, double grad_factor);

#endif
