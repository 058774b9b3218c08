/* chat.c - the variables that a chat template sees, from JSON text. */
#include "temper/chat.h"

#include <string.h>

#include "api/sized.h"
#include "base/json.h"
#include "engine/data/chat.h"
#include "engine/data/tokenizer.h"

enum { MAX_CONVERSATION_BYTES = 64 << 20, CONTEXT_BYTES = 1 << 20 };

static tp_json *add_member(tp_arena *arena, tp_json *object, const char *key, tp_json_type type)
{
    tp_json *node = tp_arena_new(arena, tp_json);
    node->type = type;
    node->key = tp_slice_of(key);
    node->next = object->child;
    object->child = node;
    object->n++;
    return node;
}

/* A token that the tokenizer does not name leaves the variable undefined. */
static void add_token(tp_arena *arena, tp_json *context, const char *key, const char *token)
{
    if (token && !tp_json_get(context, key))
        add_member(arena, context, key, TP_JSON_STRING)->text = tp_slice_of(token);
}

/* What transformers passes: absent tools and documents are none, not undefined. */
static void add_defaults(tp_arena *arena, const tp_tokenizer *tok, bool generation_prompt,
                         tp_json *context)
{
    static const char *const absent[] = {"tools", "documents"};
    for (int i = 0; i < 2; i++)
        if (!tp_json_get(context, absent[i]))
            add_member(arena, context, absent[i], TP_JSON_NULL);
    if (!tp_json_get(context, "add_generation_prompt"))
        add_member(arena, context, "add_generation_prompt",
                   generation_prompt ? TP_JSON_TRUE : TP_JSON_FALSE);
    add_token(arena, context, "bos_token", tp_tokenizer_token(tok, tp_tokenizer_bos(tok)));
    add_token(arena, context, "eos_token", tp_tokenizer_token(tok, tp_tokenizer_eos(tok)));
    add_token(arena, context, "pad_token", tp_tokenizer_token(tok, tp_tokenizer_pad(tok)));
}

static tp_status read_context(tp_arena *arena, const char *conversation, size_t n,
                              tp_json **ret_context, tp_error *err)
{
    const tp_json *root;
    TP_TRY(tp_json_parse(arena, "conversation", conversation, n, NULL, &root, err));
    tp_json *context = tp_arena_new(arena, tp_json);
    if (root->type == TP_JSON_ARRAY) {
        context->type = TP_JSON_OBJECT;
        tp_json *messages = add_member(arena, context, "messages", TP_JSON_ARRAY);
        messages->child = root->child;
        messages->n = root->n;
    } else
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
    add_defaults(arena, tok, options->add_generation_prompt, context);
    const char *source = options->chat_template;
    TP_TRY(tp_template_parse("chat template", source, strlen(source), &t, err));
    tp_status status = tp_template_render(t, context, NULL, out, NULL, err);
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
