/* config.h - a configuration as it will be used: every key with its value and where that came
 * from.
 *
 *     tp_configuration_open("sft.yaml", NULL, 0, &c, &err);
 *     tp_configuration_text(c, false, &text, &n);
 *     tp_configuration_free(c);
 *
 * Threads: any, at once; a tp_configuration is read-only once open. */
#ifndef TEMPER_CONFIG_H
#define TEMPER_CONFIG_H

#include "temper/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The file that a word means: itself where there is such a file, or "-", standard input; of a
 * folder, as that of a run, its config.yaml; else the recipe of that name that came with the
 * program or library (share/temper/recipes of its prefix), with or without ".yaml" and "recipes/".
 * *ret_path: tp_free().  TP_ERR_IO: none, and which there are. */
TP_API TP_CHECKED tp_status tp_recipe_find(const char *word, char **ret_path, tp_error *err);

/* Names of the recipes that came with the program or library, one a line.  *ret_names: tp_free().
 */
TP_API TP_CHECKED tp_status tp_recipe_names(char **ret_names, tp_error *err);
/* The same for people: with what each is for, and the folder they are in.  *ret_text: tp_free(). */
TP_API TP_CHECKED tp_status tp_recipe_list(char **ret_text, tp_error *err);

typedef struct tp_configuration tp_configuration;

/* `path` is a YAML file of a training or an evaluation, or NULL: the defaults; `overrides` are n
 * "key=value" over it.  A tree that can be made opens, whatever else is wrong with it.
 * TP_ERR_IO, TP_ERR_FORMAT, TP_ERR_CONFIG, TP_ERR_ARG. */
TP_API TP_CHECKED tp_status tp_configuration_open(const char *path, const char *const *overrides,
                                                  size_t n_overrides, tp_configuration **ret,
                                                  tp_error *err);
TP_API void tp_configuration_free(tp_configuration *c); /* NULL is a no-op */

/* What is wrong with it; TP_OK, too, when only something is still to be set (???). */
TP_API TP_CHECKED tp_status tp_configuration_check(const tp_configuration *c, tp_error *err);
/* What is still to be set, and keys without effect: a sentence, or NULL.  The configuration's. */
TP_API const char *tp_configuration_missing(const tp_configuration *c);
TP_API const char *tp_configuration_notice(const tp_configuration *c);

/* The tree: YAML with the origin of each value, or JSON.  *ret_text: *ret_n bytes and a NUL,
 * tp_free(). */
TP_API void tp_configuration_text(const tp_configuration *c, bool json, char **ret_text,
                                  size_t *ret_n);
/* Every key of a training with type, default and meaning, as Markdown. */
TP_API void tp_configuration_keys(char **ret_text, size_t *ret_n);

#ifdef __cplusplus
}
#endif

#endif
