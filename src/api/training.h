/* training.h - a training with the sinks that its recipe names: tp_train_run() and no more. */
#ifndef TP_API_TRAINING_H
#define TP_API_TRAINING_H

#include "engine/train/trainer.h"
#include "temper/train.h"

/* The same, step by step.  There is one afterwards whatever the status, unless it is NULL: to be
 * ended, with the status so far where it has no loop. */
typedef struct tp_watched tp_watched;
TP_CHECKED tp_status tp_watched_begin(tp_config *config, const tp_train_options *options,
                                      const tp_train_hooks *hooks, tp_watched **ret, tp_error *err);
tp_train_loop *tp_watched_loop(const tp_watched *watched); /* NULL: it failed before */
TP_CHECKED tp_status tp_watched_end(tp_watched *watched, tp_status status, tp_training_result *ret,
                                    tp_error *err);

/* All of it. */
TP_CHECKED tp_status tp_train_with_sinks(tp_config *config, const tp_train_options *options,
                                         const tp_train_hooks *hooks, tp_training_result *ret,
                                         tp_error *err);

/* Ids of a recipe that the tokenizer of this model or folder lacks; nothing where it has none. */
TP_CHECKED tp_status tp_training_check_stops(const tp_config *config, const char *key,
                                             const tp_f64_list *ids, const char *tokenizer,
                                             tp_error *err);

/* What alarms, ids of tokens and the judgement at the end have to say of a recipe, before anything
 * starts. */
TP_CHECKED tp_status tp_training_check_rules(const tp_config *config,
                                             const tp_train_options *options, tp_error *err);

/* For who opens a recipe again and again: standard input ("-") would be empty the second time. */
TP_CHECKED tp_status tp_recipe_check_again(const char *config, tp_error *err);

#endif
