/* byte_tokenizer.h - a tokenizer whose ordinary tokens are single bytes, for tests that
 * say by hand which tokens are learned.  Special: <|bos|>, <|end|>, <|start|>. */
#ifndef TP_TESTS_BYTE_TOKENIZER_H
#define TP_TESTS_BYTE_TOKENIZER_H

#include <stdlib.h>

#include "base/files.h"
#include "text/tokenizer/tokenizer.h"

/* 0 when all went well.  `chat_template` may be NULL. */
static inline int byte_tokenizer_make_like(const char *pre_tokenizer, const char *chat_template,
                                           tp_tokenizer **ret)
{
    char folder[] = "/tmp/temper-tokenizer-XXXXXX";
    const char *const special[] = {"<|bos|>", "<|end|>", "<|start|>"};
    const char *const texts[] = {"a"};
    const size_t lengths[] = {1};
    tp_bpe_train_options options = {.pre_tokenizer = pre_tokenizer,
                                    .vocab_size = 259,
                                    .special = special,
                                    .n_special = 3,
                                    .bos = "<|bos|>",
                                    .eos = "<|end|>",
                                    .chat_template = chat_template};
    int failed = !mkdtemp(folder) ||
                 tp_tokenizer_train(texts, lengths, 1, &options, folder, NULL) != TP_OK ||
                 tp_tokenizer_load(folder, ret, NULL) != TP_OK;
    return tp_dir_remove(folder, NULL) != TP_OK || failed;
}

static inline int byte_tokenizer_make(const char *chat_template, tp_tokenizer **ret)
{
    return byte_tokenizer_make_like("gpt2", chat_template, ret);
}

#endif
