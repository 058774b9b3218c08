/* cmd_alarms.c - `temper alarms`: rules replayed over a run, whoever ran it. */
#include "cli/commands.h"
#include "cli/runs.h"
#include "temper/monitor.h"

typedef struct {
    bool json;
    tp_flag_list rules;
    const char *file;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "{\"alarms\": [...], \"rules\": [...]}"),
    TP_LIST("rule", 0, "TEXT", rules,
            "as 'train/loss rises by 3 sigma over 50 steps'; may be given several times"),
    TP_TEXT("rules", 0, "FILE", file, "a recipe with monitor.alarms, or a list of alarms in YAML"),
    {0}};

static int replay(const flags *f, const char *path, tp_error *err)
{
    tp_metrics *m;
    tp_alarms *alarms;
    if (tp_alarms_open(f->rules.items, (size_t)f->rules.n, f->file, &alarms, err) != TP_OK)
        return tp_cli_fail(err);
    tp_waiting_begin("temper alarms: reading");
    if (tp_metrics_open(path, NULL, &m, err) != TP_OK) {
        tp_alarms_close(alarms);
        return tp_cli_fail(err);
    }
    tp_waiting_end();
    tp_runs_say_notes(m);
    tp_waiting_begin("temper alarms: trying the rules");
    tp_alarms_hear(alarms, m);
    char *text = f->json ? tp_alarms_json(alarms) : tp_alarms_text(alarms, tp_cli_width());
    tp_waiting_end();
    fputs(text, stdout);
    tp_free(text);
    int status = tp_alarms_count(alarms) ? TP_EXIT_WORSE : 0;
    tp_metrics_close(m);
    tp_alarms_close(alarms);
    return status;
}

static int execute(const void *given, char **words, int n)
{
    (void)n;
    const flags *f = given;
    tp_error err = {0};
    return replay(f, words[0], &err);
}

const tp_usage tp_usage_alarms = {
    .command = "alarms",
    .arguments = "RUN",
    .summary = "When would these alarms have gone off in this run, whoever ran it?",
    .flags = flag_table,
    .details = "Without --rule and --rules the usual ones: a loss that is not finite or rises, "
               "entropy that collapses, a reward that pays for length, memory that leaks or "
               "runs out, steps that slow down, data that repeats.  docs/guide/monitoring.md "
               "has the grammar.  Exit status 1 when one goes off.\n\n"
               "  temper alarms runs/first\n"
               "  temper alarms logs/tensorboard --rule 'train/loss above 5 for 10 steps'",
    .min_words = 1,
    .max_words = 1,
    .size = sizeof(flags),
    .run = execute};
