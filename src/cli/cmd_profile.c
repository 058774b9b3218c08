/* cmd_profile.c - `temper profile`: where a step's time and memory go, in one command. */

#include "cli/commands.h"
#include "temper/profile.h"

typedef struct {
    tp_profile_options o;
    bool json;
    const char *isa;
} flags;

static const tp_flag flag_table[] = {
    TP_NUMBER("warm-up", 'w', "N", INT, o.warm_up, 0, TP_PROFILE_MOST_STEPS,
              "steps before anything is measured (3)"),
    TP_NUMBER("steps", 0, "N", INT, o.steps, 2, TP_PROFILE_MOST_STEPS,
              "steps that are timed, nothing being recorded (10)"),
    TP_NUMBER("record", 0, "N", INT, o.record, 1, 1000,
              "steps recorded as a trace, after the timed ones (2)"),
    TP_TEXT("name", 0, "NAME", o.name, "keep the profile under this name (latest)"),
    TP_SWITCH("replace", 0, o.replace, "an existing profile of that name is replaced"),
    TP_TEXT("against", 'a', "NAME", o.against, "compare with the profile kept under this name"),
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

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    char path[TP_CLI_PATH], isa[64], *text = NULL;
    bool worse = false;
    double begin_s = 0; /* of the second step */
    tp_error err = {0};
    tp_cli_catch_stop();
    n = tp_cli_add_setting(words, n, "engine.isa", f->isa, isa);
    if (tp_cli_find_recipe(&words, &n, path, &err) != TP_OK)
        return tp_cli_fail(&err);
    tp_profile_options o = f->o;
    o.no_warm_up = o.warm_up == 0;
    o.form = tp_cli_form(f->json, false, false);
    o.progress = show_progress;
    o.user = &begin_s;
    o.note = f->json ? NULL : tp_cli_note;
    o.should_stop = tp_cli_should_stop;
    o.width = tp_cli_width();
    o.worse = &worse;
    tp_waiting_begin("temper profile: getting ready");
    tp_status done = tp_profile_run(path[0] ? path : NULL, (const char *const *)words, (size_t)n,
                                    &o, &text, &err);
    int status = tp_cli_verdict(tp_cli_print(done, text, &err), worse);
    return done != TP_OK ? tp_cli_stopped(status) : status;
}

const tp_usage tp_usage_profile = {
    .command = "profile",
    .arguments = "CONFIG [KEY=VALUE...]",
    .summary = "Profile a recipe before optimising it: operators, phases, memory, bottlenecks.",
    .flags = flag_table,
    .details = "Trains a few steps without checkpoints or validation and prints where a "
               "step's time and memory go, what to try, and what it would save at most.  The "
               "figures stay in runs/profiles/NAME; --against compares with an earlier one "
               "(exit status 1: the step is worse).",
    .min_words = 1,
    .max_words = -1,
    .size = sizeof(flags),
    .defaults =
        &(const flags){
            .o = {.size = sizeof(tp_profile_options), .warm_up = 3, .steps = 10, .record = 2}},
    .wraps = true,
    .run = execute};
