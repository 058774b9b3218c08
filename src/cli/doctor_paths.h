/* doctor_paths.h - the instruction sets and what their self-test says, for `temper doctor`. */
#ifndef TP_CLI_DOCTOR_PATHS_H
#define TP_CLI_DOCTOR_PATHS_H

#include "text/json/json.h"

void tp_doctor_print_paths(void);
void tp_doctor_write_paths(tp_json_w *w); /* "instruction_sets": [...] */

#endif
