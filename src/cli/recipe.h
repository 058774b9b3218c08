/* recipe.h - a configuration file and overrides from the command line, bound. */
#ifndef TP_CLI_RECIPE_H
#define TP_CLI_RECIPE_H

#include "engine/train/options.h"

typedef struct {
    tp_config *config;
    tp_train_options options;
} tp_recipe;

/* words[0] is the file (or, with n = 0, nothing: defaults), the rest KEY=VALUE.  Unless set,
 * run.name comes from the file's name. */
TP_CHECKED tp_status tp_recipe_open(char **words, int n, tp_recipe *ret, tp_error *err);
/* --isa is another spelling of the last override; `words` has room for one more, `text`
 * holds 64 bytes and outlives them.  Returns the new n. */
int tp_recipe_add_isa(char **words, int n, const char *isa, char *text);
void tp_recipe_close(tp_recipe *recipe);

#endif
