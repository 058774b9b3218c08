/* ablate.h - the use-case of `temper ablate`, for whoever knows the levers. */
#ifndef TP_INSTRUMENT_EXPERIMENT_ABLATE_H
#define TP_INSTRUMENT_EXPERIMENT_ABLATE_H

#include "instrument/experiment/ablation.h"
#include "temper/experiment.h"

/* As tp_ablate_run(), with these levers; those named in the options are in the set already. */
TP_CHECKED tp_status tp_ablate(const char *config, const char *const *overrides, size_t n,
                               const tp_ablate_options *options, const tp_lever_set *set,
                               char **ret, tp_error *err);

/* The largest relative difference of a loss that counts as rounding: the unit roundoff of the
 * coarsest numbers that a run keeps between operations, once for bfloat16 (2^-8) and float16
 * (2^-11); of float32 2^-14, a thousand of them, since steps add up what rounding begins.
 * NULL: bfloat16's. */
double tp_loss_rounding(const char *precision);

#endif
