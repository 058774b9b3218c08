/* interpret.c - a graph computed node by node with ref kernels, without a plan. */
#include "support/interpret.h"
#include "support/devices.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

static void *allocate(size_t bytes)
{
    size_t rounded = (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    void *p = aligned_alloc(ALIGNMENT, rounded);
    TP_ASSERT(p);
    memset(p, 0, rounded);
    return p;
}

static void bind(tp_interpreter *it, tp_ref ref, void *data, int64_t stride)
{
    const tp_value *v = &it->g->values[ref];
    it->values[ref] = (tp_operand){.data = data,
                                   .dtype = v->dtype,
                                   .rank = v->rank,
                                   .dim = {v->dim[0], v->dim[1]},
                                   .stride = stride};
}

static void bind_own(tp_interpreter *it, tp_ref ref)
{
    const tp_value *v = &it->g->values[ref];
    it->owned[ref] = allocate(tp_value_bytes(v));
    bind(it, ref, it->owned[ref], v->rank == 2 ? v->dim[1] : 1);
}

static void bind_state(tp_interpreter *it, tp_ref ref, const tp_states *states)
{
    const tp_value *v = &it->g->values[ref];
    const tp_tensor *s = states ? tp_states_find(states, v->name) : NULL;
    if (!s) {
        bind_own(it, ref);
        return;
    }
    bool fits = s->span.buffer && s->dtype == v->dtype && s->rank == v->rank &&
                s->dim[0] == v->dim[0] && s->dim[1] == v->dim[1];
    if (!fits)
        fprintf(stderr, "state '%s' differs from the graph's\n", v->name);
    TP_ASSERT(fits);
    bind(it, ref, data_of(s), v->rank == 2 ? v->dim[1] : 1);
}

/* The outputs of split are columns of its input, side by side. */
static void bind_views(tp_interpreter *it, const tp_node *n)
{
    const tp_operand *whole = &it->values[n->in[0]];
    char *at = whole->data;
    for (int k = 0; k < n->n_out; k++) {
        const tp_value *v = &it->g->values[n->out[k]];
        bind(it, n->out[k], at, whole->stride);
        at += (size_t)v->dim[1] * tp_dtype_size(v->dtype);
    }
}

static void bind_outputs(tp_interpreter *it, const tp_node *n)
{
    for (int k = 0; k < n->n_out; k++) {
        int alias = tp_op_alias(n->op, k);
        tp_ref shared = alias >= 0 && alias < n->n_in ? n->in[alias] : 0;
        if (shared)
            bind(it, n->out[k], it->values[shared].data, it->values[shared].stride);
        else
            bind_own(it, n->out[k]);
    }
}

void tp_interpreter_init(tp_interpreter *it, const tp_graph *g, tp_device *device,
                         const tp_states *states)
{
    *it = (tp_interpreter){.g = g,
                           .device = device,
                           .threads = 1,
                           .values = calloc(g->n_values, sizeof *it->values),
                           .owned = calloc(g->n_values, sizeof *it->owned)};
    TP_ASSERT(it->values && it->owned);
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        const tp_node *n = &g->nodes[i];
        if (n->op == TP_OP_state)
            bind_state(it, n->out[0], states);
        else if (tp_ops[n->op]->traits & TP_OP_VIEW)
            bind_views(it, n);
        else
            bind_outputs(it, n);
    }
}

void tp_interpreter_release(tp_interpreter *it)
{
    for (uint32_t i = 0; it->owned && i < it->g->n_values; i++)
        free(it->owned[i]);
    free(it->owned);
    free(it->values);
    *it = (tp_interpreter){0};
}

static void run_node(const tp_interpreter *it, const tp_node *n)
{
    tp_launch launch = {.op = n->op,
                        .n_in = n->n_in,
                        .n_out = n->n_out,
                        .accumulate = !it->overwrite,
                        .threads = it->threads,
                        .attrs = n->attrs};
    for (int k = 0; k < n->n_in; k++)
        launch.in[k] = it->values[n->in[k]]; /* reference 0 is absent and stays zero */
    for (int k = 0; k < n->n_out; k++)
        launch.out[k] = it->values[n->out[k]];
    launch.kernel = tp_kernel_find(it->device, &launch);
    if (!launch.kernel)
        fprintf(stderr, "no kernel for %s\n", tp_ops[n->op]->name);
    TP_ASSERT(launch.kernel);
    if (launch.kernel->workspace)
        launch.workspace_bytes = launch.kernel->workspace(&launch);
    if (launch.workspace_bytes)
        launch.workspace = allocate(launch.workspace_bytes);
    launch.kernel->run(&launch);
    free(launch.workspace);
}

void tp_interpreter_run(tp_interpreter *it)
{
    for (uint32_t i = 1; i < it->g->n_nodes; i++) {
        uint32_t traits = tp_ops[it->g->nodes[i].op]->traits;
        if (!(traits & (TP_OP_SOURCE | TP_OP_VIEW)))
            run_node(it, &it->g->nodes[i]);
    }
}

void *tp_interpreter_data(const tp_interpreter *it, tp_ref ref) { return it->values[ref].data; }

const tp_operand *tp_interpreter_operand(const tp_interpreter *it, tp_ref ref)
{
    return &it->values[ref];
}
