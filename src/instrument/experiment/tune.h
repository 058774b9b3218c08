/* tune.h - what tuning found, as text, Markdown, JSON and a recipe's first lines. */
#ifndef TP_INSTRUMENT_EXPERIMENT_TUNE_H
#define TP_INSTRUMENT_EXPERIMENT_TUNE_H

#include "instrument/experiment/lever_set.h"
#include "instrument/experiment/search.h"
#include "instrument/experiment/study.h"
#include "temper/experiment.h"

typedef struct {
    tp_study *study;
    tp_search *search;
    const tp_space *space;
    size_t kept; /* the candidate that the recipe is of; 0: nothing was better */
    const char *recipe;
} tp_tuning;

void tp_tune_heading(const tp_tuning *t, tp_buf *out); /* comments of YAML */
void tp_tune_json(const tp_tuning *t, tp_buf *out);    /* docs/formats/experiment.md */
void tp_tune_text(const tp_tuning *t, tp_form form, tp_buf *out);
/* report.json and report.md. */
TP_CHECKED tp_status tp_tune_save(const tp_tuning *t, tp_error *err);

/* The use-case of `temper tune`, for whoever knows the levers. */

/* As tp_tune_run(), with these levers. */
TP_CHECKED tp_status tp_tune(const char *config, const char *const *overrides, size_t n,
                             const tp_tune_options *options, const tp_lever_set *set, char **ret,
                             tp_error *err);

#endif
