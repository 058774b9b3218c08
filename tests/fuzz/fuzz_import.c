/* fuzz_import.c - configurations of other trainers: the first byte chooses the source, the second
 * the algorithm; whatever a file says, the recipe that is written is YAML. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files.h"
#include "config/import/import.h"
#include "text/yaml/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static tp_option *no_options(const char *algorithm, size_t *ret_n)
{
    static const tp_option rows[] = {
        {.name = "policy.precision", .type = TP_OPT_STRING, .offset = 0},
        {.name = "policy.no", .type = TP_OPT_SECTION, .ignored = true, .accepted = "null|false"},
        {.name = "data", .type = TP_OPT_SECTION, .ignored = true, .doc = "Why."}};
    tp_option *copy = malloc(sizeof rows);
    (void)algorithm;
    if (!copy)
        abort();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        copy[i] = rows[i];
    *ret_n = sizeof rows / sizeof *rows;
    return copy;
}

static void check(const tp_import *im)
{
    tp_buf out = {0};
    tp_arena arena;
    const tp_json *tree;
    tp_error err = {0};
    tp_import_write(im, &out);
    if (tp_arena_init(&arena, 64 << 20, &err) != TP_OK)
        abort();
    if (out.len < 1 << 20 &&
        tp_yaml_parse(&arena, "recipe", out.data, out.len, &tree, &err) != TP_OK)
        abort();
    tp_arena_release(&arena);
    tp_buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const from[] = {NULL, "trl", "axolotl", "nemo-rl"};
    static const char *const algorithms[] = {NULL, "sft", "dpo", "grpo"};
    static char path[64];
    tp_import *im = NULL;
    tp_error err = {0};
    if (n < 2)
        return 0;
    snprintf(path, sizeof path, "/tmp/temper-fuzz-import-%d", (int)getpid());
    tp_import_request request = {.from = from[data[0] & 3],
                                 .algorithm = algorithms[data[1] & 3],
                                 .rows = data[0] >> 2,
                                 .options_of = no_options};
    if (tp_file_refresh(path, data + 2, n - 2, &err) != TP_OK)
        abort();
    if (tp_import_open(path, &request, &im, &err) == TP_OK)
        check(im);
    else if (!err.message[0])
        abort();
    tp_import_close(im);
    unlink(path);
    return 0;
}
