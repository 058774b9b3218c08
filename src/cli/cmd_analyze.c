/* cmd_analyze.c - `temper analyze`: runs judged along eight dimensions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/output.h"
#include "cli/cli.h"
#include "cli/runs.h"
#include "instrument/report/grid.h"
#include "temper/analysis.h"

typedef struct {
    bool json, report;
    tp_flag_list dimensions, thresholds;
    const char *sizes;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "{\"dimensions\": [...], \"summary\": {...}}"),
    TP_SWITCH("report", 0, report, "write report/report.md"),
    {.name = "dimension",
     .letter = 'd',
     .argument = "NAME",
     .doc = "only this one; may be given several times",
     .type = TP_FLAG_LIST,
     .offset = offsetof(flags, dimensions)},
    {.name = "threshold",
     .argument = "NAME=VALUE",
     .doc = "instead of the default; may be given several times",
     .type = TP_FLAG_LIST,
     .offset = offsetof(flags, thresholds)},
    TP_TEXT("size", 0, "N,N,...", sizes,
            "threads, ranks or devices of each run, for scalability (default: from its settings)"),
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

static tp_status parse_thresholds(const flags *f, job *j, tp_error *err)
{
    for (int i = 0; i < f->thresholds.n; i++) {
        const char *text = f->thresholds.items[i], *equals = strchr(text, '=');
        if (!equals || (size_t)(equals - text) >= sizeof j->names[i] ||
            !tp_str_to_f64(equals + 1, &j->thresholds[i]))
            return tp_fail(err, TP_ERR_CONFIG, "--threshold takes NAME=VALUE, not '%.60s'", text);
        snprintf(j->names[i], sizeof j->names[i], "%.*s", (int)(equals - text), text);
        j->threshold_names[i] = j->names[i];
    }
    return TP_OK;
}

static tp_status parse_sizes(const flags *f, job *j, tp_error *err)
{
    const char *at = f->sizes;
    size_t n = 0;
    for (char *end; at && *at; at = *end == ',' ? end + 1 : end) {
        double v = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !(v > 0) || n == j->n)
            break;
        j->sizes[n++] = v;
        if (!*end)
            at = end;
        if (!*at)
            break;
    }
    if (f->sizes && n != j->n)
        return tp_fail(err, TP_ERR_CONFIG,
                       "--size takes one number per run, %zu of them, not '%.60s'", j->n, f->sizes);
    return TP_OK;
}

static void add_number(tp_grid *g, double v)
{
    char text[32];
    snprintf(text, sizeof text, "%.4g", v);
    tp_grid_text(g, isnan(v) ? NULL : text);
}

static void add_inputs(tp_buf *out, const tp_analysis *a, size_t index)
{
    const char *text, *key;
    double value;
    for (size_t k = 0; (key = tp_analysis_input(a, index, k, &value, &text)); k++) {
        tp_buf_addf(out, "%s%s ", k ? ", " : "", key);
        if (text)
            tp_buf_adds(out, text);
        else
            tp_buf_addf(out, "%.5g", value);
    }
}

static void add_row(tp_grid *g, const tp_analysis *a, size_t i)
{
    const tp_analysis_dimension *d = tp_analysis_result(a, i);
    tp_buf inputs = {0};
    char interval[64];
    snprintf(interval, sizeof interval, "%.4g .. %.4g", d->ci_lo, d->ci_hi);
    tp_grid_text(g, d->name);
    add_number(g, d->value);
    tp_grid_text(g, isnan(d->ci_lo) ? NULL : interval);
    if (d->error)
        tp_grid_unknown(g);
    else
        tp_grid_int(g, (int64_t)d->n);
    add_number(g, d->threshold);
    tp_grid_text(g, d->verdict);
    if (d->error) {
        tp_grid_note(g, "%s: %s", d->name, d->error);
    } else {
        add_inputs(&inputs, a, i);
        tp_grid_note(g, "%s: %s; %s; %s", d->name, d->about, tp_buf_str(&inputs), d->method);
    }
    tp_buf_release(&inputs);
}

/* Of those that fail, the one farthest from its threshold. */
static const tp_analysis_dimension *worst_of(const tp_analysis *a)
{
    const tp_analysis_dimension *worst = NULL;
    double most = 0;
    for (size_t i = 0; i < tp_analysis_count(a); i++) {
        const tp_analysis_dimension *d = tp_analysis_result(a, i);
        double far = fabs(d->value - d->threshold) / (fabs(d->threshold) + 1e-9);
        if (strcmp(d->verdict, "fail") == 0 && (!worst || far > most)) {
            worst = d;
            most = far;
        }
    }
    return worst;
}

static void print_text(const job *j, const tp_analysis *a)
{
    tp_grid g = {.name = "dimensions", .title = NULL};
    tp_buf out = {0};
    tp_analysis_summary s = tp_analysis_summarize(a);
    const tp_analysis_dimension *worst = worst_of(a);
    tp_grid_column(&g, "name", "dimension", TP_CELL_TEXT);
    tp_grid_column(&g, "value", "value", TP_CELL_TEXT);
    tp_grid_column(&g, "ci95", "95 %", TP_CELL_TEXT);
    tp_grid_column(&g, "n", "n", TP_CELL_COUNT);
    tp_grid_column(&g, "threshold", "threshold", TP_CELL_TEXT);
    tp_grid_column(&g, "verdict", "verdict", TP_CELL_TEXT);
    for (size_t i = 0; i < tp_analysis_count(a); i++)
        add_row(&g, a, i);
    printf("%s: %s\n\n", tp_metrics_path(j->runs[0]), tp_metrics_about(j->runs[0]));
    tp_grid_print(&g, 0, tp_cli_width(), &out);
    fputs(tp_buf_str(&out), stdout);
    printf("\n%zu dimensions: %zu succeeded, %zu failed; %zu below their threshold\n", s.ran,
           s.succeeded, s.failed, s.below_threshold);
    if (worst)
        printf("worst: %s; %s\n", worst->name, worst->advice ? worst->advice : "");
    tp_buf_release(&out);
    tp_grid_release(&g);
}

/* In the folder of a run of Temper; those of others are left alone. */
static tp_status write_report(const job *j, const tp_analysis *a, tp_error *err)
{
    const char *path = tp_metrics_path(j->runs[0]);
    bool is_own = strcmp(tp_metrics_format(j->runs[0]), "temper") == 0 && tp_dir_exists(path);
    tp_buf folder = {0}, file = {0};
    tp_buf_addf(&folder, "%s%sreport", is_own ? path : "", is_own ? "/" : "");
    tp_buf_addf(&file, "%s/report.md", folder.data);
    char *text = tp_analysis_markdown(a, path);
    tp_status status = tp_dir_make(folder.data, err);
    if (status == TP_OK)
        status = tp_output_put(file.data, text, strlen(text), err);
    if (status == TP_OK)
        fprintf(stderr, "temper: wrote %s\n", file.data);
    free(text);
    tp_buf_release(&folder);
    tp_buf_release(&file);
    return status;
}

static tp_status answer(const flags *f, job *j, int *ret, tp_error *err)
{
    tp_analysis *a;
    TP_TRY(parse_thresholds(f, j, err));
    TP_TRY(parse_sizes(f, j, err));
    const tp_analysis_options options = {.size = sizeof options,
                                         .dimensions = f->dimensions.items,
                                         .n_dimensions = (size_t)f->dimensions.n,
                                         .threshold_names = j->threshold_names,
                                         .thresholds = j->thresholds,
                                         .n_thresholds = (size_t)f->thresholds.n,
                                         .sizes = f->sizes ? j->sizes : NULL};
    TP_TRY(tp_runs_analyze(j->runs, j->n, &options, &a, err));
    tp_status status = f->report ? write_report(j, a, err) : TP_OK;
    if (f->json) {
        char *text = tp_analysis_json(a);
        fputs(text, stdout);
        free(text);
    } else {
        print_text(j, a);
    }
    *ret = tp_analysis_summarize(a).below_threshold ? TP_EXIT_WORSE : 0;
    tp_analysis_free(a);
    return status;
}

static tp_status open_runs(job *j, char **words, int n, tp_error *err)
{
    for (int i = 0; i < n; i++) {
        if (j->n == MOST_RUNS)
            return tp_fail(err, TP_ERR_CONFIG, "more than %d runs", MOST_RUNS);
        TP_TRY(tp_metrics_open(words[i], NULL, &j->runs[j->n], err));
        tp_runs_say_notes(j->runs[j->n++]);
    }
    return TP_OK;
}

int tp_cmd_analyze(int argc, char **argv)
{
    flags f = {0};
    char *words[argc + 1];
    tp_error err = {0};
    int exit_status = 0;
    const tp_usage usage = {
        .command = "analyze",
        .arguments = "RUN...",
        .summary = "How good a run is, whoever ran it: training, inference, memory, convergence, "
                   "generalization, robustness, scalability, efficiency.",
        .flags = flag_table,
        .details =
            "Each with value, 95 % interval, method, n, inputs and a verdict against its "
            "threshold; docs/formats/analysis.md has the formulas.  The first run is judged; "
            "robustness needs several (seeds), scalability several sizes.  Exit status 1 "
            "when a threshold fails.",
        .min_words = 1,
        .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    job *j = calloc(1, sizeof *j);
    if (!j)
        return TP_EXIT_MEMORY;
    tp_status status = open_runs(j, words, n, &err);
    if (status == TP_OK)
        status = answer(&f, j, &exit_status, &err);
    for (size_t i = 0; i < j->n; i++)
        tp_metrics_close(j->runs[i]);
    free(j);
    return status == TP_OK ? exit_status : tp_cli_fail(&err);
}
