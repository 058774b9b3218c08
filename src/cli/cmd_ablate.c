/* cmd_ablate.c - `temper ablate`: what each lever gives, measured. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/find_recipe.h"
#include "cli/values.h"
#include "temper/experiment.h"

typedef struct {
    bool json, no_pairs, quiet;
    const char *levers, *budget, *margin, *out, *isa;
    tp_flag_list own;
    int64_t rounds, steps, warm_up, pairs, seed;
    double timeout_s, loss_rounding;
} flags;

static const tp_flag flag_table[] = {
    TP_TEXT("levers", 0, "A,B", levers, "only these, all others as the recipe has them"),
    TP_ROW("lever", 0, "NAME:KEY=ON/OFF", LIST, own, 0, 0, "one that no table has; repeatable"),
    TP_TEXT("budget", 'b', "TIME", budget, "time for everything: 30s, 10m (default), 1h"),
    TP_NUMBER("rounds", 0, "N", INT, rounds, 1, 10000, "exactly N rounds, however long they take"),
    TP_NUMBER("steps", 0, "N", INT, steps, 1, 100000,
              "measured steps of a run (default: as many as take a second, 5 to 40)"),
    TP_NUMBER("warm-up", 0, "N", INT, warm_up, 0, 100000, "steps before those (default 2)"),
    TP_NUMBER("pairs", 0, "N", INT, pairs, 0, 10000,
              "pairs of levers to look at together (default: as the budget allows)"),
    TP_TEXT("margin", 0, "PCT", margin, "\"same\" is within this share (default 1%)"),
    TP_NUMBER("loss-rounding", 0, "X", FLOAT, loss_rounding, 1e-15, 1,
              "relative difference of a loss that is rounding (default: by policy.precision)"),
    TP_NUMBER("timeout", 0, "SECONDS", FLOAT, timeout_s, 0.001, 1e7, "of one run (default 600)"),
    TP_NUMBER("seed", 's', "N", INT, seed, 0, 1e15, "of the order of the rounds (default 1)"),
    TP_TEXT("out", 'o', "FOLDER", out, "for the evidence (default: RUN-ablate)"),
    TP_SWITCH("quiet", 'q', quiet, "neither progress nor remarks"),
    TP_SWITCH("json", 0, json, "the report as JSON"),
    TP_TEXT("isa", 0, "LEVEL", isa, "the same as engine.isa=LEVEL"),
    {0}};

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    stop_signal = number;
    tp_experiment_interrupt();
}

static void show_progress(void *user, const char *line)
{
    (void)user;
    tp_cli_erase_line(stderr);
    if (line)
        fputs(line, stderr);
}

static void note(void *user, const char *text)
{
    (void)user;
    if (tp_cli_terminal(stderr))
        tp_cli_erase_line(stderr);
    fprintf(stderr, "note: %s\n", text);
}

/* "a,b": the names, cut where they lie. */
static size_t split(char *text, const char **ret, size_t most)
{
    size_t n = 0;
    char *rest = NULL;
    for (char *w = strtok_r(text, ", ", &rest); w && n < most; w = strtok_r(NULL, ", ", &rest))
        ret[n++] = w;
    return n;
}

static int read_options(const flags *f, tp_ablate_options *o)
{
    o->common = (tp_experiment_options){.timeout_s = f->timeout_s,
                                        .steps = f->steps,
                                        .no_warm_up = f->warm_up == 0,
                                        .warm_up = f->warm_up,
                                        .has_seed = true,
                                        .seed = f->seed,
                                        .folder = f->out,
                                        .form = tp_cli_form(f->json, false, false),
                                        .width = tp_cli_width(),
                                        .note = f->quiet ? NULL : note};
    if (!f->quiet && tp_cli_terminal(stderr))
        o->common.progress = show_progress;
    o->own = f->own.items;
    o->n_own = (size_t)f->own.n;
    o->rounds = f->rounds;
    o->no_pairs = f->pairs == 0;
    o->most_pairs = f->pairs > 0 ? f->pairs : 0;
    o->loss_rounding = f->loss_rounding;
    if (f->budget && !tp_cli_time(f->budget, &o->common.budget_s))
        return tp_cli_refuse("ablate", "--budget takes a time (30s, 10m, 1h), not '%s'", f->budget);
    if (f->margin && (!tp_cli_fraction(f->margin, &o->common.margin) || !(o->common.margin > 0)))
        return tp_cli_refuse("ablate", "--margin takes a share above 0 (1%%, 0.01), not '%s'",
                             f->margin);
    return 0;
}

static int run(char **words, int n, const char *path, const tp_ablate_options *o)
{
    tp_error err = {0};
    char *text = NULL;
    tp_cli_catch(SIGINT, on_signal);
    tp_cli_catch(SIGTERM, on_signal);
    tp_status done =
        tp_ablate_run(path[0] ? path : NULL, (const char *const *)words, (size_t)n, o, &text, &err);
    int status = tp_cli_print(done, text, &err);
    return stop_signal ? TP_EXIT_SIGNAL + stop_signal : status;
}

int tp_cmd_ablate(int argc, char **argv)
{
    flags f = {.seed = 1, .warm_up = 2, .pairs = -1};
    char *given[argc + 2], **words = given, path[TP_CLI_PATH], isa[TP_CLI_SETTING];
    const char *names[TP_FLAG_MOST];
    tp_error err = {0};
    const tp_usage usage = {
        .command = "ablate",
        .arguments = "CONFIG [KEY=VALUE...]",
        .summary = "Measure what each lever gives: the recipe with all levers on, without each "
                   "one, and with none.",
        .flags = flag_table,
        .details =
            "Short runs take turns in random order; what is compared are runs of the same round.  "
            "The folder of the evidence has report.json, report.md, effects.svg and every raw "
            "sample; the recipe's own run folder is not touched.  Ctrl-C ends with what is there.",
        .min_words = 1,
        .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : TP_EXIT_INPUT;
    tp_ablate_options o = {.size = sizeof o, .levers = names};
    int status = read_options(&f, &o);
    if (status)
        return status;
    char *list = f.levers ? strdup(f.levers) : NULL;
    o.n_levers = list ? split(list, names, TP_FLAG_MOST) : 0;
    n = tp_cli_add_setting(words, n, "engine.isa", f.isa, isa);
    if (list && o.n_levers == 0)
        status = tp_cli_refuse("ablate", "--levers takes names, separated by commas");
    else if (tp_cli_find_recipe(&words, &n, path, &err) != TP_OK)
        status = tp_cli_fail(&err);
    else
        status = run(words, n, path, &o);
    free(list);
    return status;
}
