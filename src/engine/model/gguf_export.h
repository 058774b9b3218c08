/* gguf_export.h - a model and its tokenizer as one GGUF file, for llama.cpp.
 *
 * Weights go from their files to the new one row by row: what is in memory at a time does not
 * depend on the model's size, but for GPT-2's matrices, which are turned whole. */
#ifndef TP_ENGINE_MODEL_GGUF_EXPORT_H
#define TP_ENGINE_MODEL_GGUF_EXPORT_H

#include "engine/model/model.h"
#include "text/tokenizer/tokenizer.h"

typedef struct {
    const char *type; /* as llama.cpp spells it */
    const char *name; /* general.name */
    int threads;      /* that quantise */
    tp_model_note note;
    void *user; /* of note, which may be NULL */
} tp_gguf_export_options;

typedef struct {
    uint64_t bytes;
    size_t n_tensors, n_fallback; /* of another type, since their rows do not divide into blocks */
    char types[128];              /* "15 Q4_0, 6 F32" */
} tp_gguf_export_result;

/* Through base/output.h: `path` is as it was, or the whole new file. */
TP_CHECKED tp_status tp_gguf_export(const tp_model *model, const tp_tokenizer *tokenizer,
                                    const char *path, const tp_gguf_export_options *options,
                                    tp_gguf_export_result *ret, tp_error *err);

/* The type of a matrix whose name in GGUF is `name`: Q4_K, Q5_K or Q6_K. */
uint32_t tp_gguf_q4_k_m(const tp_model *model, const tp_param *param, const char *name);

#endif
