/* site.c - runs that pages ask for: opened, kept a while, read on; files below their folders. */
#include "instrument/serve/site.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/files.h"
#include "instrument/ingest/runs/place.h"
#include "instrument/ingest/runs/recorded.h"

static const double fresh_s = 2; /* a run that was not read on for longer is, before it is shown */

/* ---- replies ---- */

void tp_page_reply(tp_page *p, const char *type)
{
    p->reply->status = 200;
    p->reply->type = type;
}

void tp_page_say(tp_page *p, int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tp_buf_clear(&p->reply->body);
    tp_buf_vaddf(&p->reply->body, fmt, ap);
    va_end(ap);
    tp_buf_addc(&p->reply->body, '\n');
    p->reply->status = status;
    p->reply->type = "text/plain; charset=utf-8";
}

/* ---- runs ---- */

static struct tp_site_run *slot_of(tp_site *s, const char *id)
{
    struct tp_site_run *oldest = &s->open[0];
    for (int i = 0; i < TP_SITE_OPEN_RUNS; i++) {
        if (s->open[i].m && strcmp(s->open[i].id, id) == 0)
            return &s->open[i];
        if (!s->open[i].m || (oldest->m && s->open[i].used_s < oldest->used_s))
            oldest = &s->open[i];
    }
    tp_metrics_close(oldest->m);
    *oldest = (struct tp_site_run){0};
    return oldest;
}

/* They go on from a number that is drawn: a browser keeps what another server told on this port. */
static uint64_t next_version(tp_site *s)
{
    if (s->last_version == 0) {
        (void)!getrandom(&s->last_version, sizeof s->last_version, 0);
        s->last_version >>= 1;
    }
    return ++s->last_version;
}

static bool read_on(tp_site *s, struct tp_site_run *o, bool *ret_changed)
{
    o->looked_s = tp_clock_s();
    if (tp_metrics_refresh(o->m, ret_changed, NULL) != TP_OK) {
        tp_metrics_close(o->m);
        *o = (struct tp_site_run){0};
        return false;
    }
    if (*ret_changed)
        o->version = next_version(s);
    return true;
}

tp_metrics *tp_page_open_run(tp_page *p, const tp_run_entry *e)
{
    tp_error why = {0};
    struct tp_site_run *o = slot_of(p->site, e->id);
    bool has_changed = false;
    if (o->m && tp_clock_s() - o->looked_s > fresh_s)
        (void)read_on(p->site, o, &has_changed);
    if (!o->m) {
        TP_FREED char *path = tp_run_index_path(p->site->index, e);
        const tp_metrics_options options = {.size = sizeof options, .follows = true};
        if (tp_metrics_open(path, &options, &o->m, &why) != TP_OK) {
            o->m = NULL;
            tp_page_say(p, 422, "%s", why.message);
        }
        snprintf(o->id, sizeof o->id, "%s", e->id);
        o->version = next_version(p->site);
        o->looked_s = tp_clock_s();
    }
    o->used_s = tp_clock_s();
    return o->m;
}

static const struct tp_site_run *opened(const tp_site *s, const char *id)
{
    for (int i = 0; i < TP_SITE_OPEN_RUNS; i++)
        if (s->open[i].m && strcmp(s->open[i].id, id) == 0)
            return &s->open[i];
    return NULL;
}

tp_metrics *tp_page_opened_run(const tp_page *p, const tp_run_entry *e)
{
    const struct tp_site_run *o = opened(p->site, e->id);
    return o ? o->m : NULL;
}

uint64_t tp_page_version(const tp_page *p, const tp_run_entry *e)
{
    const struct tp_site_run *o = opened(p->site, e->id);
    return o ? o->version : 0;
}

void tp_page_keep(tp_page *p, uint64_t version)
{
    char own[32];
    const char *asked = tp_http_query(p->request, "v");
    snprintf(own, sizeof own, "%" PRIx64, version);
    p->reply->is_kept = asked && strcmp(asked, own) == 0;
}

char *tp_page_file(tp_page *p, const tp_run_entry *e, const char *name)
{
    char *folder = tp_run_index_path(p->site->index, e), *path = tp_place_join(folder, name);
    free(folder);
    if (tp_file_exists(path) || tp_dir_exists(path))
        return path;
    free(path);
    return NULL;
}

void tp_site_look(tp_site *s, double watched_s,
                  void (*see)(void *user, const char *id, int64_t records, uint64_t version),
                  void *user)
{
    for (int i = 0; i < TP_SITE_OPEN_RUNS; i++) {
        struct tp_site_run *o = &s->open[i];
        bool has_changed = false;
        if (!o->m || tp_clock_s() - o->used_s > watched_s)
            continue;
        if (read_on(s, o, &has_changed) && has_changed)
            see(user, o->id, (int64_t)o->m->n_records, o->version);
    }
}

void tp_site_release(tp_site *s)
{
    for (int i = 0; i < TP_SITE_OPEN_RUNS; i++)
        tp_metrics_close(s->open[i].m);
    tp_run_index_close(s->index);
    *s = (tp_site){0};
}
