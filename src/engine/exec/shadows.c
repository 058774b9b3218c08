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

static bool strip(char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    if (n < m || strcmp(name + n - m, end) != 0)
        return false;
    name[n - m] = 0;
    return true;
}

/* "<name>.<dtype>" is a rounded copy, "<name>.panels.<dtype>" one in panels. */
static void refresh(const tp_states *states, const tp_state *shadow, const tp_backend *backend,
                    int threads)
{
    char name[512];
    snprintf(name, sizeof name, "%s", shadow->name);
    *strrchr(name, '.') = 0;
    tp_launch make = {.op = TP_OP_cast, .n_in = 1, .n_out = 1, .threads = (uint16_t)threads};
    make.attrs.transposed = strip(name, ".panels_t");
    if (make.attrs.transposed || strip(name, ".panels"))
        make.op = TP_OP_pack_panels;
    make.in[0] = operand_of(tp_states_find(states, name));
    make.out[0] = operand_of(shadow);
    make.kernel = tp_kernel_find(backend, &make);
    make.kernel->run(&make);
}

void tp_refresh_shadows(const tp_states *states, const tp_backend *backend, int threads)
{
    for (size_t i = 0; i < states->n; i++)
        if (states->items[i].kind == TP_MEM_SHADOW && states->items[i].data)
            refresh(states, &states->items[i], backend, threads);
}
