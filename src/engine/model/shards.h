/* shards.h - the weight files of a folder: one model.safetensors, or the shards that
 * model.safetensors.index.json names. */
#ifndef TP_ENGINE_MODEL_SHARDS_H
#define TP_ENGINE_MODEL_SHARDS_H

#include "engine/model/safetensors.h"

typedef struct {
    tp_safetensors **files;
    size_t n;
} tp_shards;

/* Opens every file.  With an index, files and tensors that it names and that are not
 * there are listed in one error, and its file names must be plain ones. */
TP_CHECKED tp_status tp_shards_open(const char *folder, tp_shards *ret, tp_error *err);
void tp_shards_close(tp_shards *shards); /* zeroed is a no-op */

/* What an index says: called once for each tensor, in its order. */
typedef tp_status (*tp_shard_visit)(void *context, const char *tensor, const char *file,
                                    tp_error *err);
TP_CHECKED tp_status tp_shards_parse_index(const char *name, const char *text, size_t n,
                                           tp_shard_visit visit, void *context, tp_error *err);

#endif
