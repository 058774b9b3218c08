/* eval_compare.h - evaluations from files: one in numbers, two of the same questions
 * prompt by prompt, the validations of a run step by step. */
#ifndef TP_INSTRUMENT_EVALUATIONS_EVAL_COMPARE_H
#define TP_INSTRUMENT_EVALUATIONS_EVAL_COMPARE_H

#include "base/strings.h"
#include "temper/evaluate.h"

/* A file (see eval_read.h), or a run folder, metrics.jsonl or metrics.json: its validations.
 * Level and threshold of the options are in place. */
TP_CHECKED tp_status tp_eval_summarize_path(const char *path,
                                            const tp_evaluation_file_options *options, tp_buf *out,
                                            tp_error *err);
TP_CHECKED tp_status tp_eval_compare_files(const char *a, const char *b,
                                           const tp_evaluation_file_options *options, tp_buf *out,
                                           tp_error *err);

#endif
