/* cmd_tokenizer.c - `temper tokenizer`: learn a tokenizer from a text. */

#include "base/files.h"
#include "base/platform.h"
#include "cli/cli.h"
#include "text/tokenizer/tokenizer.h"

typedef struct {
    int64_t vocab_size;
    const char *style;
    bool replace;
} flags;

static const tp_flag flag_table[] = {
    TP_NUMBER("vocab-size", 0, "N", INT, vocab_size, 259, 1000000,
              "tokens in all, 256 bytes included (default 4096)"),
    TP_TEXT("pre-tokenizer", 0, "NAME", style, "gpt2, smollm2, llama3 or qwen2 (default)"),
    TP_SWITCH("replace", 0, replace, "a tokenizer that is in the folder is replaced"),
    {0}};

enum { MAX_FILES = 256 };

/* A folder may hold a tokenizer that a model was trained with. */
static tp_status check_folder(const flags *f, const char *folder, tp_error *err)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json",
                                        "special_tokens_map.json"};
    for (size_t i = 0; i < TP_COUNTOF(names) && !f->replace; i++) {
        char path[4200];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (tp_file_exists(path))
            return tp_fail(err, TP_ERR_CONFIG,
                           "'%.200s' has a %s, which a model may need; choose another folder, or "
                           "--replace it",
                           folder, names[i]);
    }
    return TP_OK;
}

static tp_status train(const flags *f, char **files, int n, const char *folder, tp_error *err)
{
    static const char *const special[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    static const char chatml[] =
        "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
        "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] + "
        "'<|im_end|>' }}{% endgeneration %}{{ '\\n' }}{% else %}{{ message['content'] + "
        "'<|im_end|>\\n' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
    tp_buf texts[MAX_FILES] = {0};
    const char *data[MAX_FILES];
    size_t lengths[MAX_FILES], n_bytes = 0;
    tp_status status = check_folder(f, folder, err);
    for (int i = 0; i < n && status == TP_OK; i++) {
        status = tp_file_read(files[i], (size_t)1 << 30, &texts[i], err);
        data[i] = tp_buf_str(&texts[i]);
        lengths[i] = texts[i].len;
        n_bytes += texts[i].len;
    }
    if (status == TP_OK && n_bytes == 0)
        status = tp_fail(err, TP_ERR_CONFIG, "'%s'%s empty; there is nothing to learn from",
                         files[0], n > 1 ? " and the other files are" : " is");
    tp_bpe_train_options options = {.pre_tokenizer = f->style,
                                    .vocab_size = (int32_t)f->vocab_size,
                                    .special = special,
                                    .n_special = 3,
                                    .eos = special[2],
                                    .pad = special[0],
                                    .chat_template = chatml};
    if (status == TP_OK)
        status = tp_dir_make(folder, err);
    if (status == TP_OK)
        status = tp_tokenizer_train(data, lengths, (size_t)n, &options, folder, err);
    for (int i = 0; i < n; i++)
        tp_buf_release(&texts[i]);
    return status;
}

int tp_cmd_tokenizer(int argc, char **argv)
{
    flags f = {.vocab_size = 4096, .style = "qwen2"};
    char *words[argc + 1];
    tp_error err = {0};
    const tp_usage usage = {
        .command = "tokenizer",
        .arguments = "OUT FILE...",
        .summary = "Train a byte-level BPE tokenizer on text files; writes the folder OUT.",
        .flags = flag_table,
        .details = "The folder has a ChatML chat template and loads in transformers.",
        .min_words = 2,
        .max_words = MAX_FILES};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    if (train(&f, words + 1, n - 1, words[0], &err) != TP_OK)
        return tp_cli_fail(&err);
    printf("wrote %s (tokenizer.json and its companions)\n", words[0]);
    return 0;
}
