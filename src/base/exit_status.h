/* exit_status.h - the exit statuses of the command, in one table: exit_status.def.  128 + N is
 * "stopped by signal N". */
#ifndef TP_BASE_EXIT_STATUS_H
#define TP_BASE_EXIT_STATUS_H

enum {
#define EXIT(name, number, meaning) TP_EXIT_##name = number,
#include "base/exit_status.def"
#undef EXIT
    TP_EXIT_SIGNAL = 128
};

#endif
