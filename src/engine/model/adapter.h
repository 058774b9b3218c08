/* adapter.h - a low-rank adapter on a frozen model: LoRA, rsLoRA, DoRA, as PEFT has them.
 *
 *     y = W x + b + s B A drop(x),  s = alpha / r  (rsLoRA: alpha / sqrt(r))
 *     DoRA: y = m / |W + s B A| (W x + s B A x) + b, the norms of the rows taken for constants
 *
 * A model has at most one of its own, attached after it was opened: tp_model_open() does it for a
 * folder that holds an adapter_config.json, whose base_model_name_or_path says where the base is.
 * Then the forward graph has it, tp_model_trained() gives its tensors instead of the weights, and
 * these are declared frozen.  Tensors are called as in PEFT's files, less "base_model.model.". */
#ifndef TP_ENGINE_MODEL_ADAPTER_H
#define TP_ENGINE_MODEL_ADAPTER_H

#include "engine/model/model.h"

/* Which modules: the list and what its words mean. */
typedef enum {
    TP_MATCH_NAME,    /* a module's name, or what it ends in after a dot; "all-linear" */
    TP_MATCH_PATTERN, /* a regular expression for the whole name */
    TP_MATCH_GUESS    /* a name, a shell wildcard (*_proj) or a regular expression, by its looks */
} tp_match;
typedef struct {
    const char *const *v;
    size_t n;
    tp_match kind;
} tp_modules;

/* A number of the module's own: that of the first entry whose regular expression matches its name,
 * or what follows a dot in it. */
typedef struct {
    const char *pattern;
    double value;
} tp_module_number;
typedef struct {
    const tp_module_number *v;
    size_t n;
} tp_module_numbers;

/* Modules of these layers alone; a layer's number follows one of the patterns (none: any name that
 * follows a dot) in the module's name.  A module that `targets` calls by its whole name is
 * adapted in any layer. */
typedef struct {
    const int64_t *v;
    size_t n; /* 0: every layer */
    const char *const *patterns;
    size_t n_patterns;
} tp_lora_layers;

typedef enum {
    TP_LORA_KAIMING, /* A uniform in +-1/sqrt(in), as PEFT */
    TP_LORA_XAVIER,  /* A normal, variance 2 / (in + r), as NeMo RL */
    TP_LORA_GAUSSIAN /* A normal, deviation 1 / r */
} tp_lora_init;

typedef struct {
    int64_t r;
    double alpha, dropout; /* dropout: on the input of A, while training */
    bool uses_rslora, uses_dora;
    int init; /* tp_lora_init; B is 0, m the norms of W's rows */
    tp_modules targets, exclude;
    tp_module_numbers ranks, alphas; /* in place of r and alpha */
    tp_lora_layers layers;
} tp_lora_settings;

/* A new adapter.  An error names what is not supported, or matches no module. */
TP_CHECKED tp_status tp_model_attach(tp_model *model, const tp_lora_settings *settings,
                                     tp_error *err);
bool tp_model_has_adapter(const tp_model *model);
const tp_lora_settings *tp_model_adapter(const tp_model *model); /* NULL: none */
/* Where the adapter was read from; NULL: it is new, or there is none. */
const char *tp_model_adapter_folder(const tp_model *model);
/* Where the base's weights are, as base_model_name_or_path says it or the folder opened; NULL:
 * nowhere. */
const char *tp_model_base_folder(const tp_model *model);
/* "int8" or "nf4". */
TP_CHECKED tp_status tp_base_storage_parse(const char *word, tp_base_storage *ret, tp_error *err);
/* Before anything is declared: the matrices of the blocks in `storage`, all others in `rest`, f32
 * or bf16. */
void tp_model_freeze(tp_model *model, tp_base_storage storage, tp_dtype rest);

/* One more adapter from its folder, called `name`: not the model's, but that of the rows that ask
 * for it (tp_forward.which), so that texts with different ones are generated together.  It comes
 * before anything is declared; the model itself has none.  The rows call them 0, 1 ... in
 * the order in which they came. */
TP_CHECKED tp_status tp_model_add_adapter(tp_model *model, const char *name, const char *folder,
                                          tp_error *err);

size_t tp_model_adapters_beside(const tp_model *model);
const char *tp_model_adapter_name(const tp_model *model, size_t index);
/* Its number among them from 1; TP_ERR_CONFIG lists those that there are. */
TP_CHECKED tp_status tp_model_find_adapter(const tp_model *model, tp_slice name, int32_t *ret,
                                           tp_error *err);

/* Modules with an adapter. */
size_t tp_model_adapter_count(const tp_model *model);

/* What is trained: the tensors of the adapter, or where there is none every weight. */
const tp_param *tp_model_trained(const tp_model *model, size_t *ret_n);

/* ---- its tensors ---- */

/* A drawn by the seed, B zero, m from the base, which must be loaded. */
TP_CHECKED tp_status tp_adapter_init(const tp_model *model, tp_states *states, uint64_t seed,
                                     tp_error *err);
/* From `folder`/adapter_model.safetensors, every one of them and no other; `use`: into the live
 * tensors or those of the reference. */
TP_CHECKED tp_status tp_adapter_load(const tp_model *model, const char *folder, tp_adapter_use use,
                                     tp_states *states, tp_error *err);
/* "ref.<name>" */
const char *tp_adapter_reference_name(tp_arena *arena, const tp_param *param);
/* adapter_config.json and adapter_model.safetensors in f32, companions (NULL: none), by one rank or
 * several, as tp_model_save_frame() says. */
TP_CHECKED tp_status tp_adapter_save_frame(const tp_model *model, const tp_states *states,
                                           const char *folder, const tp_companions *companions,
                                           tp_error *err);
TP_CHECKED tp_status tp_adapter_save_share(const tp_model *model, const tp_states *states,
                                           const char *folder, tp_shard among, tp_error *err);
/* Loaded matrices of the blocks, f32, become what they are in `storage`, packed: the base of an
 * adapter that was trained over it. */
TP_CHECKED tp_status tp_model_round_base(const tp_model *model, tp_states *states,
                                         tp_base_storage storage, tp_error *err);
/* The weights of the base become those of base and adapter: in f32, once. */
TP_CHECKED tp_status tp_adapter_merge(const tp_model *model, tp_states *states, tp_error *err);

#endif
