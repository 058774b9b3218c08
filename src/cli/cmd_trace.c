/* cmd_trace.c - `temper trace`: read any trace, say where time and memory went. */
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "temper/trace_report.h"

typedef struct {
    tp_trace_report_options o;
    bool json, csv, markdown;
} flags;

enum { UNSET = INT64_MIN };

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "as JSON: whole nanoseconds and bytes"),
    TP_SWITCH("csv", 0, csv, "a view as comma-separated values"),
    TP_SWITCH("markdown", 0, markdown, "as Markdown"),
    TP_TEXT("view", 0, "VIEW", o.view, "one view instead of the overview; also as a word"),
    TP_CHOICE("scope", 0, "SCOPE", o.scope, "all linked steps",
              "which device work counts: all (default), linked (its launch is in the file), steps "
              "(launched inside a step)"),
    TP_NUMBER("step", 0, "N", INT, o.step, 0, 9e15, "only work launched in this step"),
    TP_NUMBER("rank", 0, "N", INT, o.rank, 0, 1e9, "only the file of this rank"),
    TP_NUMBER("stream", 0, "N", INT, o.stream, 0, 9e15, "only this stream"),
    TP_TEXT("name", 0, "PATTERN", o.name,
            "only device work whose name contains this (or matches *, ?)"),
    TP_TEXT("comm", 0, "PATTERN", o.comm, "kernels that communicate besides those known by name"),
    TP_NUMBER("top", 0, "N", INT, o.top, 0, 1e9, "rows of a table (default 10 or 30; 0: all)"),
    TP_NUMBER("slow-operator", 0, "MS", FLOAT, o.slow_operator_ms, 1e-6, 1e9,
              "an operator is a bottleneck from so many ms on, all calls together, by itself "
              "(default 1)"),
    TP_NUMBER("slow-kernel", 0, "MS", FLOAT, o.slow_kernel_ms, 1e-6, 1e9,
              "a kernel is slow from so many ms on average on (default 1)"),
    {0}};

static bool is_view(const char *word)
{
    for (size_t i = 0; tp_trace_view_name(i); i++)
        if (strcmp(tp_trace_view_name(i), word) == 0)
            return true;
    return false;
}

static const char *nearest_view(const char *word)
{
    tp_nearest near = {.word = word};
    for (size_t i = 0; tp_trace_view_name(i); i++)
        tp_nearest_offer(&near, tp_trace_view_name(i));
    return near.best;
}

static int refuse_view(const char *view)
{
    const char *near = nearest_view(view);
    return tp_cli_refuse("trace", "there is no view '%s'%s%s%s; see 'temper help trace'", view,
                         near ? "; did you mean '" : "", near ? near : "", near ? "'" : "");
}

/* Words that name a view are one, unless a file or folder of that name is there; so are those that
 * nearly do.  The paths move to the front of `words`; an exit status, 0 when all is well. */
static int split_words(char **words, int n, const char **ret_view, int *ret_paths)
{
    *ret_paths = 0;
    for (int i = 0; i < n; i++) {
        bool exists = access(words[i], F_OK) == 0;
        if (!exists && !is_view(words[i]) && nearest_view(words[i]) && !strpbrk(words[i], "./"))
            return refuse_view(words[i]);
        if (exists || !is_view(words[i])) {
            words[(*ret_paths)++] = words[i];
            continue;
        }
        if (*ret_view && strcmp(*ret_view, words[i]) != 0)
            return tp_cli_refuse("trace", "one view at a time, not '%s' and '%s'", *ret_view,
                                 words[i]);
        *ret_view = words[i];
    }
    return *ret_paths ? 0 : tp_cli_refuse("trace", "expected a file; see 'temper help trace'");
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    char *text = NULL;
    const char *view = NULL;
    tp_error err = {0};
    int n_paths;
    int status = split_words(words, n, &view, &n_paths);
    if (status)
        return status;
    if (f->o.view && !is_view(f->o.view))
        return refuse_view(f->o.view);
    if (f->json + f->csv + f->markdown > 1)
        return tp_cli_refuse("trace", "one of --json, --csv and --markdown");
    if (f->csv)
        tp_terminal_pass_data();
    tp_trace_report_options o = f->o;
    o.view = o.view ? o.view : view;
    o.has_step = o.step != UNSET;
    o.has_rank = o.rank != UNSET;
    o.has_stream = o.stream != UNSET;
    o.form = tp_cli_form(f->json, f->csv, f->markdown);
    o.top = o.top == UNSET ? 0 : o.top ? o.top : -1;
    o.width = tp_cli_width();
    tp_waiting_begin("temper trace: reading and adding up");
    tp_status done =
        tp_trace_report_write((const char *const *)words, (size_t)n_paths, &o, &text, &err);
    return tp_cli_print(done, text, &err);
}

const tp_usage tp_usage_trace = {
    .command = "trace",
    .arguments = "FILE... [VIEW]\ncompare BEFORE AFTER\nstats FILE... [--vs FILE...]\nexport "
                 "FILE -o OUT",
    .summary = "Where time and memory went: a PyTorch profiler trace (.json, .json.gz), an "
               "Nsight Systems export (.sqlite), a PyTorch memory snapshot, a memory timeline "
               "or a trace of Temper; several files, or a folder of them, are ranks of one "
               "job.",
    .flags = flag_table,
    .details =
        "Views: operators, kernels, memory, comm, idle, launch, queue, critical-path, "
        "bandwidth, stacks, steps, threads, ranks, roofline, suspicious, bottlenecks.\n\n"
        "'temper trace compare --help', 'temper trace stats --help' and 'temper trace export "
        "--help' list the options of these.",
    .min_words = 1,
    .max_words = -1,
    .word = tp_trace_view_name,
    .size = sizeof(flags),
    .defaults = &(const flags){.o = {.size = sizeof(tp_trace_report_options),
                                     .step = UNSET,
                                     .rank = UNSET,
                                     .stream = UNSET,
                                     .top = UNSET}},
    .wraps = true,
    .run = execute};
