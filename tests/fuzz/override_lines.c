/* override_lines.c - each line of the input overrides a configuration; a refusal must say why. */
#include "override_lines.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libfyaml"; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_config *config;
    tp_error err = {0};
    if (size > 1 << 12 || tp_config_load(&config, NULL, &err) != TP_OK)
        return 0;
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = 0;
    for (char *line = text, *rest = text; (line = strsep(&rest, "\n"));) {
        if (tp_config_override(config, line, &err) != TP_OK && !err.message[0])
            abort();
    }
    try_config(config);
    free(text);
    tp_config_release(config);
    return 0;
}
