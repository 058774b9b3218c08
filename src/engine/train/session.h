/* session.h - a model with everything needed to train it.
 *
 * A session adds the graphs that train a model (training, evaluation, gradient norm, update) to
 * a program and has its persistent tensors.  Creating one allocates nothing large, so
 * `temper plan` stops there; allocation then gives memory to the tensors and the program. */
#ifndef TP_ENGINE_TRAIN_SESSION_H
#define TP_ENGINE_TRAIN_SESSION_H

#include "engine/exec/program.h"
#include "engine/model/model.h"
#include "engine/train/optimizers/optimizer.h"

typedef struct tp_session tp_session;

typedef struct {
    tp_program *program;        /* to add to, compiled by the caller; NULL: one of its own ... */
    tp_program_options compile; /* ... which is made like this */
    int64_t tokens;             /* T: token budget of a micro-batch */
    int64_t max_positions;      /* longest sequence */
    float temperature;          /* logits are divided by it; 0: they are not */
    double avg_context;         /* mean keys per query, for costs; 0 = half of max_positions */
    bool keeps_padding;         /* all of T are computed, whatever a batch has */
    bool weighed;               /* the loss is the host's: tp_session_train_weighed() */
    bool forward_only;          /* no training graph, no optimizer state */
    bool clips_value, clips_adaptively;     /* there is tp_session_clip() */
    const tp_optimizer_settings *optimizer; /* until it is created; NULL: AdamW */
    uint32_t parts;                         /* roles, as bits, whose tensors ranks keep in parts */
    const char *name;   /* of a forward-only graph in the program; NULL: "eval" */
    tp_session *shares; /* the tensors of this session, of an adapter: the base alone, or with the
                           adapter that training began with; NULL: tensors of its own */
    /* (optional) until it is created: whose tensors these become, as they are, but for caches;
       nothing is left to that one but to be freed */
    tp_session *takes_over;
} tp_session_options;

/* `model` and the program must outlive the session. */
TP_CHECKED tp_status tp_session_create(const tp_model *model, const tp_session_options *options,
                                       tp_session **ret, tp_error *err);
/* Memory for the session's tensors and what the program's graphs share. */
TP_CHECKED tp_status tp_session_alloc(tp_session *s, tp_error *err);
void tp_session_free(tp_session *s); /* NULL is a no-op */

tp_states *tp_session_states(tp_session *s);
const tp_model *tp_session_model(const tp_session *s);
/* With the program in them, and how it was made, whoever made it. */
const tp_session_options *tp_session_get_options(const tp_session *s);

/* After weights were loaded or initialised: constants and bf16 shadows. */
TP_CHECKED tp_status tp_session_weights_changed(tp_session *s, tp_error *err);

/* A micro-batch as the graphs read it; arrays of `tokens` elements, cu of tokens+1. */
typedef struct {
    const int32_t *tokens, *positions, *targets, *cu;
    const float *loss_weights;
    int64_t n_used; /* where the last sequence ends: behind it nothing has to be computed; 0: all */
} tp_batch_view;

/* Of the T places those that are computed for a batch of n_used: whole groups of them. */
int64_t tp_session_rows(const tp_session *s, int64_t n_used);

/* Whether the next micro-batch is the last of its step: only then are gradients summed over ranks,
 * unless they are kept in parts.
 * From the beginning it is. */
void tp_session_set_last(tp_session *s, bool is_last);

/* Before the micro-batches of a step: what dropout depends on, besides their number. */
void tp_session_begin_step(tp_session *s, uint64_t seed, int64_t step);
/* Forward and backward; *ret_loss is this micro-batch's share of the step's loss.
 * The first micro-batch of a step overwrites the gradients.  An error of this and of the
 * functions below is the device's. */
TP_CHECKED tp_status tp_session_train(tp_session *s, const tp_batch_view *batch, bool is_first,
                                      double *ret_loss, tp_error *err);
/* The same for a `weighed` session: loss_weights marks the tokens that count with 1, fn
 * gets their log-probabilities (0 elsewhere) and writes -dL/dlog p of each; it may be
 * called again with the same operands. */
TP_CHECKED tp_status tp_session_train_weighed(tp_session *s, const tp_batch_view *batch,
                                              bool is_first, tp_host_fn fn, void *user,
                                              tp_error *err);
/* Forward only.  ret_logp (tokens elements, valid until the next call; 0 where nothing was
 * computed) may be NULL. */
TP_CHECKED tp_status tp_session_eval(tp_session *s, const tp_batch_view *batch, double *ret_loss,
                                     const float **ret_logp, tp_error *err);
/* The global L2 norm of the gradients, of all ranks together. */
TP_CHECKED tp_status tp_session_grad_norm(tp_session *s, double *ret_norm, tp_error *err);

/* Gradients from here on are those of `scale` times the loss; 1 at first. */
void tp_session_set_loss_scale(tp_session *s, float scale);
/* Multiply gradients by `unscale`, then make them smaller as the session was made for. */
TP_CHECKED tp_status tp_session_clip(tp_session *s, double unscale, double value, double factor,
                                     tp_error *err);

/* How far gradients are off that come from activations in 8 bits: the norm of the difference over
 * the norm, for the first quarter of a micro-batch.  Overwrites the gradients.  NaN where
 * activations stay as they are, or there are several ranks. */
TP_CHECKED tp_status tp_session_gradient_error(tp_session *s, const tp_batch_view *batch,
                                               double *ret, tp_error *err);

/* `scalars` are those of the session's optimizer. */
TP_CHECKED tp_status tp_session_update(tp_session *s, const tp_optimizer_scalars *scalars,
                                       tp_error *err);

/* Run the micro-batch again, looking at every result.  Writes a sentence such as
 * "layers.3.q_proj (linear, forward)" or "" when all is finite. */
TP_CHECKED tp_status tp_session_find_nonfinite(tp_session *s, const tp_batch_view *batch, char *out,
                                               size_t cap, tp_error *err);

/* ---- the plan ---- */

typedef struct {
    size_t activation_bytes;      /* of the training graph */
    size_t activation_live_bytes; /* live at the worst moment; the arena is >= this */
    double train_flops;           /* per micro-batch; contractions */
    double train_bytes;
    double recompute_flops; /* part of train_flops spent on clones */
    double update_bytes;    /* per step */
    size_t n_launches;      /* of the training graph */
    size_t checkpoint_bytes;
} tp_session_plan;
void tp_session_get_plan(const tp_session *s, tp_session_plan *ret);

const tp_exec *tp_session_exec(const tp_session *s,
                               const char *which); /* train|exact|eval|norm|clip|update */
void tp_session_reset_times(tp_session *s);
/* Nanoseconds so far in launches of the phase (forward includes recomputation's
 * clones under backward, where they run). */
uint64_t tp_session_phase_ns(const tp_session *s, tp_phase phase);

#endif
