/* place.c - where the ranks are, and what processors they have. */
#include <string.h>

#include "base/platform.h"
#include "engine/comm/comm_internal.h"

int tp_comm_rank(const tp_comm *c) { return c ? c->rank : 0; }
int tp_comm_size(const tp_comm *c) { return c ? c->size : 1; }
int tp_comm_local_rank(const tp_comm *c) { return c ? c->local_rank : 0; }
int tp_comm_local_size(const tp_comm *c) { return c ? c->local_size : 1; }

const char *tp_comm_host(const tp_comm *c, int rank)
{
    return c && c->places ? c->places[rank].host : "this host";
}

const char *tp_comm_transport(const tp_comm *c)
{
    return c && c->transport ? c->transport->name : "self";
}

int tp_comm_processors(const tp_comm *c)
{
    double share = 0;
    TP_ASSERT(c && c->places);
    const tp_rank_place *mine = &c->places[c->rank];
    for (size_t bit = 0; bit < sizeof mine->processors * 8; bit++) {
        int users = 0;
        if (!(mine->processors[bit / 8] >> bit % 8 & 1))
            continue;
        for (int i = 0; i < c->size; i++)
            users += strcmp(c->places[i].host, mine->host) == 0 &&
                     (c->places[i].processors[bit / 8] >> bit % 8 & 1);
        share += 1.0 / users;
    }
    return TP_MAX((int)(share + 1e-9), 1);
}
