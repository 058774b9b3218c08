/* gguf_names.c - names of tensors, ours and llama.cpp's. */
#include "engine/model/gguf_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/platform.h"

typedef struct {
    const char *ours, *theirs;
    tp_gguf_layout layout; /* NEIGHBOURS: in the architecture "llama" alone */
} name_pair;

static const name_pair outside[] = {
    {"model.embed_tokens", "token_embd", TP_GGUF_AS_IS},
    {"model.norm", "output_norm", TP_GGUF_AS_IS},
    {"lm_head", "output", TP_GGUF_AS_IS},
    {"transformer.wte", "token_embd", TP_GGUF_AS_IS},
    {"transformer.wpe", "position_embd", TP_GGUF_AS_IS},
    {"transformer.ln_f", "output_norm", TP_GGUF_AS_IS},
};

static const name_pair inside[] = {
    {"input_layernorm", "attn_norm", TP_GGUF_AS_IS},
    {"post_attention_layernorm", "ffn_norm", TP_GGUF_AS_IS},
    {"self_attn.q_proj", "attn_q", TP_GGUF_NEIGHBOURS},
    {"self_attn.k_proj", "attn_k", TP_GGUF_NEIGHBOURS},
    {"self_attn.v_proj", "attn_v", TP_GGUF_AS_IS},
    {"self_attn.o_proj", "attn_output", TP_GGUF_AS_IS},
    {"self_attn.q_norm", "attn_q_norm", TP_GGUF_AS_IS},
    {"self_attn.k_norm", "attn_k_norm", TP_GGUF_AS_IS},
    {"mlp.gate_proj", "ffn_gate", TP_GGUF_AS_IS},
    {"mlp.up_proj", "ffn_up", TP_GGUF_AS_IS},
    {"mlp.down_proj", "ffn_down", TP_GGUF_AS_IS},
    {"ln_1", "attn_norm", TP_GGUF_AS_IS},
    {"ln_2", "ffn_norm", TP_GGUF_AS_IS},
    {"attn.c_attn", "attn_qkv", TP_GGUF_TRANSPOSED},
    {"attn.c_proj", "attn_output", TP_GGUF_TRANSPOSED},
    {"mlp.c_fc", "ffn_up", TP_GGUF_TRANSPOSED},
    {"mlp.c_proj", "ffn_down", TP_GGUF_TRANSPOSED},
};

static const name_pair *find(const name_pair *list, size_t n, const char *name, size_t length)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(list[i].ours) == length && strncmp(list[i].ours, name, length) == 0)
            return &list[i];
    return NULL;
}

bool tp_gguf_place_of(const tp_model *model, const tp_param *param, tp_gguf_place *ret)
{
    const char *prefix = model->family->layer_prefix, *name = param->name;
    char layer[24] = "";
    bool is_inside = tp_str_starts(name, prefix);
    if (is_inside) {
        char *end;
        snprintf(layer, sizeof layer, "blk.%ld.", strtol(name + strlen(prefix), &end, 10));
        name = end + 1;
    }
    const char *dot = strrchr(name, '.');
    if (!dot)
        return false;
    size_t length = (size_t)(dot - name);
    const name_pair *pair = is_inside ? find(inside, TP_COUNTOF(inside), name, length)
                                      : find(outside, TP_COUNTOF(outside), name, length);
    if (!pair)
        return false;
    *ret = (tp_gguf_place){.layout = pair->layout};
    snprintf(ret->name, sizeof ret->name, "%s%s%s", layer, pair->theirs, dot);
    if (ret->layout == TP_GGUF_NEIGHBOURS && strcmp(model->info.family, "llama") != 0)
        ret->layout = TP_GGUF_AS_IS;
    if (ret->layout == TP_GGUF_TRANSPOSED && param->rank == 1)
        ret->layout = TP_GGUF_AS_IS;
    ret->is_f32 = param->rank == 1 || strcmp(pair->theirs, "position_embd") == 0;
    return true;
}

int64_t tp_gguf_row(const tp_model *model, int64_t row)
{
    int64_t d = model->info.head_dim, within = row % d, half = d / 2;
    return row - within + 2 * (within % half) + within / half;
}

void tp_gguf_shape(const tp_param *param, const tp_gguf_place *place, int64_t *ret_length,
                   int64_t *ret_rows)
{
    bool is_turned = param->rank == 1 || place->layout == TP_GGUF_TRANSPOSED;
    *ret_length = param->dim[is_turned ? 0 : 1];
    *ret_rows = param->rank == 1 ? 1 : param->dim[is_turned ? 1 : 0];
}
