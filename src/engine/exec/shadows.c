#include <string.h>

#include "engine/exec/exec.h"

static tp_operand operand_of(const tp_state *state)
{
    return (tp_operand){.data = state->data,
                        .dtype = state->dtype,
                        .rank = state->rank,
                        .dim = {state->dim[0], state->dim[1]},
                        .stride = state->rank == 2 ? state->dim[1] : 1};
}

static void refresh(const tp_states *states, const tp_state *shadow, const tp_backend *backend,
                    int threads)
{
    char name[512];
    snprintf(name, sizeof name, "%s", shadow->name);
    *strrchr(name, '.') = 0;
    tp_launch cast = {.op = TP_OP_cast, .n_in = 1, .n_out = 1, .threads = (uint16_t)threads};
    cast.in[0] = operand_of(tp_states_find(states, name));
    cast.out[0] = operand_of(shadow);
    cast.kernel = tp_kernel_find(backend, &cast);
    cast.kernel->run(&cast);
}

void tp_refresh_shadows(const tp_states *states, const tp_backend *backend, int threads)
{
    for (size_t i = 0; i < states->n; i++)
        if (states->items[i].kind == TP_MEM_SHADOW)
            refresh(states, &states->items[i], backend, threads);
}
