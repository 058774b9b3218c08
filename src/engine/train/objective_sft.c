/* objective_sft.c - cross-entropy on top of a model's trunk, in chunks or whole. */
#include "engine/train/objective.h"

#include "engine/model/adapter.h"

static tp_status add_gradient(const tp_model *model, tp_graph *g, tp_ref loss, tp_error *err)
{
    size_t n;
    const tp_param *params = tp_model_trained(model, &n);
    TP_FREED tp_ref *weights = tp_new(n, sizeof *weights);
    int64_t one = 1;
    tp_ref scale = tp_graph_input(g, "loss_scale", TP_DTYPE_F32, 1, &one);
    uint32_t used = 0;
    for (size_t i = 0; i < n; i++) {
        tp_ref w = tp_graph_find(g, params[i].name);
        if (w)
            weights[used++] = w;
    }
    return tp_graph_autodiff(g, loss, scale, weights, used, err);
}

/* The forward pass and what both objectives read. */
typedef struct {
    tp_ref hidden, head, targets, weights;
} trunk;

static tp_status build_trunk(const tp_model *model, const tp_objective_options *options,
                             tp_graph *g, trunk *ret, tp_error *err)
{
    const int64_t T = options->tokens, S = T + 1;
    tp_forward forward = {.tokens = tp_graph_input(g, "tokens", TP_DTYPE_I32, 1, &T),
                          .positions = tp_graph_input(g, "positions", TP_DTYPE_I32, 1, &T),
                          .cu = tp_graph_input(g, "cu_seqlens", TP_DTYPE_I32, 1, &S),
                          .max_positions = options->max_positions,
                          .adapter = options->adapter};
    const tp_lora_settings *lora = tp_model_adapter(model);
    const int64_t halves = 2;
    if (options->with_gradient && lora && lora->dropout > 0)
        forward.dropout_seed = tp_graph_input(g, "dropout_seed", TP_DTYPE_I32, 1, &halves);
    ret->targets = tp_graph_input(g, "targets", TP_DTYPE_I32, 1, &T);
    ret->weights = tp_graph_input(g, "loss_weights", TP_DTYPE_F32, 1, &T);
    TP_TRY(tp_model_forward(model, g, &forward, &ret->hidden, &ret->head, err));
    g->block = -1;
    return TP_OK;
}

static tp_ref cross_entropy(tp_graph *g, const trunk *t, tp_ref weights, float temperature)
{
    tp_ref product[] = {t->hidden, t->head};
    tp_ref logits = tp_graph_op(g, TP_OP_linear, NULL, 2, product, "lm_head");
    tp_ref ce[] = {logits, t->targets, weights};
    tp_attrs attrs = {.temperature = temperature};
    return tp_graph_op(g, TP_OP_cross_entropy, &attrs, 3, ce, "loss");
}

tp_status tp_objective_sft(const tp_model *model, const tp_objective_options *options, tp_graph *g,
                           tp_error *err)
{
    trunk t;
    TP_TRY(build_trunk(model, options, g, &t, err));
    tp_ref loss = cross_entropy(g, &t, t.weights, options->temperature);
    tp_graph_output(g, loss);
    tp_graph_output(g, loss + 1);
    return options->with_gradient ? add_gradient(model, g, loss, err) : TP_OK;
}

tp_status tp_objective_weighed(const tp_model *model, const tp_objective_options *options,
                               tp_graph *g, tp_error *err)
{
    trunk t;
    TP_TRY(build_trunk(model, options, g, &t, err));
    /* Fused from the start: its logits must not be shared with those of the gradient. */
    tp_attrs attrs = {.temperature = options->temperature, .chunk = options->loss_chunk};
    tp_ref ce[] = {t.hidden, t.head, t.targets, t.weights};
    tp_ref first = tp_graph_op(g, TP_OP_linear_ce, &attrs, 4, ce, "log_probabilities");
    tp_graph_output(g, first);
    tp_graph_output(g, first + 1);
    if (!options->with_gradient)
        return TP_OK;
    tp_ref logp[] = {first + 1};
    tp_ref weights = tp_graph_op(g, TP_OP_host, NULL, 1, logp, "loss");
    return add_gradient(model, g, cross_entropy(g, &t, weights, options->temperature), err);
}
