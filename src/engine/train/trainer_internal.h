/* trainer_internal.h - the parts of the trainer, shared between its files.
 *
 *     attempt.c  a run that begins or goes on: checkpoints, what has changed
 *     graphs.c   options -> all graphs of the run
 *     plan.c     what they take, before the run
 *     setup.c    options -> model, graphs with memory, run folder, as stages
 *     check.c    the same stages, each told apart; unused.c  keys of other algorithms
 *     trainer.c  the loop, and what every algorithm does in it
 *     record.c   metrics.jsonl, run.json, events
 *     sft.c      one file per algorithm: its data, its step, its validation
 *     dpo.c, dpo_data.c, dpo_reference.c
 *     grpo.c, grpo_rollout.c, grpo_update.c, grpo_record.c
 *     profile.c  the trace of chosen steps */
#ifndef TP_ENGINE_TRAIN_TRAINER_INTERNAL_H
#define TP_ENGINE_TRAIN_TRAINER_INTERNAL_H

#include "engine/data/loader.h"
#include "engine/generate/engine.h"
#include "engine/train/checkpoint.h"
#include "engine/train/custom_metrics.h"
#include "engine/train/plan.h"
#include "engine/train/profile.h"
#include "engine/train/run.h"
#include "engine/train/schedule.h"
#include "engine/train/trainer.h"
#include "text/tokenizer/tokenizer.h"
#include "trace/trace.h"

enum { RECENT_STEPS = 20 };

typedef struct trainer trainer;

/* One finished step, for records. */
typedef struct {
    double loss, grad_norm, lr, seconds, wait_s, flops;
    int64_t trained, used, padded, sequences;
    uint32_t n_micro;
    bool skipped;
} step_result;

/* One thing that has to be in order before a run can begin.  Training goes through all of them
 * and stops at the first that is not; a check goes through all whose needs are met. */
typedef struct {
    const char *name;
    tp_status (*open)(trainer *t, tp_error *err);
    void (*describe)(const trainer *t, tp_buf *out); /* (optional) what was found, one line */
    unsigned needs, gives;                           /* tp_stage_gift */
    bool check_only;                                 /* training finds it out by itself */
} tp_trainer_stage;

typedef enum {
    TP_HAS_MODEL = 1,
    TP_HAS_FOLDER = 2, /* of the run */
    TP_HAS_TOKENIZER = 4,
    TP_HAS_DATA = 8,
    TP_HAS_JUDGE = 16,
    TP_HAS_STEPS = 32, /* the algorithm is open */
    TP_HAS_SESSION = 64,
    TP_HAS_WEIGHTS = 128,
    TP_HAS_PLAN = 256 /* and it fits */
} tp_stage_gift;

enum { TP_STAGES = 24 };

/* What an algorithm brings along.  Members marked (optional) may be NULL. */
typedef struct {
    /* Data; afterwards max_steps is known.  The last one has no name. */
    const tp_trainer_stage *stages;
    /* (optional) once the weights are there */
    tp_status (*ready)(trainer *t, tp_error *err);
    bool ready_is_work; /* ... which takes a pass over the data: no part of a check */
    /* One step, from data to update.  TP_ERR_INTERRUPTED leaves weights and state as they
     * were before it. */
    tp_status (*step)(trainer *t, step_result *r, tp_error *err);
    tp_status (*validate)(trainer *t, tp_error *err);
    /* (optional) what launches beside the session, and what its forward-only program is for
     * (NULL: validation) */
    const char *eval_part;
    int (*programs)(const trainer *t, tp_train_program *ret);
    /* (optional) metrics into the record of the step that is open */
    void (*record)(trainer *t, const step_result *r);
    /* (optional) members of run.json's "result", which is open */
    void (*result)(trainer *t, tp_json_w *w);
    void (*close)(trainer *t);
} algorithm;

extern const algorithm tp_algorithm_sft, tp_algorithm_dpo, tp_algorithm_grpo;

struct trainer {
    const tp_config *config;
    const tp_train_options *o;
    const tp_train_hooks *hooks;
    const algorithm *a;
    void *own;        /* of the algorithm */
    bool only_checks; /* nothing is written into the run's folders */

    tp_device *device; /* of the graphs */
    tp_model *model;
    tp_run_graphs graphs;
    tp_session *session; /* the one of them that trains */
    bool resumes;        /* see tp_run_graphs_options */
    tp_run_plan plan;
    tp_mem_stats memory_before; /* what others in this process held when the run began */
    tp_tokenizer *tokenizer;
    tp_run *run;
    tp_schedule schedule;
    char tokenizer_dir[2100]; /* folder whose files go into checkpoints; "" = none */
    tp_buf chat_template;     /* that checkpoints carry; "": the tokenizer's own */
    bool uses_template;       /* the data has conversations */
    char model_folder[2100];  /* that the weights come from; "" = they are drawn */
    char checkpoint_dir[2100];
    int checkpoint_lock;   /* -1: none */
    tp_buf changes;        /* since the attempt before, as JSON objects with commas between */
    bool has_other_config; /* than that attempt */
    tp_dtype file_dtype;   /* of the weights that a checkpoint's model/ stores */
    tp_loader *loader;     /* of the training data, where there is one */
    double avg_context;    /* mean number of keys a query sees; 0: unknown */
    uint64_t steps_per_epoch;

    tp_phases phases;
    tp_train_state state;
    int64_t first_step, max_steps;
    int64_t skipped_in_row;
    int64_t last_checkpoint_step;
    size_t checkpoint_bytes;
    double started_wall, started_s;
    double val_loss;     /* SFT, DPO: of the last validation */
    double val_accuracy; /* DPO, GRPO */
    bool reached_goal;   /* the run may end before max_steps */
    bool step_is_void;   /* the step at work has changed nothing yet */
    double last_loss;
    double recent_step_s[RECENT_STEPS];
    int n_recent;
    int64_t used_tokens, padded_tokens; /* of this attempt */
    int64_t trained_tokens;
    int64_t generated_tokens;
    double generation_s;
    bool has_doubted_ceiling;
    double model_flops;   /* useful work of this attempt: 3 x forward over used tokens */
    double step_phase_s;  /* seconds in steps proper (data to optimizer) */
    tp_train_event shown; /* what the algorithm adds to the events of a step */
    double last_step_s;
    tp_profile profile;
    tp_custom_metrics custom;
};

/* setup.c */
TP_CHECKED tp_status tp_trainer_open(trainer *t, tp_error *err);
void tp_trainer_describe_steps(const trainer *t, tp_buf *out);
/* All stages in their order, the algorithm's among them; returns how many. */
int tp_trainer_stages(const trainer *t, tp_trainer_stage ret[TP_STAGES]);
trainer tp_trainer_of(const tp_config *config, const tp_train_options *options,
                      const tp_train_hooks *hooks);
void tp_trainer_close(trainer *t);
void tp_trainer_notice(const trainer *t, const char *fmt, ...) TP_PRINTF(2, 3);
bool tp_trainer_keep_going(void *user, uint64_t done, uint64_t total); /* user: the trainer */
/* "default": NULL, the tokenizer's own; null: ""; a .jinja file's contents, in `file`. */
TP_CHECKED tp_status tp_trainer_chat_template(trainer *t, tp_buf *file, const char **ret,
                                              tp_error *err);
size_t tp_trainer_longest(const trainer *t); /* tokens of an example, at most */
/* Memory for graphs.reference, and the weights that the run began with. */
TP_CHECKED tp_status tp_trainer_fill_reference(trainer *t, tp_error *err);
void tp_trainer_fingerprint(trainer *t, const char *text);

/* attempt.c: in this order */
TP_CHECKED tp_status tp_attempt_claim(trainer *t, tp_error *err); /* the folder of checkpoints */
/* Whether that could be, without claiming it. */
TP_CHECKED tp_status tp_attempt_check_claim(trainer *t, tp_error *err);
void tp_attempt_identify(trainer *t); /* the state is this run's */
/* Say and keep what another attempt was given than the one before. */
TP_CHECKED tp_status tp_attempt_compare(trainer *t, tp_error *err);
TP_CHECKED tp_status tp_attempt_resume(trainer *t, bool *ret_resumed, tp_error *err);
TP_CHECKED tp_status tp_attempt_write_config(trainer *t, tp_error *err);
bool tp_attempt_has_nothing_to_do(const trainer *t);
void tp_attempt_put(const trainer *t, const char *state, tp_json_w *w); /* into run.json */
/* unused.c */
TP_CHECKED tp_status tp_trainer_unused_keys(const trainer *t, tp_error *err);

/* trainer.c */
bool tp_trainer_should_stop(const trainer *t);
/* Gradient norm, then clip and update, or what the policy for numbers that are not finite
 * says.  `last` is a micro-batch of the step. */
TP_CHECKED tp_status tp_trainer_update(trainer *t, step_result *r, const tp_batch_view *last,
                                       tp_error *err);
/* Count a micro-batch into the step, and its time inside the graph as forward or backward. */
typedef struct {
    uint64_t backward_ns;
} tp_trainer_stopwatch;
tp_trainer_stopwatch tp_trainer_begin_graph(trainer *t);
void tp_trainer_end_graph(trainer *t, tp_trainer_stopwatch w);
void tp_trainer_count(trainer *t, const tp_microbatch *mb, step_result *r);
static inline tp_batch_view tp_trainer_view(const tp_microbatch *mb)
{
    return (tp_batch_view){mb->tokens, mb->positions, mb->targets, mb->cu, mb->loss_weights};
}

/* profile.c */
void tp_profile_open(trainer *t, int n_workers);
TP_CHECKED tp_status tp_profile_begin_step(trainer *t, tp_error *err);
TP_CHECKED tp_status tp_profile_end_step(trainer *t, const step_result *r, tp_error *err);
void tp_profile_worker(trainer *t, tp_worker worker); /* who works from here on */
void tp_profile_close(trainer *t);

/* record.c */
tp_mem_stats tp_trainer_memory(const trainer *t); /* of this run alone */
double tp_trainer_mean_step(const trainer *t);    /* seconds; NaN before the first */
tp_train_event tp_trainer_event(trainer *t, tp_train_event_kind kind);
void tp_trainer_send(const trainer *t, const tp_train_event *event);
void tp_trainer_record_step(trainer *t, const step_result *r);
/* A record of metrics under axis "validation", and the event. */
typedef struct {
    const char *tag;
    double value;
} tp_metric_value;
void tp_trainer_record_validation(trainer *t, const tp_metric_value *metrics, size_t n);
TP_CHECKED tp_status tp_trainer_write_run_json(trainer *t, const char *state, tp_error *err);

/* Useful floating-point work of a step: three times the forward pass over tokens of the
 * data, causal attention, no recomputation, no padding. */
double tp_trainer_step_flops(const tp_model *model, int64_t tokens, double sum_of_squares);

#endif
