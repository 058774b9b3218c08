/* doctor_paths.c - a row per level of instruction sets. */
#include "cli/doctor_paths.h"

#include <stdio.h>

#include "engine/backend/cpu/paths.h"

static const char *state_of(const tp_path *path)
{
    static const char *const words[] = {[TP_PATH_ABSENT] = "not on this processor",
                                        [TP_PATH_PROVEN] = "proven",
                                        [TP_PATH_FAILED] = "FAILED, left out",
                                        [TP_PATH_UNTRIED] = "not tried, left out"};
    return words[path->state];
}

/* The next level may be there, but not for us. */
static const char *why_of(tp_isa isa)
{
    const tp_path *path = &tp_paths()[isa];
    return path->state == TP_PATH_ABSENT && isa == tp_cpu_detect() + 1 ? tp_cpu_withheld()
                                                                       : path->why;
}

static const char *use_of(tp_isa isa)
{
    const tp_path *path = &tp_paths()[isa];
    if (path->state != TP_PATH_PROVEN)
        return "";
    return isa == tp_cpu_isa() ? ", in use" : tp_cpu_may_use(isa) ? "" : ", not asked for";
}

void tp_doctor_print_paths(void)
{
    for (int i = 0; i < TP_ISA_COUNT; i++) {
        const tp_path *path = &tp_paths()[i];
        const char *why = why_of((tp_isa)i);
        bool is_withheld = path->state == TP_PATH_ABSENT && why[0];
        printf("%-16s %s%s%s%s%s\n", tp_isa_name((tp_isa)i),
               is_withheld ? "not to be had" : state_of(path), use_of((tp_isa)i),
               path->is_stored && path->state != TP_PATH_ABSENT ? " (on file)" : "",
               why[0] ? ": " : "", why);
    }
}

void tp_doctor_write_paths(tp_json_w *w)
{
    static const char *const words[] = {[TP_PATH_ABSENT] = "absent",
                                        [TP_PATH_PROVEN] = "proven",
                                        [TP_PATH_FAILED] = "failed",
                                        [TP_PATH_UNTRIED] = "untried"};
    tp_json_w_put_begin(w, "instruction_sets", '[');
    for (int i = 0; i < TP_ISA_COUNT; i++) {
        const tp_path *path = &tp_paths()[i];
        tp_json_w_begin(w, '{');
        tp_json_w_put_str(w, "name", tp_isa_name((tp_isa)i));
        tp_json_w_put_str(w, "state", words[path->state]);
        tp_json_w_put_str(w, "why", why_of((tp_isa)i));
        tp_json_w_put_bool(w, "may_be_used",
                           path->state == TP_PATH_PROVEN && tp_cpu_may_use((tp_isa)i));
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}
