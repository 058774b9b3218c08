/* doctor.h - what there is to find out about a machine, a configuration or a run folder, and how
 * it is said. */
#ifndef TP_API_DOCTOR_H
#define TP_API_DOCTOR_H

#include "base/strings.h"
#include "engine/exec/machine.h"
#include "temper/doctor.h"

typedef struct {
    tp_diagnosis_finding *v; /* texts are owned */
    size_t n;
} tp_doctor_checks;

struct tp_diagnosis {
    tp_doctor_checks checks;
    tp_machine machine; /* measured_at 0: its ceilings are unknown ... */
    tp_error why;       /* ... because of this */
    tp_machine_units units;
    bool has_units; /* measured now */
};

/* Fails when the configuration does not load; what is wrong with the rest is in the checks. */
TP_CHECKED tp_status tp_doctor_look(const tp_doctor_options *o, tp_doctor_checks *ret,
                                    tp_error *err);
void tp_doctor_release(tp_doctor_checks *checks);

void tp_diagnosis_add_text(const tp_diagnosis *d, tp_buf *out);
void tp_diagnosis_add_json(const tp_diagnosis *d, tp_buf *out);

#endif
