/* chat.h - a conversation as the text that a model was trained on.
 *
 * The chat template that comes with a tokenizer is rendered byte for byte as
 * transformers' apply_chat_template(tokenize=False) renders it.  Templates are untrusted
 * data: time, depth and length of rendering are bounded.
 *
 *     tp_chat_options options = {.size = sizeof options, .add_generation_prompt = true};
 *     tp_chat_render(tok, json, strlen(json), &options, &text, &n, &err);
 *     tp_tokenizer_to_ids(tok, NULL, text, n, TP_ENCODE_PARSE_SPECIAL, &ids, &n_ids, &err);
 *
 * The template writes the special tokens itself, so they are parsed and not added. */
#ifndef TEMPER_CHAT_H
#define TEMPER_CHAT_H

#include "temper/tokenizer.h"

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

#ifdef __cplusplus
}
#endif

#endif
