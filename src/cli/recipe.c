#include "cli/recipe.h"

#include <string.h>

/* recipes/sft-gsm8k.yaml -> sft-gsm8k */
static void name_of(const char *path, char *out, size_t cap)
{
    const char *slash = strrchr(path, '/');
    snprintf(out, cap, "%s", slash ? slash + 1 : path);
    char *dot = strrchr(out, '.');
    if (dot && dot != out)
        *dot = 0;
}

static tp_status bind(tp_recipe *r, char **words, int n, tp_error *err)
{
    bool has_file = n > 0 && !strchr(words[0], '=');
    TP_TRY(tp_config_load(&r->config, has_file ? words[0] : NULL, err));
    if (has_file && !tp_config_find(r->config, "run.name")) {
        char name[256], text[300];
        name_of(words[0], name, sizeof name);
        snprintf(text, sizeof text, "run.name=%s", name);
        TP_TRY(tp_config_override(r->config, text, err));
    }
    for (int i = has_file ? 1 : 0; i < n; i++)
        TP_TRY(tp_config_override(r->config, words[i], err));
    return tp_train_options_bind(r->config, &r->options, err);
}

tp_status tp_recipe_open(char **words, int n, tp_recipe *ret, tp_error *err)
{
    *ret = (tp_recipe){0};
    tp_status status = bind(ret, words, n, err);
    if (status != TP_OK)
        tp_recipe_close(ret);
    return status;
}

int tp_recipe_add_isa(char **words, int n, const char *isa, char *text)
{
    if (!isa)
        return n;
    snprintf(text, 64, "engine.isa=%s", isa);
    words[n] = text;
    return n + 1;
}

void tp_recipe_close(tp_recipe *recipe)
{
    tp_config_release(recipe->config);
    *recipe = (tp_recipe){0};
}
