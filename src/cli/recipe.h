/* recipe.h - a recipe from the words of a command line. */
#ifndef TP_CLI_RECIPE_H
#define TP_CLI_RECIPE_H

#include "engine/train/recipe.h"

/* words[0] is the file, unless it is KEY=VALUE as the rest are; none at all: defaults.  A file
 * that is not there is looked for among the installed recipes: "demo", "recipes/demo.yaml". */
TP_CHECKED tp_status tp_cli_open_recipe(char **words, int n, tp_recipe *ret, tp_error *err);
/* Keys that have no effect, on standard error. */
void tp_cli_print_notice(const char *command, const tp_config *config);
/* The same for a plan: no data need be named. */
TP_CHECKED tp_status tp_cli_open_recipe_sizes(char **words, int n, tp_recipe *ret, tp_error *err);

#endif
