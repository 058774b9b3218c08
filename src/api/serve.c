/* serve.c - temper/serve.h: a folder is watched, its pages are served.
 *
 * Two threads: that of http.c makes pages, the watcher scans the folder and reads on in the runs
 * that somebody looks at.  Without listeners and requests the watcher sleeps, so that a run beside
 * it has the machine to itself; who asks then waits for one look. */
#include "temper/serve.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/platform.h"
#include "base/sized.h"
#include "base/threads.h"
#include "base/vec.h"
#include "instrument/serve/site.h"
#include "instrument/store/run_index.h"

static const double look_s = 0.5, /* between looks at the runs that are open */
    scan_s = 2,                   /* between scans of the folder */
    most_scan_s = 30,             /* as they take more than these shares */
    scan_share = 0.02,            /* of the time, on slow disks */
    scan_cpu_share = 0.005,       /* of a processor */
    watched_s = 120,              /* after the last request the watcher sleeps */
    most_wait_s = 5;              /* for it to look again */

struct tp_server {
    char *folder;
    char *url;
    tp_http *http;
    tp_run_index *scanned; /* the watcher's own */
    double begun_s;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t watcher;
    bool has_watcher, stops;
    double asked_s;        /* of the last request */
    double looked_s;       /* of the last look */
    bool sleeps, is_woken; /* the watcher; ... for one look */
    pthread_cond_t looked;
    tp_site site;
};

/* What is answered is at most as old as between two scans; the lock is held. */
static void look_again(tp_server *s)
{
    double until = tp_clock_s() + most_wait_s;
    if (tp_clock_s() - s->looked_s > (s->sleeps ? scan_s : most_scan_s))
        s->is_woken = true;
    pthread_cond_signal(&s->wake);
    while (s->is_woken && !s->stops && tp_clock_s() < until)
        (void)tp_cond_wait_until(&s->looked, &s->lock, until);
}

static void handle(void *user, const tp_http_request *request, tp_http_reply *reply)
{
    tp_server *s = user;
    pthread_mutex_lock(&s->lock);
    tp_page p = {.site = &s->site, .request = request, .reply = reply};
    const char *path = tp_http_path(request);
    if (strcmp(path, "/metrics") != 0) /* a collector that asks for ever keeps nobody awake */
        s->asked_s = tp_clock_s();
    look_again(s);
    const char *before = tp_input_bound(s->site.real);
    tp_page_route(&p, path);
    (void)tp_input_bound(before);
    pthread_mutex_unlock(&s->lock);
}

/* ---- watching ---- */

static void see_growth(void *user, const char *id, int64_t records, uint64_t version)
{
    tp_server *s = user;
    char text[128];
    snprintf(text, sizeof text,
             "{\"run\":\"%s\",\"points\":%" PRId64 ",\"version\":\"%" PRIx64 "\"}", id, records,
             version);
    tp_http_publish(s->http, text);
}

static void look(tp_server *s)
{
    pthread_mutex_lock(&s->lock);
    (void)tp_input_bound(s->site.real); /* for good: the thread is the server's own */
    tp_site_look(&s->site, watched_s, see_growth, s);
    s->looked_s = tp_clock_s();
    s->is_woken = false;
    pthread_cond_broadcast(&s->looked);
    pthread_mutex_unlock(&s->lock);
}

/* Seconds from now to the next scan, by what this one took. */
static double pause_of(double wall_s, double cpu_s)
{
    double pause = TP_MAX(wall_s / scan_share, cpu_s / scan_cpu_share);
    return TP_MIN(TP_MAX(pause, scan_s), most_scan_s);
}

/* When the next one is due. */
static double scan(tp_server *s)
{
    bool has_changed = false;
    double begin = tp_clock_s(), begin_cpu = tp_thread_cpu_s();
    if (tp_run_index_scan(s->scanned, &has_changed, NULL) != TP_OK)
        return tp_clock_s() + scan_s;
    tp_run_index *fresh = has_changed ? tp_run_index_copy(s->scanned) : NULL, *old = NULL;
    pthread_mutex_lock(&s->lock);
    bool is_first = !s->site.has_scanned; /* which reads every run */
    s->site.has_scanned = true;
    if (fresh) {
        old = s->site.index;
        s->site.index = fresh;
    }
    pthread_mutex_unlock(&s->lock);
    tp_run_index_close(old);
    if (has_changed || is_first)
        tp_http_publish(s->http, "{\"list\":true}");
    double end = tp_clock_s();
    return end + (is_first ? scan_s : pause_of(end - begin, tp_thread_cpu_s() - begin_cpu));
}

/* Sleep until the next look; for as long as nobody is there, until somebody is. */
static bool is_time(tp_server *s, double *sleep_until)
{
    pthread_mutex_lock(&s->lock);
    while (!s->stops && tp_clock_s() < *sleep_until)
        (void)tp_cond_wait_until(&s->wake, &s->lock, *sleep_until);
    s->sleeps = true;
    while (!s->stops && !s->is_woken && tp_http_listeners(s->http) == 0 &&
           tp_clock_s() - s->asked_s > watched_s)
        (void)tp_cond_wait_until(&s->wake, &s->lock, tp_clock_s() + 3600);
    s->sleeps = false;
    *sleep_until = tp_clock_s() + look_s;
    bool goes_on = !s->stops;
    pthread_mutex_unlock(&s->lock);
    return goes_on;
}

static void *watch(void *user)
{
    tp_server *s = user;
    double next_look = 0, next_scan = 0;
    s->asked_s = tp_clock_s(); /* the first scan is at once */
    while (is_time(s, &next_look)) {
        if (tp_clock_s() >= next_scan)
            next_scan = scan(s);
        look(s);
    }
    return NULL;
}

/* ---- starting and stopping ---- */

static tp_status check_token(const char *token, tp_error *err)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t n = token ? strlen(token) : 16;
    if (n < 16 || n > 128 || (token && token[strspn(token, allowed)]))
        return tp_fail(err, TP_ERR_ARG, "a token has 16 to 128 letters and digits");
    return TP_OK;
}

static tp_status draw_token(char out[33], tp_error *err)
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return tp_fail(err, TP_ERR_IO, "the kernel gives no random numbers for a token");
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return TP_OK;
}

static void make_url(tp_server *s, const char *address, const char *token)
{
    tp_buf url = {0};
    bool is_any = strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0;
    bool is_v6 = strchr(address, ':') && !is_any;
    tp_buf_addf(&url, "http://%s%s%s:%d/", is_v6 ? "[" : "", is_any ? "localhost" : address,
                is_v6 ? "]" : "", tp_http_port(s->http));
    if (token)
        tp_buf_addf(&url, "?token=%s", token);
    s->url = url.data;
}

static tp_status start(tp_server *s, const tp_serve_options *o, tp_error *err)
{
    char drawn[33];
    const char *address = o->address ? o->address : "127.0.0.1", *token = o->token;
    const tp_run_index_options kept = {.size = sizeof kept, .without_cache = o->without_index};
    TP_TRY(check_token(token, err));
    if (!token && (o->needs_token || !tp_http_is_loopback(address))) {
        TP_TRY(draw_token(drawn, err));
        token = drawn;
    }
    TP_TRY(tp_run_index_open(s->folder, &kept, &s->scanned, err));
    s->site.index = tp_run_index_copy(s->scanned);
    if (!realpath(s->folder, s->site.real))
        return tp_fail(err, TP_ERR_IO, "'%s' cannot be found", s->folder);
    const tp_http_options http = {.address = address,
                                  .port = o->port ? TP_MAX(o->port, 0) : TP_SERVE_PORT,
                                  .token = token,
                                  .handler = handle,
                                  .user = s};
    TP_TRY(tp_http_open(&http, &s->http, err));
    make_url(s, address, token);
    s->has_watcher = pthread_create(&s->watcher, NULL, watch, s) == 0;
    return s->has_watcher ? TP_OK : tp_fail(err, TP_ERR_NOMEM, "cannot start a thread");
}

typedef struct {
    tp_server *server;
    const tp_serve_options *options;
    tp_status status;
    tp_error *err;
} starting;

static tp_status start_guarded(const starting *x)
{
    TP_MEMORY_GUARD(x->err);
    return start(x->server, x->options, x->err);
}

/* Threads are scheduled as the one that starts them. */
static void *start_giving_way(void *user)
{
    starting *x = user;
    tp_thread_give_way(x->options->priority == TP_SERVE_IDLE);
    x->status = start_guarded(x);
    return NULL;
}

static tp_status start_threads(tp_server *s, const tp_serve_options *o, tp_error *err)
{
    pthread_t thread;
    starting x = {.server = s, .options = o, .err = err};
    if (o->priority == TP_SERVE_NORMAL)
        return start(s, o, err);
    if (pthread_create(&thread, NULL, start_giving_way, &x) != 0)
        return tp_fail(err, TP_ERR_NOMEM, "cannot start a thread");
    pthread_join(thread, NULL);
    return x.status;
}

tp_status tp_server_start(const char *folder, const tp_serve_options *options, tp_server **ret,
                          tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_serve_options o = {0};
    TP_NEED(folder && ret, err);
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_serve_options", err));
    if (o.port < -1 || o.port > 65535)
        return tp_fail(err, TP_ERR_ARG, "port %d is none: 1 to 65535", o.port);
    tp_server *s = tp_vec_new(1, sizeof *s);
    s->folder = tp_strdup(folder);
    s->begun_s = s->asked_s = s->looked_s = tp_clock_s();
    pthread_mutex_init(&s->lock, NULL);
    tp_cond_init(&s->wake);
    tp_cond_init(&s->looked);
    TP_HAND_OVER(start_threads(s, &o, err), ret, s, tp_server_stop(s));
}

void tp_server_stop(tp_server *s)
{
    if (!s)
        return;
    if (s->has_watcher) {
        pthread_mutex_lock(&s->lock);
        s->stops = true;
        pthread_cond_broadcast(&s->wake);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->watcher, NULL);
    }
    tp_http_close(s->http);
    tp_site_release(&s->site);
    tp_run_index_close(s->scanned);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->wake);
    pthread_cond_destroy(&s->looked);
    free(s->url);
    free(s->folder);
    free(s);
}

const char *tp_server_url(const tp_server *s) { return s ? s->url : NULL; }
