/* cmd_trace_compare.c - `temper trace compare`: what changed between two traces. */
#include "cli/commands.h"
#include "temper/trace_report.h"

typedef struct {
    tp_trace_report_options o;
    bool json, csv, markdown;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "as JSON: whole nanoseconds"),
    TP_SWITCH("csv", 0, csv, "all tables as comma-separated values"),
    TP_SWITCH("markdown", 0, markdown, "as Markdown"),
    TP_CHOICE("scope", 0, "SCOPE", o.scope, "all linked steps",
              "which device work counts: all (default), linked, steps"),
    TP_TEXT("name", 0, "PATTERN", o.name, "only device work whose name contains this"),
    TP_NUMBER("top", 0, "N", INT, o.top, 0, 1e9, "rows of a table (default 10; 0: all)"),
    {0}};

static int execute(const void *given, char **words, int n)
{
    (void)n;
    const flags *f = given;
    char *text = NULL;
    bool worse = false;
    tp_error err = {0};
    if (f->csv)
        tp_terminal_pass_data();
    tp_trace_report_options o = f->o;
    o.form = tp_cli_form(f->json, f->csv, f->markdown);
    o.top = o.top ? o.top : -1;
    o.width = tp_cli_width();
    o.worse = &worse;
    tp_waiting_begin("temper trace compare: reading and adding up");
    tp_status status = tp_trace_report_compare(words[0], words[1], &o, &text, &err);
    return tp_cli_verdict(tp_cli_print(status, text, &err), worse);
}

const tp_usage tp_usage_trace_compare = {
    .command = "trace compare",
    .arguments = "BEFORE AFTER",
    .summary = "What changed between two traces: in total, by phase, operator and kernel.",
    .flags = flag_table,
    .details =
        "BEFORE and AFTER are files, '-' (standard input), or folders with one trace each, "
        "as the folder of a run.\n"
        "Verdicts: better, worse, same (within 1 %), not shown.  Exit status 1 when the step "
        "is worse.",
    .min_words = 2,
    .max_words = 2,
    .size = sizeof(flags),
    .defaults = &(const flags){.o = {.size = sizeof(tp_trace_report_options), .top = 10}},
    .wraps = true,
    .run = execute};
