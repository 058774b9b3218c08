/* cmd_train.c - `temper train`: a run, its output and its signals. */
#include <signal.h>

#include "cli/commands.h"
#include "temper/train.h"

typedef struct {
    bool resume, quiet, json;
    const char *progress, *isa, *level;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("resume", 'r', resume, "continue the run from its newest checkpoint"),
    TP_SWITCH("quiet", 'q', quiet, "print errors only"),
    TP_CHOICE("progress", 'p', "MODE", progress, "auto block plain json quiet",
              "auto, block, plain, json or quiet"),
    TP_SWITCH("json", 0, json, "one JSON object per event, and the closing tables as the last one"),
    TP_CHOICE("isa", 0, "LEVEL", isa, TP_CLI_ISA, "the same as engine.isa=LEVEL"),
    TP_CHOICE("level", 0, "LEVEL", level, TP_CLI_LEVELS,
              "the same as optimization.level=LEVEL: basic, advanced, ultra"),
    {0}};

static bool has_no_reader; /* `| head` has seen enough */

static bool should_stop(void *user) { return tp_cli_should_stop(user) || has_no_reader; }

static void print(void *user, const char *text, size_t n)
{
    (void)user;
    fwrite(text, 1, n, stdout);
    has_no_reader |= !tp_cli_flush() && tp_cli_is_pipe();
}

static int columns(void *user)
{
    (void)user;
    return tp_cli_width();
}

static void catch_signals(void)
{
    tp_cli_catch_stop();
    tp_cli_catch(SIGUSR1, tp_cli_ask_to_stop);
}

static int run(const char *path, char **words, int n, const flags *f)
{
    tp_error err = {0};
    const tp_training_screen screen = {.size = sizeof screen,
                                       .mode = f->quiet  ? "quiet"
                                               : f->json ? "json"
                                                         : f->progress,
                                       .is_terminal = tp_cli_terminal(stdout),
                                       .colour = tp_cli_colour(stdout),
                                       .resume = f->resume,
                                       .print = print,
                                       .note = tp_cli_note,
                                       .columns = columns,
                                       .should_stop = should_stop};
    tp_training_result result = {.size = sizeof result};
    catch_signals();
    if (!screen.is_terminal && !f->json) /* a block that is redrawn keeps to the screen itself */
        tp_cli_wrap();
    tp_status status =
        tp_training_show(path, (const char *const *)words, (size_t)n, &screen, &result, &err);
    if (status == TP_ERR_INTERRUPTED) {
        if (!result.is_silent)
            fprintf(stderr, "temper: %s%s\n",
                    has_no_reader ? "nobody reads the output any more: " : "", err.message);
        return tp_cli_stopped(has_no_reader         ? TP_EXIT_SIGNAL + SIGPIPE
                              : result.was_asked_to ? TP_EXIT_WORSE
                                                    : 0);
    }
    if (result.is_silent) /* as the process does that writes */
        return tp_status_exit(status);
    if (status != TP_OK)
        return tp_cli_fail(&err);
    return result.is_below_threshold ? TP_EXIT_WORSE : 0;
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    char path[TP_CLI_PATH];
    char isa[TP_CLI_SETTING], level[TP_CLI_SETTING];
    tp_error err = {0};
    n = tp_cli_add_setting(words, n, "engine.isa", f->isa, isa);
    n = tp_cli_add_setting(words, n, "optimization.level", f->level, level);
    if (tp_cli_find_recipe(&words, &n, path, &err) != TP_OK)
        return tp_cli_fail(&err);
    return run(path[0] ? path : NULL, words, n, f);
}

const tp_usage tp_usage_train = {
    .command = "train",
    .arguments = "CONFIG [KEY=VALUE...]",
    .summary = "Train a model as the configuration says; writes a run folder.",
    .flags = flag_table,
    .details = "CONFIG is a file of YAML, or a recipe by its name ('temper help recipes'):\n\n"
               "  temper train sft policy.model_name=DIR data.train.data_path=FILE\n\n"
               "Ctrl-C, SIGTERM or a reader of the output that leaves, as head does, saves a "
               "checkpoint after the current step and stops; a second signal stops at once.  "
               "--resume continues bit for bit.",
    .min_words = 1,
    .max_words = -1,
    .size = sizeof(flags),
    .run = execute};
