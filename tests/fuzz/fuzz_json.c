/* fuzz_json.c - the scanner, the document and the writer on any bytes.
 *
 * The first byte chooses the options.  What parses strictly must survive being
 * written and parsed again, and must give the same tokens in small windows. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text/json/json.h"

static uint64_t mix(uint64_t hash, const tp_json_token *token)
{
    hash = (hash ^ (uint64_t)token->type ^ token->offset << 8 ^ token->line << 40) *
           UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < token->text.len; i++)
        hash = (hash ^ (unsigned char)token->text.data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* A hash of all tokens, or 0 when the text was refused. */
static uint64_t read_in_windows(const char *text, size_t n, size_t room,
                                const tp_json_options *options)
{
    tp_json_reader r;
    tp_json_token token;
    size_t fed = room < n ? room : n;
    uint64_t hash = 1;
    char *window = malloc(fed + 1);
    memcpy(window, text, fed);
    tp_json_reader_init(&r, "fuzz", window, fed, options);
    r.is_final = fed == n;
    for (;;) {
        if (tp_json_reader_next(&r, &token, NULL) != TP_OK) {
            hash = 0;
            break;
        }
        if (token.type == TP_JSON_TOKEN_MORE) {
            size_t kept = (size_t)(r.end - r.at);
            size_t more = n - fed < room ? n - fed : room;
            char *next = malloc(kept + more + 1);
            memcpy(next, r.at, kept);
            memcpy(next + kept, text + fed, more);
            fed += more;
            tp_json_reader_feed(&r, next, kept + more, fed == n);
            free(window);
            window = next;
            continue;
        }
        hash = mix(hash, &token);
        if (token.type == TP_JSON_TOKEN_END)
            break;
    }
    free(window);
    return hash;
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
    uint64_t whole = read_in_windows(text, n, n + 1, &options);
    size_t room = 1 + (data[0] >> 4);
    if (read_in_windows(text, n, room, &options) != whole)
        abort();

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
