/* `temper trace`: read any trace, say where time and memory went. */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/terminal.h"
#include "cli/cli.h"
#include "instrument/report/trace_report.h"
#include "cli/trace_commands.h"
#include "instrument/ingest/trace_paths.h"
#include "instrument/report/trace_ranks.h"

typedef struct {
    bool json, csv, markdown;
    const char *view, *scope, *name, *comm;
    int64_t step, rank, stream, top;
} flags;

enum { UNSET = INT64_MIN };

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "as JSON: whole nanoseconds and bytes"),
    TP_SWITCH("csv", 0, csv, "a view as comma-separated values"),
    TP_SWITCH("markdown", 0, markdown, "as Markdown"),
    TP_TEXT("view", 0, "VIEW", view, "one view instead of the overview; also as a word"),
    TP_TEXT("scope", 0, "SCOPE", scope,
            "which device work counts: all (default), linked (its launch is in the file), steps "
            "(launched inside a step)"),
    TP_NUMBER("step", 0, "N", INT, step, 0, 9e15, "only work launched in this step"),
    TP_NUMBER("rank", 0, "N", INT, rank, 0, 1e9, "only the file of this rank"),
    TP_NUMBER("stream", 0, "N", INT, stream, 0, 9e15, "only this stream"),
    TP_TEXT("name", 0, "PATTERN", name,
            "only device work whose name contains this (or matches *, ?)"),
    TP_TEXT("comm", 0, "PATTERN", comm, "kernels that communicate besides those known by name"),
    TP_NUMBER("top", 0, "N", INT, top, 0, 1e9, "rows of a table (default 10 or 30; 0: all)"),
    {0}};

static int print(tp_buf *out)
{
    fwrite(tp_buf_str(out), 1, out->len, stdout);
    tp_buf_release(out);
    return 0;
}

/* ---- what is asked for ---- */

typedef struct {
    flags f;
    tp_select_options select;
    const char *view;
    const char **paths;
    size_t n_paths;
    size_t top;
} request;

/* A word that names a view is one, unless a file or folder of that name is there. */
static bool is_view_word(const char *word)
{
    return tp_trace_report_view_exists(word) && !tp_file_exists(word) && !tp_dir_exists(word);
}

static bool check_view(const char *view)
{
    tp_nearest near = {.word = view};
    if (tp_trace_report_view_exists(view))
        return true;
    for (const tp_trace_report_view *v = tp_trace_report_views; v->view; v++)
        tp_nearest_offer(&near, v->view);
    fprintf(stderr, "temper trace: there is no view '%s'%s%s%s; see 'temper help trace'\n", view,
            near.best ? "; did you mean '" : "", near.best ? near.best : "", near.best ? "'" : "");
    return false;
}

/* No file, but nearly the name of a view. */
static bool is_misspelt_view(const char *word)
{
    tp_nearest near = {.word = word};
    for (const tp_trace_report_view *v = tp_trace_report_views; v->view; v++)
        tp_nearest_offer(&near, v->view);
    return near.best && !strpbrk(word, "./") && !tp_trace_report_view_exists(word) &&
           !tp_file_exists(word) && !tp_dir_exists(word);
}

static bool read_request(char **words, int n, request *r)
{
    for (int i = 0; i < n; i++) {
        if (is_misspelt_view(words[i]))
            return check_view(words[i]);
        if (!is_view_word(words[i])) {
            r->paths[r->n_paths++] = words[i];
            continue;
        }
        if (r->view && strcmp(r->view, words[i]) != 0) {
            fprintf(stderr, "temper trace: one view at a time, not '%s' and '%s'\n", r->view,
                    words[i]);
            return false;
        }
        r->view = words[i];
    }
    if (r->f.view && !check_view(r->f.view))
        return false;
    if (r->f.view)
        r->view = r->f.view;
    if (r->n_paths == 0) {
        fprintf(stderr, "temper trace: expected a file; see 'temper help trace'\n");
        return false;
    }
    if (r->f.json + r->f.csv + r->f.markdown > 1) {
        fprintf(stderr, "temper trace: one of --json, --csv and --markdown\n");
        return false;
    }
    if (r->f.csv && !r->view) {
        fprintf(stderr, "temper trace: --csv needs a view, such as kernels\n");
        return false;
    }
    if (r->f.scope && !tp_scope_parse(r->f.scope, &r->select.scope)) {
        fprintf(stderr, "temper trace: --scope is all, linked or steps, not '%s'\n", r->f.scope);
        return false;
    }
    r->select.has_step = r->f.step != UNSET;
    r->select.step = r->f.step;
    r->select.has_stream = r->f.stream != UNSET;
    r->select.stream = r->f.stream;
    r->select.name = r->f.name;
    r->select.comm = r->f.comm;
    r->top = r->f.top != UNSET ? (size_t)r->f.top : r->view ? 30 : 10;
    return true;
}

/* What the readers must keep: memory is what big traces cost. */
static unsigned wanted(const request *r)
{
    unsigned keep = TP_KEEP_FAST | TP_KEEP_MEMORY | TP_KEEP_SYNCS;
    for (const tp_trace_report_view *v = tp_trace_report_views; v->view; v++)
        if (r->view && strcmp(v->view, r->view) == 0)
            keep |= v->keep;
    return keep;
}

/* ---- answers ---- */

/* A step, stream or scope that selects nothing is a mistake of the user, told as one. */
static bool is_empty_by_filter(const request *r, const tp_trace_report *report)
{
    const tp_selection *s = &report->selection;
    if (!report->file->events || s->n > 0 || s->n_all == 0)
        return false;
    if (r->select.scope == TP_SCOPE_STEPS && s->steps.n == 0)
        fprintf(stderr, "temper: %s has no steps (ProfilerStep#N): use --scope all\n",
                report->file->path);
    else if (r->select.has_step && s->steps.n == 0)
        fprintf(stderr, "temper: %s has no steps (ProfilerStep#N): leave out --step\n",
                report->file->path);
    else if (r->select.has_step)
        fprintf(stderr, "temper: no device work in step %lld of %s, whose steps are %lld to %lld\n",
                (long long)r->select.step, report->file->path, (long long)s->steps.v[0].number,
                (long long)s->steps.v[s->steps.n - 1].number);
    else
        fprintf(stderr, "temper: the filters leave none of the %zu device activities of %s\n",
                s->n_all, report->file->path);
    return true;
}

/* Everything that --json has to say beside the headline figures. */
static void put_all_views(tp_trace_report *report, tp_json_w *w)
{
    for (const tp_trace_report_view *v = tp_trace_report_views; v->view; v++) {
        tp_grid grid = {.name = v->grid};
        if (!v->in_json || (!report->file->events && strcmp(v->view, "memory") != 0))
            continue;
        v->fill(report, &grid);
        tp_json_w_key(w, v->grid);
        tp_grid_json(&grid, w);
        tp_grid_release(&grid);
    }
}

/* What cannot be asked of this kind of file is told, not shown empty. */
static bool can_show(const request *r, const tp_trace_report *report)
{
    if (report->file->events || strcmp(r->view, "memory") == 0)
        return true;
    fprintf(stderr,
            "temper: %s is a %s: nothing in it answers '%s'; its views are memory, and the "
            "overview\n",
            report->file->path, tp_file_kind_about(report->file->kind), r->view);
    return false;
}

static void put_view(const request *r, tp_trace_report *report, tp_json_w *w, tp_buf *out)
{
    bool is_first = true;
    for (const tp_trace_report_view *v = tp_trace_report_views; v->view; v++) {
        tp_grid grid = {.name = v->grid};
        bool is_dump = !v->in_json && strcmp(v->grid, "memory_timeline") == 0;
        if (strcmp(v->view, r->view) != 0 || (is_dump && !r->f.json))
            continue;
        v->fill(report, &grid);
        if (r->f.json) {
            tp_json_w_key(w, v->grid);
            tp_grid_json(&grid, w);
        } else if (r->f.csv) {
            tp_buf_adds(out, is_first ? "" : "\n");
            tp_grid_csv(&grid, out);
        } else if (r->f.markdown) {
            tp_grid_markdown(&grid, r->top, out);
        } else {
            tp_buf_adds(out, is_first ? "" : "\n");
            tp_grid_print(&grid, r->top, tp_cli_width(), out);
        }
        tp_grid_release(&grid);
        is_first = false;
    }
}

static void put_file(const request *r, const tp_trace_file *file, tp_json_w *w, tp_buf *out,
                     int *status)
{
    tp_trace_report report;
    tp_trace_report_make(file, &r->select, &report);
    if (!r->view)
        tp_trace_report_prepare(&report);
    if (is_empty_by_filter(r, &report) || (r->view && !can_show(r, &report))) {
        *status = 2;
    } else if (r->f.json) {
        tp_json_w_begin(w, '{');
        tp_trace_report_json(&report, w);
        if (r->view)
            put_view(r, &report, w, out);
        else
            put_all_views(&report, w);
        tp_json_w_end(w, '}');
    } else if (r->view) {
        put_view(r, &report, w, out);
    } else if (r->f.markdown) {
        tp_trace_report_screen_markdown(&report, r->top, out);
    } else {
        tp_trace_report_screen(&report, r->top, tp_cli_width(), out);
    }
    tp_trace_report_release(&report);
}

static void put_grid(const request *r, const tp_grid *g, tp_json_w *w, tp_buf *out)
{
    if (out->len && !r->f.json)
        tp_buf_addc(out, '\n');
    if (r->f.json) {
        tp_json_w_key(w, g->name);
        tp_grid_json(g, w);
    } else if (r->f.csv) {
        tp_grid_csv(g, out);
    } else if (r->f.markdown) {
        tp_grid_markdown(g, r->top, out);
    } else {
        tp_grid_print(g, r->top, tp_cli_width(), out);
    }
}

/* All files at once: the view `ranks`, and what several files show without a view. */
static int answer_job(const request *r, const tp_trace_job *job)
{
    tp_rank_grids grids;
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 1);
    tp_trace_report_ranks(job, &r->select, &grids);
    if (r->f.json)
        tp_json_w_begin(&w, '{');
    put_grid(r, &grids.ranks, &w, &out);
    if (tp_grid_rows(&grids.collectives) || r->f.json)
        put_grid(r, &grids.collectives, &w, &out);
    if (r->f.json) {
        tp_json_w_end(&w, '}');
        tp_buf_addc(&out, '\n');
    } else if (!r->f.csv) {
        for (size_t i = 0; i < job->notes.n; i++)
            tp_buf_addf(&out, "%s%s\n", i ? "" : "\n", job->notes.list[i].text);
        if (!r->view)
            tp_buf_adds(&out,
                        "\n--rank N shows one of them as a whole, a view shows all in turn\n");
    }
    tp_rank_grids_release(&grids);
    return print(&out);
}

static bool is_wanted(const request *r, const tp_trace_file *file)
{
    return r->f.rank == UNSET || file->rank == r->f.rank;
}

static int answer(const request *r, const tp_trace_job *job)
{
    tp_buf out = {0};
    tp_json_w w;
    int status = 0;
    size_t shown = 0, wanted_files = 0;
    for (size_t i = 0; i < job->n; i++)
        wanted_files += is_wanted(r, job->files[i]);
    bool is_list = r->f.json && wanted_files > 1;
    tp_json_w_init(&w, &out, 1);
    if (is_list)
        tp_json_w_begin(&w, '[');
    for (size_t i = 0; i < job->n; i++) {
        const tp_trace_file *file = job->files[i];
        if (!is_wanted(r, file))
            continue;
        if (shown++ && !r->f.json)
            tp_buf_addc(&out, '\n');
        if (wanted_files > 1 && r->view && !r->f.json && !r->f.csv)
            tp_buf_addf(&out, "%s\n\n", file->path);
        put_file(r, file, &w, &out, &status);
    }
    if (is_list)
        tp_json_w_end(&w, ']');
    if (shown == 0) {
        fprintf(stderr, "temper: none of the files is of rank %lld\n", (long long)r->f.rank);
        status = 2;
    }
    if (status == 0) {
        if (r->f.json)
            tp_buf_addc(&out, '\n');
        return print(&out);
    }
    tp_buf_release(&out);
    return status;
}

int tp_cmd_trace(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "compare") == 0)
        return tp_trace_compare_command(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "export") == 0)
        return tp_trace_export_command(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "stats") == 0)
        return tp_trace_stats_command(argc - 1, argv + 1);
    request r = {.f = {.step = UNSET, .rank = UNSET, .stream = UNSET, .top = UNSET}};
    char *words[argc + 1];
    const char *paths[argc + 1];
    tp_error err = {0};
    tp_trace_job job;
    tp_trace_paths files = {0};
    const tp_usage usage = {
        .command = "trace",
        .arguments = "FILE... [VIEW]\ncompare BEFORE AFTER\nstats FILE... [--vs FILE...]\nexport "
                     "FILE -o OUT",
        .summary = "Where time and memory went: a PyTorch profiler trace (.json, .json.gz), an "
                   "Nsight Systems export (.sqlite), a PyTorch memory snapshot, a memory timeline "
                   "or a trace of Temper; several files, or a folder of them, are ranks of one "
                   "job.",
        .flags = flag_table,
        .details =
            "Views: operators, kernels, memory, comm, idle, launch, queue, critical-path, "
            "bandwidth, stacks, steps, threads, ranks, roofline, suspicious, bottlenecks.\n\n"
            "'temper trace compare --help', 'temper trace stats --help' and 'temper trace export "
            "--help' list the options of these.",
        .min_words = 1,
        .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &r.f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    r.paths = paths;
    if (!read_request(words, n, &r))
        return 2;
    if (r.f.csv)
        tp_terminal_pass_data();
    const tp_ingest_options options = {.keep = wanted(&r)};
    tp_status opened = tp_trace_paths_make(r.paths, r.n_paths, &files, &err);
    if (opened == TP_OK)
        opened = tp_trace_job_open(files.v, files.n, &options, &job, &err);
    tp_trace_paths_release(&files);
    if (opened != TP_OK)
        return tp_cli_fail(&err);
    bool is_job =
        r.view ? strcmp(r.view, "ranks") == 0 : job.n > 1 && r.f.rank == UNSET && !r.f.json;
    int status = is_job ? answer_job(&r, &job) : answer(&r, &job);
    tp_trace_job_release(&job);
    return status;
}
