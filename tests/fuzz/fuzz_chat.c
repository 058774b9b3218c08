/* fuzz_chat.c - a template, a NUL, and the JSON of its context. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "text/template/chat.h"

enum { MAX_OUTPUT = 1 << 16, MAX_STEPS = 20000 };

static void abort_unless(bool good)
{
    if (!good)
        abort();
}

/* Memory that another render has used changes nothing. */
static void check_memory(const tp_template *t, const tp_json *context,
                         const tp_template_limits *limits, const tp_buf *expected)
{
    tp_template_memory memory = {0};
    for (int i = 0; i < 2; i++) {
        tp_buf out = {0};
        abort_unless(tp_template_render(t, context, limits, &memory, &out, NULL, NULL) == TP_OK);
        abort_unless(tp_slice_eq((tp_slice){tp_buf_str(&out), out.len},
                                 (tp_slice){tp_buf_str(expected), expected->len}));
        tp_buf_release(&out);
    }
    tp_template_memory_release(&memory);
}

static void check_rendering(const tp_template *t, const tp_json *context)
{
    tp_template_limits limits = {
        .max_output_bytes = MAX_OUTPUT, .max_iterations = MAX_STEPS, .now = 1};
    tp_buf out = {0};
    tp_spans spans = {0};
    tp_error err = {0};
    if (tp_template_render(t, context, &limits, NULL, &out, &spans, &err) != TP_OK) {
        abort_unless(err.message[0] && out.len == 0 && spans.n == 0);
        return;
    }
    abort_unless(out.len <= MAX_OUTPUT);
    abort_unless(tp_utf8_valid(tp_buf_str(&out), out.len));
    for (size_t i = 0; i < spans.n; i++)
        abort_unless(spans.begin[i] <= spans.end[i] && spans.end[i] <= out.len);
    check_memory(t, context, &limits, &out);
    tp_spans_release(&spans);
    tp_buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *source = (const char *)data;
    const char *end = size && size < 1 << 16 ? memchr(source, 0, size) : NULL;
    tp_template *t = NULL;
    tp_arena arena = {0};
    const tp_json *context = NULL;
    tp_error err = {0};
    if (!end)
        return 0;
    if (tp_template_parse("fuzz", source, (size_t)(end - source), &t, &err) != TP_OK) {
        abort_unless(err.message[0]);
        return 0;
    }
    size_t n = size - (size_t)(end - source) - 1;
    if (tp_arena_init(&arena, 64 * n + 4096, &err) == TP_OK &&
        tp_json_parse(&arena, "context", end + 1, n, &TP_JSON_TOLERANT, &context, &err) != TP_OK)
        context = NULL;
    check_rendering(t, context);
    tp_arena_release(&arena);
    tp_template_free(t);
    return 0;
}
