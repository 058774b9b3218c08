/* ceilings.c - what the machine can do, for shares of it: on file, or measured now. */
#include "api/ceilings.h"

#include "base/clock.h"
#include "base/strings.h"
#include "engine/comm/comm.h"
#include "engine/train/graphs.h"

typedef struct {
    void (*say)(void *user, const char *text);
    void *user;
} listener;

static TP_PRINTF(2, 3) void tell(const listener *l, const char *fmt, ...)
{
    TP_OWN(tp_buf) text = {0};
    if (!l->say)
        return;
    TP_BUF_FORMAT(&text, fmt);
    l->say(l->user, tp_buf_str(&text));
}

static void tell_busy(const listener *l, const tp_machine *m)
{
    char left[32];
    tell(l,
         "MFU and shares of limits are unknown: this machine was busy %s; the next try is due in "
         "%s, 'temper doctor' measures now",
         m->busy_tries == 1 ? "when it was measured" : "each time it was measured",
         tp_human_seconds(tp_machine_next_try(m, tp_wall_s()), left));
}

bool tp_ceilings_find(const tp_train_options *options, void (*say)(void *user, const char *text),
                      void *user, tp_machine *ret)
{
    const listener l = {say, user};
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
    if (!found && tp_machine_next_try(&before, tp_wall_s()) > 0) {
        tell_busy(&l, &before);
        return false;
    }
    if (tp_comm_is_launched())
        return false; /* several processes would measure each other */
    tell(&l, "measuring this machine for MFU, once%s ('temper doctor' does it with more care)",
         found ? " more: a run was faster than what is on file" : "");
    if (tp_machine_measure(&tp_backend_cpu, threads, 0.7, ret, &err) != TP_OK) {
        tell(&l, "%s: MFU and shares of limits are unknown", err.message);
        return false;
    }
    if (found) {
        tp_machine_keep_better(&before, ret);
        *ret = before;
    } else if (ret->disturbed_by[0]) {
        ret->busy_tries = before.busy_tries + 1;
        tell(&l, "the measurement was disturbed (%s) and its figures are not used",
             ret->disturbed_by);
        tell_busy(&l, ret);
        if (tp_machine_note_busy(ret, ret->busy_tries, &err) != TP_OK)
            tell(&l, "that could not be noted: %s", err.message);
        return false;
    }
    if (tp_machine_save(ret, &err) != TP_OK)
        tell(&l, "the measurement could not be kept: %s", err.message);
    return true;
}
