/* judging.h - the analysis that a recipe asks for at the end of its run. */
#ifndef TP_API_JUDGING_H
#define TP_API_JUDGING_H

#include "engine/train/options.h"

/* Before anything starts: are the dimensions, thresholds and formats known? */
TP_CHECKED tp_status tp_judging_check(const tp_config *config, const tp_train_options *options,
                                      tp_error *err);
/* Nothing where it is not asked for.  *ret_failed: a threshold failed. */
TP_CHECKED tp_status tp_judging_run(const tp_train_options *options, bool *ret_failed,
                                    tp_error *err);

#endif
