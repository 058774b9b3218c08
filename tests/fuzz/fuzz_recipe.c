/* fuzz_recipe.c - the whole table of a training, with what is checked across keys: each line of
 * the input is one word of the command line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/train/options.h"

const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libfyaml"; }

static void bind(tp_config *config)
{
    tp_train_options o;
    tp_buf shown = {0};
    tp_error err = {0};
    if (tp_train_options_bind(config, &o, &err) != TP_OK && !err.message[0])
        abort();
    if (tp_config_is_bound(config))
        tp_config_write(config, &shown);
    tp_buf_release(&shown);
}

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
    bind(config);
    free(text);
    tp_config_release(config);
    return 0;
}
