/* optimizers.c - every optimizer, by the names that configurations give it. */
#include "engine/train/optimizers/optimizer.h"

#include <string.h>

const tp_optimizer_name tp_optimizer_names[] = {
    {"torch.optim.AdamW", &tp_optimizer_adamw},
    {"adamw", &tp_optimizer_adamw},
    {"bitsandbytes.optim.AdamW8bit", &tp_optimizer_adamw_8bit},
    {"adamw_8bit", &tp_optimizer_adamw_8bit},
    {"torch.optim.SGD", &tp_optimizer_sgd},
    {"sgd", &tp_optimizer_sgd},
    {"torch.optim.Adafactor", &tp_optimizer_adafactor},
    {"adafactor", &tp_optimizer_adafactor},
    {"transformers.Adafactor", &tp_optimizer_adafactor_transformers},
    {"torch.optim.Muon", &tp_optimizer_muon},
    {"muon", &tp_optimizer_muon},
    {NULL, NULL}};

const tp_optimizer *tp_optimizer_at(size_t i)
{
    const tp_optimizer *before = NULL;
    for (const tp_optimizer_name *n = tp_optimizer_names; n->name; n++) {
        if (n->kind != before && i-- == 0)
            return n->kind;
        before = n->kind;
    }
    return NULL;
}

tp_optimizer_state tp_optimizer_state_like(const tp_tensor *weight, const char *name)
{
    return (tp_optimizer_state){.name = name,
                                .dtype = TP_DTYPE_F32,
                                .rank = weight->rank,
                                .dim = {weight->dim[0], weight->dim[1]}};
}

static tp_ref state_of(tp_graph *g, const tp_tensor *weight, const tp_optimizer_state *s)
{
    tp_tensor state = tp_tensor_beside(weight, TP_ROLE_MOMENT, s->name, &g->arena);
    state.dtype = s->dtype;
    state.rank = s->rank;
    memcpy(state.dim, s->dim, sizeof state.dim);
    return tp_graph_state(g, &state);
}

tp_optimizer_inputs tp_optimizer_declare(const tp_optimizer_settings *s, tp_graph *g)
{
    const int64_t n = TP_OPTIMIZER_SCALARS;
    tp_optimizer_inputs in = {.scalars = tp_graph_input(g, "scalars", TP_DTYPE_F64, 1, &n)};
    if (s->kind->leaves_a_rest)
        in.rest = tp_graph_input(g, "scalars.rest", TP_DTYPE_F64, 1, &n);
    return in;
}

void tp_optimizer_add(const tp_optimizer_settings *s, tp_graph *g,
                      const tp_optimizer_weight *weight, const tp_optimizer_inputs *in)
{
    tp_optimizer_state states[TP_OPTIMIZER_STATES];
    tp_tensor gradient = tp_tensor_gradient(weight->tensor, &g->arena);
    tp_optimizer_operands x = {.weight = *weight, .scalars = in->scalars};
    x.p = tp_graph_state(g, weight->tensor);
    x.grad = tp_graph_state(g, &gradient);
    x.rest = in->rest;
    int n = s->kind->states(s, &x, states);
    for (int i = 0; i < n; i++)
        x.state[i] = state_of(g, weight->tensor, &states[i]);
    s->kind->update(s, &x, g, weight->tensor->name);
    const tp_node *node = &g->nodes[g->n_nodes - 1];
    for (int k = 0; k < node->n_out; k++)
        if (node->out[k])
            tp_graph_output(g, node->out[k]);
}
