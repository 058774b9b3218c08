/* tokenizer.h - text to token ids and back, from a Hugging Face tokenizer.json.
 *
 * Byte-level BPE: added tokens are split off first, the rest is normalised (NFC
 * where the file asks for it), cut into words by the pre-tokenizer, and each
 * word's bytes are merged by rank.  A tokenizer is immutable after loading and
 * may be used by many threads at once; each thread brings its own scratch.
 *
 * Loading, asking and freeing are public: temper/tokenizer.h. */
#ifndef TP_TEXT_TOKENIZER_TOKENIZER_H
#define TP_TEXT_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"
#include "temper/tokenizer.h"
#include "text/tokenizer/ids.h"

/* The folder of chat templates beside chat_template.jinja. */
#define TP_MORE_TEMPLATES "additional_chat_templates"
/* Of a tokenizer's templates the one for conversations with tools, or without; NULL: none. */
const char *tp_tokenizer_template_for(const tp_tokenizer *tok, bool has_tools);

typedef struct {
    bool add_special;   /* apply the post-processor (bos ...) */
    bool parse_special; /* special added tokens in the text become their ids */
} tp_encode_options;

/* Append the ids of text[0..n) to *ids, n < 2^31.  Bytes that are not UTF-8 are
 * kept and round-trip through decoding: each is a character of its own that is
 * neither letter nor number nor space.  (optional) *ret_offsets: the byte offset in
 * the text where each appended token starts, parallel to the appended ids; where
 * normalisation changed the text, the start of what it changed. */
void tp_tokenizer_encode(const tp_tokenizer *tok, tp_tokenizer_scratch *scratch, const char *text,
                         size_t n, tp_encode_options options, tp_ids *ids, tp_ids *ret_offsets);

/* Append the text of ids[0..n); ids without a token add nothing.  An added token is
 * its own text (the `tokenizers` library takes "é" in one for the byte E9). */
void tp_tokenizer_decode(const tp_tokenizer *tok, const int32_t *ids, size_t n, bool skip_special,
                         tp_buf *out);

/* Streaming: complete code points only; what is incomplete waits in *state.  At
 * the end, id -1 flushes it. */
typedef struct {
    char bytes[8];
    uint8_t n;
} tp_decode_stream;
void tp_tokenizer_decode_next(const tp_tokenizer *tok, tp_decode_stream *state, int32_t id,
                              bool skip_special, tp_buf *out);

/* The special tokens that the settings name, other than bos, eos and pad ("unk_token"): the text of
 * number i from 0, NULL behind the last. */
const char *tp_tokenizer_named(const tp_tokenizer *tok, size_t i, const char **ret_name);

/* Train a byte-level BPE tokenizer of `vocab_size` tokens (256 bytes, the given
 * special tokens, merges by frequency; ties broken by the smaller pair, so the
 * result is a function of the text) and write tokenizer.json,
 * tokenizer_config.json and special_tokens_map.json to `folder`.
 * `pre_tokenizer` is "gpt2", "smollm2", "llama3" or "qwen2". */
typedef struct {
    const char *pre_tokenizer;
    int32_t vocab_size;
    const char *const *special; /* n_special added special tokens */
    size_t n_special;
    const char *bos, *eos, *pad; /* each one of `special`, or NULL */
    const char *chat_template;   /* (optional) */
} tp_bpe_train_options;
TP_CHECKED tp_status tp_tokenizer_train(const char *const *texts, const size_t *lengths, size_t n,
                                        const tp_bpe_train_options *options, const char *folder,
                                        tp_error *err);

#endif
