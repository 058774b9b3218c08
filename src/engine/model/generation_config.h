/* generation_config.h - what a folder asks of generation: its generation_config.json or, without
 * one, the same keys of its config.json, as in transformers. */
#ifndef TP_ENGINE_MODEL_GENERATION_CONFIG_H
#define TP_ENGINE_MODEL_GENERATION_CONFIG_H

#include "base/files.h"
#include "engine/model/config_keys.h"

enum {
    TP_GENERATION_IDS = 1024,
    TP_USUAL_TOP_K = 50 /* with do_sample, where the file is silent */
};

/* Numbers that the file lacks are NaN or -1. */
typedef struct {
    bool is_there;
    bool is_of_model; /* of its config.json: there is no generation_config.json */
    bool do_sample;
    double temperature, top_p, min_p, repetition_penalty;
    int64_t top_k, no_repeat_ngram, max_new_tokens, max_length, min_new_tokens, min_length;
    int32_t suppressed[TP_GENERATION_IDS], suppressed_first[TP_GENERATION_IDS];
    int n_suppressed, n_suppressed_first;
    char unknown[512]; /* keys that nothing reads, comma-separated */
} tp_generation_config;

/* The file that is read: one of the two, or the GGUF file itself. */
tp_file_path tp_generation_config_path(const char *folder);

/* A folder without either file gives the defaults.  What would change a text and is not done here
 * is refused by name.  eos: ids that end a text, which are no bad words in transformers. */
TP_CHECKED tp_status tp_generation_config_read(const char *folder, const int64_t *eos, int n_eos,
                                               tp_generation_config *ret, tp_error *err);

#endif
