/* states.h - the persistent tensors of a run, by name.
 *
 * Weights "model.embed_tokens.weight", their gradients "grad.<name>", moments
 * "adam_m.<name>" and "adam_v.<name>", low-precision shadows "<name>.bf16",
 * constants "rope.table".  Graphs refer to them by name, so training, evaluation
 * and generation share one copy. */
#ifndef TP_ENGINE_DEVICE_STATES_H
#define TP_ENGINE_DEVICE_STATES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "engine/device/device.h"
#include "engine/device/dtype.h"

typedef struct {
    const char *name;
    tp_dtype dtype;
    tp_mem_kind kind;
    uint8_t rank;
    int64_t dim[2]; /* dim[1] = 1 when rank is 1 */
    size_t bytes;
    tp_span span;   /* row-major; no buffer until tp_states_alloc() */
    bool is_inside; /* another one's buffer holds it */
} tp_state;

typedef struct {
    tp_arena arena;
    tp_state *items; /* in the order they were declared */
    size_t n, cap;
    uint32_t *slots; /* open-addressing index by name */
    size_t n_slots;
} tp_states;

TP_CHECKED tp_status tp_states_init(tp_states *states, tp_error *err);
void tp_states_release(tp_states *states);

/* Declare a tensor; declaring it again with the same type is fine, with another
 * an error.  Nothing is allocated yet. */
TP_CHECKED tp_status tp_states_declare(tp_states *states, const char *name, tp_dtype dtype,
                                       uint8_t rank, const int64_t *dim, tp_mem_kind kind,
                                       tp_error *err);
/* NULL when there is none.  The pointer is valid until the next declaration. */
tp_state *tp_states_find(const tp_states *states, const char *name);

/* Allocate (zeroed) on `device` all that has no memory yet. */
TP_CHECKED tp_status tp_states_alloc(tp_states *states, tp_device *device, tp_error *err);

/* Part of a tensor, from and to the host: `source` is a tp_state (as tp_read_fn has it). */
TP_CHECKED tp_status tp_state_read(const void *source, size_t offset, void *to, size_t bytes,
                                   tp_error *err);
TP_CHECKED tp_status tp_state_write(const tp_state *state, size_t offset, const void *from,
                                    size_t bytes, tp_error *err);

/* Bytes by kind, allocated or not. */
void tp_states_bytes(const tp_states *states, size_t ret_bytes[TP_MEM_KINDS]);

#endif
