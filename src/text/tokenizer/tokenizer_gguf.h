/* tokenizer_gguf.h - byte-level BPE as the keys of a GGUF file, and back.
 *
 * llama.cpp knows pre-tokenizers by name.  Those that have a scanner here have one there:
 *
 *     gpt-2       GPT-2's expression
 *     smollm      single digits, then GPT-2's
 *     llama-bpe   Llama 3's, a word of the vocabulary is taken whole
 *     smaug-bpe   Llama 3's, without that
 *     qwen2       Qwen2's
 *
 * It does not normalise.  Qwen2's tokenizers ask for NFC, which is left out there and comes back
 * here: the tokenizer of a file with "qwen2" is that of its Hugging Face folder. */
#ifndef TP_TEXT_TOKENIZER_TOKENIZER_GGUF_H
#define TP_TEXT_TOKENIZER_TOKENIZER_GGUF_H

#include "text/gguf/gguf.h"
#include "text/tokenizer/tokenizer.h"

#define TP_GGUF_TOOL_TEMPLATE "tokenizer.chat_template.tool_use"

/* What a Hugging Face folder would hold: tokenizer.json, and tokenizer_config.json with the names
 * of special tokens and the chat template.  Appended to. */
TP_CHECKED tp_status tp_tokenizer_json_of_gguf(const tp_gguf *g, tp_buf *out, tp_error *err);
TP_CHECKED tp_status tp_tokenizer_config_of_gguf(const tp_gguf *g, tp_buf *out, tp_error *err);

/* What the model knows of the vocabulary besides. */
typedef struct {
    int64_t vocab; /* rows of the embedding: ids without a token become [PADn] */
    int64_t bos;   /* of a tokenizer that names none; -1: none */
    int64_t pad;
    const int64_t *eos; /* all that end a text */
    int n_eos;
} tp_gguf_vocab;
/* `notes`: what llama.cpp will do otherwise, a line each.  What it cannot do is refused. */
TP_CHECKED tp_status tp_tokenizer_put_gguf(const tp_tokenizer *tok, const tp_gguf_vocab *vocab,
                                           tp_gguf_keys *k, tp_buf *notes, tp_error *err);

/* Values of tokenizer.ggml.token_type. */
enum {
    TP_GGUF_TOKEN_NORMAL = 1,
    TP_GGUF_TOKEN_UNKNOWN = 2,
    TP_GGUF_TOKEN_CONTROL = 3,
    TP_GGUF_TOKEN_USER_DEFINED = 4,
    TP_GGUF_TOKEN_UNUSED = 5,
    TP_GGUF_TOKEN_BYTE = 6
};

/* Which name stands for which scanner. */
typedef struct {
    const char *name;
    tp_slice others[5]; /* names of the same in llama.cpp */
    size_t (*scan)(const char *text, size_t n, size_t at);
    bool ignore_merges, adds_bos, nfc;
} tp_gguf_pre;
extern const tp_gguf_pre tp_gguf_pres[];
extern const size_t tp_gguf_pre_count;

#endif
