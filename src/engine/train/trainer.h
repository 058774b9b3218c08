/* trainer.h - the loop of a run, from configuration to the last checkpoint.
 *
 * Everything a caller sees while it runs comes as events: the terminal display, the
 * JSON progress and tests are observers.  The loop polls `should_stop` between
 * micro-batches; asked to stop, it saves the last completed step and returns
 * TP_ERR_INTERRUPTED. */
#ifndef TP_ENGINE_TRAIN_TRAINER_H
#define TP_ENGINE_TRAIN_TRAINER_H

#include "config/config.h"
#include "engine/exec/machine.h"
#include "engine/train/custom_metrics.h"
#include "engine/train/levers.h"
#include "engine/train/options.h"
#include "engine/train/phases.h"
#include "engine/train/plan.h"
#include "engine/train/profile.h"
#include "engine/train/session.h"
#include "temper/train.h"
#include "trace/metric.h"

typedef enum {
    TP_EVENT_EXAMPLE, /* text: detected schema and one rendered example with its mask */
    TP_EVENT_PLAN,    /* the session is planned and allocated; `plan` is set */
    TP_EVENT_START,   /* training begins (or goes on) */
    TP_EVENT_STEP,
    TP_EVENT_VALIDATION,
    TP_EVENT_CHECKPOINT,
    TP_EVENT_NOTICE,   /* text: something the user should know */
    TP_EVENT_FINISHED, /* whatever the outcome */
    TP_EVENT_WORKING   /* text: what has gone on for ten seconds and longer, once a second */
} tp_train_event_kind;

/* A program of a run, and what it is for: "train", "update", "validation"; where the algorithm
 * has them "generation", "logprobs", "reference". */
typedef struct {
    const char *part;
    const tp_exec *exec;
} tp_train_program;
enum { TP_TRAIN_PROGRAMS = 8 };

/* What a run says, and where it stands at that moment. */
typedef struct {
    tp_train_event_kind kind;
    const char *text;
    int64_t step;                 /* done so far */
    double work_s, work_share;    /* TP_EVENT_WORKING: seconds, and what is done; NaN: unknown */
    const tp_metric_bus *metrics; /* the numbers, by name; NULL before a run has any */

    /* not set with a text alone */
    const tp_algorithm *algorithm;
    const char *run_dir, *run_name, *run_id, *model_name;
    int attempt;
    int64_t max_steps, first_step;
    int64_t trained_tokens, used_tokens, padded_tokens; /* of the last step */
    bool is_packed;                                     /* micro-batches are filled with tokens */
    double mean_step_s; /* of all steps so far; to be compared with plan->step_s */
    double best_metric; /* of checkpointing.metric_name; NaN: none */
    double elapsed_s, eta_s, eta_low_s, eta_high_s; /* eta: NaN before the first step */
    double phase_s[TP_TIME_COUNT];                  /* so far */
    tp_mem_stats memory;            /* of this run; its total_peak is to be compared with ... */
    const tp_run_plan *plan;        /* ... what was planned */
    const tp_lever_reports *levers; /* states from the plan on, measured when it is finished */
    int64_t last_checkpoint_step;   /* -1: none */
    size_t checkpoint_bytes;
    int64_t skipped;
    const tp_session *session;                    /* for tables; NULL before the plan */
    tp_train_program programs[TP_TRAIN_PROGRAMS]; /* all that launches, in order of a step */
    int n_programs;
    int64_t counted_steps;           /* in their launches: steps alone, no validation */
    const tp_custom_metrics *custom; /* of all steps of this attempt */
    const tp_profile *profile;       /* of steps that were recorded; NULL: none yet */
} tp_train_event;

/* What a listener asks for between two steps. */
typedef struct {
    char why[400];    /* said with it */
    double lr_factor; /* learning rates times this from here on; 0: as they are */
    bool checkpoint, stop;
} tp_train_request;

typedef struct {
    void (*observe)(void *user, const tp_train_event *event); /* may be NULL */
    void *user;
    bool (*should_stop)(void *user); /* may be NULL */
    const tp_machine *machine;       /* measured ceilings, or NULL: MFU is unknown */
    bool resume;
    /* (optional) stages asked for with engine.dump */
    void (*dump)(void *user, const char *graph, const char *stage, const char *text);
    /* (optional) subscribers of metrics from outside the engine: before the first record of the
     * attempt, and after its last, while the bus is there still */
    void (*listen)(void *listener, tp_metric_bus *bus, const tp_train_event *start);
    void (*stop_listening)(void *listener);
    /* (optional) after every step, and after a validation; false: nothing is asked for */
    bool (*request)(void *listener, tp_train_request *ret);
    void *listener;
} tp_train_hooks;

/* A training, step by step.  All calls of one come from one thread. */
typedef struct tp_train_loop tp_train_loop;

/* Everything before the first step.  `config` is bound to `options` already; all three outlive the
 * loop.  There is a loop afterwards whatever the status, unless it is NULL: to be ended. */
TP_CHECKED tp_status tp_train_begin(tp_config *config, const tp_train_options *options,
                                    const tp_train_hooks *hooks, tp_train_loop **ret,
                                    tp_error *err);
/* Are steps left to be done? */
bool tp_train_is_over(const tp_train_loop *loop);
/* One step, from its data to what is due behind it; of its result all but `size`. */
TP_CHECKED tp_status tp_train_step(tp_train_loop *loop, tp_training_step_result *ret,
                                   tp_error *err);
/* All that are left. */
TP_CHECKED tp_status tp_train_steps(tp_train_loop *loop, tp_error *err);
/* What is due at the end; the status is that of the run.  One that has steps left is saved as if it
 * had been asked to stop. */
TP_CHECKED tp_status tp_train_end(tp_train_loop *loop, tp_training_result *ret, tp_error *err);

/* All of these, where nobody looks at the result. */
TP_CHECKED tp_status tp_train_run(tp_config *config, const tp_train_options *options,
                                  const tp_train_hooks *hooks, tp_error *err);

/* What a check found about one thing that a run needs. */
typedef enum { TP_FOUND_OK, TP_FOUND_FAILED, TP_FOUND_UNKNOWN } tp_found;
typedef struct {
    const char *what; /* "model", "training data" ... */
    tp_found found;
    const char *text; /* what there is; the sentence with which training would end; or why it is
                         not known */
} tp_train_finding;

/* Everything that tp_train_begin() does, with the same code, but for what
 * takes a pass over the data with the model; judges are asked one question.  It goes on behind
 * what failed.  Nothing is written but the token cache. */
void tp_train_check(tp_config *config, const tp_train_options *options, const tp_train_hooks *hooks,
                    void (*report)(void *user, const tp_train_finding *finding), void *user);

/* The same of a run folder: run.json, config.yaml, every line of metrics.jsonl, every file of
 * every checkpoint. */
void tp_run_inspect(const char *dir, void (*report)(void *user, const tp_train_finding *finding),
                    void *user);

#endif
