/* row_place.c - a second reading of one row, up to the value that a path names, for line and
 * column of an error. */
#include "engine/data/row_place.h"

#include <stdio.h>

#include "base/platform.h"

enum { LONGEST_KEY = 512 };

tp_status tp_row_fail(const tp_row *row, tp_status status, tp_error *err, const char *fmt, ...)
{
    char message[768];
    TP_FORMAT(message, fmt);
    return tp_fail(err, status, "%s:%llu: %s", row->file, (unsigned long long)row->line, message);
}

tp_json_options tp_row_json_options(const tp_row *row)
{
    tp_json_options options = TP_JSON_TOLERANT;
    options.first_line = (uint32_t)TP_MIN(row->line, (uint64_t)UINT32_MAX);
    return options;
}

const char *tp_row_type_name(const tp_json *v)
{
    static const char *const names[] = {"null",     "a boolean", "a boolean", "a number",
                                        "a string", "an array",  "an object"};
    return v ? names[v->type] : "missing";
}

static bool is_key(const tp_json_token *token, const char *key)
{
    if (!token->has_escapes)
        return tp_slice_is(token->text, key);
    char plain[LONGEST_KEY];
    if (token->text.len > sizeof plain)
        return false;
    tp_slice unescaped = {plain, tp_json_unescape(token->text, plain)};
    return tp_slice_is(unescaped, key);
}

static bool opens(const tp_json_token *token)
{
    return token->type == TP_JSON_TOKEN_BEGIN_OBJECT || token->type == TP_JSON_TOKEN_BEGIN_ARRAY;
}

/* *at opens a container that was just read: advance to its child. */
static bool step_into(tp_json_reader *r, const tp_row_step *step, tp_json_token *at)
{
    tp_json_token_type wanted = step->key ? TP_JSON_TOKEN_BEGIN_OBJECT : TP_JSON_TOKEN_BEGIN_ARRAY;
    if (at->type != wanted)
        return false;
    tp_json_token token;
    for (size_t i = 0;; i++) {
        if (tp_json_reader_next(r, &token, NULL) != TP_OK)
            return false;
        if (token.type == TP_JSON_TOKEN_END_OBJECT || token.type == TP_JSON_TOKEN_END_ARRAY)
            return false;
        bool found = step->key ? is_key(&token, step->key) : i == step->index;
        if (step->key && tp_json_reader_next(r, &token, NULL) != TP_OK)
            return false;
        if (found) {
            *at = token;
            return true;
        }
        if (opens(&token) && tp_json_reader_skip(r, NULL) != TP_OK)
            return false;
    }
}

tp_status tp_row_fail_at(const tp_row *row, const tp_row_step *path, size_t n_path, tp_error *err,
                         const char *fmt, ...)
{
    char message[768];
    TP_FORMAT(message, fmt);

    tp_json_options options = tp_row_json_options(row);
    tp_json_reader reader;
    tp_json_token at;
    tp_json_reader_init(&reader, row->file, row->text, row->n, &options);
    if (tp_json_reader_next(&reader, &at, NULL) != TP_OK)
        return tp_row_fail(row, TP_ERR_FORMAT, err, "%s", message);
    for (size_t i = 0; i < n_path && step_into(&reader, &path[i], &at); i++)
        ;
    tp_json_reader_fail(&reader, &at, err, "%s", message);
    return TP_ERR_FORMAT;
}
