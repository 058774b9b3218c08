/* exchange_trace.c - collectives as events of a trace, with the metadata that Kineto gives NCCL's:
 * what reads traces of several ranks matches them by group and number. */
#include "engine/comm/comm_internal.h"

enum { KINDS = 3, TRACKS = 4 };

#define SITE(name, track)                                   \
    {                                                       \
        name, "collective_comm", NULL, NULL, 0, 0, 0, track \
    }
#define SITES(name)                                                \
    {                                                              \
        SITE(name, 1), SITE(name, 2), SITE(name, 3), SITE(name, 4) \
    }
static const tp_trace_site sites[KINDS][TRACKS] = {[TP_REDUCE_SCATTER] = SITES("reduce_scatter"),
                                                   [TP_ALL_GATHER] = SITES("all_gather"),
                                                   [TP_ALL_REDUCE] = SITES("all_reduce")};

/* What is on its way at once has rows of its own; from the last of them on they share it. */
static int free_track(const tp_comm *c, const tp_exchange *r)
{
    for (int track = 1; track < TRACKS; track++) {
        bool is_taken = false;
        for (const tp_exchange *x = c->first; x; x = x->next)
            is_taken |= x != r && x->track == track;
        if (!is_taken)
            return track;
    }
    return TRACKS;
}

void tp_exchange_trace_begin(tp_comm *c, tp_exchange *r)
{
    if (!tp_trace_enabled())
        return;
    r->track = free_track(c, r);
    r->zone = tp_zone_begin(&sites[r->c.kind][r->track - 1]);
}

/* Bytes are those of the messages' data, encoded or not. */
void tp_exchange_trace_end(const tp_comm *c, const tp_exchange *r)
{
    char text[400];
    if (r->zone.start == 0)
        return;
    tp_comm_group g = r->c.group.count ? r->c.group : (tp_comm_group){0, 1, c->size};
    int place = (c->rank - g.first) / g.stride;
    size_t all = r->c.starts[g.count] * r->c.element;
    size_t own = (r->c.starts[place + 1] - r->c.starts[place]) * r->c.element;
    snprintf(text, sizeof text,
             "{\"Collective name\":\"%s\",\"dtype\":\"Byte\",\"In msg nelems\":%zu,"
             "\"Out msg nelems\":%zu,\"Group size\":%d,\"Process Group Name\":\"%d+%dx%d\","
             "\"Seq\":%llu}",
             r->zone.site->name, r->c.kind == TP_ALL_GATHER ? own : all,
             r->c.kind == TP_REDUCE_SCATTER ? own : all, g.count, g.first, g.stride, g.count,
             (unsigned long long)r->number);
    tp_zone_end_with(&r->zone, text);
}
