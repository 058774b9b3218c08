/* profile_tables.h - the tables of recorded steps: operators, ranges, memory, phases. */
#ifndef TP_API_PROFILE_TABLES_H
#define TP_API_PROFILE_TABLES_H

#include "engine/exec/machine.h"
#include "engine/train/trainer.h"
#include "text/json/json.h"
#include "trace/summary.h"

/* `machine` may be NULL: then there is no share of the roofline. */
void tp_table_profile(const tp_train_event *e, const tp_machine *machine,
                      const tp_trace_summary *summary, int width, tp_buf *out);
/* An object. */
void tp_json_profile(const tp_train_event *e, const tp_machine *machine,
                     const tp_trace_summary *summary, tp_json_w *w);

#endif
