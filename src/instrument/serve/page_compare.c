/* page_compare.c - runs side by side: their curves in one picture each, and what differs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "instrument/analyze/runs/curve.h"
#include "instrument/serve/plot.h"
#include "instrument/serve/site.h"

typedef struct {
    tp_page *p;
    const tp_run_entry *e[TP_PLOT_SERIES];
    size_t n;
} chosen;

static bool choose(void *user, const char *id)
{
    chosen *c = user;
    const tp_run_entry *e = tp_run_index_find(c->p->site->index, id);
    if (e && c->n < TP_PLOT_SERIES)
        c->e[c->n++] = e;
    return true;
}

static chosen choose_runs(tp_page *p)
{
    chosen c = {.p = p};
    tp_http_query_each(p->request, "run", choose, &c);
    return c;
}

static void put_query(tp_buf *out, const chosen *c)
{
    for (size_t i = 0; i < c->n; i++)
        tp_buf_addf(out, "%srun=%s", i ? "&amp;" : "", c->e[i]->id);
}

static void put_interval(tp_buf *out, double lo, double hi)
{
    if (isnan(lo) || isnan(hi))
        tp_buf_adds(out, "<td class=n><span class=unknown>unknown</span>");
    else
        tp_buf_addf(out, "<td class=n>%.4g to %.4g", lo, hi);
}

static void put_comparison(tp_page *p, tp_metrics *a, tp_metrics *b)
{
    tp_run_comparison *c;
    tp_error why = {0};
    tp_buf *out = &p->reply->body;
    if (tp_runs_compare(&a, 1, &b, 1, NULL, &c, &why) != TP_OK) {
        tp_buf_adds(out, "<p class=bad>");
        tp_page_text(out, why.message);
        return;
    }
    tp_buf_adds(out,
                "<h2>What differs, second from first</h2>\n<div class=wide><table>\n<thead><tr>"
                "<th>metric<th class=n>first<th class=n>second<th class=n>difference"
                "<th class=n>95 % interval<th class=n>p, corrected<th class=n>steps<th>verdict"
                "<tbody>\n");
    for (size_t i = 0; i < tp_run_comparison_count(c); i++) {
        const tp_compared_metric *x = tp_run_comparison_metric(c, i);
        const double figures[] = {x->mean_a, x->mean_b, x->effect};
        tp_buf_adds(out, "<tr><th scope=row>");
        tp_page_text(out, x->name);
        for (size_t k = 0; k < 3; k++) {
            tp_buf_adds(out, "<td class=n>");
            tp_page_number(out, figures[k]);
        }
        put_interval(out, x->ci_lo, x->ci_hi);
        tp_buf_adds(out, "<td class=n>");
        tp_page_number(out, x->p_adjusted);
        tp_buf_addf(out, "<td class=n>%zu<td%s title=\"", x->n,
                    strcmp(x->verdict, "worse") == 0 ? " class=bad" : "");
        tp_page_text(out, x->why[0] ? x->why : x->method);
        tp_buf_addf(out, "\">%s\n", x->verdict);
    }
    tp_buf_adds(out, "</table></div>\n<p class=note>Intervals are of these two runs; another seed "
                     "may differ.\n");
    tp_run_comparison_free(c);
}

/* How many of the runs have the metric. */
static size_t holders(tp_metrics *const *runs, size_t n, const char *tag)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += tp_metrics_find(runs[i], tag) != SIZE_MAX;
    return found;
}

static void put_figures(tp_page *p, const chosen *c, tp_metrics *const *runs)
{
    tp_buf *out = &p->reply->body;
    const char *x = tp_http_query(p->request, "x");
    bool is_time = x && strcmp(x, "time") == 0;
    size_t n = tp_metrics_count(runs[0]), *order = tp_vec_new(n + 1, sizeof *order);
    tp_curve_order(runs[0], order);
    tp_buf address = {0};
    tp_buf_adds(&address, "/compare.svg?");
    put_query(&address, c);
    tp_buf_addf(&address, "&amp;x=%s", is_time ? "time" : "step");
    tp_buf_adds(out, "<div class=figures>\n");
    for (size_t i = 0; i < n; i++) {
        const char *tag = tp_metrics_tag(runs[0], order[i]);
        if (holders(runs, c->n, tag) < 2)
            continue;
        tp_page_figure(out, tp_buf_str(&address), tag, tag);
    }
    tp_buf_adds(out, "</div>\n");
    tp_buf_release(&address);
    free(order);
}

void tp_page_compare(tp_page *p)
{
    chosen c = choose_runs(p);
    tp_metrics *runs[TP_PLOT_SERIES];
    tp_buf *out = &p->reply->body;
    if (c.n < 2) {
        tp_page_say(p, 400, "select two runs or more (%d at most) in the list", TP_PLOT_SERIES);
        return;
    }
    for (size_t i = 0; i < c.n; i++)
        if (!(runs[i] = tp_page_open_run(p, c.e[i])))
            return;
    tp_page_begin(p, "Compare");
    tp_buf_adds(out, "<ol>");
    for (size_t i = 0; i < c.n; i++) {
        tp_buf_addf(out, "<li><a href=\"/run/%s\">", c.e[i]->id);
        tp_page_text(out, c.e[i]->path);
        tp_buf_adds(out, "</a>");
    }
    tp_buf_adds(out, "</ol>\n<p class=filter><label>Metrics <input id=filter autocomplete=off "
                     "placeholder=\"loss\"></label> over <a href=\"?x=step&amp;");
    put_query(out, &c);
    tp_buf_adds(out, "\">steps</a>, <a href=\"?x=time&amp;");
    put_query(out, &c);
    tp_buf_adds(out, "\">time</a></p>\n");
    put_figures(p, &c, runs);
    put_comparison(p, runs[0], runs[1]);
    tp_page_end(p);
}

void tp_page_compare_plot(tp_page *p)
{
    chosen c = choose_runs(p);
    const char *tag = tp_http_query(p->request, "tag"), *x = tp_http_query(p->request, "x");
    tp_plot plot = {.axis = x && strcmp(x, "time") == 0 ? TP_PLOT_TIME : TP_PLOT_STEP};
    for (size_t i = 0; i < c.n && tag; i++) {
        tp_metrics *m = tp_page_open_run(p, c.e[i]);
        if (!m)
            break;
        (void)tp_plot_add(&plot, m, tag, c.e[i]->path);
    }
    if (plot.n) {
        tp_plot_svg(&plot, tag, &p->reply->body);
        tp_page_reply(p, "image/svg+xml");
    }
    tp_plot_release(&plot);
}
