/* schema.c - which schema the rows of a file have, and the prompt format around them. */
#include "engine/data/schema.h"

#include <string.h>

#include "base/files.h"
#include "base/platform.h"
#include "engine/data/row_example.h"
#include "engine/data/row_place.h"

enum { MAX_PROMPT_FILE = 1 << 20 };

const char *tp_schema_name(tp_schema_kind kind)
{
    static const char *const names[TP_SCHEMA_KINDS] = {
        "messages",        "sharegpt", "prompt_completion", "alpaca", "input_output",
        "question_answer", "text"};
    return (unsigned)kind < TP_SCHEMA_KINDS ? names[kind] : "unknown";
}

/* The kinds in the order in which a row is held against them: the more telling
 * keys first, since Alpaca's rows often carry a text column as well. */
static const struct {
    tp_schema_kind kind;
    const char *first, *second;
} known[] = {
    {TP_SCHEMA_MESSAGES, "messages", ""},
    {TP_SCHEMA_SHAREGPT, "conversations", ""},
    {TP_SCHEMA_PROMPT_COMPLETION, "prompt", "completion"},
    {TP_SCHEMA_ALPACA, "instruction", "output"},
    {TP_SCHEMA_INPUT_OUTPUT, "input", "output"},
    {TP_SCHEMA_QUESTION_ANSWER, "question", "answer"},
    {TP_SCHEMA_TEXT, "text", ""},
};

static tp_status set_name(char *to, size_t size, const char *option, const char *name,
                          tp_error *err)
{
    size_t n = strlen(name);
    if (n >= size)
        return tp_fail(err, TP_ERR_CONFIG,
                       "data.train.%s is %zu bytes long; at most %zu are allowed", option, n,
                       size - 1);
    memcpy(to, name, n + 1);
    return TP_OK;
}

static tp_status set_keys(tp_schema *schema, tp_schema_kind kind, const char *first,
                          const char *second, tp_error *err)
{
    schema->kind = kind;
    TP_TRY(set_name(schema->first, sizeof schema->first, "input_key", first, err));
    return set_name(schema->second, sizeof schema->second, "output_key", second, err);
}

static const char *or_default(const char *value, const char *fallback)
{
    return value ? value : fallback;
}

static tp_status choose_configured(const tp_schema_options *o, tp_schema *ret, bool *ret_chosen,
                                   tp_error *err)
{
    bool pair = o->input_key || o->output_key;
    int n = (int)pair + !!o->prompt_key + !!o->chat_key + !!o->text_key;
    *ret_chosen = n == 1;
    if (n > 1)
        return tp_fail(err, TP_ERR_CONFIG,
                       "data names several kinds of rows at once; set only one of input_key with "
                       "output_key, prompt_key, chat_key, text_key");
    if (pair)
        return set_keys(ret, TP_SCHEMA_INPUT_OUTPUT, or_default(o->input_key, "input"),
                        or_default(o->output_key, "output"), err);
    if (o->prompt_key)
        return set_keys(ret, TP_SCHEMA_PROMPT_COMPLETION, o->prompt_key, "completion", err);
    if (o->chat_key)
        return set_keys(ret, TP_SCHEMA_MESSAGES, o->chat_key, "", err);
    if (o->text_key)
        return set_keys(ret, TP_SCHEMA_TEXT, o->text_key, "", err);
    return TP_OK;
}

/* "a, b, c": the keys of an object, as far as they fit. */
static void list_keys(const tp_json *object, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (const tp_json *member = object->child; member; member = member->next) {
        int n =
            snprintf(out + used, size - used, "%s\"%.40s\"", used ? ", " : "", member->key.data);
        if (n < 0 || (size_t)n >= size - used) {
            out[used] = 0;
            return;
        }
        used += (size_t)n;
    }
}

static tp_status nothing_fits(const tp_row *row, const tp_json *object, tp_error *err)
{
    char keys[300];
    list_keys(object, keys, sizeof keys);
    if (tp_row_has_pair(object))
        return tp_row_refuse_pair(row, err);
    if (tp_json_get(object, "prompt"))
        return tp_row_fail_at(row, NULL, 0, err,
                              "there is a \"prompt\" but no \"completion\" to learn (keys: %s); "
                              "name both with data.train.input_key and output_key",
                              keys);
    return tp_row_fail_at(row, NULL, 0, err,
                          "no known kind of row has the keys %s; name the columns with "
                          "data.train.input_key and output_key, chat_key or text_key",
                          keys[0] ? keys : "of an empty object");
}

static tp_status detect(const tp_row *row, tp_arena *arena, tp_schema *ret, tp_error *err)
{
    tp_json_options options = tp_row_json_options(row);
    const tp_json *object;
    TP_TRY(tp_json_parse(arena, row->file, row->text, row->n, &options, &object, err));
    if (object->type != TP_JSON_OBJECT)
        return tp_row_fail_at(row, NULL, 0, err,
                              "a row must be a JSON object, this is %s; one object per line, as "
                              "`jq -c '.[]'` makes of an array",
                              tp_row_type_name(object));
    for (size_t i = 0; i < TP_COUNTOF(known); i++)
        if (tp_json_get(object, known[i].first) &&
            (!known[i].second[0] || tp_json_get(object, known[i].second))) {
            TP_TRY(tp_row_check_example(row, object, known[i].kind, known[i].first, err));
            ret->detected = true;
            return set_keys(ret, known[i].kind, known[i].first, known[i].second, err);
        }
    return nothing_fits(row, object, err);
}

tp_status tp_schema_choose(const tp_schema_options *options, const tp_row *row, tp_arena *arena,
                           tp_schema *ret, tp_error *err)
{
    tp_schema schema = {.system_prompt = options->system_prompt,
                        .prompt_template = options->prompt_template};
    bool chosen;
    TP_TRY(choose_configured(options, &schema, &chosen, err));
    if (options->prompt_template)
        TP_TRY(tp_prompt_format_check("data.prompt_file", options->prompt_template, err));
    if (!chosen) {
        size_t mark = tp_arena_mark(arena);
        tp_status status = detect(row, arena, &schema, err);
        tp_arena_rewind(arena, mark);
        TP_TRY(status);
    }
    bool spaced = schema.kind == TP_SCHEMA_ALPACA || schema.kind == TP_SCHEMA_QUESTION_ANSWER;
    TP_TRY(set_name(schema.tools, sizeof schema.tools, "tool_key",
                    or_default(options->tool_key, "tools"), err));
    TP_TRY(set_name(schema.system, sizeof schema.system, "system_key",
                    or_default(options->system_key, ""), err));
    TP_TRY(set_name(schema.separator, sizeof schema.separator, "separator",
                    or_default(options->separator, spaced ? "\n" : ""), err));
    if (schema.kind == TP_SCHEMA_ALPACA)
        strcpy(schema.extra, "input");
    *ret = schema;
    return TP_OK;
}

/* A parsed row takes at most 64 bytes per byte, tools that are JSON in a string as
 * much again; rewritten messages are smaller than that. */
size_t tp_schema_arena_bytes(const tp_schema_options *options, size_t longest_row)
{
    size_t fixed = (1 << 20) + strlen(or_default(options->system_prompt, "")) +
                   strlen(or_default(options->prompt_template, ""));
    return fixed + 256 * longest_row;
}

tp_status tp_prompt_format_check(const char *name, const char *format, tp_error *err)
{
    int n_places = 0, line = 1;
    for (const char *p = format; *p; p++) {
        line += *p == '\n';
        if (*p != '{' && *p != '}')
            continue;
        if (p[0] == p[1]) {
            p++;
        } else if (p[0] == '{' && p[1] == '}') {
            n_places++;
            p++;
        } else {
            return tp_fail(err, TP_ERR_CONFIG,
                           "%s, line %d: a lone '%c'; \"{}\" stands for the prompt, a brace is "
                           "written twice",
                           name, line, *p);
        }
    }
    if (n_places != 1)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s has %d places for the prompt; exactly one \"{}\" is needed", name,
                       n_places);
    return TP_OK;
}

tp_status tp_prompt_file_read(const char *path, bool is_format, tp_buf *buf, const char **ret,
                              tp_error *err)
{
    if (!path)
        return TP_OK;
    TP_TRY(tp_file_read(path, MAX_PROMPT_FILE, buf, err));
    if (!tp_utf8_valid(tp_buf_str(buf), buf->len) || memchr(tp_buf_str(buf), 0, buf->len))
        return tp_fail(err, TP_ERR_FORMAT, "%s is not UTF-8 text", path);
    if (is_format)
        TP_TRY(tp_prompt_format_check(path, tp_buf_str(buf), err));
    *ret = tp_buf_str(buf);
    return TP_OK;
}

char *tp_prompt_format(const char *format, tp_slice text, tp_arena *arena, size_t *ret_len)
{
    char *out = tp_arena_array(arena, char, strlen(format) + text.len + 1);
    size_t n = 0;
    for (const char *p = format; *p; p++) {
        if (p[0] == '{' && p[1] == '}') {
            memcpy(out + n, text.data, text.len);
            n += text.len;
            p++;
            continue;
        }
        out[n++] = *p;
        if (*p == '{' || *p == '}')
            p++; /* written twice */
    }
    *ret_len = n;
    return out;
}
