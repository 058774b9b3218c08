/* text_prompts.c - prompts gathered from texts and files. */
#include "engine/generate/text_prompts.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/platform.h"
#include "engine/data/lines.h"
#include "engine/data/row_message.h"
#include "engine/model/adapter.h"

enum { MOST_INPUT = 1 << 30 };

static tp_text_prompt *add(tp_prompt_list *p, const char *place)
{
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 16;
        p->items = tp_grow(p->items, p->cap, sizeof *p->items);
    }
    tp_text_prompt *item = &p->items[p->n++];
    *item = (tp_text_prompt){.place = strdup(place), .adapter = TP_PROMPT_UNNAMED};
    return item;
}

static tp_status check(const tp_text_prompt *item, tp_status status, tp_error *err)
{
    if (status == TP_OK && item->ids.len == 0)
        status = tp_fail(err, TP_ERR_CONFIG, "the prompt is empty: give some text");
    return status == TP_OK ? TP_OK : tp_error_prefix(err, status, "%s: ", item->place);
}

/* Messages as JSON, for the chat template. */
static tp_status add_conversation(tp_prompt_list *p, tp_text_model *m, const char *place,
                                  const char *messages, const tp_json *tools, tp_error *err)
{
    tp_text_prompt *item = add(p, place);
    TP_OWN(tp_buf) text = {0};
    tp_buf_adds(&text, "{\"messages\":");
    tp_buf_adds(&text, messages);
    if (tools) {
        tp_buf_adds(&text, ",\"tools\":");
        tp_json_text_tolerant(tools, &text);
    }
    tp_buf_addc(&text, '}');
    tp_status status =
        tp_text_model_encode_chat(m, tp_buf_str(&text), text.len, &item->ids, &item->text, err);
    return check(item, status, err);
}

static tp_status add_text(tp_prompt_list *p, tp_text_model *m, const char *place, tp_slice text,
                          const tp_json *tools, const tp_prompt_options *options, tp_error *err)
{
    if (!options->chat) {
        tp_text_prompt *item = add(p, place);
        tp_buf_add(&item->text, text.data, text.len);
        tp_text_model_encode(m, text.data, text.len, &item->ids);
        return check(item, TP_OK, err);
    }
    TP_OWN(tp_buf) messages = {0};
    tp_buf_adds(&messages, "[{\"role\":\"user\",\"content\":");
    tp_json_quote(&messages, text.data, text.len);
    tp_buf_adds(&messages, "}]");
    return add_conversation(p, m, place, messages.data, tools, err);
}

tp_status tp_prompt_list_add_text(tp_prompt_list *p, tp_text_model *m, const char *place,
                                  const char *text, size_t n, const tp_prompt_options *options,
                                  tp_error *err)
{
    return add_text(p, m, place, (tp_slice){text, n}, NULL, options, err);
}

static const tp_json *prompt_of(const tp_json *row, const char *key)
{
    static const char *const keys[] = {"messages", "prompt", "question", "text"};
    if (row->type != TP_JSON_OBJECT)
        return key ? NULL : row;
    const tp_json *value = key ? tp_json_get(row, key) : NULL;
    for (size_t i = 0; !key && !value && i < sizeof keys / sizeof *keys; i++)
        value = tp_json_get(row, keys[i]);
    return value;
}

static tp_status read_adapter(tp_text_prompt *item, const tp_text_model *m, const tp_json *row,
                              tp_error *err)
{
    const tp_json *name = row->type == TP_JSON_OBJECT ? tp_json_get(row, "adapter") : NULL;
    if (!name)
        return TP_OK;
    item->adapter = 0;
    if (name->type == TP_JSON_NULL)
        return TP_OK;
    tp_status status = name->type == TP_JSON_STRING
                           ? tp_model_find_adapter(m->model, name->text, &item->adapter, err)
                           : tp_fail(err, TP_ERR_FORMAT, "'adapter' is neither a name nor null");
    return status == TP_OK ? TP_OK : tp_error_prefix(err, status, "%s: ", item->place);
}

static tp_status add_row(tp_prompt_list *p, tp_text_model *m, const char *place, const tp_row *row,
                         const tp_json *object, tp_arena *arena, const tp_prompt_options *options,
                         tp_error *err)
{
    const tp_json *value = prompt_of(object, options->key), *tools = NULL;
    bool is_text = value && value->type == TP_JSON_STRING;
    bool is_list = value && value->type == TP_JSON_ARRAY;
    if (object->type == TP_JSON_OBJECT)
        TP_TRY(tp_row_refuse_media(row, object, err));
    if (object->type == TP_JSON_OBJECT && (is_list || (is_text && options->chat)))
        TP_TRY(tp_tools_read(row, object, "tools", arena, &tools, err));
    if (is_text)
        return add_text(p, m, place, value->text, tools, options, err);
    if (is_list) {
        TP_OWN(tp_buf) messages = {0};
        tp_json_text_tolerant(value, &messages);
        return add_conversation(p, m, place, messages.data, tools, err);
    }
    if (options->key)
        return tp_fail(err, TP_ERR_FORMAT, "%s: '%s' is neither text nor a list of messages", place,
                       options->key);
    return tp_fail(err, TP_ERR_FORMAT,
                   "%s: expected a string, or an object with messages, prompt, question or text; "
                   "another key is named by --prompt-key",
                   place);
}

static tp_status add_line(tp_prompt_list *p, tp_text_model *m, const char *name, uint64_t number,
                          tp_slice line, const tp_prompt_options *options, tp_error *err)
{
    TP_OWN(tp_arena) arena = {0};
    const tp_row row = {.file = name, .line = number, .text = line.data, .n = line.len};
    const tp_json_options json = tp_row_json_options(&row);
    const tp_json *object;
    char place[4200];
    snprintf(place, sizeof place, "%s:%llu", name, (unsigned long long)number);
    TP_TRY(tp_arena_init(&arena, (1 << 16) + 128 * line.len, err));
    TP_TRY(tp_json_parse(&arena, name, line.data, line.len, &json, &object, err));
    TP_TRY(add_row(p, m, place, &row, object, &arena, options, err));
    return read_adapter(&p->items[p->n - 1], m, object, err);
}

static tp_status add_lines(tp_prompt_list *p, tp_text_model *m, const char *name,
                           const tp_buf *text, const tp_prompt_options *options, tp_error *err)
{
    const char *at = tp_buf_str(text), *end = at + text->len;
    size_t before = p->n;
    for (uint64_t number = 1; at < end; number++) {
        tp_slice line = tp_line_take(&at, end);
        if (!tp_line_is_blank(line))
            TP_TRY(add_line(p, m, name, number, line, options, err));
    }
    if (p->n == before)
        return tp_fail(err, TP_ERR_CONFIG, "%s holds no prompts", name);
    return TP_OK;
}

tp_status tp_prompt_list_add_file(tp_prompt_list *p, tp_text_model *m, const char *path,
                                  const tp_prompt_options *options, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    TP_TRY(tp_input_read(path, TP_INPUT_STREAM, MOST_INPUT, &text, err));
    return add_lines(p, m, tp_input_name(path, TP_INPUT_STREAM), &text, options, err);
}

tp_status tp_prompt_list_add_input(tp_prompt_list *p, tp_text_model *m,
                                   const tp_prompt_options *options, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    TP_TRY(tp_input_read("-", TP_INPUT_STREAM, MOST_INPUT, &text, err));
    return tp_prompt_list_add_text(p, m, "standard input", tp_buf_str(&text), text.len, options,
                                   err);
}

void tp_prompt_list_release(tp_prompt_list *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->items[i].place);
        tp_ids_release(&p->items[i].ids);
        tp_buf_release(&p->items[i].text);
    }
    free(p->items);
    *p = (tp_prompt_list){0};
}
