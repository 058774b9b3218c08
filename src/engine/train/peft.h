/* peft.h - the adapter that a configuration asks for: policy.peft, and NeMo RL's
 * policy.dtensor_cfg.lora_cfg, which means the same. */
#ifndef TP_ENGINE_TRAIN_PEFT_H
#define TP_ENGINE_TRAIN_PEFT_H

#include "engine/model/adapter.h"
#include "engine/train/options.h"

/* After binding: which of the two sections counts, and whether Temper does what it says. */
TP_CHECKED tp_status tp_peft_bind(const tp_config *config, tp_train_options *o, tp_error *err);
/* Attach what is asked for, and freeze the base of whatever adapter there is. */
TP_CHECKED tp_status tp_peft_attach(const tp_train_options *o, tp_model *model, tp_error *err);

#endif
