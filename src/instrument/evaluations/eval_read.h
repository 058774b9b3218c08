/* eval_read.h - evaluations from files: ours, and those that NeMo RL leaves.
 *
 *     temper eval --out FILE           {"kind": "temper-eval", "prompts": [...]}
 *     <save_path>/evaluation_data.json {"evaluation_data": [{"prompt", "response", "reward"}]}
 *     val_data_step<N>.jsonl           {"content": [[messages]], "rewards": [r], "idx": i}
 *
 * NeMo RL's files name no prompts: answers to the same question (of messages, those before the
 * first one of an assistant) are one prompt, and its id is made of the question.  It takes a
 * reward of 1 for right; a reward that is NaN is left out here. */
#ifndef TP_INSTRUMENT_EVALUATIONS_EVAL_READ_H
#define TP_INSTRUMENT_EVALUATIONS_EVAL_READ_H

#include "base/arena.h"
#include "stats/eval_summary.h"

typedef struct {
    const char *path;
    const char *format;       /* "temper eval", "NeMo RL evaluation", "NeMo RL validation" */
    const char *model, *data; /* NULL: not said */
    size_t n;
    tp_eval_prompt *prompts;  /* ascending by id, no id twice */
    int64_t k[TP_EVAL_MAX_K]; /* what was reported, or 1 and powers of two */
    size_t n_k;

    tp_buf text; /* what the strings point into */
    tp_arena arena;
} tp_eval_file;

/* `threshold`: rewards from here on are right, where the file does not say. */
TP_CHECKED tp_status tp_eval_file_read(const char *path, double threshold, tp_eval_file *ret,
                                       tp_error *err);
/* The same from text that is in memory; `text` becomes the file's. */
TP_CHECKED tp_status tp_eval_file_parse(const char *name, tp_buf *text, double threshold,
                                        tp_eval_file *ret, tp_error *err);
void tp_eval_file_release(tp_eval_file *file); /* zeroed is a no-op */

#endif
