/* import.c - the configuration of another trainer as a recipe, and what each of its keys became. */
#include "temper/import.h"

#include <string.h>

#include "base/no_memory.h"
#include "base/output.h"
#include "base/platform.h"
#include "base/strings.h"
#include "config/import/import.h"
#include "engine/train/algorithm.h"
#include "engine/train/options.h"
#include "text/json/json.h"

struct tp_imported {
    tp_import *import;
};

static tp_option *options_of(const char *algorithm, size_t *ret_n)
{
    for (const tp_algorithm *const *a = tp_algorithms; *a; a++)
        if (!strcmp((*a)->name, algorithm))
            return tp_train_options_of(*a, tp_optimizer_at(0), ret_n);
    return tp_train_options_of(NULL, NULL, ret_n);
}

tp_status tp_imported_open(const char *path, const tp_import_options *options, tp_imported **ret,
                           tp_error *err)
{
    TP_MEMORY_GUARD(err);
    if (!path || !ret)
        return tp_fail(err, TP_ERR_ARG, "tp_imported_open: path or ret is NULL");
    if (options && (options->rows < 0 || options->processes < 0 || !(options->tokens >= 0)))
        return tp_fail(err, TP_ERR_ARG, "tp_imported_open: rows, processes or tokens are below 0");
    tp_import_request request = {.options_of = options_of};
    if (options) {
        request.from = options->from;
        request.algorithm = options->algorithm;
        request.rows = options->rows;
        request.tokens = options->tokens;
        request.processes = options->processes;
    }
    tp_imported *imported = tp_new(1, sizeof *imported);
    TP_HAND_OVER(tp_import_open(path, &request, &imported->import, err), ret, imported,
                 free(imported));
}

void tp_imported_free(tp_imported *imported)
{
    if (!imported)
        return;
    tp_import_close(imported->import);
    free(imported);
}

/* ---- is it sound? ---- */

static void add_names(const tp_import *im, tp_import_state state, tp_buf *out)
{
    const char *between = "";
    if (!tp_import_count(im, state))
        return;
    tp_buf_addf(out, "%s%s: ", out->len ? "; " : "", tp_import_state_name(state));
    for (size_t i = 0; i < im->n_keys; i++)
        if (im->keys[i].state == state) {
            tp_buf_addf(out, "%s%s", between, im->keys[i].key);
            between = ", ";
        }
}

/* Files that the user still has to name hide nothing that is wrong besides. */
static tp_status stand_in(tp_config *config, tp_error *err)
{
    static const char *const keys[] = {"data.train.data_path", "data.validation.data_path",
                                       "policy.model_name"};
    for (size_t i = 0; i < TP_COUNTOF(keys); i++) {
        const char *text = tp_json_str(tp_config_find(config, keys[i]));
        char set[80];
        snprintf(set, sizeof set, "%s=file", keys[i]);
        if (text && !strcmp(text, "???"))
            TP_TRY(tp_config_set(config, set, "import", err));
    }
    return TP_OK;
}

tp_status tp_imported_check(const tp_imported *imported, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(imported, err);
    const tp_import *im = imported->import;
    TP_OWN(tp_buf) names = {0};
    tp_config *copy;
    tp_train_options options;
    add_names(im, TP_IMPORT_REFUSED, &names);
    add_names(im, TP_IMPORT_UNKNOWN, &names);
    tp_status status =
        names.len == 0 ? TP_OK : tp_fail(err, TP_ERR_CONFIG, "%s: %s", im->path, names.data);
    if (status != TP_OK)
        return status;
    TP_TRY(tp_config_copy(im->recipe, &copy, err));
    status = stand_in(copy, err);
    if (status == TP_OK)
        status = tp_train_options_bind(copy, &options, err);
    if (tp_config_missing(copy))
        status = TP_OK;
    tp_config_release(copy);
    return status;
}

tp_status tp_imported_write(const tp_imported *imported, const char *path, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(imported && path, err);
    TP_OWN(tp_buf) out = {0};
    tp_import_write(imported->import, &out);
    return tp_output_put(path, out.data, out.len, err);
}

/* ---- the report ---- */

static void put_state(const tp_import *im, tp_import_state state, bool given, const char *title,
                      tp_buf *out)
{
    bool is_first = true;
    for (size_t i = 0; i < im->n_keys; i++) {
        const tp_import_key *key = &im->keys[i];
        TP_OWN(tp_buf) value = {0};
        if (key->state != state || (state == TP_IMPORT_USED && (key->line > 0) != given) ||
            (!key->line && state == TP_IMPORT_USED && !key->is_set) ||
            (state == TP_IMPORT_IDLE && !key->line))
            continue;
        tp_import_value(key->value, &value);
        if (is_first)
            tp_buf_addf(out, "\n%s\n", title);
        is_first = false;
        tp_buf_addf(out, "  %s%s%s", key->key, value.len ? ": " : "", tp_buf_str(&value));
        if (key->becomes && strcmp(key->becomes, key->key) != 0)
            tp_buf_addf(out, "  ->  %s", key->becomes);
        tp_buf_addc(out, '\n');
        if (key->remark && (given || state != TP_IMPORT_USED))
            tp_buf_addf(out, "      %s\n", key->remark);
    }
}

static void put_text(const tp_import *im, tp_buf *out)
{
    char title[64];
    size_t given = 0;
    for (size_t i = 0; i < im->n_keys; i++)
        given += im->keys[i].line > 0;
    snprintf(title, sizeof title, "%s's defaults, written out", im->source->title);
    tp_buf_addf(out, "%s: %s for %s, %zu key%s\n", im->path, im->source->title, im->algorithm,
                given, tp_plural((uint64_t)given));
    put_state(im, TP_IMPORT_UNKNOWN, true, "unknown", out);
    put_state(im, TP_IMPORT_REFUSED, true, "refused, since they would change the result", out);
    put_state(im, TP_IMPORT_OPEN, true, "to be set", out);
    put_state(im, TP_IMPORT_USED, true, "used", out);
    put_state(im, TP_IMPORT_USED, false, title, out);
    put_state(im, TP_IMPORT_IDLE, true, "without effect", out);
}

static void put_json(const tp_import *im, tp_buf *out)
{
    TP_OWN(tp_buf) yaml = {0};
    tp_import_write(im, &yaml);
    tp_json_w w = tp_json_w_open(out, 2, '{');
    tp_json_w_put_str(&w, "file", im->path);
    tp_json_w_put_str(&w, "source", im->source->name);
    tp_json_w_put_str(&w, "algorithm", im->algorithm);
    tp_json_w_put_begin(&w, "keys", '[');
    for (size_t i = 0; i < im->n_keys; i++) {
        const tp_import_key *key = &im->keys[i];
        tp_json_w_begin(&w, '{');
        tp_json_w_put_str(&w, "key", key->key);
        tp_json_w_put_i64_if(&w, "line", key->line > 0, key->line);
        tp_json_w_put_value(&w, "value", key->value);
        tp_json_w_put_str(&w, "state", tp_import_state_name(key->state));
        tp_json_w_put_str(&w, "becomes", key->becomes);
        tp_json_w_put_str(&w, "remark", key->remark);
        tp_json_w_end(&w, '}');
    }
    tp_json_w_end(&w, ']');
    tp_json_w_put_str(&w, "recipe", yaml.data);
    tp_json_w_close(&w, '}');
}

tp_status tp_imported_report(const tp_imported *imported, tp_form form, char **ret_text,
                             tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(imported && ret_text, err);
    tp_buf out = {0};
    if (form == TP_FORM_JSON)
        put_json(imported->import, &out);
    else
        put_text(imported->import, &out);
    *ret_text = out.data;
    return TP_OK;
}

/* Of NeMo RL's keys those that are not simply used: the others are Temper's. */
static void put_options(tp_buf *out)
{
    size_t n;
    TP_FREED tp_option *options = tp_train_options_of(NULL, NULL, &n);
    tp_buf_adds(out, "| key | here | |\n| --- | --- | --- |\n");
    for (size_t i = 0; i < n; i++) {
        const tp_option *o = &options[i];
        if (!o->accepted && !o->ignored)
            continue;
        tp_buf_addf(out, "| `%s` | %s", o->name, o->accepted ? "refused unless " : "no effect");
        for (const char *p = o->accepted; p && *p; p += strcspn(p, "|"), p += *p == '|')
            tp_buf_addf(out, "%s`%.*s`", p == o->accepted ? "" : ", ", (int)strcspn(p, "|"), p);
        if (o->accepted && o->when)
            tp_buf_addf(out, ", while `%s`", o->when);
        tp_buf_addf(out, " | %s |\n", o->doc);
    }
}

tp_status tp_import_keys(const char *from, char **ret_text, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(from && ret_text, err);
    tp_buf out = {0};
    for (const tp_import_source *s = tp_import_sources; s->name; s++)
        if (!strcmp(s->name, from) && s->rows)
            tp_import_doc(s, &out);
        else if (!strcmp(s->name, from))
            put_options(&out);
    if (!out.len)
        return tp_fail(err, TP_ERR_ARG, "unknown source '%.60s'; known are nemo-rl, trl, axolotl",
                       from);
    *ret_text = out.data;
    return TP_OK;
}
