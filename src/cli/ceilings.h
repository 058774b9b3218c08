/* ceilings.h - the machine's measured ceilings for a command that needs them now. */
#ifndef TP_CLI_CEILINGS_H
#define TP_CLI_CEILINGS_H

#include "engine/exec/machine.h"
#include "engine/train/options.h"

/* On file from `temper doctor`, or measured now, once, in a second; false when neither. */
bool tp_cli_ceilings(const tp_train_options *options, bool quiet, tp_machine *ret);

#endif
