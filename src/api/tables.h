/* tables.h - operator, memory and phase tables of a session, as text or JSON. */
#ifndef TP_API_TABLES_H
#define TP_API_TABLES_H

#include "engine/exec/machine.h"
#include "engine/train/trainer.h"
#include "text/json/json.h"

/* Operators of the run's steps by time: launches and time per step, share, FLOP/s, bytes/s, share
 * of the machine's ceilings (machine may be NULL).  False when an operator did more than its
 * ceiling allows. */
bool tp_table_operators(const tp_train_event *e, const tp_machine *machine, int limit, int width,
                        tp_buf *out);
void tp_json_operators(const tp_train_event *e, tp_json_w *w);

/* Planned bytes by kind; with measured ones beside when `measured` is not NULL. */
void tp_table_memory(const tp_run_plan *plan, const tp_mem_stats *measured, tp_buf *out);
void tp_json_memory(const tp_train_event *e, tp_json_w *w);
/* Seconds of a step, planned and measured; nothing before the first step. */
void tp_table_step(const tp_train_event *e, tp_buf *out);
/* Averages and maxima of what the run used; nothing before the first step. */
void tp_table_custom(const tp_train_event *e, tp_buf *out);
/* States of the levers with what the plan says that each saves; 80 columns. */
void tp_table_levers(const tp_lever_reports *levers, tp_buf *out);
/* What they gave, where that is known. */
void tp_table_levers_measured(const tp_lever_reports *levers, tp_buf *out);
/* Phases that add up to the wall time; seconds. */
void tp_table_phases(const double phase_s[TP_TIME_COUNT], tp_buf *out);
void tp_json_phases(const double phase_s[TP_TIME_COUNT], tp_json_w *w);

#endif
