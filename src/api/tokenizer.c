/* tokenizer.c - encoding and decoding into memory of the caller's; the rest of
 * temper/tokenizer.h is engine/data's own. */
#include "text/tokenizer/tokenizer.h"

tp_status tp_tokenizer_to_ids(const tp_tokenizer *tok, tp_tokenizer_scratch *scratch,
                              const char *text, size_t n, unsigned flags, int32_t **ret_ids,
                              size_t *ret_n, tp_error *err)
{
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
