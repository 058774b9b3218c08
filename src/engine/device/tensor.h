/* tensor.h - what a persistent tensor is, as a record.
 *
 * Weights "model.embed_tokens.weight", their gradients "grad.<name>", moments
 * "adam_m.<name>", compute copies "<name>.bf16" and "<name>.panels.bf16", the caches of
 * keys and values "kv.k.<layer>", constants "rope.table".  Names are for files and people, and
 * tell tensors apart; what a tensor is and which one it belongs to is in the other fields. */
#ifndef TP_ENGINE_DEVICE_TENSOR_H
#define TP_ENGINE_DEVICE_TENSOR_H

#include <stdbool.h>

#include "base/arena.h"
#include "engine/device/device.h"
#include "engine/device/dtype.h"

typedef enum {
    TP_ROLE_WEIGHT,
    TP_ROLE_GRADIENT,
    TP_ROLE_MOMENT,   /* what the optimizer keeps of a weight */
    TP_ROLE_COPY,     /* a weight as products read it: rounded, perhaps in another layout */
    TP_ROLE_CACHE,    /* keys or values, one row a block */
    TP_ROLE_ADAPTER,  /* trained in place of the weight it belongs to */
    TP_ROLE_CONSTANT, /* computed once */
    TP_ROLE_ERROR,    /* of a gradient, a row a rank: what it could not send yet */
    TP_ROLES
} tp_role;

typedef enum {
    TP_LAYOUT_ROWS,
    TP_LAYOUT_PANELS,            /* see pack_panels in ir/ops/linear.c */
    TP_LAYOUT_PANELS_TRANSPOSED, /* of a weight that is stored transposed */
    TP_LAYOUT_WHOLE              /* in rows, of a weight that is kept in parts */
} tp_layout;

/* Part `index` of `count` of the elements, as tp_shard_part() divides them; zeroed: the whole
 * tensor. */
typedef struct {
    int32_t index, count;
} tp_shard;

/* Part `index` of `count` along a dimension, of each of `groups` blocks of it that are as long as
 * one another (queries, keys and values of GPT-2 side by side); zeroed: the whole tensor.  Parts
 * have the same length, but for the last one. */
typedef struct {
    int32_t index, count;
    int32_t axis, groups;
    int64_t length; /* of the whole dimension */
} tp_tensor_slice;

struct tp_tensor;
/* What other ranks hold of a tensor that is kept in parts: `count` elements from `first` on. */
typedef struct {
    tp_status (*read)(void *user, const struct tp_tensor *tensor, size_t first, size_t count,
                      void *to, tp_error *err);
    void *user;
} tp_part_reader;

typedef struct tp_tensor {
    const char *name;
    const char *of; /* gradient, moment, copy, adapter: the weight's name; may be NULL */
    tp_role role;
    tp_layout layout;
    tp_shard shard;
    tp_tensor_slice slice; /* dim is of the slice */
    tp_dtype dtype;
    uint8_t rank;   /* 1 or 2 */
    int64_t dim[2]; /* dim[1] = 1 when rank is 1 */

    /* (optional) the tensor whose memory this is a part of, from that element on */
    const char *within;
    size_t within_at;

    /* Set by tp_states. */
    bool is_inside;               /* another one's buffer holds it */
    bool keeps_part;              /* dim is of the whole, of which only `shard` is in memory */
    int32_t copies;               /* so many ranks, one behind the other, keep that part; 0: one */
    size_t bytes;                 /* in memory */
    const tp_part_reader *reader; /* (optional) of what is not */
    tp_span span;                 /* no buffer until tp_states_alloc() */
} tp_tensor;

/* The f32 tensor of a weight's shape that belongs to it, called "<prefix>.<its name>"; the name is
 * in the arena.  Its gradient is "grad.<name>". */
tp_tensor tp_tensor_beside(const tp_tensor *weight, tp_role role, const char *prefix,
                           tp_arena *arena);
tp_tensor tp_tensor_gradient(const tp_tensor *weight, tp_arena *arena);

/* Elements [*ret_begin, *ret_end) of n: parts of whole cache lines, as equal as those are; the
 * last ones may have less, or nothing. */
void tp_shard_part(size_t n, tp_shard shard, size_t *ret_begin, size_t *ret_end);
size_t tp_tensor_count(const tp_tensor *tensor);       /* elements of the whole */
int64_t tp_tensor_dim(const tp_tensor *tensor, int d); /* of the whole */
/* The elements of the whole that are in memory: from *ret_begin to *ret_end; all unless it keeps a
 * part.  Of a slice those that it has, counted by themselves. */
void tp_tensor_held(const tp_tensor *tensor, size_t *ret_begin, size_t *ret_end);
/* Where `among.count` ranks save a tensor of `n` elements together: what rank `among.index` writes
 * of it, which is in its memory.  Parts are with ranks that follow one another; what several have
 * is divided among them.  Of a slice: the range of the whole in which it is written. */
void tp_tensor_share(const tp_tensor *tensor, size_t n, tp_shard among, size_t *ret_begin,
                     size_t *ret_end);
/* A part of `whole`, of the slice that it is, in its memory, called "<its name>.part": a vector.
 * False when it is empty. */
bool tp_tensor_part(const tp_tensor *whole, tp_shard shard, tp_arena *arena, tp_tensor *ret);

/* ---- slices ---- */

/* What part `index` has of a dimension of so many in all, or of one of its groups. */
void tp_slice_part(tp_tensor_slice slice, int64_t length, int64_t *ret_begin, int64_t *ret_end);
/* A tensor's dimension as the slice has it. */
int64_t tp_slice_length(tp_tensor_slice slice);
bool tp_is_sliced(const tp_tensor *tensor);

/* `n` elements that lie together in the whole, from `at` on, and in the slice, from `own` on. */
typedef struct {
    size_t at, own, n;
} tp_slice_run;
/* The next of those that are in memory of its slice, or of all of a tensor that is not sliced: all,
 * or the part that it keeps; from element *from of the whole on and before `end`; *from gets behind
 * it. False: there is none. */
bool tp_slice_next_held(const tp_tensor *tensor, size_t *from, size_t end, tp_slice_run *ret);

const char *tp_role_name(tp_role role);             /* "weight", ... */
bool tp_role_parse(const char *name, tp_role *ret); /* false when unknown */
tp_mem_kind tp_role_memory(tp_role role);           /* what its bytes are charged to */
const char *tp_layout_name(tp_layout layout);       /* "rows", "panels", "panels_t", "whole" */
bool tp_layout_parse(const char *name, tp_layout *ret);

#endif
