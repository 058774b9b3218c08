/* doctor_checks.h - what there is to find out about a configuration or a run folder. */
#ifndef TP_API_DOCTOR_CHECKS_H
#define TP_API_DOCTOR_CHECKS_H

#include "temper/doctor.h"

typedef struct {
    tp_diagnosis_finding *v; /* texts are owned */
    size_t n;
} tp_doctor_checks;

/* Fails when the configuration does not load; what is wrong with the rest is in the checks. */
TP_CHECKED tp_status tp_doctor_look(const tp_doctor_options *o, tp_doctor_checks *ret,
                                    tp_error *err);
void tp_doctor_release(tp_doctor_checks *checks);

#endif
