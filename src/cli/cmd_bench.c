/* cmd_bench.c - `temper bench`: words become a suite, a baseline and a gate. */
#include <signal.h>
#include <string.h>

#include "cli/commands.h"
#include "temper/bench.h"

typedef struct {
    tp_bench_options o; /* as given; NULL, 0 or NaN when not */
    bool list, formats;
    const char *budget, *tolerance, *exact_tolerance, *width, *rule;
    const char *benchmark_compare, *command, *vs;
} flags;

/* Words around --vs. */
typedef struct {
    char **a, **b;
    int n_a, n_b;
} two_commands;

static const tp_flag flag_table[] = {
    TP_SWITCH("list", 'l', list, "name the benchmarks that match and do nothing"),
    TP_SWITCH("json", 0, o.json, "the results as JSON (temper-bench-1), raw samples included"),
    TP_SWITCH("verbose", 'v', o.verbose, "every metric, every statistic"),
    TP_TEXT("budget", 'b', "TIME", budget, "time for everything: 30s, 5m, 1h"),
    TP_NUMBER("rounds", 0, "N", INT, o.rounds, 2, 100000,
              "exactly N rounds (even when comparing) instead of as many as needed"),
    TP_NUMBER("max-rounds", 0, "N", INT, o.max_rounds, 2, 100000, "at most N rounds"),
    TP_TEXT("width", 0, "PCT", width,
            "alone: stop when the 95 % interval is this narrow (default 1%)"),
    TP_TEXT("against", 'a', "REV|BINARY", o.against,
            "compare with another version, interleaved: a git revision (built first) or a "
            "program"),
    TP_SWITCH("aa", 0, o.aa, "compare this version with itself: what the gate makes of nothing"),
    TP_TEXT("baseline", 0, "FILE", o.baseline,
            "compare with stored levels (baselines.json) or any results file"),
    TP_SWITCH("update-baseline", 0, o.update_baseline, "store what was measured as the baseline"),
    TP_CHOICE("rule", 0, "NAME", rule, "interval point",
              "interval (default), or point: the plain tolerance rule decides"),
    TP_TEXT("tolerance", 0, "PCT", tolerance, "how much worse is allowed (default 5%)"),
    TP_TEXT("exact-tolerance", 0, "PCT", exact_tolerance,
            "the same for exact figures: bytes, counts (default 0%)"),
    TP_NUMBER("alpha", 0, "P", FLOAT, o.alpha, 1e-6, 0.4,
              "chance of any false alarm over the suite (default 0.05)"),
    TP_SWITCH("strict", 0, o.strict, "inconclusive and missing fail too"),
    TP_SWITCH("allow-missing", 0, o.allow_missing,
              "benchmarks without a baseline and baselines without a benchmark do not fail"),
    TP_TEXT("name", 0, "NAME", o.name, "measure one benchmark of that name, made of the options"),
    TP_CHOICE("kind", 0, "KIND", o.kind, "train grpo generate tokenize kernel trace",
              "of --name: train (default), grpo, generate, tokenize, kernel, trace"),
    TP_TEXT("model", 0, "MODEL", o.model,
            "llama, qwen2, qwen3, gpt2 (-small: larger), a folder or a config.json"),
    TP_NUMBER("batch-size", 0, "N", INT, o.batch_size, 1, 1 << 20,
              "sequences per step (default 4)"),
    TP_NUMBER("sequence-length", 0, "N", INT, o.sequence_length, 2, 1 << 24,
              "tokens per sequence (default 512)"),
    TP_NUMBER("steps", 0, "N", INT, o.steps, 1, 1 << 24, "steps per round (default 10)"),
    TP_NUMBER("warm-up", 0, "N", INT, o.warm_up, 0, 1 << 24, "steps before the first (default 2)"),
    TP_CHOICE("precision", 0, "P", o.precision, "float32 bfloat16", "float32 or bfloat16"),
    TP_CHOICE("backend", 0, "NAME", o.backend, "cpu ref", "cpu (default) or ref"),
    TP_CHOICE("device", 0, "NAME", o.device, "cpu", "cpu"),
    TP_NUMBER("threads", 0, "N", INT, o.threads, 1, 4096, "default: one per processor"),
    TP_TEXT("cmd", 0, "COMMAND", command, "side A of a comparison of two commands"),
    TP_TEXT("vs", 0, "COMMAND", vs, "side B; words around --vs are taken as the two commands"),
    TP_SWITCH("ignore-failure", 0, o.ignore_failure, "commands may return something else than 0"),
    TP_SWITCH("keep-disturbed", 0, o.keep_disturbed,
              "count rounds during steal, storms of context switches and throttling too"),
    TP_SWITCH("instructions", 0, o.instructions, "count the commands' instructions (valgrind)"),
    TP_NUMBER("timeout", 0, "SECONDS", FLOAT, o.timeout_s, 0.001, 1e7, "of one run (default 600)"),
    TP_NUMBER("fresh", 0, "N", INT, o.fresh, 0, 100000,
              "start the measured programs anew every N rounds (default 2; 0: never)"),
    TP_NUMBER("seed", 's', "N", INT, o.seed, 0, 1e15, "of the order of the rounds (default 1)"),
    TP_TEXT("cases", 0, "PATH", o.cases,
            "more benchmarks: a YAML file or a folder (default: bench/cases, where there is one)"),
    TP_TEXT("save", 0, "FORMAT:FILE,...", o.save, "write the results; --formats lists the formats"),
    TP_SWITCH("formats", 0, formats, "list the formats that are written and read"),
    TP_TEXT("benchmark-json", 0, "FILE", o.benchmark_json,
            "the same as --save pytest-benchmark:FILE"),
    TP_TEXT("benchmark-compare", 0, "FILE", benchmark_compare, "the same as --baseline FILE"),
    TP_TEXT("history", 0, "FILE", o.history, "where results are kept over time"),
    TP_SWITCH("no-history", 0, o.no_history, "do not keep them"),
    {0}};

/* ---- the words around --vs ---- */

static const tp_flag *flag_of(const char *word)
{
    if (strncmp(word, "--", 2) != 0)
        return NULL;
    for (const tp_flag *f = flag_table; f->name; f++) {
        size_t n = strlen(f->name);
        if (strncmp(word + 2, f->name, n) == 0 && (word[n + 2] == 0 || word[n + 2] == '='))
            return f;
    }
    const tp_flag *color = tp_cli_color_flag();
    size_t n = strlen(color->name);
    bool is_color = strncmp(word + 2, color->name, n) == 0 && (!word[n + 2] || word[n + 2] == '=');
    return is_color ? color : NULL;
}

/* "-b": a letter of ours whose value is the next word. */
static const tp_flag *letter_of(const char *word)
{
    for (const tp_flag *f = flag_table; f->name; f++)
        if (f->letter && word[0] == '-' && word[1] == f->letter && !word[2])
            return f;
    return NULL;
}

/* "CMD a" and "cmd a" name the command a. */
static char **drop_introducer(char **words, int *n)
{
    bool is_word = *n > 1 && (strcmp(words[0], "CMD") == 0 || strcmp(words[0], "cmd") == 0);
    *n -= is_word;
    return words + is_word;
}

/* A command given as one quoted line has no further words: what follows it is for us. */
static bool is_complete(char *const *words, int n)
{
    return n > 0 && strpbrk(words[0], " \t") != NULL;
}

/* Take the words of the two commands out of argv: those before --vs and those behind it,
 * each up to a long option of ours, or any once it is complete.  What is left is parsed as usual.
 */
static int take_commands(int argc, char **argv, two_commands *c, char **rest)
{
    int n_rest = 0;
    bool behind = false;
    rest[n_rest++] = argv[0];
    for (int i = 1; i < argc; i++) {
        const tp_flag *flag = flag_of(argv[i]);
        if (strcmp(argv[i], "--vs") == 0) {
            behind = true;
            continue;
        }
        bool done = behind ? is_complete(c->b, c->n_b) : c->n_a == 0 || is_complete(c->a, c->n_a);
        if (!flag && done)
            flag = letter_of(argv[i]);
        if (flag || (argv[i][0] == '-' && done)) {
            rest[n_rest++] = argv[i];
            if (flag && flag->argument && !strchr(argv[i], '=') && i + 1 < argc)
                rest[n_rest++] = argv[++i];
        } else if (behind)
            c->b[c->n_b++] = argv[i];
        else
            c->a[c->n_a++] = argv[i];
    }
    return n_rest;
}

static bool has_vs(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--vs") == 0)
            return true;
    }
    return false;
}

/* ---- values ---- */

static int resolve(const flags *f, tp_bench_options *o)
{
    o->has_tolerance = f->tolerance != NULL;
    if (f->tolerance && !tp_cli_fraction(f->tolerance, &o->tolerance))
        return tp_cli_refuse(
            "bench", "--tolerance is a share such as 5%% or 0.05, below 1; not '%s'", f->tolerance);
    if (f->exact_tolerance && !tp_cli_fraction(f->exact_tolerance, &o->exact_tolerance))
        return tp_cli_refuse("bench", "--exact-tolerance is a share such as 1%% or 0.01; not '%s'",
                             f->exact_tolerance);
    if (f->width && (!tp_cli_fraction(f->width, &o->interval_width) || o->interval_width == 0))
        return tp_cli_refuse("bench", "--width is a share such as 1%% or 0.01; not '%s'", f->width);
    if (f->budget && !tp_cli_time(f->budget, &o->budget_s))
        return tp_cli_refuse("bench", "--budget is a time such as 30s, 5m or 1h; not '%s'",
                             f->budget);
    if (f->rule && strcmp(f->rule, "interval") != 0 && strcmp(f->rule, "point") != 0)
        return tp_cli_refuse("bench", "--rule is interval or point, not '%s'", f->rule);
    if (f->benchmark_compare && f->o.baseline)
        return tp_cli_refuse("bench", "--baseline and --benchmark-compare say the same: give one");
    return 0;
}

/* ---- what a command would ignore ---- */

enum { SUITE = 1, COMMANDS = 2, FILES = 4 };

/* What measures a suite, two commands, or compares two files; a flag that is not here is for a
 * suite. */
static const struct {
    const char *names;
    int modes;
} used[] = {
    {"json verbose rule tolerance exact-tolerance alpha strict allow-missing save benchmark-json "
     "no-history ignore-failure",
     SUITE | COMMANDS | FILES},
    {"budget rounds max-rounds keep-disturbed seed timeout name", SUITE | COMMANDS},
    {"cmd vs instructions", COMMANDS},
};

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (!at[n] || at[n] == ' '))
            return true;
    return false;
}

static int modes_of(const char *name)
{
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        if (has_word(used[i].names, name))
            return used[i].modes;
    return SUITE;
}

static const flags defaults = {.o = {.size = sizeof defaults.o,
                                     .alpha = 0.05,
                                     .timeout_s = 600,
                                     .fresh = 2,
                                     .has_seed = true,
                                     .seed = 1,
                                     .warm_up = -1}};

static bool is_given(const flags *f, const tp_flag *flag)
{
    size_t n = flag->type == TP_FLAG_BOOL     ? sizeof(bool)
               : flag->type == TP_FLAG_STRING ? sizeof(char *)
                                              : sizeof(int64_t);
    return memcmp((const char *)f + flag->offset, (const char *)&defaults + flag->offset, n) != 0;
}

static int refuse_unused(const flags *f, int mode, int n_words)
{
    for (const tp_flag *flag = flag_table; flag->name; flag++)
        if (is_given(f, flag) && !(modes_of(flag->name) & mode))
            return tp_cli_refuse("bench", "--%s does nothing where %s: leave it out", flag->name,
                                 mode == SUITE      ? "benchmarks are measured"
                                 : mode == COMMANDS ? "two commands are compared"
                                                    : "two files are compared");
    if (mode != SUITE)
        return 0;
    if (f->width && (f->o.against || f->o.aa))
        return tp_cli_refuse("bench", "--width is for measuring alone: a comparison ends when it "
                                      "is decided; leave it out");
    if (f->o.name && n_words)
        return tp_cli_refuse("bench", "--name measures one benchmark made of the options: leave "
                                      "out the patterns");
    if (f->o.kind && !f->o.name && (n_words || !f->o.model))
        return tp_cli_refuse("bench", "--kind is for a benchmark made of the options: give it "
                                      "with --name");
    return 0;
}

/* ---- what is said ---- */

static void print(void *user, const char *text)
{
    (void)user;
    if (*text != '{')
        tp_cli_wrap();
    fputs(text, stdout);
    tp_terminal_wrap(0);
}

static void draw(void *user, const char *line)
{
    (void)user;
    tp_waiting_say(line);
}

static tp_bench_options options_of(const flags *f)
{
    tp_bench_options o = f->o;
    o.print = print;
    o.progress = draw;
    o.note = tp_cli_note;
    o.colour = !o.json && tp_cli_colour(stdout);
    o.width = tp_cli_width();
    o.fresh = o.fresh ? o.fresh : -1;
    o.baseline = o.baseline ? o.baseline : f->benchmark_compare;
    o.by_point = f->rule && strcmp(f->rule, "point") == 0;
    o.has_warm_up = o.warm_up >= 0;
    return o;
}

/* ---- what is asked for ---- */

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    tp_bench_interrupt();
}

static void catch_signals(void)
{
    tp_cli_catch(SIGINT, on_interrupt);
    tp_cli_catch(SIGTERM, on_interrupt);
}

/* The words of a side: the value of --cmd or --vs first, then what stood around --vs. */
static int gather(const char *first, char **words, int n, const char **out)
{
    int count = 0;
    words = drop_introducer(words, &n);
    if (first)
        out[count++] = first;
    for (int i = 0; i < n; i++)
        out[count++] = words[i];
    return count;
}

static int end(tp_status status, int result, const tp_error *err)
{
    tp_waiting_end();
    if (status == TP_OK)
        return result;
    int failed = tp_cli_fail(err);
    return result == TP_EXIT_UNMEASURED ? result : failed;
}

static int run_commands(const flags *f, const two_commands *c, const tp_bench_options *o)
{
    tp_error err = {0};
    const char *a[c->n_a + 2], *b[c->n_b + 2];
    int n_a = gather(f->command, c->a, c->n_a, a), n_b = gather(f->vs, c->b, c->n_b, b), result;
    if (n_a == 0 || n_b == 0)
        return tp_cli_refuse("bench", "two commands are needed: temper bench 'A' --vs 'B'");
    catch_signals();
    tp_waiting_begin("temper bench: getting ready");
    tp_status status = tp_bench_commands(a, (size_t)n_a, b, (size_t)n_b, o, &result, &err);
    return end(status, result, &err);
}

static int run_suite(char **words, int n, const tp_bench_options *o)
{
    tp_error err = {0};
    int result;
    catch_signals();
    tp_waiting_begin("temper bench: getting ready");
    tp_status status = tp_bench_run((const char *const *)words, (size_t)n, o, &result, &err);
    return end(status, result, &err);
}

static int compare_files(char **words, int n, const tp_bench_options *o)
{
    tp_error err = {0};
    int result;
    if (n != 2)
        return tp_cli_refuse("bench", "expected compare OLD NEW, two results files");
    tp_status status = tp_bench_compare(words[0], words[1], o, &result, &err);
    return end(status, result, &err);
}

static int print_formats(void)
{
    tp_cli_wrap();
    return tp_cli_print(TP_OK, tp_bench_format_table(), NULL);
}

static int list(char **words, int n, const tp_bench_options *o)
{
    tp_error err = {0};
    char *text = NULL;
    if (!o->json)
        tp_cli_wrap();
    tp_status status = tp_bench_list((const char *const *)words, (size_t)n, o, &text, &err);
    return tp_cli_print(status, text, &err);
}

static int start(int argc, char **argv)
{
    flags f = defaults;
    char *words[argc + 1], *a[argc + 1], *b[argc + 1], *rest[argc + 1];
    two_commands commands = {.a = a, .b = b};
    tp_error err = {0};
    if (argc == 2 && strcmp(argv[1], "worker") == 0)
        return tp_cli_print(tp_bench_serve(&err), NULL, &err);
    bool is_vs = has_vs(argc, argv);
    if (is_vs) {
        argc = take_commands(argc, argv, &commands, rest);
        rest[argc] = NULL;
        argv = rest;
    }
    int n = tp_cli_parse(&tp_usage_bench, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : TP_EXIT_INPUT;
    tp_bench_options o = options_of(&f);
    int status = resolve(&f, &o);
    if (status)
        return status;
    if (f.formats)
        return print_formats();
    int mode = is_vs || f.vs || f.command                  ? COMMANDS
               : n > 0 && strcmp(words[0], "compare") == 0 ? FILES
                                                           : SUITE;
    status = refuse_unused(&f, mode, n);
    if (status)
        return status;
    if (mode == COMMANDS)
        return run_commands(&f, &commands, &o);
    if (mode == FILES)
        return compare_files(words + 1, n - 1, &o);
    return f.list ? list(words, n, &o) : run_suite(words, n, &o);
}

const tp_usage tp_usage_bench = {
    .command = "bench",
    .arguments = "[PATTERN...]",
    .summary =
        "Measure speed and memory of training, generation, data, traces and kernels; compare "
        "versions; fail when something got worse.",
    .flags = flag_table,
    .details =
        "temper bench                              everything\n"
        "temper bench train/llama --budget 1m      what matches\n"
        "temper bench --against v0.1.0             this version against another\n"
        "temper bench --baseline baselines.json    against stored levels of this host\n"
        "temper bench 'cmd a' --vs 'cmd b'         any two commands: time and memory\n"
        "temper bench compare OLD NEW              two results files, of any tool\n"
        "temper bench history [PATTERN]            what was measured over time\n\n"
        "Exit status: 0 nothing is worse; 1 a regression, or something is missing; 2 usage or "
        "input, or no benchmark matched; 3 a measurement failed; 4 output could not be written.",
    .min_words = 0,
    .max_words = -1,
    .start = start};
