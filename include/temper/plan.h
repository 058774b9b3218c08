/* plan.h - memory and work of a training configuration before it runs.
 *
 * The numbers of `temper plan`: the graphs are built and planned, which takes
 * milliseconds; no weights or data are read, nothing large is allocated.  They are the numbers
 * that tp_training_run() has and reports as memory_planned_bytes.
 *
 * Threads: any, at once. */
#ifndef TEMPER_PLAN_H
#define TEMPER_PLAN_H

#include "temper/error.h"
#include "temper/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a run does, one after the other. */
typedef enum {
    TP_PLAN_LOAD,
    TP_PLAN_TRAIN,
    TP_PLAN_EVALUATE,
    TP_PLAN_GENERATE,
    TP_PLAN_REFERENCE,
    TP_PLAN_UPDATE,
    TP_PLAN_CHECKPOINT,
    TP_PLAN_PHASES
} tp_plan_phase;
TP_API const char *tp_plan_phase_name(tp_plan_phase phase); /* "load", ... */

typedef struct {
    size_t size; /* sizeof(tp_training_plan), set by the caller */
    int64_t parameters;
    int64_t tokens_per_micro_batch;
    int64_t micro_batches_per_step; /* at most: when every sequence has the full length */

    uint64_t peak_bytes; /* the parts below together */
    uint64_t weight_bytes, shadow_bytes, gradient_bytes, optimizer_bytes, activation_bytes;
    uint64_t other_bytes; /* keys and values, work space, constants, batches */
    uint64_t checkpoint_bytes;

    double flops_per_micro_batch; /* matrix products, forward and backward, recomputation
                                     included */
    double recompute_flops_per_micro_batch;
    double flops_per_step;
    double bytes_per_step; /* moved between memory and processor, update included */
    double step_s;         /* estimate: all work of a step at this machine's measured ceilings;
                              NaN before `temper doctor` */

    /* What peak_bytes would be less without generation, and without the reference model. */
    uint64_t generator_bytes, reference_bytes;
    uint64_t limit_bytes; /* what a run may take here */
    int fits;             /* peak_bytes <= limit_bytes; otherwise a run ends with TP_ERR_NOMEM */

    /* What each phase works with; 0: there is no such phase.  A run has its memory from
     * beginning to end and its graphs share theirs, so that these do not add up. */
    uint64_t phase_bytes[TP_PLAN_PHASES];
    /* Parts of step_s. */
    double generation_s, logprob_s, reference_s, training_s, update_s;
} tp_training_plan;

/* `config`, `overrides`: as for tp_training_run().
 * TP_ERR_CONFIG, TP_ERR_IO, TP_ERR_FORMAT, TP_ERR_UNSUPPORTED, TP_ERR_ARG. */
TP_API TP_CHECKED tp_status tp_training_plan_compute(const char *config,
                                                     const char *const *overrides,
                                                     size_t n_overrides, tp_training_plan *ret,
                                                     tp_error *err);

typedef struct {
    size_t size;       /* sizeof(tp_plan_options) */
    tp_form form;      /* TP_FORM_TEXT or TP_FORM_JSON */
    const char *graph; /* launches of this graph instead ("train", "eval", "norm", "update",
                          "generate", "reference"); NULL: the plan */
    void (*note)(void *user, const char *text); /* keys without effect; may be NULL */
    void *user;
    int ranks;           /* processes: the plan is of one of them, and of what they send; 0: one */
    const char *network; /* between them, "100Gbit/2us", "100Gbit/2us/torus-16x8x8",
                            "100Gbit/2us/fat-tree-32:2"; NULL: unknown */
    int ranks_per_node;  /* so many of them share a host and its memory; 0: as
                            distributed.ranks_per_node says, else each has a host */
} tp_plan_options;

/* The plan as `temper plan` prints it, its levers included; `options` may be NULL.  *ret_fits:
 * whether a run would.  *ret_text: tp_free(). */
TP_API TP_CHECKED tp_status tp_training_plan_text(const char *config, const char *const *overrides,
                                                  size_t n_overrides,
                                                  const tp_plan_options *options, char **ret_text,
                                                  bool *ret_fits, tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
