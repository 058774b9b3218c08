/* trainer_internal.h - the parts of the trainer, shared between its files.
 *
 *     setup.c    options -> data, model, session, run folder
 *     trainer.c  the loop
 *     record.c   metrics.jsonl, run.json, events
 *     profile.c  the trace of chosen steps */
#ifndef TP_ENGINE_TRAIN_TRAINER_INTERNAL_H
#define TP_ENGINE_TRAIN_TRAINER_INTERNAL_H

#include "engine/data/dataset.h"
#include "engine/data/loader.h"
#include "engine/train/checkpoint.h"
#include "engine/train/custom_metrics.h"
#include "engine/train/profile.h"
#include "engine/train/run.h"
#include "engine/train/schedule.h"
#include "engine/train/trainer.h"
#include "trace/trace.h"

enum { RECENT_STEPS = 20 };

typedef struct {
    const tp_config *config;
    const tp_train_options *o;
    const tp_train_hooks *hooks;

    tp_model *model;
    tp_session *session;
    tp_tokenizer *tokenizer;
    tp_dataset *data, *val_data; /* val_data: a file of its own, or NULL */
    tp_loader *loader, *val_loader;
    tp_run *run;
    tp_schedule schedule;
    char tokenizer_dir[2100]; /* folder whose files go into checkpoints; "" = none */
    char checkpoint_dir[2100];
    tp_dtype file_dtype; /* of the weights that a checkpoint's model/ stores */

    tp_phases phases;
    tp_train_state state;
    int64_t first_step, max_steps;
    int64_t skipped_in_row;
    int64_t last_checkpoint_step;
    size_t checkpoint_bytes;
    double started_wall, started_s;
    double val_loss;
    double last_loss;
    double recent_step_s[RECENT_STEPS];
    int n_recent;
    int64_t used_tokens, padded_tokens; /* of this attempt */
    int64_t trained_tokens;
    double model_flops;   /* useful work of this attempt: 3 x forward over used tokens */
    double step_phase_s;  /* seconds in steps proper (data to optimizer) */
    size_t planned_peak;
    double last_step_s;
    tp_profile profile;
    tp_custom_metrics custom;
} trainer;

/* One finished step, for records. */
typedef struct {
    double loss, grad_norm, lr, seconds, wait_s, flops;
    int64_t trained, used, padded, sequences;
    uint32_t n_micro;
    bool skipped;
} step_result;

/* setup.c */
TP_CHECKED tp_status tp_trainer_open(trainer *t, tp_error *err);
void tp_trainer_close(trainer *t);
void tp_trainer_notice(const trainer *t, const char *fmt, ...) TP_PRINTF(2, 3);

/* profile.c */
void tp_profile_open(trainer *t, int n_workers);
TP_CHECKED tp_status tp_profile_begin_step(trainer *t, tp_error *err);
TP_CHECKED tp_status tp_profile_end_step(trainer *t, const step_result *r, tp_error *err);
void tp_profile_worker(trainer *t, tp_worker worker); /* who works from here on */
void tp_profile_close(trainer *t);

/* record.c */
tp_train_event tp_trainer_event(trainer *t, tp_event_kind kind);
void tp_trainer_send(const trainer *t, const tp_train_event *event);
void tp_trainer_record_step(trainer *t, const step_result *r);
void tp_trainer_record_validation(trainer *t, double loss, double seconds, int64_t tokens);
TP_CHECKED tp_status tp_trainer_write_run_json(trainer *t, const char *state, tp_error *err);

/* Useful floating-point work of a step: three times the forward pass over tokens of the
 * data, causal attention, no recomputation, no padding. */
double tp_trainer_step_flops(const tp_model *model, int64_t tokens, double sum_of_squares);

#endif
