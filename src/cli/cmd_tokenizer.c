/* cmd_tokenizer.c - `temper tokenizer`: learn a tokenizer from a text. */
#include "cli/commands.h"
#include "temper/tokenizer.h"

typedef struct {
    int64_t vocab_size;
    const char *style;
    bool replace;
} flags;

static const tp_flag flag_table[] = {
    TP_NUMBER("vocab-size", 0, "N", INT, vocab_size, 259, 1000000,
              "tokens in all, 256 bytes included (default 4096)"),
    TP_CHOICE("pre-tokenizer", 0, "NAME", style, "gpt2 smollm2 llama3 qwen2",
              "gpt2, smollm2, llama3 or qwen2 (default)"),
    TP_SWITCH("replace", 0, replace, "a tokenizer that is in the folder is replaced"),
    {0}};

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    tp_error err = {0};
    const tp_tokenizer_learn_options options = {.size = sizeof options,
                                                .vocab_size = (int32_t)f->vocab_size,
                                                .pre_tokenizer = f->style,
                                                .replace = f->replace};
    tp_waiting_begin("temper tokenizer: counting pairs");
    if (tp_tokenizer_learn(words[0], (const char *const *)words + 1, (size_t)n - 1, &options,
                           &err) != TP_OK)
        return tp_cli_fail(&err);
    tp_waiting_end();
    printf("wrote %s (tokenizer.json and its companions)\n", words[0]);
    return 0;
}

const tp_usage tp_usage_tokenizer = {
    .command = "tokenizer",
    .arguments = "OUT FILE...",
    .summary = "Train a byte-level BPE tokenizer on text files; writes the folder OUT.",
    .flags = flag_table,
    .details = "The folder has a ChatML chat template and loads in transformers.",
    .min_words = 2,
    .max_words = 256,
    .wraps = true,
    .size = sizeof(flags),
    .defaults = &(const flags){.vocab_size = 4096, .style = "qwen2"},
    .run = execute};
