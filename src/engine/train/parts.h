/* parts.h - tensors of which every rank has a part, read as one. */
#ifndef TP_ENGINE_TRAIN_PARTS_H
#define TP_ENGINE_TRAIN_PARTS_H

#include "engine/device/states.h"
#include "engine/exec/traffic.h"

/* For tp_part_reader, with the ranks as its user: where all ranks read the same. */
TP_CHECKED tp_status tp_parts_read_together(void *ranks, const tp_tensor *tensor, size_t first,
                                            size_t count, void *to, tp_error *err);

/* Elements of the tensor of which `part` is a part: those of the weight that it belongs to. */
size_t tp_parts_count(const tp_states *states, const tp_tensor *part);

#endif
