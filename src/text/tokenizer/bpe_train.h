/* bpe_train.h - learning merges from counted words.
 *
 * Tokens 0 to 255 are the bytes in the order of their spellings ('!' first); each
 * merge makes the next one, unless its bytes are a token already.  The pair with
 * the highest count is merged; of equals, the one with the smaller left id, then
 * the smaller right id. */
#ifndef TP_TEXT_TOKENIZER_BPE_TRAIN_H
#define TP_TEXT_TOKENIZER_BPE_TRAIN_H

#include "base/strings.h"

typedef struct tp_bpe_trainer tp_bpe_trainer;

typedef struct {
    uint32_t left, right;
} tp_bpe_merge;

tp_bpe_trainer *tp_bpe_trainer_new(void);
void tp_bpe_trainer_free(tp_bpe_trainer *trainer); /* NULL is a no-op */

/* Count one more occurrence of a word. */
void tp_bpe_trainer_add(tp_bpe_trainer *trainer, const char *word, size_t n);

/* Merge until there are n_tokens tokens, or nothing is left to merge.  Call once. */
void tp_bpe_trainer_run(tp_bpe_trainer *trainer, uint32_t n_tokens);

uint32_t tp_bpe_trainer_n_tokens(const tp_bpe_trainer *trainer);
tp_slice tp_bpe_trainer_token(const tp_bpe_trainer *trainer, uint32_t id); /* its bytes */
size_t tp_bpe_trainer_n_merges(const tp_bpe_trainer *trainer);
tp_bpe_merge tp_bpe_trainer_merge(const tp_bpe_trainer *trainer, size_t rank);

#endif
