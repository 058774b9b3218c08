/* builder.c - weights found or added by name, and the ops that all families use. */
#include "engine/model/builder.h"

#include "engine/model/adapter_internal.h"
#include "engine/model/frozen.h"

#include <math.h>

enum { MAX_NAME = 256 };

void tp_build_enter(tp_builder *b, int64_t layer)
{
    b->layer = layer;
    b->g->block = (int16_t)layer;
}

static tp_ref find_or_add(tp_graph *g, const tp_tensor *tensor)
{
    tp_ref known = tp_graph_find(g, tensor->name);
    return known ? known : tp_graph_state(g, tensor);
}

static const tp_param *param_called(const tp_builder *b, const char *name)
{
    char full[MAX_NAME];
    if (b->layer >= 0)
        snprintf(full, sizeof full, "%s%lld.%s", b->model->family->layer_prefix,
                 (long long)b->layer, name);
    else
        snprintf(full, sizeof full, "%s", name);
    const tp_param *p = tp_model_find_param(b->model, full);
    TP_ASSERT(p);
    return p;
}

/* Does it lie as [in, out] in the graph?  What was packed is [out, in] in every family. */
static bool is_turned(const tp_param *weight)
{
    return weight->is_transposed && !tp_param_is_packed(weight);
}

/* A weight in few bits, as products read it. */
static tp_ref unpacked(const tp_builder *b, const tp_param *p)
{
    tp_tensor parts[TP_PARAM_PARTS];
    tp_ref in[TP_PARAM_PARTS];
    int n = tp_param_parts(p, &b->g->arena, parts);
    for (int i = 0; i < n; i++)
        in[i] = find_or_add(b->g, &parts[i]);
    bool turns = p->is_transposed;
    tp_attrs attrs = {.n0 = (int32_t)p->dim[turns], .n1 = (int32_t)p->dim[!turns]};
    tp_op op = p->storage == TP_BASE_INT8 ? TP_OP_unpack_int8 : TP_OP_unpack_nf4;
    return tp_graph_op(b->g, op, &attrs, n, in, p->name);
}

tp_ref tp_build_weight(const tp_builder *b, const char *name)
{
    const tp_param *p = param_called(b, name);
    if (tp_param_is_packed(p))
        return unpacked(b, p);
    tp_tensor weight = tp_param_tensor(p);
    return find_or_add(b->g, &weight);
}

tp_ref tp_build_op(const tp_builder *b, tp_op op, const tp_attrs *attrs, int n_in, const tp_ref *in,
                   const char *label)
{
    char full[MAX_NAME];
    if (b->layer >= 0)
        snprintf(full, sizeof full, "layers.%lld.%s", (long long)b->layer, label);
    else
        snprintf(full, sizeof full, "%s", label);
    return tp_graph_op(b->g, op, attrs, n_in, in, full);
}

/* "<label><suffix>", in the memory of the graph. */
static const char *labelled(const tp_builder *b, const char *label, const char *suffix)
{
    return tp_arena_printf(&b->g->arena, "%s%s", label, suffix);
}

static tp_ref adapter_state(const tp_builder *b, const tp_param *p)
{
    tp_tensor record = tp_param_tensor(p);
    if (b->f->adapter == TP_ADAPTER_REFERENCE)
        record.name = tp_adapter_reference_name(&b->g->arena, p);
    return find_or_add(b->g, &record);
}

/* What of x an adapter sees while it is trained. */
static tp_ref drop(const tp_builder *b, const tp_lora *l, const tp_adapted *m, tp_ref x,
                   const char *label)
{
    if (!b->f->dropout_seed || l->settings.dropout == 0)
        return x;
    tp_ref in[] = {x, b->f->dropout_seed};
    tp_attrs attrs = {.probability = (float)l->settings.dropout,
                      .stream = (int32_t)(m - l->modules) + 1};
    return tp_build_op(b, TP_OP_dropout, &attrs, 2, in, labelled(b, label, ".dropout"));
}

/* y + scale * B A x */
static tp_ref add_adapter(const tp_builder *b, const tp_adapted *m, tp_ref x, tp_ref y,
                          const char *label)
{
    tp_ref down[] = {x, adapter_state(b, m->a)};
    tp_ref u = tp_build_op(b, TP_OP_linear, NULL, 2, down, labelled(b, label, ".lora_A"));
    tp_attrs scale = {.scale = (float)m->scale};
    u = tp_build_op(b, TP_OP_scale, &scale, 1, &u, labelled(b, label, ".scale"));
    tp_ref up[] = {u, adapter_state(b, m->b)};
    tp_ref v = tp_build_op(b, TP_OP_linear, NULL, 2, up, labelled(b, label, ".lora_B"));
    return tp_build_add(b, y, v, labelled(b, label, ".lora"));
}

static tp_ref stretch(const tp_builder *b, const tp_adapted *m, tp_ref y, const tp_ref in[3],
                      const char *label)
{
    tp_ref parts[] = {in[1], adapter_state(b, m->a), adapter_state(b, m->b)};
    tp_attrs attrs = {.transposed = is_turned(m->weight), .scale = (float)m->scale};
    tp_ref norm =
        tp_build_op(b, TP_OP_dora_norm, &attrs, 3, parts, labelled(b, label, ".dora_norm"));
    tp_ref columns[] = {y, adapter_state(b, m->m), norm, in[2]};
    return tp_build_op(b, TP_OP_dora, NULL, in[2] ? 4 : 3, columns, labelled(b, label, ".dora"));
}

/* The bias waits where DoRA stretches the product: it does not scale it. */
static tp_ref product(const tp_builder *b, const tp_adapted *m, const tp_param *weight,
                      const tp_ref in[3], const char *label)
{
    tp_attrs attrs = {.transposed = is_turned(weight)};
    return tp_build_op(b, TP_OP_linear, &attrs, in[2] && !(m && m->m) ? 3 : 2, in, label);
}

/* What `l` makes of its product with the weight; in: x, the weight, the bias or 0.
 *
 * DoRA stretches what dropout kept of x, in the product as well: what W makes of the rest is added
 * as it is.  With c = m / norm:  c (W drop(x) + scale B A drop(x)) + b + (W x - W drop(x)). */
static tp_ref adapted(const tp_builder *b, const tp_lora *l, const tp_adapted *m, tp_ref y,
                      const tp_ref in[3], const char *label)
{
    const tp_attrs minus = {.scale = -1};
    const tp_ref kept[] = {drop(b, l, m, in[0], label), in[1], in[2]};
    if (!m->m)
        return add_adapter(b, m, kept[0], y, label);
    if (kept[0] == in[0])
        return stretch(b, m, add_adapter(b, m, kept[0], y, label), in, label);
    tp_ref own = product(b, m, m->weight, kept, labelled(b, label, ".kept"));
    tp_ref less = tp_build_op(b, TP_OP_scale, &minus, 1, &own, labelled(b, label, ".less"));
    tp_ref rest = tp_build_add(b, y, less, labelled(b, label, ".rest"));
    tp_ref stretched = stretch(b, m, add_adapter(b, m, kept[0], own, label), kept, label);
    return tp_build_add(b, stretched, rest, labelled(b, label, ".dora_dropout"));
}

/* y with the rows of adapter i as that one has them, computed for these alone. */
static tp_ref adapted_rows(const tp_builder *b, size_t i, const tp_adapted *m, tp_ref y,
                           const tp_ref in[3], const char *label)
{
    tp_ref inputs[] = {b->f->rows[i], in[0]}, products[] = {b->f->rows[i], y};
    tp_ref own[] = {tp_build_op(b, TP_OP_embed, NULL, 2, inputs, labelled(b, label, ".rows")),
                    in[1], in[2]};
    tp_ref mine = m->m && in[2] ? product(b, m, m->weight, own, label)
                                : tp_build_op(b, TP_OP_embed, NULL, 2, products, label);
    mine = adapted(b, b->model->beside[i], m, mine, own, label);
    tp_ref rows[] = {y, mine, b->f->which, b->f->place};
    tp_attrs attrs = {.n0 = (int32_t)i};
    return tp_build_op(b, TP_OP_choose_rows, &attrs, 4, rows, labelled(b, label, ".choose"));
}

tp_ref tp_build_linear(const tp_builder *b, tp_ref x, const char *name, bool has_bias,
                       const char *label)
{
    char full[MAX_NAME];
    snprintf(full, sizeof full, "%s.weight", name);
    const tp_param *weight = param_called(b, full);
    tp_ref in[3] = {x, tp_build_weight(b, full)};
    if (has_bias) {
        snprintf(full, sizeof full, "%s.bias", name);
        in[2] = tp_build_weight(b, full);
    }
    const tp_lora *l = b->f->adapter == TP_ADAPTER_OFF ? NULL : b->model->lora;
    const tp_adapted *m = l ? tp_lora_module(l, b->model, weight) : NULL;
    tp_ref y = product(b, m, weight, in, label);
    if (m)
        y = adapted(b, l, m, y, in, label);
    for (size_t i = 0; b->f->which && i < b->model->n_beside; i++) {
        m = tp_lora_module(b->model->beside[i], b->model, weight);
        if (m)
            y = adapted_rows(b, i, m, y, in, label);
    }
    return y;
}

tp_ref tp_build_add(const tp_builder *b, tp_ref x, tp_ref y, const char *label)
{
    tp_ref in[] = {x, y};
    return tp_build_op(b, TP_OP_add, NULL, 2, in, label);
}

tp_ref tp_build_activation(const tp_builder *b, tp_ref x, const char *label)
{
    tp_activation kind = b->model->activation;
    tp_attrs attrs = {.tanh = kind == TP_ACTIVATION_GELU_TANH};
    tp_op op = kind == TP_ACTIVATION_SILU ? TP_OP_silu : TP_OP_gelu;
    return tp_build_op(b, op, &attrs, 1, &x, label);
}

static tp_ref cache(const tp_builder *b, char which)
{
    char name[MAX_NAME];
    const tp_model_info *info = &b->model->info;
    int64_t row = info->kv_heads * (info->head_dim + info->head_dim % 2);
    snprintf(name, sizeof name, "kv.%c.%lld", which, (long long)b->layer);
    tp_tensor keys_or_values = {.name = name,
                                .role = TP_ROLE_CACHE,
                                .dtype = b->f->cache_dtype,
                                .rank = 2,
                                .dim = {b->f->cache_blocks, row * b->f->block_tokens}};
    return find_or_add(b->g, &keys_or_values);
}

tp_ref tp_build_attention(const tp_builder *b, tp_ref q, tp_ref k, tp_ref v)
{
    const tp_model_info *info = &b->model->info;
    double scale = b->model->has_plain_logits ? 1 : 1 / sqrt((double)info->head_dim);
    if (b->model->scales_by_layer)
        scale /= (double)(b->layer + 1);
    tp_attrs attrs = {.heads = (int32_t)info->heads,
                      .kv_heads = (int32_t)info->kv_heads,
                      .head_dim = (int32_t)info->head_dim,
                      .scale = (float)scale};
    if (b->f->cache_blocks > 0) {
        tp_ref in[] = {q,           k,           v, cache(b, 'k'), cache(b, 'v'), b->f->positions,
                       b->f->slots, b->f->tables};
        return tp_build_op(b, TP_OP_paged_attention, &attrs, 8, in, "attention");
    }
    tp_ref in[] = {q, k, v, b->f->cu};
    return tp_build_op(b, TP_OP_attention, &attrs, 4, in, "attention");
}
