/* profile_print.h - a profile as text and as JSON. */
#ifndef TP_CLI_PROFILE_PRINT_H
#define TP_CLI_PROFILE_PRINT_H

#include "cli/profile_baseline.h"

typedef struct {
    const char *name, *recipe, *dir;
    const tp_profile_data *data;
    const tp_machine *machine;               /* or NULL */
    const tp_profile_comparison *comparison; /* or NULL */
    const tp_train_event *event;             /* with the recorded steps; its profile may be NULL */
    const tp_trace_summary *summary;         /* of them, or NULL */
    const tp_bottleneck *bottlenecks;
    int n_bottlenecks;
} tp_profile_report;

void tp_profile_text(const tp_profile_report *r, tp_buf *out);
void tp_profile_write(const tp_profile_report *r, tp_json_w *w);

#endif
