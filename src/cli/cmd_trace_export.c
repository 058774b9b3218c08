/* cmd_trace_export.c - `temper trace export`: a trace in another tool's format. */
#include "cli/commands.h"
#include "temper/trace_report.h"

typedef struct {
    tp_trace_export_options o;
    bool chrome, perfetto, collapsed, csv;
    const char *output;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("chrome", 0, chrome, "trace-event JSON"),
    TP_SWITCH("perfetto", 0, perfetto, "Perfetto's native format (.pftrace)"),
    TP_SWITCH("collapsed", 0, collapsed, "stacks for flame graphs: 'outer;inner nanoseconds'"),
    TP_SWITCH("csv", 0, csv, "one line per span, instant and memory event"),
    TP_SWITCH("device", 0, o.device,
              "with --collapsed: device time by launching stack, not host time"),
    TP_CHOICE("scope", 0, "SCOPE", o.scope, "all linked steps",
              "with --device: all (default), linked or steps"),
    TP_TEXT("out", 'o', "OUT", output, "the file to write; - is standard output"),
    TP_SWITCH("json", 0, o.json, "say as JSON what was written"),
    {0}};

static bool check(const flags *f)
{
    int formats = f->chrome + f->perfetto + f->collapsed + f->csv;
    if (formats != 1)
        fprintf(stderr, "temper trace export: choose one of --chrome, --perfetto, --collapsed and "
                        "--csv\n");
    else if (!f->output)
        fprintf(stderr, "temper trace export: -o OUT is missing (- is standard output)\n");
    else
        return true;
    return false;
}

static int execute(const void *given, char **words, int n)
{
    (void)n;
    const flags *f = given;
    char *text = NULL;
    tp_error err = {0};
    if (!check(f))
        return 2;
    tp_trace_export_options o = f->o;
    o.format = f->chrome ? "chrome" : f->perfetto ? "perfetto" : f->collapsed ? "collapsed" : "csv";
    tp_waiting_begin("temper trace export: reading and writing");
    tp_status status = tp_trace_report_export(words[0], f->output, &o, &text, &err);
    return tp_cli_print(status, text, &err);
}

const tp_usage tp_usage_trace_export = {
    .command = "trace export",
    .arguments = "FILE",
    .summary = "Write a trace in another tool's format; FILE may be a folder "
               "with one trace, or '-', standard input.",
    .flags = flag_table,
    .min_words = 1,
    .max_words = 1,
    .wraps = true,
    .size = sizeof(flags),
    .defaults = &(const flags){.o = {.size = sizeof(tp_trace_export_options)}},
    .run = execute};
