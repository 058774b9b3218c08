/* model.h - what a Hugging Face folder or a GGUF file says about its model, and from the one to the
 * other.
 *
 * Opening reads config.json (and generation_config.json, where there is one), or the keys of the
 * GGUF file; no weights are read or allocated, so it costs milliseconds.  A model is read-only
 * once open: threads may share it.
 *
 * Threads: any, at once; a tp_model is read-only once open and may be shared. */
#ifndef TEMPER_MODEL_H
#define TEMPER_MODEL_H

#include "temper/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tp_model tp_model;

/* What every family can be asked.  Later versions add at the end. */
typedef struct {
    const char *family; /* "llama", "qwen2", "qwen3", "gpt2" */
    int64_t hidden, intermediate, layers, heads, kv_heads, head_dim, vocab, max_positions;
    double rope_theta; /* 0: none */
    double norm_eps;
    bool tied;      /* the head is the embedding */
    int64_t eos[8]; /* ids that end a text, n_eos of them */
    int n_eos;
    int64_t bos;            /* -1: none */
    double ignored_dropout; /* the largest that the file asks for; training runs without */
} tp_model_info;

/* `path` is a folder with config.json, a GGUF file, or a config.json itself (a model to be
 * initialised at random).  TP_ERR_IO, TP_ERR_FORMAT, TP_ERR_UNSUPPORTED (another
 * architecture, or a feature of one that is not implemented). */
TP_API TP_CHECKED tp_status tp_model_open(const char *path, tp_model **ret, tp_error *err);
/* The same from the text of a config.json, n bytes; `name` is what errors call it. */
TP_API TP_CHECKED tp_status tp_model_parse(const char *name, const char *text, size_t n,
                                           tp_model **ret, tp_error *err);
TP_API void tp_model_free(tp_model *model); /* NULL is a no-op */

TP_API const tp_model_info *tp_model_get_info(const tp_model *model); /* the model's own */
TP_API int64_t tp_model_param_count(const tp_model *model);           /* scalars, tied head once */

/* ---- a GGUF file for llama.cpp ---- */

typedef struct {
    size_t size;      /* sizeof(tp_export_options) */
    const char *type; /* of the matrices: "F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K",
                         "Q4_K_M" */
    const char *name; /* general.name of the file; NULL: the folder's */
    int threads;      /* 0: one per core */
    /* What a user should know, a sentence each: tensors that are of another type since their rows
     * do not divide into blocks, what llama.cpp does otherwise.  May be NULL. */
    void (*note)(void *user, const char *text);
    void *user;
} tp_export_options;

/* Later versions add at the end. */
typedef struct {
    size_t size; /* sizeof(tp_export_result) */
    uint64_t bytes;
    size_t n_tensors, n_fallback; /* n_fallback: of another type than was asked for */
    char types[128];              /* "15 Q4_0, 6 F32" */
} tp_export_result;

/* `path`: a folder, a checkpoint, a run (then its newest checkpoint) or another GGUF file, with a
 * tokenizer.  The file appears whole or not at all; what is there already is replaced, unless it
 * is the model itself or the program watches its outputs (program.h).  Weights are read row by row,
 * so memory does not grow with the model. `ret` may be NULL.  TP_ERR_UNSUPPORTED: llama.cpp does
 * not compute that. */
TP_API TP_CHECKED tp_status tp_model_export(const char *path, const char *out,
                                            const tp_export_options *options, tp_export_result *ret,
                                            tp_error *err);

/* ---- an adapter and its base as one model ---- */

typedef struct {
    size_t size;       /* sizeof(tp_merge_options) */
    const char *dtype; /* of the weights: "float32", "bfloat16", "float16"; NULL: the base's */
    /* "int8", "nf4": to the base's matrices as they are in 8 or 4 bits, over which the adapter was
     * trained; NULL: as the folder has them */
    const char *base;
} tp_merge_options;

/* Later versions add at the end. */
typedef struct {
    size_t size;      /* sizeof(tp_merge_result) */
    size_t n_modules; /* that had an adapter */
    char dtype[16];   /* of the weights written */
    char base[256];   /* where the base is */
} tp_merge_result;

/* `path`: a folder with adapter_config.json, a checkpoint, or a run that trained an adapter.  `out`
 * becomes a Hugging Face folder with tokenizer, whole or not at all; it must not exist.  What an
 * adapter adds is computed in double precision and rounded once.  `ret` may be NULL. */
TP_API TP_CHECKED tp_status tp_model_merge(const char *path, const char *out,
                                           const tp_merge_options *options, tp_merge_result *ret,
                                           tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
