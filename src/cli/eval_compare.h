/* eval_compare.h - evaluations from files: one in numbers, two of the same questions
 * prompt by prompt.  Both print and return the exit status. */
#ifndef TP_CLI_EVAL_COMPARE_H
#define TP_CLI_EVAL_COMPARE_H

#include "base/error.h"

typedef struct {
    double level, threshold;
    bool json;
    const char *report; /* compare: write {"eval": {"before", "after", "paired"}} here as well */
} tp_eval_file_options;

/* `temper eval summarize FILE` */
int tp_eval_summarize_file(const char *path, const tp_eval_file_options *options);
/* The same of a run folder, metrics.jsonl or metrics.json: its validations. */
bool tp_eval_is_run(const char *path);
int tp_eval_summarize_run(const char *path, const tp_eval_file_options *options);
/* `temper eval compare A B` */
int tp_eval_compare_files(const char *a, const char *b, const tp_eval_file_options *options);

#endif
