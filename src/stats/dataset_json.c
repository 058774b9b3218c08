/* dataset_json.c - columns from JSON and JSON lines. */
#include <string.h>

#include "base/strings.h"
#include "stats/dataset_internal.h"
#include "text/json/json.h"

/* null is missing; structures are not for columns. */
static void put_json(tp_stats_dataset *data, tp_column *c, size_t row, const tp_json *v)
{
    if (v->type == TP_JSON_NUMBER || v->type == TP_JSON_STRING)
        dataset_cell(data, c, row, v->line, v->text.data, v->text.len);
    else if (v->type == TP_JSON_TRUE || v->type == TP_JSON_FALSE)
        dataset_cell(data, c, row, v->line, v->type == TP_JSON_TRUE ? "1" : "0", 1);
}

/* One object is one row; members of an inner object are "outer.inner". */
static tp_status put_record(tp_stats_dataset *data, size_t row, const tp_json *object,
                            tp_error *err)
{
    size_t hint = 0;
    tp_column *c;
    TP_OWN(tp_buf) name = {0};
    data->is_records = true;
    for (const tp_json *m = object->child; m; m = m->next) {
        bool is_inner = m->type == TP_JSON_OBJECT;
        for (const tp_json *v = is_inner ? m->child : m; v; v = is_inner ? v->next : NULL) {
            if (v->type == TP_JSON_OBJECT || v->type == TP_JSON_ARRAY)
                continue;
            tp_buf_clear(&name);
            tp_buf_add(&name, m->key.data, m->key.len);
            if (is_inner) {
                tp_buf_addc(&name, '.');
                tp_buf_add(&name, v->key.data, v->key.len);
            }
            TP_TRY(dataset_column(data, tp_buf_str(&name), name.len, hint++, &c, err));
            put_json(data, c, row, v);
        }
    }
    return TP_OK;
}

static tp_status put_array(tp_stats_dataset *data, const char *name, size_t length,
                           const tp_json *array, tp_error *err)
{
    tp_column *c;
    size_t row = 0;
    TP_TRY(dataset_column(data, name, length, SIZE_MAX, &c, err));
    for (const tp_json *v = array->child; v; v = v->next)
        put_json(data, c, row++, v);
    return TP_OK;
}

static tp_status put_groups(tp_stats_dataset *data, const tp_json *groups, const tp_json *names,
                            tp_error *err)
{
    size_t i = 0;
    for (const tp_json *g = groups->child; g; g = g->next, i++) {
        const tp_json *name = tp_json_at(names, i);
        bool is_named = tp_json_str(name);
        if (g->type != TP_JSON_ARRAY)
            return tp_fail(err, TP_ERR_FORMAT, "%s:%u: group %zu is not an array of numbers",
                           data->name, g->line, i + 1);
        TP_TRY(put_array(data, is_named ? name->text.data : NULL, is_named ? name->text.len : 0, g,
                         err));
    }
    return TP_OK;
}

/* pandas' {"columns": [names], "data": [rows]} (orient="split"); its "index" numbers the rows. */
static tp_status put_split(tp_stats_dataset *data, const tp_json *names, const tp_json *rows,
                           tp_error *err)
{
    size_t row = 0;
    tp_column *c;
    for (const tp_json *r = rows->child; r; r = r->next, row++) {
        const tp_json *name = names->child;
        size_t hint = 0;
        if (r->type != TP_JSON_ARRAY || r->n != names->n)
            return tp_fail(err, TP_ERR_FORMAT,
                           "%s:%u: row %zu of \"data\" is no array of as many cells as \"columns\" "
                           "has names",
                           data->name, r->line, row + 1);
        for (const tp_json *v = r->child; v; v = v->next, name = name->next) {
            if (name->type != TP_JSON_STRING && name->type != TP_JSON_NUMBER)
                return tp_fail(err, TP_ERR_FORMAT,
                               "%s:%u: a name in \"columns\" is neither a word nor a number",
                               data->name, name->line);
            TP_TRY(dataset_column(data, name->text.data, name->text.len, hint++, &c, err));
            if (c != &data->columns[hint - 1])
                return tp_fail(err, TP_ERR_FORMAT, "%s: two columns are called '%.60s'; rename one",
                               data->name, c->name);
            put_json(data, c, row, v);
        }
    }
    return TP_OK;
}

/* Some of it is for a column; lists of objects are not. */
static bool holds_cells(const tp_json *array)
{
    for (const tp_json *v = array->child; v; v = v->next)
        if (v->type != TP_JSON_OBJECT && v->type != TP_JSON_ARRAY && v->type != TP_JSON_NULL)
            return true;
    return !array->child;
}

static tp_status put_root(tp_stats_dataset *data, const tp_json *root, tp_error *err)
{
    size_t row = 0;
    if (root->type == TP_JSON_ARRAY && root->child && root->child->type == TP_JSON_ARRAY)
        return put_groups(data, root, NULL, err);
    if (root->type == TP_JSON_ARRAY && root->child && root->child->type == TP_JSON_OBJECT) {
        for (const tp_json *v = root->child; v; v = v->next)
            TP_TRY(put_record(data, row++, v, err));
        return TP_OK;
    }
    if (root->type == TP_JSON_ARRAY)
        return put_array(data, NULL, 0, root, err);
    const tp_json *groups = tp_json_get(root, "groups");
    if (groups && groups->type == TP_JSON_ARRAY)
        return put_groups(data, groups, tp_json_get(root, "names"), err);
    const tp_json *names = tp_json_get(root, "columns"), *rows = tp_json_get(root, "data");
    if (names && names->type == TP_JSON_ARRAY && rows && rows->type == TP_JSON_ARRAY &&
        rows->child && rows->child->type == TP_JSON_ARRAY)
        return put_split(data, names, rows, err);
    for (const tp_json *m = root->child; m; m = m->next) {
        /* Beside numbers of its own, as in profile.json, an array is no sample among others. */
        data->is_records |= m->type == TP_JSON_NUMBER || m->type == TP_JSON_OBJECT;
        if (m->type == TP_JSON_ARRAY && holds_cells(m))
            TP_TRY(put_array(data, m->key.data, m->key.len, m, err));
    }
    if (data->n_columns == 0)
        return put_record(data, 0, root, err);
    return TP_OK;
}

static tp_status parse(tp_stats_dataset *data, const char *text, size_t n, uint32_t line,
                       size_t row, bool is_record, tp_error *err)
{
    TP_OWN(tp_arena) arena = {0};
    const tp_json *root;
    tp_json_options options = {.allow_nan = true, .first_line = line};
    size_t room;
    if (__builtin_mul_overflow(n, (size_t)96, &room) || __builtin_add_overflow(room, 65536, &room))
        return tp_fail(err, TP_ERR_FORMAT, "%s: %zu bytes are too many", data->name, n);
    TP_TRY(tp_arena_init(&arena, room, err));
    TP_TRY(tp_json_parse(&arena, data->name, text, n, &options, &root, err));
    if (is_record && root->type != TP_JSON_OBJECT)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: a line that is not an object", data->name, line);
    return is_record ? put_record(data, row, root, err) : put_root(data, root, err);
}

static bool is_blank(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r\n", text[i]) || !text[i])
            return false;
    return true;
}

/* One object per line: the first line ends its object and another follows. */
static bool is_lines(const char *text, size_t n)
{
    const char *stop = memchr(text, '\n', n);
    const char *last = stop;
    if (!stop || is_blank(stop, n - (size_t)(stop - text)))
        return false;
    while (last > text && strchr(" \t\r", last[-1]) && last[-1])
        last--;
    while (stop < text + n && strchr(" \t\r\n", *stop) && *stop)
        stop++;
    return last > text && last[-1] == '}' && text[0] == '{' && stop < text + n && *stop == '{';
}

tp_status dataset_json(const char *text, size_t n, tp_stats_dataset *data, tp_error *err)
{
    uint32_t line = 1;
    size_t row = 0;
    while (n && strchr(" \t\r\n", *text) && *text) {
        line += *text == '\n';
        text++;
        n--;
    }
    if (!is_lines(text, n))
        return parse(data, text, n, line, 0, false, err);
    while (n) {
        const char *stop = memchr(text, '\n', n);
        size_t length = stop ? (size_t)(stop - text) : n;
        if (!is_blank(text, length))
            TP_TRY(parse(data, text, length, line, row++, true, err));
        line++;
        length += stop ? 1 : 0;
        text += length;
        n -= length;
    }
    return TP_OK;
}
