#include "engine/train/recipe.h"

#include <string.h>

/* recipes/sft-gsm8k.yaml -> run.name=sft-gsm8k */
static tp_status name_after_file(tp_config *config, const char *path, tp_error *err)
{
    if (tp_config_find(config, "run.name"))
        return TP_OK;
    tp_buf text = {0};
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    const char *dot = strrchr(file, '.');
    int n = (int)(dot && dot != file ? (size_t)(dot - file) : strlen(file));
    tp_buf_addf(&text, "run.name=%.*s", n, file);
    tp_status status = tp_config_override(config, text.data, err);
    tp_buf_release(&text);
    return status;
}

static tp_status bind(tp_recipe *r, const char *path, const char *const *overrides, size_t n,
                      tp_error *err)
{
    TP_TRY(tp_config_load(&r->config, path, err));
    if (path)
        TP_TRY(name_after_file(r->config, path, err));
    for (size_t i = 0; i < n; i++)
        TP_TRY(tp_config_override(r->config, overrides[i], err));
    return tp_train_options_bind(r->config, &r->options, err);
}

tp_status tp_recipe_open(const char *path, const char *const *overrides, size_t n, tp_recipe *ret,
                         tp_error *err)
{
    tp_recipe r = {0};
    for (size_t i = 0; i < n; i++)
        if (!overrides || !overrides[i])
            return tp_fail(err, TP_ERR_ARG, "override %zu of %zu is NULL", i, n);
    tp_status status = bind(&r, path, overrides, n, err);
    if (status != TP_OK) {
        tp_recipe_close(&r);
        return status;
    }
    *ret = r;
    return TP_OK;
}

void tp_recipe_close(tp_recipe *recipe)
{
    tp_config_release(recipe->config);
    *recipe = (tp_recipe){0};
}
