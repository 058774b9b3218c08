/* exit_status.h - the exit statuses of the command, in one table: exit_status.def.  128 + N is
 * "stopped by signal N".
 *
 * Threads: any, at once. */
#ifndef TEMPER_EXIT_STATUS_H
#define TEMPER_EXIT_STATUS_H

#include "temper/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
#define EXIT(name, number, meaning) TP_EXIT_##name = number,
#include "temper/exit_status.def"
#undef EXIT
    TP_EXIT_SIGNAL = 128
};

/* That of a failure. */
TP_API int tp_status_exit(tp_status status);

#ifdef __cplusplus
}
#endif

#endif
