/* algorithms.h - the rows of algorithms.c, each in a file of its own. */
#ifndef TP_ENGINE_ALGORITHMS_ALGORITHMS_H
#define TP_ENGINE_ALGORITHMS_ALGORITHMS_H

#include "engine/train/algorithm.h"

extern const tp_algorithm tp_algorithm_sft, tp_algorithm_dpo, tp_algorithm_grpo;

#endif
