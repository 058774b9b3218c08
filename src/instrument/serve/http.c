/* http.c - requests are checked, handed to one function, answered; events go to whoever listens.
 *
 * Streams of events (HTML living standard, 9.2 "Server-sent events") are suspended while there is
 * nothing to say: a connection costs its buffers and no processor time.  Every 15 s a comment shows
 * whether it is still there. */
#include "instrument/serve/http.h"

#include <dlfcn.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/library.h"
#include "base/platform.h"
#include "base/threads.h"
#include "base/vec.h"
#include "instrument/serve/http_kept.h"
#include "instrument/serve/http_names.h"

enum {
    MOST_CONNECTIONS = 600,
    MOST_STREAMS = 400,
    IDLE_S = 20,           /* a client that sends or reads nothing that long is dropped */
    REQUEST_BYTES = 32768, /* of headers; more is 431 */
    EVENTS = 256,          /* kept for streams that are behind */
    BEAT_MS = 15000,
    ARGUMENTS = 256, /* of an address; with more than fit into REQUEST_BYTES the library hangs */
    KEPT_BYTES = 1 << 20 /* of an answer for all who ask the same, at most */
};

/* ---- libmicrohttpd, loaded ---- */

static struct {
    __typeof__(MHD_start_daemon) *start;
    __typeof__(MHD_stop_daemon) *stop;
    __typeof__(MHD_get_daemon_info) *info;
    __typeof__(MHD_create_response_from_buffer) *from_buffer;
    __typeof__(MHD_create_response_from_callback) *from_callback;
    __typeof__(MHD_add_response_header) *header;
    __typeof__(MHD_queue_response) *queue;
    __typeof__(MHD_destroy_response) *destroy;
    __typeof__(MHD_lookup_connection_value) *value;
    __typeof__(MHD_get_connection_values) *values;
    __typeof__(MHD_set_connection_option) *option;
    __typeof__(MHD_get_connection_info) *connection;
    __typeof__(MHD_suspend_connection) *suspend;
    __typeof__(MHD_resume_connection) *resume;
    const char *why; /* NULL: all there */
} mhd;

static void attach(void)
{
    void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
    const tp_library_function wanted[] = {
        {"MHD_start_daemon", &mhd.start},
        {"MHD_stop_daemon", &mhd.stop},
        {"MHD_get_daemon_info", &mhd.info},
        {"MHD_create_response_from_buffer", &mhd.from_buffer},
        {"MHD_create_response_from_callback", &mhd.from_callback},
        {"MHD_add_response_header", &mhd.header},
        {"MHD_queue_response", &mhd.queue},
        {"MHD_destroy_response", &mhd.destroy},
        {"MHD_lookup_connection_value", &mhd.value},
        {"MHD_get_connection_values", &mhd.values},
        {"MHD_set_connection_option", &mhd.option},
        {"MHD_get_connection_info", &mhd.connection},
        {"MHD_suspend_connection", &mhd.suspend},
        {"MHD_resume_connection", &mhd.resume},
    };
    mhd.why = "libmicrohttpd is not installed (Debian: libmicrohttpd12)";
    if (!library)
        return;
    mhd.why = "libmicrohttpd lacks a function; 0.9.70 is needed";
    if (tp_library_find(library, wanted, TP_COUNTOF(wanted)))
        mhd.why = NULL;
}

/* ---- state ---- */

typedef struct stream {
    tp_http *http;
    struct MHD_Connection *connection;
    uint64_t next; /* event that it has not seen */
    uint64_t beat; /* likewise of the beats */
    tp_buf text;   /* not sent yet */
    size_t at;
    bool is_suspended;
    struct stream *before, *after;
} stream;

struct tp_http {
    struct MHD_Daemon *daemon;
    tp_http_handler handler;
    void *user;
    char *token;
    tp_http_names names;
    tp_http_keeper kept; /* seen by the thread that answers alone */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    pthread_t beats;
    bool stops;
    char *events[EVENTS];
    uint64_t n_events, n_beats; /* events and streams are counted without the lock as well */
    stream *streams;
    size_t n_streams;
};

struct tp_http_request {
    tp_http *http;
    struct MHD_Connection *connection;
    const char *path;
};

const char *tp_http_path(const tp_http_request *r) { return r->path; }

const char *tp_http_query(const tp_http_request *r, const char *name)
{
    return mhd.value(r->connection, MHD_GET_ARGUMENT_KIND, name);
}

typedef struct {
    const char *name;
    bool (*see)(void *user, const char *value);
    void *user;
} each_value;

static enum MHD_Result see_value(void *user, enum MHD_ValueKind kind, const char *key,
                                 const char *value)
{
    const each_value *e = user;
    (void)kind;
    return strcmp(key, e->name) != 0 || !value || e->see(e->user, value) ? MHD_YES : MHD_NO;
}

void tp_http_query_each(const tp_http_request *r, const char *name,
                        bool (*see)(void *user, const char *value), void *user)
{
    each_value e = {name, see, user};
    (void)mhd.values(r->connection, MHD_GET_ARGUMENT_KIND, see_value, &e);
}

/* ---- who may ask ---- */

/* In a time that does not depend on where they differ. */
static bool is_token(const tp_http *h, const char *text, size_t n)
{
    unsigned differ = n != strlen(h->token);
    for (size_t i = 0; i < n && h->token[i]; i++)
        differ |= (unsigned char)text[i] ^ (unsigned char)h->token[i];
    return !differ;
}

/* Cookies are of a host, whatever the port: every server of it has its own. */
static const char *cookie_name(const tp_http *h, char out[32])
{
    snprintf(out, 32, "temper_token_%d", h->names.port);
    return out;
}

static bool has_token(const tp_http *h, struct MHD_Connection *c)
{
    char name[32];
    const char *cookie = mhd.value(c, MHD_COOKIE_KIND, cookie_name(h, name));
    const char *bearer = mhd.value(c, MHD_HEADER_KIND, "Authorization");
    return (cookie && is_token(h, cookie, strlen(cookie))) ||
           (bearer && strncasecmp(bearer, "Bearer ", 7) == 0 &&
            is_token(h, bearer + 7, strlen(bearer + 7)));
}

/* ---- answering ---- */

static void add_headers(struct MHD_Response *r, const char *type, bool is_kept)
{
    static const char *const headers[][2] = {
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'; "
         "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"}};
    for (size_t i = 0; i < TP_COUNTOF(headers); i++)
        (void)mhd.header(r, headers[i][0], headers[i][1]);
    (void)mhd.header(r, "Content-Type", type);
    (void)mhd.header(r, "Cache-Control", is_kept ? "private, max-age=3600" : "no-store");
}

static enum MHD_Result send_response(struct MHD_Connection *c, int status, struct MHD_Response *r,
                                     const char *type)
{
    add_headers(r, type, false);
    enum MHD_Result result = mhd.queue(c, (unsigned)status, r);
    mhd.destroy(r);
    return result;
}

static enum MHD_Result send_text(struct MHD_Connection *c, int status, const char *text)
{
    struct MHD_Response *r =
        mhd.from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
    return r ? send_response(c, status, r, "text/plain; charset=utf-8") : MHD_NO;
}

/* The token of the query becomes a cookie, and leaves the address. */
static enum MHD_Result take_token(const tp_http *h, struct MHD_Connection *c, const char *path)
{
    char cookie[256], name[32];
    struct MHD_Response *r = mhd.from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    if (!r)
        return MHD_NO;
    snprintf(cookie, sizeof cookie, "%s=%s; HttpOnly; SameSite=Strict; Path=/",
             cookie_name(h, name), h->token);
    (void)mhd.header(r, "Set-Cookie", cookie);
    /* A path of one slash: "//host" would lead elsewhere. */
    (void)mhd.header(r, "Location",
                     path[0] == '/' && path[1] != '/' && !strpbrk(path, "\r\n\\") ? path : "/");
    return send_response(c, 303, r, "text/plain");
}

/* ---- streams ---- */

static void add_event_text(tp_buf *out, const char *data)
{
    tp_buf_addf(out, "data: %s\n\n", data);
}

/* What the stream has not seen; the lock is held. */
static void catch_up(stream *s)
{
    tp_http *h = s->http;
    if (h->n_events - s->next > EVENTS) {
        add_event_text(&s->text, "{\"again\":true}");
        s->next = h->n_events;
    }
    for (; s->next < h->n_events; s->next++)
        add_event_text(&s->text, h->events[s->next % EVENTS]);
    if (s->beat < h->n_beats) {
        tp_buf_adds(&s->text, ":\n\n");
        s->beat = h->n_beats;
    }
}

static ssize_t read_stream(void *user, uint64_t at, char *out, size_t size)
{
    stream *s = user;
    tp_http *h = s->http;
    ssize_t n = 0;
    (void)at;
    pthread_mutex_lock(&h->lock);
    if (s->at == s->text.len) {
        tp_buf_clear(&s->text);
        s->at = 0;
        catch_up(s);
    }
    if (h->stops) {
        n = MHD_CONTENT_READER_END_OF_STREAM;
    } else if (s->text.len > s->at) {
        size_t left = TP_MIN(size, s->text.len - s->at);
        memcpy(out, s->text.data + s->at, left);
        s->at += left;
        n = (ssize_t)left;
    } else {
        s->is_suspended = true;
        mhd.suspend(s->connection);
    }
    pthread_mutex_unlock(&h->lock);
    return n;
}

static void close_stream(void *user)
{
    stream *s = user;
    tp_http *h = s->http;
    pthread_mutex_lock(&h->lock);
    if (s->before)
        s->before->after = s->after;
    else
        h->streams = s->after;
    if (s->after)
        s->after->before = s->before;
    __atomic_fetch_sub(&h->n_streams, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&h->lock);
    tp_buf_release(&s->text);
    free(s);
}

static enum MHD_Result open_stream(tp_http *h, struct MHD_Connection *c, bool has_body)
{
    enum { PIECE = 4096 };
    struct MHD_Response *head = has_body ? NULL : mhd.from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    if (!has_body)
        return head ? send_response(c, 200, head, "text/event-stream") : MHD_NO;
    pthread_mutex_lock(&h->lock);
    bool is_full = h->n_streams >= MOST_STREAMS;
    pthread_mutex_unlock(&h->lock);
    if (is_full)
        return send_text(c, 503, "too many pages listen already\n");
    stream *s = tp_vec_new(1, sizeof *s);
    *s = (stream){.http = h, .connection = c};
    tp_buf_adds(&s->text, "retry: 2000\n\n");
    struct MHD_Response *r =
        mhd.from_callback(MHD_SIZE_UNKNOWN, PIECE, read_stream, s, close_stream);
    if (!r) {
        tp_buf_release(&s->text);
        free(s);
        return MHD_NO;
    }
    pthread_mutex_lock(&h->lock);
    s->next = h->n_events;
    s->beat = h->n_beats;
    s->after = h->streams;
    if (s->after)
        s->after->before = s;
    h->streams = s;
    __atomic_fetch_add(&h->n_streams, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&h->lock);
    (void)mhd.option(c, MHD_CONNECTION_OPTION_TIMEOUT, 0u); /* it waits by design */
    (void)mhd.header(r, "X-Accel-Buffering", "no");
    return send_response(c, 200, r, "text/event-stream");
}

static void resume_all(tp_http *h)
{
    for (stream *s = h->streams; s; s = s->after)
        if (s->is_suspended) {
            s->is_suspended = false;
            mhd.resume(s->connection);
        }
}

void tp_http_publish(tp_http *h, const char *data)
{
    pthread_mutex_lock(&h->lock);
    char **slot = &h->events[h->n_events % EVENTS];
    free(*slot);
    *slot = tp_strdup(data);
    __atomic_fetch_add(&h->n_events, 1, __ATOMIC_RELAXED);
    resume_all(h);
    pthread_mutex_unlock(&h->lock);
}

static void *beat(void *user)
{
    tp_http *h = user;
    pthread_mutex_lock(&h->lock);
    while (!h->stops) {
        if (!tp_cond_wait_until(&h->wake, &h->lock, tp_clock_s() + BEAT_MS * 1e-3) && !h->stops) {
            h->n_beats++;
            resume_all(h);
        }
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

/* ---- one request ---- */

static enum MHD_Result add_to_key(void *user, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    tp_buf *key = user;
    (void)kind;
    value = value ? value : "";
    tp_buf_addf(key, "?%zu:%s=%zu:%s", strlen(name), name, strlen(value), value);
    return MHD_YES;
}

static void drop_answer(void *response) { mhd.destroy(response); }

static uint64_t count_news(tp_http *h) { return __atomic_load_n(&h->n_events, __ATOMIC_RELAXED); }

static enum MHD_Result answer(tp_http *h, struct MHD_Connection *c, const char *path, bool has_body)
{
    tp_http_reply reply = {0};
    const tp_http_request request = {h, c, path};
    TP_OWN(tp_buf) key = {0};
    tp_buf_adds(&key, path);
    (void)mhd.values(c, MHD_GET_ARGUMENT_KIND, add_to_key, &key);
    struct MHD_Response *r = tp_http_kept_find(&h->kept, key.data, count_news(h), tp_clock_s());
    if (r)
        return mhd.queue(c, 200, r);
    tp_http_kept fresh = {.n_news = count_news(h), .cost_s = -tp_thread_cpu_s()};
    h->handler(h->user, &request, &reply);
    fresh.cost_s += tp_thread_cpu_s();
    if (reply.is_events) {
        tp_buf_release(&reply.body);
        return open_stream(h, c, has_body);
    }
    if (!reply.status) {
        tp_buf_release(&reply.body);
        return send_text(c, 404, "not found\n");
    }
    bool is_for_all = reply.status == 200 && reply.body.len && reply.body.len <= KEPT_BYTES;
    /* The library frees what it was given with free(). */
    r = reply.body.len ? mhd.from_buffer(reply.body.len, reply.body.data, MHD_RESPMEM_MUST_FREE)
                       : mhd.from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    if (!r || !reply.body.len)
        tp_buf_release(&reply.body);
    if (!r)
        return MHD_NO;
    if (reply.location)
        (void)mhd.header(r, "Location", reply.location);
    add_headers(r, reply.type, reply.is_kept);
    enum MHD_Result result = mhd.queue(c, (unsigned)reply.status, r);
    if (!is_for_all) {
        mhd.destroy(r);
        return result;
    }
    fresh.key = tp_strdup(key.data);
    fresh.answer = r;
    fresh.made_s = tp_clock_s();
    fresh.is_immutable = reply.is_kept;
    tp_http_kept_add(&h->kept, &fresh);
    return result;
}

/* Every header counts: of two Hosts another program may have believed the other one. */
typedef struct {
    const tp_http_names *names;
    bool has_host, is_our_host, is_our_origin;
} caller;

static enum MHD_Result see_header(void *user, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    caller *x = user;
    (void)kind;
    if (strcasecmp(name, "Host") == 0) {
        x->has_host = true;
        x->is_our_host &= value && tp_http_is_our_host(x->names, value);
    } else if (strcasecmp(name, "Origin") == 0) {
        x->is_our_origin &= value && tp_http_is_our_origin(x->names, value);
    }
    return MHD_YES;
}

static enum MHD_Result handle(void *user, struct MHD_Connection *c, const char *path,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    static const char *const first = "";
    tp_http *h = user;
    (void)version;
    (void)upload;
    if (!*state) { /* the headers are there; a body is not waited for */
        *state = (void *)(uintptr_t)first;
        bool is_known = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
        return is_known ? MHD_YES : send_text(c, 405, "only GET and HEAD are answered\n");
    }
    if (*upload_size) { /* one that a GET brings is not read */
        *upload_size = 0;
        return MHD_YES;
    }
    caller who = {&h->names, false, true, true};
    (void)mhd.values(c, MHD_HEADER_KIND, see_header, &who);
    if (!who.has_host || !who.is_our_host)
        return send_text(c, 403, "the Host of the request is not this server's\n");
    if (!who.is_our_origin)
        return send_text(c, 403, "the Origin of the request is another site\n");
    if (h->token) {
        const char *given = mhd.value(c, MHD_GET_ARGUMENT_KIND, "token");
        if (given && is_token(h, given, strlen(given)))
            return take_token(h, c, path);
        if (!has_token(h, c))
            return send_text(c, 401,
                             "open the address that 'temper serve' printed: it has the "
                             "token\n");
    }
    return answer(h, c, path, strcmp(method, "HEAD") != 0);
}

/* The address as it came, before the library takes it apart. */
static void *see_address(void *user, const char *address, struct MHD_Connection *c)
{
    static const char refusal[] = "HTTP/1.1 414 URI Too Long\r\nContent-Length: 0\r\n"
                                  "Connection: close\r\n\r\n";
    size_t n = 0;
    (void)user;
    for (const char *p = address; (p = strpbrk(p, "?&")); p++)
        n++;
    const union MHD_ConnectionInfo *info =
        n > ARGUMENTS ? mhd.connection(c, MHD_CONNECTION_INFO_CONNECTION_FD) : NULL;
    if (info) {
        (void)!send(info->connect_fd, refusal, sizeof refusal - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        shutdown(info->connect_fd, SHUT_RDWR);
    }
    return NULL; /* of handle(): nothing is known of the request */
}

static void ignore_log(void *user, const char *format, va_list arguments)
{
    (void)user;
    (void)format;
    (void)arguments;
}

/* ---- opening ---- */

static tp_status resolve(const tp_http_options *o, struct addrinfo **ret, tp_error *err)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_PASSIVE,
                                   .ai_socktype = SOCK_STREAM};
    char port[16];
    const char *address = strcmp(o->address, "localhost") == 0 ? "127.0.0.1" : o->address;
    snprintf(port, sizeof port, "%d", o->port);
    int code = getaddrinfo(address, port, &hints, ret);
    if (code != 0)
        return tp_fail(err, TP_ERR_ARG, "'%s' is no address of this machine (as 127.0.0.1): %s",
                       o->address, gai_strerror(code));
    return TP_OK;
}

static tp_status start(tp_http *h, const tp_http_options *o, tp_error *err)
{
    struct addrinfo *a = NULL;
    TP_TRY(resolve(o, &a, err));
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
                     (a->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    h->daemon = mhd.start(
        flags, (uint16_t)o->port, NULL, NULL, handle, h, MHD_OPTION_EXTERNAL_LOGGER, ignore_log,
        NULL, MHD_OPTION_URI_LOG_CALLBACK, see_address, NULL, MHD_OPTION_SOCK_ADDR, a->ai_addr,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)MOST_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    freeaddrinfo(a);
    if (!h->daemon)
        return tp_fail(err, TP_ERR_IO,
                       "cannot listen on %s port %d: another program has it, or it is not allowed; "
                       "--port -1 takes one that is free",
                       o->address, o->port);
    const union MHD_DaemonInfo *info = mhd.info(h->daemon, MHD_DAEMON_INFO_BIND_PORT);
    h->names.port = info ? info->port : o->port;
    return TP_OK;
}

tp_status tp_http_open(const tp_http_options *o, tp_http **ret, tp_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, attach);
    if (mhd.why)
        return tp_fail(err, TP_ERR_UNSUPPORTED, "nothing can be served: %s", mhd.why);
    tp_http *h = tp_vec_new(1, sizeof *h);
    h->handler = o->handler;
    h->user = o->user;
    h->token = o->token ? tp_strdup(o->token) : NULL;
    tp_http_names_init(&h->names, o->address);
    h->kept.release = drop_answer;
    pthread_mutex_init(&h->lock, NULL);
    tp_cond_init(&h->wake);
    tp_status status = start(h, o, err);
    if (status == TP_OK && pthread_create(&h->beats, NULL, beat, h) != 0) {
        mhd.stop(h->daemon);
        h->daemon = NULL;
        status = tp_fail(err, TP_ERR_NOMEM, "cannot start a thread");
    }
    TP_HAND_OVER(status, ret, h, tp_http_close(h));
}

void tp_http_close(tp_http *h)
{
    if (!h)
        return;
    if (h->daemon) {
        pthread_mutex_lock(&h->lock);
        h->stops = true;
        resume_all(h); /* each ends its stream */
        pthread_cond_broadcast(&h->wake);
        pthread_mutex_unlock(&h->lock);
        pthread_join(h->beats, NULL);
        mhd.stop(h->daemon);
    }
    for (size_t i = 0; i < EVENTS; i++)
        free(h->events[i]);
    tp_http_kept_release(&h->kept);
    tp_http_names_release(&h->names);
    free(h->token);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->wake);
    free(h);
}

int tp_http_port(const tp_http *h) { return h->names.port; }

size_t tp_http_listeners(const tp_http *h)
{
    return __atomic_load_n(&h->n_streams, __ATOMIC_RELAXED);
}
