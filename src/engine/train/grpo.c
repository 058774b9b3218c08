#include "engine/train/trainer_internal.h"
const algorithm tp_algorithm_grpo = {0};
