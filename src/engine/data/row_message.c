/* row_message.c - messages and tools of a row, checked. */
#include "engine/data/row_message.h"

#include <string.h>

#include "base/platform.h"

tp_status tp_message_fail(const tp_row *row, tp_message_place at, const char *key, tp_error *err,
                          const char *what)
{
    tp_row_step path[] = {{.key = at.list}, {.index = at.index}, {.key = key}};
    return tp_row_fail_at(row, path, key ? 3 : 2, err, "%s[%zu]%s%s %s", at.list, at.index,
                          key ? "." : "", key ? key : "", what);
}

/* {"type": "text", "text": "..."}, or a string; NULL: no text. */
static const tp_json *text_of_part(const tp_json *part)
{
    const tp_json *text = part->type == TP_JSON_STRING ? part : tp_json_get(part, "text");
    const tp_json *type = tp_json_get(part, "type");
    bool is_text = !type || (type->type == TP_JSON_STRING && tp_slice_is(type->text, "text"));
    return is_text && text && text->type == TP_JSON_STRING ? text : NULL;
}

static bool calls_tools(const tp_json *message)
{
    const tp_json *role = tp_json_get(message, "role"), *calls = tp_json_get(message, "tool_calls");
    return tp_slice_is(role->text, "assistant") && calls && calls->type == TP_JSON_ARRAY &&
           calls->n > 0;
}

static tp_status check_content(const tp_row *row, tp_message_place at, const tp_json *message,
                               tp_error *err)
{
    const tp_json *content = tp_json_get(message, "content");
    char why[80];
    if (content && content->type == TP_JSON_STRING)
        return TP_OK;
    if ((!content || content->type == TP_JSON_NULL) && calls_tools(message))
        return TP_OK;
    if (!content || content->type != TP_JSON_ARRAY) {
        snprintf(why, sizeof why, "is %s; a string is needed", tp_row_type_name(content));
        return tp_message_fail(row, at, "content", err, why);
    }
    for (const tp_json *part = content->child; part; part = part->next)
        if (!text_of_part(part))
            return tp_message_fail(row, at, "content", err,
                                   "has a part that is not text; only text can be used here");
    return TP_OK;
}

tp_status tp_message_check(const tp_row *row, tp_message_place at, const tp_json *message,
                           tp_error *err)
{
    char why[80];
    if (message->type != TP_JSON_OBJECT) {
        snprintf(why, sizeof why, "is %s; an object with role and content is needed",
                 tp_row_type_name(message));
        return tp_message_fail(row, at, NULL, err, why);
    }
    const tp_json *role = tp_json_get(message, "role");
    if (!role || role->type != TP_JSON_STRING) {
        snprintf(why, sizeof why, "is %s; a role such as \"user\" is needed",
                 tp_row_type_name(role));
        return tp_message_fail(row, at, "role", err, why);
    }
    return check_content(row, at, message, err);
}

bool tp_message_has_role(const tp_json *message, const char *role)
{
    const char *text = tp_json_str(tp_json_get(message, "role"));
    return text && strcmp(text, role) == 0;
}

const char *tp_message_speaker(tp_slice from)
{
    static const char *const pairs[][2] = {
        {"human", "user"},          {"user", "user"},         {"gpt", "assistant"},
        {"assistant", "assistant"}, {"chatgpt", "assistant"}, {"bard", "assistant"},
        {"model", "assistant"},     {"system", "system"},     {"tool", "tool"},
        {"observation", "tool"},    {"function", "tool"}};
    for (size_t i = 0; i < TP_COUNTOF(pairs); i++)
        if (tp_slice_is(from, pairs[i][0]))
            return pairs[i][1];
    return NULL;
}

bool tp_message_is_answer(const tp_json *message)
{
    const char *from = tp_json_str(tp_json_get(message, "from"));
    const char *role = from ? tp_message_speaker(tp_slice_of(from)) : NULL;
    return tp_message_has_role(message, "assistant") || (role && !strcmp(role, "assistant"));
}

tp_slice tp_message_text(tp_arena *arena, const tp_json *message)
{
    const tp_json *content = tp_json_get(message, "content"), *text;
    size_t n = 0, used = 0;
    if (content && content->type == TP_JSON_STRING)
        return content->text;
    if (!content || content->type != TP_JSON_ARRAY)
        return (tp_slice){0};
    for (const tp_json *part = content->child; part; part = part->next)
        n += (text = text_of_part(part)) ? text->text.len : 0;
    char *joined = tp_arena_array(arena, char, n + 1);
    for (const tp_json *part = content->child; part; part = part->next)
        if ((text = text_of_part(part)) != NULL && text->text.len) {
            memcpy(joined + used, text->text.data, text->text.len);
            used += text->text.len;
        }
    return (tp_slice){joined, n};
}

/* TRL renders such a row with variables of its own. */
static tp_status refuse_variables(const tp_row *row, const tp_json *object, tp_error *err)
{
    static const char key[] = "chat_template_kwargs";
    tp_row_step path[] = {{.key = key}};
    const tp_json *v = tp_json_get(object, key);
    bool is_list = v && (v->type == TP_JSON_OBJECT || v->type == TP_JSON_ARRAY);
    if (!v || v->type == TP_JSON_NULL || (is_list && v->n == 0))
        return TP_OK;
    return tp_row_fail_at(
        row, path, 1, err,
        "\"%s\": variables of a single row are not supported; remove it (those of all rows are "
        "policy.tokenizer.chat_template_kwargs of a training configuration, "
        "tokenizer.chat_template_kwargs of an evaluation's)",
        key);
}

/* Strings that are empty, and lists and objects of nothing else, are nothing. */
static bool has_something(const tp_json *v)
{
    if (v->type == TP_JSON_STRING)
        return v->text.len > 0;
    if (v->type != TP_JSON_ARRAY && v->type != TP_JSON_OBJECT)
        return v->type != TP_JSON_NULL;
    for (const tp_json *part = v->child; part; part = part->next)
        if (has_something(part))
            return true;
    return false;
}

/* Pictures and sounds beside the conversation, in the columns of LLaMA-Factory and TRL.  Where a
 * table has the column, a row of text alone has nothing in it. */
tp_status tp_row_refuse_media(const tp_row *row, const tp_json *object, tp_error *err)
{
    static const char *const keys[] = {"images", "image", "videos", "video", "audios", "audio"};
    for (size_t i = 0; i < TP_COUNTOF(keys); i++) {
        const tp_json *v = tp_json_get(object, keys[i]);
        tp_row_step path[] = {{.key = keys[i]}};
        if (v && v->type != TP_JSON_FALSE && has_something(v))
            return tp_row_fail_at(row, path, 1, err,
                                  "\"%s\" has something in it; only text can be used here: leave "
                                  "such rows out, or remove the column",
                                  keys[i]);
    }
    return TP_OK;
}

tp_status tp_tools_read(const tp_row *row, const tp_json *object, const char *key, tp_arena *arena,
                        const tp_json **ret, tp_error *err)
{
    const tp_json *tools = tp_json_get(object, key);
    tp_row_step path[] = {{.key = key}};
    *ret = NULL;
    TP_TRY(refuse_variables(row, object, err));
    TP_TRY(tp_row_refuse_media(row, object, err));
    if (tools && tools->type == TP_JSON_STRING) {
        tp_json_options options = TP_JSON_TOLERANT;
        tp_error inner;
        if (tp_json_parse(arena, "tools", tools->text.data, tools->text.len, &options, &tools,
                          &inner) != TP_OK)
            return tp_row_fail_at(row, path, 1, err, "\"%s\" is a string without JSON: %s", key,
                                  inner.message);
    }
    if (!tools || tools->type == TP_JSON_NULL)
        return TP_OK;
    if (tools->type != TP_JSON_ARRAY)
        return tp_row_fail_at(row, path, 1, err, "\"%s\" is %s; a list is needed", key,
                              tp_row_type_name(tools));
    *ret = tools->n ? tools : NULL;
    return TP_OK;
}
