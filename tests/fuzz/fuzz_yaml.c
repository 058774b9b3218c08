/* fuzz_yaml.c - the YAML reader on any bytes; what it accepts must come back
 * unchanged from being written and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text/yaml/yaml.h"

/* libfyaml 0.7.12 loses a buffer when a quoted scalar with many escapes is cut
 * off; the process that read such a file ends with an error anyway. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libfyaml"; }

static void to_json(const tp_json *root, tp_buf *out)
{
    tp_json_w w;
    tp_json_w_init(&w, out, 0);
    tp_json_w_value(&w, root);
}

static void check_round_trip(tp_arena *arena, const tp_json *root)
{
    tp_buf text = {0}, before = {0}, after = {0}, rewritten = {0};
    const tp_json *again;
    tp_yaml_write_remarked(root, &text, NULL, NULL);
    if (tp_yaml_parse(arena, "again", text.data, text.len, &again, NULL) != TP_OK)
        abort();
    /* Exponents are written with a sign, so numbers may change their spelling
     * once; the values may not. */
    tp_yaml_write_remarked(again, &rewritten, NULL, NULL);
    if (rewritten.len != text.len || memcmp(rewritten.data, text.data, text.len) != 0)
        abort();
    to_json(root, &before);
    to_json(again, &after);
    if (!strpbrk(before.data, "eE") &&
        (before.len != after.len || memcmp(before.data, after.data, after.len) != 0))
        abort();
    tp_buf_release(&text);
    tp_buf_release(&before);
    tp_buf_release(&after);
    tp_buf_release(&rewritten);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_arena arena;
    tp_error err = {0};
    if (size > 1 << 14 || tp_arena_init(&arena, 32 << 20, &err) != TP_OK)
        return 0;
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    const tp_json *root;
    if (tp_yaml_parse(&arena, "fuzz", text, size, &root, &err) == TP_OK)
        check_round_trip(&arena, root);
    else if (!err.message[0])
        abort();
    free(text);
    tp_arena_release(&arena);
    return 0;
}
