/* train.h - run a training configuration, watch it, stop it.
 *
 * The library does what `temper train` does: reads the recipe, trains, and writes a run
 * folder with metrics, checkpoints and a Hugging Face model.  Everything a program sees
 * meanwhile comes through one callback.
 *
 * Threads: any, at once: trainings may run at the same time, each on a thread of its own.  The
 * memory limit, the instruction set and the trace are the process's: all have what was set last. */
#ifndef TEMPER_TRAIN_H
#define TEMPER_TRAIN_H

#include "temper/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    TP_TRAINING_EXAMPLE,    /* text: one example of the data with what is learned of it */
    TP_TRAINING_PLAN,       /* memory is planned and allocated */
    TP_TRAINING_START,      /* training begins, or goes on after a resume */
    TP_TRAINING_STEP,       /* a step is done */
    TP_TRAINING_VALIDATION, /* the metrics of validation are new */
    TP_TRAINING_CHECKPOINT, /* one was saved */
    TP_TRAINING_NOTICE,     /* text: something the user should know */
    TP_TRAINING_FINISHED,   /* the run is over; not sent when setting up failed */
    TP_TRAINING_WORKING     /* text: what has gone on for ten seconds, once a second from then on */
} tp_training_event;

/* One number of a run, as metrics.jsonl has it; docs/guide/metrics.md has the names. */
typedef struct {
    const char *name, *unit; /* "train/loss", "nats"; unit "": a plain number */
    double value;            /* NaN is a result */
} tp_training_metric;

/* The state of a run at an event; absent texts are NULL.  Valid during the callback.  Later
 * versions add at the end. */
typedef struct {
    tp_training_event event;
    const char *text;
    const char *run_dir;     /* NULL until the folder is open */
    int64_t step, max_steps; /* step: done so far */
    /* Those of the newest step and of the newest validation; none with a text alone. */
    const tp_training_metric *metrics;
    size_t n_metrics;
    double best_metric;      /* of checkpointing.metric_name; NaN: none */
    double elapsed_s, eta_s; /* NaN: unknown */
    uint64_t memory_bytes, memory_peak_bytes, memory_planned_bytes;
    int64_t last_checkpoint_step; /* -1: none */
    int64_t skipped_steps;        /* not finite, passed over as configured */
    double work_s, work_share; /* of TP_TRAINING_WORKING: so far, and what is done; NaN: unknown */
} tp_training_progress;

/* The value of a metric by its name; NaN where there is none. */
TP_API double tp_training_value(const tp_training_progress *progress, const char *name);

typedef struct {
    size_t size; /* sizeof(tp_training_options) */
    bool resume; /* go on from the run's newest checkpoint, bit for bit */
    /* Called in the thread that called tp_training_run(), between steps, and within what takes
     * long; may be NULL. */
    void (*observe)(void *user, const tp_training_progress *progress);
    /* Asked between micro-batches; true saves the last whole step and ends the run with
     * TP_ERR_INTERRUPTED.  May be NULL. */
    bool (*should_stop)(void *user);
    void *user;
} tp_training_options;

typedef struct {
    size_t size;                 /* sizeof(tp_training_result), set by the caller */
    int64_t steps;               /* done in total */
    double final_loss, val_loss; /* the last ones; NaN: none */
    bool was_asked_to;       /* an alarm stopped it, or whoever controls it: TP_ERR_INTERRUPTED */
    bool is_silent;          /* of several processes, another one says how the run ended */
    bool is_below_threshold; /* performance_analysis found it so */
} tp_training_result;

/* Run the recipe `config`, a YAML file (NULL: defaults and overrides alone), changed by
 * n_overrides texts such as "policy.optimizer.kwargs.lr=1e-4" or "~policy.scheduler".
 * run.name is the file's name unless it is set.  `options` and `ret` may be NULL; *ret is
 * filled whenever the run began, also when it failed later.
 *
 * TP_ERR_CONFIG: the message begins with the place, "recipe.yaml:12: ..."; TP_ERR_NUMERIC,
 * TP_ERR_INTERRUPTED as configured or asked; TP_ERR_IO, TP_ERR_OUTPUT, TP_ERR_FORMAT,
 * TP_ERR_NOMEM, TP_ERR_UNSUPPORTED, TP_ERR_ARG. */
TP_API TP_CHECKED tp_status tp_training_run(const char *config, const char *const *overrides,
                                            size_t n_overrides, const tp_training_options *options,
                                            tp_training_result *ret, tp_error *err);

/* ---- step by step ---- */

/* The same run with the loop in the caller's hands: other work between two steps, a step that is
 * looked at before the next one.
 *
 *     tp_training_open("recipe.yaml", NULL, 0, &options, &training, &err);
 *     while (!tp_training_is_over(training) && tp_training_step(training, &step, &err) == TP_OK)
 *         printf("%lld: %g\n", (long long)step.step, step.loss);
 *     tp_training_close(training, &result, &err);
 *
 * A step is all of one: its data, forward and backward passes of its micro-batches, the loss scale
 * of float16, the check for numbers that are not finite and for spikes with what the recipe says
 * about them (stop, skip, restore), clipping, the update, its record, and a validation or a
 * checkpoint that is due. */
typedef struct tp_training tp_training;

/* How a step ended.  Later versions add at the end. */
typedef struct {
    size_t size;                /* sizeof(tp_training_step_result), set by the caller */
    int64_t step, max_steps;    /* step: done so far */
    double loss, grad_norm, lr; /* as metrics.jsonl has them; NaN is a result */
    double loss_scale;          /* of float16; 0: there is none */
    double seconds;
    int64_t trained_tokens, updates; /* updates: of the optimizer */
    bool skipped;                    /* an update was left out: not finite, or a spike */
    bool overflowed;                 /* ... by the loss scale, which is smaller now */
    bool restored;                   /* the run went back to a checkpoint */
    bool is_last;                    /* none follows */
} tp_training_step_result;

/* Everything before the first step; config, overrides, options and errors as of
 * tp_training_run().  All calls for one training come from one thread. */
TP_API TP_CHECKED tp_status tp_training_open(const char *config, const char *const *overrides,
                                             size_t n_overrides, const tp_training_options *options,
                                             tp_training **ret, tp_error *err);
/* All steps are done, or one failed: tp_training_close() is what is left. */
TP_API bool tp_training_is_over(const tp_training *training);
/* `ret` may be NULL.  TP_ERR_NUMERIC and TP_ERR_INTERRUPTED as configured or asked; after a failure
 * every further step fails alike.  After an error `ret` says how far the run is, too; figures of a
 * step that was not begun are NaN. */
TP_API TP_CHECKED tp_status tp_training_step(tp_training *training, tp_training_step_result *ret,
                                             tp_error *err);
/* The end of the run, and of `training` whatever the status, which is the run's.  One with steps
 * left is saved where it stands, goes on with options.resume, and is no failure.  `ret` may be
 * NULL. */
TP_API TP_CHECKED tp_status tp_training_close(tp_training *training, tp_training_result *ret,
                                              tp_error *err);

/* A run with all that a person sees of it, as text: what `temper train` does. */
typedef struct {
    size_t size;      /* sizeof(tp_training_screen) */
    const char *mode; /* auto, block (redrawn in place), plain, json or quiet; NULL: as the recipe's
                         `progress` says */
    bool is_terminal; /* its cursor can be moved: what auto means */
    bool colour;
    bool resume;
    /* Called in the thread that called; all may be NULL.  `note`: remarks that are not part of the
     * output.  `columns`: of the screen, now. */
    void (*print)(void *user, const char *text, size_t n);
    void (*note)(void *user, const char *text);
    int (*columns)(void *user);
    bool (*should_stop)(void *user);
    void *user;
} tp_training_screen;

/* tp_training_run() in front of a screen; it measures this machine first where that was never
 * done. */
TP_API TP_CHECKED tp_status tp_training_show(const char *config, const char *const *overrides,
                                             size_t n_overrides, const tp_training_screen *screen,
                                             tp_training_result *ret, tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
