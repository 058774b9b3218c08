/* companions.c - tokenizer, template and settings written beside trained weights. */
#include "engine/model/companions.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/files.h"
#include "base/log.h"
#include "base/platform.h"
#include "engine/model/gguf_config.h"
#include "engine/model/model.h"
#include "text/json/json.h"
#include "text/tokenizer/tokenizer_gguf.h"

enum { MAX_TOKENIZER_CONFIG = 64 << 20 };

static const char *const template_file = "chat_template.jinja";
static const char *const config_file = "tokenizer_config.json";
static const char *const generation_file = "generation_config.json";

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool is_of_tokenizer(const char *name)
{
    static const char *const names[] = {"tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "vocab.json",
                                        "merges.txt",
                                        "tokenizer.model",
                                        "chat_template.jinja",
                                        "chat_template.json"};
    return is_one_of(name, names, TP_COUNTOF(names));
}

static bool is_of_model(const char *name)
{
    return strcmp(name, generation_file) == 0 || tp_str_starts(name, "LICENSE") ||
           tp_str_starts(name, "NOTICE") || tp_str_starts(name, "USE_POLICY");
}

static bool is_of_templates(const char *name) { return tp_str_ends(name, ".jinja"); }

/* Those that say how to chat; another template replaces what they say. */
static bool has_template(const char *name)
{
    return strcmp(name, template_file) == 0 || strcmp(name, "chat_template.json") == 0 ||
           strcmp(name, config_file) == 0;
}

/* What is done with each file. */
typedef struct {
    const tp_companions *c;
    const char *folder; /* where they go; NULL: only add sizes up */
    size_t bytes;
} visit;

static tp_status copy_one(visit *v, const char *from, const char *name, tp_error *err)
{
    int64_t size = tp_file_size(from);
    v->bytes += size > 0 ? (size_t)size : 0;
    if (!v->folder)
        return TP_OK;
    return tp_file_copy(from, tp_path_of("%s/%s", v->folder, name).text, err);
}

tp_status tp_model_write_text(const char *folder, const char *name, const tp_buf *text,
                              tp_error *err)
{
    tp_writer *w;
    TP_TRY(tp_writer_open(&w, tp_path_of("%s/%s", folder, name).text, err));
    return tp_writer_end(w, tp_writer_write(w, text->data, text->len, err), err);
}

/* The keys of a GGUF file as the files that they came from. */
static tp_status gguf_texts(const char *path, tp_buf *ret_tokenizer, tp_buf *ret_config,
                            tp_error *err)
{
    tp_gguf *g;
    TP_TRY(tp_gguf_open(path, &g, err));
    tp_status status = tp_tokenizer_json_of_gguf(g, ret_tokenizer, err);
    if (status == TP_OK)
        status = tp_tokenizer_config_of_gguf(g, ret_config, err);
    tp_gguf_close(g);
    return status;
}

static tp_status each_of_gguf(visit *v, const char *path, tp_error *err)
{
    TP_OWN(tp_buf) tokenizer = {0}, config = {0};
    tp_status status = gguf_texts(path, &tokenizer, &config, err);
    v->bytes += tokenizer.len + config.len;
    if (status == TP_OK && v->folder)
        status = tp_model_write_text(v->folder, "tokenizer.json", &tokenizer, err);
    if (status == TP_OK && v->folder && !v->c->chat_template)
        status = tp_model_write_text(v->folder, config_file, &config, err);
    return status;
}

static tp_status each_of(visit *v, const char *folder, bool (*is_wanted)(const char *name),
                         tp_error *err)
{
    /* The files may be there already. */
    if (!folder || (v->folder && tp_files_are_same(folder, v->folder)))
        return TP_OK;
    DIR *dir = opendir(folder);
    if (!dir)
        return tp_fail(err, TP_ERR_IO, "cannot open folder %s: %s", folder, strerror(errno));
    TP_OWN(tp_buf) from = {0};
    tp_status status = TP_OK;
    for (struct dirent *e; status == TP_OK && (e = readdir(dir));) {
        if (!is_wanted(e->d_name) || (v->c->chat_template && has_template(e->d_name)))
            continue;
        tp_buf_clear(&from);
        tp_buf_addf(&from, "%s/%s", folder, e->d_name);
        if (tp_file_exists(from.data))
            status = copy_one(v, from.data, e->d_name, err);
    }
    closedir(dir);
    return status;
}

/* Settings that generation would refuse stay behind, as in an export: nothing is drawn here. */
static tp_status generation_of_gguf(visit *v, const char *path, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    tp_generation_config config;
    tp_status status = tp_generation_config_read(path, NULL, 0, &config, err);
    if (status == TP_OK)
        status = tp_gguf_generation_text(path, &config, &text, err);
    if (status == TP_ERR_UNSUPPORTED || status == TP_ERR_FORMAT) {
        if (v->folder)
            tp_log(TP_LOG_WARNING, "model", "%s; the model is saved without %s", err->message,
                   generation_file);
        return TP_OK;
    }
    TP_TRY(status);
    v->bytes += text.len;
    return v->folder && text.len ? tp_model_write_text(v->folder, generation_file, &text, err)
                                 : TP_OK;
}

/* The templates with names, which lie in a folder of their own. */
static tp_status each_template(visit *v, tp_error *err)
{
    const char *tokenizer = v->c->tokenizer ? v->c->tokenizer : "";
    tp_file_path from = tp_path_of("%s/" TP_MORE_TEMPLATES, tokenizer);
    tp_file_path to = tp_path_of("%s/" TP_MORE_TEMPLATES, v->folder ? v->folder : "");
    visit inner = {.c = v->c, .folder = v->folder ? to.text : NULL};
    if (v->c->chat_template || !*tokenizer || !tp_dir_exists(from.text))
        return TP_OK;
    if (v->folder)
        TP_TRY(tp_dir_make(to.text, err));
    TP_TRY(each_of(&inner, from.text, is_of_templates, err));
    v->bytes += inner.bytes;
    return v->folder ? tp_dir_sync(to.text, err) : TP_OK;
}

static tp_status each(visit *v, tp_error *err)
{
    const char *model = v->c->model ? v->c->model : v->c->tokenizer;
    if (v->c->tokenizer && tp_gguf_is_file(v->c->tokenizer))
        TP_TRY(each_of_gguf(v, v->c->tokenizer, err));
    else
        TP_TRY(each_of(v, v->c->tokenizer, is_of_tokenizer, err));
    TP_TRY(each_template(v, err));
    return model && tp_gguf_is_file(model) ? generation_of_gguf(v, model, err)
                                           : each_of(v, model, is_of_model, err);
}

/* ---- another chat template ---- */

/* tokenizer_config.json with this template and the rest as it was. */
static void rewrite_config(const tp_json *root, const char *chat_template, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, 2, '{');
    for (const tp_json *m = root ? root->child : NULL; m; m = m->next) {
        if (strcmp(m->key.data, "chat_template") == 0)
            continue;
        tp_json_w_put_value(&w, m->key.data, m);
    }
    tp_json_w_put_str(&w, "chat_template", chat_template);
    tp_json_w_close(&w, '}');
}

static tp_status write_config(const tp_companions *c, const char *folder, tp_error *err)
{
    TP_OWN(tp_buf) path = {0}, text = {0}, out = {0};
    TP_OWN(tp_arena) arena = {0};
    const tp_json *root = NULL;
    tp_status status = TP_OK;
    bool is_gguf = tp_gguf_is_file(c->tokenizer);
    tp_buf_addf(&path, is_gguf ? "%s" : "%s/%s", c->tokenizer, config_file);
    if (is_gguf)
        status = gguf_texts(path.data, &out, &text, err);
    else if (tp_file_exists(path.data))
        status = tp_file_read(path.data, MAX_TOKENIZER_CONFIG, &text, err);
    tp_buf_clear(&out);
    if (status == TP_OK && text.len) {
        status = tp_arena_init(&arena, 64 * text.len + 4096, err);
        if (status == TP_OK)
            status = tp_json_parse(&arena, path.data, tp_buf_str(&text), text.len,
                                   &TP_JSON_TOLERANT, &root, err);
    }
    if (status == TP_OK) {
        rewrite_config(root, c->chat_template, &out);
        status = tp_model_write_text(folder, config_file, &out, err);
    }
    return status;
}

tp_status tp_companions_size(const tp_companions *c, size_t *ret, tp_error *err)
{
    visit v = {.c = c};
    TP_TRY(each(&v, err));
    *ret = v.bytes + (c->chat_template ? 2 * strlen(c->chat_template) : 0);
    return TP_OK;
}

tp_status tp_companions_write(const tp_companions *c, const char *folder, tp_error *err)
{
    visit v = {.c = c, .folder = folder};
    TP_TRY(each(&v, err));
    if (!c->chat_template || !c->tokenizer)
        return TP_OK;
    TP_OWN(tp_buf) text = {0};
    tp_buf_adds(&text, c->chat_template);
    TP_TRY(tp_model_write_text(folder, template_file, &text, err));
    return write_config(c, folder, err);
}
