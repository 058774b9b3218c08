/* `temper trace stats`: several recordings of the same work, or two groups of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"
#include "cli/cli.h"
#include "cli/trace_commands.h"
#include "instrument/ingest/trace_paths.h"
#include "instrument/report/trace_stats.h"
#include "instrument/ingest/ingest.h"
#include "text/json/json.h"

typedef struct {
    bool json, csv, markdown, per_step, vs;
    const char *scope, *name;
    int64_t top;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("vs", 0, vs, "the files behind it are a second group, judged against the first"),
    TP_SWITCH("per-step", 0, per_step,
              "only work of steps, times and counts divided by their number"),
    TP_SWITCH("json", 0, json, "as JSON: with the values of every file"),
    TP_SWITCH("csv", 0, csv, "all tables as comma-separated values"),
    TP_SWITCH("markdown", 0, markdown, "as Markdown"),
    TP_TEXT("scope", 0, "SCOPE", scope, "which device work counts: all (default), linked, steps"),
    TP_TEXT("name", 0, "PATTERN", name, "only device work whose name contains this"),
    TP_NUMBER("top", 0, "N", INT, top, 0, 1e9, "rows of a table (default 10; 0: all)"),
    {0}};

static void put_grid(const flags *f, const tp_grid *g, size_t limit, bool is_first, tp_json_w *w,
                     tp_buf *out)
{
    if (f->json) {
        tp_json_w_key(w, g->name);
        tp_grid_json(g, w);
        return;
    }
    tp_buf_adds(out, is_first && f->csv ? "" : "\n");
    if (f->csv)
        tp_grid_csv(g, out);
    else if (f->markdown)
        tp_grid_markdown(g, limit, out);
    else
        tp_grid_print(g, limit, tp_cli_width(), out);
}

static void put_json_head(const tp_repeats *r, tp_json_w *w)
{
    tp_json_w_key(w, "unit");
    tp_json_w_str(w, "file");
    tp_json_w_key(w, "per_step");
    tp_json_w_bool(w, r->per_step);
    tp_json_w_key(w, "level");
    tp_json_w_f64(w, 0.95);
    tp_json_w_key(w, "groups");
    tp_json_w_begin(w, '[');
    for (int k = 0; k < 2; k++)
        if (k == 0 || r->n_group[1])
            tp_json_w_i64(w, (int64_t)r->n_group[k]);
    tp_json_w_end(w, ']');
    tp_buf notes = {0};
    tp_trace_stats_notes(r, &notes);
    tp_json_w_key(w, "notes");
    tp_json_w_begin(w, '[');
    for (const char *at = tp_buf_str(&notes); *at;) {
        size_t n = strcspn(at, "\n");
        tp_json_w_strn(w, at, n);
        at += n + (at[n] == '\n');
    }
    tp_json_w_end(w, ']');
    tp_buf_release(&notes);
}

static void print(const flags *f, const tp_repeats *r)
{
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 1);
    if (f->json) {
        tp_json_w_begin(&w, '{');
        put_json_head(r, &w);
    } else if (!f->csv) {
        tp_trace_stats_headline(r, &out);
        tp_trace_stats_notes(r, &out);
    }
    size_t shown = 0;
    for (int k = 0; k < TP_TRACE_STATS_GRIDS; k++) {
        tp_grid g = {0};
        tp_trace_stats_grid(r, (tp_trace_stats_table)k, !f->json && !f->csv, &g);
        /* Files and totals are few, and each is asked for. */
        size_t limit = k <= TP_TRACE_STATS_TOTALS ? 0 : (size_t)f->top;
        bool is_wanted = k != TP_TRACE_STATS_VALUES || f->json || f->csv;
        if (is_wanted && (tp_grid_rows(&g) || f->json))
            put_grid(f, &g, limit, shown++ == 0, &w, &out);
        tp_grid_release(&g);
    }
    if (f->json) {
        tp_json_w_end(&w, '}');
        tp_buf_addc(&out, '\n');
    }
    fwrite(tp_buf_str(&out), 1, out.len, stdout);
    tp_buf_release(&out);
}

/* The same file twice would be counted as evidence that it is not. */
static tp_status refuse_duplicates(const char *const *paths, size_t n, tp_error *err)
{
    tp_status status = TP_OK;
    char **real = calloc(n, sizeof *real);
    TP_ASSERT(real);
    for (size_t i = 0; i < n && status == TP_OK; i++) {
        real[i] = realpath(paths[i], NULL);
        for (size_t k = 0; k < i && real[i] && status == TP_OK; k++)
            if (real[k] && strcmp(real[i], real[k]) == 0)
                status = tp_fail(err, TP_ERR_ARG,
                                 "'%s' is given twice: a file is no repeat of itself", paths[i]);
    }
    for (size_t i = 0; i < n; i++)
        free(real[i]);
    free(real);
    return status;
}

static tp_status answer(const flags *f, const char *const *paths, size_t n, size_t n_first,
                        tp_error *err)
{
    const tp_ingest_options options = {.keep = TP_KEEP_FAST | TP_KEEP_MEMORY};
    tp_select_options select = {.name = f->name};
    tp_repeats r;
    tp_status status = TP_OK;
    if (f->scope && !tp_scope_parse(f->scope, &select.scope))
        return tp_fail(err, TP_ERR_ARG, "--scope is all, linked or steps, not '%s'", f->scope);
    if (f->json + f->csv + f->markdown > 1)
        return tp_fail(err, TP_ERR_ARG, "one of --json, --csv and --markdown");
    TP_TRY(refuse_duplicates(paths, n, err));
    tp_repeats_init(&r, n, f->per_step);
    for (size_t i = 0; i < n && status == TP_OK; i++) {
        tp_trace_file *file = NULL;
        status = tp_trace_open(paths[i], &options, &file, err);
        if (status == TP_OK)
            status = tp_repeats_add(&r, file, i >= n_first, &select, err);
        tp_trace_close(file);
    }
    if (status == TP_OK)
        status = tp_repeats_conclude(&r, err);
    if (status == TP_OK)
        print(f, &r);
    tp_repeats_release(&r);
    return status;
}

int tp_trace_stats_command(int argc, char **argv)
{
    flags f = {.top = 10};
    char *words[argc + 1], *arguments[argc + 1];
    char separator[] = " ";
    tp_error err = {0};
    const tp_usage usage = {
        .command = "trace stats",
        .arguments = "FILE...\nFILE... --vs FILE...",
        .summary = "Several recordings of the same work: every figure with its mean, spread and "
                   "95 % interval over files; or two groups of them, compared.",
        .flags = flag_table,
        .details = "A folder stands for the traces in it, the folder of a run too; '-' is standard "
                   "input.\n"
                   "The unit is the file: n is the number of recordings, not of steps.\n"
                   "Verdicts: better, worse, same (within 1 %), not shown; they take 4 files a "
                   "side.",
        .min_words = 1,
        .max_words = -1};
    /* `--vs` stands between words: it travels through the parser as one that no file has. */
    int n_separators = 0;
    for (int i = 0; i < argc; i++) {
        bool is_separator = i > 0 && strcmp(argv[i], "--vs") == 0;
        n_separators += is_separator;
        arguments[i] = is_separator ? separator : argv[i];
    }
    arguments[argc] = NULL;
    int n = tp_cli_parse(&usage, argc, arguments, &f, words), n_first = 0;
    if (n < 0)
        return n == -2 ? 0 : 2;
    if (f.csv)
        tp_terminal_pass_data();
    if (f.vs) {
        fprintf(stderr, "temper trace stats: write --vs out, as a word between the files\n");
        return 2;
    }
    if (n_separators == 0) {
        n_first = n;
    } else {
        while (n_first < n && words[n_first] != separator)
            n_first++;
        n--;
        for (int i = n_first; i < n; i++)
            words[i] = words[i + 1];
    }
    if (n_separators > 1 || n_first == 0 || (n_separators && n_first == n)) {
        fprintf(stderr, "temper trace stats: expected FILE... --vs FILE..., with files on both "
                        "sides of one --vs\n");
        return 2;
    }
    /* A folder is all its traces, on the side of --vs where it stands. */
    tp_trace_paths first = {0}, all = {0};
    tp_status status =
        tp_trace_paths_make((const char *const *)words, (size_t)n_first, &first, &err);
    if (status == TP_OK)
        status = tp_trace_paths_make((const char *const *)words, (size_t)n, &all, &err);
    if (status == TP_OK)
        status = answer(&f, all.v, all.n, first.n, &err);
    tp_trace_paths_release(&first);
    tp_trace_paths_release(&all);
    return status == TP_OK ? 0 : tp_cli_fail(&err);
}
