/* site.h - what the pages share: the runs that are known and those that are open. */
#ifndef TP_INSTRUMENT_SERVE_SITE_H
#define TP_INSTRUMENT_SERVE_SITE_H

#include <limits.h>

#include "instrument/serve/http.h"
#include "temper/analysis.h"
#include "temper/runs.h"

enum { TP_SITE_OPEN_RUNS = 20 };

/* Whoever calls sees to it that one thread at a time is in a site. */
typedef struct {
    char real[PATH_MAX]; /* the folder; who calls sees to it that nothing outside is read */
    tp_run_index *index;
    bool has_scanned; /* the folder was looked through once */
    struct tp_site_run {
        char id[16];
        tp_metrics *m;
        double used_s;    /* when a page asked for it */
        double looked_s;  /* when it was read on */
        uint64_t version; /* of what was read: no other state, run or server has the same */
    } open[TP_SITE_OPEN_RUNS];
    uint64_t last_version; /* that was given; they rise */
} tp_site;

void tp_site_release(tp_site *site); /* zeroed is a no-op */
/* Read on in the runs that were used in the last `watched_s` seconds; of each that has grown `see`
 * is told how many records it has now, and which version that is. */
void tp_site_look(tp_site *site, double watched_s,
                  void (*see)(void *user, const char *id, int64_t records, uint64_t version),
                  void *user);

typedef struct {
    tp_site *site;
    const tp_http_request *request;
    tp_http_reply *reply;
} tp_page;

/* The run, opened and up to date; it stays open for a while.  NULL after a reply of 404 (no such
 * run) or 422 (it cannot be read). */
tp_metrics *tp_page_open_run(tp_page *p, const tp_run_entry *e);
/* The same where it is open already, else NULL. */
tp_metrics *tp_page_opened_run(const tp_page *p, const tp_run_entry *e);
/* The version of a run that is open; of several the highest is that of all of them. */
uint64_t tp_page_version(const tp_page *p, const tp_run_entry *e);
/* The reply may be kept where the address asks for this version, as "v". */
void tp_page_keep(tp_page *p, uint64_t version);
/* A file below the folder of a run: the path, NULL where it is not there or a link leads out of the
 * folder that is served.  free() it. */
char *tp_page_file(tp_page *p, const tp_run_entry *e, const char *name);

/* A reply of plain text. */
void tp_page_say(tp_page *p, int status, const char *fmt, ...) TP_PRINTF(3, 4);
void tp_page_reply(tp_page *p, const char *type);

/* ---- HTML ---- */

void tp_page_begin(tp_page *p, const char *title);
void tp_page_end(tp_page *p);
/* Foreign text in HTML, and in the query of an address. */
void tp_page_text(tp_buf *out, const char *text);
void tp_page_query(tp_buf *out, const char *text);
/* A number in at most six digits, "unknown" where nobody knows. */
void tp_page_number(tp_buf *out, double v);
/* What came out of a run, a NaN as such. */
void tp_page_result(tp_buf *out, double v);

/* A picture of one metric that is renewed: `address` (as in an attribute) goes on with the tag.
 * `svg` is the picture itself where the page brings it along, so that it is seen with the page;
 * NULL: the browser asks for it. */
void tp_page_figure(tp_buf *out, const char *address, const char *tag, const char *alt,
                    const tp_buf *svg);

/* ---- the pages; `e` is the run of the address ---- */

/* The page of the address; `p->reply` stays zeroed where there is none. */
void tp_page_route(tp_page *p, const char *path);

/* Why the list has nothing for a filter that asks for another kind than runs; else NULL. */
const char *tp_page_filter_fault(const char *filter);
void tp_page_list(tp_page *p);
void tp_page_rows(tp_page *p); /* the rows of the list alone */
void tp_page_run_head(tp_page *p, const tp_run_entry *e, const char *here);
void tp_page_curves(tp_page *p, const tp_run_entry *e);
void tp_page_summary(tp_page *p, const tp_run_entry *e); /* the line that is renewed */
void tp_page_plot(tp_page *p, const tp_run_entry *e);
void tp_page_compare(tp_page *p);
void tp_page_compare_plot(tp_page *p);
void tp_page_operators(tp_page *p, const tp_run_entry *e);
void tp_page_memory(tp_page *p, const tp_run_entry *e);
void tp_page_memory_kinds(tp_page *p, const tp_run_entry *e); /* its picture by kind */
void tp_page_timeline(tp_page *p, const tp_run_entry *e);
void tp_page_samples(tp_page *p, const tp_run_entry *e);
void tp_page_alarms(tp_page *p, const tp_run_entry *e);
void tp_page_report(tp_page *p, const tp_run_entry *e);
void tp_page_settings(tp_page *p, const tp_run_entry *e);
void tp_page_metrics_json(tp_page *p, const tp_run_entry *e);
void tp_page_exposition(tp_page *p);

/* Embedded files: CMake makes them from assets/. */
typedef struct {
    const char *name, *type;
    const unsigned char *data;
    size_t n;
} tp_asset;
extern const tp_asset tp_assets[]; /* ends with a row whose name is NULL */

#endif
