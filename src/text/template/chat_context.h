/* chat_context.h - the variables that a chat template sees, as transformers gives them.
 *
 * Absent tools and documents are none, not undefined; a token that the tokenizer does not
 * name is undefined, not empty. */
#ifndef TP_TEXT_TEMPLATE_CHAT_CONTEXT_H
#define TP_TEXT_TEMPLATE_CHAT_CONTEXT_H

#include "text/json/json.h"
#include "text/template/chat.h"
#include "text/tokenizer/tokenizer.h"

tp_json *tp_chat_context_new(tp_arena *arena); /* an object without members */

/* The members of `list` under `key`, shared; NULL: none.  `key` lives as long as the context. */
void tp_chat_context_share(tp_arena *arena, tp_json *context, const char *key, const tp_json *list);

/* The first n of `messages` as "messages": a member that is null is absent, and reasoning stands
 * under each of the names that templates read. */
void tp_chat_context_messages(tp_arena *arena, tp_json *context, const tp_json *messages, size_t n);

/* The members of `variables` (an object, or NULL), then what is not there yet of tools,
 * documents, add_generation_prompt and the tokens. */
void tp_chat_context_finish(tp_arena *arena, const tp_tokenizer *tok, const tp_json *variables,
                            bool generation_prompt, tp_json *context);

/* tp_template_render() of a finished context.  A template that does not know content as a list of
 * parts fails or prints Python's list: TP_ERR_FORMAT with the remedy. */
TP_CHECKED tp_status tp_chat_context_render(const tp_template *t, const tp_json *context,
                                            tp_template_memory *memory, tp_buf *out,
                                            tp_spans *ret_spans, tp_error *err);

/* JSON text of n bytes, a list of messages or an object with "messages" and whatever else the
 * template knows, rendered.  TP_ERR_FORMAT, TP_ERR_UNSUPPORTED; TP_ERR_ARG: longer than 64 MiB. */
TP_CHECKED tp_status tp_chat_render_json(const tp_template *t, const tp_tokenizer *tok,
                                         const char *conversation, size_t n,
                                         const tp_json_options *options, bool generation_prompt,
                                         tp_buf *out, tp_error *err);

#endif
