/* fuzz_tokenizer.c - a tokenizer.json, a NUL, and a text to encode with it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "text/tokenizer/tokenizer.h"

enum { MAX_TEXT = 512 };

static void abort_unless(bool good)
{
    if (!good)
        abort();
}

static void check_decoding(const tp_tokenizer *tok, const tp_ids *ids)
{
    tp_buf whole = {0}, streamed = {0};
    tp_decode_stream state = {0};
    tp_tokenizer_decode(tok, ids->data, ids->len, false, &whole);
    for (size_t i = 0; i < ids->len; i++) {
        abort_unless(tp_tokenizer_has_id(tok, ids->data[i]));
        tp_tokenizer_decode_next(tok, &state, ids->data[i], false, &streamed);
    }
    tp_tokenizer_decode_next(tok, &state, -1, false, &streamed);
    abort_unless(strcmp(tp_buf_str(&whole), tp_buf_str(&streamed)) == 0);
    abort_unless(whole.len == streamed.len);
    tp_buf_release(&whole);
    tp_buf_release(&streamed);
}

/* Offsets change no ids, and a second time gives what the first gave. */
static void check_encoding(const tp_tokenizer *tok, const char *text, size_t n,
                           tp_encode_options options)
{
    tp_ids first = {0}, second = {0}, offsets = {0};
    tp_tokenizer_scratch *scratch = tp_tokenizer_scratch_new(tok);
    tp_tokenizer_encode(tok, scratch, text, n, options, &first, NULL);
    tp_tokenizer_encode(tok, scratch, text, n, options, &second, &offsets);
    abort_unless(first.len == second.len && offsets.len == second.len);
    for (size_t i = 0; i < first.len; i++) {
        abort_unless(first.data[i] == second.data[i]);
        abort_unless(offsets.data[i] >= 0 && (size_t)offsets.data[i] <= n);
    }
    check_decoding(tok, &first);
    tp_ids_release(&first);
    tp_ids_release(&second);
    tp_ids_release(&offsets);
    tp_tokenizer_scratch_free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *json = (const char *)data;
    const char *end = size && size < 1 << 16 ? memchr(json, 0, size) : NULL;
    if (!end)
        return 0;
    size_t n = size - (size_t)(end - json) - 1;
    tp_tokenizer *tok = NULL;
    tp_error err = {0};
    if (tp_tokenizer_parse("fuzz", json, (size_t)(end - json), &tok, &err) != TP_OK) {
        abort_unless(err.message[0]);
        return 0;
    }
    char *text = malloc(n + 1); /* of its own, so that reading past its end is seen */
    memcpy(text, end + 1, n);
    n = TP_MIN(n, (size_t)MAX_TEXT);
    for (int flags = 0; flags < 4; flags++)
        check_encoding(tok, text, n,
                       (tp_encode_options){.add_special = flags & 1, .parse_special = flags & 2});
    free(text);
    tp_tokenizer_free(tok);
    return 0;
}
