/* page.c - the frame of every page, the list of runs, and text that is safe in HTML. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/platform.h"
#include "base/terminal.h"
#include "instrument/report/picture.h"
#include "instrument/serve/site.h"

void tp_page_text(tp_buf *out, const char *text)
{
    TP_OWN(tp_buf) shown = {0};
    if (text)
        tp_buf_add_shown(&shown, text, strlen(text), false);
    tp_markup_escape(out, tp_buf_str(&shown));
}

void tp_page_query(tp_buf *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (isalnum(*p) || strchr("-._~", *p))
            tp_buf_addc(out, (char)*p);
        else
            tp_buf_addf(out, "%%%02X", *p);
}

void tp_page_number(tp_buf *out, double v)
{
    if (isnan(v))
        tp_buf_adds(out, "<span class=unknown>unknown</span>");
    else
        tp_buf_addf(out, "%.6g", v);
}

void tp_page_result(tp_buf *out, double v)
{
    if (isnan(v))
        tp_buf_adds(out, "<b class=bad>NaN</b>");
    else
        tp_page_number(out, v);
}

static const tp_asset *asset_of(const char *name)
{
    const tp_asset *a = tp_assets;
    while (strcmp(a->name, name) != 0)
        a++;
    return a;
}

void tp_page_begin(tp_page *p, const char *title)
{
    tp_buf *out = &p->reply->body;
    const tp_asset *style = asset_of("style.css"), *script = asset_of("app.js");
    char hash[33];
    tp_hash_bytes(script->data, script->n, hash);
    tp_page_reply(p, "text/html; charset=utf-8");
    tp_buf_adds(out, "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<title>");
    tp_page_text(out, title);
    tp_buf_adds(out, " - Temper</title>\n<meta name=viewport content=\"width=device-width\">\n"
                     "<link rel=icon href=\"/assets/icon.svg\">\n"
                     "<style>\n");
    /* With the page: a picture waits for no second answer. */
    tp_buf_add(out, style->data, style->n);
    tp_buf_addf(
        out,
        "</style>\n"
        "<script src=\"/assets/app.js?v=%s\" defer></script>\n"
        "<header><a href=\"/\"><b>Temper</b></a> <span id=live title=\"whether this page is "
        "told of changes\">not live</span></header>\n<main>\n<h1>",
        hash);
    tp_page_text(out, title);
    tp_buf_adds(out, "</h1>\n");
}

void tp_page_end(tp_page *p)
{
    tp_buf_adds(&p->reply->body,
                "</main>\n<footer>Keys: <kbd>/</kbd> filter, <kbd>j</kbd> <kbd>k</kbd> next and "
                "previous, <kbd>Enter</kbd> open, <kbd>x</kbd> select, <kbd>c</kbd> compare, "
                "<kbd>u</kbd> up</footer>\n</html>\n");
}

void tp_page_figure(tp_buf *out, const char *address, const char *tag, const char *alt,
                    const tp_buf *svg)
{
    tp_buf_adds(out, "<figure data-tag=\"");
    tp_page_text(out, tag);
    tp_buf_adds(out, svg ? "\"><div data-live role=img aria-label=\""
                         : "\"><img loading=lazy width=480 height=320 data-live alt=\"");
    tp_page_text(out, alt);
    tp_buf_addf(out, "\" %s=\"%s&amp;tag=", svg ? "data-src" : "src", address);
    tp_page_query(out, tag);
    tp_buf_adds(out, "\">");
    if (svg) {
        tp_buf_add(out, svg->data, svg->len);
        tp_buf_adds(out, "</div>");
    }
    tp_buf_adds(out, "</figure>\n");
}

/* ---- the list ---- */

static void put_time(tp_buf *out, double since)
{
    char text[32];
    if (isnan(since)) {
        tp_page_number(out, since);
        return;
    }
    tp_wall_iso(since, text);
    tp_buf_addf(out, "<time datetime=\"%s\">%s</time>", text, text);
}

static void put_progress(tp_buf *out, const tp_run_entry *e)
{
    if (e->step < 0)
        tp_page_number(out, NAN);
    else
        tp_buf_addf(out, "%lld", (long long)e->step);
    if (e->max_steps > 0)
        tp_buf_addf(out, " / %lld", (long long)e->max_steps);
}

static void put_row(tp_buf *out, const tp_run_entry *e)
{
    const char *state = e->problem ? "unreadable" : e->state;
    const struct {
        bool is_known;
        double value;
    } figures[] = {
        {e->has_loss, e->loss}, {e->has_reward, e->reward}, {e->has_rate, e->tokens_per_s}};
    tp_buf_addf(
        out,
        "<tr id=r%s><td><input type=checkbox name=run value=%s aria-label=\"select\"><td><a "
        "href=\"/run/%s\">",
        e->id, e->id, e->id);
    tp_page_text(out, e->path);
    tp_buf_adds(out, "</a><td>");
    tp_page_text(out, e->algorithm ? e->algorithm : e->format);
    tp_buf_addf(out, "<td class=\"state %s\"", state && strchr("fsu", state[0]) ? "bad" : "");
    if (e->problem) {
        tp_buf_adds(out, " title=\"");
        tp_page_text(out, e->problem);
        tp_buf_addc(out, '"');
    }
    tp_buf_addc(out, '>');
    tp_page_text(out, state ? state : "");
    tp_buf_adds(out, "<td class=n>");
    put_progress(out, e);
    for (size_t i = 0; i < TP_COUNTOF(figures); i++) {
        tp_buf_adds(out, "<td class=n>");
        if (figures[i].is_known)
            tp_page_result(out, figures[i].value);
    }
    tp_buf_adds(out, "<td>");
    put_time(out, e->updated);
    tp_buf_adds(out, "<td>");
    tp_page_text(out, e->tags);
    tp_buf_addc(out, '\n');
}

const char *tp_page_filter_fault(const char *filter)
{
    for (const char *p = filter ? filter : ""; *p; p += strspn(p, " \t")) {
        size_t n = strcspn(p, " \t");
        if (tp_str_starts(p, "kind:") && !memmem("run", 3, p + 5, n - 5))
            return "the server lists runs alone; for other kinds: temper runs --filter kind:trace";
        p += n;
    }
    return NULL;
}

static void put_rows(tp_page *p)
{
    const char *filter = tp_http_query(p->request, "filter"), *fault = tp_page_filter_fault(filter);
    tp_buf *out = &p->reply->body;
    size_t n = 0;
    for (size_t i = 0; i < tp_run_index_count(p->site->index); i++) {
        const tp_run_entry *e = tp_run_index_entry(p->site->index, i);
        if (!tp_run_entry_fits(e, filter))
            continue;
        put_row(out, e);
        n++;
    }
    if (n == 0)
        tp_buf_addf(out, "<tr><td colspan=10>%s\n",
                    fault                                ? fault
                    : tp_run_index_count(p->site->index) ? "no run fits the filter"
                    : p->site->has_scanned               ? "no run is below this folder"
                                                         : "the folder is being looked through");
}

void tp_page_rows(tp_page *p)
{
    tp_page_reply(p, "text/html; charset=utf-8");
    put_rows(p);
}

void tp_page_list(tp_page *p)
{
    tp_buf *out = &p->reply->body;
    const char *filter = tp_http_query(p->request, "filter"),
               *note = tp_run_index_note(p->site->index);
    tp_page_begin(p, "Runs");
    tp_buf_adds(out, "<form class=filter action=\"/\"><label>Filter <input id=filter name=filter "
                     "autocomplete=off placeholder=\"state:running tag:good sft\" value=\"");
    tp_page_text(out, filter);
    tp_buf_adds(out, "\"></label></form>\n<form action=\"/compare\" id=compare>\n<button>Compare "
                     "selected</button>\n<div class=wide><table class=runs>\n<thead><tr><th><th>run"
                     "<th>kind<th>state<th class=n>step<th class=n>loss<th class=n>reward"
                     "<th class=n>rate per s<th>last record<th>tags<tbody id=rows>\n");
    put_rows(p);
    tp_buf_adds(out, "</table></div></form>\n");
    if (note) {
        tp_buf_adds(out, "<p class=note>");
        tp_page_text(out, note);
    }
    tp_page_end(p);
}
