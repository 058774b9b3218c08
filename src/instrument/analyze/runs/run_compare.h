/* run_compare.h - what else a picture of a comparison has to know. */
#ifndef TP_INSTRUMENT_ANALYZE_RUNS_RUN_COMPARE_H
#define TP_INSTRUMENT_ANALYZE_RUNS_RUN_COMPARE_H

#include "temper/analysis.h"

tp_align tp_run_comparison_align(const tp_run_comparison *c);
double tp_run_comparison_level(const tp_run_comparison *c); /* of intervals */

#endif
