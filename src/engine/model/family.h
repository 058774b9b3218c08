/* family.h - what an architecture family says about itself; private to engine/model.
 *
 * A family is one const table: which fields of config.json it reads, which
 * parameters follow from them, and how its forward graph is built.  Families are
 * listed in families[] of families.c. */
#ifndef TP_ENGINE_MODEL_FAMILY_H
#define TP_ENGINE_MODEL_FAMILY_H

#include "base/arena.h"
#include "engine/model/config_keys.h"
#include "engine/model/fields.h"
#include "engine/model/model.h"
#include "engine/model/rope.h"

typedef enum { TP_ACTIVATION_SILU, TP_ACTIVATION_GELU, TP_ACTIVATION_GELU_TANH } tp_activation;

typedef struct {
    const char *model_type;        /* as in config.json */
    const char *models;            /* "Llama 2 and 3, SmolLM2": for messages */
    const char *architecture;      /* "LlamaForCausalLM" */
    const char *base_architecture; /* "LlamaModel": the same without a head */
    const char *prefix;            /* "model.": files of the bare model lack it */
    const char *layer_prefix;      /* "model.layers.", before the layer's number */
    unsigned keys;                 /* TP_KEYS_...: rows of config_keys.def */
    int64_t default_kv_heads;      /* where config.json is silent; 0: as many as heads */
    int64_t default_head_dim;      /* likewise, whatever the width is; 0: width / heads */
    int64_t default_positions;     /* likewise */
    bool has_conv1d;               /* weights of its blocks are [in, out] */
    /* What sets one of decoder.c apart: how its projections have biases, norms of q and k. */
    bool has_qkv_bias, has_qk_norm, reads_attention_bias, reads_mlp_bias;
    /* Buffers that old files hold and that are no parameters: ends of names. */
    const char *const *ignored;

    /* Fields into model->info and the details below. */
    tp_status (*read)(tp_model *model, const tp_fields *c, tp_error *err);
    /* tp_model_add_param() for each, in the order of transformers. */
    void (*list_params)(tp_model *model);
    void (*forward)(const tp_model *model, tp_graph *g, const tp_forward *f, tp_ref *ret_hidden);
} tp_family;

extern const tp_family tp_family_llama, tp_family_qwen2, tp_family_qwen3, tp_family_gpt2;
const tp_family *tp_model_family_at(size_t i); /* NULL behind the last */
/* "llama (Llama 2 and 3, SmolLM2), qwen2 (...), ..." in `out`, which is returned. */
const char *tp_model_supported(char *out, size_t n);

/* Larger models than these are refused as mistakes. */
enum {
    TP_MAX_WIDTH = 1 << 18,
    TP_MAX_INTERMEDIATE = 1 << 22,
    TP_MAX_LAYERS = 512,
    TP_MAX_HEADS = 4096,
    TP_MAX_HEAD_DIM = 4096,
    TP_MAX_VOCAB = 1 << 24,
    TP_MAX_POSITIONS = 1 << 30
};

typedef struct tp_lora tp_lora; /* adapter_internal.h */

struct tp_model {
    tp_arena arena;
    const tp_family *family;
    const char *config_path;
    const char *positions_field; /* of config.json: how many positions there are */
    const char *folder;          /* NULL when opened from a config.json alone */
    bool is_gguf;                /* `folder` is a GGUF file */
    const char *config_text;
    size_t config_len;
    tp_model_info info;
    double initializer_range;
    int64_t pad;              /* whose lookup gives no gradient; -1: none */
    const char *unknown_keys; /* of config.json, comma-separated; "" */
    bool has_own_head;        /* tied in config.json, but the file holds a head that differs */

    /* what the block builders look at */
    tp_rope rope;
    tp_activation activation;
    bool has_qkv_bias, has_out_bias, has_mlp_bias, has_qk_norm;
    bool has_plain_logits; /* attention's are not divided by the root of head_dim */
    bool scales_by_layer;  /* ... but by the layer's number, from 1 */

    const char *embedding_name; /* also the head when tied */
    tp_param *params;
    size_t n_params, cap_params;
    int64_t param_count;
    tp_lora *lora;    /* the adapter, or NULL */
    tp_lora **beside; /* adapters of which every row has its own, n_beside */
    size_t n_beside;
    uint32_t *slots; /* open addressing by name: index + 1 */
    size_t n_slots;
};

enum {
    TP_MAX_CONFIG_BYTES = 1 << 20,
    TP_CONFIG_JSON_FACTOR = 65, /* a document and its text, per byte */
    TP_MAX_EOS = sizeof(((tp_model_info *)NULL)->eos) / sizeof *((tp_model_info *)NULL)->eos
};

/* From the text of a config.json called `name`; `folder`: where the weights are, or NULL. */
TP_CHECKED tp_status tp_model_parse_in(const char *folder, const char *name, const char *text,
                                       size_t n, tp_model **ret, tp_error *err);

/* `name` is copied; dim1 = 0 makes a vector. */
tp_param *tp_model_add_param(tp_model *model, const char *name, int64_t dim0, int64_t dim1,
                             tp_init init);
/* The same inside layer `layer`: "<layer_prefix><layer>.<name>". */
tp_param *tp_model_add_layer_param(tp_model *model, int64_t layer, const char *name, int64_t dim0,
                                   int64_t dim1, tp_init init);
const tp_param *tp_model_find_param(const tp_model *model, const char *name);

/* Does the file of a tied model hold a head that differs from the embedding? */
bool tp_model_file_has_own_head(const tp_model *model);

/* heads, kv_heads and head_dim fit each other and the width. */
TP_CHECKED tp_status tp_family_check_heads(tp_model *model, const tp_fields *c,
                                           const char *heads_field, tp_error *err);
/* model->positions_field, where a null is no default. */
TP_CHECKED tp_status tp_family_read_positions(tp_model *model, const tp_fields *c, tp_error *err);
TP_CHECKED tp_status tp_family_read_activation(tp_model *model, const tp_fields *c,
                                               const char *field, const char *fallback,
                                               tp_error *err);

#endif
