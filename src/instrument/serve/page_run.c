/* page_run.c - one run: its curves, figures as JSON, settings, samples, alarms, report. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/platform.h"
#include "base/strings.h"
#include "base/vec.h"
#include "instrument/analyze/runs/curve.h"
#include "instrument/ingest/runs/place.h"
#include "instrument/ingest/runs/views.h"
#include "instrument/report/run_dashboard.h"
#include "instrument/serve/plot.h"
#include "instrument/serve/site.h"
#include "instrument/store/run_index.h"
#include "text/json/json.h"

static const struct {
    const char *path, *name;
} tabs[] = {{"", "Curves"},           {"operators", "Operators"}, {"memory", "Memory"},
            {"timeline", "Timeline"}, {"samples", "Samples"},     {"alarms", "Alarms"},
            {"report", "Report"},     {"settings", "Settings"}};

/* The line that is renewed while the run goes on: as soon as the run is read on, which is more
 * often than the folder is looked through. */
static void put_summary(tp_page *p, const tp_run_entry *listed)
{
    tp_buf *out = &p->reply->body;
    tp_run_entry now = *listed;
    const tp_run_entry *e = &now;
    tp_metrics *m = tp_page_opened_run(p, listed);
    if (m)
        tp_run_entry_see(&now, m);
    const struct {
        const char *name;
        bool is_known;
        double value;
    } figures[] = {{"loss", e->has_loss, e->loss},
                   {"reward", e->has_reward, e->reward},
                   {"per second", e->has_rate, e->tokens_per_s}};
    tp_page_text(out, e->format);
    if (e->algorithm) {
        tp_buf_adds(out, ", ");
        tp_page_text(out, e->algorithm);
    }
    if (e->state) {
        tp_buf_adds(out, ", <b>");
        tp_page_text(out, e->state);
        tp_buf_adds(out, "</b>");
    }
    if (e->step >= 0)
        tp_buf_addf(out, ", step %lld", (long long)e->step);
    if (e->max_steps > 0)
        tp_buf_addf(out, " of %lld", (long long)e->max_steps);
    for (size_t i = 0; i < TP_COUNTOF(figures); i++)
        if (figures[i].is_known) {
            tp_buf_addf(out, ", %s ", figures[i].name);
            tp_page_result(out, figures[i].value);
        }
}

void tp_page_run_head(tp_page *p, const tp_run_entry *e, const char *here)
{
    tp_buf *out = &p->reply->body;
    tp_page_begin(p, e->path);
    tp_buf_addf(out, "<p id=summary data-run=%s>", e->id);
    put_summary(p, e);
    tp_buf_adds(out, "</p>\n<nav class=tabs>");
    for (size_t i = 0; i < TP_COUNTOF(tabs); i++)
        tp_buf_addf(out, "<a href=\"/run/%s%s%s\"%s>%s</a> ", e->id, tabs[i].path[0] ? "/" : "",
                    tabs[i].path, strcmp(tabs[i].path, here) == 0 ? " aria-current=page" : "",
                    tabs[i].name);
    tp_buf_adds(out, "</nav>\n");
}

void tp_page_summary(tp_page *p, const tp_run_entry *e)
{
    put_summary(p, e);
    tp_page_reply(p, "text/html; charset=utf-8");
}

/* ---- curves ---- */

static tp_plot_axis axis_of(tp_page *p)
{
    const char *x = tp_http_query(p->request, "x");
    return x && strcmp(x, "time") == 0 ? TP_PLOT_TIME : TP_PLOT_STEP;
}

/* The first one comes with the page. */
static void put_figure(tp_page *p, const tp_run_entry *e, tp_metrics *m, size_t i, bool is_first)
{
    const char *tag = tp_metrics_tag(m, i);
    tp_metric_point first, last;
    size_t n = tp_view_ends(m, i, &first, &last);
    tp_plot plot = {.axis = axis_of(p)};
    TP_OWN(tp_buf) address = {0}, alt = {0}, svg = {0};
    if (is_first && tp_plot_add(&plot, m, tag, tag))
        tp_plot_svg(&plot, tag, &svg);
    tp_plot_release(&plot);
    tp_buf_addf(&address, "/run/%s/plot.svg?x=%s&amp;v=%" PRIx64, e->id,
                axis_of(p) == TP_PLOT_TIME ? "time" : "step", tp_page_version(p, e));
    tp_buf_addf(&alt, "%s: %zu point%s, the last one %.6g", tag, n, tp_plural((uint64_t)n),
                n ? last.value : (double)NAN);
    tp_page_figure(&p->reply->body, tp_buf_str(&address), tag, tp_buf_str(&alt),
                   svg.len ? &svg : NULL);
}

static void put_notes(tp_page *p, tp_metrics *m)
{
    for (size_t i = 0; i < tp_metrics_notes(m); i++) {
        bool is_warning;
        const char *text = tp_metrics_note(m, i, &is_warning);
        tp_buf_addf(&p->reply->body, "<p class=\"note%s\">", is_warning ? " bad" : "");
        tp_page_text(&p->reply->body, text);
    }
}

void tp_page_curves(tp_page *p, const tp_run_entry *e)
{
    tp_buf *out = &p->reply->body;
    tp_metrics *m = tp_page_open_run(p, e);
    if (!m)
        return;
    size_t n = tp_metrics_count(m), *order = tp_vec_new(n + 1, sizeof *order);
    tp_curve_order(m, order);
    tp_page_run_head(p, e, "");
    tp_buf_addf(out,
                "<p class=filter><label>Metrics <input id=filter autocomplete=off "
                "placeholder=\"loss\"></label> over <a href=\"?x=step\">steps</a>, <a "
                "href=\"?x=time\">time</a>; <a href=\"/run/%s/metrics.json\">as JSON</a></p>\n",
                e->id);
    put_notes(p, m);
    tp_buf_adds(out, "<div class=figures>\n");
    for (size_t i = 0; i < n; i++)
        put_figure(p, e, m, order[i], i == 0);
    free(order);
    tp_buf_adds(out, tp_metrics_count(m) ? "</div>\n" : "</div>\n<p>nothing was recorded\n");
    tp_page_end(p);
}

void tp_page_plot(tp_page *p, const tp_run_entry *e)
{
    const char *tag = tp_http_query(p->request, "tag");
    tp_metrics *m = tp_page_open_run(p, e);
    TP_OWN(tp_plot) plot = {.axis = axis_of(p)};
    if (!m || !tag)
        return;
    if (tp_plot_add(&plot, m, tag, tag)) {
        tp_plot_svg(&plot, tag, &p->reply->body);
        tp_page_reply(p, "image/svg+xml");
        tp_page_keep(p, tp_page_version(p, e));
    }
}

static bool add_piece(void *user, const char *text, size_t n)
{
    tp_buf_add(user, text, n);
    return true;
}

void tp_page_metrics_json(tp_page *p, const tp_run_entry *e)
{
    const char *tag = tp_http_query(p->request, "tag");
    tp_metrics *m = tp_page_open_run(p, e);
    tp_error why = {0};
    if (!m)
        return;
    if (tp_metrics_write_json(m, TP_POINTS_NATIVE, &tag, tag != NULL, add_piece, &p->reply->body,
                              &why) == TP_OK)
        tp_page_reply(p, "application/json");
    else
        tp_page_say(p, 404, "%s", why.message);
}

void tp_page_settings(tp_page *p, const tp_run_entry *e)
{
    tp_buf *out = &p->reply->body;
    tp_metrics *m = tp_page_open_run(p, e);
    if (!m)
        return;
    tp_page_run_head(p, e, "settings");
    tp_buf_adds(out, "<table>\n<thead><tr><th>key<th>value<tbody>\n");
    for (size_t i = 0; i < tp_metrics_settings(m); i++) {
        const char *value;
        tp_buf_adds(out, "<tr><td>");
        tp_page_text(out, tp_metrics_setting(m, i, &value));
        tp_buf_adds(out, "<td>");
        tp_page_text(out, value);
        tp_buf_addc(out, '\n');
    }
    tp_buf_adds(out, "</table>\n");
    if (!tp_metrics_settings(m))
        tp_buf_adds(out, "<p>the run recorded no settings\n");
    tp_page_end(p);
}

/* ---- files of one object per line: samples, alarms ---- */

enum { MOST_LINES = 200, MOST_BYTES = 8 << 20 };

static void put_cell(tp_buf *out, const tp_json *v)
{
    double number;
    bool truth;
    tp_buf_adds(out, tp_json_f64(v, &number) ? "<td class=n>" : "<td class=text>");
    if (tp_json_str(v))
        tp_page_text(out, tp_json_str(v));
    else if (tp_json_f64(v, &number))
        tp_page_number(out, number);
    else if (tp_json_bool(v, &truth))
        tp_buf_adds(out, truth ? "yes" : "no");
    else if (v && v->type != TP_JSON_NULL) {
        TP_OWN(tp_buf) inner = {0};
        tp_json_text(v, &inner);
        tp_page_text(out, tp_buf_str(&inner));
    }
}

/* Whole lines of the file's beginning, MOST_BYTES of them at most. */
static tp_status read_first_lines(const char *path, tp_buf *ret, bool *ret_is_cut, tp_error *err)
{
    int fd;
    int64_t size;
    ssize_t got = 1;
    TP_TRY(tp_input_open(path, TP_INPUT_FILE, &fd, &size, err));
    tp_buf_reserve(ret, MOST_BYTES + 1);
    while (ret->len <= MOST_BYTES &&
           (got = read(fd, ret->data + ret->len, MOST_BYTES + 1 - ret->len)) > 0)
        ret->len += (size_t)got;
    tp_status status =
        got < 0 ? tp_fail(err, TP_ERR_IO, "'%s' cannot be read: %s", path, strerror(errno)) : TP_OK;
    close(fd);
    *ret_is_cut = ret->len > MOST_BYTES;
    while (*ret_is_cut && ret->len && ret->data[ret->len - 1] != '\n')
        ret->len--;
    ret->data[ret->len] = 0;
    return status;
}

/* Columns are the members of the first line. */
static void put_lines(tp_page *p, const char *path)
{
    TP_OWN(tp_buf) text = {0};
    tp_error why = {0};
    tp_buf *out = &p->reply->body;
    bool is_cut;
    if (read_first_lines(path, &text, &is_cut, &why) != TP_OK) {
        tp_buf_adds(out, "<p class=bad>");
        tp_page_text(out, why.message);
        return;
    }
    char keys[16][64];
    size_t n_keys = 0, n = 0;
    for (char *line = text.len ? text.data : NULL, *end; line && *line && n < MOST_LINES;
         line = end ? end + 1 : NULL) {
        TP_OWN(tp_arena) arena = {0};
        const tp_json *row = NULL;
        end = strchr(line, '\n');
        size_t len = end ? (size_t)(end - line) : strlen(line);
        if (tp_arena_init(&arena, 16 << 20, NULL) == TP_OK &&
            tp_json_parse(&arena, path, line, len, &TP_JSON_TOLERANT, &row, NULL) == TP_OK &&
            row->type == TP_JSON_OBJECT) {
            if (n++ == 0) {
                tp_buf_adds(out, "<div class=wide><table>\n<thead><tr>");
                for (const tp_json *c = row->child; c && n_keys < 16; c = c->next) {
                    snprintf(keys[n_keys], sizeof keys[0], "%s", c->key.data);
                    tp_buf_adds(out, "<th>");
                    tp_page_text(out, keys[n_keys++]);
                }
                tp_buf_adds(out, "<tbody>\n");
            }
            tp_buf_adds(out, "<tr>");
            for (size_t k = 0; k < n_keys; k++)
                put_cell(out, tp_json_get(row, keys[k]));
            tp_buf_addc(out, '\n');
        }
    }
    if (n)
        tp_buf_adds(out, "</table></div>\n");
    if (is_cut && text.len == 0)
        tp_buf_addf(out, "<p class=bad>its first line has more than %d MiB\n", MOST_BYTES >> 20);
    else if (n == 0)
        tp_buf_adds(out, "<p>nothing yet\n");
    else if (is_cut || n == MOST_LINES)
        tp_buf_addf(out, "<p class=note>the first %zu lines\n", n);
}

static int step_of(const char *name)
{
    int step, end = 0;
    return sscanf(name, "step-%9d.jsonl%n", &step, &end) == 1 && end && !name[end] ? step : -1;
}

/* The samples of the step that is asked for, else of the last one. */
static int choose_step(const tp_run_place *place, int wanted)
{
    int last = -1;
    for (size_t i = 0; i < place->n_entries; i++) {
        int step = step_of(place->entries[i].name);
        if (step == wanted)
            return step;
        last = TP_MAX(last, step);
    }
    return last;
}

static int by_number(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static void put_steps(tp_page *p, const tp_run_place *place, int chosen)
{
    tp_buf *out = &p->reply->body;
    TP_FREED int *steps = tp_vec_new(place->n_entries + 1, sizeof *steps);
    for (size_t i = 0; i < place->n_entries; i++)
        steps[i] = step_of(place->entries[i].name);
    qsort(steps, place->n_entries, sizeof *steps, by_number);
    tp_buf_adds(out, "<form class=filter><label>Step <select name=step>");
    for (size_t i = 0; i < place->n_entries; i++)
        if (steps[i] >= 0)
            tp_buf_addf(out, "<option%s>%d", steps[i] == chosen ? " selected" : "", steps[i]);
    tp_buf_adds(out, "</select></label> <button>Show</button></form>\n");
}

void tp_page_samples(tp_page *p, const tp_run_entry *e)
{
    const char *asked = tp_http_query(p->request, "step");
    TP_FREED char *folder = tp_page_file(p, e, "samples");
    TP_CLEANUP(tp_place_release) tp_run_place place = {0};
    tp_page_run_head(p, e, "samples");
    if (folder && tp_place_look(&place, folder, NULL) == TP_OK) {
        int step = choose_step(&place, asked ? atoi(asked) : -2);
        char name[64];
        put_steps(p, &place, step);
        snprintf(name, sizeof name, "samples/step-%d.jsonl", step);
        TP_FREED char *path = step >= 0 ? tp_page_file(p, e, name) : NULL;
        if (path)
            put_lines(p, path);
    } else {
        tp_buf_adds(&p->reply->body,
                    "<p>the run kept no samples; GRPO does, with logger.samples\n");
    }
    tp_page_end(p);
}

void tp_page_alarms(tp_page *p, const tp_run_entry *e)
{
    TP_FREED char *path = tp_page_file(p, e, "alarms.jsonl");
    tp_page_run_head(p, e, "alarms");
    if (path)
        put_lines(p, path);
    else
        tp_buf_adds(&p->reply->body, "<p>no alarm was raised\n");
    tp_page_end(p);
}

/* ---- the report ---- */

void tp_page_report(tp_page *p, const tp_run_entry *e)
{
    tp_metrics *m = tp_page_open_run(p, e);
    tp_analysis *a;
    tp_error why = {0};
    if (!m)
        return;
    if (tp_runs_analyze(&m, 1, NULL, &a, &why) != TP_OK) {
        tp_page_say(p, 422, "%s", why.message);
        return;
    }
    tp_page_run_head(p, e, "report");
    tp_run_dashboard_html(a, m, &p->reply->body);
    tp_analysis_free(a);
    tp_page_end(p);
}
