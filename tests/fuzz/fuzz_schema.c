/* fuzz_schema.c - a row of JSON, whatever it holds, becomes an example or a message.
 *
 * The first byte chooses what is configured. */
#include <stdlib.h>

#include "engine/data/schema.h"

static void check_example(const tp_example *example)
{
    if (example->is_text) {
        if (!example->text.data)
            abort();
        return;
    }
    size_t n = 0;
    for (const tp_json *m = example->messages->child; m; m = m->next, n++) {
        const tp_json *content = tp_json_get(m, "content");
        if (m->type != TP_JSON_OBJECT || !tp_json_str(tp_json_get(m, "role")))
            abort();
        if (content && content->type != TP_JSON_STRING && content->type != TP_JSON_NULL &&
            content->type != TP_JSON_ARRAY) /* of parts */
            abort();
    }
    if (n != example->messages->n || n == 0 || example->first_target > n)
        abort();
    if (example->tools && example->tools->type != TP_JSON_ARRAY)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 1 << 16)
        return 0;
    uint8_t choice = data[0];
    tp_schema_options options = {.input_key = choice & 1 ? "a" : NULL,
                                 .output_key = choice & 1 ? "b" : NULL,
                                 .chat_key = choice & 2 ? "c" : NULL,
                                 .prompt_key = choice & 4 ? "p" : NULL,
                                 .text_key = choice & 8 ? "t" : NULL,
                                 .system_key = choice & 16 ? "s" : NULL,
                                 .system_prompt = choice & 32 ? "Be brief." : NULL,
                                 .prompt_template = choice & 64 ? "Q {}{{}}" : NULL};
    tp_row row = {.file = "fuzz", .line = 1, .text = (const char *)data + 1, .n = size - 1};
    tp_arena arena;
    tp_error err = {.message = ""};
    if (tp_arena_init(&arena, tp_schema_arena_bytes(&options, row.n), &err) != TP_OK)
        return 0;
    tp_schema schema;
    tp_example example;
    tp_status status = tp_schema_choose(&options, &row, &arena, &schema, &err);
    if (status == TP_OK)
        status = tp_schema_read(&schema, &row, &arena, &example, &err);
    if (status == TP_OK)
        check_example(&example);
    else if (!err.message[0])
        abort();
    tp_arena_release(&arena);
    return 0;
}
