/* tokenizer.c - encoding and decoding into memory of the caller's, and learning; the rest of
 * temper/tokenizer.h is engine/data's own. */
#include "text/tokenizer/tokenizer.h"

#include "base/files.h"
#include "base/platform.h"
#include "base/sized.h"

tp_status tp_tokenizer_to_ids(const tp_tokenizer *tok, tp_tokenizer_scratch *scratch,
                              const char *text, size_t n, unsigned flags, int32_t **ret_ids,
                              size_t *ret_n, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    if (!tok || (!text && n) || !ret_ids || !ret_n)
        return tp_fail(err, TP_ERR_ARG, "tp_tokenizer_to_ids: an argument is NULL");
    if (n > INT32_MAX)
        return tp_fail(err, TP_ERR_ARG, "the text has %zu bytes; less than 2 GiB can be encoded",
                       n);
    if (flags & ~(unsigned)TP_ENCODE_SPECIAL)
        return tp_fail(err, TP_ERR_ARG, "tp_tokenizer_to_ids: unknown flags 0x%x", flags);
    tp_tokenizer_scratch *own = scratch ? NULL : tp_tokenizer_scratch_new(tok);
    tp_encode_options options = {.add_special = flags & TP_ENCODE_ADD_SPECIAL,
                                 .parse_special = flags & TP_ENCODE_PARSE_SPECIAL};
    tp_ids ids = {0};
    tp_ids_add(&ids, 0); /* so that there is memory to hand out, even for no ids */
    ids.len = 0;
    tp_tokenizer_encode(tok, scratch ? scratch : own, n ? text : "", n, options, &ids, NULL);
    tp_tokenizer_scratch_free(own);
    *ret_ids = ids.data;
    *ret_n = ids.len;
    return TP_OK;
}

tp_status tp_tokenizer_to_text(const tp_tokenizer *tok, const int32_t *ids, size_t n,
                               bool skip_special, char **ret_text, size_t *ret_n, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    if (!tok || (!ids && n) || !ret_text || !ret_n)
        return tp_fail(err, TP_ERR_ARG, "tp_tokenizer_to_text: an argument is NULL");
    tp_buf text = {0};
    tp_buf_adds(&text, "");
    if (n)
        tp_tokenizer_decode(tok, ids, n, skip_special, &text);
    *ret_text = text.data;
    *ret_n = text.len;
    return TP_OK;
}

/* ---- learning ---- */

/* A folder may hold a tokenizer that a model was trained with. */
static tp_status check_folder(const char *folder, tp_error *err)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json",
                                        "special_tokens_map.json"};
    for (size_t i = 0; i < TP_COUNTOF(names); i++) {
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

static tp_status learn(const char *folder, const char *const *texts, const size_t *lengths,
                       size_t n, const tp_tokenizer_learn_options *o, tp_error *err)
{
    static const char *const special[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    static const char chatml[] =
        "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
        "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] + "
        "'<|im_end|>' }}{% endgeneration %}{{ '\\n' }}{% else %}{{ message['content'] + "
        "'<|im_end|>\\n' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
    const tp_bpe_train_options options = {.pre_tokenizer =
                                              o->pre_tokenizer ? o->pre_tokenizer : "qwen2",
                                          .vocab_size = o->vocab_size ? o->vocab_size : 4096,
                                          .special = special,
                                          .n_special = TP_COUNTOF(special),
                                          .eos = special[2],
                                          .pad = special[0],
                                          .chat_template = chatml};
    TP_TRY(tp_dir_make(folder, err));
    return tp_tokenizer_train(texts, lengths, n, &options, folder, err);
}

/* The files as texts; what was read is the caller's to release, whatever happens. */
static tp_status read_all(const char *const *files, size_t n, tp_buf *texts, const char **data,
                          size_t *lengths, tp_error *err)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        TP_TRY(tp_file_read(files[i], (size_t)1 << 30, &texts[i], err));
        data[i] = tp_buf_str(&texts[i]);
        lengths[i] = texts[i].len;
        n_bytes += texts[i].len;
    }
    if (n_bytes == 0)
        return tp_fail(err, TP_ERR_CONFIG, "'%s'%s empty; there is nothing to learn from", files[0],
                       n > 1 ? " and the other files are" : " is");
    return TP_OK;
}

tp_status tp_tokenizer_learn(const char *folder, const char *const *files, size_t n,
                             const tp_tokenizer_learn_options *options, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_tokenizer_learn_options o;
    if (!folder || !files || n == 0)
        return tp_fail(err, TP_ERR_ARG, "tp_tokenizer_learn: there is no folder or no file");
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_tokenizer_learn_options", err));
    if (!o.replace)
        TP_TRY(check_folder(folder, err));
    TP_FREED tp_buf *texts = tp_new(n, sizeof *texts);
    TP_FREED const char **data = tp_new(n, sizeof *data);
    TP_FREED size_t *lengths = tp_new(n, sizeof *lengths);
    tp_status status = read_all(files, n, texts, data, lengths, err);
    if (status == TP_OK)
        status = learn(folder, data, lengths, n, &o, err);
    for (size_t i = 0; i < n; i++)
        tp_buf_release(&texts[i]);
    return status;
}
