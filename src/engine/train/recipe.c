/* recipe.c - a configuration file and overrides, bound to the options of a training. */
#include "engine/train/recipe.h"

#include <string.h>

#include "base/files.h"
#include "base/platform.h"
#include "config/import/import.h"
#include "engine/train/algorithm.h"

/* An evaluation has no run folder. */
static bool is_training(const tp_config *config)
{
    for (const tp_algorithm *const *a = tp_algorithms; *a; a++)
        if (tp_config_find(config, (*a)->name))
            return true;
    return false;
}

/* recipes/sft-gsm8k.yaml -> run.name=sft-gsm8k */
static tp_status name_after_file(tp_config *config, const char *path, tp_error *err)
{
    if (tp_config_find(config, "run.name") || !is_training(config))
        return TP_OK;
    TP_OWN(tp_buf) text = {0};
    const char *file = tp_str_after(path, '/');
    const char *dot = strrchr(file, '.');
    if (strcmp(path, "-") == 0) /* of standard input */
        file = "stdin";
    int n = (int)(dot && dot != file ? (size_t)(dot - file) : strlen(file));
    tp_buf_addf(&text, "run.name=%.*s", n, file);
    return tp_config_override(config, text.data, err);
}

/* A plan reads no data: a recipe that leaves the file to be named can be planned as it is. */
static tp_status drop_missing_data(tp_config *config, tp_error *err)
{
    static const char *const keys[] = {"data.train.data_path", "data.validation.data_path"};
    for (size_t i = 0; i < TP_COUNTOF(keys); i++) {
        const tp_json *value = tp_config_find(config, keys[i]);
        const char *text = value ? tp_json_str(value) : NULL;
        char drop[64];
        snprintf(drop, sizeof drop, "%s=null", keys[i]);
        if (text && strcmp(text, "???") == 0)
            TP_TRY(tp_config_override(config, drop, err));
    }
    return TP_OK;
}

/* A model or rows where a setting is expected: which key they are for. */
static tp_status add_setting(tp_config *config, const char *word, tp_error *err)
{
    bool is_evaluation = tp_recipe_is_evaluation(config), is_rows = tp_str_ends(word, ".jsonl");
    bool is_model = tp_dir_exists(word) || tp_str_ends(word, ".gguf");
    const char *key = is_rows    ? is_evaluation ? "data.data_path" : "data.train.data_path"
                      : is_model ? is_evaluation ? "generation.model_name" : "policy.model_name"
                                 : NULL;
    if (strchr(word, '=') || !key)
        return tp_config_override(config, word, err);
    return tp_fail(err, TP_ERR_CONFIG,
                   "'%.200s' is no setting; they are written KEY=VALUE: %s=%.200s", word, key,
                   word);
}

static tp_status load(tp_config **config, const char *path, const char *const *overrides, size_t n,
                      tp_error *err)
{
    TP_TRY(tp_config_load(config, path, err));
    tp_config_set_translator(*config, tp_import_named_here);
    if (path)
        TP_TRY(name_after_file(*config, path, err));
    for (size_t i = 0; i < n; i++)
        TP_TRY(add_setting(*config, overrides[i], err));
    return TP_OK;
}

tp_status tp_recipe_load(const char *path, const char *const *overrides, size_t n, tp_config **ret,
                         tp_error *err)
{
    tp_config *config = NULL;
    TP_HAND_OVER(load(&config, path, overrides, n, err), ret, config, tp_config_release(config));
}

tp_status tp_recipe_bind(tp_recipe *r, bool sizes_only, tp_error *err)
{
    if (!sizes_only)
        return tp_train_options_bind(r->config, &r->options, err);
    TP_TRY(drop_missing_data(r->config, err));
    return tp_train_options_bind_sizes(r->config, &r->options, err);
}

tp_status tp_recipe_heir(const char *parent, const char *const *settings, size_t n, tp_buf *out,
                         tp_error *err)
{
    size_t n_options;
    TP_FREED tp_option *table = tp_train_options_of(NULL, NULL, &n_options);
    return tp_config_heir(parent, settings, n, table, n_options, out, err);
}

void tp_recipe_place(tp_recipe *recipe, const tp_train_options *as)
{
    tp_train_options *o = &recipe->options;
    o->ranks = as->ranks;
    o->threads_here = as->threads_here;
    o->least_memory = as->least_memory;
}

bool tp_recipe_is_evaluation(const tp_config *config)
{
    if (is_training(config) || tp_config_find(config, "policy"))
        return false;
    return tp_config_find(config, "eval") || tp_config_find(config, "generation");
}

void tp_recipe_close(tp_recipe *recipe)
{
    tp_config_release(recipe->config);
    tp_buf_release(&recipe->said);
    *recipe = (tp_recipe){0};
}
