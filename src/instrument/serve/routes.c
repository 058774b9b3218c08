/* routes.c - which page an address is. */
#include <string.h>

#include "base/platform.h"
#include "instrument/serve/site.h"

/* ---- routes ---- */

static void put_asset(tp_page *p, const char *name)
{
    for (const tp_asset *a = tp_assets; a->name; a++)
        if (strcmp(a->name, name) == 0) {
            tp_buf_add(&p->reply->body, a->data, a->n);
            tp_page_reply(p, a->type);
            p->reply->is_kept = true;
        }
}

static void page_events(tp_page *p) { p->reply->is_events = true; }

static void page_runs_json(tp_page *p)
{
    const char *filter = tp_http_query(p->request, "filter"), *fault = tp_page_filter_fault(filter);
    if (fault) {
        tp_page_say(p, 400, "%s", fault);
        return;
    }
    TP_FREED char *text = tp_run_index_json(p->site->index, filter);
    tp_buf_adds(&p->reply->body, text);
    tp_page_reply(p, "application/json");
}

static const struct {
    const char *path;
    void (*make)(tp_page *p);
} pages[] = {
    {"/", tp_page_list},           {"/rows", tp_page_rows},
    {"/compare", tp_page_compare}, {"/compare.svg", tp_page_compare_plot},
    {"/events", page_events},      {"/metrics", tp_page_exposition},
    {"/api/runs", page_runs_json},
};

/* Below /run/ID */
static const struct {
    const char *path;
    void (*make)(tp_page *p, const tp_run_entry *e);
} run_pages[] = {
    {"", tp_page_curves},
    {"/summary", tp_page_summary},
    {"/plot.svg", tp_page_plot},
    {"/operators", tp_page_operators},
    {"/memory", tp_page_memory},
    {"/memory.svg", tp_page_memory_kinds},
    {"/timeline", tp_page_timeline},
    {"/samples", tp_page_samples},
    {"/alarms", tp_page_alarms},
    {"/report", tp_page_report},
    {"/settings", tp_page_settings},
    {"/metrics.json", tp_page_metrics_json},
};

static void route_run(tp_page *p, const char *rest)
{
    char id[16];
    size_t n = strcspn(rest, "/");
    snprintf(id, sizeof id, "%.*s", (int)TP_MIN(n, sizeof id - 1), rest);
    const tp_run_entry *e = tp_run_index_find(p->site->index, id);
    for (size_t i = 0; e && i < TP_COUNTOF(run_pages); i++)
        if (strcmp(rest + n, run_pages[i].path) == 0)
            run_pages[i].make(p, e);
}

void tp_page_route(tp_page *p, const char *path)
{
    if (tp_str_starts(path, "/assets/"))
        put_asset(p, path + 8);
    else if (tp_str_starts(path, "/run/"))
        route_run(p, path + 5);
    for (size_t i = 0; i < TP_COUNTOF(pages); i++)
        if (strcmp(path, pages[i].path) == 0)
            pages[i].make(p);
}
