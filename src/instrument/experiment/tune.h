/* tune.h - the use-case of `temper tune`, for whoever knows the levers. */
#ifndef TP_INSTRUMENT_EXPERIMENT_TUNE_H
#define TP_INSTRUMENT_EXPERIMENT_TUNE_H

#include "instrument/experiment/lever_set.h"
#include "temper/experiment.h"

/* As tp_tune_run(), with these levers. */
TP_CHECKED tp_status tp_tune(const char *config, const char *const *overrides, size_t n,
                             const tp_tune_options *options, const tp_lever_set *set, char **ret,
                             tp_error *err);

#endif
