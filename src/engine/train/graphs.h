/* graphs.h - all graphs of a run as one set: what trains, what generates, what it is compared
 * with.  They are one program: one pipeline, one plan of memory.
 *
 * A run and its prediction build the same set with the same function, so that they cannot
 * disagree.  Building costs milliseconds, reads no data and allocates nothing large. */
#ifndef TP_ENGINE_TRAIN_GRAPHS_H
#define TP_ENGINE_TRAIN_GRAPHS_H

#include "base/affinity.h"
#include "engine/exec/machine.h"
#include "engine/generate/engine.h"
#include "engine/model/adapter.h"
#include "engine/train/options.h"
#include "engine/train/session.h"

typedef struct tp_run_graphs {
    tp_device *device;     /* what they all run on */
    tp_program *program;   /* all of them */
    tp_session *session;   /* training, evaluation, gradient norm and update */
    tp_engine *engine;     /* GRPO: the generator, which shares the session's weights; or NULL */
    tp_session *reference; /* forward only, with the weights that the run began with; or NULL */
} tp_run_graphs;

typedef struct {
    double avg_context;            /* mean keys of a query, for costs; 0: unknown */
    bool resumes;                  /* DPO: the session's weights are not the reference's */
    bool measures_kernels;         /* policy.compile_mode max-autotune: those not known yet */
    const tp_tokenizer *tokenizer; /* NULL: sizes are the same without */
    /* (optional) the same run's graphs made with other options, whose device and tensors these take
     * over; nothing is left to those but to be released.  For a run on one rank. */
    struct tp_run_graphs *takes_over;
    /* (optional) see tp_program_options */
    void (*dump)(void *user, const char *graph, const char *stage, const char *text);
    void *dump_user;
} tp_run_graphs_options;

/* `model` and the tokenizer must outlive the graphs.  Puts engine.isa in force. */
TP_CHECKED tp_status tp_run_graphs_create(const tp_train_options *o, const tp_model *model,
                                          const tp_run_graphs_options *more, tp_run_graphs *ret,
                                          tp_error *err);
void tp_run_graphs_release(tp_run_graphs *graphs); /* zeroed is a no-op */

/* The folder with `file` that a path stands for: a run or a checkpoint stands for the model in
 * it. */
TP_CHECKED tp_status tp_trainer_find_folder(const char *path, const char *file, tp_buf *ret,
                                            tp_error *err);
/* policy.max_total_sequence_length against what the model has: learned positions end, others go on
 * with a warning, which `said` (may be NULL) gets. */
TP_CHECKED tp_status tp_run_check_positions(const tp_train_options *o, const tp_model *model,
                                            tp_buf *said, tp_error *err);
/* The model, once its positions are enough.  ret_path (may be NULL) gets where it is. */
TP_CHECKED tp_status tp_run_model_open(const tp_train_options *o, tp_model **ret, tp_buf *ret_path,
                                       tp_error *err);

/* ---- what the options ask for ---- */

/* Puts engine.isa in force: ceilings are those of an instruction set. */
TP_CHECKED tp_status tp_trainer_force_isa(const tp_train_options *o, tp_error *err);
int tp_trainer_threads(const tp_train_options *o);
/* The ceilings on file for a process of this run; where processes share a machine and none are
 * for so few threads, its part of those of all. */
TP_CHECKED tp_status tp_trainer_machine(const tp_train_options *o, tp_machine *ret, bool *ret_found,
                                        tp_error *err);
/* None where processes share processors: all would choose the same. */
tp_affinity tp_trainer_affinity(const tp_train_options *o);
/* What products are computed in: float16 is widened as it is read. */
static inline tp_dtype tp_trainer_product_dtype(const tp_train_options *o)
{
    return o->policy.precision == TP_PRECISION_BFLOAT16 ? TP_DTYPE_BF16 : TP_DTYPE_F32;
}
int64_t tp_trainer_token_budget(const tp_train_options *o);
/* Of one sequence, or pair, of full length. */
int64_t tp_trainer_unit_tokens(const tp_train_options *o);
/* Sequences whose log-probabilities are compared with ones computed elsewhere start at
 * multiples of this; 0: anywhere. */
int32_t tp_trainer_alignment(const tp_train_options *o);
bool tp_trainer_is_packed(const tp_train_options *o);
/* Without tokenizer. */
tp_engine_options tp_trainer_engine_options(const tp_train_options *o, tp_device *device);

/* ---- the adapter that is asked for: policy.peft, or policy.dtensor_cfg.lora_cfg ---- */

/* After binding: which of the two sections counts, and whether Temper does what it says. */
TP_CHECKED tp_status tp_peft_bind(const tp_config *config, tp_train_options *o, tp_error *err);
/* Attach what is asked for, and freeze the base of whatever adapter there is. */
TP_CHECKED tp_status tp_peft_attach(const tp_train_options *o, tp_model *model, tp_error *err);

#endif
