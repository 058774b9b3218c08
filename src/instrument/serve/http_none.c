/* http_none.c - http.h of a program that was built without libmicrohttpd: nothing can be served,
 * and nobody has a server to call the rest with. */
#include "instrument/serve/http.h"

tp_status tp_http_open(const tp_http_options *o, tp_http **ret, tp_error *err)
{
    (void)o;
    (void)ret;
    return tp_fail(err, TP_ERR_UNSUPPORTED,
                   "nothing can be served: this program was built without libmicrohttpd (Debian: "
                   "libmicrohttpd-dev)");
}

void tp_http_close(tp_http *h) { TP_ASSERT(!h); }

const char *tp_http_path(const tp_http_request *r)
{
    (void)r;
    return "";
}

const char *tp_http_query(const tp_http_request *r, const char *name)
{
    (void)r;
    (void)name;
    return NULL;
}

void tp_http_query_each(const tp_http_request *r, const char *name,
                        bool (*see)(void *user, const char *value), void *user)
{
    (void)r;
    (void)name;
    (void)see;
    (void)user;
}

int tp_http_port(const tp_http *h)
{
    (void)h;
    return 0;
}

void tp_http_publish(tp_http *h, const char *data)
{
    (void)h;
    (void)data;
}

size_t tp_http_listeners(const tp_http *h)
{
    (void)h;
    return 0;
}

bool tp_http_is_loopback(const char *address)
{
    (void)address;
    return true;
}
