/* safetensors.h - the tensor file of the Hugging Face world.
 *
 * u64 header length, JSON header, tensor bytes.  Everything is validated before
 * anything is allocated by it: no holes, no overlaps, sizes match shapes, the last
 * tensor ends the file, no name appears twice.  Errors name the file and the tensor. */
#ifndef TP_ENGINE_MODEL_SAFETENSORS_H
#define TP_ENGINE_MODEL_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/files.h"
#include "engine/device/tensor.h"

typedef struct {
    const char *name;
    const char *dtype_name; /* as in the file: "BF16" */
    tp_dtype dtype;         /* valid when known */
    bool is_known;          /* the dtype is one of tp_dtype */
    int rank;               /* 0: a scalar */
    int64_t dim[8];
    size_t bytes;
    const void *data; /* into the mapping; aligned to nothing in general */
} tp_tensor_entry;

typedef struct tp_safetensors tp_safetensors;

TP_CHECKED tp_status tp_safetensors_open(const char *path, tp_safetensors **ret, tp_error *err);
/* The same over memory (for tests and fuzzing); the bytes must outlive it. */
TP_CHECKED tp_status tp_safetensors_parse(const char *name, const void *data, size_t n,
                                          tp_safetensors **ret, tp_error *err);
void tp_safetensors_close(tp_safetensors *st);             /* NULL is a no-op */
const char *tp_safetensors_name(const tp_safetensors *st); /* the path it was opened by */
size_t tp_safetensors_count(const tp_safetensors *st);
/* In the order of the data. */
const tp_tensor_entry *tp_safetensors_at(const tp_safetensors *st, size_t i);
const tp_tensor_entry *tp_safetensors_find(const tp_safetensors *st, const char *name);
/* Where in the file its data begins. */
uint64_t tp_safetensors_offset(const tp_safetensors *st, const tp_tensor_entry *entry);

const char *tp_safetensors_dtype_name(tp_dtype dtype); /* "BF16" */

/* Copy `bytes` from `offset` on of what `source` stands for. */
typedef tp_status (*tp_read_fn)(const void *source, size_t offset, void *to, size_t bytes,
                                tp_error *err);

/* One tensor to write.  `source` holds `src_dtype` and is converted to `dtype` on
 * the way (any two of f32, bf16, f16, f64; others only to themselves). */
typedef struct {
    const char *name;
    tp_dtype dtype; /* in the file */
    int rank;       /* 0, 1 or 2 */
    int64_t dim[2];
    const void *source; /* memory, or what `read` reads from */
    tp_dtype src_dtype;
    tp_read_fn read; /* (optional) */

    /* Where several write one file: the elements of the whole that this one writes, none where
     * they are equal, and the one that `source` begins with. */
    size_t begin, end, source_at;
    const tp_tensor *slice; /* (optional) and of those what this slice has, which is `source` */
    tp_shard
        among; /* (optional) and of those what lies in its pieces of the file, where all have
                  all: a piece (TP_FILE_PIECE) is hashed as it is written where one writes it */
} tp_tensor_out;

/* What `among.index` of those that write a file together, which are all ranks, writes of a state.
 */
tp_tensor_out tp_tensor_out_of(const tp_tensor *state, const char *name, tp_dtype dtype,
                               tp_shard among);

/* The file with these tensors, in the order of the format (dtype size descending,
 * then name) whatever order they come in: the bytes that the reference writer makes.
 * Synced, not renamed. */
TP_CHECKED tp_status tp_safetensors_write(const char *path, const tp_tensor_out *tensors, size_t n,
                                          tp_error *err);

/* The same by several.  One makes the file, in which the tensors are zeros; then each, and it as
 * well, fills in what it has of them: `tensors` may lack some, and their shapes do not matter. */
TP_CHECKED tp_status tp_safetensors_frame(const char *path, const tp_tensor_out *tensors, size_t n,
                                          tp_error *err);
TP_CHECKED tp_status tp_safetensors_fill(const char *path, const tp_tensor_out *tensors, size_t n,
                                         tp_error *err);

#endif
