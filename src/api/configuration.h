/* configuration.h - a recipe and its overrides, bound to the options of a training. */
#ifndef TP_API_CONFIGURATION_H
#define TP_API_CONFIGURATION_H

#include "engine/train/options.h"

typedef struct {
    tp_config *config;
    tp_train_options options; /* texts point into config */
} tp_configuration;

/* `path` NULL: defaults and overrides alone.  Unless set, run.name is the file's name. */
TP_CHECKED tp_status tp_configuration_open(tp_configuration *ret, const char *path,
                                           const char *const *overrides, size_t n, tp_error *err);
void tp_configuration_close(tp_configuration *c);

#endif
