/* byte_tokenizer.h - a tokenizer whose ordinary tokens are single bytes, for tests that
 * say by hand which tokens are learned.  Special: <|bos|>, <|end|>, <|start|>. */
#ifndef TP_TESTS_BYTE_TOKENIZER_H
#define TP_TESTS_BYTE_TOKENIZER_H

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/output.h"
#include "text/tokenizer/tokenizer.h"

/* 0 when all went well.  Both templates, the one for tools beside the other, may be NULL. */
static inline int byte_tokenizer_make_with(const char *pre_tokenizer, const char *chat_template,
                                           const char *tool_template, tp_tokenizer **ret)
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
    int failed =
        !mkdtemp(folder) || tp_tokenizer_train(texts, lengths, 1, &options, folder, NULL) != TP_OK;
    if (!failed && tool_template) {
        tp_file_path more = tp_path_of("%s/" TP_MORE_TEMPLATES, folder);
        tp_file_path plain = tp_path_of("%s/chat_template.jinja", folder);
        tp_file_path tools = tp_path_of("%s/tool_use.jinja", more.text);
        failed = tp_dir_make(more.text, NULL) != TP_OK ||
                 tp_output_put(plain.text, chat_template, strlen(chat_template), NULL) != TP_OK ||
                 tp_output_put(tools.text, tool_template, strlen(tool_template), NULL) != TP_OK;
    }
    failed = failed || tp_tokenizer_load(folder, ret, NULL) != TP_OK;
    return tp_dir_remove(folder, NULL) != TP_OK || failed;
}

static inline int byte_tokenizer_make_like(const char *pre_tokenizer, const char *chat_template,
                                           tp_tokenizer **ret)
{
    return byte_tokenizer_make_with(pre_tokenizer, chat_template, NULL, ret);
}

static inline int byte_tokenizer_make(const char *chat_template, tp_tokenizer **ret)
{
    return byte_tokenizer_make_like("gpt2", chat_template, ret);
}

#endif
