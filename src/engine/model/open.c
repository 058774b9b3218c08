/* open.c - a model wherever it is: a folder, a GGUF file, a config.json, or an adapter that names
 * its base. */
#include <sys/stat.h>

#include "base/files.h"
#include "engine/model/adapter_internal.h"
#include "engine/model/gguf_config.h"

enum { ARENA_BASE = 8 << 20, MOST_BESIDE = 64 };

/* The ids that end a text: generation_config.json knows more of them. */
static tp_status read_generation_config(tp_model *model, tp_error *err)
{
    TP_OWN(tp_buf) path = {0};
    TP_OWN(tp_arena) arena = {0};
    const tp_json *root;
    const tp_json_options options = {.allow_nan = true};
    tp_buf_addf(&path, "%s/generation_config.json", model->folder);
    if (!tp_file_exists(path.data) || tp_file_size(path.data) == 0)
        return TP_OK;
    TP_TRY(tp_json_read(&arena, path.data, TP_MAX_CONFIG_BYTES, &options, &root, err));
    tp_fields c = {.path = path.data, .section = "", .object = root};
    return tp_fields_get(&c, "eos_token_id")
               ? tp_fields_ids(&c, "eos_token_id", TP_MAX_EOS, model->info.eos, &model->info.n_eos,
                               err)
               : TP_OK;
}

static tp_status open_file(const char *config, const char *folder, tp_model **ret, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    tp_model *model = NULL;
    tp_status status = tp_file_read(config, TP_MAX_CONFIG_BYTES, &text, err);
    if (status == TP_OK)
        status = tp_model_parse_in(folder, config, tp_buf_str(&text), text.len, &model, err);
    if (status == TP_OK && folder)
        status = read_generation_config(model, err);
    TP_HAND_OVER(status, ret, model, tp_model_free(model));
}

/* As if its keys were a config.json. */
static tp_status open_gguf(const char *path, tp_model **ret, tp_error *err)
{
    tp_gguf *g;
    TP_OWN(tp_buf) text = {0}, name = {0};
    TP_TRY(tp_gguf_open(path, &g, err));
    tp_buf_addf(&name, "%s (its keys as config.json)", path);
    tp_status status = tp_gguf_config(g, &text, err);
    if (status == TP_OK)
        status = tp_model_parse_in(path, name.data, tp_buf_str(&text), text.len, ret, err);
    tp_gguf_close(g);
    return status;
}

/* The base is where adapter_config.json says, seen from here, or else from the adapter. */
static tp_status find_base(const char *folder, const char *config, const char *base, tp_buf *ret,
                           tp_error *err)
{
    if (!base || !*base)
        return tp_fail(err, TP_ERR_FORMAT, "%s names no base: base_model_name_or_path is missing",
                       config);
    for (size_t i = 0; i < 3; i++) {
        tp_buf_clear(ret);
        if (i == 0)
            tp_buf_adds(ret, base);
        else
            tp_buf_addf(ret, i == 1 ? "%s/%s" : "%s/../%s", folder, base);
        TP_OWN(tp_buf) probe = {0};
        tp_buf_addf(&probe, "%s/config.json", ret->data);
        bool is_there = tp_file_exists(probe.data) || tp_gguf_is_file(ret->data);
        if (is_there)
            return TP_OK;
    }
    return tp_fail(err, TP_ERR_IO,
                   "%s: the base '%s' is no folder with config.json, from here or from the "
                   "adapter: models are not downloaded; put it there, or its path into "
                   "base_model_name_or_path",
                   config, base);
}

/* A base is a model of its own, whatever else its folder holds. */
static tp_status open_base(const char *path, tp_model **ret, tp_error *err)
{
    if (tp_gguf_is_file(path))
        return open_gguf(path, ret, err);
    return open_file(tp_path_of("%s/config.json", path).text, path, ret, err);
}

static tp_status attach_from(const char *folder, const char *config, const tp_buf *text,
                             tp_arena *arena, tp_model **ret, tp_error *err)
{
    tp_lora_settings settings;
    const char *base;
    TP_OWN(tp_buf) path = {0};
    tp_model *model = NULL;
    TP_TRY(
        tp_adapter_config_read(config, tp_buf_str(text), text->len, arena, &settings, &base, err));
    tp_status status = find_base(folder, config, base, &path, err);
    if (status == TP_OK)
        status = open_base(path.data, &model, err);
    if (status == TP_OK) {
        status = tp_model_attach(model, &settings, err);
        status = status == TP_OK ? TP_OK : tp_error_prefix(err, status, "%s: ", config);
    }
    if (status != TP_OK) {
        tp_model_free(model);
        return status;
    }
    model->lora->folder = tp_arena_strdup(&model->arena, folder);
    *ret = model;
    return TP_OK;
}

static tp_status open_adapter(const char *folder, const char *config, tp_model **ret, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    TP_OWN(tp_arena) arena = {0};
    TP_TRY(tp_file_read(config, TP_MAX_CONFIG_BYTES, &text, err));
    TP_TRY(tp_arena_init(&arena, text.len * TP_CONFIG_JSON_FACTOR + ARENA_BASE, err));
    return attach_from(folder, config, &text, &arena, ret, err);
}

/* ---- several adapters on one model ---- */

/* The base that an adapter names, where it is here and is not the model that it is put on. */
static void note_other_base(tp_model *model, tp_lora *l, const char *folder, const char *config,
                            const char *base)
{
    struct stat theirs, ours;
    TP_OWN(tp_buf) path = {0};
    tp_error ignored;
    bool is_found = model->folder && find_base(folder, config, base, &path, &ignored) == TP_OK &&
                    stat(path.data, &theirs) == 0 && stat(model->folder, &ours) == 0;
    if (is_found && (theirs.st_dev != ours.st_dev || theirs.st_ino != ours.st_ino))
        l->elsewhere = tp_arena_strdup(&model->arena, path.data);
}

static tp_status add_from(tp_model *model, const char *folder, const char *config, tp_arena *arena,
                          tp_lora **ret, tp_error *err)
{
    tp_lora_settings settings;
    const char *base;
    char called[32];
    TP_OWN(tp_buf) text = {0};
    snprintf(called, sizeof called, "adapters.%zu.", model->n_beside);
    tp_status status = tp_file_read(config, TP_MAX_CONFIG_BYTES, &text, err);
    if (status == TP_OK)
        status = tp_adapter_config_read(config, tp_buf_str(&text), text.len, arena, &settings,
                                        &base, err);
    if (status == TP_OK) {
        status = tp_lora_new(model, &settings, called, ret, err);
        status = status == TP_OK ? TP_OK : tp_error_prefix(err, status, "%s: ", config);
    }
    if (status == TP_OK)
        note_other_base(model, *ret, folder, config, base);
    return status;
}

static void remember(tp_model *model, tp_lora *l, const char *name, const char *folder)
{
    tp_lora **all = tp_arena_array(&model->arena, tp_lora *, model->n_beside + 1);
    for (size_t i = 0; i < model->n_beside; i++)
        all[i] = model->beside[i];
    l->name = tp_arena_strdup(&model->arena, name);
    l->folder = tp_arena_strdup(&model->arena, folder);
    all[model->n_beside++] = l;
    model->beside = all;
}

tp_status tp_model_add_adapter(tp_model *model, const char *name, const char *folder, tp_error *err)
{
    TP_OWN(tp_buf) config = {0};
    TP_OWN(tp_arena) arena = {0};
    tp_lora *l;
    if (model->lora)
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' is an adapter itself: several are put on the base, '%s'",
                       model->lora->folder, model->folder);
    if (model->n_beside == MOST_BESIDE)
        return tp_fail(err, TP_ERR_CONFIG, "more than %d adapters", MOST_BESIDE);
    TP_TRY(tp_arena_init(&arena, TP_MAX_CONFIG_BYTES * TP_CONFIG_JSON_FACTOR + ARENA_BASE, err));
    tp_buf_addf(&config, "%s/adapter_config.json", folder);
    TP_TRY(tp_file_exists(config.data)
               ? TP_OK
               : tp_fail(err, TP_ERR_CONFIG, "'%s' is no adapter: it has no adapter_config.json",
                         folder));
    TP_TRY(add_from(model, folder, config.data, &arena, &l, err));
    remember(model, l, name, folder);
    return TP_OK;
}

tp_status tp_model_open(const char *path, tp_model **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    if (tp_gguf_is_file(path))
        return open_gguf(path, ret, err);
    if (tp_file_exists(path) && !tp_str_ends(path, ".json"))
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s is no model: that is the folder with config.json, a config.json or a "
                       "GGUF file",
                       path);
    if (tp_file_exists(path))
        return open_file(path, NULL, ret, err);
    if (!tp_dir_exists(path))
        return tp_fail(err, TP_ERR_IO,
                       "there is no model at %s: expected a folder with config.json, a config.json "
                       "or a GGUF file; " TP_MODEL_REMEDY,
                       path);
    const tp_file_path adapter = tp_path_of("%s/adapter_config.json", path);
    const tp_file_path config = tp_path_of("%s/config.json", path);
    if (tp_file_exists(adapter.text)) /* beside a config.json as well, as transformers does */
        return open_adapter(path, adapter.text, ret, err);
    if (tp_file_exists(config.text))
        return open_file(config.text, path, ret, err);
    return tp_fail(err, TP_ERR_IO,
                   "%s has no config.json and no adapter_config.json: expected the folder of a "
                   "Hugging Face model or of an adapter",
                   path);
}
