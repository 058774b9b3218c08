/* checkpoint_internal.h - what saving and loading a checkpoint share. */
#ifndef TP_ENGINE_TRAIN_CHECKPOINT_INTERNAL_H
#define TP_ENGINE_TRAIN_CHECKPOINT_INTERNAL_H

#include "engine/train/checkpoint.h"

enum { TP_MASTER_NAME = 512 };

/* What a weight in f32 is called beside a model that is stored in another type. */
const char *tp_master_name(const tp_tensor *weight, char out[TP_MASTER_NAME]);

/* manifest.json of what lies in `folder`, by the first rank, when all files are there.  Their
 * hashes come from the ranks that write them, `among` (a rank that does not has count 0).  Every
 * rank calls it. */
TP_CHECKED tp_status tp_manifest_write(const char *folder, tp_comm *comm, tp_shard among,
                                       int64_t step, uint64_t *ret_bytes, tp_error *err);

#endif
