/* page_compare.c - runs side by side: their curves in one picture each, and what differs.
 *
 * Runs whose paths differ in a number alone ("a-1", "a-2"), or in their seed's, can be taken as
 * repetitions of one thing: their mean is drawn in a band, and groups are what is compared. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "base/vec.h"
#include "instrument/analyze/runs/curve.h"
#include "instrument/ingest/string_table.h"
#include "instrument/report/run_band.h"
#include "instrument/serve/plot.h"
#include "instrument/serve/site.h"

enum { MOST_RUNS = 16, MOST_KEYS = 6 };

static const double level = 0.95;

/* One run, or several that are drawn as one: [first, first + n) of those chosen. */
typedef struct {
    char *name;
    size_t first, n;
} group;

typedef struct {
    tp_page *p;
    const tp_run_entry *e[MOST_RUNS];
    tp_metrics *runs[MOST_RUNS];
    size_t n, n_asked;
    group groups[MOST_RUNS];
    size_t n_groups;
    bool is_grouped, can_group;
} chosen;

static bool choose(void *user, const char *id)
{
    chosen *c = user;
    const tp_run_entry *e = tp_run_index_find(c->p->site->index, id);
    c->n_asked++;
    if (e && c->n < MOST_RUNS)
        c->e[c->n++] = e;
    return true;
}

static bool is_digit(char c) { return isdigit((unsigned char)c); }

/* The number behind the last "seed"; NULL: none is. */
static const char *number_of_seed(const char *path)
{
    const char *found = NULL;
    for (const char *p = path; (p = strcasestr(p, "seed"));) {
        p += 4;
        const char *number = p + strspn(p, "-_= ");
        found = is_digit(*number) ? number : found;
    }
    return found;
}

/* "runs/a-12" as "runs/a-*", "seed1-lr0.2" as "seed*-lr0.2"; what stands behind a point counts no
 * repetitions.  free() it. */
static char *name_without_number(const char *path)
{
    const char *seed = number_of_seed(path);
    size_t end = strlen(path);
    if (seed)
        end = (size_t)(seed - path) + strspn(seed, "0123456789");
    while (end > 0 && !is_digit(path[end - 1]))
        end--;
    size_t begin = end;
    while (begin > 0 && is_digit(path[begin - 1]))
        begin--;
    if (begin > 1 && path[begin - 1] == '.' && is_digit(path[begin - 2]))
        return tp_strdup(path);
    tp_buf out = {0};
    tp_buf_addf(&out, "%.*s%s%s", (int)begin, path, end ? "*" : "", path + end);
    return out.data;
}

/* Groups in the order of their first runs, runs in the order of their groups. */
static void make_groups(chosen *c, bool by_name)
{
    const tp_run_entry *e[MOST_RUNS];
    char *names[MOST_RUNS];
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        names[i] = by_name ? name_without_number(c->e[i]->path) : tp_strdup(c->e[i]->path);
    for (size_t i = 0; i < c->n; i++) {
        if (!names[i])
            continue;
        group *g = &c->groups[c->n_groups++];
        *g = (group){.name = names[i], .first = n};
        for (size_t k = i; k < c->n; k++) {
            if (k != i && (!by_name || !names[k] || strcmp(names[k], g->name) != 0))
                continue;
            e[n++] = c->e[k];
            g->n++;
            if (k != i)
                free(names[k]);
            names[k] = NULL;
        }
        if (g->n == 1) { /* a number that nothing else differs in says more than "*" */
            free(g->name);
            g->name = tp_strdup(e[g->first]->path);
        }
    }
    memcpy(c->e, e, n * sizeof *e);
}

static void forget_groups(chosen *c)
{
    for (size_t i = 0; i < c->n_groups; i++)
        free(c->groups[i].name);
    c->n_groups = 0;
}

static chosen choose_runs(tp_page *p)
{
    chosen c = {.p = p};
    const char *by = tp_http_query(p->request, "by");
    tp_http_query_each(p->request, "run", choose, &c);
    make_groups(&c, true);
    c.can_group = c.n_groups < c.n;
    c.is_grouped = c.can_group && by && strcmp(by, "name") == 0;
    if (!c.is_grouped) {
        forget_groups(&c);
        make_groups(&c, false);
    }
    return c;
}

static bool open_runs(chosen *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (!(c->runs[i] = tp_page_open_run(c->p, c->e[i])))
            return false;
    return true;
}

static const char *axis_name(tp_page *p)
{
    const char *x = tp_http_query(p->request, "x");
    return x && strcmp(x, "time") == 0 ? "time" : x && strcmp(x, "tokens") == 0 ? "tokens" : "step";
}

static void put_query(tp_buf *out, const chosen *c, const char *x, bool is_grouped)
{
    tp_buf_addf(out, "x=%s%s", x, is_grouped ? "&amp;by=name" : "");
    for (size_t i = 0; i < c->n; i++)
        tp_buf_addf(out, "&amp;run=%s", c->e[i]->id);
}

/* ---- the metrics ---- */

/* How many of runs [0, n) have the metric. */
static size_t holders(const chosen *c, size_t n, const char *tag)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += tp_metrics_find(c->runs[i], tag) != SIZE_MAX;
    return found;
}

typedef struct {
    tp_string_table seen;
    const char **v; /* the runs' own texts */
    size_t n, cap;
} tag_list;

static void tags_release(tag_list *tags)
{
    tp_string_table_release(&tags->seen);
    free(tags->v);
}

/* The metrics of the first runs, each once: the losses, rewards and the like of all, then others.
 */
static void list_tags(const chosen *c, size_t n_runs, tag_list *ret)
{
    tp_string_table_init(&ret->seen);
    for (int pass = 0; pass < 2; pass++)
        for (size_t r = 0; r < n_runs; r++) {
            size_t n = tp_metrics_count(c->runs[r]);
            TP_FREED size_t *order = tp_vec_new(n + 1, sizeof *order);
            size_t n_first = tp_curve_order(c->runs[r], order);
            for (size_t i = pass ? n_first : 0; i < (pass ? n : n_first); i++) {
                const char *tag = tp_metrics_tag(c->runs[r], order[i]);
                size_t before = ret->seen.n;
                (void)tp_string_add(&ret->seen, tag, strlen(tag));
                if (ret->seen.n > before)
                    *TP_VEC_PUSH(ret->v, ret->n, ret->cap) = tag;
            }
        }
}

/* ---- what differs ---- */

static void put_interval(tp_buf *out, double lo, double hi)
{
    if (isnan(lo) || isnan(hi))
        tp_buf_adds(out, "<td class=n><span class=unknown>unknown</span>");
    else
        tp_buf_addf(out, "<td class=n>%.4g to %.4g", lo, hi);
}

static void put_settings(tp_buf *out, const tp_run_comparison *c)
{
    size_t n = tp_run_comparison_settings(c);
    if (n == 0)
        return;
    tp_buf_adds(out, "<h2>Settings that differ</h2>\n<div class=wide><table>\n<thead><tr><th>key"
                     "<th>first<th>second<tbody>\n");
    for (size_t i = 0; i < n; i++) {
        const char *a, *b, *key = tp_run_comparison_setting(c, i, &a, &b);
        const char *const cells[] = {key, a, b};
        tp_buf_adds(out, "<tr>");
        for (size_t k = 0; k < 3; k++) {
            tp_buf_adds(out, "<td>");
            tp_page_text(out, cells[k]);
        }
        tp_buf_addc(out, '\n');
    }
    tp_buf_adds(out, "</table></div>\n");
}

static void put_metrics(tp_buf *out, const tp_run_comparison *c)
{
    tp_buf_adds(out, "<div class=wide><table>\n<thead><tr>"
                     "<th>metric<th class=n>first<th class=n>second<th class=n>difference"
                     "<th class=n>95 % interval<th class=n>p, corrected<th class=n>n<th>verdict"
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
        if (isnan(x->p_adjusted))
            tp_page_number(out, x->p_adjusted);
        else
            tp_buf_addf(out, "%.2g", x->p_adjusted);
        tp_buf_addf(out, "<td class=n>%zu<td%s title=\"", x->n,
                    strcmp(x->verdict, "worse") == 0 ? " class=bad" : "");
        tp_page_text(out, x->why[0] ? x->why : x->method);
        tp_buf_addf(out, "\">%s\n", x->verdict);
    }
    tp_buf_adds(out, "</table></div>\n");
}

/* Those of the two sides that are not compared, as some of their runs lack them. */
static void put_left_out(tp_buf *out, const chosen *c, const tp_run_comparison *x)
{
    size_t n = 0, n_runs = c->groups[1].first + c->groups[1].n;
    TP_CLEANUP(tags_release) tag_list tags = {0};
    list_tags(c, n_runs, &tags);
    for (size_t i = 0; i < tags.n; i++) {
        bool is_there = holders(c, n_runs, tags.v[i]) == n_runs;
        for (size_t k = 0; k < tp_run_comparison_count(x) && !is_there; k++) {
            const tp_compared_metric *m = tp_run_comparison_metric(x, k);
            is_there =
                strcmp(m->name, tags.v[i]) == 0 || (m->name_b && strcmp(m->name_b, tags.v[i]) == 0);
        }
        if (is_there || n++ >= MOST_KEYS)
            continue;
        tp_buf_adds(out,
                    n == 1 ? "<p class=note>Not in all of their runs, so not compared: " : ", ");
        tp_page_text(out, tags.v[i]);
    }
    if (n > MOST_KEYS)
        tp_buf_addf(out, " and %zu more", n - MOST_KEYS);
    if (n)
        tp_buf_addc(out, '\n');
}

static void put_comparison(chosen *c)
{
    tp_run_comparison *x;
    tp_error why = {0};
    tp_buf *out = &c->p->reply->body;
    const group *a = &c->groups[0], *b = &c->groups[1];
    tp_buf_adds(out, "<h2>What differs, second from first</h2>\n");
    if (c->n_groups < 2) {
        tp_buf_adds(out, "<p>These runs are one group, with nothing to compare it to.\n");
        return;
    }
    if (tp_runs_compare(c->runs + a->first, a->n, c->runs + b->first, b->n, NULL, &x, &why) !=
        TP_OK) {
        tp_buf_adds(out, "<p class=bad>");
        tp_page_text(out, why.message);
        return;
    }
    put_metrics(out, x);
    tp_buf_adds(out, a->n > 1 && b->n > 1
                         ? "<p class=note>n: runs; each counts once, by its mean.\n"
                         : "<p class=note>n: steps in common. Intervals are of these runs; another "
                           "seed may differ.\n");
    put_left_out(out, c, x);
    put_settings(out, x);
    tp_run_comparison_free(x);
}

/* ---- the pictures ---- */

/* The mean of a group in its band; false where a run of it lacks the metric, or no place is common
 * to all. */
static bool add_band(tp_plot *plot, const chosen *c, const group *g, const char *tag,
                     tp_run_band *band, char *name, size_t size)
{
    static const tp_align aligns[] = {[TP_PLOT_STEP] = TP_ALIGN_STEPS,
                                      [TP_PLOT_TIME] = TP_ALIGN_TIME,
                                      [TP_PLOT_TOKENS] = TP_ALIGN_TOKENS};
    TP_OWN(tp_aligned) values = {0};
    if (plot->n == TP_PLOT_SERIES ||
        !tp_align_metric(c->runs + g->first, g->n, NULL, 0, tag, aligns[plot->axis], &values))
        return false;
    plot->has_gaps |= values.odd_a > 0;
    (void)tp_run_band_thin(&values);
    bool is_there = values.n > 0;
    if (is_there) {
        tp_run_band_make(band, &values, 0, g->n, level);
        if (g->n > 1)
            snprintf(name, size, "%s, mean of %zu runs", g->name, g->n);
        else
            snprintf(name, size, "%s", g->name);
        plot->series[plot->n++] = tp_run_band_series(band, name);
    }
    return is_there;
}

/* A metric that one of the runs has. */
static void draw(const chosen *c, const char *tag, tp_buf *out)
{
    const char *x = axis_name(c->p);
    char names[TP_PLOT_SERIES][300], interval[80], note[120];
    tp_run_band bands[TP_PLOT_SERIES] = {0};
    tp_plot plot = {.axis = *x == 's'           ? TP_PLOT_STEP
                            : strcmp(x, "time") ? TP_PLOT_TOKENS
                                                : TP_PLOT_TIME};
    bool is_banded = c->is_grouped || plot.axis == TP_PLOT_TOKENS;
    size_t missing = 0;
    for (size_t i = 0; i < c->n_groups; i++) {
        const group *g = &c->groups[i];
        size_t at = plot.n;
        missing += is_banded ? at == TP_PLOT_SERIES || !add_band(&plot, c, g, tag, &bands[at],
                                                                 names[at], sizeof names[0])
                             : !tp_plot_add(&plot, c->runs[g->first], tag, g->name);
    }
    snprintf(interval, sizeof interval, TP_RUN_BAND_INTERVAL, 100 * level);
    snprintf(note, sizeof note,
             "%zu of %zu not drawn: more than %d, or without it in all their runs", missing,
             c->n_groups, TP_PLOT_SERIES);
    plot.interval = c->is_grouped ? interval : NULL;
    plot.note = missing && plot.n ? note : NULL;
    plot.why_empty = plot.axis == TP_PLOT_TOKENS
                         ? "no run tells its tokens where it has a finite value of this"
                         : "no finite value where all runs of a group have one";
    tp_plot_svg(&plot, tag, out);
    if (is_banded) {
        for (size_t i = 0; i < TP_PLOT_SERIES; i++)
            tp_run_band_release(&bands[i]);
    } else {
        tp_plot_release(&plot);
    }
}

static uint64_t version_of(const chosen *c)
{
    uint64_t version = 0;
    for (size_t i = 0; i < c->n; i++)
        version = TP_MAX(version, tp_page_version(c->p, c->e[i]));
    return version;
}

static void put_figures(chosen *c)
{
    tp_buf *out = &c->p->reply->body;
    uint64_t version = version_of(c);
    TP_OWN(tp_buf) address = {0}, svg = {0};
    TP_CLEANUP(tags_release) tag_list tags = {0};
    list_tags(c, c->n, &tags);
    tp_buf_adds(&address, "/compare.svg?");
    put_query(&address, c, axis_name(c->p), c->is_grouped);
    tp_buf_addf(&address, "&amp;v=%" PRIx64, version);
    tp_buf_addf(out, "<div class=figures data-version=%" PRIx64 ">\n", version);
    for (size_t i = 0; i < tags.n; i++) {
        bool is_first = svg.len == 0;
        if (holders(c, c->n, tags.v[i]) < 2)
            continue;
        if (is_first)
            draw(c, tags.v[i], &svg);
        tp_page_figure(out, tp_buf_str(&address), tags.v[i], tags.v[i], is_first ? &svg : NULL);
    }
    tp_buf_adds(out, "</div>\n");
}

/* ---- the page ---- */

static bool has_setting(const tp_metrics *m, const char *key, const char *value)
{
    for (size_t i = 0; i < tp_metrics_settings(m); i++) {
        const char *v, *k = tp_metrics_setting(m, i, &v);
        if (strcmp(k, key) == 0)
            return strcmp(v, value) == 0;
    }
    return false;
}

/* In what the runs of a group differ, as far as their settings tell: seeds, or more than that? */
static void put_differences(tp_buf *out, const chosen *c, const group *g)
{
    const tp_metrics *first = c->runs[g->first];
    size_t n = 0;
    for (size_t i = 0; i < tp_metrics_settings(first); i++) {
        const char *value, *key = tp_metrics_setting(first, i, &value);
        bool is_same = true;
        for (size_t r = 1; r < g->n; r++)
            is_same &= has_setting(c->runs[g->first + r], key, value);
        if (is_same || n++ >= MOST_KEYS)
            continue;
        tp_buf_adds(out, n == 1 ? ", which differ in " : ", ");
        tp_page_text(out, key);
    }
    if (n > MOST_KEYS)
        tp_buf_addf(out, " and %zu more", n - MOST_KEYS);
}

static void put_groups(chosen *c)
{
    tp_buf *out = &c->p->reply->body;
    tp_buf_adds(out, "<ol>");
    for (size_t i = 0; i < c->n_groups; i++) {
        const group *g = &c->groups[i];
        tp_buf_adds(out, "<li>");
        if (g->n > 1) {
            tp_page_text(out, g->name);
            tp_buf_addf(out, ": %zu runs", g->n);
            put_differences(out, c, g);
            tp_buf_adds(out, ": ");
        }
        for (size_t r = g->first; r < g->first + g->n; r++) {
            tp_buf_addf(out, "%s<a href=\"/run/%s\">", r > g->first ? ", " : "", c->e[r]->id);
            tp_page_text(out, c->e[r]->path);
            tp_buf_adds(out, "</a>");
        }
    }
    tp_buf_adds(out, "</ol>\n");
    if (c->n_asked > c->n)
        tp_buf_addf(out, "<p class=note>%zu of the %zu runs that were selected: %d at most\n", c->n,
                    c->n_asked, MOST_RUNS);
}

static void put_choices(const chosen *c)
{
    static const char *const axes[][2] = {
        {"step", "steps"}, {"time", "time"}, {"tokens", "tokens"}};
    tp_buf *out = &c->p->reply->body;
    const char *x = axis_name(c->p);
    tp_buf_adds(out, "<p class=filter><label>Metrics <input id=filter autocomplete=off "
                     "placeholder=\"loss\"></label> over");
    for (size_t i = 0; i < 3; i++) {
        tp_buf_addf(out, "%s <a%s href=\"?", i ? "," : "",
                    strcmp(axes[i][0], x) == 0 ? " aria-current=true" : "");
        put_query(out, c, axes[i][0], c->is_grouped);
        tp_buf_addf(out, "\">%s</a>", axes[i][1]);
    }
    if (c->can_group) {
        tp_buf_adds(out, "; <a href=\"?");
        put_query(out, c, x, !c->is_grouped);
        tp_buf_adds(out, c->is_grouped
                             ? "\">each run by itself</a>"
                             : "\" title=\"their mean, in a band of 95 %\">runs whose names differ "
                               "in a number alone as one</a>");
    }
    tp_buf_adds(out, "</p>\n");
}

void tp_page_compare(tp_page *p)
{
    chosen c = choose_runs(p);
    if (c.n < 2) {
        tp_page_say(p, 400, "select two runs or more (%d at most) in the list", MOST_RUNS);
    } else if (open_runs(&c)) {
        tp_page_begin(p, "Compare");
        put_groups(&c);
        put_choices(&c);
        put_figures(&c);
        put_comparison(&c);
        tp_page_end(p);
    }
    forget_groups(&c);
}

void tp_page_compare_plot(tp_page *p)
{
    chosen c = choose_runs(p);
    const char *tag = tp_http_query(p->request, "tag");
    if (c.n && tag && open_runs(&c) && holders(&c, c.n, tag)) {
        draw(&c, tag, &p->reply->body);
        tp_page_reply(p, "image/svg+xml");
        tp_page_keep(p, version_of(&c));
    }
    forget_groups(&c);
}
