/* ceilings.h - the machine's measured ceilings for a command that needs them now. */
#ifndef TP_API_CEILINGS_H
#define TP_API_CEILINGS_H

#include "engine/exec/machine.h"
#include "engine/train/options.h"

/* On file from `temper doctor`, or measured now, once, in a second; false when neither.  `say` gets
 * remarks about it; may be NULL. */
bool tp_ceilings_find(const tp_train_options *options, void (*say)(void *user, const char *text),
                      void *user, tp_machine *ret);

#endif
