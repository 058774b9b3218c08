/* cmd_metrics.c - `temper metrics`: the figures that a run recorded, whoever ran it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "instrument/report/grid.h"
#include "cli/runs.h"
#include "temper/analysis.h"

typedef struct {
    bool json;
    const char *points, *run;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "{\"TAG\": [[step, wall_time, value], ...]}"),
    TP_TEXT("points", 0, "VIEW", points,
            "which count after a restart or damage: native (default), latest, all, accumulator, "
            "fast"),
    TP_TEXT("run", 0, "NAME", run, "of several runs in one data base; or RUN#NAME"),
    {0}};

static bool print_piece(void *user, const char *text, size_t n)
{
    return fwrite(text, 1, n, user) == n;
}

typedef struct {
    const char *tag;
    size_t n;
    tp_metric_point first, last;
    double least, most; /* of numbers; NaN without any */
    size_t n_odd;       /* values that are NaN or infinite */
} line;

static line summarize(const char *tag, const tp_metric_point *p, size_t n)
{
    line l = {.tag = tag, .n = n, .least = NAN, .most = NAN};
    if (n) {
        l.first = p[0];
        l.last = p[n - 1];
    }
    for (size_t i = 0; i < n; i++) {
        l.n_odd += isfinite(p[i].value) ? 0 : 1;
        l.least = fmin(l.least, p[i].value);
        l.most = fmax(l.most, p[i].value);
    }
    return l;
}

static void add_step(tp_grid *g, const line *l, int64_t step)
{
    if (l->n && step != TP_STEP_NONE)
        tp_grid_int(g, step);
    else
        tp_grid_unknown(g);
}

static void add_value(tp_grid *g, const line *l, double value)
{
    char text[32];
    if (isfinite(value))
        snprintf(text, sizeof text, "%.6g", value);
    else
        tp_human_value(value, 0, text);
    tp_grid_text(g, l->n ? text : NULL);
}

static void add_line(tp_grid *g, const line *l)
{
    tp_grid_text(g, l->tag);
    tp_grid_int(g, (int64_t)l->n);
    add_step(g, l, l->first.step);
    add_step(g, l, l->last.step);
    add_value(g, l, l->last.value);
    add_value(g, l, l->least);
    add_value(g, l, l->most);
    if (l->n_odd)
        tp_grid_note(g, "%s: %zu of %zu values are NaN or infinite", l->tag, l->n_odd, l->n);
}

static void print_table(tp_metrics *m, tp_points_view view, char **tags, int n_tags)
{
    tp_grid g = {.name = "metrics", .title = NULL};
    tp_buf out = {0};
    tp_grid_column(&g, "tag", "metric", TP_CELL_TEXT);
    tp_grid_column(&g, "n", "points", TP_CELL_COUNT);
    tp_grid_column(&g, "first_step", "first step", TP_CELL_COUNT);
    tp_grid_column(&g, "last_step", "last step", TP_CELL_COUNT);
    tp_grid_column(&g, "last", "last", TP_CELL_TEXT);
    tp_grid_column(&g, "min", "min", TP_CELL_TEXT);
    tp_grid_column(&g, "max", "max", TP_CELL_TEXT);
    for (size_t i = 0; i < tp_metrics_count(m); i++) {
        const tp_metric_point *p;
        const char *tag = tp_metrics_tag(m, i);
        if (n_tags && !tp_runs_wanted(tag, tags, n_tags))
            continue;
        size_t n = tp_metrics_points(m, i, view, &p);
        line l = summarize(tag, p, n);
        if (n)
            add_line(&g, &l);
    }
    if (tp_grid_rows(&g) == 0)
        tp_grid_note(&g, "nothing was recorded");
    printf("%s: %s\n", tp_metrics_path(m), tp_metrics_about(m));
    tp_grid_print(&g, 0, tp_cli_width(), &out);
    fputs(tp_buf_str(&out), stdout);
    tp_buf_release(&out);
    tp_grid_release(&g);
}

static tp_status show(const flags *f, char **words, int n, tp_error *err)
{
    tp_points_view view = TP_POINTS_NATIVE;
    tp_metrics *m;
    const tp_metrics_options options = {.size = sizeof options, .run = f->run};
    if (f->points && !tp_points_view_named(f->points, &view))
        return tp_fail(err, TP_ERR_CONFIG,
                       "--points is native, latest, all, accumulator or fast, not '%.40s'",
                       f->points);
    TP_TRY(tp_metrics_open(words[0], &options, &m, err));
    tp_runs_say_notes(m);
    tp_status status = TP_OK;
    if (f->json)
        status = tp_metrics_write_json(m, view, (const char *const *)(words + 1), (size_t)n - 1,
                                       print_piece, stdout, err);
    else
        status = tp_runs_check_tags(m, words + 1, n - 1, err);
    if (status == TP_OK && !f->json)
        print_table(m, view, words + 1, n - 1);
    tp_metrics_close(m);
    return status;
}

int tp_cmd_metrics(int argc, char **argv)
{
    flags f = {0};
    char *words[argc + 1];
    tp_error err = {0};
    const tp_usage usage = {
        .command = "metrics",
        .arguments = "RUN [TAG...]",
        .summary = "What a run recorded, exactly: a run folder of Temper, TensorBoard event files, "
                   "trainer_state.json, NeMo RL's logs, trackio's data bases, CSV, JSONL.",
        .flags = flag_table,
        .details = "RUN is a folder, a file, or DATABASE#NAME.  TAGs may be patterns ('train/*'). "
                   "Damage is read up to, and named on standard error.\n\n"
                   "  temper metrics runs/first\n"
                   "  temper metrics logs/exp_001/tensorboard train/loss --json\n"
                   "  temper metrics ~/.cache/huggingface/trackio/project.db#run-1 'train/*'",
        .min_words = 1,
        .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    return show(&f, words, n, &err) == TP_OK ? 0 : tp_cli_fail(&err);
}
