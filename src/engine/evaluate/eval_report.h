/* eval_report.h - an evaluation as text, as JSON, and as NeMo RL's files. */
#ifndef TP_ENGINE_EVALUATE_EVAL_REPORT_H
#define TP_ENGINE_EVALUATE_EVAL_REPORT_H

#include "engine/evaluate/eval_options.h"
#include "engine/evaluate/evaluate.h"

/* The evaluation again, its questions written otherwise. */
typedef struct {
    const tp_perturbation *kind;
    size_t n_prompts, n_changed; /* all, and those that were asked again */
    tp_eval_paired paired;       /* of these: perturbed less plain */
    double p_adjusted;           /* after Holm over all perturbations; NaN: not known */
    tp_change verdict;           /* by that */
} tp_eval_perturbed;

typedef struct {
    const tp_config *config;
    const tp_eval_options *options;
    const char *model; /* its folder */
    const char *family;
    int64_t n_parameters;
    const char *data, *env; /* descriptions */
    const tp_evaluation *evaluation;
    const tp_eval_summary *summary;
    tp_environment_counts judges;
    const tp_eval_perturbed *perturbed;
    size_t n_perturbed;
} tp_eval_report;

/* For people: estimates with intervals, what was left out and why, the prompts at both
 * ends.  `n_rows` of them at most. */
void tp_eval_report_text(const tp_eval_report *r, int64_t n_rows, bool colour, tp_buf *out);
/* One object; `samples`: with every answer. */
void tp_eval_report_json(const tp_eval_report *r, bool samples, int indent, tp_buf *out);
/* config.json and evaluation_data.json in `folder`; whether they would be refused there, for the
 * time before long work (NULL is fine). */
TP_CHECKED tp_status tp_eval_report_check_nemo(const char *folder, tp_error *err);
TP_CHECKED tp_status tp_eval_report_nemo(const tp_eval_report *r, const char *folder,
                                         tp_error *err);

#endif
