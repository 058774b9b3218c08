/* chat.c - a conversation through a chat template, and one that goes on. */
#include "temper/chat.h"

#include <string.h>

#include "api/text_generator.h"
#include "base/sized.h"
#include "base/vec.h"
#include "text/template/chat_context.h"

tp_status tp_chat_render(const tp_tokenizer *tok, const char *conversation, size_t n,
                         const tp_chat_options *options, char **ret_text, size_t *ret_n,
                         tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_chat_options o;
    tp_template *t;
    tp_buf out = {0};
    TP_NEED(tok && conversation && ret_text && ret_n, err);
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_chat_options", err));
    if (!o.chat_template)
        o.chat_template = tp_tokenizer_chat_template(tok);
    if (!o.chat_template)
        return tp_fail(err, TP_ERR_CONFIG,
                       "the tokenizer has no chat template; give one as chat_template");
    TP_TRY(tp_template_parse("chat template", o.chat_template, strlen(o.chat_template), &t, err));
    tp_buf_adds(&out, "");
    tp_status status =
        tp_chat_render_json(t, tok, conversation, n, NULL, o.add_generation_prompt, &out, err);
    tp_template_free(t);
    if (status != TP_OK) {
        tp_buf_release(&out);
        return status;
    }
    *ret_text = out.data;
    *ret_n = out.len;
    return TP_OK;
}

/* ---- talking ---- */

enum { DEFAULT_WINDOW = 4096, LEAST_ROOM = 16 }; /* tokens */

struct tp_chat {
    tp_text_generator *gen;
    tp_text_request request;
    tp_text_settings settings;
    char *system;
    tp_buf *messages; /* each a JSON object */
    size_t n_messages, cap;
    uint64_t turn;
};

static void remember(tp_chat *c, const char *role, const char *text, size_t n)
{
    tp_buf *m = TP_VEC_PUSH(c->messages, c->n_messages, c->cap);
    tp_buf_addf(m, "{\"role\":\"%s\",\"content\":", role);
    tp_json_quote(m, text, n);
    tp_buf_addc(m, '}');
}

static void forget(tp_chat *c, size_t from, size_t n)
{
    for (size_t i = from; i < from + n; i++)
        tp_buf_release(&c->messages[i]);
    c->n_messages -= n;
    if (n > 0)
        memmove(c->messages + from, c->messages + from + n,
                (c->n_messages - from) * sizeof *c->messages);
}

void tp_chat_reset(tp_chat *c)
{
    forget(c, 0, c->n_messages);
    c->turn = 0;
    if (c->system)
        remember(c, "system", c->system, strlen(c->system));
}

static tp_status start(tp_chat *c, const tp_text_request *request, tp_error *err)
{
    const tp_text_settings usual = {.max_new_tokens = 1024, .temperature = 0.7, .top_p = 0.95};
    tp_text_generator *gen = c->gen;
    TP_TRY(tp_text_request_read(request, &c->request, err));
    TP_TRY(tp_text_model_need_tokenizer(&gen->m, err));
    int32_t adapter;
    TP_TRY(tp_text_generator_adapter(gen, c->request.adapter, &adapter, err));
    TP_TRY(tp_text_generator_settle(gen, &c->request, &usual, &c->settings, err));
    if (!tp_tokenizer_chat_template(gen->m.tokenizer))
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' has no chat template; 'temper generate' continues plain text",
                       gen->m.folder.data);
    return tp_text_generator_start(gen, gen->o.most_length ? gen->o.most_length : DEFAULT_WINDOW, 1,
                                   err);
}

tp_status tp_chat_open(tp_text_generator *gen, const char *system, const tp_text_request *request,
                       tp_chat **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(gen && ret, err);
    tp_chat *c = tp_new(1, sizeof *c);
    c->gen = gen;
    c->system = tp_strdup(system);
    tp_status status = start(c, request, err);
    if (status != TP_OK) {
        tp_chat_free(c);
        return status;
    }
    tp_chat_reset(c);
    *ret = c;
    return TP_OK;
}

void tp_chat_free(tp_chat *c)
{
    if (!c)
        return;
    forget(c, 0, c->n_messages);
    free(c->messages);
    free(c->system);
    free(c);
}

static tp_status encode(tp_chat *c, tp_ids *out, tp_error *err)
{
    TP_OWN(tp_buf) list = {0};
    tp_buf_addc(&list, '[');
    for (size_t i = 0; i < c->n_messages; i++)
        tp_buf_addf(&list, "%s%s", i ? "," : "", tp_buf_str(&c->messages[i]));
    tp_buf_addc(&list, ']');
    out->len = 0;
    return tp_text_model_encode_chat(&c->gen->m, list.data, list.len, out, NULL, err);
}

/* The oldest turns go when there is no room for an answer. */
static tp_status encode_what_fits(tp_chat *c, tp_ids *out, tp_error *err)
{
    int64_t window = c->gen->engine.max_length;
    size_t first = c->system ? 1 : 0;
    int n_dropped = 0;
    TP_TRY(encode(c, out, err));
    while ((int64_t)out->len + LEAST_ROOM > window && c->n_messages > first + 2) {
        forget(c, first, 2);
        n_dropped++;
        TP_TRY(encode(c, out, err));
    }
    if (n_dropped > 0) {
        char text[128];
        snprintf(text, sizeof text, "the window of %lld tokens is full: %d earlier turn%s left out",
                 (long long)window, n_dropped, n_dropped > 1 ? "s" : "");
        tp_text_generator_notice(c->gen, text);
    }
    return TP_OK;
}

static tp_status answer(tp_chat *c, tp_text_result *ret, tp_buf *text, tp_error *err)
{
    TP_OWN(tp_ids) ids = {0};
    TP_TRY(encode_what_fits(c, &ids, err));
    return tp_text_generator_answer_ids(c->gen, &ids, &c->request, &c->settings, c->turn++, ret,
                                        text, err);
}

tp_status tp_chat_say(tp_chat *c, const char *text, size_t n, tp_text_result *ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_text_result own;
    TP_OWN(tp_buf) said = {0};
    if (!c || (!text && n))
        return tp_fail(err, TP_ERR_ARG, "tp_chat_say: an argument is NULL");
    TP_TRY(tp_sized_check(ret, "tp_text_result", err));
    remember(c, "user", n ? text : "", n);
    tp_status status = answer(c, &own, &said, err);
    if (status == TP_OK) {
        remember(c, "assistant", tp_buf_str(&said), said.len);
        tp_sized_write(ret, &own, sizeof own);
    } else {
        forget(c, c->n_messages - 1, 1);
    }
    return status;
}
