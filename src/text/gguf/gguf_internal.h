/* gguf_internal.h - what a file that was read is made of. */
#ifndef TP_TEXT_GGUF_GGUF_INTERNAL_H
#define TP_TEXT_GGUF_GGUF_INTERNAL_H

#include "base/arena.h"
#include "base/files.h"
#include "text/gguf/gguf.h"

struct tp_gguf {
    char *name;
    tp_map_file map; /* zero when over memory of the caller */
    const char *data;
    size_t len;
    uint64_t n_keys, n_tensors;
    tp_gguf_value *keys;
    const tp_gguf_value **keys_sorted;
    tp_gguf_tensor *tensors;
    const tp_gguf_tensor **tensors_sorted;
    tp_arena names; /* of the tensors */
};

/* For sorting and searching arrays of pointers. */
int tp_gguf_by_key(const void *a, const void *b);
int tp_gguf_by_name(const void *a, const void *b);

#endif
