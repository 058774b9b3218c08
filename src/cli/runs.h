/* runs.h - what the commands about recorded runs share. */
#ifndef TP_CLI_RUNS_H
#define TP_CLI_RUNS_H

#include "temper/analysis.h"

/* Notes of the run, to standard error. */
void tp_runs_say_notes(const tp_metrics *m);

/* Is it one of the words, which may be shell patterns? */
bool tp_runs_wanted(const char *tag, char **words, int n);
/* Every word names or matches a metric of the run. */
TP_CHECKED tp_status tp_runs_check_tags(tp_metrics *m, char **words, int n, tp_error *err);

#endif
