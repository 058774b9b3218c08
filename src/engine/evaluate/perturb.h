/* perturb.h - the same question, written otherwise: does the answer depend on what should not
 * matter?
 *
 * No paraphrase: a reader sees the same question.  The system prompt and earlier answers stay. */
#ifndef TP_ENGINE_EVALUATE_PERTURB_H
#define TP_ENGINE_EVALUATE_PERTURB_H

#include "engine/reward/prompts.h"

typedef struct {
    const char *name;
    void (*apply)(const char *text, size_t n, tp_buf *out);
} tp_perturbation;

/* NULL: there is none of this name. */
const tp_perturbation *tp_perturbation_find(const char *name);

/* What the user says in it is perturbed, into `arena`; false where that changes nothing. */
bool tp_perturb_prompt(const tp_perturbation *p, tp_arena *arena, const tp_prompt *prompt,
                       tp_prompt *ret);

#endif
