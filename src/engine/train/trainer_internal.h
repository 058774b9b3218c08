/* trainer_internal.h - the parts of the trainer, shared between its files.
 *
 *     attempt.c  a run that begins or goes on: checkpoints, what has changed
 *     ranks.c    several processes: what they agree on
 *     graphs.c   options -> all graphs of the run
 *     plan.c     what they take, before the run
 *     setup.c    options -> model, graphs with memory, run folder, as stages
 *     check.c    the same stages, each told apart; unused.c  keys of other algorithms
 *     stability.c  an update, or why there is none; bad_step.c  what is kept of it then
 *     scale.c    the loss scale of float16
 *     memory_watch.c  less memory while the run goes on
 *     trainer.c  the loop, and what every algorithm does in it
 *     events.c   what observers are told; record.c  metrics.jsonl, run.json
 *     profile.c  the trace of chosen steps */
#ifndef TP_ENGINE_TRAIN_TRAINER_INTERNAL_H
#define TP_ENGINE_TRAIN_TRAINER_INTERNAL_H

#include "engine/train/algorithm.h"

/* No step is left to do. */
static inline bool tp_trainer_is_done(const trainer *t)
{
    uint64_t drawn = (uint64_t)t->state.prompts, epochs = (uint64_t)t->o->loop.max_num_epochs;
    bool is_drawn = t->prompts_per_epoch && drawn / t->prompts_per_epoch >= epochs;
    return t->state.step >= t->max_steps || is_drawn || t->reached_goal;
}

/* setup.c */
TP_CHECKED tp_status tp_trainer_open(trainer *t, tp_error *err);
/* All stages in their order, the algorithm's among them; returns how many. */
int tp_trainer_stages(const trainer *t, tp_trainer_stage ret[TP_STAGES]);
trainer tp_trainer_of(tp_config *config, const tp_train_options *options,
                      const tp_train_hooks *hooks);
void tp_trainer_close(trainer *t);

/* ranks.c */
/* Joins the other processes; `own` becomes the options that this rank runs with. */
TP_CHECKED tp_status tp_ranks_open(trainer *t, tp_train_options *own, tp_train_hooks *hooks,
                                   tp_error *err);
/* A stage on every rank; one rank of a host goes first where it may leave files to the others. */
TP_CHECKED tp_status tp_ranks_open_stage(trainer *t, const tp_trainer_stage *stage, tp_error *err);
/* Before the first step: all ranks are about to do the same. */
TP_CHECKED tp_status tp_ranks_compare(trainer *t, tp_error *err);
/* Whether any rank was asked to stop, or has `reason` to. */
TP_CHECKED tp_status tp_ranks_agree_to_stop(trainer *t, bool *reason, tp_error *err);
/* The first rank's `where` that is not empty. */
TP_CHECKED tp_status tp_ranks_join_text(trainer *t, char *where, size_t size, tp_error *err);
void tp_ranks_put(const trainer *t, tp_json_w *w); /* into run.json */

/* attempt.c: in this order */
TP_CHECKED tp_status tp_attempt_claim(trainer *t, tp_error *err); /* the folder of checkpoints */
/* Of a run that has not begun, a folder that was made for it goes. */
void tp_attempt_let_go(trainer *t);
/* Whether that could be, without claiming it. */
TP_CHECKED tp_status tp_attempt_check_claim(trainer *t, tp_error *err);
void tp_attempt_identify(trainer *t); /* the state is this run's */
/* Say and keep what another attempt was given than the one before. */
TP_CHECKED tp_status tp_attempt_compare(trainer *t, tp_error *err);
TP_CHECKED tp_status tp_attempt_resume(trainer *t, bool *ret_resumed, tp_error *err);
TP_CHECKED tp_status tp_attempt_write_config(trainer *t, tp_error *err);
/* Bad steps in a row: weights, optimizer and data as at the last checkpoint before them. */
TP_CHECKED tp_status tp_attempt_restore(trainer *t, tp_error *err);
bool tp_attempt_has_nothing_to_do(const trainer *t);
void tp_attempt_put(const trainer *t, const char *state, tp_json_w *w); /* into run.json */
/* unused.c */
TP_CHECKED tp_status tp_trainer_unused_keys(const trainer *t, tp_error *err);

/* stability.c */
TP_CHECKED tp_status tp_trainer_guard(trainer *t, tp_error *err); /* before the first step */
double
tp_trainer_watch(trainer *t); /* a step begins: seconds that it has; NaN: it is not watched */
void tp_trainer_watched(trainer *t, double seconds, double limit_s);

/* events.c: clocks of launches are of steps alone, not of validation or of a pass before the first;
 * graphs that are new have counted no steps. */
void tp_trainer_count_launches(const trainer *t, bool are_counted);
void tp_trainer_take_graphs(trainer *t);

/* scale.c */
bool tp_trainer_has_scaler(const trainer *t);
void tp_trainer_take_scale(trainer *t); /* the loss scale that the state says */
/* Behind a step: by whether its gradients overflowed. */
TP_CHECKED tp_status tp_trainer_rescale(trainer *t, bool overflowed, tp_error *err);

/* bad_step.c: what is kept of a step that was passed over */
typedef struct {
    const char *why, *action; /* "not finite", "the update is skipped" */
    char first[320];          /* what is wrong, in words */
    char gradients[512];      /* names of parameters whose gradients are not finite */
    char folder[4096];        /* "": it is not kept */
    uint32_t n_bad;           /* micro-batches with a result that is not finite */
    double spike;             /* NaN: the step is not finite */
} bad_step;
/* Look at gradients, then at every result of every micro-batch of the update again (`first` and
 * `gradients` of *ret); the batches go into the run's folder, if any more of them do. */
TP_CHECKED tp_status tp_bad_step_look(trainer *t, uint32_t n_micro, bad_step *ret, tp_error *err);
void tp_bad_step_record(trainer *t, const step_result *r, const bad_step *b);

/* profile.c */
void tp_profile_open(trainer *t, int n_workers);
TP_CHECKED tp_status tp_profile_begin_step(trainer *t, tp_error *err);
TP_CHECKED tp_status tp_profile_end_step(trainer *t, tp_error *err);
void tp_profile_close(trainer *t, bool together);
/* A subscriber of the metric bus: counters of the trace, while steps are recorded. */
void tp_profile_see_metrics(void *trainer, const tp_metric_record *record);

/* events.c */
tp_mem_stats tp_trainer_memory(const trainer *t); /* of this run alone */
double tp_trainer_mean_step(const trainer *t);    /* seconds; NaN before the first */
tp_train_event tp_trainer_event(trainer *t, tp_train_event_kind kind);

/* record.c */
/* What all launches so far would have taken on the machine's roofline; NaN: its ceilings are not
 * known. */
double tp_trainer_least_seconds(trainer *t);
void tp_trainer_record_step(trainer *t, const step_result *r);
TP_CHECKED tp_status tp_trainer_write_run_json(trainer *t, const char *state, tp_error *err);

/* Useful floating-point work of a step: three times the forward pass over tokens of the
 * data, causal attention, no recomputation, no padding. */
double tp_trainer_step_flops(const tp_model *model, int64_t tokens, double sum_of_squares);

#endif
