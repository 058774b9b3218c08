/* import.c - a file of another trainer: read, recognised, and each key looked up in the source's
 * table.  What takes more than one key is in conversions*.c. */
#include "config/import/import.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/no_memory.h"
#include "config/import/import_rows.h"
#include "text/yaml/yaml.h"

enum { ARENA_BYTES = 256 << 20, MAX_TEXT = 1 << 20 };

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
    if (!row && value->type == TP_JSON_NULL) {
        key.state = TP_IMPORT_IDLE;
        key.remark = "null: it says nothing, whatever it is.";
    } else if (!row) {
        key.state = TP_IMPORT_UNKNOWN;
        say_unknown(im, &key);
    } else if (row->kind == TP_ROW_IDLE) {
        key.state = TP_IMPORT_IDLE;
        key.remark = row->remark;
    } else if (row->kind == TP_ROW_ONLY) {
        bool is_right = tp_import_one_of(tp_import_spelled(im, value), row->values);
        key.state = is_right ? TP_IMPORT_IDLE : TP_IMPORT_REFUSED;
        key.remark = row->remark;
    } else {
        key.becomes = row->target && *row->target ? tp_import_target(im, row->target) : NULL;
        key.remark = row->remark;
    }
    tp_import_add(im, key);
}

static void take_all(tp_import *im, const tp_json *object, const char *prefix)
{
    for (const tp_json *v = object->child; v; v = v->next) {
        const char *name = tp_arena_printf(&im->arena, "%s%s", prefix, v->key.data);
        if (v->type == TP_JSON_OBJECT && tp_import_is_section(im, name))
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
        TP_TRY(tp_yaml_parse_old(&im->arena, row->key, row->fallback, strlen(row->fallback), &value,
                                 err));
        tp_import_add(
            im, (tp_import_key){.key = row->key,
                                .value = value,
                                .row = row,
                                .becomes = *row->target ? tp_import_target(im, row->target) : NULL,
                                .remark = row->remark});
    }
    return TP_OK;
}

static void leave_older_names(tp_import *im)
{
    for (size_t i = 0; i < im->n_keys; i++) {
        tp_import_key *key = &im->keys[i];
        const tp_import_key *first = key->row ? tp_import_role(im, key->row->role) : NULL;
        if (!first || first == key)
            continue;
        key->state = TP_IMPORT_IDLE;
        key->becomes = NULL;
        key->remark = tp_arena_printf(&im->arena, "%s goes before.", first->key);
    }
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
        tp_import_set(im, key, row->target, "???");
    } else if (key->value->type == TP_JSON_NULL) {
        key->becomes = NULL;
    } else if (text && !strcmp(text, "???")) {
        key->state = TP_IMPORT_OPEN;
        tp_import_set(im, key, row->target, "???");
    } else if (text && tp_str_to_f64(text, &number)) {
        tp_import_set(im, key, row->target, text); /* PyYAML reads 2e-5 as text */
    } else {
        tp_import_put_json(im, key, row->target, key->value);
    }
}

static void put_word(tp_import *im, tp_import_key *key)
{
    const char *word = tp_import_spelled(im, key->value);
    size_t n = strlen(word);
    for (const char *p = key->row->values; *p;) {
        size_t len = strcspn(p, "|");
        if (len == 1 && *p == '*') {
            tp_import_put_json(im, key, key->row->target, key->value);
            return;
        }
        bool is_usual = key->row->fallback && !strcmp(word, key->row->fallback);
        if (!strncmp(p, word, n) && p[n] == '=' && is_usual && !strncmp(p + n + 1, "null", 4))
            return; /* what Temper does without a word */
        if (!strncmp(p, word, n) && p[n] == '=') {
            tp_import_set(im, key, key->row->target,
                          tp_arena_strndup(&im->arena, p + n + 1, len - n - 1));
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
    tp_import_set(im, NULL, im->algorithm, "{}");
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
    return tp_yaml_parse_old(&im->arena, im->path, data, text->len, ret, err);
}

static tp_status read_in(tp_import *im, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    const tp_json *root = NULL;
    tp_status status = tp_input_read(im->path, TP_INPUT_STREAM, MAX_TEXT, &text, err);
    if (status == TP_OK)
        status = parse(im, &text, &root, err);
    TP_TRY(status);
    TP_TRY(tp_import_not_these(im->path, root, err));
    TP_TRY(tp_import_choose_source(im, root, err));
    if (!im->source->rows)
        return tp_import_nemo_rl(im, err);
    TP_TRY(tp_import_choose_algorithm(im, root, err));
    take_all(im, root, "");
    TP_TRY(add_defaults(im, err));
    leave_older_names(im);
    convert(im);
    if (im->status != TP_OK && err)
        *err = im->err;
    return im->status;
}

tp_status tp_import_open(const char *path, const tp_import_request *request, tp_import **ret,
                         tp_error *err)
{
    tp_import *im = tp_new(1, sizeof *im);
    im->path = path;
    im->request = *request;
    tp_status status = tp_arena_init(&im->arena, ARENA_BYTES, err);
    if (status == TP_OK)
        status = tp_config_load(&im->recipe, NULL, err);
    if (status == TP_OK)
        status = read_in(im, err);
    TP_HAND_OVER(status, ret, im, tp_import_close(im));
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
