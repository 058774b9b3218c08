/* http_names.h - is a server called by its own name?  A page of another site that had a DNS name
 * made for this address comes with that name. */
#ifndef TP_INSTRUMENT_SERVE_HTTP_NAMES_H
#define TP_INSTRUMENT_SERVE_HTTP_NAMES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    int port;
    bool is_local; /* reached from this machine alone; localhost is right as well */
    char **names;
    size_t n, cap;
} tp_http_names;

/* What a browser may call it: the address, and of one for all addresses each of them.  The port is
 * the caller's to set. */
void tp_http_names_init(tp_http_names *names, const char *address);
void tp_http_names_release(tp_http_names *names);

/* Of a Host: "name", "name:port", "[::1]:port". */
bool tp_http_is_our_host(const tp_http_names *names, const char *host);
bool tp_http_is_our_origin(const tp_http_names *names, const char *origin);

#endif
