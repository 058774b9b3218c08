/* algorithms.c - every training algorithm, one row each. */
#include "engine/algorithms/algorithms.h"

const tp_algorithm *const tp_algorithms[] = {&tp_algorithm_sft, &tp_algorithm_dpo,
                                             &tp_algorithm_grpo, NULL};
