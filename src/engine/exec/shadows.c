/* shadows.c - low-precision copies of the weights, made anew from their masters. */
#include <string.h>

#include "engine/exec/exec.h"

static tp_operand operand_of(const tp_state *state)
{
    return (tp_operand){.span = state->span,
                        .dtype = state->dtype,
                        .rank = state->rank,
                        .dim = {state->dim[0], state->dim[1]},
                        .stride = state->rank == 2 ? state->dim[1] : 1};
}

static bool strip(char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    if (n < m || strcmp(name + n - m, end) != 0)
        return false;
    name[n - m] = 0;
    return true;
}

/* "<name>.<dtype>" is a rounded copy, "<name>.panels.<dtype>" one in panels. */
static tp_status refresh(const tp_states *states, const tp_state *shadow, tp_device *device,
                         tp_error *err)
{
    char name[512];
    snprintf(name, sizeof name, "%s", shadow->name);
    *strrchr(name, '.') = 0;
    tp_launch make = {
        .op = TP_OP_cast, .n_in = 1, .n_out = 1, .threads = (uint16_t)tp_device_threads(device)};
    make.attrs.transposed = strip(name, ".panels_t");
    if (make.attrs.transposed || strip(name, ".panels"))
        make.op = TP_OP_pack_panels;
    make.in[0] = operand_of(tp_states_find(states, name));
    make.out[0] = operand_of(shadow);
    make.kernel = tp_kernel_find(device, &make);
    return tp_device_submit(device, &make, 1, err);
}

tp_status tp_refresh_shadows(const tp_states *states, tp_device *device, tp_error *err)
{
    for (size_t i = 0; i < states->n; i++)
        if (states->items[i].kind == TP_MEM_SHADOW && states->items[i].span.buffer)
            TP_TRY(refresh(states, &states->items[i], device, err));
    return tp_device_wait(device, err);
}
