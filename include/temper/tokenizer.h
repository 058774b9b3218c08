/* tokenizer.h - text to token ids and back, from a Hugging Face tokenizer.json.
 *
 * Byte-level BPE.  A tokenizer is immutable after loading and may be used by many
 * threads at once; work space is separate: pass NULL for a call now and then, or one
 * tp_tokenizer_scratch per thread, whose word cache makes long work several times faster.
 *
 *     tp_tokenizer_load("model", &tok, &err);
 *     tp_tokenizer_to_ids(tok, NULL, text, strlen(text), TP_ENCODE_SPECIAL, &ids, &n, &err);
 *     ...
 *     tp_free(ids);
 *     tp_tokenizer_free(tok);
 *
 * Threads: any, at once, with the same tokenizer; a scratch by one at a time. tp_tokenizer_learn()
 * any, into folders of their own. */
#ifndef TEMPER_TOKENIZER_H
#define TEMPER_TOKENIZER_H

#include "temper/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tp_tokenizer tp_tokenizer;
typedef struct tp_tokenizer_scratch tp_tokenizer_scratch;

/* `folder` holds tokenizer.json (and perhaps tokenizer_config.json,
 * special_tokens_map.json, chat_template.jinja and additional_chat_templates, which are read too).
 * TP_ERR_IO, TP_ERR_FORMAT, TP_ERR_UNSUPPORTED (not byte-level BPE). */
TP_API TP_CHECKED tp_status tp_tokenizer_load(const char *folder, tp_tokenizer **ret,
                                              tp_error *err);
/* tokenizer.json given as text, n bytes; `name` is what errors call it. */
TP_API TP_CHECKED tp_status tp_tokenizer_parse(const char *name, const char *json, size_t n,
                                               tp_tokenizer **ret, tp_error *err);
TP_API void tp_tokenizer_free(tp_tokenizer *tok); /* NULL is a no-op */

/* Work space for one thread, some hundreds of kilobytes; for this tokenizer only. */
TP_API tp_tokenizer_scratch *tp_tokenizer_scratch_new(const tp_tokenizer *tok);
TP_API void tp_tokenizer_scratch_free(tp_tokenizer_scratch *scratch); /* NULL is a no-op */

enum {
    TP_ENCODE_ADD_SPECIAL = 1,   /* what the post-processor adds: bos ... */
    TP_ENCODE_PARSE_SPECIAL = 2, /* special tokens spelled out in the text become their ids */
    TP_ENCODE_SPECIAL = 3        /* both: what transformers does by default */
};

/* The ids of text[0..n), n < 2^31.  Bytes that are not UTF-8 are kept and come back from
 * decoding.  *ret_ids: *ret_n ids, tp_free(); never NULL, even when empty.  `flags` is 0
 * or any of TP_ENCODE_*; `scratch` may be NULL.  TP_ERR_ARG. */
TP_API TP_CHECKED tp_status tp_tokenizer_to_ids(const tp_tokenizer *tok,
                                                tp_tokenizer_scratch *scratch, const char *text,
                                                size_t n, unsigned flags, int32_t **ret_ids,
                                                size_t *ret_n, tp_error *err);

/* The text of ids[0..n); ids without a token add nothing.  *ret_text: *ret_n bytes and a
 * NUL behind them, tp_free().  A token may end inside a character: decode whole answers,
 * or take the pieces that generator.h gives.  TP_ERR_ARG. */
TP_API TP_CHECKED tp_status tp_tokenizer_to_text(const tp_tokenizer *tok, const int32_t *ids,
                                                 size_t n, bool skip_special, char **ret_text,
                                                 size_t *ret_n, tp_error *err);

TP_API int32_t tp_tokenizer_vocab_size(const tp_tokenizer *tok); /* highest id + 1 */
TP_API bool tp_tokenizer_has_id(const tp_tokenizer *tok, int32_t id);
TP_API int32_t tp_tokenizer_id(const tp_tokenizer *tok, const char *token); /* -1 when absent */
/* As spelled in the vocabulary, or NULL. */
TP_API const char *tp_tokenizer_token(const tp_tokenizer *tok, int32_t id);
TP_API bool tp_tokenizer_is_special(const tp_tokenizer *tok, int32_t id);
TP_API int32_t tp_tokenizer_bos(const tp_tokenizer *tok); /* -1 when the files name none */
TP_API int32_t tp_tokenizer_eos(const tp_tokenizer *tok);
TP_API int32_t tp_tokenizer_pad(const tp_tokenizer *tok);
/* Jinja text for chat.h, which looks at `tools` where there is one for tools beside the default;
 * NULL when there is none. */
TP_API const char *tp_tokenizer_chat_template(const tp_tokenizer *tok);
/* XXH3-128 (32 hex digits) over everything that decides how text becomes ids. */
TP_API const char *tp_tokenizer_fingerprint(const tp_tokenizer *tok);

typedef struct {
    size_t size;               /* sizeof(tp_tokenizer_learn_options) */
    int32_t vocab_size;        /* tokens in all, 256 bytes and 3 special ones included; 0: 4096 */
    const char *pre_tokenizer; /* "gpt2", "smollm2", "llama3" or "qwen2" (also NULL) */
    bool replace;              /* a tokenizer that is in the folder */
} tp_tokenizer_learn_options;

/* Learn a byte-level BPE from text files, at most 1 GiB each, and write tokenizer.json and its
 * companions into `folder`, which is made; transformers loads it.  It has <|endoftext|>,
 * <|im_start|>, <|im_end|> and a ChatML template.  `options` may be NULL.
 * TP_ERR_CONFIG: the files hold nothing, or the folder has a tokenizer; TP_ERR_IO,
 * TP_ERR_OUTPUT, TP_ERR_ARG. */
TP_API TP_CHECKED tp_status tp_tokenizer_learn(const char *folder, const char *const *files,
                                               size_t n, const tp_tokenizer_learn_options *options,
                                               tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
