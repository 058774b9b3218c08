/* find_recipe.h - the folder of the recipes that came with the program. */
#ifndef TP_API_FIND_RECIPE_H
#define TP_API_FIND_RECIPE_H

#include <stdbool.h>

#include "base/strings.h"

/* From the place of this code or of the program that holds it: a build, an installed tree or one
 * that was moved.  False when there is none. */
bool tp_recipes_folder(tp_buf *folder);

/* TP_ERR_CONFIG, with what is meant instead, for a model where a recipe is expected. */
TP_CHECKED tp_status tp_recipe_refuse_model(const char *word, tp_error *err);

#endif
