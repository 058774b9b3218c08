/* cmd_tune.c - `temper tune`: the fastest, smallest or cheapest setting of a recipe. */
#include <string.h>

#include "cli/commands.h"
#include "cli/study.h"

typedef struct {
    tp_study_flags common;
    bool allow_precision;
    const char *goal, *memory;
} flags;

static const tp_flag flag_table[] = {
    TP_CHOICE("goal", 0, "GOAL", goal, "tokens_per_s peak_memory cost",
              "tokens_per_s (default), peak_memory, or cost: processors and memory per token"),
    TP_TEXT("memory", 0, "SIZE", memory, "planned peak at most: 8GiB, 512M"),
    TP_SWITCH("allow-precision", 0, allow_precision, "policy.precision may change as well"),
    TP_STUDY_FLAGS("RUN-tune"),
    {0}};

static int read_options(const flags *f, tp_tune_options *o)
{
    static const char *const goals[] = {"tokens_per_s", "peak_memory", "cost"};
    uint64_t bytes = 0;
    int status = tp_study_options("tune", &f->common, &o->common);
    if (status)
        return status;
    if (f->memory && !tp_cli_bytes(f->memory, &bytes))
        return tp_cli_refuse("tune", "--memory takes a size (8GiB, 512M), not '%s'", f->memory);
    o->memory_bytes = (int64_t)bytes;
    o->allow_precision = f->allow_precision;
    for (size_t i = 0; f->goal && i < sizeof goals / sizeof *goals; i++)
        if (strcmp(f->goal, goals[i]) == 0) {
            o->goal = (tp_goal)i;
            return 0;
        }
    return f->goal ? tp_cli_refuse("tune", "--goal is tokens_per_s, peak_memory or cost, not '%s'",
                                   f->goal)
                   : 0;
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    char path[TP_CLI_PATH], isa[TP_CLI_SETTING], *text = NULL;
    tp_error err = {0};
    tp_tune_options o = {.size = sizeof o};
    int status = read_options(f, &o);
    if (status)
        return status;
    n = tp_cli_add_setting(words, n, "engine.isa", f->common.isa, isa);
    if (tp_cli_find_recipe(&words, &n, path, &err) != TP_OK)
        return tp_cli_fail(&err);
    tp_study_catch_signals();
    tp_status done =
        tp_tune_run(path[0] ? path : NULL, (const char *const *)words, (size_t)n, &o, &text, &err);
    return tp_study_finish(done, text, &err);
}

const tp_usage tp_usage_tune = {
    .command = "tune",
    .arguments = "CONFIG [KEY=VALUE...]",
    .summary = "Search levers and sizes of a recipe on this machine, and write the best as a "
               "recipe.",
    .flags = flag_table,
    .details =
        "What cannot fit or win by the plan is not run; the rest race in short runs of random "
        "order, and the winner is confirmed against the recipe on fresh rounds.  The folder "
        "has recipe.yaml, report.json, report.md and every raw sample.  Ctrl-C ends with what "
        "is there.",
    .min_words = 1,
    .max_words = -1,
    .wraps = true,
    .size = sizeof(flags),
    .defaults = &(const flags){.common = TP_STUDY_DEFAULTS},
    .run = execute};
