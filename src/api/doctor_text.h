/* doctor_text.h - a diagnosis in words and as JSON. */
#ifndef TP_API_DOCTOR_TEXT_H
#define TP_API_DOCTOR_TEXT_H

#include "api/doctor_checks.h"
#include "base/strings.h"
#include "engine/exec/machine.h"

struct tp_diagnosis {
    tp_doctor_checks checks;
    tp_machine machine; /* measured_at 0: its ceilings are unknown ... */
    tp_error why;       /* ... because of this */
    tp_machine_units units;
    bool has_units; /* measured now */
};

void tp_diagnosis_add_text(const tp_diagnosis *d, tp_buf *out);
void tp_diagnosis_add_json(const tp_diagnosis *d, tp_buf *out);

#endif
