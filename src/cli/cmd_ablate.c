/* cmd_ablate.c - `temper ablate`: what each lever gives, measured. */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/study.h"

typedef struct {
    tp_study_flags common;
    const char *levers;
    tp_flag_list own;
    int64_t rounds, pairs;
    double loss_rounding;
} flags;

static const tp_flag flag_table[] = {
    TP_TEXT("levers", 0, "A,B", levers, "only these, all others as the recipe has them"),
    TP_LIST("lever", 0, "NAME:KEY=ON/OFF", own, "one that no table has; repeatable"),
    TP_NUMBER("rounds", 0, "N", INT, rounds, 1, 10000, "exactly N rounds, however long they take"),
    TP_NUMBER("pairs", 0, "N", INT, pairs, 0, 10000,
              "pairs of levers to look at together (default: as the budget allows, "
              "3 with --rounds alone)"),
    TP_NUMBER("loss-rounding", 0, "X", FLOAT, loss_rounding, 1e-15, 1,
              "relative difference of a loss that is rounding (default: by policy.precision)"),
    TP_STUDY_FLAGS("RUN-ablate"),
    {0}};

/* "a,b": the names, cut where they lie. */
static size_t split(char *text, const char **ret, size_t most)
{
    size_t n = 0;
    char *rest = NULL;
    for (char *w = strtok_r(text, ", ", &rest); w && n < most; w = strtok_r(NULL, ", ", &rest))
        ret[n++] = w;
    return n;
}

static int run(const flags *f, char *list, char **words, int n, const char *path)
{
    const char *names[TP_FLAG_MOST];
    tp_error err = {0};
    char *text = NULL;
    tp_ablate_options o = {.size = sizeof o,
                           .levers = names,
                           .n_levers = list ? split(list, names, TP_FLAG_MOST) : 0,
                           .own = f->own.items,
                           .n_own = (size_t)f->own.n,
                           .rounds = f->rounds,
                           .no_pairs = f->pairs == 0,
                           .most_pairs = f->pairs > 0 ? f->pairs : 0,
                           .loss_rounding = f->loss_rounding};
    int status = tp_study_options("ablate", &f->common, &o.common);
    if (status)
        return status;
    if (list && o.n_levers == 0)
        return tp_cli_refuse("ablate", "--levers takes names, separated by commas");
    tp_study_catch_signals();
    tp_status done = tp_ablate_run(path[0] ? path : NULL, (const char *const *)words, (size_t)n, &o,
                                   &text, &err);
    return tp_study_finish(done, text, &err);
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    char path[TP_CLI_PATH], isa[TP_CLI_SETTING];
    tp_error err = {0};
    n = tp_cli_add_setting(words, n, "engine.isa", f->common.isa, isa);
    if (tp_cli_find_recipe(&words, &n, path, &err) != TP_OK)
        return tp_cli_fail(&err);
    char *list = f->levers ? strdup(f->levers) : NULL;
    int status = run(f, list, words, n, path);
    free(list);
    return status;
}

const tp_usage tp_usage_ablate = {
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
    .max_words = -1,
    .wraps = true,
    .size = sizeof(flags),
    .defaults = &(const flags){.common = TP_STUDY_DEFAULTS, .pairs = -1},
    .run = execute};
