/* cmd_merge.c - `temper merge`: an adapter and its base as one model. */
#include "cli/commands.h"
#include "temper/model.h"

typedef tp_merge_options flags;

static const tp_flag flag_table[] = {
    TP_CHOICE("dtype", 0, "TYPE", dtype, "float32 bfloat16 float16",
              "of the weights: float32, bfloat16 or float16 (default: the base's)"),
    TP_CHOICE("base", 0, "TYPE", base, "int8 nf4",
              "add to the base as it is in 8 or 4 bits, where the adapter was trained over it "
              "(default: as its folder has it)"),
    {0}};

static int execute(const void *given, char **words, int n)
{
    (void)n;
    const flags *f = given;
    tp_error err = {0};
    tp_merge_result result = {.size = sizeof result};
    tp_waiting_begin("temper merge: adding the adapters up");
    if (tp_model_merge(words[0], words[1], f, &result, &err) != TP_OK)
        return tp_cli_fail(&err);
    tp_waiting_end();
    printf("wrote %s: %s with the adapters of %zu module%s, in %s\n", words[1], result.base,
           result.n_modules, result.n_modules == 1 ? "" : "s", result.dtype);
    return 0;
}

const tp_usage tp_usage_merge = {
    .command = "merge",
    .arguments = "ADAPTER OUT",
    .summary = "Add an adapter (LoRA, DoRA) to its base for good: one model, as a Hugging Face "
               "folder.",
    .flags = flag_table,
    .details = "ADAPTER is a folder with adapter_config.json, as PEFT and Temper write it, a\n"
               "checkpoint, or a run that trained an adapter (its newest checkpoint is taken).\n"
               "The base is where its base_model_name_or_path says.  OUT must not exist.",
    .min_words = 2,
    .max_words = 2,
    .wraps = true,
    .size = sizeof(flags),
    .defaults = &(const flags){.size = sizeof(flags)},
    .run = execute};
