/* prompt_encode.c - prompts as token ids. */
#include <string.h>

#include "engine/reward/prompts.h"
#include "text/template/chat.h"
#include "text/template/chat_context.h"

#define MOST_BYTES ((size_t)4 << 30) /* of one context: nodes, the texts are shared */

struct tp_prompt_encoder {
    const tp_tokenizer *tokenizer;
    tp_tokenizer_scratch *scratch;
    tp_template *template;
    tp_template_memory memory;
    const tp_json *variables;
    bool add_bos;
    tp_arena arena;
    tp_buf text;
};

static tp_status open_template(tp_prompt_encoder *e, const char *text, tp_error *err)
{
    if (!text)
        text = tp_tokenizer_chat_template(e->tokenizer);
    if (!text || !text[0])
        return TP_OK;
    return tp_template_parse("chat template", text, strlen(text), &e->template, err);
}

tp_status tp_prompt_encoder_new(const tp_tokenizer *tokenizer, const char *chat_template,
                                const tp_json *variables, bool add_bos, tp_prompt_encoder **ret,
                                tp_error *err)
{
    tp_prompt_encoder *e = tp_new(1, sizeof *e);
    e->tokenizer = tokenizer;
    e->variables = variables;
    e->add_bos = add_bos;
    tp_status status = tp_arena_init(&e->arena, MOST_BYTES, err);
    if (status == TP_OK)
        status = open_template(e, chat_template, err);
    if (status == TP_OK)
        e->scratch = tp_tokenizer_scratch_new(tokenizer);
    TP_HAND_OVER(status, ret, e, tp_prompt_encoder_free(e));
}

void tp_prompt_encoder_free(tp_prompt_encoder *e)
{
    if (!e)
        return;
    tp_template_free(e->template);
    tp_template_memory_release(&e->memory);
    if (e->scratch)
        tp_tokenizer_scratch_free(e->scratch);
    tp_arena_release(&e->arena);
    tp_buf_release(&e->text);
    free(e);
}

/* The model's turn is opened. */
static tp_status render(tp_prompt_encoder *e, const tp_prompt *prompt, tp_error *err)
{
    tp_arena_rewind(&e->arena, 0);
    tp_json *context = tp_chat_context_new(&e->arena);
    tp_chat_context_messages(&e->arena, context, prompt->messages, prompt->messages->n);
    tp_chat_context_share(&e->arena, context, "tools", prompt->tools);
    tp_chat_context_finish(&e->arena, e->tokenizer, e->variables, true, context);
    tp_status status =
        tp_chat_context_render(e->template, context, &e->memory, &e->text, NULL, err);
    return status == TP_OK ? TP_OK : tp_error_prefix(err, status, "%s: ", prompt->id);
}

tp_status tp_prompt_encode(tp_prompt_encoder *e, const tp_prompt *prompt, tp_ids *ids,
                           tp_buf *ret_text, tp_error *err)
{
    size_t first = ids->len;
    int32_t bos = e->add_bos ? tp_tokenizer_bos(e->tokenizer) : -1;
    tp_buf_clear(&e->text);
    if (e->template)
        TP_TRY(render(e, prompt, err));
    else
        tp_buf_adds(&e->text, prompt->text);
    if (bos >= 0)
        tp_ids_add(ids, bos);
    tp_tokenizer_encode(e->tokenizer, e->scratch, tp_buf_str(&e->text), e->text.len,
                        (tp_encode_options){.parse_special = true}, ids, NULL);
    /* A template that writes the token itself is not given a second one. */
    if (bos >= 0 && ids->len > first + 1 && ids->data[first + 1] == bos) {
        memmove(ids->data + first, ids->data + first + 1,
                (ids->len - first - 1) * sizeof *ids->data);
        ids->len--;
    }
    if (ret_text)
        tp_buf_add(ret_text, tp_buf_str(&e->text), e->text.len);
    return TP_OK;
}

tp_status tp_prompts_check(const tp_prompts *prompts, tp_prompt_encoder *encoder,
                           int64_t max_length, bool (*should_stop)(void *user), void *user,
                           uint64_t *ret_too_long, tp_error *err)
{
    TP_OWN(tp_arena) arena = {0};
    TP_OWN(tp_ids) ids = {0};
    uint64_t n = tp_prompts_are_made(prompts) ? 0 : tp_prompts_count(prompts), count = 0;
    TP_TRY(tp_arena_init(&arena, tp_prompts_arena_bytes(prompts), err));
    tp_status status = TP_OK;
    for (uint64_t i = 0; i < n && status == TP_OK; i++) {
        tp_prompt prompt;
        tp_arena_rewind(&arena, 0);
        ids.len = 0;
        status = tp_prompts_get(prompts, i, &arena, &prompt, err);
        if (status == TP_OK)
            status = tp_prompt_encode(encoder, &prompt, &ids, NULL, err);
        count += ids.len == 0 || (int64_t)ids.len >= max_length;
        if (status == TP_OK && should_stop && should_stop(user))
            status = tp_fail(err, TP_ERR_INTERRUPTED, "stopped while the prompts were read");
    }
    if (status == TP_OK)
        *ret_too_long = count;
    return status;
}
