/* fuzz_prompt_row.c - any bytes as a row of questions: refused with a place, or a prompt
 * that has an id, messages and text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/reward/prompts_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const tp_schema_options variants[] = {
        {0}, {.output_key = "answer", .system_prompt = "be", .prompt_template = "<{}>"}};
    if (size > 1 << 14)
        return 0;
    for (size_t i = 0; i < 2; i++) {
        tp_arena arena;
        tp_error err = {0};
        tp_prompt p;
        tp_row row = {.file = "fuzz", .line = 1, .text = (const char *)data, .n = size};
        if (tp_arena_init(&arena, tp_prompt_row_arena_bytes(&variants[i], size), &err) != TP_OK)
            return 0;
        if (tp_prompt_row_read(&variants[i], &row, &arena, &p, &err) != TP_OK) {
            if (!strstr(err.message, "fuzz:")) /* a line break moves the place */
                abort();
        } else if (strcmp(p.id, "fuzz:1") != 0 || !p.messages || !p.messages->n || !p.text ||
                   (i == 1 && !p.truth)) {
            abort();
        }
        tp_arena_release(&arena);
    }
    return 0;
}
