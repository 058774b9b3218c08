/* fields.c - typed access to the fields of a config.json with errors that name line and field.
 */
#include "engine/model/fields.h"

#include <math.h>
#include <string.h>

const tp_json *tp_fields_get(const tp_fields *c, const char *field)
{
    const tp_json *v = tp_json_get(c->object, field);
    return v && v->type != TP_JSON_NULL ? v : NULL;
}

static const char *describe(const tp_json *v, char *out, size_t n)
{
    if (!v)
        return "missing";
    switch (v->type) {
    case TP_JSON_NUMBER:
        snprintf(out, n, "%.60s", v->text.data);
        return out;
    case TP_JSON_STRING:
        snprintf(out, n, "\"%.60s\"", v->text.data);
        return out;
    case TP_JSON_ARRAY:
        return "an array";
    case TP_JSON_OBJECT:
        return "an object";
    default:
        return tp_json_word(v);
    }
}

tp_status tp_fields_fail(const tp_fields *c, const char *field, tp_status status, tp_error *err,
                         const char *fmt, ...)
{
    char message[512], value[80];
    TP_FORMAT(message, fmt);
    const tp_json *v = tp_json_get(c->object, field);
    const tp_json *place = v ? v : c->object;
    return tp_fail(err, status, "%s:%u: \"%s%s\" is %s: %s", c->path, place ? place->line : 1,
                   c->section, field, describe(v, value, sizeof value), message);
}

/* As Python has it: 2.0 is none, and transformers refuses it where an integer is due. */
static bool is_int(const tp_json *v, int64_t *ret)
{
    return v->type == TP_JSON_NUMBER && tp_str_to_i64(v->text.data, ret);
}

tp_status tp_fields_int(const tp_fields *c, const char *field, int64_t low, int64_t high,
                        int64_t fallback, int64_t *ret, tp_error *err)
{
    const tp_json *v = tp_fields_get(c, field);
    int64_t value = fallback;
    if (v ? !is_int(v, &value) || value < low || value > high : fallback == TP_REQUIRED)
        return tp_fields_fail(c, field, TP_ERR_FORMAT, err, "expected an integer from %lld to %lld",
                              (long long)low, (long long)high);
    *ret = value;
    return TP_OK;
}

tp_status tp_fields_number(const tp_fields *c, const char *field, double low, double high,
                           double fallback, double *ret, tp_error *err)
{
    const tp_json *v = tp_fields_get(c, field);
    double value = fallback;
    if (v ? !tp_json_f64(v, &value) || !(value > low && value <= high) : isnan(fallback))
        return tp_fields_fail(c, field, TP_ERR_FORMAT, err,
                              "expected a number above %g and up to %g", low, high);
    *ret = value;
    return TP_OK;
}

tp_status tp_fields_bool(const tp_fields *c, const char *field, bool fallback, bool *ret,
                         tp_error *err)
{
    const tp_json *v = tp_fields_get(c, field);
    bool value = fallback;
    bool is_null = !v && tp_json_get(c->object, field); /* false to Python */
    if (v ? !tp_json_bool(v, &value) : is_null && fallback)
        return tp_fields_fail(c, field, TP_ERR_FORMAT, err, "expected true or false");
    *ret = value;
    return TP_OK;
}

tp_status tp_fields_string(const tp_fields *c, const char *field, const char *fallback,
                           const char **ret, tp_error *err)
{
    const tp_json *v = tp_fields_get(c, field);
    if (v && !tp_json_str(v))
        return tp_fields_fail(c, field, TP_ERR_FORMAT, err, "expected a string");
    *ret = v ? tp_json_str(v) : fallback;
    return TP_OK;
}

tp_status tp_fields_ids(const tp_fields *c, const char *field, int max, int64_t *ids, int *ret_n,
                        tp_error *err)
{
    const tp_json *v = tp_fields_get(c, field);
    bool is_list = v && v->type == TP_JSON_ARRAY;
    int n = 0;
    for (const tp_json *id = is_list ? v->child : v; id; id = is_list ? id->next : NULL) {
        if (n == max || !is_int(id, &ids[n]) || ids[n] < 0 || ids[n] > INT32_MAX)
            return tp_fields_fail(c, field, TP_ERR_FORMAT, err,
                                  "expected a token id or a list of at most %d", max);
        n++;
    }
    *ret_n = n;
    return TP_OK;
}

/* A stretch of the text and what takes its place. */
typedef struct {
    size_t begin, end;
    char text[96];
} edit;

enum { MAX_EDITS = 4 };

/* The value at `token`, read to its end: is it an array or object with something in it? */
static tp_status skip_value(tp_json_reader *r, const tp_json_token *token, bool *ret_has_items,
                            tp_error *err)
{
    *ret_has_items = false;
    if (token->type != TP_JSON_TOKEN_BEGIN_OBJECT && token->type != TP_JSON_TOKEN_BEGIN_ARRAY)
        return TP_OK;
    size_t begin = (size_t)token->offset + 1;
    TP_TRY(tp_json_reader_skip(r, err));
    const char *end = r->at - 1;
    for (const char *p = r->begin + begin; p < end && !*ret_has_items; p++)
        *ret_has_items = !strchr(" \t\r\n", *p);
    return TP_OK;
}

/* In the order of the text; edits[0] is the place after the root's bracket. */
static tp_status find_edits(const char *path, const char *text, size_t n, const char *dtype,
                            const char *architecture, edit edits[MAX_EDITS], int *ret_n,
                            tp_error *err)
{
    tp_json_reader r;
    tp_json_token token;
    int count = 1;
    bool names_architecture = false;
    tp_json_reader_init(&r, path, text, n, &TP_JSON_TOLERANT);
    TP_TRY(tp_json_reader_next(&r, &token, err));
    if (token.type != TP_JSON_TOKEN_BEGIN_OBJECT)
        return tp_json_reader_fail(&r, &token, err, "expected an object");
    edits[0] = (edit){.begin = (size_t)token.offset + 1, .end = (size_t)token.offset + 1};
    for (;;) {
        TP_TRY(tp_json_reader_next(&r, &token, err));
        if (token.type == TP_JSON_TOKEN_END_OBJECT)
            break;
        bool is_dtype = tp_slice_is(token.text, "dtype") || tp_slice_is(token.text, "torch_dtype");
        bool is_architectures = tp_slice_is(token.text, "architectures");
        bool has_items;
        TP_TRY(tp_json_reader_next(&r, &token, err));
        edit e = {.begin = (size_t)token.offset};
        TP_TRY(skip_value(&r, &token, &has_items, err));
        e.end = (size_t)(r.at - text);
        names_architecture |= is_architectures;
        if (!is_dtype && (!is_architectures || has_items))
            continue;
        if (count == MAX_EDITS)
            return tp_json_reader_fail(&r, &token, err, "a field appears more than once");
        snprintf(e.text, sizeof e.text, is_dtype ? "\"%s\"" : "[\"%s\"]",
                 is_dtype ? dtype : architecture);
        edits[count++] = e;
    }
    if (!names_architecture)
        snprintf(edits[0].text, sizeof edits[0].text, "\n  \"architectures\": [\"%s\"],",
                 architecture);
    *ret_n = count;
    return TP_OK;
}

tp_status tp_fields_rewrite(const char *path, const char *text, size_t n, const char *dtype,
                            const char *architecture, tp_buf *out, tp_error *err)
{
    edit edits[MAX_EDITS];
    int count = 0;
    size_t at = 0;
    TP_TRY(find_edits(path, text, n, dtype, architecture, edits, &count, err));
    for (int i = 0; i < count; i++) {
        tp_buf_add(out, text + at, edits[i].begin - at);
        tp_buf_adds(out, edits[i].text);
        at = edits[i].end;
    }
    tp_buf_add(out, text + at, n - at);
    return TP_OK;
}
