#include "engine/train/trainer_internal.h"
const algorithm tp_algorithm_dpo = {0};
