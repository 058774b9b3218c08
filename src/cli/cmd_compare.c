/* cmd_compare.c - `temper compare`: two runs, or two groups of seeds, metric by metric. */
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/runs.h"
#include "instrument/report/grid.h"
#include "temper/analysis.h"

typedef struct {
    bool json;
    const char *a, *b;
    double margin;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json,
              "{\"metrics\": [{\"name\", \"effect\", \"ci95\", \"p_adjusted\", \"verdict\"}]}"),
    TP_TEXT("a", 0, "PATTERN", a, "runs of side A, as 'runs/a-*': seeds of one setting"),
    TP_TEXT("b", 0, "PATTERN", b, "runs of side B"),
    TP_NUMBER("margin", 0, "SHARE", FLOAT, margin, 1e-9, 1,
              "'same' within this share of A's mean (default 0.01)"),
    {0}};

enum { MOST_RUNS = 200 };

typedef struct {
    tp_metrics *runs[MOST_RUNS];
    size_t n;
} group;

static tp_status open_one(group *g, const char *path, tp_error *err)
{
    if (g->n == MOST_RUNS)
        return tp_fail(err, TP_ERR_CONFIG, "more than %d runs on one side", MOST_RUNS);
    TP_TRY(tp_metrics_open(path, NULL, &g->runs[g->n], err));
    tp_runs_say_notes(g->runs[g->n++]);
    return TP_OK;
}

static tp_status open_group(group *g, const char *flag, const char *pattern, tp_error *err)
{
    glob_t found;
    if (glob(pattern, GLOB_TILDE, NULL, &found) != 0)
        return tp_fail(err, TP_ERR_CONFIG, "--%s: nothing matches '%s'", flag, pattern);
    tp_status status = TP_OK;
    for (size_t i = 0; i < found.gl_pathc && status == TP_OK; i++)
        status = open_one(g, found.gl_pathv[i], err);
    globfree(&found);
    return status;
}

static void close_group(group *g)
{
    for (size_t i = 0; i < g->n; i++)
        tp_metrics_close(g->runs[i]);
}

static void add_number(tp_grid *g, double v)
{
    char text[32];
    snprintf(text, sizeof text, "%.5g", v);
    tp_grid_text(g, isnan(v) ? NULL : text);
}

static void add_metric(tp_grid *g, const tp_compared_metric *x)
{
    char interval[64], p[16];
    snprintf(interval, sizeof interval, "%.4g .. %.4g", x->ci_lo, x->ci_hi);
    snprintf(p, sizeof p, x->p_adjusted < 0.0001 ? "< 0.0001" : "%.4f", x->p_adjusted);
    tp_grid_text(g, x->name);
    add_number(g, x->mean_a);
    add_number(g, x->mean_b);
    add_number(g, x->effect);
    tp_grid_text(g, isnan(x->ci_lo) ? NULL : interval);
    tp_grid_text(g, isnan(x->p_adjusted) ? NULL : p);
    tp_grid_int(g, (int64_t)x->n);
    tp_grid_text(g, x->verdict);
}

/* A reason with all metrics that it holds for, each reason once. */
static void note_reasons(tp_grid *g, const tp_run_comparison *c)
{
    size_t n = tp_run_comparison_count(c);
    for (size_t i = 0; i < n; i++) {
        const tp_compared_metric *x = tp_run_comparison_metric(c, i);
        tp_buf names = {0};
        bool is_first = x->why[0];
        for (size_t k = 0; k < n && is_first; k++) {
            const tp_compared_metric *y = tp_run_comparison_metric(c, k);
            if (strcmp(x->why, y->why) != 0)
                continue;
            is_first = k >= i;
            tp_buf_addf(&names, "%s%s", names.len ? ", " : "", y->name);
        }
        if (is_first)
            tp_grid_note(g, "%s: %s", x->why, names.data);
        tp_buf_release(&names);
    }
}

static void print_grid(tp_grid *g)
{
    tp_buf out = {0};
    tp_grid_print(g, 0, tp_cli_width(), &out);
    fputs(tp_buf_str(&out), stdout);
    tp_buf_release(&out);
    tp_grid_release(g);
}

static void print_settings(const tp_run_comparison *c)
{
    tp_grid g = {.name = "settings", .title = "Settings that differ"};
    tp_grid_column(&g, "key", "setting", TP_CELL_TEXT);
    tp_grid_column(&g, "a", "A", TP_CELL_TEXT);
    tp_grid_column(&g, "b", "B", TP_CELL_TEXT);
    for (size_t i = 0; i < tp_run_comparison_settings(c); i++) {
        const char *a, *b;
        tp_grid_text(&g, tp_run_comparison_setting(c, i, &a, &b));
        tp_grid_text(&g, a);
        tp_grid_text(&g, b);
    }
    if (tp_grid_rows(&g))
        putchar('\n');
    if (tp_grid_rows(&g))
        print_grid(&g);
    else
        tp_grid_release(&g);
}

static void print_text(const tp_run_comparison *c, const group *a, const group *b)
{
    tp_grid g = {.name = "metrics", .title = NULL};
    static const char *const names[][2] = {{"metric", "metric"}, {"mean_a", "A"},
                                           {"mean_b", "B"},      {"effect", "B - A"},
                                           {"ci95", "95 %"},     {"p_adjusted", "p (Holm)"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        tp_grid_column(&g, names[i][0], names[i][1], TP_CELL_TEXT);
    tp_grid_column(&g, "n", "n", TP_CELL_COUNT);
    tp_grid_column(&g, "verdict", "verdict", TP_CELL_TEXT);
    for (size_t i = 0; i < tp_run_comparison_count(c); i++)
        add_metric(&g, tp_run_comparison_metric(c, i));
    note_reasons(&g, c);
    printf("A: %s%s\nB: %s%s\n\n", tp_metrics_path(a->runs[0]), a->n > 1 ? ", ..." : "",
           tp_metrics_path(b->runs[0]), b->n > 1 ? ", ..." : "");
    if (a->n == 1 && b->n == 1)
        tp_grid_note(&g, "n: steps in common; intervals are of these two runs, another seed may "
                         "differ (--a, --b)");
    print_grid(&g);
    print_settings(c);
}

/* 1 when something is worse. */
static int status_of(const tp_run_comparison *c)
{
    for (size_t i = 0; i < tp_run_comparison_count(c); i++)
        if (strcmp(tp_run_comparison_metric(c, i)->verdict, "worse") == 0)
            return TP_EXIT_WORSE;
    return 0;
}

static tp_status compare(const flags *f, const group *a, const group *b, int *ret, tp_error *err)
{
    tp_run_comparison *c;
    const tp_compare_options options = {.size = sizeof options, .margin = f->margin};
    TP_TRY(tp_runs_compare(a->runs, a->n, b->runs, b->n, &options, &c, err));
    if (tp_run_comparison_count(c) == 0) {
        tp_run_comparison_free(c);
        return tp_fail(err, TP_ERR_CONFIG, "'%s' and '%s' have no metric in common",
                       tp_metrics_path(a->runs[0]), tp_metrics_path(b->runs[0]));
    }
    if (f->json) {
        char *text = tp_run_comparison_json(c);
        fputs(text, stdout);
        free(text);
    } else {
        print_text(c, a, b);
    }
    *ret = status_of(c);
    tp_run_comparison_free(c);
    return TP_OK;
}

int tp_cmd_compare(int argc, char **argv)
{
    flags f = {0};
    char *words[argc + 1];
    tp_error err = {0};
    group a = {0}, b = {0};
    const tp_usage usage = {
        .command = "compare",
        .arguments = "RUN_A RUN_B",
        .summary = "What differs between two runs, whoever ran them, and how surely.",
        .flags = flag_table,
        .details = "Every metric that both have, aligned by step: difference, 95 % interval that "
                   "knows that neighbouring steps are alike, p-value corrected for many metrics "
                   "(Holm), verdict.  With several runs on a side (--a, --b) runs are what is "
                   "counted.  Exit status 1 when something is worse.",
        .max_words = 2};
    int n = tp_cli_parse(&usage, argc, argv, &f, words), exit_status = 0;
    if (n < 0)
        return n == -2 ? 0 : 2;
    if ((n == 2) == (f.a && f.b) || n == 1 || (!f.a != !f.b)) {
        fprintf(stderr,
                "temper compare: give two runs, or --a and --b; see 'temper help compare'\n");
        return 2;
    }
    tp_status status = n ? open_one(&a, words[0], &err) : open_group(&a, "a", f.a, &err);
    if (status == TP_OK)
        status = n ? open_one(&b, words[1], &err) : open_group(&b, "b", f.b, &err);
    if (status == TP_OK)
        status = compare(&f, &a, &b, &exit_status, &err);
    close_group(&a);
    close_group(&b);
    return status == TP_OK ? exit_status : tp_cli_fail(&err);
}
