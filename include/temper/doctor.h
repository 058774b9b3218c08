/* doctor.h - what this machine can do, and whether a run could begin or has left sound results.
 *
 *     const tp_doctor_options options = {.size = sizeof options, .config = "sft.yaml"};
 *     tp_diagnosis_make(&options, &d, &err);
 *     tp_diagnosis_text(d, false, &text, &n);
 *     tp_diagnosis_free(d);
 *
 * A configuration is looked at by the code that would use it: everything that comes before the
 * first step, going on behind what failed.
 *
 * Threads: tp_diagnosis_make() by one at a time, since it measures the machine; a tp_diagnosis is
 * read-only. */
#ifndef TEMPER_DOCTOR_H
#define TEMPER_DOCTOR_H

#include "temper/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tp_diagnosis tp_diagnosis;

typedef struct {
    size_t size;        /* sizeof(tp_doctor_options) */
    const char *config; /* of a training or an evaluation, or the folder of a run; NULL: the
                           machine alone, or `overrides` over the defaults */
    const char *const *overrides; /* n_overrides "key=value" */
    size_t n_overrides;
    bool resume;     /* as a run would begin with --resume */
    bool use_cached; /* ceilings and self-tests on file; measure only what is missing */
    int threads;     /* 0: one per core */
    double seconds;  /* for the measurement; 0: 3 */
    bool (*should_stop)(void *user); /* asked between the checks; may be NULL */
    void *user;
} tp_doctor_options;

/* Takes `seconds` and the time that a run takes to begin; judges are asked one question.  What is
 * measured is kept under a fingerprint of the machine, unless other work disturbed it.  What is
 * wrong is in the findings: fails when the configuration does not load.
 * TP_ERR_CONFIG, TP_ERR_IO, TP_ERR_FORMAT; TP_ERR_INTERRUPTED by should_stop; TP_ERR_ARG. */
TP_API TP_CHECKED tp_status tp_diagnosis_make(const tp_doctor_options *options, tp_diagnosis **ret,
                                              tp_error *err);
TP_API void tp_diagnosis_free(tp_diagnosis *d); /* NULL is a no-op */

typedef enum {
    TP_FINDING_OK,
    TP_FINDING_FAILED,
    TP_FINDING_UNKNOWN,
    TP_FINDING_NOTE
} tp_finding_kind;
typedef struct {
    const char *what, *text; /* "model"; what there is, or the sentence a run would end with */
    tp_finding_kind kind;
} tp_diagnosis_finding;
/* In the order in which a run meets them; owned by the diagnosis. */
TP_API size_t tp_diagnosis_count(const tp_diagnosis *d);
TP_API tp_diagnosis_finding tp_diagnosis_at(const tp_diagnosis *d, size_t i);
TP_API size_t tp_diagnosis_failures(const tp_diagnosis *d);

/* Machine, limits, instruction sets, ceilings and findings: for people, or as one JSON object.
 * *ret_text: *ret_n bytes and a NUL, tp_free(). */
TP_API void tp_diagnosis_text(const tp_diagnosis *d, bool json, char **ret_text, size_t *ret_n);

#ifdef __cplusplus
}
#endif

#endif
