/* megatron.h - NeMo RL's other training backend keeps its optimizer and its schedule in a
 * section of its own, policy.megatron_cfg.  While that is enabled they are what counts. */
#ifndef TP_ENGINE_TRAIN_MEGATRON_H
#define TP_ENGINE_TRAIN_MEGATRON_H

#include "config/config.h"

/* Before binding: write them as policy.optimizer, policy.scheduler and policy.max_grad_norm. */
TP_CHECKED tp_status tp_megatron_adopt(tp_config *config, tp_error *err);

#endif
