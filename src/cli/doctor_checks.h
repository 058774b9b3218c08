/* doctor_checks.h - what `temper doctor` finds out about a configuration or a run folder. */
#ifndef TP_CLI_DOCTOR_CHECKS_H
#define TP_CLI_DOCTOR_CHECKS_H

#include "engine/train/trainer.h"

typedef struct {
    char *what, *text;
    tp_found found;
    bool is_note; /* said by the run itself; no check */
} tp_doctor_check;

typedef struct {
    tp_doctor_check *v;
    size_t n;
} tp_doctor_checks;

/* True ends the look behind what is at work. */
typedef bool tp_doctor_stop(void *user);

/* `words` are CONFIG KEY=VALUE..., or a run folder.  Fails when the configuration does not
 * load; what is wrong with the rest is in the checks. */
TP_CHECKED tp_status tp_doctor_look(char **words, int n, bool resume, tp_doctor_stop *should_stop,
                                    tp_doctor_checks *ret, tp_error *err);
size_t tp_doctor_failures(const tp_doctor_checks *checks);
void tp_doctor_release(tp_doctor_checks *checks);

#endif
