/* cmd_analyze.c - `temper analyze`: runs judged along eight dimensions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/runs.h"
#include "temper/analysis.h"

typedef struct {
    bool json, report;
    tp_flag_list dimensions, thresholds;
    const char *sizes;
    double target;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "{\"dimensions\": [...], \"summary\": {...}}"),
    TP_SWITCH("report", 0, report, "write report/: report.md, dashboard.svg, .html, .png, .pdf"),
    TP_LIST("dimension", 'd', "NAME", dimensions, "only this one; may be given several times"),
    TP_LIST("threshold", 0, "NAME=VALUE", thresholds,
            "instead of the default; may be given several times"),
    TP_TEXT("size", 0, "N,N,...", sizes,
            "threads, ranks or devices of each run, for scalability (default: from its settings)"),
    TP_NUMBER("target", 0, "VALUE", FLOAT, target, -1e300, 1e300,
              "of the reward, else the loss: when convergence is there"),
    {0}};

enum { MOST_RUNS = 200 };

typedef struct {
    tp_metrics *runs[MOST_RUNS];
    size_t n;
    double sizes[MOST_RUNS];
    char names[TP_FLAG_MOST][32];
    const char *threshold_names[TP_FLAG_MOST];
    double thresholds[TP_FLAG_MOST];
} job;

/* 0, or the exit status of wrong usage. */
static int parse_thresholds(const flags *f, job *j)
{
    for (int i = 0; i < f->thresholds.n; i++) {
        const char *text = f->thresholds.items[i], *equals = strchr(text, '=');
        char *end = NULL;
        if (equals && (size_t)(equals - text) < sizeof j->names[i])
            j->thresholds[i] = strtod(equals + 1, &end);
        if (!end || end == equals + 1 || *end)
            return tp_cli_refuse("analyze", "--threshold takes NAME=VALUE, not '%.60s'", text);
        snprintf(j->names[i], sizeof j->names[i], "%.*s", (int)(equals - text), text);
        j->threshold_names[i] = j->names[i];
    }
    return 0;
}

static int parse_sizes(const flags *f, job *j)
{
    const char *at = f->sizes;
    size_t n = 0;
    for (char *end; at && n < j->n; at = end + 1) {
        j->sizes[n] = strtod(at, &end);
        n += end > at && j->sizes[n] > 0;
        if (end == at || *end != ',') {
            n = *end ? 0 : n;
            at = *end ? at : NULL;
            break;
        }
    }
    if (f->sizes && (at || n != j->n))
        return tp_cli_refuse("analyze", "--size takes one number per run, %zu of them, not '%.60s'",
                             j->n, f->sizes);
    return 0;
}

static tp_status write_report(const tp_analysis *a, tp_metrics *m, tp_error *err)
{
    char *path, *note;
    tp_status status = tp_analysis_write_report(a, m, NULL, &path, &note, err);
    if (status != TP_OK)
        return status;
    fprintf(stderr, "temper: wrote %s\n", path);
    if (note)
        fprintf(stderr, "temper: %s\n", note);
    tp_free(path);
    tp_free(note);
    return TP_OK;
}

static int answer(const flags *f, job *j)
{
    tp_analysis *a;
    tp_error err = {0};
    const tp_analysis_options options = {.size = sizeof options,
                                         .dimensions = f->dimensions.items,
                                         .n_dimensions = (size_t)f->dimensions.n,
                                         .threshold_names = j->threshold_names,
                                         .thresholds = j->thresholds,
                                         .n_thresholds = (size_t)f->thresholds.n,
                                         .sizes = f->sizes ? j->sizes : NULL,
                                         .has_target = !isnan(f->target),
                                         .target = f->target};
    tp_waiting_begin("temper analyze: judging");
    if (tp_runs_analyze(j->runs, j->n, &options, &a, &err) != TP_OK)
        return tp_cli_fail(&err);
    tp_status status = f->report ? write_report(a, j->runs[0], &err) : TP_OK;
    tp_waiting_end();
    char *text = f->json ? tp_analysis_json(a) : tp_analysis_text(a, tp_cli_width());
    if (!f->json)
        printf("%s: %s\n", tp_metrics_name(j->runs[0]), tp_metrics_about(j->runs[0]));
    if (!f->json && j->n > 1)
        printf("the first of %zu runs; robustness and scalability are of all\n", j->n);
    if (!f->json)
        putchar('\n');
    fputs(text, stdout);
    tp_free(text);
    int result = tp_cli_verdict(TP_EXIT_OK, tp_analysis_summarize(a).below_threshold);
    tp_analysis_free(a);
    return status == TP_OK ? result : tp_cli_fail(&err);
}

static int run(const flags *f, job *j, char **words, int n)
{
    tp_error err = {0};
    for (int i = 0; i < n; i++)
        if (tp_runs_open(j->runs, &j->n, MOST_RUNS, words[i], &err) != TP_OK)
            return tp_cli_fail(&err);
    int refused = parse_thresholds(f, j);
    if (!refused)
        refused = parse_sizes(f, j);
    return refused ? refused : answer(f, j);
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    job *j = calloc(1, sizeof *j);
    if (!j)
        return tp_cli_no_memory();
    int exit_status = run(f, j, words, n);
    for (size_t i = 0; i < j->n; i++)
        tp_metrics_close(j->runs[i]);
    free(j);
    return exit_status;
}

const tp_usage tp_usage_analyze = {
    .command = "analyze",
    .arguments = "RUN...",
    .summary = "How good a run is, whoever ran it: training, inference, memory, convergence, "
               "generalization, robustness, scalability, efficiency.",
    .flags = flag_table,
    .details = "Each with value, 95 % interval, method, n, inputs and a verdict against its "
               "threshold; docs/formats/analysis.md has the formulas.  The first run is judged; "
               "robustness needs several (seeds), scalability several sizes.  Exit status 1 "
               "when a threshold fails.",
    .min_words = 1,
    .max_words = -1,
    .size = sizeof(flags),
    .defaults = &(const flags){.target = NAN},
    .wraps = true,
    .run = execute};
