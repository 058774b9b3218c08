/* ablation_report.h - an ablation as text, Markdown, JSON and a picture. */
#ifndef TP_INSTRUMENT_EXPERIMENT_ABLATION_REPORT_H
#define TP_INSTRUMENT_EXPERIMENT_ABLATION_REPORT_H

#include "instrument/experiment/ablation.h"
#include "instrument/experiment/study.h"

/* docs/formats/experiment.md. */
void tp_ablation_json(const tp_ablation *a, const tp_study *s, tp_buf *out);
/* TP_FORM_TEXT or TP_FORM_MARKDOWN. */
void tp_ablation_text(const tp_ablation *a, const tp_study *s, tp_form form, tp_buf *out);

/* report.json, report.md and effects.svg into the study's folder. */
TP_CHECKED tp_status tp_ablation_save(const tp_ablation *a, const tp_study *s, tp_error *err);

#endif
