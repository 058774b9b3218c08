/* cmd_stats.c - `temper stats`: what numbers say, and how surely. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "temper/stats.h"

typedef struct {
    tp_stats_options o;
    bool json, lower, higher, time;
    double effect, n;
    int64_t sides;
    const char *share;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "everything, as JSON"),
    TP_SWITCH("paired", 0, o.paired, "rows are pairs: same seed, same prompt, same round"),
    TP_SWITCH("trend", 0, o.trend, "the column is a series: trend, change points, decay"),
    TP_TEXT("by", 0, "COLUMN", o.by, "groups are the words of this column"),
    TP_TEXT("at", 0, "COLUMN", o.at,
            "with --trend: the places of the values (default 0, 1, 2, ...)"),
    TP_NUMBER("alpha", 0, "A", FLOAT, o.alpha, 1e-9, 0.5,
              "error allowed; intervals have level 1 - A (default 0.05)"),
    TP_SWITCH("equal-var", 0, o.equal_variances, "Student's t instead of Welch's"),
    TP_SWITCH("lower-is-better", 0, lower, "say better and worse"),
    TP_SWITCH("higher-is-better", 0, higher, "the same, the other way round"),
    TP_SWITCH("time", 0, time, "the values are times: say slower and faster"),
    TP_SHARE("margin", o.margin,
             "also test that the difference is within this share of the first column's mean"),
    TP_NUMBER("resamples", 0, "N", INT, o.resamples, 100, 10000000,
              "of bootstraps (default 9999, fewer of many values)"),
    TP_NUMBER("seed", 's', "N", INT, o.seed, 0, 9e15, "of all that is random (default 1)"),
    TP_TEXT("share", 0, "X/N[,X/N]", share, "successes of trials, one share or two; no file"),
    TP_NUMBER("effect", 0, "D", FLOAT, effect, 1e-9, 1e9,
              "plan: difference divided by the standard deviation"),
    TP_NUMBER("n", 0, "N", FLOAT, n, 2, 1e12, "plan: values per group, or pairs with --paired"),
    TP_NUMBER("power", 0, "P", FLOAT, o.power, 0.001, 0.999999,
              "chance to show an effect, of a plan or of what a file calls detectable (default 0.8 "
              "where it is not asked for)"),
    TP_NUMBER("sides", 0, "S", INT, sides, 1, 2, "plan: 1 or 2 (default)"),
    {0}};

static void show_computing(void *user, const char *what)
{
    static char text[80];
    (void)user;
    tp_waiting_end();
    snprintf(text, sizeof text, "temper stats: %s", what ? what : "");
    if (what)
        tp_waiting_begin(text);
}

static tp_stats_options options_of(const flags *f)
{
    tp_stats_options o = f->o;
    o.words = f->time     ? TP_WORDS_TIME
              : f->lower  ? TP_WORDS_LOWER
              : f->higher ? TP_WORDS_HIGHER
                          : TP_WORDS_PLAIN;
    o.form = tp_cli_form(f->json, false, false);
    o.bold = tp_cli_colour(stdout);
    o.width = tp_cli_width();
    o.computing = show_computing;
    return o;
}

static bool read_count(const char **at, int64_t *ret)
{
    char *end;
    errno = 0;
    *ret = strtoll(*at, &end, 10);
    bool is_read = end != *at && errno == 0;
    *at = end;
    return is_read;
}

/* "56/70,48/80"; their number, 0 when it is none. */
static size_t read_shares(const char *at, int64_t x[2], int64_t n[2])
{
    size_t k = 0;
    do {
        if (!read_count(&at, &x[k]) || *at++ != '/' || !read_count(&at, &n[k]))
            return 0;
        k++;
    } while (k < 2 && *at == ',' && at++);
    return *at ? 0 : k;
}

/* What was given and would be ignored, in words; NULL: nothing. */
static const char *misplaced(const flags *f, bool is_about_columns, bool plans)
{
    if (f->time + f->lower + f->higher > 1)
        return "give one of --time, --lower-is-better and --higher-is-better";
    if ((f->o.by != NULL) + f->o.trend + f->o.paired > 1)
        return "give one of --paired, --by and --trend";
    if (f->o.at && !f->o.trend)
        return "--at names the places of a series: give it with --trend";
    if (f->o.power > 0 && f->share)
        return "--power is for a plan or a file";
    if (f->sides && !plans)
        return "--sides is for a plan: give it with two of --effect, --n and --power";
    bool for_columns = f->o.by || f->o.trend || (f->o.paired && !plans) || f->o.equal_variances ||
                       f->o.margin > 0 || f->o.resamples || f->time || f->lower || f->higher;
    if (for_columns && !is_about_columns)
        return "--share and a plan read no file: leave out what is about its columns";
    return NULL;
}

static double if_given(double v) { return v > 0 ? v : (double)NAN; }

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    char *text = NULL;
    int64_t x[2], of[2];
    tp_error err = {0};
    tp_status status;
    bool plans = f->effect > 0 || f->n > 0 || (f->o.power > 0 && n == 0 && !f->share);
    if ((n > 0) + (f->share != NULL) + plans != 1) {
        fprintf(stderr, "temper stats: give a file, --share, or two of --effect, --n and --power; "
                        "see 'temper help stats'\n");
        return 2;
    }
    const char *slip = misplaced(f, n > 0, plans);
    if (slip)
        return tp_cli_refuse("stats", "%s", slip);
    const tp_stats_options o = options_of(f);
    if (f->share) {
        size_t k = read_shares(f->share, x, of);
        if (k == 0)
            return tp_cli_refuse("stats",
                                 "--share takes successes/trials, as 56/70 or 56/70,48/80, not "
                                 "'%.60s'",
                                 f->share);
        status = tp_stats_shares(x, of, k, &o, &text, &err);
    } else if (plans) {
        status = tp_stats_plan_samples(if_given(f->effect), if_given(f->n), if_given(f->o.power),
                                       f->sides ? (int)f->sides : 2, &o, &text, &err);
    } else {
        tp_waiting_begin("temper stats: reading");
        status = tp_stats_columns(words[0], (const char *const *)words + 1, (size_t)n - 1, &o,
                                  &text, &err);
    }
    return tp_cli_print(status, text, &err);
}

const tp_usage tp_usage_stats = {
    .command = "stats",
    .arguments = "[FILE|- [COLUMN...]]",
    .summary = "What numbers say and how sure it is: intervals, comparisons, groups, shares, "
               "trends, change points, sample sizes.",
    .flags = flag_table,
    .details = "FILE holds columns (CSV, tabs, spaces; with or without a line of names), JSON, or "
               "one JSON object per line; '-' is standard input, a folder that of a run, whoever "
               "recorded it.  "
               "One column is described; of two "
               "the second is judged against the first; more are groups; of JSON records, as "
               "metrics.jsonl, the columns are listed unless some are named.  --share and the plan "
               "(two of --effect, --n, --power) need no file.\n\n"
               "  temper stats times.csv old new --paired --time\n"
               "  temper stats scores.csv score --by model\n"
               "  temper stats runs/first/metrics.jsonl train/loss --trend\n"
               "  temper stats --share 56/70,48/80\n"
               "  temper stats --effect 0.5",
    .max_words = -1,
    .size = sizeof(flags),
    .defaults =
        &(const flags){
            .o = {.size = sizeof(tp_stats_options), .alpha = 0.05, .has_seed = true, .seed = 1}},
    .wraps = true,
    .run = execute};
