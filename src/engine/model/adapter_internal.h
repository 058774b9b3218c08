/* adapter_internal.h - an attached adapter; private to engine/model. */
#ifndef TP_ENGINE_MODEL_ADAPTER_INTERNAL_H
#define TP_ENGINE_MODEL_ADAPTER_INTERNAL_H

#include "engine/model/adapter.h"
#include "engine/model/family.h"

/* A module with an adapter. */
typedef struct {
    const char *name;       /* "model.layers.0.self_attn.q_proj" */
    const tp_param *weight; /* [out, in], or [in, out] where the family says so */
    const tp_param *a, *b;  /* [r, in], [out, r] */
    const tp_param *m;      /* DoRA: [out]; else NULL */
    double scale;
} tp_adapted;

struct tp_lora {
    const char *name;      /* beside others; NULL: the only one */
    const char *prefix;    /* of its tensors' names: "", or "adapters.1." beside others */
    const char *elsewhere; /* beside others: the base that it names, where that is another model */
    tp_lora_settings settings;
    const char *folder; /* read from; NULL: new */
    const char *base;   /* as adapter_config.json calls it; NULL: new */
    tp_param *params;
    size_t n_params;
    tp_adapted *modules;
    size_t n_modules;
    uint32_t *of_param; /* parameter of the base -> module + 1 */
};

/* An adapter's tensor: normal or uniform with this deviation or bound; 0: as p->init says. */
TP_CHECKED tp_status tp_param_draw(const tp_param *p, bool is_uniform, tp_states *states,
                                   uint64_t seed, double spread, tp_error *err);

/* "model.layers.0.mlp.up_proj" of "model.layers.0.mlp.up_proj.weight"; false: no module that can
 * have an adapter. */
bool tp_param_module(const tp_param *weight, char out[256]);
/* The module of `lora` that a weight belongs to, or NULL. */
const tp_adapted *tp_lora_module(const tp_lora *lora, const tp_model *model,
                                 const tp_param *weight);
/* Which modules `settings` mean, and their tensors, called by `prefix`. */
TP_CHECKED tp_status tp_lora_new(tp_model *model, const tp_lora_settings *settings,
                                 const char *prefix, tp_lora **ret, tp_error *err);
/* From `folder`/adapter_model.safetensors, every one of them and no other. */
TP_CHECKED tp_status tp_lora_load(const tp_lora *lora, const char *folder, tp_adapter_use use,
                                  tp_states *states, tp_error *err);

/* What an adapter_config.json says, for a model of this type; texts are in `arena`.  *ret_base is
 * base_model_name_or_path.  What would compute something else than Temper does is refused. */
TP_CHECKED tp_status tp_adapter_config_read(const char *path, const char *text, size_t n,
                                            tp_arena *arena, tp_lora_settings *ret,
                                            const char **ret_base, tp_error *err);
void tp_adapter_config_write(const tp_model *model, tp_buf *out);

#endif
