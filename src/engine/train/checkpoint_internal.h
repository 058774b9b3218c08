/* checkpoint_internal.h - what saving and loading a checkpoint share. */
#ifndef TP_ENGINE_TRAIN_CHECKPOINT_INTERNAL_H
#define TP_ENGINE_TRAIN_CHECKPOINT_INTERNAL_H

#include "engine/train/checkpoint.h"

enum { TP_MASTER_NAME = 512 };

/* What a weight in f32 is called beside a model that is stored in another type. */
const char *tp_master_name(const tp_tensor *weight, char out[TP_MASTER_NAME]);

/* manifest.json of what lies in `folder`, by the first rank, when all files are there.  Hashes come
 * from the ranks that wrote them, which know them (`sums`); a piece that several wrote together is
 * read by one of `among` (a rank that writes nothing has count 0).  Every rank calls it. */
TP_CHECKED tp_status tp_manifest_write(const char *folder, tp_comm *comm, tp_shard among,
                                       int64_t step, const tp_file_sums *sums, uint64_t *ret_bytes,
                                       tp_error *err);

#endif
