/* trainer_sources.h - data sections of the configuration as the trainer's files use them. */
#ifndef TP_ENGINE_TRAIN_TRAINER_SOURCES_H
#define TP_ENGINE_TRAIN_TRAINER_SOURCES_H

#include "engine/data/arithmetic.h"
#include "engine/data/loader.h"
#include "engine/train/options.h"

bool tp_trainer_is_arithmetic(const tp_train_options *o); /* data.train is the made-up corpus */
tp_loader_options tp_sft_loader_options(const tp_train_options *o, bool validation);
bool tp_sft_validates(const tp_train_options *o); /* there is something to validate with */
tp_arithmetic_options tp_trainer_arithmetic(const tp_train_options *o);

#endif
