/* states.h - the persistent tensors of a run.
 *
 * Graphs refer to them by name, so training, evaluation and generation share one copy. */
#ifndef TP_ENGINE_DEVICE_STATES_H
#define TP_ENGINE_DEVICE_STATES_H

#include "base/arena.h"
#include "base/error.h"
#include "engine/device/tensor.h"

typedef struct {
    tp_arena arena;
    tp_tensor *items; /* in the order they were declared */
    size_t n, cap;
    uint32_t *slots; /* open-addressing index by name */
    size_t n_slots;
    tp_shard shard; /* of tensors that are kept in parts: those of these roles, as bits */
    tp_shard rows;  /* of those with a row for each rank */
    uint32_t parts;
    int32_t copies;        /* so many ranks, one behind the other, keep the same part; 0: one */
    tp_part_reader reader; /* of what others hold of them: all ranks read the same, or one asks */
} tp_states;

TP_CHECKED tp_status tp_states_init(tp_states *states, tp_error *err);
void tp_states_release(tp_states *states);

/* Tensors with these roles (bits) that are declared from here on and lie in rows are kept in
 * parts: of each, `shard` is in memory; of errors the row of rank rows.index, of rows.count. */
void tp_states_keep_parts(tp_states *states, tp_shard shard, tp_shard rows, uint32_t roles);

/* Declare a tensor (its record is copied); declaring it again with the same type is fine, with
 * another an error, but that a slice of it may be declared.  Nothing is allocated yet. */
TP_CHECKED tp_status tp_states_declare(tp_states *states, const tp_tensor *tensor, tp_error *err);
/* Tensors of this role go, with their memory. */
void tp_states_drop(tp_states *states, tp_role role);
/* NULL when there is none.  The pointer is valid until the next declaration. */
tp_tensor *tp_states_find(const tp_states *states, const char *name);

/* Allocate (zeroed) on `device` all that has no memory yet. */
TP_CHECKED tp_status tp_states_alloc(tp_states *states, tp_device *device, tp_error *err);

/* Part of a tensor, from and to the host: `source` is a tp_tensor (as tp_read_fn has it).  Of one
 * that is kept in parts the others tell what they hold, and what is written elsewhere is left
 * out. */
TP_CHECKED tp_status tp_tensor_read(const void *source, size_t offset, void *to, size_t bytes,
                                    tp_error *err);
TP_CHECKED tp_status tp_tensor_write(const tp_tensor *state, size_t offset, const void *from,
                                     size_t bytes, tp_error *err);

/* The same of what this rank holds. */
TP_CHECKED tp_status tp_tensor_read_held(const void *source, size_t offset, void *to, size_t bytes,
                                         tp_error *err);

/* Bytes that it takes in memory, allocated or not. */
size_t tp_tensor_room(const tp_tensor *tensor);
/* The same of all, by kind. */
void tp_states_bytes(const tp_states *states, size_t ret_bytes[TP_MEM_KINDS]);

#endif
