/* trace_repeats.c - several recordings of the same work, or two groups of them; options of reports.
 */
#include <stdlib.h>
#include <string.h>

#include "api/trace_options.h"
#include "base/sized.h"
#include "instrument/ingest/ingest.h"
#include "instrument/ingest/trace_paths.h"
#include "instrument/report/trace_stats.h"

/* ---- options ---- */

tp_status tp_trace_scope_read(const char *word, tp_scope *ret, tp_error *err)
{
    if (word && !tp_scope_parse(word, ret))
        return tp_fail(err, TP_ERR_ARG, "--scope is all, linked or steps, not '%.60s'", word);
    return TP_OK;
}

tp_status tp_trace_options_read(const tp_trace_report_options *theirs, tp_trace_report_options *ret,
                                tp_select_options *select, tp_error *err)
{
    TP_TRY(tp_sized_read(ret, sizeof *ret, theirs, "tp_trace_report_options", err));
    *select = (tp_select_options){.has_step = ret->has_step,
                                  .step = ret->step,
                                  .has_stream = ret->has_stream,
                                  .stream = ret->stream,
                                  .name = ret->name,
                                  .comm = ret->comm};
    /* An empty one is in every name: that of a shell's variable that is not set. */
    if ((ret->name && !*ret->name) || (ret->comm && !*ret->comm))
        return tp_fail(err, TP_ERR_ARG,
                       "the pattern '%s' is empty: give part of a name, or leave it out",
                       ret->name && !*ret->name ? "name" : "comm");
    return tp_trace_scope_read(ret->scope, &select->scope, err);
}

size_t tp_trace_options_top(const tp_trace_report_options *o, size_t by_default)
{
    return o->top < 0 ? 0 : o->top == 0 ? by_default : (size_t)o->top;
}

/* ---- several recordings ---- */

static void put_json_head(const tp_repeats *r, tp_json_w *w)
{
    tp_json_w_put_str(w, "unit", "file");
    tp_json_w_put_bool(w, "per_step", r->per_step);
    tp_json_w_put_f64(w, "level", 0.95);
    tp_json_w_put_begin(w, "groups", '[');
    for (int k = 0; k < 2; k++)
        if (k == 0 || r->n_group[1])
            tp_json_w_i64(w, (int64_t)r->n_group[k]);
    tp_json_w_end(w, ']');
    TP_OWN(tp_buf) notes = {0};
    tp_trace_stats_notes(r, &notes);
    tp_json_w_put_begin(w, "notes", '[');
    for (const char *at = tp_buf_str(&notes); *at;) {
        size_t n = strcspn(at, "\n");
        tp_json_w_strn(w, at, n);
        at += n + (at[n] == '\n');
    }
    tp_json_w_end(w, ']');
}

static char *print(const tp_trace_report_options *o, const tp_repeats *r)
{
    tp_grid_page page;
    bool is_csv = o->form == TP_FORM_CSV, is_json = o->form == TP_FORM_JSON;
    tp_grid_page_begin(&page, o->form, tp_trace_options_top(o, 10), o->width);
    if (is_json) {
        tp_json_w_begin(&page.w, '{');
        put_json_head(r, &page.w);
    } else if (!is_csv) {
        tp_trace_stats_headline(r, &page.out);
        tp_trace_stats_notes(r, &page.out);
    }
    for (int k = 0; k < TP_TRACE_STATS_GRIDS; k++) {
        TP_OWN(tp_grid) g = {0};
        tp_trace_stats_grid(r, (tp_trace_stats_table)k, !is_json && !is_csv, &g);
        /* Files and totals are few, and each is asked for. */
        size_t limit = k <= TP_TRACE_STATS_TOTALS ? 0 : page.top;
        bool is_wanted = k != TP_TRACE_STATS_VALUES || is_json || is_csv;
        if (is_wanted && (tp_grid_rows(&g) || is_json))
            tp_grid_page_put(&page, &g, limit, page.out.len > 0);
    }
    if (is_json)
        tp_json_w_end(&page.w, '}');
    return tp_grid_page_end(&page);
}

/* The same file twice would be counted as evidence that it is not. */
static tp_status refuse_duplicates(const char *const *paths, size_t n, tp_error *err)
{
    tp_status status = TP_OK;
    TP_FREED char **real = tp_new(n, sizeof *real);
    for (size_t i = 0; i < n && status == TP_OK; i++) {
        real[i] = realpath(paths[i], NULL);
        for (size_t k = 0; k < i && real[i] && status == TP_OK; k++)
            if (real[k] && strcmp(real[i], real[k]) == 0)
                status = tp_fail(err, TP_ERR_ARG,
                                 "'%s' is given twice: a file is no repeat of itself", paths[i]);
    }
    for (size_t i = 0; i < n; i++)
        free(real[i]);
    return status;
}

static tp_status repeat(const tp_trace_report_options *o, const tp_select_options *select,
                        const tp_trace_paths *files, size_t n_first, char **ret, tp_error *err)
{
    const tp_ingest_options options = {.keep = TP_KEEP_FAST | TP_KEEP_MEMORY};
    TP_OWN(tp_repeats) r = {0};
    TP_TRY(refuse_duplicates(files->v, files->n, err));
    tp_repeats_init(&r, files->n, o->per_step);
    for (size_t i = 0; i < files->n; i++) {
        tp_trace_file *file = NULL;
        TP_TRY(tp_trace_open(files->v[i], &options, &file, err));
        tp_status status = tp_repeats_add(&r, file, i >= n_first, select, err);
        tp_trace_close(file);
        TP_TRY(status);
    }
    TP_TRY(tp_repeats_conclude(&r, err));
    if (o->worse)
        *o->worse = tp_trace_stats_is_worse(&r);
    *ret = print(o, &r);
    return TP_OK;
}

tp_status tp_trace_report_repeats(const char *const *paths, size_t n, const char *const *others,
                                  size_t n_others, const tp_trace_report_options *options,
                                  char **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED((paths || !n) && (others || !n_others) && ret, err);
    tp_trace_report_options o;
    tp_select_options select;
    TP_OWN(tp_trace_paths) first = {0}, all = {0};
    TP_TRY(tp_trace_options_read(options, &o, &select, err));
    if (n == 0)
        return tp_fail(err, TP_ERR_ARG, "recordings are compared: at least one is needed");
    TP_FREED const char **words = tp_new(n + n_others + 1, sizeof *words);
    memcpy(words, paths, n * sizeof *words);
    if (n_others)
        memcpy(words + n, others, n_others * sizeof *words);
    /* A folder is all its traces, in the group where it stands. */
    TP_TRY(tp_trace_paths_make(words, n, &first, err));
    TP_TRY(tp_trace_paths_make(words, n + n_others, &all, err));
    return repeat(&o, &select, &all, first.n, ret, err);
}
