/* shadows.c - copies of the weights, made anew from their masters: rounded, in another layout, or
 * gathered where ranks keep parts of them. */
#include <stdlib.h>

#include "base/platform.h"
#include "engine/exec/exec.h"

enum { GATHERED = 1 << 18 }; /* elements at a time */

static tp_operand operand_of(const tp_tensor *state)
{
    return (tp_operand){.span = state->span,
                        .dtype = state->dtype,
                        .rank = state->rank,
                        .dim = {state->dim[0], state->dim[1]},
                        .stride = state->rank == 2 ? state->dim[1] : 1};
}

/* All of what ranks keep in parts or slices, at another place. */
static tp_operand whole_operand(const tp_tensor *state, tp_span place)
{
    tp_operand x = operand_of(state);
    x.span = place;
    x.dim[0] = tp_tensor_dim(state, 0);
    x.dim[1] = tp_tensor_dim(state, 1);
    x.stride = state->rank == 2 ? x.dim[1] : 1;
    return x;
}

/* What this rank holds, as a vector; empty: dim[0] is 0. */
static tp_operand held_operand(const tp_tensor *state)
{
    size_t begin, end;
    tp_tensor_held(state, &begin, &end);
    return (tp_operand){.span = state->span,
                        .dtype = state->dtype,
                        .rank = 1,
                        .dim = {(int64_t)(end - begin), 1},
                        .stride = 1};
}

static tp_status convert(const tp_tensor *copy, tp_operand from, tp_operand to, tp_device *device,
                         tp_error *err)
{
    bool has_rows = copy->layout == TP_LAYOUT_ROWS || copy->layout == TP_LAYOUT_WHOLE;
    tp_launch make = {
        .op = has_rows ? TP_OP_cast : TP_OP_pack_panels,
        .n_in = 1,
        .n_out = 1,
        .threads = (uint16_t)tp_device_threads(device),
        .attrs.transposed = copy->layout == TP_LAYOUT_PANELS_TRANSPOSED,
        .in[0] = from,
        .out[0] = to,
    };
    make.kernel = tp_kernel_find(device, &make);
    return tp_device_submit(device, &make, 1, err);
}

/* All of a weight whose parts the ranks keep. */
static tp_status gather(const tp_tensor *weight, tp_span to, tp_error *err)
{
    size_t n = tp_tensor_count(weight), size = tp_dtype_size(weight->dtype);
    TP_FREED char *some = malloc(GATHERED * size);
    TP_HAVE(some);
    for (size_t at = 0; at < n; at += GATHERED) {
        size_t bytes = TP_MIN((size_t)GATHERED, n - at) * size;
        TP_TRY(tp_tensor_read(weight, at * size, some, bytes, err));
        TP_TRY(tp_span_write((tp_span){to.buffer, to.offset + at * size}, some, bytes, err));
    }
    return TP_OK;
}

static tp_status gather_copy(const tp_tensor *copy, const tp_tensor *weight, tp_buffer *room,
                             tp_device *device, tp_error *err)
{
    if (copy->layout == TP_LAYOUT_WHOLE && copy->dtype == weight->dtype)
        return gather(weight, copy->span, err);
    tp_operand from = whole_operand(weight, (tp_span){room, 0});
    TP_TRY(gather(weight, from.span, err));
    return convert(copy, from, operand_of(copy), device, err);
}

static tp_status refresh(const tp_states *states, const tp_tensor *copy, tp_device *device,
                         tp_error *err)
{
    const tp_tensor *weight = tp_states_find(states, copy->of);
    if (!copy->keeps_part)
        return convert(copy, operand_of(weight), operand_of(copy), device, err);
    tp_operand from = held_operand(weight);
    return from.dim[0] ? convert(copy, from, held_operand(copy), device, err) : TP_OK;
}

/* Of a slice, rows are a copy of the slice; what a generator reads is of all. */
static bool is_gathered(const tp_states *states, const tp_tensor *copy)
{
    if (copy->role != TP_ROLE_COPY || copy->keeps_part)
        return false;
    const tp_tensor *weight = tp_states_find(states, copy->of);
    return weight->keeps_part || (tp_is_sliced(weight) && copy->layout != TP_LAYOUT_ROWS);
}

size_t tp_gathered_room(const tp_states *states)
{
    size_t most = 0;
    for (size_t i = 0; i < states->n; i++) {
        const tp_tensor *copy = &states->items[i];
        if (!is_gathered(states, copy))
            continue;
        const tp_tensor *weight = tp_states_find(states, copy->of);
        if (copy->layout != TP_LAYOUT_WHOLE || copy->dtype != weight->dtype)
            most = TP_MAX(most, tp_tensor_count(weight) * tp_dtype_size(weight->dtype));
    }
    return most;
}

size_t tp_gathered_bytes(const tp_states *states)
{
    size_t bytes = 0;
    for (size_t i = 0; i < states->n; i++)
        bytes += is_gathered(states, &states->items[i]) ? tp_tensor_room(&states->items[i]) : 0;
    return bytes;
}

static tp_status refresh_gathered(const tp_states *states, tp_device *device, tp_error *err)
{
    tp_buffer *room = NULL;
    size_t bytes = tp_gathered_room(states);
    if (bytes)
        TP_TRY(tp_buffer_alloc(device, TP_MEM_WORKSPACE, bytes, &room, err));
    tp_status status = TP_OK;
    for (size_t i = 0; i < states->n && status == TP_OK; i++) {
        const tp_tensor *copy = &states->items[i];
        if (is_gathered(states, copy) && copy->span.buffer)
            status = gather_copy(copy, tp_states_find(states, copy->of), room, device, err);
    }
    if (status == TP_OK)
        status = tp_device_wait(device, err);
    tp_buffer_free(room);
    return status;
}

tp_status tp_refresh_shadows(const tp_states *states, tp_device *device, bool gathers,
                             tp_error *err)
{
    for (size_t i = 0; i < states->n; i++) {
        const tp_tensor *copy = &states->items[i];
        if (copy->role == TP_ROLE_COPY && copy->span.buffer && !is_gathered(states, copy))
            TP_TRY(refresh(states, copy, device, err));
    }
    if (gathers)
        TP_TRY(refresh_gathered(states, device, err));
    return tp_device_wait(device, err);
}
