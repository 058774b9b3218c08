/* trace_report.c - traces of one job, opened and shown: the overview, a view, ranks side by side.
 */
#include "temper/trace_report.h"

#include <string.h>

#include "api/trace_options.h"
#include "base/terminal.h"
#include "instrument/ingest/trace_paths.h"
#include "instrument/report/trace_ranks.h"
#include "instrument/report/trace_report.h"

const char *tp_trace_view_name(size_t i)
{
    const char *last = "";
    for (const tp_trace_report_view *v = tp_trace_report_views; v->view; v++) {
        if (strcmp(v->view, last) != 0 && i-- == 0)
            return v->view;
        last = v->view;
    }
    return i == 0 ? "ranks" : NULL;
}

typedef struct {
    const tp_trace_report_options *o;
    tp_select_options select;
    tp_finding_limits limits;
    tp_grid_page page;
} request;

/* Milliseconds, 0: the usual limit. */
static tp_status read_limit(double ms, const char *name, int64_t *limit_ns, tp_error *err)
{
    if (!(ms >= 0 && ms <= 1e9))
        return tp_fail(err, TP_ERR_ARG, "%s is %g ms; expected 0 to 1e9", name, ms);
    if (ms > 0)
        *limit_ns = (int64_t)(ms * 1e6);
    return TP_OK;
}

/* What the readers must keep: memory is what big traces cost. */
static unsigned wanted(const char *view)
{
    unsigned keep = TP_KEEP_FAST | TP_KEEP_MEMORY | TP_KEEP_SYNCS;
    for (const tp_trace_report_view *v = tp_trace_report_views; v->view; v++)
        if (view && strcmp(v->view, view) == 0)
            keep |= v->keep;
    return keep;
}

/* Of a step in which nothing was launched, these views show what the host did. */
static bool shows_the_host(const request *r)
{
    static const char *const views[] = {"operators", "threads", "stacks", "memory"};
    const tp_select_options *s = &r->select;
    bool by_steps_alone = !s->has_stream && !s->name && s->scope != TP_SCOPE_LINKED;
    for (size_t i = 0; i < sizeof views / sizeof *views && r->o->view; i++)
        if (strcmp(r->o->view, views[i]) == 0)
            return by_steps_alone;
    return false;
}

/* A step, stream or scope that selects nothing is a mistake of the user, told as one. */
static tp_status check_filter(const request *r, const tp_trace_report *report, tp_error *err)
{
    const tp_selection *s = &report->selection;
    const char *path = report->file->path;
    TP_OWN(tp_buf) rest = {0};
    char time[32];
    if (!report->file->events)
        return TP_OK;
    TP_TRY(tp_selection_check_steps(s, path, err));
    if (s->n > 0 || s->n_all == 0 || shows_the_host(r))
        return TP_OK;
    if (s->n_stepless)
        tp_buf_addf(&rest, "; " TP_NOTE_STEPLESS, s->n_stepless, tp_human_ns(s->stepless_ns, time));
    if (r->select.has_step)
        return tp_fail(err, TP_ERR_ARG,
                       "no device work in step %lld of %s, whose steps are %lld to %lld%s",
                       (long long)r->select.step, path, (long long)s->steps.v[0].number,
                       (long long)s->steps.v[s->steps.n - 1].number, tp_buf_str(&rest));
    if (r->select.scope == TP_SCOPE_STEPS && s->n_stepless)
        return tp_fail(err, TP_ERR_ARG, "no device work in the steps of %s%s", path,
                       tp_buf_str(&rest));
    if (r->select.scope == TP_SCOPE_LINKED && s->n_shared)
        return tp_fail(
            err, TP_ERR_ARG,
            "numbers of several processes repeat in %s, so that nothing links its device "
            "work to calls: give the file of each rank by itself, or leave out --scope",
            path);
    return tp_fail(err, TP_ERR_ARG, "the filters leave none of the %zu device activities of %s",
                   s->n_all, path);
}

/* What cannot be asked of this kind of file is told, not shown empty. */
static tp_status check_view(const request *r, const tp_trace_report *report, tp_error *err)
{
    const char *view = r->o->view;
    if (!view || report->file->events || strcmp(view, "memory") == 0)
        return TP_OK;
    return tp_fail(err, TP_ERR_UNSUPPORTED,
                   "%s is a %s: nothing in it answers '%s'; its views are memory, and the overview",
                   report->file->path, tp_file_kind_about(report->file->kind), view);
}

/* The grids of one view, or with JSON everything that there is to say beside the headline figures.
 */
static void put_views(request *r, tp_trace_report *report)
{
    const char *view = r->o->view;
    bool is_json = r->page.form == TP_FORM_JSON, is_first = true;
    for (const tp_trace_report_view *v = tp_trace_report_views; v->view; v++) {
        tp_grid grid = {.name = v->grid};
        bool is_dump = !v->in_json && strcmp(v->grid, "memory_timeline") == 0;
        bool is_memory = strcmp(v->view, "memory") == 0;
        if (view ? strcmp(v->view, view) != 0 || (is_dump && !is_json)
                 : !v->in_json || (!report->file->events && !is_memory))
            continue;
        v->fill(report, &grid);
        tp_grid_page_put(&r->page, &grid, r->page.top,
                         !is_first && r->page.form != TP_FORM_MARKDOWN);
        tp_grid_release(&grid);
        is_first = false;
    }
}

static void put_report(request *r, tp_trace_report *report)
{
    tp_grid_page *page = &r->page;
    if (page->form == TP_FORM_JSON) {
        tp_json_w_begin(&page->w, '{');
        tp_trace_report_json(report, &page->w);
        put_views(r, report);
        tp_json_w_end(&page->w, '}');
    } else if (r->o->view) {
        put_views(r, report);
    } else if (page->form == TP_FORM_MARKDOWN) {
        tp_trace_report_screen_markdown(report, page->top, &page->out);
    } else {
        tp_trace_report_screen(report, page->top, page->width, &page->out);
    }
}

/* Where a report has no place for them: one a line, behind `n` others. */
static size_t put_notes(const tp_notes *notes, bool warnings_alone, size_t n, tp_buf *out)
{
    for (size_t i = 0; i < notes->n; i++) {
        const tp_note *note = &notes->list[i];
        if (warnings_alone && note->level != TP_NOTE_WARNING)
            continue;
        tp_buf_addf(out, "%s%s", n++ ? "" : "\n", warnings_alone ? "! " : "");
        tp_buf_add_shown(out, note->text, strlen(note->text), true);
        tp_buf_addc(out, '\n');
    }
    return n;
}

static bool is_prose(const request *r)
{
    return r->page.form != TP_FORM_JSON && r->page.form != TP_FORM_CSV;
}

static tp_status put_file(request *r, const tp_trace_file *file, tp_error *err)
{
    TP_OWN(tp_trace_report) report = {0};
    tp_trace_report_make(file, &r->select, &report);
    report.limits = r->limits;
    if (!r->o->view)
        tp_trace_report_prepare(&report);
    TP_TRY(check_filter(r, &report, err));
    TP_TRY(check_view(r, &report, err));
    put_report(r, &report);
    if (r->o->view && is_prose(r))
        put_notes(&file->notes, true, 0, &r->page.out);
    return TP_OK;
}

static void put_job_notes(request *r, const tp_trace_job *job)
{
    size_t n = put_notes(&job->notes, false, 0, &r->page.out);
    for (size_t i = 0; i < job->n; i++)
        n = put_notes(&job->files[i]->notes, true, n, &r->page.out);
    if (!r->o->view)
        tp_buf_adds(&r->page.out,
                    "\n--rank N shows one of them as a whole, a view shows all in turn\n");
}

/* All files at once: the view `ranks`, and what several files show without a view. */
static tp_status put_job(request *r, const tp_trace_job *job, tp_error *err)
{
    TP_OWN(tp_rank_grids) grids = {0};
    tp_grid_page *page = &r->page;
    bool is_json = page->form == TP_FORM_JSON;
    TP_TRY(tp_trace_report_ranks(job, &r->select, &grids, err));
    if (is_json)
        tp_json_w_begin(&page->w, '{');
    tp_grid_page_put(page, &grids.ranks, page->top, false);
    if (tp_grid_rows(&grids.collectives) || is_json)
        tp_grid_page_put(page, &grids.collectives, page->top, true);
    if (is_json)
        tp_json_w_end(&page->w, '}');
    if (is_prose(r))
        put_job_notes(r, job);
    return TP_OK;
}

static bool is_wanted(const request *r, const tp_trace_file *file)
{
    return !r->o->has_rank || file->rank == r->o->rank;
}

static tp_status put_files(request *r, const tp_trace_job *job, tp_error *err)
{
    tp_grid_page *page = &r->page;
    tp_status status = TP_OK;
    size_t shown = 0, n = 0;
    for (size_t i = 0; i < job->n; i++)
        n += is_wanted(r, job->files[i]);
    if (n == 0)
        return tp_fail(err, TP_ERR_ARG, "none of the files is of rank %lld", (long long)r->o->rank);
    bool is_json = page->form == TP_FORM_JSON;
    if (is_json && n > 1)
        tp_json_w_begin(&page->w, '[');
    for (size_t i = 0; i < job->n && status == TP_OK; i++) {
        const tp_trace_file *file = job->files[i];
        if (!is_wanted(r, file))
            continue;
        if (shown++ && !is_json)
            tp_buf_addc(&page->out, '\n');
        if (n > 1 && r->o->view && is_prose(r))
            tp_buf_addf(&page->out, "%s\n\n", file->path);
        status = put_file(r, file, err);
    }
    if (is_json && n > 1)
        tp_json_w_end(&page->w, ']');
    return status;
}

/* Else each is shown by itself, and it is told why. */
static bool ranks_differ(request *r, const tp_trace_job *job)
{
    tp_error err = {0};
    if (tp_trace_job_check_ranks(job, &err) == TP_OK)
        return true;
    tp_buf_adds(&r->page.out, "! ");
    tp_buf_add_shown(&r->page.out, err.message, strlen(err.message), true);
    tp_buf_adds(&r->page.out, "\n! each file by itself:\n\n");
    return false;
}

static tp_status put(request *r, const tp_trace_job *job, tp_error *err)
{
    const tp_trace_report_options *o = r->o;
    bool is_overview = !o->view && job->n > 1 && !o->has_rank && o->form != TP_FORM_JSON;
    bool wants_ranks = o->view && strcmp(o->view, "ranks") == 0;
    if (wants_ranks)
        TP_TRY(tp_trace_job_check_ranks(job, err));
    if (!wants_ranks && !(is_overview && ranks_differ(r, job)))
        return put_files(r, job, err);
    return put_job(r, job, err);
}

tp_status tp_trace_report_write(const char *const *paths, size_t n,
                                const tp_trace_report_options *options, char **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_trace_report_options o;
    request r = {.o = &o, .limits = TP_FINDING_LIMITS};
    TP_OWN(tp_trace_paths) files = {0};
    TP_OWN(tp_trace_job) job = {0};
    TP_TRY(tp_trace_options_read(options, &o, &r.select, err));
    TP_TRY(read_limit(o.slow_operator_ms, "slow_operator_ms", &r.limits.operator_ns, err));
    TP_TRY(read_limit(o.slow_kernel_ms, "slow_kernel_ms", &r.limits.kernel_ns, err));
    if (n == 0)
        return tp_fail(err, TP_ERR_ARG, "a report needs at least one file");
    if (o.form == TP_FORM_CSV && !o.view)
        return tp_fail(err, TP_ERR_ARG, "--csv needs a view, such as kernels");
    if (o.view && !tp_trace_report_view_exists(o.view))
        return tp_fail(err, TP_ERR_ARG, "there is no view '%.60s'", o.view);
    const tp_ingest_options keep = {.keep = wanted(o.view)};
    tp_status status = tp_trace_paths_make(paths, n, &files, err);
    if (status == TP_OK)
        status = tp_trace_job_open(files.v, files.n, &keep, &job, err);
    if (status != TP_OK)
        return status;
    tp_grid_page_begin(&r.page, o.form, tp_trace_options_top(&o, o.view ? 30 : 10), o.width);
    TP_HAND_OVER(put(&r, &job, err), ret, tp_grid_page_end(&r.page), tp_buf_release(&r.page.out));
}
