#include "cli/ceilings.h"

#include <stdio.h>

bool tp_cli_ceilings(const tp_train_options *options, bool quiet, tp_machine *ret)
{
    tp_error err = {0};
    bool found = false;
    int64_t threads = options->engine.threads;
    if (tp_cpu_is_assumed()) /* those of an emulator are nobody's */
        return false;
    if (threads == TP_OPT_UNSET_INT)
        threads = tp_cpu_count();
    if (tp_machine_load(&tp_backend_cpu, (int)threads, ret, &found, &err) != TP_OK || found)
        return found;
    if (!quiet)
        printf("measuring this machine for MFU, once ('temper doctor' does it with more care)\n");
    if (tp_machine_measure(&tp_backend_cpu, (int)threads, 0.7, ret, &err) != TP_OK)
        return false;
    if (tp_machine_save(ret, &err) != TP_OK)
        fprintf(stderr, "temper: the measurement could not be kept: %s\n", err.message);
    return true;
}
