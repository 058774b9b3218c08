/* find_recipe.h - the file that the first word of a command line means. */
#ifndef TP_CLI_FIND_RECIPE_H
#define TP_CLI_FIND_RECIPE_H

#include "temper/error.h"

enum { TP_CLI_PATH = 4096 }; /* bytes of a path, its end included */

/* words[0] is the file, unless it is KEY=VALUE as the rest are: take it off the words.  *path is
 * "" when none is named.  A file that is not there is looked for among the installed recipes. */
TP_CHECKED tp_status tp_cli_find_recipe(char ***words, int *n, char path[TP_CLI_PATH],
                                        tp_error *err);
/* A flag that is another spelling of a key: one more override, unless it was not given (NULL).
 * `words` has room for it, `text` outlives them.  Returns the new n. */
enum { TP_CLI_SETTING = 96 };
int tp_cli_add_setting(char **words, int n, const char *key, const char *value, char *text);

#endif
