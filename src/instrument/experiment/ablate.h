/* ablate.h - the use-case of `temper ablate`, for whoever knows the levers. */
#ifndef TP_INSTRUMENT_EXPERIMENT_ABLATE_H
#define TP_INSTRUMENT_EXPERIMENT_ABLATE_H

#include "instrument/experiment/ablation.h"
#include "temper/experiment.h"

/* As tp_ablate_run(), with these levers; those named in the options are in the set already. */
TP_CHECKED tp_status tp_ablate(const char *config, const char *const *overrides, size_t n,
                               const tp_ablate_options *options, const tp_lever_set *set,
                               char **ret, tp_error *err);

#endif
