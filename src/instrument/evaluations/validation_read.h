/* validation_read.h - the validations of a run, with the uncertainty that its counts allow.
 *
 *     runs/<name>/metrics.jsonl   {"step": 3, "m": {"validation-default/accuracy": 0.7, ...}}
 *     metrics.json                {"validation/accuracy": {"10": 0.7, "20": 0.8}, ...}
 *
 * The second is what NeMo RL makes of TensorBoard files.  DPO's accuracy is a share of
 * pairs, which are independent: Wilson's interval over num_valid_samples.  GRPO's is the
 * mean reward over the answers to a number of prompts; without the answers only the
 * number of prompts bounds its uncertainty, so Wilson's interval over the prompts is at
 * least as wide as the one that summarising the answers gives.  A run that does not say how
 * many there were gets none. */
#ifndef TP_INSTRUMENT_EVALUATIONS_VALIDATION_READ_H
#define TP_INSTRUMENT_EVALUATIONS_VALIDATION_READ_H

#include "text/json/json.h"

typedef struct {
    int64_t step;
    double accuracy, lo, hi;       /* lo and hi: NaN without a count, or outside [0, 1] */
    double n;                      /* pairs (DPO) or prompts (GRPO); NaN: not said */
    double loss, chosen, rejected; /* DPO; NaN: not said */
    double pass_k;                 /* GRPO: the share of prompts with any right answer */
} tp_validation_point;

typedef struct {
    char name[64]; /* "default" of validation-default/; "" of validation/ */
    bool is_dpo;
    tp_validation_point *points; /* by step */
    size_t n;
    /* From the first to the last; Newcombe's interval of two independent shares: wider
     * than a comparison by pair or prompt would be. */
    double change, change_lo, change_hi;
} tp_validation_series;

typedef struct {
    tp_validation_series *series;
    size_t n;
} tp_validations;

/* `path` is a run folder, or one of the files above. */
TP_CHECKED tp_status tp_validations_read(const char *path, double level, tp_validations *ret,
                                         tp_error *err);
TP_CHECKED tp_status tp_validations_parse(const char *name, const char *text, size_t n,
                                          double level, tp_validations *ret, tp_error *err);
void tp_validations_release(tp_validations *v); /* zeroed is a no-op */

/* A folder, metrics.jsonl or metrics.json, by its name. */
bool tp_validations_are_in(const char *path);
/* For people, and as one JSON object. */
void tp_validations_text(const char *path, const tp_validations *v, double level, tp_buf *out);
void tp_validations_json(const char *path, const tp_validations *v, double level, tp_buf *out);

#endif
