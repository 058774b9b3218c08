/* import.c - a file of another trainer: read, recognised, and each key looked up in the source's
 * table.  What takes more than one key is in conversions*.c. */
#include "config/import/import.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/no_memory.h"
#include "base/platform.h"
#include "config/import/import_rows.h"
#include "text/yaml/yaml.h"

enum { ARENA_BYTES = 256 << 20, MAX_TEXT = 1 << 20 };

const char *tp_import_state_name(tp_import_state state)
{
    static const char *const names[] = {"used", "without effect", "to be set", "refused",
                                        "unknown"};
    return names[state];
}

size_t tp_import_count(const tp_import *im, tp_import_state state)
{
    size_t n = 0;
    for (size_t i = 0; i < im->n_keys; i++)
        n += im->keys[i].state == state;
    return n;
}

bool tp_import_is(const tp_import *im, const char *algorithm)
{
    return !strcmp(im->algorithm, algorithm);
}

/* ---- rows ---- */

bool tp_import_matches(const tp_import_row *row, const char *key)
{
    size_t n = strlen(row->key);
    return row->key[n - 1] == '*' ? !strncmp(row->key, key, n - 1) : !strcmp(row->key, key);
}

/* The row of a key: its own before one that stands for many. */
const tp_import_row *tp_import_find(const tp_import *im, unsigned for_whom, const char *key)
{
    const tp_import_row *found = NULL;
    for (const tp_import_row *row = im->source->rows; row->key; row++)
        if ((row->who & for_whom) && tp_import_matches(row, key) &&
            (!found || found->key[strlen(found->key) - 1] == '*'))
            found = row;
    return found;
}

static bool is_section(const tp_import *im, const char *key)
{
    size_t n = strlen(key);
    for (const tp_import_row *row = im->source->rows; row->key; row++)
        if (!strncmp(row->key, key, n) && row->key[n] == '.')
            return true;
    return false;
}

tp_import_key *tp_import_add(tp_import *im, tp_import_key key)
{
    if (im->n_keys == im->room) {
        size_t room = im->room ? 2 * im->room : 64;
        tp_import_key *keys = tp_arena_array(&im->arena, tp_import_key, room);
        if (im->n_keys)
            memcpy(keys, im->keys, im->n_keys * sizeof *keys);
        im->keys = keys;
        im->room = room;
    }
    im->keys[im->n_keys] = key;
    return &im->keys[im->n_keys++];
}

/* "@.max_num_steps" with the algorithm's section. */
static const char *target_of(tp_import *im, const char *target)
{
    tp_buf out = {0};
    for (const char *p = target; *p; p++)
        if (*p == '@')
            tp_buf_adds(&out, im->algorithm);
        else
            tp_buf_addc(&out, *p);
    const char *text = tp_arena_strdup(&im->arena, tp_buf_str(&out));
    tp_buf_release(&out);
    return text;
}

/* ---- values ---- */

void tp_import_value(const tp_json *value, tp_buf *out)
{
    enum { LONGEST = 60 };
    tp_buf text = {0};
    tp_json_w w;
    tp_json_w_init(&w, &text, 0);
    if (value && value->type == TP_JSON_STRING && value->text.len < LONGEST &&
        !strpbrk(value->text.data, "\n\t"))
        tp_buf_add(&text, value->text.data, value->text.len);
    else if (value && value->type == TP_JSON_NUMBER)
        tp_buf_add(&text, value->text.data, value->text.len);
    else if (value)
        tp_json_w_value(&w, value);
    size_t n = text.len;
    if (n > LONGEST)
        n = tp_utf8_valid_len(text.data, LONGEST - 3);
    tp_buf_add(out, tp_buf_str(&text), n);
    if (n < text.len)
        tp_buf_adds(out, "...");
    tp_buf_release(&text);
}

/* A value as it is written in `accepted` and in tables of words. */
static const char *spelled(tp_import *im, const tp_json *v)
{
    switch (v->type) {
    case TP_JSON_NULL:
        return "null";
    case TP_JSON_FALSE:
        return "false";
    case TP_JSON_TRUE:
        return "true";
    case TP_JSON_NUMBER:
    case TP_JSON_STRING:
        return v->text.data;
    default:
        break;
    }
    tp_buf text = {0};
    tp_json_w w;
    tp_json_w_init(&w, &text, 0);
    tp_json_w_value(&w, v);
    const char *copy = tp_arena_strdup(&im->arena, tp_buf_str(&text));
    tp_buf_release(&text);
    return copy;
}

bool tp_import_one_of(const char *word, const char *words)
{
    size_t n = strlen(word);
    for (const char *p = words; *p;) {
        size_t len = strcspn(p, "|");
        if (len == n && !strncmp(p, word, n))
            return true;
        p += len + (p[len] == '|');
    }
    return false;
}

/* ---- the recipe ---- */

static const char *origin_of(tp_import *im, const tp_import_key *key)
{
    if (!key)
        return im->source->title;
    if (key->line)
        return tp_arena_printf(&im->arena, "%s:%u %s", im->path, key->line, key->key);
    return tp_arena_printf(&im->arena, "%s's default, %s", im->source->title, key->key);
}

static void set(tp_import *im, tp_import_key *from, const char *target, const char *value)
{
    if (im->status != TP_OK)
        return;
    if (from)
        from->is_set = true;
    const char *text = tp_arena_printf(&im->arena, "%s=%s", target_of(im, target), value);
    im->status = tp_config_set(im->recipe, text, origin_of(im, from), &im->err);
}

void tp_import_put(tp_import *im, const char *role, const char *target, const char *fmt, ...)
{
    char value[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(value, sizeof value, fmt, ap);
    va_end(ap);
    set(im, tp_import_role(im, role), target, value);
}

/* As YAML on one line; ${ is no interpolation there. */
void tp_import_put_json(tp_import *im, tp_import_key *from, const char *target,
                        const tp_json *value)
{
    tp_buf text = {0}, safe = {0};
    tp_json_w w;
    tp_json_w_init(&w, &text, 0);
    tp_json_w_value(&w, value);
    for (const char *p = tp_buf_str(&text); *p; p++) {
        if (p[0] == '$' && p[1] == '{')
            tp_buf_adds(&safe, "\\\\");
        tp_buf_addc(&safe, *p);
    }
    set(im, from, target, tp_buf_str(&safe));
    tp_buf_release(&text);
    tp_buf_release(&safe);
}

/* ---- roles ---- */

tp_import_key *tp_import_role(tp_import *im, const char *role)
{
    tp_import_key *found = NULL;
    for (size_t i = 0; role && i < im->n_keys; i++) {
        const tp_import_row *row = im->keys[i].row;
        if (row && row->role && !strcmp(row->role, role) && (!found || !found->line))
            found = &im->keys[i];
    }
    return found;
}

bool tp_import_given(tp_import *im, const char *role)
{
    const tp_import_key *key = tp_import_role(im, role);
    return key && key->line;
}

void tp_import_mark(tp_import *im, const char *role, tp_import_state state, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    tp_import_key *key = tp_import_role(im, role);
    if (!key)
        key = tp_import_add(im, (tp_import_key){.key = tp_arena_strdup(&im->arena, role)});
    if (key->state > state)
        return;
    key->state = state;
    key->remark = *text ? tp_arena_strdup(&im->arena, text) : key->remark;
}

static bool is_null(const tp_import_key *key)
{
    return !key || !key->value || key->value->type == TP_JSON_NULL;
}

double tp_import_number(tp_import *im, const char *role)
{
    double v;
    const tp_import_key *key = tp_import_role(im, role);
    if (is_null(key))
        return NAN;
    const char *text = tp_json_str(key->value);
    if ((tp_json_f64(key->value, &v) || (text && tp_str_to_f64(text, &v))) && isfinite(v))
        return v;
    tp_import_mark(im, role, TP_IMPORT_REFUSED, "Expected a number.");
    return NAN;
}

bool tp_import_flag(tp_import *im, const char *role)
{
    const tp_import_key *key = tp_import_role(im, role);
    bool v = false;
    if (!is_null(key) && !tp_json_bool(key->value, &v))
        tp_import_mark(im, role, TP_IMPORT_REFUSED, "Expected true or false.");
    return v;
}

const char *tp_import_word(tp_import *im, const char *role)
{
    const tp_import_key *key = tp_import_role(im, role);
    return is_null(key) ? NULL : spelled(im, key->value);
}

/* ---- keys of the file ---- */

static void say_unknown(tp_import *im, tp_import_key *key)
{
    tp_nearest near = {.word = key->key};
    const tp_import_row *other = tp_import_find(im, TP_FOR_ALL, key->key);
    if (other) { /* of another algorithm */
        key->remark =
            tp_arena_printf(&im->arena, "No key of %s's %s; --algorithm says which it is.",
                            im->source->title, im->algorithm);
        return;
    }
    for (const tp_import_row *row = im->source->rows; row->key; row++)
        if (row->who & tp_import_who(im->algorithm))
            tp_nearest_offer(&near, row->key);
    if (near.best)
        key->remark = tp_arena_printf(&im->arena, "Did you mean %s?", near.best);
}

static void take(tp_import *im, const char *name, const tp_json *value)
{
    const tp_import_row *row = tp_import_find(im, tp_import_who(im->algorithm), name);
    tp_import_key key = {.key = name, .value = value, .line = value->line, .row = row};
    if (!row) {
        key.state = TP_IMPORT_UNKNOWN;
        say_unknown(im, &key);
    } else if (row->kind == TP_ROW_IDLE) {
        key.state = TP_IMPORT_IDLE;
        key.remark = row->remark;
    } else if (row->kind == TP_ROW_ONLY) {
        bool is_right = tp_import_one_of(spelled(im, value), row->values);
        key.state = is_right ? TP_IMPORT_IDLE : TP_IMPORT_REFUSED;
        key.remark = row->remark;
    } else {
        key.becomes = row->target && *row->target ? target_of(im, row->target) : NULL;
        key.remark = row->remark;
    }
    tp_import_add(im, key);
}

static void take_all(tp_import *im, const tp_json *object, const char *prefix)
{
    for (const tp_json *v = object->child; v; v = v->next) {
        const char *name = tp_arena_printf(&im->arena, "%s%s", prefix, v->key.data);
        if (v->type == TP_JSON_OBJECT && is_section(im, name))
            take_all(im, v, tp_arena_printf(&im->arena, "%s.", name));
        else
            take(im, name, v);
    }
}

static bool has_key(const tp_import *im, const tp_import_row *row)
{
    for (size_t i = 0; i < im->n_keys; i++) {
        const tp_import_row *other = im->keys[i].row;
        if (other == row ||
            (other && other->role && row->role && !strcmp(other->role, row->role)) ||
            (other && row->kind <= TP_ROW_WORDS && other->kind <= TP_ROW_WORDS &&
             !strcmp(other->target, row->target)))
            return true;
    }
    return false;
}

/* What the file leaves out and the source has a default for. */
static tp_status add_defaults(tp_import *im, tp_error *err)
{
    for (const tp_import_row *row = im->source->rows; row->key; row++) {
        const tp_json *value;
        if (!(row->who & tp_import_who(im->algorithm)) || !row->fallback || has_key(im, row))
            continue;
        TP_TRY(
            tp_yaml_parse(&im->arena, row->key, row->fallback, strlen(row->fallback), &value, err));
        tp_import_add(im,
                      (tp_import_key){.key = row->key,
                                      .value = value,
                                      .row = row,
                                      .becomes = *row->target ? target_of(im, row->target) : NULL,
                                      .remark = row->remark});
    }
    return TP_OK;
}

/* ---- rows that need no other ---- */

static void put_same(tp_import *im, tp_import_key *key)
{
    const tp_import_row *row = key->row;
    const char *text = tp_json_str(key->value);
    double number;
    if (key->value->type == TP_JSON_NULL && row->fallback && strcmp(row->fallback, "null") != 0) {
        key->state = TP_IMPORT_OPEN;
        key->remark = "null there; a value is needed here.";
        set(im, key, row->target, "???");
    } else if (key->value->type == TP_JSON_NULL) {
        key->becomes = NULL;
    } else if (text && !strcmp(text, "???")) {
        key->state = TP_IMPORT_OPEN;
        set(im, key, row->target, "???");
    } else if (text && tp_str_to_f64(text, &number)) {
        set(im, key, row->target, text); /* YAML 1.1 reads 2e-5 as text */
    } else {
        tp_import_put_json(im, key, row->target, key->value);
    }
}

static void put_word(tp_import *im, tp_import_key *key)
{
    const char *word = spelled(im, key->value);
    size_t n = strlen(word);
    for (const char *p = key->row->values; *p;) {
        size_t len = strcspn(p, "|");
        if (len == 1 && *p == '*') {
            tp_import_put_json(im, key, key->row->target, key->value);
            return;
        }
        if (!strncmp(p, word, n) && p[n] == '=') {
            set(im, key, key->row->target, tp_arena_strndup(&im->arena, p + n + 1, len - n - 1));
            return;
        }
        p += len + (p[len] == '|');
    }
    key->state = TP_IMPORT_REFUSED;
    key->remark = tp_arena_printf(&im->arena, "Known here: %s.", key->row->values);
}

/* In the order of the table, whatever that of the file. */
static void convert(tp_import *im)
{
    set(im, NULL, im->algorithm, "{}");
    for (const tp_import_row *row = im->source->rows; row->key; row++)
        for (size_t i = 0; i < im->n_keys; i++) {
            if (im->keys[i].row != row)
                continue;
            if (row->kind == TP_ROW_SAME)
                put_same(im, &im->keys[i]);
            else if (row->kind == TP_ROW_WORDS)
                put_word(im, &im->keys[i]);
        }
    tp_import_convert(im);
}

/* ---- opening ---- */

static tp_status parse(tp_import *im, const tp_buf *text, const tp_json **ret, tp_error *err)
{
    static const char pickled[] = "\x80";
    const char *data = tp_buf_str(text);
    if (text->len > 1 && (!memcmp(data, "PK", 2) || data[0] == pickled[0]))
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s is Python's pickle; as JSON: python3 -c \"import torch; "
                       "print(torch.load('%s', weights_only=False).to_json_string())\" >args.json",
                       im->path, im->path);
    if (data[strspn(data, " \t\r\n")] == '{')
        return tp_json_parse(&im->arena, im->path, data, text->len, &TP_JSON_TOLERANT, ret, err);
    return tp_yaml_parse(&im->arena, im->path, data, text->len, ret, err);
}

static tp_status read_in(tp_import *im, tp_error *err)
{
    tp_buf text = {0};
    const tp_json *root = NULL;
    tp_status status = tp_input_read(im->path, TP_INPUT_STREAM, MAX_TEXT, &text, err);
    if (status == TP_OK)
        status = parse(im, &text, &root, err);
    tp_buf_release(&text);
    TP_TRY(status);
    TP_TRY(tp_import_not_these(im->path, root, err));
    TP_TRY(tp_import_choose_source(im, root, err));
    if (!im->source->rows)
        return tp_import_nemo_rl(im, err);
    TP_TRY(tp_import_choose_algorithm(im, root, err));
    take_all(im, root, "");
    TP_TRY(add_defaults(im, err));
    convert(im);
    if (im->status != TP_OK && err)
        *err = im->err;
    return im->status;
}

tp_status tp_import_open(const char *path, const tp_import_request *request, tp_import **ret,
                         tp_error *err)
{
    tp_import *im = calloc(1, sizeof *im);
    TP_HAVE(im);
    im->path = path;
    im->request = *request;
    tp_status status = tp_arena_init(&im->arena, ARENA_BYTES, err);
    if (status == TP_OK)
        status = tp_config_load(&im->recipe, NULL, err);
    if (status == TP_OK)
        status = read_in(im, err);
    if (status == TP_OK)
        *ret = im;
    else
        tp_import_close(im);
    return status;
}

void tp_import_close(tp_import *im)
{
    if (!im)
        return;
    tp_config_release(im->recipe);
    tp_config_release(im->file);
    tp_arena_release(&im->arena);
    free(im);
}

void tp_import_write(const tp_import *im, tp_buf *out)
{
    tp_buf_addf(out, "# A recipe for Temper, made by `temper config import` from %s (%s).\n",
                im->path, im->source->title);
    tp_config_write(im->recipe, out);
}
