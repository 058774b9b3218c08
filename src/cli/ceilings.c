/* ceilings.c - what the machine can do, for shares of it: on file, or measured now. */
#include "cli/ceilings.h"

#include <stdio.h>

#include "engine/train/graphs.h"

bool tp_cli_ceilings(const tp_train_options *options, bool quiet, tp_machine *ret)
{
    tp_error err = {0};
    bool found = false;
    tp_machine before = {0};
    if (tp_cpu_is_assumed()) /* those of an emulator are nobody's */
        return false;
    int threads = tp_trainer_threads(options);
    if (tp_trainer_force_isa(options, &err) != TP_OK)
        return false; /* the run will say why */
    if (tp_machine_load(&tp_backend_cpu, threads, &before, &found, &err) != TP_OK)
        return false;
    *ret = before;
    if (found && !before.is_doubted)
        return true;
    if (!quiet)
        printf("measuring this machine for MFU, once%s ('temper doctor' does it with more care)\n",
               found ? " more: a run was faster than what is on file" : "");
    if (tp_machine_measure(&tp_backend_cpu, threads, 0.7, ret, &err) != TP_OK) {
        if (!quiet)
            fprintf(stderr, "temper: %s: MFU and shares of limits are unknown\n", err.message);
        return false;
    }
    if (found) {
        tp_machine_keep_better(&before, ret);
        *ret = before;
    } else if (ret->disturbed_by[0]) {
        if (!quiet)
            fprintf(stderr,
                    "temper: the measurement was disturbed (%s) and is not kept: MFU and shares "
                    "of limits are unknown; run 'temper doctor' when the machine is free\n",
                    ret->disturbed_by);
        return false;
    }
    if (tp_machine_save(ret, &err) != TP_OK)
        fprintf(stderr, "temper: the measurement could not be kept: %s\n", err.message);
    return true;
}
