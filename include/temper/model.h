/* model.h - what a Hugging Face folder says about its model.
 *
 * Opening reads config.json (and generation_config.json, where there is one); no weights
 * are read or allocated, so it costs milliseconds.  A model is read-only once open:
 * threads may share it. */
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

/* `path` is a folder with config.json, or a config.json itself (a model to be
 * initialised at random).  TP_ERR_IO, TP_ERR_FORMAT, TP_ERR_UNSUPPORTED (another
 * architecture, or a feature of one that is not implemented). */
TP_API TP_CHECKED tp_status tp_model_open(const char *path, tp_model **ret, tp_error *err);
/* The same from the text of a config.json, n bytes; `name` is what errors call it. */
TP_API TP_CHECKED tp_status tp_model_parse(const char *name, const char *text, size_t n,
                                           tp_model **ret, tp_error *err);
TP_API void tp_model_free(tp_model *model); /* NULL is a no-op */

TP_API const tp_model_info *tp_model_get_info(const tp_model *model); /* the model's own */
TP_API int64_t tp_model_param_count(const tp_model *model);           /* scalars, tied head once */

#ifdef __cplusplus
}
#endif

#endif
