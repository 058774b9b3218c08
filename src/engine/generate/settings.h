/* settings.h - length, sampling and rules of a text, one way for commands and library. */
#ifndef TP_ENGINE_GENERATE_SETTINGS_H
#define TP_ENGINE_GENERATE_SETTINGS_H

#include "engine/generate/engine.h"
#include "engine/model/generation_config.h"

typedef struct {
    int64_t max_new_tokens; /* in: 0 unset; out: 0 what the file's max_length leaves */
    double temperature;     /* in: NaN unset */
    int64_t top_k;          /* in: -1 unset */
    double top_p, min_p;    /* in: NaN unset */
} tp_text_settings;

/* Fill in what is unset: from generation_config.json (NULL: ignored), else from `usual`.  What
 * the file decides is added to *said, comma-separated. */
void tp_text_settle(const tp_generation_config *config, const tp_text_settings *usual,
                    tp_text_settings *settings, tp_buf *said);
/* One request to continue n_prompt ids, fewer than a max_length that decides; it refers to
 * *config. */
tp_request tp_text_request_of(const tp_generation_config *config, const tp_text_settings *settings,
                              const int32_t *prompt, size_t n_prompt);

#endif
