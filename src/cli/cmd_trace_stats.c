/* cmd_trace_stats.c - `temper trace stats`: several recordings of the same work, or two groups. */
#include <string.h>

#include "cli/commands.h"
#include "temper/trace_report.h"

typedef struct {
    tp_trace_report_options o;
    bool json, csv, markdown, vs;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("vs", 0, vs, "the files behind it are a second group, judged against the first"),
    TP_SWITCH("per-step", 0, o.per_step,
              "only work of steps, times and counts divided by their number"),
    TP_SWITCH("json", 0, json, "as JSON: with the values of every file"),
    TP_SWITCH("csv", 0, csv, "all tables as comma-separated values"),
    TP_SWITCH("markdown", 0, markdown, "as Markdown"),
    TP_CHOICE("scope", 0, "SCOPE", o.scope, "all linked steps",
              "which device work counts: all (default), linked, steps"),
    TP_TEXT("name", 0, "PATTERN", o.name, "only device work whose name contains this"),
    TP_NUMBER("top", 0, "N", INT, o.top, 0, 1e9, "rows of a table (default 10; 0: all)"),
    {0}};

static int start(int argc, char **argv)
{
    flags f = {.o = {.size = sizeof f.o, .top = 10}};
    char *words[argc + 1], *arguments[argc + 1], *text = NULL;
    char separator[] = " ";
    bool worse = false;
    tp_error err = {0};
    /* `--vs` stands between words: it travels through the parser as one that no file has. */
    int n_separators = 0;
    for (int i = 0; i < argc; i++) {
        bool is_separator = i > 0 && strcmp(argv[i], "--vs") == 0;
        n_separators += is_separator;
        arguments[i] = is_separator ? separator : argv[i];
    }
    arguments[argc] = NULL;
    int n = tp_cli_parse(&tp_usage_trace_stats, argc, arguments, &f, words), n_first = 0;
    if (n < 0)
        return n == -2 ? 0 : 2;
    if (!f.json && !f.csv && !f.markdown)
        tp_cli_wrap();
    if (f.csv)
        tp_terminal_pass_data();
    if (f.vs) {
        fprintf(stderr, "temper trace stats: write --vs out, as a word between the files\n");
        return 2;
    }
    if (n_separators == 0) {
        n_first = n;
    } else {
        while (n_first < n && words[n_first] != separator)
            n_first++;
        n--;
        for (int i = n_first; i < n; i++)
            words[i] = words[i + 1];
    }
    if (n_separators > 1 || n_first == 0 || (n_separators && n_first == n)) {
        fprintf(stderr, "temper trace stats: expected FILE... --vs FILE..., with files on both "
                        "sides of one --vs\n");
        return 2;
    }
    if (f.json + f.csv + f.markdown > 1)
        return tp_cli_refuse("trace stats", "one of --json, --csv and --markdown");
    f.o.form = tp_cli_form(f.json, f.csv, f.markdown);
    f.o.top = f.o.top ? f.o.top : -1;
    f.o.width = tp_cli_width();
    f.o.worse = &worse;
    const char *const *paths = (const char *const *)words;
    tp_waiting_begin("temper trace stats: reading and adding up");
    tp_status status = tp_trace_report_repeats(paths, (size_t)n_first, paths + n_first,
                                               (size_t)(n - n_first), &f.o, &text, &err);
    return tp_cli_verdict(tp_cli_print(status, text, &err), worse);
}

const tp_usage tp_usage_trace_stats = {
    .command = "trace stats",
    .arguments = "FILE...\nFILE... --vs FILE...",
    .summary = "Several recordings of the same work: every figure with its mean, spread and "
               "95 % interval over files; or two groups of them, compared.",
    .flags = flag_table,
    .details = "A folder stands for the traces in it, the folder of a run too; '-' is standard "
               "input.\n"
               "The unit is the file: n is the number of recordings, not of steps.\n"
               "Verdicts: better, worse, same (within 1 %), not shown; they take 4 files a "
               "side.  Exit status 1 when that of the first line is worse.",
    .min_words = 1,
    .max_words = -1,
    .start = start};
