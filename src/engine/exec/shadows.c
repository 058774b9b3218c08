/* shadows.c - low-precision copies of the weights, made anew from their masters. */
#include "engine/exec/exec.h"

static tp_operand operand_of(const tp_tensor *state)
{
    return (tp_operand){.span = state->span,
                        .dtype = state->dtype,
                        .rank = state->rank,
                        .dim = {state->dim[0], state->dim[1]},
                        .stride = state->rank == 2 ? state->dim[1] : 1};
}

static tp_status refresh(const tp_states *states, const tp_tensor *copy, tp_device *device,
                         tp_error *err)
{
    tp_launch make = {
        .op = copy->layout == TP_LAYOUT_ROWS ? TP_OP_cast : TP_OP_pack_panels,
        .n_in = 1,
        .n_out = 1,
        .threads = (uint16_t)tp_device_threads(device),
        .attrs.transposed = copy->layout == TP_LAYOUT_PANELS_TRANSPOSED,
        .in[0] = operand_of(tp_states_find(states, copy->of)),
        .out[0] = operand_of(copy),
    };
    make.kernel = tp_kernel_find(device, &make);
    return tp_device_submit(device, &make, 1, err);
}

tp_status tp_refresh_shadows(const tp_states *states, tp_device *device, tp_error *err)
{
    for (size_t i = 0; i < states->n; i++)
        if (states->items[i].role == TP_ROLE_COPY && states->items[i].span.buffer)
            TP_TRY(refresh(states, &states->items[i], device, err));
    return tp_device_wait(device, err);
}
