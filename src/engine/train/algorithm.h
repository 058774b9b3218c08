/* algorithm.h - what a training algorithm is to the loop: one row, and what the row may ask for.
 *
 * The loop, the plan, the options and the displays know algorithms by the members of their row
 * alone.  Rows are made above, in engine/algorithms: sft.c, dpo.c, grpo.c, and the list of them
 * in algorithms.c. */
#ifndef TP_ENGINE_TRAIN_ALGORITHM_H
#define TP_ENGINE_TRAIN_ALGORITHM_H

#include <stdatomic.h>

#include "base/platform.h"
#include "engine/data/arithmetic.h"
#include "engine/data/loader.h"
#include "engine/train/checkpoint.h"
#include "engine/train/custom_metrics.h"
#include "engine/train/guards.h"
#include "engine/train/levers.h"
#include "engine/train/memory_watch.h"
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
    uint64_t data_hash; /* of the tokens, in order */
    double loss_scale;  /* 0: none */
    int64_t updates;
    bool skipped;      /* an update was left out */
    bool overflowed;   /* ... by the loss scaler */
    double wire_error; /* what compression kept back of gradients; NaN: nothing was compressed */
    double least_s;    /* of its launches on the roofline; NaN: unknown */
} step_result;

/* One thing that has to be in order before a run can begin.  Training goes through all of them
 * and stops at the first that is not; a check goes through all whose needs are met. */
typedef struct {
    const char *name;
    tp_status (*open)(trainer *t, tp_error *err);
    void (*describe)(const trainer *t, tp_buf *out); /* (optional) what was found, one line */
    unsigned needs, gives;                           /* tp_stage_gift */
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
    TP_HAS_PLAN = 256, /* and it fits */
    TP_IS_READY = 512  /* for the first step */
} tp_stage_gift;

enum { TP_STAGES = 24 };

/* ---- a row ---- */

/* What a run's graphs, plan and time follow from. */
typedef struct {
    int64_t prompts;      /* generated from in a step; 0: nothing is */
    int64_t sequences;    /* that a step trains on: one update per train_global_batch_size */
    double temperature;   /* logits are divided by it in training too; 0: they are not */
    double scores_policy; /* share of a step's sequences that the policy scores before they train
                             it */
    bool reference;       /* and so does the model that the run began with */
    size_t loader_bytes;  /* of the data on its way */
} tp_algorithm_needs;

/* Another default for a key than options.def has. */
typedef struct {
    const char *key, *text;
} tp_algorithm_default;

/* A value of checkpointing.metric_name, and what it ranks by. */
typedef struct {
    const char *name;
    tp_ranking ranking;
} tp_algorithm_ranking;

/* Lists end with an empty entry; members marked (optional) may be NULL. */
struct tp_algorithm {
    const char *name;  /* "sft": the section that asks for it */
    const char *title; /* "SFT" */
    const char *fixed; /* what tp_trainer_fingerprint() is told, which --resume may not change */

    /* Keys of its configurations: those of its section, and of `sections`, which it alone has. */
    const tp_option *options;
    const char *const *sections; /* (optional) */
    const tp_algorithm_default *defaults;
    const tp_algorithm_ranking *rankings;
    const char *const *source_keys; /* of data.train and data.validation, that it obeys */
    bool takes_max_samples;         /* among them data.train.max_samples */
    bool takes_named_data;          /* data.train.dataset_name may be any, as of an environment */
    /* (optional) after binding: nulls that stand for something, what must hold across keys */
    tp_status (*check)(tp_config *config, tp_train_options *o, tp_error *err);

    /* What a display shows beside the loss. */
    const char *val_loss, *val_accuracy; /* (optional) metrics of its validation */
    bool is_preference;                  /* train/accuracy and the margin of pairs */

    /* What it trains with. */
    int sequences_per_unit;      /* 2: a batch counts pairs */
    int32_t alignment;           /* in bf16 sequences begin at multiples of it; 0: anywhere */
    bool is_weighted;            /* the loss is the row's own, see objective.h */
    bool shares_layers;          /* among processes: distributed.tensor_parallel_size */
    bool runs_on_ranks;          /* its steps can be divided among processes */
    bool generates;              /* has keys policy.generation, and an engine in run_graphs */
    bool resumes_with_reference; /* the reference is asked before the first step alone */
    void (*needs)(const tp_train_options *o, tp_algorithm_needs *ret);

    /* Data; afterwards max_steps is known.  The last one has no name. */
    const tp_trainer_stage *stages;
    /* (optional) once the weights are there */
    tp_status (*ready)(trainer *t, tp_error *err);
    bool ready_is_work; /* ... which takes a pass over the data: no part of a check */
    /* One step, from data to update.  TP_ERR_INTERRUPTED leaves weights and state as they
     * were before it. */
    tp_status (*step)(trainer *t, step_result *r, tp_error *err);
    tp_status (*validate)(trainer *t, tp_error *err);
    /* Micro-batch i of the update at work once more, for i = 0, 1 ... up to its last. */
    tp_status (*replay)(trainer *t, uint32_t i, tp_batch_view *ret, tp_error *err);
    /* (optional) the state is that of an earlier step now */
    void (*rewind)(trainer *t);
    /* (optional) between steps: options of memory and the graphs are others now, with memory but
     * for an engine and a reference */
    tp_status (*resize)(trainer *t, tp_error *err);
    /* (optional) what launches beside the session, and what its forward-only program is for
     * (NULL: validation) */
    const char *eval_part;
    int (*programs)(const trainer *t, tp_train_program *ret);
    /* (optional) metrics into the record of the step that is open */
    void (*record)(trainer *t, const step_result *r);
    /* (optional) members of run.json's "result", which is open */
    void (*result)(trainer *t, tp_json_w *w);
    void (*close)(trainer *t);
};

/* ---- what a row works with ---- */

struct trainer {
    tp_config *config; /* sections that are bound later are resolved in it */
    const tp_train_options *o;
    const tp_train_hooks *hooks;
    const tp_algorithm *a;
    tp_comm *comm;    /* NULL: this process is alone */
    bool stops;       /* the ranks have agreed to stop */
    void *own;        /* of the algorithm */
    bool only_checks; /* nothing is written into the run's folders */

    tp_device *device; /* of the graphs */
    tp_model *model;
    tp_run_graphs graphs;
    tp_session *session; /* the one of them that trains */
    bool resumes;        /* see tp_run_graphs_options */
    tp_run_plan plan;
    tp_memory_watch memory_watch;
    tp_lever_reports levers;
    tp_machine machine; /* hooks->machine, where its caller could not know how many threads */
    tp_mem_stats memory_before; /* what others in this process held when the run began */
    tp_tokenizer *tokenizer;
    tp_run *run;
    tp_schedule schedule;
    char tokenizer_dir[2100]; /* folder whose files go into checkpoints; "" = none */
    tp_buf chat_template;     /* that checkpoints carry; "": the tokenizer's own */
    bool uses_template;       /* the data has conversations */
    char model_folder[2100];  /* that the weights come from; "" = they are drawn */
    char checkpoint_dir[2100];
    int checkpoint_lock; /* -1: none */
    bool made_checkpoint_dir;
    bool first_writes_all; /* checkpoints: not all ranks see the folder */
    tp_buf changes;        /* since the attempt before, as JSON objects with commas between */
    bool has_other_config; /* than that attempt */
    tp_dtype file_dtype;   /* of the weights that a checkpoint's model/ stores */
    char weights_fingerprint[33]; /* of the files that they came from, where it is known */
    tp_loader *loader;            /* of the training data, where there is one */
    double avg_context;           /* mean number of keys a query sees; 0: unknown */
    uint64_t steps_per_epoch;
    uint64_t prompts_per_epoch; /* 0: epochs are counted in steps */

    tp_phases phases;
    tp_train_state state;
    int64_t first_step, max_steps;
    int64_t last_checkpoint_step;
    bool saved_unvalidated; /* ... without the validation behind it */
    size_t checkpoint_bytes;
    double started_wall, started_s;
    double val_loss;        /* SFT, DPO: of the last validation */
    double val_accuracy;    /* DPO, GRPO */
    int64_t validated_step; /* at which that was; -1: of an earlier attempt, or never */
    bool reached_goal;      /* the run may end before max_steps */
    tp_train_request asked; /* by listeners, and not done yet */
    char stop_reason[400];  /* of a listener that asked for it; "": nobody has */
    bool has_nothing_to_do; /* the run is finished already */
    bool step_is_void;      /* the step at work has changed nothing yet */
    bool must_restore;      /* after the step at work: back to a checkpoint */
    tp_loss_scaler scaler;
    tp_watchdog *watchdog;
    atomic_bool is_late;   /* the watchdog says so of the step at work */
    int64_t restored_step; /* the checkpoint that was gone back to last, and how often; -1 */
    int64_t n_restores_from;
    int64_t n_kept_steps; /* in the folder bad-steps */
    uint64_t injected;    /* which of train.inject_nan have been, as bits */
    double last_loss;
    double recent_step_s[RECENT_STEPS];
    int n_recent;
    int64_t used_tokens, padded_tokens; /* of this attempt */
    int64_t trained_tokens;
    int64_t generated_tokens, drafted_tokens, accepted_tokens;
    double generation_s;
    bool has_doubted_ceiling;
    double model_flops;    /* useful work of this attempt: 3 x forward over used tokens */
    double step_phase_s;   /* seconds in steps proper (data to optimizer) */
    int64_t counted_steps; /* by the launches of the graphs */
    tp_metric_bus metrics;
    struct {
        char what[256];
        uint64_t done;
        double begin_s, told_s;
    } work; /* that is going on, see tp_trainer_working() */
    bool has_gradient_error;
    double gradient_error; /* of activations in 8 bits, as measured once; NaN: not yet */
    tp_profile profile;
    tp_custom_metrics custom;
    tp_comm_stats traffic; /* so far: bytes and messages of all ranks, seconds of their mean */
    tp_wire_stats wire;    /* so far, of all ranks */
};

/* graphs.c */
tp_algorithm_needs tp_trainer_needs(const tp_train_options *o);

/* setup.c */
void tp_trainer_describe_steps(const trainer *t, tp_buf *out);
/* tp_trainer_working(), and whether to go on; user: the trainer. */
bool tp_trainer_keep_going(void *user, const char *what, uint64_t done, uint64_t total);
/* "default": NULL, the tokenizer's own; null: ""; a .jinja file's contents, in `file`. */
TP_CHECKED tp_status tp_trainer_chat_template(trainer *t, tp_buf *file, const char **ret,
                                              tp_error *err);
size_t tp_trainer_longest(const trainer *t); /* tokens of an example, at most */
/* `n` examples of the data, so many of them a step: steps of an epoch, and of the run. */
void tp_trainer_count_steps(trainer *t, uint64_t n, uint64_t each);
/* The same of steps that draw `each` of `n` prompts or more, by state.prompts. */
void tp_trainer_count_draws(trainer *t, uint64_t n, uint64_t each);
/* Memory for graphs.reference, and the weights that the run began with. */
TP_CHECKED tp_status tp_trainer_fill_reference(trainer *t, tp_error *err);
void tp_trainer_fingerprint(trainer *t, const char *text);
bool tp_trainer_is_arithmetic(const tp_train_options *o); /* data.train is the made-up corpus */

/* events.c: within whatever may take long, as often as one likes.  What has gone on for ten seconds
 * is told, and then once a second: `done` of `total`, which is 0 where it is not known. */
void tp_trainer_working(trainer *t, const char *what, uint64_t done, uint64_t total);
/* Within a step; `part` of it, or NULL. */
void tp_trainer_stepping(trainer *t, const char *part, uint64_t done, uint64_t total);

/* trainer.c */
bool tp_trainer_should_stop(const trainer *t);
/* Count a micro-batch into the step, and its time inside the graph as forward or backward. */
typedef struct {
    uint64_t backward_ns;
} tp_trainer_stopwatch;
tp_trainer_stopwatch tp_trainer_begin_graph(trainer *t);
void tp_trainer_end_graph(trainer *t, tp_trainer_stopwatch w);
void tp_trainer_count(trainer *t, const tp_microbatch *mb, step_result *r);
static inline tp_batch_view tp_trainer_view(const tp_microbatch *mb)
{
    return (tp_batch_view){mb->tokens, mb->positions,    mb->targets,
                           mb->cu,     mb->loss_weights, TP_MAX(mb->n_used, 1)};
}

/* stability.c: gradient norm, then clip and update, or what the policies for numbers that are not
 * finite and for spikes of the loss say.  The update has n_micro micro-batches. */
TP_CHECKED tp_status tp_trainer_update(trainer *t, step_result *r, uint32_t n_micro, tp_error *err);
/* The learning rate of the step at work; steps without an update do not count. */
double tp_trainer_lr(const trainer *t, double base);
/* ranks.c */
int tp_trainer_ranks(const trainer *t);
/* Shares of the data, and which one is this rank's: of those that share the layers the same. */
uint32_t tp_trainer_shares(const trainer *t);
uint32_t tp_trainer_share(const trainer *t);
bool tp_trainer_reads_together(const trainer *t); /* weights: no rank has all of them */
bool tp_trainer_tells(const trainer *t);    /* its figures count, when those of all are added up */
bool tp_trainer_is_first(const trainer *t); /* the rank that writes and speaks */
/* A step's figures, which each rank has of its share, become those of all. */
TP_CHECKED tp_status tp_trainer_join(trainer *t, step_result *r, tp_error *err);

/* profile.c */
void tp_profile_worker(trainer *t, tp_worker worker); /* who works from here on */

/* events.c */
void tp_trainer_notice(const trainer *t, const char *fmt, ...) TP_PRINTF(2, 3);
void tp_trainer_send(const trainer *t, const tp_train_event *event);

/* record.c */
/* A record of axis "validation", from begin to end; the end is an event. */
void tp_trainer_begin_validation(trainer *t);
void tp_trainer_end_validation(trainer *t);

#endif
