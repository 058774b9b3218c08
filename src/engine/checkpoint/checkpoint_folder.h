/* checkpoint_folder.h - the checkpoints of a run as files: whose they are, which are whole, where
 * the model is that a user means, which may go.  engine/train/checkpoint.h saves and loads them. */
#ifndef TP_ENGINE_CHECKPOINT_CHECKPOINT_FOLDER_H
#define TP_ENGINE_CHECKPOINT_CHECKPOINT_FOLDER_H

#include "engine/checkpoint/run_record.h"
#include "engine/device/dtype.h"

enum { TP_STEP_HISTORY = 128 };

/* The last numbers of a series, a ring; see train/guards.h. */
typedef struct {
    double v[TP_STEP_HISTORY];
    int64_t n; /* ever */
} tp_step_history;

typedef struct {
    int64_t step;    /* steps done */
    int64_t updates; /* of the optimizer: steps less the skipped ones */
    int64_t skipped; /* steps passed over so far: not finite, or a spike of the loss */
    int64_t tokens;  /* trained tokens so far */
    int64_t prompts; /* rollouts: prompts drawn so far, which is where to go on */
    uint64_t seed;
    double metric; /* what keep_top_k compares; NaN = none */
    double best_metric;
    double val_loss, val_accuracy; /* of the last validation; NaN = none */
    double last_loss, best_reward; /* of the last step; rollouts: of all */
    double lr_factor;              /* that alarms set; 1: rates are as scheduled */
    int64_t skipped_in_row;        /* such steps since the last update */
    int64_t overflows;             /* steps left out by the loss scaler */
    int64_t unscheduled;           /* steps without an update: schedules do not count them */
    int64_t restores;              /* times that the run went back to a checkpoint */
    double loss_scale;             /* 0: there is none */
    int64_t growth_tracker;        /* of the loss scaler */
    tp_step_history norms, losses; /* where clipping or the policy for spikes asks for them */
    int64_t best_step;
    tp_dtype model_dtype;       /* of model/ in the checkpoint; filled by tp_checkpoint_load() */
    char model_fingerprint[33]; /* shapes and names of the weights */
    char base_fingerprint[33];  /* of an adapter's frozen base: its numbers; "": drawn or none */
    char data_fingerprint[33];  /* what the order of the data depends on */
    char run_id[TP_RUN_ID];     /* the run's identity, ""; written before runs had one */
    char run_name[TP_RUN_NAME]; /* for people */
    char optimizer[32];         /* "AdamW" */
    bool is_unvalidated;        /* the validation behind the step was interrupted: it comes first */
    bool is_between;            /* saved between two of save_period: at an end, or for an alarm */
    char goal_metric[16];       /* of a validation that ended the run before its last step; "" */
    double goal_value;
    char settings[1024]; /* that came into force under way, "key=value key=value"; mostly "" */
} tp_train_state;

/* Before a run uses a folder for its checkpoints: lock it (*ret_lock is closed to let go;
 * NULL: it is locked), and delete what interrupted saves left.  A run that begins anew takes no
 * folder with checkpoints in it, one that resumes none with those of another run. */
TP_CHECKED tp_status tp_checkpoint_check_claim(const char *root, const char *run_id, bool resume,
                                               tp_error *err); /* changes nothing */
TP_CHECKED tp_status tp_checkpoint_claim(const char *root, const char *run_id, bool resume,
                                         int *ret_lock, tp_error *err);

/* The newest checkpoint of the run (NULL: any) that verifies; ret_path is empty when there is
 * none.  Those that do not are reported through the log and passed over; ret_steps (may be NULL)
 * counts them, too. */
TP_CHECKED tp_status tp_checkpoint_find(const char *root, const char *run_id, tp_buf *ret_path,
                                        size_t *ret_steps, tp_error *err);
/* The state of the newest checkpoint that has a readable one. */
TP_CHECKED tp_status tp_checkpoint_owner(const char *root, tp_train_state *ret, bool *ret_found,
                                         tp_error *err);

/* What a user means by a model: a Hugging Face folder, a checkpoint, or the folder of a run
 * (then its newest checkpoint that verifies); the folder with config.json is appended to
 * *ret_folder. */
TP_CHECKED tp_status tp_checkpoint_find_model(const char *path, tp_buf *ret_folder, tp_error *err);

TP_CHECKED tp_status tp_checkpoint_read_state(const char *path, tp_train_state *ret_state,
                                              tp_error *err);
/* Every file of the manifest is there with the right size and contents. */
TP_CHECKED tp_status tp_checkpoint_verify(const char *path, tp_error *err);

/* The steps that have a folder, newest first, valid or not; free() them. */
TP_CHECKED tp_status tp_checkpoint_list(const char *root, int64_t **ret_steps, size_t *ret_n,
                                        tp_error *err);

/* Of the run's checkpoints delete all but the newest and the `keep` best by metric (without
 * metrics: the newest `keep`), and leftovers of interrupted saves.  What was saved between two of
 * the period takes no place of those and goes when it is the newest no more.  keep <= 0 keeps
 * all. */
TP_CHECKED tp_status tp_checkpoint_prune(const char *root, const char *run_id, int64_t keep,
                                         bool higher_is_better, tp_error *err);

#endif
