/* recipe.c - a recipe with overrides from the command line, bound. */
#include "cli/recipe.h"

#include <stdio.h>

#include "cli/find_recipe.h"

/* ---- opening ---- */

static tp_status load_recipe(char **words, int n, tp_config **ret, tp_error *err)
{
    char path[TP_CLI_PATH];
    TP_TRY(tp_cli_find_recipe(&words, &n, path, err));
    return tp_recipe_load(path[0] ? path : NULL, (const char *const *)words, (size_t)n, ret, err);
}

static tp_status open_recipe(char **words, int n, bool sizes_only, tp_recipe *ret, tp_error *err)
{
    tp_recipe r = {0};
    tp_status status = load_recipe(words, n, &r.config, err);
    if (status == TP_OK)
        status = tp_recipe_bind(&r, sizes_only, err);
    if (status == TP_OK)
        *ret = r;
    else
        tp_recipe_close(&r);
    return status;
}

tp_status tp_cli_open_recipe(char **words, int n, tp_recipe *ret, tp_error *err)
{
    return open_recipe(words, n, false, ret, err);
}

tp_status tp_cli_open_recipe_sizes(char **words, int n, tp_recipe *ret, tp_error *err)
{
    return open_recipe(words, n, true, ret, err);
}

void tp_cli_print_notice(const char *command, const tp_config *config)
{
    const char *text = tp_config_notice(config);
    if (text)
        fprintf(stderr, "temper %s: %s\n", command, text);
}
