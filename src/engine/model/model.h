/* model.h - a Hugging Face folder, or a GGUF file, as a graph with named weights, and back.
 *
 * Opening reads config.json (both spellings); it decides the architecture family, the
 * list of parameters with their shapes, and how the forward graph is built.  From
 * generation_config.json, where there is one, come the ids that end a text.
 * Weights live in tp_states under their Hugging Face names, in f32, in the layout of
 * the file (GPT-2's Conv1D stays [in, out]).  A tied head has no parameter of its
 * own.  A model is read-only once open: threads may share it.  A GGUF file is opened as the
 * folder that it came from would be: its keys are turned into a config.json, its tensors are put
 * into the layout of transformers and dequantised on loading.
 *
 * Opening, asking and freeing are public: temper/model.h. */
#ifndef TP_ENGINE_MODEL_MODEL_H
#define TP_ENGINE_MODEL_MODEL_H

#include "base/error.h"
#include "base/strings.h"
#include "engine/device/states.h"
#include "engine/ir/graph.h"
#include "engine/model/companions.h"
#include "temper/model.h"

/* How a frozen weight is kept. */
typedef enum { TP_BASE_F32, TP_BASE_BF16, TP_BASE_INT8, TP_BASE_NF4 } tp_base_storage;

typedef enum { TP_INIT_NORMAL, TP_INIT_ZERO, TP_INIT_ONE } tp_init;

/* Where in the model a parameter is: in a block, a table that rows are looked up in, of tokens or
 * positions (it may be the head as well), or the head. */
typedef enum { TP_PARAM_IN_BLOCK, TP_PARAM_TABLE, TP_PARAM_HEAD } tp_param_place;

typedef struct {
    const char *name; /* canonical: "model.layers.0.mlp.up_proj.weight", "transformer.h.0..." */
    uint8_t rank;
    int64_t dim[2];
    tp_init init;
    tp_param_place place;
    bool is_residual_out;    /* scaled by 1/sqrt(2 L) at random initialisation, as GPT-2 does */
    const char *of;          /* of an adapter: the weight that it is trained for; else NULL */
    tp_dtype dtype;          /* as it is kept: f32, but for a frozen base */
    tp_base_storage storage; /* packed ones have parts, see frozen.h */
    bool is_matrix;          /* takes part in products (or is an embedding): has a bf16 shadow */
    bool is_transposed;      /* [in, out], as GPT-2 has matrices of its blocks */
} tp_param;

/* Its record, as a weight in f32. */
tp_tensor tp_param_tensor(const tp_param *param);
/* A matrix inside a block: no embedding, head, norm or bias. */
bool tp_param_is_hidden(const tp_param *param);
bool tp_param_is_embedding(const tp_param *param);
/* Logits are products with it. */
bool tp_model_is_head(const tp_model *model, const tp_param *param);
const tp_param *tp_model_params(const tp_model *model, size_t *ret_n);

/* Which adapter: the one that is trained, none, or a frozen copy of what training began with,
 * whose tensors are called "ref.<name>". */
typedef enum { TP_ADAPTER_LIVE, TP_ADAPTER_OFF, TP_ADAPTER_REFERENCE } tp_adapter_use;

/* Where it is written how many positions the model has: "DIR/config.json: n_positions". */
enum { TP_MODEL_PLACE = 600 };
void tp_model_positions_place(const tp_model *model, char out[TP_MODEL_PLACE]);

/* The forward graph up to the last norm.  Blocks carry the layer's index, labels
 * read "layers.3.q_proj". */
typedef struct {
    tp_ref tokens, positions; /* i32[T], inputs made by the caller */
    tp_ref cu;                /* i32[S+1]: packed sequences; 0 when caches are used */
    int64_t max_positions;    /* rows of the rope table: no position reaches it */
    int64_t cache_blocks;     /* > 0: paged_attention over states "kv.k.<layer>" and
                                 "kv.v.<layer>" of this many blocks */
    int64_t block_tokens;     /* places of a block, even */
    tp_dtype cache_dtype;     /* f32 or bf16 */
    tp_ref slots, tables;     /* with caches: i32[T], i32[S,M]; inputs made by the caller */
    tp_adapter_use adapter;
    /* With adapters beside others, else 0: the row's, -1: none; and which of that adapter's rows it
     * is.  i32[T] both.  rows[i], i32[T]: those of adapter i, as many as there are. */
    tp_ref which, place;
    const tp_ref *rows;
    tp_ref dropout_seed; /* i32[2]: an adapter drops inputs by it; 0: it does not */
} tp_forward;
/* Primitive ops only: `fuse` merges them later.  Sources that the graph already has are
 * used again.  logits = linear(hidden, head_weight). */
TP_CHECKED tp_status tp_model_forward(const tp_model *model, tp_graph *g, const tp_forward *f,
                                      tp_ref *ret_hidden, tp_ref *ret_head_weight, tp_error *err);

/* Declare the weights (f32) and constants in `states`; after tp_states_alloc(),
 * fill_constants computes the constants (rope table with scaling) that a graph built with
 * `max_positions` refers to. */
TP_CHECKED tp_status tp_model_declare(const tp_model *model, int64_t max_positions,
                                      tp_states *states, tp_error *err);
TP_CHECKED tp_status tp_model_fill_constants(const tp_model *model, tp_states *states,
                                             tp_error *err);
/* Of those that are declared there; NULL: the model has none. */
const tp_tensor *tp_model_rope_table(const tp_states *states);
/* Bytes of a block of the caches, keys and values of all layers together. */
size_t tp_model_cache_block_bytes(const tp_model *model, int64_t block_tokens,
                                  tp_dtype cache_dtype);

/* Weights from the folder's safetensors (sharded or not), or the GGUF file, into the states, which
 * must be declared and allocated.  All that is missing is listed in one error. */
typedef struct {
    size_t n_loaded, n_expected, n_unused;
    char unused_names[512];  /* the first few, comma-separated */
    bool head_was_embedding; /* a tied model's file holds the head alone, which is it then */
    size_t n_other_dtype;    /* tensors that are not of file_dtype */
    tp_dtype other_dtype;    /* of the first of them */
    char other_dtype_name[256];
    bool has_nonfinite;
    char nonfinite_name[256]; /* the first tensor with an infinity or NaN */
    tp_dtype file_dtype;      /* of the embedding: what a save gives back by default */
    size_t n_files, n_bytes;  /* read */
    /* XXH3-128 of the weights in f32: of a model with an adapter, and where ranks divide them. */
    char fingerprint[33];
    char gguf_types[128]; /* of a GGUF file: "15 Q4_0, 6 F32" */
    bool is_quantised;    /* some of them are */
} tp_load_report;
TP_CHECKED tp_status tp_model_load(const tp_model *model, tp_states *states, tp_load_report *ret,
                                   tp_error *err);
/* Everything that decides what the model computes, but for the weights, as one line of text:
 * for keys of caches. */
void tp_model_describe(const tp_model *model, tp_buf *out);

/* What a user should know about this model: keys that nothing reads, a head of its own,
 * tensors that are left over.  `report` may be NULL (nothing loaded yet). */
typedef void (*tp_model_note)(void *user, const char *text);
void tp_model_say(const tp_model *model, const tp_load_report *report, tp_model_note say,
                  void *user);

/* Normal(0, std) by parameter name and seed: independent of order and threads.
 * std = 0 takes initializer_range of the config (0.02 when absent). */
TP_CHECKED tp_status tp_model_init_random(const tp_model *model, tp_states *states, uint64_t seed,
                                          double std, tp_error *err);

/* A Hugging Face folder: config.json as it came (but for dtype, and the architecture
 * when it names none), weights in `dtype` (f32, bf16 or f16), sharded above
 * max_shard_bytes (0 = 5 GiB), and its companions (NULL: none).  Refused when the disk has no
 * room.
 * Written through tp_writer, every file synced; the caller makes the folder appear
 * atomically. */
TP_CHECKED tp_status tp_model_save(const tp_model *model, const tp_states *states,
                                   const char *folder, tp_dtype dtype, size_t max_shard_bytes,
                                   const tp_companions *companions, tp_error *err);
/* `folder`/`name`, synced. */
TP_CHECKED tp_status tp_model_write_text(const char *folder, const char *name, const tp_buf *text,
                                         tp_error *err);
/* The same by several ranks: one makes the folder, in which all weights are zero, then each, and it
 * as well, writes its share (tp_tensor_share()) of those that it holds. */
TP_CHECKED tp_status tp_model_save_frame(const tp_model *model, const tp_states *states,
                                         const char *folder, tp_dtype dtype, size_t max_shard_bytes,
                                         const tp_companions *companions, tp_error *err);
TP_CHECKED tp_status tp_model_save_share(const tp_model *model, const tp_states *states,
                                         const char *folder, tp_dtype dtype, size_t max_shard_bytes,
                                         tp_shard among, tp_error *err);

#endif
