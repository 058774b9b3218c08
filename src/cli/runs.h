/* runs.h - what the commands about recorded runs share. */
#ifndef TP_CLI_RUNS_H
#define TP_CLI_RUNS_H

#include "temper/analysis.h"

/* Notes of the run, to standard error. */
void tp_runs_say_notes(const tp_metrics *m);

/* Open one more of at most `most` runs, and say its notes; more than that ends the program. */
TP_CHECKED tp_status tp_runs_open(tp_metrics **runs, size_t *n, size_t most, const char *path,
                                  tp_error *err);

#endif
