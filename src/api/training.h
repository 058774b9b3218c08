/* training.h - a training with the sinks that its recipe names: tp_train_run() and no more. */
#ifndef TP_API_TRAINING_H
#define TP_API_TRAINING_H

#include "engine/train/trainer.h"
#include "temper/train.h"

TP_CHECKED tp_status tp_train_with_sinks(const tp_config *config, const tp_train_options *options,
                                         const tp_train_hooks *hooks, tp_train_result *ret,
                                         tp_error *err);
/* What a caller is told of it. */
void tp_training_result_write(tp_training_result *ret, const tp_train_result *result);

/* For who opens a recipe again and again: standard input ("-") would be empty the second time. */
TP_CHECKED tp_status tp_recipe_check_again(const char *config, tp_error *err);

#endif
