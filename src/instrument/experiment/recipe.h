/* recipe.h - settings of a command line as a recipe that inherits from another. */
#ifndef TP_INSTRUMENT_EXPERIMENT_RECIPE_H
#define TP_INSTRUMENT_EXPERIMENT_RECIPE_H

#include "base/strings.h"

/* Can these be written?  A key that is taken out (~a.b) or is an element of a list (a.0.b) cannot:
 * TP_ERR_ARG. */
TP_CHECKED tp_status tp_recipe_check(const char *const *settings, size_t n, tp_error *err);

/* "defaults: PARENT" (NULL: none), then the settings as nested mappings, the later of two for the
 * same key. */
void tp_recipe_write(const char *parent, const char *const *settings, size_t n, tp_buf *out);

#endif
