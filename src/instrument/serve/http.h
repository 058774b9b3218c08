/* http.h - a small HTTP server for pages of this machine: requests that are allowed, and events.
 *
 * libmicrohttpd does the protocol.  It is loaded when a server starts: a machine without it builds
 * and runs everything else.  One thread serves all connections.
 *
 * What is refused before a handler sees it: methods other than GET and HEAD (405), a Host that is
 * not this server's, as a page of another site with a DNS name for this address would send (403),
 * an Origin that is not this server's (403), a missing or wrong token where there is one (401).
 * Replies forbid scripts, styles and frames from elsewhere (Content-Security-Policy). */
#ifndef TP_INSTRUMENT_SERVE_HTTP_H
#define TP_INSTRUMENT_SERVE_HTTP_H

#include "base/strings.h"

typedef struct tp_http tp_http;
typedef struct tp_http_request tp_http_request;

/* The path as it was sent, decoded once: "/run/0123456789ab". */
const char *tp_http_path(const tp_http_request *r);
/* A parameter of the query, or NULL. */
const char *tp_http_query(const tp_http_request *r, const char *name);
/* All parameters of that name, in order; false stops. */
void tp_http_query_each(const tp_http_request *r, const char *name,
                        bool (*see)(void *user, const char *value), void *user);

/* What a handler fills; zeroed is 404. */
typedef struct {
    int status;
    const char *type;     /* "text/html; charset=utf-8" */
    tp_buf body;          /* is freed by the server */
    bool is_kept;         /* a browser may keep it: its address changes with its contents */
    bool is_events;       /* a stream of what tp_http_publish() says; the rest is not used */
    const char *location; /* of 303; literal */
} tp_http_reply;

typedef void (*tp_http_handler)(void *user, const tp_http_request *r, tp_http_reply *reply);

typedef struct {
    const char *address; /* "127.0.0.1", "::1", "0.0.0.0" */
    int port;            /* 0: any that is free */
    const char *token;   /* NULL: none is asked for */
    tp_http_handler handler;
    void *user;
} tp_http_options;

TP_CHECKED tp_status tp_http_open(const tp_http_options *options, tp_http **ret, tp_error *err);
void tp_http_close(tp_http *h); /* NULL is a no-op */
int tp_http_port(const tp_http *h);

/* Hand one event to every stream; any thread.  `data` is one line. */
void tp_http_publish(tp_http *h, const char *data);
/* Streams that listen now. */
size_t tp_http_listeners(const tp_http *h);

/* Is `address` one that only this machine reaches? */
bool tp_http_is_loopback(const char *address);

#endif
