/* serve.h - a local web page of all runs below a folder, live.
 *
 *     tp_server *s;
 *     if (tp_server_start("runs", NULL, &s, &err) == TP_OK)
 *         puts(tp_server_url(s));
 *     ...
 *     tp_server_stop(s);
 *
 * A list with filters, curves that move while a run is written, comparison, operators, memory, a
 * time line, samples, the report; /metrics for Prometheus, and the same as JSON:
 * docs/guide/serve.md. The server runs in threads of its own, reads below the folder alone, writes
 * nothing but the index (temper/runs.h), needs no network, and is reached from this machine alone
 * unless asked otherwise.
 *
 * TP_ERR_UNSUPPORTED where libmicrohttpd is not there.
 *
 * Threads: several servers at once; a server is started and stopped by one thread, tp_server_url()
 * any. */
#ifndef TEMPER_SERVE_H
#define TEMPER_SERVE_H

#include "temper/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TP_SERVE_PORT = 6996 };

/* Whose turn it is where a run wants every processor. */
typedef enum {
    TP_SERVE_LOW,   /* a seventieth of a processor for the server (nice 19) */
    TP_SERVE_IDLE,  /* nothing: pages wait until a processor would stand idle (SCHED_IDLE) */
    TP_SERVE_NORMAL /* as for any program */
} tp_serve_priority;

typedef struct {
    size_t size;         /* sizeof(tp_serve_options) */
    const char *address; /* to listen on; NULL: 127.0.0.1.  Others ask for a token */
    int port;            /* 0: TP_SERVE_PORT; -1: any that is free */
    const char *token;   /* 16 to 128 letters and digits; NULL: drawn where one is needed */
    bool needs_token;    /* also on 127.0.0.1, where other users of the machine reach it */
    bool without_index;  /* keep no index between starts */
    tp_serve_priority priority;
} tp_serve_options;

typedef struct tp_server tp_server;

/* `options` may be NULL. */
TP_API TP_CHECKED tp_status tp_server_start(const char *folder, const tp_serve_options *options,
                                            tp_server **ret, tp_error *err);
TP_API void tp_server_stop(tp_server *s); /* NULL is a no-op */
/* To open in a browser; with the token where there is one.  Belongs to the server. */
TP_API const char *tp_server_url(const tp_server *s);

#ifdef __cplusplus
}
#endif

#endif
