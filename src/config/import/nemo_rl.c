/* nemo_rl.c - a recipe of NeMo RL: its keys are Temper's, so the table is that of the options, and
 * what the file inherits is read with it. */
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "config/import/import_rows.h"

typedef struct {
    tp_import *im;
    const tp_option *options;
    size_t n;
} walk;

static const tp_option *find(const walk *w, const char *path, size_t n)
{
    for (size_t i = 0; i < w->n; i++)
        if (strlen(w->options[i].name) == n && !strncmp(w->options[i].name, path, n))
            return &w->options[i];
    return NULL;
}

/* The row of a key, or of the section that it lies in. */
static const tp_option *row_of(const walk *w, const char *path)
{
    size_t n = strlen(path);
    const tp_option *row = find(w, path, n);
    while (!row && n) {
        do
            n--;
        while (n && path[n] != '.');
        row = n ? find(w, path, n) : NULL;
        if (row && row->type != TP_OPT_SECTION)
            return NULL;
    }
    return row;
}

static bool has_below(const walk *w, const char *path)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < w->n; i++)
        if (!strncmp(w->options[i].name, path, n) && w->options[i].name[n] == '.')
            return true;
    return false;
}

static const char *text_of(tp_import *im, const tp_json *value)
{
    TP_OWN(tp_buf) out = {0};
    tp_import_value(value, &out);
    return tp_arena_strdup(&im->arena, tp_buf_str(&out));
}

static bool matters(const walk *w, const tp_option *row)
{
    bool is_on = false;
    return !row->when || (tp_json_bool(tp_config_find(w->im->file, row->when), &is_on) && is_on);
}

/* As it is written there, interpolations too. */
static void put(tp_import *im, const char *path, const tp_json *value)
{
    TP_OWN(tp_buf) text = {0};
    tp_buf_addf(&text, "%s=", path);
    tp_json_text(value, &text);
    if (im->status == TP_OK)
        im->status = tp_config_set(im->recipe, tp_buf_str(&text), tp_config_origin(im->file, path),
                                   &im->err);
}

/* What "${a.b}" refers to; anything else is itself. */
static const tp_json *resolved(const walk *w, const tp_json *value)
{
    enum { DEEPEST = 8 };
    for (int i = 0; i < DEEPEST && value; i++) {
        const char *text = tp_json_str(value);
        size_t n = text ? strlen(text) : 0;
        if (n < 4 || strncmp(text, "${", 2) != 0 || text[n - 1] != '}' || text[2] == '.')
            return value;
        value = tp_config_find(w->im->file, tp_arena_strndup(&w->im->arena, text + 2, n - 3));
    }
    return value;
}

static bool is_accepted(const walk *w, const tp_option *row, const tp_json *value)
{
    const tp_json *v = resolved(w, value);
    return v && tp_import_one_of(text_of(w->im, v), row->accepted);
}

static void take(const walk *w, const char *path, const tp_json *value)
{
    const tp_option *row = row_of(w, path);
    tp_import_key key = {
        .key = tp_arena_strdup(&w->im->arena, path), .value = value, .line = value->line};
    if (!row)
        key.state = TP_IMPORT_UNKNOWN;
    else if (row->belongs_to) {
        key.state = TP_IMPORT_REFUSED;
        key.remark = tp_arena_printf(&w->im->arena, "Part of %s.", row->belongs_to);
    } else if (row->accepted) {
        bool is_right = is_accepted(w, row, value);
        key.state = is_right || !matters(w, row) ? TP_IMPORT_IDLE : TP_IMPORT_REFUSED;
        key.remark = row->doc;
    } else if (row->ignored) {
        key.state = TP_IMPORT_IDLE;
        key.remark = row->doc;
    } else {
        key.becomes = key.key;
        put(w->im, path, value);
    }
    tp_import_add(w->im, key);
}

/* Nests as deep as the file does, which its reader bounds. */
static void take_all(const walk *w, const char *prefix, const tp_json *object)
{
    for (const tp_json *v = object->child; v; v = v->next) {
        char path[512];
        snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", v->key.data);
        bool is_section = has_below(w, path);
        if (v->type == TP_JSON_OBJECT && v->n && is_section)
            take_all(w, path, v);
        else if (is_section && v->n == 0 && v->type == TP_JSON_NULL)
            put(w->im, path, v); /* takes what was inherited away */
        else if (is_section && v->n == 0 && v->type == TP_JSON_OBJECT)
            continue;
        else
            take(w, path, v);
    }
}

/* NeMo RL names data sets that it downloads. */
static void ask_for_data(const walk *w)
{
    static const char *const keys[] = {"data.train.data_path", "data.default.data_path"};
    static const char name_key[] = "data.train.dataset_name";
    const char *name = tp_json_str(tp_config_find(w->im->file, name_key));
    for (size_t i = 0; i < TP_COUNTOF(keys); i++)
        if (tp_config_find(w->im->file, keys[i]))
            return;
    if (name && tp_import_one_of(name, "arithmetic|countdown"))
        return;
    for (size_t i = 0; name && i < w->im->n_keys; i++)
        if (!strcmp(w->im->keys[i].key, name_key)) {
            w->im->keys[i].state = TP_IMPORT_OPEN;
            w->im->keys[i].becomes = keys[0];
            w->im->keys[i].remark = "A file of JSON Lines; nothing is downloaded.";
        }
    if (w->im->status == TP_OK)
        w->im->status =
            tp_config_set(w->im->recipe, "data.train.data_path=???", w->im->path, &w->im->err);
}

static const char *algorithm_of(const tp_import *im)
{
    static const char *const names[] = {"sft", "dpo", "grpo"};
    for (size_t i = 0; i < TP_COUNTOF(names); i++)
        if (im->request.algorithm ? !strcmp(names[i], im->request.algorithm)
                                  : tp_config_find(im->file, names[i]) != NULL)
            return names[i];
    return NULL;
}

tp_status tp_import_nemo_rl(tp_import *im, tp_error *err)
{
    TP_TRY(tp_config_load_old(&im->file, im->path, err));
    im->algorithm = algorithm_of(im);
    if (!im->algorithm)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s has no section sft, dpo or grpo: Temper has no other algorithms",
                       im->path);
    walk w = {.im = im};
    TP_FREED tp_option *options = im->request.options_of(im->algorithm, &w.n);
    w.options = options;
    take_all(&w, "", tp_config_resolved(im->file));
    ask_for_data(&w);
    if (im->status != TP_OK && err)
        *err = im->err;
    return im->status;
}
