/* tokenizer_internal.h - what a loaded tokenizer is made of. */
#ifndef TP_TEXT_TOKENIZER_TOKENIZER_INTERNAL_H
#define TP_TEXT_TOKENIZER_TOKENIZER_INTERNAL_H

#include "base/arena.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/bpe.h"
#include "text/tokenizer/normalize.h"
#include "text/tokenizer/pretokenize.h"
#include "text/tokenizer/tokenizer.h"

/* "unk_token", "image_token": a special token under the name that templates know it by. */
typedef struct tp_named_token {
    const char *name, *text;
    struct tp_named_token *next;
} tp_named_token;

struct tp_tokenizer {
    tp_arena arena; /* owns everything below but the compiled expressions */
    char *name;     /* of the file, for errors */
    char *folder;   /* or NULL */

    tp_bpe bpe;
    tp_added_set added;            /* looked for in the text as given */
    tp_added_set normalized_added; /* looked for in the normalised text */
    tp_normalizer normalizer;
    tp_pretokenizer pretokenizer;
    const int32_t *prefix, *suffix; /* what the post-processor puts around a text */
    size_t n_prefix, n_suffix;

    int32_t bos, eos, pad;                  /* -1: none */
    tp_named_token *named;                  /* the others that the settings name; NULL: none */
    char *default_template, *tool_template; /* as the files have them, or NULL */
    char *chat_template;                    /* the one, or both in one, or NULL */
    char fingerprint[33];
};

/* What transformers takes from tokenizer_config.json and special_tokens_map.json of tok->folder, or
 * from the text of such a configuration alone (tokenizer_settings.c). */
TP_CHECKED tp_status tp_tokenizer_read_settings(tp_tokenizer *tok, tp_error *err);
TP_CHECKED tp_status tp_tokenizer_take_settings(tp_tokenizer *tok, const char *path,
                                                const tp_buf *config, tp_error *err);

/* The chat templates of tok->folder, else of that configuration (tokenizer_template.c). */
TP_CHECKED tp_status tp_tokenizer_take_templates(tp_tokenizer *tok, const tp_json *config,
                                                 tp_error *err);

/* The parts of tokenizer.json other than the model (tokenizer_parts.c). */
TP_CHECKED tp_status tp_normalizer_parse(tp_tokenizer *tok, const tp_json *spec, tp_error *err);
TP_CHECKED tp_status tp_postprocessor_parse(tp_tokenizer *tok, const tp_json *spec, tp_error *err);
TP_CHECKED tp_status tp_decoder_check(const tp_tokenizer *tok, const tp_json *spec, tp_error *err);

#endif
