/* profile.h - where a step's time and memory go: profile a recipe before optimising it.
 *
 * What `temper profile` does: trains a few steps without checkpoints or validation (warm-up, timed,
 * recorded), names what costs most and what to try, and keeps the figures in runs/profiles/NAME to
 * compare with later.
 *
 * Threads: one profile at a time in a process, as it measures time and the trace is the process's.
 */
#ifndef TEMPER_PROFILE_H
#define TEMPER_PROFILE_H

#include "temper/error.h"
#include "temper/text.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TP_PROFILE_MOST_STEPS = 10000 };

typedef struct {
    size_t size;         /* sizeof(tp_profile_options) */
    bool no_warm_up;     /* 0 steps before anything is measured */
    int64_t warm_up;     /* 0: 3 */
    int64_t steps;       /* that are timed, nothing being recorded; 0: 10 */
    int64_t record;      /* recorded as a trace, after those; 0: 2 */
    const char *name;    /* keep the profile under this name; NULL: "latest" */
    bool replace;        /* an existing profile of that name is replaced; "latest" always is */
    const char *against; /* compare with the profile kept under this name; may be NULL */
    tp_form form;        /* TP_FORM_TEXT or TP_FORM_JSON */
    /* Called in the thread that profiles; all may be NULL.  `what` is done in step `done` of `all`:
     * "warming up", "timing", "recording", or what is under way behind it for long. */
    void (*progress)(void *user, int64_t done, int64_t all, const char *what);
    void (*note)(void *user, const char *text);
    bool (*should_stop)(void *user); /* true: TP_ERR_INTERRUPTED, nothing is kept */
    void *user;
    int width;   /* columns of text; 0: 110 */
    bool *worse; /* set to whether the step is worse than that of `against`; may be NULL */
} tp_profile_options;

/* `config`, `overrides`: as for tp_training_run().  *ret: tp_free().
 * TP_ERR_ARG: the name, or a profile of that name is there; TP_ERR_CONFIG, TP_ERR_IO, ... */
TP_API TP_CHECKED tp_status tp_profile_run(const char *config, const char *const *overrides,
                                           size_t n_overrides, const tp_profile_options *options,
                                           char **ret, tp_error *err);

typedef struct {
    size_t size;  /* sizeof(tp_profile_compare_options) */
    tp_form form; /* TP_FORM_TEXT or TP_FORM_JSON */
    int width;    /* columns of text; 0: 110 */
    bool *worse;  /* set to whether the step of `after` is worse; may be NULL */
} tp_profile_compare_options;

/* What changed between two profiles that were kept: folders runs/profiles/NAME, or their files
 * profile.json.  `options` may be NULL.  *ret: tp_free().
 * TP_ERR_IO, TP_ERR_FORMAT. */
TP_API TP_CHECKED tp_status tp_profile_files_compare(const char *before, const char *after,
                                                     const tp_profile_compare_options *options,
                                                     char **ret, tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
