/* companions.h - what lies in a model's folder besides the model: tokenizer, generation settings,
 * licence; byte for byte as it came. */
#ifndef TP_ENGINE_MODEL_COMPANIONS_H
#define TP_ENGINE_MODEL_COMPANIONS_H

#include "base/error.h"

typedef struct {
    const char *tokenizer; /* folder of the tokenizer, or GGUF file; NULL: none */
    const char *model;     /* folder of generation_config.json and licence; NULL: the tokenizer's */
    /* (optional) replaces the tokenizer's: chat_template.jinja, which transformers prefers, and
     * the same text in tokenizer_config.json, for those who look there. */
    const char *chat_template;
} tp_companions;

/* What they take on disk, at most. */
TP_CHECKED tp_status tp_companions_size(const tp_companions *c, size_t *ret, tp_error *err);
TP_CHECKED tp_status tp_companions_write(const tp_companions *c, const char *folder, tp_error *err);

#endif
