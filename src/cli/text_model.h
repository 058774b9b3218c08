/* text_model.h - a model folder ready to generate: tokenizer, template, weights, engine.
 *
 * Shared by `generate` and `chat`.  Opening reads everything but the weights, so that
 * prompts can be looked at first: how long they are decides the size of the cache. */
#ifndef TP_CLI_TEXT_MODEL_H
#define TP_CLI_TEXT_MODEL_H

#include "engine/generate/settings.h"
#include "text/json/json.h"
#include "text/template/chat.h"

enum { TP_TEXT_MODEL_FOLDER = 4096 }; /* bytes of a path, its end included */

typedef struct {
    char folder[TP_TEXT_MODEL_FOLDER];
    tp_model *model;
    tp_tokenizer *tokenizer;
    tp_tokenizer_scratch *scratch;
    tp_template *chat_template; /* parsed when first used; NULL when there is none */
    tp_device *device;
    tp_states states;
    tp_engine *engine;             /* NULL until started */
    tp_generation_config defaults; /* of generation_config.json */
    tp_ids stops;                  /* ids that end a text: the model's and the tokenizer's */
} tp_text_model;

/* `path` is a model folder, a checkpoint, or a run folder (then its newest checkpoint). */
TP_CHECKED tp_status tp_text_model_open(tp_text_model *m, const char *path, tp_error *err);
void tp_text_model_close(tp_text_model *m); /* zeroed is a no-op */

/* tp_text_settle(), which says on standard error what the file decides. */
void tp_text_model_settle(const tp_text_model *m, bool ignore, const tp_text_settings *usual,
                          tp_text_settings *settings);
/* One request to continue n_prompt ids under these settings. */
tp_request tp_text_model_request(const tp_text_model *m, const tp_text_settings *settings,
                                 bool ignore, const int32_t *prompt, size_t n_prompt);

/* Text as it is: the tokenizer's bos is added, special tokens in it count. */
void tp_text_model_encode(tp_text_model *m, const char *text, size_t n, tp_ids *out);
/* A conversation through the chat template, up to where the assistant begins:
 * `messages` is a JSON list, `tools` a JSON list or NULL.  (optional) *ret_text. */
TP_CHECKED tp_status tp_text_model_encode_chat(tp_text_model *m, const char *messages,
                                               const char *tools, tp_ids *out, tp_buf *ret_text,
                                               tp_error *err);

/* What the command line says about the engine; 0 and NULL are defaults. */
typedef struct {
    const char *dtype, *kv_dtype; /* "bf16", "bfloat16", "f32", "float32" */
    const char *kv_memory;        /* "512MiB", "2G", bytes */
    int64_t threads, max_length, max_running;
} tp_text_model_options;

/* Complain on standard error and return false when a word is none of those. */
bool tp_text_model_check(const char *command, const tp_text_model_options *options);
/* Read the weights and make the engine. */
TP_CHECKED tp_status tp_text_model_start(tp_text_model *m, const tp_text_model_options *options,
                                         tp_error *err);

#endif
