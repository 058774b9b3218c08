/* http_names.c - the names of this machine that a browser may use for a server. */
#include "instrument/serve/http_names.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/vec.h"
#include "instrument/serve/http.h"

bool tp_http_is_loopback(const char *address)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (strcmp(address, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, address, &v4) == 1)
        return (ntohl(v4.s_addr) >> 24) == 127;
    return inet_pton(AF_INET6, address, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

static void add_name(tp_http_names *h, const char *name)
{
    *TP_VEC_PUSH(h->names, h->n, h->cap) = tp_strdup(name);
}

void tp_http_names_init(tp_http_names *h, const char *address)
{
    char name[HOST_NAME_MAX + 1] = "", text[INET6_ADDRSTRLEN];
    struct ifaddrs *all = NULL;
    *h = (tp_http_names){.is_local = tp_http_is_loopback(address)};
    add_name(h, address);
    if (h->is_local)
        return;
    if (gethostname(name, sizeof name - 1) == 0)
        add_name(h, name);
    if (getifaddrs(&all) != 0)
        return;
    for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
        int family = a->ifa_addr ? a->ifa_addr->sa_family : AF_UNSPEC;
        const void *at = family == AF_INET
                             ? (const void *)&((const struct sockaddr_in *)a->ifa_addr)->sin_addr
                             : (const void *)&((const struct sockaddr_in6 *)a->ifa_addr)->sin6_addr;
        if ((family == AF_INET || family == AF_INET6) && inet_ntop(family, at, text, sizeof text))
            add_name(h, text);
    }
    freeifaddrs(all);
}

void tp_http_names_release(tp_http_names *h)
{
    for (size_t i = 0; i < h->n; i++)
        free(h->names[i]);
    free(h->names);
    *h = (tp_http_names){0};
}

bool tp_http_is_our_host(const tp_http_names *h, const char *host)
{
    char name[256];
    size_t n = strlen(host);
    const char *colon = strrchr(host, ':'), *bracket = strchr(host, ']');
    if (n >= sizeof name)
        return false;
    if (colon && (!bracket || colon > bracket)) {
        char port[8];
        snprintf(port, sizeof port, "%d", h->port);
        if (strcmp(colon + 1, port) != 0)
            return false;
        n = (size_t)(colon - host);
    } else if (h->port != 80) {
        return false;
    }
    if (host[0] == '[' && n >= 2 && host[n - 1] == ']')
        snprintf(name, sizeof name, "%.*s", (int)(n - 2), host + 1);
    else
        snprintf(name, sizeof name, "%.*s", (int)n, host);
    if (h->is_local && (strcasecmp(name, "localhost") == 0 || tp_http_is_loopback(name)))
        return true;
    for (size_t i = 0; i < h->n; i++)
        if (strcasecmp(name, h->names[i]) == 0)
            return true;
    return false;
}

bool tp_http_is_our_origin(const tp_http_names *h, const char *origin)
{
    return tp_str_starts(origin, "http://") && tp_http_is_our_host(h, origin + 7);
}
