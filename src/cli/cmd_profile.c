/* cmd_profile.c - `temper profile`: where a step's time and memory go, in one command. */
#include <string.h>

#include "cli/cli.h"
#include "cli/find_recipe.h"
#include "cli/stop.h"
#include "cli/waiting.h"
#include "temper/profile.h"

typedef struct {
    bool json, replace;
    int64_t warmup, steps, record;
    const char *name, *against, *isa;
} flags;

static const tp_flag flag_table[] = {
    TP_NUMBER("warmup", 'w', "N", INT, warmup, 0, TP_PROFILE_MOST_STEPS,
              "steps before anything is measured (3)"),
    TP_NUMBER("steps", 0, "N", INT, steps, 2, TP_PROFILE_MOST_STEPS,
              "steps that are timed, nothing being recorded (10)"),
    TP_NUMBER("record", 0, "N", INT, record, 1, 1000,
              "steps recorded as a trace, after the timed ones (2)"),
    TP_TEXT("name", 0, "NAME", name, "keep the profile under this name (latest)"),
    TP_SWITCH("replace", 0, replace, "an existing profile of that name is replaced"),
    TP_TEXT("against", 'a', "NAME", against, "compare with the profile kept under this name"),
    TP_SWITCH("json", 0, json, "the profile as one JSON object"),
    TP_CHOICE("isa", 0, "LEVEL", isa, TP_CLI_ISA, "the same as engine.isa=LEVEL"),
    {0}};

static void show_progress(void *user, int64_t done, int64_t all, const char *what)
{
    char text[256];
    double *begin_s = user;
    if (done > 0 && *begin_s == 0) /* of the second step, as the first one has much to prepare */
        *begin_s = tp_cli_clock_s();
    snprintf(text, sizeof text, "step %lld/%lld, %s", (long long)done, (long long)all, what);
    char *line = done > 1 ? tp_working_text(text, (double)(done - 1) / (double)(all - 1),
                                            tp_cli_clock_s() - *begin_s)
                          : NULL;
    tp_waiting_say(done == all ? NULL : line ? line : text);
    tp_free(line);
}

int tp_cmd_profile(int argc, char **argv)
{
    flags f = {.warmup = 3, .steps = 10, .record = 2};
    char *given[argc + 2], **words = given, path[TP_CLI_PATH], isa[64], *text = NULL;
    bool worse = false;
    double begin_s = 0; /* of the second step */
    tp_error err = {0};
    const tp_usage usage = {
        .command = "profile",
        .arguments = "CONFIG [KEY=VALUE...]",
        .summary = "Profile a recipe before optimising it: operators, phases, memory, bottlenecks.",
        .flags = flag_table,
        .details = "Trains a few steps without checkpoints or validation and prints where a "
                   "step's time and memory go, what to try, and what it would save at most.  The "
                   "figures stay in runs/profiles/NAME; --against compares with an earlier one "
                   "(exit status 1: the step is worse).",
        .min_words = 1,
        .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    if (!f.json)
        tp_cli_wrap();
    tp_cli_catch_stop();
    n = tp_cli_add_setting(words, n, "engine.isa", f.isa, isa);
    if (tp_cli_find_recipe(&words, &n, path, &err) != TP_OK)
        return tp_cli_fail(&err);
    const tp_profile_options o = {.size = sizeof o,
                                  .no_warm_up = f.warmup == 0,
                                  .warm_up = f.warmup,
                                  .steps = f.steps,
                                  .record = f.record,
                                  .name = f.name,
                                  .replace = f.replace,
                                  .against = f.against,
                                  .form = tp_cli_form(f.json, false, false),
                                  .progress = show_progress,
                                  .note = f.json ? NULL : tp_cli_note,
                                  .should_stop = tp_cli_should_stop,
                                  .user = &begin_s,
                                  .width = tp_cli_width(),
                                  .worse = &worse};
    tp_waiting_begin("temper profile: getting ready");
    tp_status done = tp_profile_run(path[0] ? path : NULL, (const char *const *)words, (size_t)n,
                                    &o, &text, &err);
    int status = tp_cli_verdict(tp_cli_print(done, text, &err), worse);
    return done != TP_OK ? tp_cli_stopped(status) : status;
}
