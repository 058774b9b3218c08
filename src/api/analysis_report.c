/* analysis_report.c - the report of an analysis: Markdown, and a folder with that and the
 * dashboard.
 */
#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/output.h"
#include "base/platform.h"
#include "base/sized.h"
#include "base/terminal.h"
#include "instrument/report/picture.h"
#include "instrument/report/run_dashboard.h"
#include "temper/analysis.h"

/* Foreign text in Markdown, which has HTML too: it is no markup, and no line of its own. */
static void add_foreign(tp_buf *out, const char *text)
{
    TP_OWN(tp_buf) shown = {0}, safe = {0};
    tp_buf_add_shown(&shown, text, strlen(text), true);
    tp_markup_escape(&safe, tp_buf_str(&shown));
    for (const char *c = tp_buf_str(&safe); *c; c++)
        if (strchr("[`*", *c))
            tp_buf_addf(out, "&#%d;", *c);
        else
            tp_buf_addc(out, *c);
}

static void add_inputs(tp_buf *out, const tp_analysis *a, size_t index)
{
    const char *text, *key;
    double value;
    for (size_t i = 0; (key = tp_analysis_input(a, index, i, &value, &text)); i++) {
        tp_buf_addf(out, "- %s: ", key);
        if (text || isnan(value))
            add_foreign(out, text ? text : "unknown");
        else
            tp_buf_addf(out, "%.6g", value);
        tp_buf_addc(out, '\n');
    }
}

/* " 0.5 |", " - |" where nobody knows. */
static void add_cell(tp_buf *out, double v)
{
    if (isnan(v))
        tp_buf_adds(out, " - |");
    else
        tp_buf_addf(out, " %.4g |", v);
}

static void add_row(tp_buf *out, const tp_analysis_dimension *d)
{
    tp_buf_addf(out, "| %s |", d->name);
    add_cell(out, d->error ? (double)NAN : d->value);
    if (d->error || isnan(d->ci_lo) || isnan(d->ci_hi))
        tp_buf_adds(out, " - |");
    else
        tp_buf_addf(out, " %.4g .. %.4g |", d->ci_lo, d->ci_hi);
    if (d->error)
        tp_buf_adds(out, " - |");
    else
        tp_buf_addf(out, " %zu |", d->n);
    add_cell(out, d->threshold);
    tp_buf_addf(out, " %s |\n", d->verdict);
}

/* The first run was judged; of some dimensions all were. */
static void add_runs(tp_buf *out, const tp_analysis *a)
{
    TP_OWN(tp_buf) of_all = {0};
    const char *name;
    size_t n = 0;
    if (!tp_analysis_run(a, 1))
        return;
    for (size_t i = 0; i < tp_analysis_count(a); i++) {
        name = tp_analysis_result(a, i)->name;
        if (strcmp(name, "robustness") == 0 || strcmp(name, "scalability") == 0)
            tp_buf_addf(&of_all, "%s%s", n++ ? " and " : ", of ", name);
    }
    if (n == tp_analysis_count(a))
        tp_buf_adds(out, "All runs are judged:\n\n");
    else
        tp_buf_addf(out, "The first run is judged%s%s:\n\n", tp_buf_str(&of_all), n ? " all" : "");
    for (size_t i = 0; (name = tp_analysis_run(a, i)); i++) {
        tp_buf_adds(out, "- ");
        add_foreign(out, name);
        tp_buf_addc(out, '\n');
    }
    tp_buf_addc(out, '\n');
}

static void add_answer(tp_buf *out, const tp_analysis *a, size_t index)
{
    const tp_analysis_dimension *d = tp_analysis_result(a, index);
    tp_buf_addf(out, "\n## %s\n\n%s (%s). %s", d->name, d->about, d->unit,
                d->error ? "It could not be answered: " : "Method: ");
    add_foreign(out, d->error ? d->error : d->method);
    tp_buf_adds(out, "\n\n");
    add_inputs(out, a, index);
    if (strcmp(d->verdict, "fail") == 0 && d->advice)
        tp_buf_addf(out, "\nWhat to do: %s.\n", d->advice);
}

char *tp_analysis_markdown(const tp_analysis *a, const char *title)
{
    tp_buf out = {0};
    tp_analysis_summary s = tp_analysis_summarize(a);
    tp_buf_adds(&out, "# ");
    add_foreign(&out, title);
    tp_buf_addf(&out,
                "\n\n%zu dimension%s: %zu succeeded, %zu failed (%zu for want of data); %zu below "
                "the threshold.\n\n",
                s.ran, tp_plural(s.ran), s.succeeded, s.failed, s.unknown, s.below_threshold);
    add_runs(&out, a);
    tp_buf_adds(&out, "| dimension | value | 95 % interval | n | threshold | verdict |\n"
                      "| --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < s.ran; i++)
        add_row(&out, tp_analysis_result(a, i));
    for (size_t i = 0; i < s.ran; i++)
        add_answer(&out, a, i);
    return out.data;
}

/* ---- the folder ---- */

static tp_status read_formats(const tp_report_options *o, unsigned *ret, tp_error *err)
{
    *ret = o->n_formats ? 0 : ~0U;
    for (size_t i = 0; i < o->n_formats; i++) {
        unsigned format = tp_dashboard_format(o->formats[i]);
        if (!format)
            return tp_fail(err, TP_ERR_CONFIG,
                           "a dashboard is drawn as svg, html, png or pdf, not as '%.40s'",
                           o->formats[i]);
        *ret |= format;
    }
    return TP_OK;
}

static void add_folder(tp_buf *out, const tp_metrics *m, const tp_report_options *o)
{
    const char *path = tp_metrics_path(m);
    bool is_own = strcmp(tp_metrics_format(m), "temper") == 0 && tp_dir_exists(path);
    if (o->folder)
        tp_buf_adds(out, o->folder);
    else
        tp_buf_addf(out, "%s%sreport", is_own ? path : "", is_own ? "/" : "");
}

tp_status tp_analysis_write_report(const tp_analysis *a, tp_metrics *m,
                                   const tp_report_options *options, char **ret_path,
                                   char **ret_note, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_report_options o;
    unsigned formats;
    TP_NEED(a && m && ret_path && ret_note, err);
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_report_options", err));
    TP_TRY(read_formats(&o, &formats, err));
    tp_buf why = {0}, folder = {0}, file = {0};
    add_folder(&folder, m, &o);
    tp_buf_addf(&file, "%s/report.md", folder.data);
    TP_FREED char *text = tp_analysis_markdown(a, tp_metrics_name(m));
    TP_OWN(tp_buf) report = {0};
    tp_buf_adds(&report, text);
    if (formats & TP_DASHBOARD_SVG)
        tp_buf_adds(&report, "\n![The dashboard](dashboard.svg)\n");
    tp_status status = tp_dir_make(folder.data, err);
    if (status == TP_OK)
        status = tp_output_put(file.data, report.data, report.len, err);
    if (status == TP_OK)
        status = tp_run_dashboard_write(a, m, folder.data, formats, &why, err);
    tp_buf_release(&file);
    if (status == TP_OK) {
        *ret_path = folder.data;
        *ret_note = why.data; /* NULL: nothing was left out */
    } else {
        tp_buf_release(&folder);
        tp_buf_release(&why);
    }
    return status;
}
