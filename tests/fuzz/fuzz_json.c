/* fuzz_json.c - the scanner, the document and the writer on any bytes.
 *
 * The first byte chooses the options.  What parses strictly must survive being
 * written and parsed again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text/json/json.h"

/* Places never go back, and end at the end. */
static void read_tokens(const char *text, size_t n, const tp_json_options *options)
{
    tp_json_reader r;
    tp_json_token token;
    uint64_t offset = 0, line = 1;
    tp_json_reader_init(&r, "fuzz", text, n, options);
    do {
        if (tp_json_reader_next(&r, &token, NULL) != TP_OK)
            return;
        if (token.offset < offset || token.offset > n || token.line < line)
            abort();
        offset = token.offset;
        line = token.line;
    } while (token.type != TP_JSON_TOKEN_END);
}

static void check_round_trip(tp_arena *arena, const tp_json *root)
{
    tp_buf first = {0}, second = {0};
    tp_json_w w;
    const tp_json *again;
    tp_json_w_init(&w, &first, 2);
    tp_json_w_value(&w, root);
    if (tp_json_parse(arena, "again", first.data, first.len, &TP_JSON_TOLERANT, &again, NULL) !=
        TP_OK)
        abort();
    tp_json_w_init(&w, &second, 2);
    tp_json_w_value(&w, again);
    if (first.len != second.len || memcmp(first.data, second.data, first.len) != 0)
        abort();
    tp_buf_release(&first);
    tp_buf_release(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 1 << 16)
        return 0;
    tp_json_options options = {.allow_nan = data[0] & 1,
                               .allow_duplicate = data[0] & 2,
                               .allow_surrogate = data[0] & 4,
                               .allow_many = data[0] & 8};
    const char *text = (const char *)data + 1;
    size_t n = size - 1;
    read_tokens(text, n, &options);

    tp_arena arena;
    tp_error err;
    if (tp_arena_init(&arena, 32 << 20, &err) != TP_OK)
        return 0;
    const tp_json *root;
    if (tp_json_parse(&arena, "fuzz", text, n, &options, &root, &err) == TP_OK)
        check_round_trip(&arena, root);
    else if (!err.message[0])
        abort();
    tp_arena_release(&arena);
    return 0;
}
