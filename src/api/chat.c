/* chat.c - a conversation in JSON text through a chat template. */
#include "temper/chat.h"

#include <string.h>

#include "api/sized.h"
#include "text/json/json.h"
#include "text/template/chat.h"
#include "text/template/chat_context.h"
#include "text/tokenizer/tokenizer.h"

enum { MAX_CONVERSATION_BYTES = 64 << 20, CONTEXT_BYTES = 1 << 20 };

static tp_status read_context(tp_arena *arena, const char *conversation, size_t n,
                              tp_json **ret_context, tp_error *err)
{
    const tp_json *root;
    TP_TRY(tp_json_parse(arena, "conversation", conversation, n, NULL, &root, err));
    tp_json *context = tp_chat_context_new(arena);
    if (root->type == TP_JSON_ARRAY)
        tp_chat_context_share(arena, context, "messages", root);
    else
        *context = *root;
    const tp_json *messages = tp_json_get(context, "messages");
    if (context->type != TP_JSON_OBJECT || !messages || messages->type != TP_JSON_ARRAY)
        return tp_fail(err, TP_ERR_FORMAT,
                       "conversation:%u: expected a list of messages, or an object with one as "
                       "\"messages\"",
                       root->line);
    *ret_context = context;
    return TP_OK;
}

static tp_status render(tp_arena *arena, const tp_tokenizer *tok, const char *conversation,
                        size_t n, const tp_chat_options *options, tp_buf *out, tp_error *err)
{
    tp_json *context = NULL;
    tp_template *t = NULL;
    TP_TRY(read_context(arena, conversation, n, &context, err));
    tp_chat_context_finish(arena, tok, NULL, options->add_generation_prompt, context);
    const char *source = options->chat_template;
    TP_TRY(tp_template_parse("chat template", source, strlen(source), &t, err));
    tp_status status = tp_template_render(t, context, NULL, NULL, out, NULL, err);
    tp_template_free(t);
    return status;
}

tp_status tp_chat_render(const tp_tokenizer *tok, const char *conversation, size_t n,
                         const tp_chat_options *options, char **ret_text, size_t *ret_n,
                         tp_error *err)
{
    tp_chat_options o;
    tp_arena arena;
    tp_buf out = {0};
    if (!tok || !conversation || !ret_text || !ret_n)
        return tp_fail(err, TP_ERR_ARG, "tp_chat_render: an argument is NULL");
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_chat_options", err));
    if (!o.chat_template)
        o.chat_template = tp_tokenizer_chat_template(tok);
    if (!o.chat_template)
        return tp_fail(err, TP_ERR_CONFIG,
                       "the tokenizer has no chat template; give one as chat_template");
    if (n > MAX_CONVERSATION_BYTES)
        return tp_fail(err, TP_ERR_ARG, "the conversation has %zu bytes, more than the %d allowed",
                       n, MAX_CONVERSATION_BYTES);
    TP_TRY(tp_arena_init(&arena, 64 * n + CONTEXT_BYTES, err));
    tp_buf_adds(&out, "");
    tp_status status = render(&arena, tok, conversation, n, &o, &out, err);
    tp_arena_release(&arena);
    if (status != TP_OK) {
        tp_buf_release(&out);
        return status;
    }
    *ret_text = out.data;
    *ret_n = out.len;
    return TP_OK;
}
