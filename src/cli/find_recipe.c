/* find_recipe.c - the words of a command line that name a recipe and its settings. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "temper/config.h"

tp_status tp_cli_find_recipe(char ***words, int *n, char path[TP_CLI_PATH], tp_error *err)
{
    char *found = NULL;
    path[0] = 0;
    if (*n == 0 || strchr((*words)[0], '='))
        return TP_OK;
    tp_status status = tp_recipe_find((*words)[0], &found, err);
    if (status == TP_OK)
        snprintf(path, TP_CLI_PATH, "%s", found);
    tp_free(found);
    (*words)++;
    (*n)--;
    return status;
}

int tp_cli_add_setting(char **words, int n, const char *key, const char *value, char *text)
{
    if (!value)
        return n;
    snprintf(text, TP_CLI_SETTING, "%s=%s", key, value);
    words[n] = text;
    return n + 1;
}
