/* eval_compare.h - two evaluations of the same questions, prompt by prompt. */
#ifndef TP_CLI_EVAL_COMPARE_H
#define TP_CLI_EVAL_COMPARE_H

#include "base/error.h"

/* `temper eval compare A B`: reads what --out or --json wrote; returns the exit status. */
int tp_eval_compare_files(const char *a, const char *b, double level, bool json);

#endif
