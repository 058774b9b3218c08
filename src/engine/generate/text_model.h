/* text_model.h - a model folder ready to generate: tokenizer, template, weights, engine.
 *
 * The one place where a folder is opened for generation: the generator and the chat of the
 * library, evaluations.  Opening reads everything but the weights, so that prompts can be
 * looked at first: how long they are decides the size of the cache. */
#ifndef TP_ENGINE_GENERATE_TEXT_MODEL_H
#define TP_ENGINE_GENERATE_TEXT_MODEL_H

#include "base/files.h"
#include "engine/generate/engine.h"
#include "engine/model/generation_config.h"
#include "text/json/json.h"
#include "text/template/chat.h"

typedef struct {
    tp_buf folder; /* with config.json */
    tp_model *model;
    tp_tokenizer *tokenizer; /* NULL: the folder has none */
    tp_tokenizer_scratch *scratch;
    tp_template *chat_template; /* parsed when first used; NULL when there is none */
    tp_device *device;
    tp_states states;
    tp_engine *engine;             /* NULL until started */
    tp_generation_config defaults; /* of generation_config.json, once read */
    tp_ids stops;                  /* ids that end a text: the model's and the tokenizer's */
    char nonfinite[256];           /* the first tensor with NaN or infinity, or "" */
} tp_text_model;

/* `path` is a model folder, a checkpoint, or a run folder (then its newest checkpoint).
 * `tokenizer` is the folder of another tokenizer, or NULL: the model's own. */
TP_CHECKED tp_status tp_text_model_open(tp_text_model *m, const char *path, const char *tokenizer,
                                        tp_error *err);
/* Between opening and starting.  `base` NULL: as it is; "int8", "nf4": the matrices of the blocks
 * in 8 or 4 bits, the others in `dtype`. */
TP_CHECKED tp_status tp_text_model_keep_base(tp_text_model *m, const char *base, tp_dtype dtype,
                                             tp_error *err);
/* Likewise: one more adapter, for the requests that name it. */
TP_CHECKED tp_status tp_text_model_add_adapter(tp_text_model *m, const char *name, const char *path,
                                               tp_error *err);
/* TP_OK when there is a tokenizer; else the error says which file is missing. */
TP_CHECKED tp_status tp_text_model_need_tokenizer(tp_text_model *m, tp_error *err);
/* generation_config.json, or the keys of a GGUF file, into `defaults`; and which file that is. */
TP_CHECKED tp_status tp_text_model_read_defaults(tp_text_model *m, tp_error *err);
tp_file_path tp_text_model_defaults_path(const tp_text_model *m);
/* Device, memory, weights.  The members device, n_tokens and tokenizer of `options` are filled
 * in here; threads 0: one per core.  After a failure it can be tried again.  (optional) `say` hears
 * what a user should know. */
TP_CHECKED tp_status tp_text_model_start(tp_text_model *m, const tp_engine_options *options,
                                         int threads, tp_model_note say, void *user, tp_error *err);
void tp_text_model_close(tp_text_model *m); /* zeroed is a no-op */

/* Text as it is: the tokenizer's bos is added, special tokens in it count. */
void tp_text_model_encode(tp_text_model *m, const char *text, size_t n, tp_ids *out);
/* A conversation, JSON text (see tp_chat_render_json), through the chat template, up to where
 * the assistant begins.  (optional) *ret_text. */
TP_CHECKED tp_status tp_text_model_encode_chat(tp_text_model *m, const char *conversation, size_t n,
                                               tp_ids *out, tp_buf *ret_text, tp_error *err);

#endif
