/* cmd_export.c - `temper export`: a model as a GGUF file. */
#include <string.h>

#include "cli/commands.h"
#include "temper/model.h"

typedef struct {
    const char *type, *name;
    int64_t threads;
} flags;

static const tp_flag flag_table[] = {
    TP_CHOICE("type", 0, "TYPE", type, "F32 F16 BF16 Q8_0 Q4_0 Q4_K Q4_K_M",
              "of the matrices: F32, F16 (default), BF16, Q8_0, Q4_0, Q4_K, or llama-quantize's "
              "mixture Q4_K_M"),
    TP_TEXT("name", 0, "NAME", name, "what the file calls the model (default: its folder's name)"),
    TP_NUMBER("threads", 0, "N", INT, threads, 1, 4096, "that quantise (default: one per core)"),
    {0}};

static void print_result(const char *out, const tp_export_result *r)
{
    char size[32];
    if (strcmp(out, "-") == 0 || strcmp(out, "/dev/stdout") == 0)
        return;
    printf("wrote %s: %s, %zu tensor%s (%s)\n", out, tp_human_bytes((double)r->bytes, size),
           r->n_tensors, r->n_tensors == 1 ? "" : "s", r->types);
}

static int execute(const void *given, char **words, int n)
{
    (void)n;
    const flags *f = given;
    tp_error err = {0};
    tp_export_options options = {.size = sizeof options,
                                 .type = f->type,
                                 .name = f->name,
                                 .threads = (int)f->threads,
                                 .note = tp_cli_note};
    tp_export_result result = {.size = sizeof result};
    tp_waiting_begin("temper export: writing");
    if (tp_model_export(words[0], words[1], &options, &result, &err) != TP_OK)
        return tp_cli_fail(&err);
    tp_waiting_end();
    print_result(words[1], &result);
    return 0;
}

const tp_usage tp_usage_export = {
    .command = "export",
    .arguments = "MODEL OUT.gguf",
    .summary = "Write a model with its tokenizer and chat template as a GGUF file.",
    .flags = flag_table,
    .details = "MODEL is a model folder, a checkpoint, a run (its newest checkpoint is taken)\n"
               "or another GGUF file.  Vectors and norms stay F32; a matrix whose rows do not\n"
               "divide into the type's blocks is written as llama-quantize would, and said.\n"
               "Temper reads the file wherever it takes a model folder: temper generate\n"
               "OUT.gguf.",
    .min_words = 2,
    .max_words = 2,
    .size = sizeof(flags),
    .defaults = &(const flags){.type = "F16"},
    .wraps = true,
    .run = execute};
