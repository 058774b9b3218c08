/* eval_compare.h - evaluations from files: one in numbers, two of the same questions
 * prompt by prompt, the validations of a run step by step. */
#ifndef TP_INSTRUMENT_EVALUATIONS_EVAL_COMPARE_H
#define TP_INSTRUMENT_EVALUATIONS_EVAL_COMPARE_H

#include "base/strings.h"

typedef struct {
    double level, threshold; /* of the intervals; rewards from here on are right, where the file
                                does not say */
    bool json;               /* one object, not text for people */
    const char *report; /* compare: write {"eval": {"before", "after", "paired"}} here as well */
    bool *worse;        /* compare: set to whether pass@1 or the mean reward is worse; or NULL */
} tp_eval_file_options;

/* A file (see eval_read.h), or a run folder, metrics.jsonl or metrics.json: its validations. */
TP_CHECKED tp_status tp_eval_summarize_path(const char *path, const tp_eval_file_options *options,
                                            tp_buf *out, tp_error *err);
TP_CHECKED tp_status tp_eval_compare_files(const char *a, const char *b,
                                           const tp_eval_file_options *options, tp_buf *out,
                                           tp_error *err);

#endif
