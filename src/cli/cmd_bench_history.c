/* cmd_bench_history.c - `temper bench history`: what was measured over time. */
#include "cli/commands.h"
#include "temper/bench.h"

typedef tp_bench_history_options flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "series, change points and samples as JSON"),
    TP_TEXT("metric", 0, "NAME", metric,
            "only this metric (default: those that are judged, of each benchmark)"),
    TP_SWITCH("all-metrics", 0, all_metrics, "the informative ones too"),
    TP_SWITCH("all-hosts", 0, all_hosts, "of every host, not of this one alone"),
    TP_TEXT("svg", 0, "FOLDER", svg, "one picture per series"),
    TP_NUMBER("alpha", 0, "P", FLOAT, alpha, 1e-3, 0.2,
              "of a change point, by permutation (default 0.01)"),
    TP_TEXT("history", 0, "FILE", history, "the file (default: where bench keeps it)"),
    {0}};

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    char *text = NULL;
    tp_error err = {0};
    tp_waiting_begin("temper bench history: looking for changes");
    tp_status status = tp_bench_history((const char *const *)words, (size_t)n, f, &text, &err);
    tp_waiting_end();
    if (status == TP_OK && !text && f->json) {
        puts("[]");
        return TP_EXIT_INPUT;
    }
    if (status == TP_OK && !text)
        return tp_cli_refuse("bench", "the history has nothing that matches%s",
                             f->all_hosts ? "" : " of this host; --all-hosts shows the others");
    return tp_cli_print(status, text, &err);
}

const tp_usage tp_usage_bench_history = {
    .command = "bench history",
    .arguments = "[PATTERN...]",
    .summary = "What was measured on this host over time, and where it "
               "changed.",
    .flags = flag_table,
    .min_words = 0,
    .max_words = -1,
    .size = sizeof(flags),
    .defaults = &(const flags){.size = sizeof(flags), .alpha = 0.01},
    .wraps = true,
    .run = execute};
