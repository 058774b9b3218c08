/* cmd_compare.c - `temper compare`: two runs, or two groups of seeds, metric by metric. */
#include <glob.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/runs.h"
#include "temper/analysis.h"
#include "temper/bench.h"
#include "temper/evaluate.h"
#include "temper/profile.h"
#include "temper/trace_report.h"

typedef struct {
    bool json;
    const char *a, *b, *align, *picture;
    tp_flag_list metrics;
    double margin;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json,
              "{\"metrics\": [{\"name\", \"effect\", \"ci95\", \"p_adjusted\", \"verdict\"}]}"),
    TP_TEXT("a", 0, "PATTERN", a, "runs of side A, as 'runs/a-*': seeds of one setting"),
    TP_TEXT("b", 0, "PATTERN", b, "runs of side B"),
    TP_SHARE("margin", margin, "\"same\" is within this share of A's mean (default 1%)"),
    TP_CHOICE("align", 0, "AXIS", align, "steps tokens time",
              "set values side by side at the same steps (default), tokens or time"),
    TP_TEXT("picture", 0, "FILE", picture,
            "draw the curves of both sides (.svg, .png, .pdf): the mean of several runs, with its "
            "95 % interval"),
    TP_LIST("metric", 0, "PATTERN", metrics,
            "draw this one; may be given several times (default: the first twelve)"),
    {0}};

enum { MOST_RUNS = 200 };

typedef struct {
    tp_metrics *runs[MOST_RUNS];
    size_t n;
} group;

static tp_status open_one(group *g, const char *path, tp_error *err)
{
    return tp_runs_open(g->runs, &g->n, MOST_RUNS, path, err);
}

static tp_status open_found(group *g, const glob_t *found, tp_error *err)
{
    tp_status status = TP_OK;
    for (size_t i = 0; i < found->gl_pathc && status == TP_OK; i++)
        status = open_one(g, found->gl_pathv[i], err);
    return status;
}

static void close_group(group *g)
{
    for (size_t i = 0; i < g->n; i++)
        tp_metrics_close(g->runs[i]);
}

static void print_text(const tp_run_comparison *c, const group *a, const group *b)
{
    char *text = tp_run_comparison_text(c, tp_cli_width());
    printf("A: %s%s\nB: %s%s\n\n%s", tp_metrics_name(a->runs[0]), a->n > 1 ? ", ..." : "",
           tp_metrics_name(b->runs[0]), b->n > 1 ? ", ..." : "", text);
    if (a->n == 1 && b->n == 1)
        puts("\nn: steps in common; intervals are of these two runs, another seed may differ "
             "(--a, --b)");
    tp_free(text);
}

static bool is_worse(const tp_run_comparison *c)
{
    for (size_t i = 0; i < tp_run_comparison_count(c); i++)
        if (strcmp(tp_run_comparison_metric(c, i)->verdict, "worse") == 0)
            return true;
    return false;
}

/* -1: there is no such axis. */
static int align_of(const char *word)
{
    static const char *const words[] = {"steps", "tokens", "time"};
    for (int i = 0; word && i < 3; i++)
        if (strcmp(word, words[i]) == 0)
            return i;
    return word ? -1 : TP_ALIGN_STEPS;
}

static void print_bench(void *user, const char *text)
{
    (void)user;
    fputs(text, stdout);
}

static int compare_benchmarks(const flags *f, char **words)
{
    tp_error err = {0};
    int result = 0;
    const tp_bench_options options = {.size = sizeof options,
                                      .print = print_bench,
                                      .note = tp_cli_note,
                                      .json = f->json,
                                      .width = tp_cli_width(),
                                      .no_history = true};
    tp_status status = tp_bench_compare(words[0], words[1], &options, &result, &err);
    return status == TP_OK ? result : tp_cli_fail(&err);
}

static tp_status compare_traces(const flags *f, char **words, bool *worse, char **ret,
                                tp_error *err)
{
    const tp_trace_report_options options = {.size = sizeof options,
                                             .form = tp_cli_form(f->json, false, false),
                                             .top = 10,
                                             .width = tp_cli_width(),
                                             .worse = worse};
    return tp_trace_report_compare(words[0], words[1], &options, ret, err);
}

static tp_status compare_profiles(const flags *f, char **words, bool *worse, char **ret,
                                  tp_error *err)
{
    const tp_profile_compare_options options = {.size = sizeof options,
                                                .form = tp_cli_form(f->json, false, false),
                                                .width = tp_cli_width(),
                                                .worse = worse};
    return tp_profile_files_compare(words[0], words[1], &options, ret, err);
}

static tp_status compare_evaluations(const flags *f, char **words, bool *worse, char **ret,
                                     tp_error *err)
{
    size_t n;
    const tp_evaluation_file_options options = {
        .size = sizeof options, .json = f->json, .worse = worse};
    return tp_evaluation_compare(words[0], words[1], &options, ret, &n, err);
}

/* Two that are no runs; the same words for verdicts. */
static int compare_others(const flags *f, tp_result_kind kind, char **words)
{
    char *text = NULL;
    bool worse = false;
    tp_error err = {0};
    if (kind == TP_RESULT_BENCHMARK)
        return compare_benchmarks(f, words);
    tp_waiting_begin("temper compare: reading and judging");
    tp_status status = kind == TP_RESULT_TRACE ? compare_traces(f, words, &worse, &text, &err)
                       : kind == TP_RESULT_PROFILE
                           ? compare_profiles(f, words, &worse, &text, &err)
                           : compare_evaluations(f, words, &worse, &text, &err);
    return tp_cli_verdict(tp_cli_print(status, text, &err), worse);
}

/* The exit status, or -1 after a failure. */
static int compare(const flags *f, const group *a, const group *b, tp_error *err)
{
    tp_run_comparison *c;
    const tp_compare_options options = {
        .size = sizeof options, .margin = f->margin, .align = (tp_align)align_of(f->align)};
    tp_waiting_begin("temper compare: judging");
    tp_status done = tp_runs_compare(a->runs, a->n, b->runs, b->n, &options, &c, err);
    tp_waiting_end();
    if (done != TP_OK)
        return -1;
    if (f->picture) {
        const tp_compare_picture_options picture = {.size = sizeof picture,
                                                    .path = f->picture,
                                                    .tags = f->metrics.items,
                                                    .n_tags = (size_t)f->metrics.n};
        done = tp_run_comparison_picture(c, a->runs, a->n, b->runs, b->n, &picture, err);
    }
    if (done == TP_OK && f->json) {
        char *text = tp_run_comparison_json(c);
        fputs(text, stdout);
        tp_free(text);
    } else if (done == TP_OK) {
        print_text(c, a, b);
    }
    int status = tp_cli_verdict(TP_EXIT_OK, is_worse(c));
    tp_run_comparison_free(c);
    return done == TP_OK ? status : -1;
}

/* FILE#NAME is no path: opening it says what is wrong with it. */
static bool find(const char *pattern, glob_t *ret)
{
    return glob(pattern, GLOB_TILDE | (strchr(pattern, '#') ? GLOB_NOCHECK : 0), NULL, ret) == 0;
}

static int run(const flags *f, char **words, int n, group *a, group *b)
{
    glob_t found_a = {0}, found_b = {0};
    tp_error err = {0};
    int exit_status = -1;
    if (!n && !find(f->a, &found_a))
        exit_status = tp_cli_refuse("compare", "--a: nothing matches '%s'", f->a);
    else if (!n && !find(f->b, &found_b))
        exit_status = tp_cli_refuse("compare", "--b: nothing matches '%s'", f->b);
    else if ((n ? open_one(a, words[0], &err) : open_found(a, &found_a, &err)) == TP_OK &&
             (n ? open_one(b, words[1], &err) : open_found(b, &found_b, &err)) == TP_OK)
        exit_status = compare(f, a, b, &err);
    globfree(&found_a);
    globfree(&found_b);
    close_group(a);
    close_group(b);
    return exit_status < 0 ? tp_cli_fail(&err) : exit_status;
}

/* Two of different kinds: what is known of neither kind says itself why. */
static int refuse_kinds(char **words)
{
    tp_error err = {0};
    for (int i = 0; i < 2; i++) {
        tp_metrics *m;
        if (tp_result_kind_of(words[i]) != TP_RESULT_RUN)
            continue;
        if (tp_metrics_open(words[i], NULL, &m, &err) != TP_OK)
            return tp_cli_fail(&err);
        tp_metrics_close(m);
    }
    static const char *const names[] = {[TP_RESULT_RUN] = "a run",
                                        [TP_RESULT_EVALUATION] = "an evaluation",
                                        [TP_RESULT_TRACE] = "a trace",
                                        [TP_RESULT_BENCHMARK] = "a result of benchmarks",
                                        [TP_RESULT_PROFILE] = "a profile"};
    return tp_cli_refuse("compare",
                         "'%.200s' is %s and '%.200s' is %s; two of one kind are compared "
                         "(standard input: a run)",
                         words[0], names[tp_result_kind_of(words[0])], words[1],
                         names[tp_result_kind_of(words[1])]);
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    group a = {0}, b = {0};
    if ((n == 2) == (f->a && f->b) || n == 1 || (!f->a != !f->b))
        return tp_cli_refuse("compare", "give two runs, or --a and --b; see 'temper help compare'");
    if (align_of(f->align) < 0)
        return tp_cli_refuse("compare", "--align is steps, tokens or time, not '%.40s'", f->align);
    tp_waiting_begin("temper compare: looking what they are");
    tp_result_kind kind = n ? tp_result_kind_of(words[0]) : TP_RESULT_RUN;
    bool is_mixed = n && kind != tp_result_kind_of(words[1]);
    tp_waiting_end();
    if (is_mixed)
        return refuse_kinds(words);
    if (kind != TP_RESULT_RUN && (f->picture || f->align || f->margin > 0))
        return tp_cli_refuse("compare", "--%s is for runs alone, and '%.200s' is none",
                             f->picture ? "picture"
                             : f->align ? "align"
                                        : "margin",
                             words[0]);
    if (f->metrics.n && !f->picture)
        return tp_cli_refuse("compare", "--metric chooses what --picture draws; give both");
    return kind == TP_RESULT_RUN ? run(f, words, n, &a, &b) : compare_others(f, kind, words);
}

const tp_usage tp_usage_compare = {
    .command = "compare",
    .arguments = "RUN_A RUN_B",
    .summary = "What differs between two runs, whoever ran them, and how surely; also between "
               "two evaluations, two traces, two profiles and two results of benchmarks.",
    .flags = flag_table,
    .details = "Every metric that both have, aligned by step: difference, 95 % interval that "
               "knows that neighbouring steps are alike, p-value corrected for many metrics "
               "(Holm), verdict.  With several runs on a side (--a, --b) runs are what is "
               "counted.  Exit status 1 when something is worse.",
    .max_words = 2,
    .size = sizeof(flags),
    .wraps = true,
    .run = execute};
