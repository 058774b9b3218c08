/* chat.h - a conversation as the text that a model was trained on, and one that goes on.
 *
 * The chat template that comes with a tokenizer is rendered byte for byte as
 * transformers' apply_chat_template(tokenize=False) renders it.  Templates are untrusted
 * data: time, depth and length of rendering are bounded.
 *
 *     tp_chat_options options = {.size = sizeof options, .add_generation_prompt = true};
 *     tp_chat_render(tok, json, strlen(json), &options, &text, &n, &err);
 *     tp_tokenizer_to_ids(tok, NULL, text, n, TP_ENCODE_PARSE_SPECIAL, &ids, &n_ids, &err);
 *
 * The template writes the special tokens itself, so they are parsed and not added.
 *
 * Threads: tp_chat_render() any, at once, with the same tokenizer too; a tp_chat by one at a time,
 * which is then a call of its generator. */
#ifndef TEMPER_CHAT_H
#define TEMPER_CHAT_H

#include "temper/generator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    size_t size;                /* sizeof(tp_chat_options) */
    const char *chat_template;  /* Jinja text; NULL: the tokenizer's */
    bool add_generation_prompt; /* end where the assistant begins to answer */
} tp_chat_options;

/* `conversation` is JSON text of n bytes: a list of messages,
 *
 *     [{"role": "user", "content": "2+2?"}]
 *
 * or an object with "messages", perhaps "tools" and "documents", and any further variables
 * of the template.  `options` may be NULL.  *ret_text: *ret_n bytes and a NUL, tp_free().
 *
 * TP_ERR_FORMAT: the JSON or the template is malformed, or the template refuses the
 * conversation, with its own message; TP_ERR_UNSUPPORTED: the template uses more of Jinja
 * than there is; TP_ERR_CONFIG: there is no template; TP_ERR_ARG. */
TP_API TP_CHECKED tp_status tp_chat_render(const tp_tokenizer *tok, const char *conversation,
                                           size_t n, const tp_chat_options *options,
                                           char **ret_text, size_t *ret_n, tp_error *err);

/* ---- talking ---- */

/* What was said so far, and the model that answers. */
typedef struct tp_chat tp_chat;

/* `system` (may be NULL) is a message before the conversation.  `request` (may be NULL) is how
 * every answer is drawn, on_piece and should_stop included; it is copied, what it points to is
 * not.  What it leaves to the file (NULL: all), and no generation_config.json says, is 1024
 * tokens at temperature 0.7 and top_p 0.95.  With
 * TP_TEXT_AS_NEEDED the window has most_length tokens, or 4096.
 * TP_ERR_CONFIG: the folder has no chat template; TP_ERR_NOMEM, TP_ERR_ARG. */
TP_API TP_CHECKED tp_status tp_chat_open(tp_text_generator *gen, const char *system,
                                         const tp_text_request *request, tp_chat **ret,
                                         tp_error *err);
TP_API void tp_chat_free(tp_chat *chat);  /* NULL is a no-op */
TP_API void tp_chat_reset(tp_chat *chat); /* forget what was said */

/* A user's message of n bytes, and the answer: by on_piece as it comes.  The oldest turns go when
 * there is no room for it, which a notice of the generator says.  After a failure the message
 * counts as not said.  (optional) *ret.
 * TP_ERR_CONFIG: the message does not fit the window, or the folder's rules leave no id;
 * TP_ERR_FORMAT: the template refuses it; TP_ERR_NUMERIC: the weights are broken. */
TP_API TP_CHECKED tp_status tp_chat_say(tp_chat *chat, const char *text, size_t n,
                                        tp_text_result *ret, tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
