/* common.c - what belongs to the library as a whole. */
#include <signal.h>
#include <stdlib.h>

#include "temper/exit_status.h"
#include "temper/version.h"

void tp_free(void *memory) { free(memory); }

int tp_status_exit(tp_status status)
{
    switch (status) {
    case TP_OK:
        return TP_EXIT_OK;
    case TP_ERR_OUTPUT:
        return TP_EXIT_OUTPUT;
    case TP_ERR_NOMEM:
        return TP_EXIT_MEMORY;
    case TP_ERR_NUMERIC:
        return TP_EXIT_NUMERIC;
    case TP_ERR_INTERRUPTED:
        return TP_EXIT_SIGNAL + SIGINT;
    default:
        return TP_EXIT_INPUT;
    }
}

const char *tp_version(void) { return TEMPER_VERSION; }
