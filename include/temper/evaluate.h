/* evaluate.h - questions for a model, several answers to each, what they were worth, and how sure
 * that is.
 *
 *     tp_evaluator_open("eval.yaml", NULL, 0, NULL, &e, &err);   reads all that is needed
 *     tp_evaluator_run(e, &err);
 *     tp_evaluator_get_result(e, &result, &err);
 *     tp_evaluator_text(e, 5, false, &text, &n, &err);
 *     tp_evaluator_free(e);
 *
 * The configuration has NeMo RL's names (docs/guide/evaluation.md).  An answer depends on weights,
 * question, sampling and seed alone: the same evaluation gives the same answers.
 *
 * Further down: evaluations that are in files already, of Temper and of NeMo RL.
 *
 * Threads: an evaluator by one at a time, several at once; evaluations in files and
 * tp_evaluator_keys() any, at once. */
#ifndef TEMPER_EVALUATE_H
#define TEMPER_EVALUATE_H

#include "temper/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tp_evaluator tp_evaluator;

typedef struct {
    uint64_t done, n; /* answers judged, of all */
    int64_t correct, excluded;
    double seconds, tokens_per_s; /* generated tokens */
} tp_evaluator_progress;

typedef struct {
    size_t size; /* sizeof(tp_evaluator_options) */
    /* All may be NULL; called on the thread that opened or runs.  `notice`: what a user should
     * know, a sentence.  `progress`: now and then.  `should_stop`: true ends the evaluation with
     * TP_ERR_INTERRUPTED. */
    void (*notice)(void *user, const char *text);
    void (*progress)(void *user, const tp_evaluator_progress *progress);
    bool (*should_stop)(void *user);
    void *user;
    const char *out; /* where tp_evaluator_write() will write: looked at before the work.  NULL:
                        nowhere */
} tp_evaluator_options;

/* `config` is a YAML file or NULL, `overrides` n "key=value" over it.  Opens the judge, the
 * questions, the model with its weights; `options` may be NULL, its texts and `user` outlive the
 * evaluator.
 * TP_ERR_CONFIG, TP_ERR_IO, TP_ERR_FORMAT, TP_ERR_UNSUPPORTED, TP_ERR_NOMEM, TP_ERR_OUTPUT. */
TP_API TP_CHECKED tp_status tp_evaluator_open(const char *config, const char *const *overrides,
                                              size_t n_overrides,
                                              const tp_evaluator_options *options,
                                              tp_evaluator **ret, tp_error *err);
TP_API void tp_evaluator_free(tp_evaluator *e); /* NULL is a no-op */

/* Ask and judge, once.  TP_ERR_INTERRUPTED; TP_ERR_NOMEM. */
TP_API TP_CHECKED tp_status tp_evaluator_run(tp_evaluator *e, tp_error *err);

/* After it ran.  NaN: not known. */
typedef struct {
    size_t size; /* sizeof(tp_evaluation_result), set by the caller */
    uint64_t prompts, answers;
    int64_t judged, excluded;            /* answers with and without a verdict */
    double pass_at_1, pass_lo, pass_hi;  /* share of right answers, its interval by prompt */
    double reward, reward_lo, reward_hi; /* mean */
    double majority;                     /* share of prompts whose most frequent answer is right */
    double level;                        /* of the intervals */
    double seconds, generate_s, judge_s;
    uint64_t new_tokens;
} tp_evaluation_result;
/* TP_ERR_CONFIG: no answer got a verdict (the first reason is in the message); *ret is filled all
 * the same. */
TP_API TP_CHECKED tp_status tp_evaluator_get_result(const tp_evaluator *e,
                                                    tp_evaluation_result *ret, tp_error *err);

/* The report for people, with the `rows` hardest prompts; `colour`: with escape sequences of a
 * terminal.  *ret_text: *ret_n bytes and a NUL, tp_free(). */
TP_API void tp_evaluator_text(const tp_evaluator *e, int64_t rows, bool colour, char **ret_text,
                              size_t *ret_n);
/* One JSON object: summary and table of prompts. */
TP_API void tp_evaluator_json(const tp_evaluator *e, char **ret_text, size_t *ret_n);
/* `out` of the options: JSON with every answer and its verdict; eval.save_path of the
 * configuration: NeMo RL's config.json and evaluation_data.json.  TP_ERR_OUTPUT, TP_ERR_CONFIG. */
TP_API TP_CHECKED tp_status tp_evaluator_write(const tp_evaluator *e, tp_error *err);

/* Every key of a configuration and of every environment, as Markdown. */
TP_API void tp_evaluator_keys(char **ret_text, size_t *ret_n);

/* ---- evaluations in files ---- */

typedef struct {
    size_t size;  /* sizeof(tp_evaluation_file_options) */
    double level; /* of the intervals; 0: 0.95 */
    bool has_threshold;
    double threshold;   /* rewards from here on are right, where a file does not say; else 1 */
    bool json;          /* one JSON object, else text for people */
    const char *report; /* compare: write {"eval": {"before", "after", "paired"}} here as well */
    bool *worse; /* compare: set to whether pass@1 or the mean reward is worse; may be NULL */
} tp_evaluation_file_options;

/* In numbers: what tp_evaluator_write() wrote, NeMo RL's evaluation_data.json and
 * val_data_step<N>.jsonl; the validations of a run folder, metrics.jsonl or metrics.json.
 * `options` may be NULL.  *ret_text: tp_free().
 * TP_ERR_IO, TP_ERR_FORMAT, TP_ERR_CONFIG. */
TP_API TP_CHECKED tp_status tp_evaluation_summarize(const char *path,
                                                    const tp_evaluation_file_options *options,
                                                    char **ret_text, size_t *ret_n, tp_error *err);
/* Two of the same questions, paired by prompt: b less a.
 * TP_ERR_CONFIG: they do not ask the same; TP_ERR_OUTPUT: `report` could not be written. */
TP_API TP_CHECKED tp_status tp_evaluation_compare(const char *a, const char *b,
                                                  const tp_evaluation_file_options *options,
                                                  char **ret_text, size_t *ret_n, tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
