#include "engine/train/objective.h"

static tp_status add_gradient(const tp_model *model, tp_graph *g, tp_ref loss, tp_error *err)
{
    size_t n;
    const tp_param *params = tp_model_params(model, &n);
    tp_ref *weights = calloc(n, sizeof *weights);
    TP_ASSERT(weights);
    int64_t one = 1;
    tp_ref scale = tp_graph_input(g, "loss_scale", TP_DTYPE_F32, 1, &one);
    uint32_t used = 0;
    for (size_t i = 0; i < n; i++) {
        tp_ref w = tp_graph_find(g, params[i].name);
        if (w)
            weights[used++] = w;
    }
    tp_status status = tp_graph_autodiff(g, loss, scale, weights, used, err);
    free(weights);
    return status;
}

tp_status tp_objective_sft(const tp_model *model, const tp_objective_options *options, tp_graph *g,
                           tp_error *err)
{
    const int64_t T = options->tokens, S = T + 1;
    tp_forward forward = {.tokens = tp_graph_input(g, "tokens", TP_DTYPE_I32, 1, &T),
                          .positions = tp_graph_input(g, "positions", TP_DTYPE_I32, 1, &T),
                          .cu = tp_graph_input(g, "cu_seqlens", TP_DTYPE_I32, 1, &S),
                          .max_positions = options->max_positions};
    tp_ref targets = tp_graph_input(g, "targets", TP_DTYPE_I32, 1, &T);
    tp_ref weights = tp_graph_input(g, "loss_weights", TP_DTYPE_F32, 1, &T);
    tp_ref hidden, head;
    TP_TRY(tp_model_forward(model, g, &forward, &hidden, &head, err));
    g->block = -1;
    tp_ref product[] = {hidden, head};
    tp_ref logits = tp_graph_op(g, TP_OP_linear, NULL, 2, product, "lm_head");
    tp_ref ce[] = {logits, targets, weights};
    tp_ref loss = tp_graph_op(g, TP_OP_cross_entropy, NULL, 3, ce, "loss");
    tp_graph_output(g, loss);
    tp_graph_output(g, loss + 1);
    return options->with_gradient ? add_gradient(model, g, loss, err) : TP_OK;
}

void tp_objective_set_chunk(tp_graph *g, int32_t rows)
{
    for (uint32_t i = 1; i < g->n_nodes; i++)
        if (g->nodes[i].op == TP_OP_linear_ce || g->nodes[i].op == TP_OP_linear_ce_train)
            g->nodes[i].attrs.chunk = rows;
}
