/* simulate.h - a run on a network that is not there.
 *
 * The graphs are compiled for every number of ranks and every strategy, as for a run; what ranks
 * send goes through SimGrid's SMPI by the code that a run uses, and launches take the seconds of
 * the plan.  Nothing is trained, no data is read.
 *
 * Threads: one simulation at a time in a process. */
#ifndef TEMPER_SIMULATE_H
#define TEMPER_SIMULATE_H

#include "temper/error.h"
#include "temper/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    size_t size;           /* sizeof(tp_simulate_options) */
    tp_form form;          /* TP_FORM_TEXT or TP_FORM_JSON */
    int ranks;             /* 1, 2, 4 ... up to these, or by another factor */
    const char *platform;  /* a file of SimGrid's, or the name of an installed one: "fat-tree" */
    const char *processor; /* of a rank, "20TFLOP/400GB" in a second; NULL: this machine's measured
                              ceilings */
    const char *slow_link; /* a link with a part of its speed, "NAME=0.1"; NULL: none */
    const char *picture;   /* speed-up and efficiency as .svg, .png or .pdf; NULL: none */
    void (*note)(void *user, const char *text); /* may be NULL */
    void *user;
    int from;   /* fewer ranks than these are left out, but 1; 0: none are */
    int factor; /* from one number of ranks to the next; 0: 2 */
} tp_simulate_options;

/* As `temper simulate` prints it.  *ret_text: tp_free().  TP_ERR_UNSUPPORTED where SimGrid is not
 * installed, TP_ERR_CONFIG for a platform that it does not take. */
TP_API TP_CHECKED tp_status tp_simulate_text(const char *config, const char *const *overrides,
                                             size_t n_overrides, const tp_simulate_options *options,
                                             char **ret_text, tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
