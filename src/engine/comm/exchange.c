/* exchange.c - collectives on their way: started, moved on, waited for; and what they took. */
#include "engine/comm/comm_internal.h"

static void expose(tp_comm *c, uint64_t since)
{
    uint64_t now = tp_comm_now_ns(c);
    c->exposed_ns += now - since;
    if (!c->first && c->busy_since) {
        c->busy_ns += now - c->busy_since;
        c->busy_since = 0;
    }
}

static void unlink_request(tp_comm *c, tp_exchange *r)
{
    tp_exchange **at = &c->first;
    while (*at && *at != r)
        at = &(*at)->next;
    if (*at)
        *at = r->next;
    c->last = NULL;
    for (tp_exchange *x = c->first; x; x = x->next)
        c->last = x;
}

int tp_exchange_tag(tp_comm *c, const tp_comm_group *group)
{
    enum { EACH = (TP_TRANSPORT_TAGS - FIRST_TAG) / TAG_KINDS };
    int kind = group->count == 0 ? 0 : group->stride == 1 ? 1 : 2;
    int tag = c->next_tag[kind];
    c->next_tag[kind] = (tag + 1) % EACH;
    return FIRST_TAG + kind * EACH + tag;
}

tp_status tp_comm_start(tp_comm *c, const tp_exchange_spec *collective, tp_exchange **ret,
                        tp_error *err)
{
    *ret = NULL;
    if (!c || c->size == 1 || collective->group.count == 1)
        return TP_OK;
    TP_TRY(tp_comm_listen(c, err));
    uint64_t begin = tp_comm_now_ns(c);
    tp_exchange *r = tp_new(1, sizeof *r);
    r->c = *collective;
    r->tag = tp_exchange_tag(c, &collective->group);
    r->number = c->n_started++;
    r->sending = r->receiving = -1;
    *(c->first ? &c->last->next : &c->first) = r;
    c->last = r;
    c->busy_since = c->busy_since ? c->busy_since : begin;
    tp_exchange_trace_begin(c, r);
    tp_status status = tp_exchange_begin(c, r, err);
    if (status != TP_OK) {
        unlink_request(c, r);
        free(r);
        return status;
    }
    expose(c, begin);
    *ret = r;
    return TP_OK;
}

/* All that are on their way; those that are done leave the list. */
static tp_status go_on(tp_comm *c, tp_error *err)
{
    for (tp_exchange *r = c->first, *next; r; r = next) {
        next = r->next;
        TP_TRY(tp_exchange_go_on(c, r, err));
        if (r->is_done) {
            unlink_request(c, r);
            tp_exchange_trace_end(c, r);
        }
    }
    return TP_OK;
}

void tp_comm_progress(tp_comm *c)
{
    if (!c || !c->first || c->has_failed)
        return;
    uint64_t begin = tp_comm_now_ns(c);
    tp_error err;
    if (go_on(c, &err) != TP_OK) {
        c->has_failed = true;
        c->failure = err;
    }
    expose(c, begin);
}

bool tp_comm_is_busy(const tp_comm *c) { return c && c->first; }

/* A rank that has stopped may have sent all that is wanted of it, and take nothing: whoever sends
 * to it waits as well. */
static int waits_for(const tp_exchange *r) { return r->receiving >= 0 ? r->from : r->to; }

tp_status tp_comm_wait(tp_comm *c, tp_exchange *r, tp_error *err)
{
    if (!r)
        return TP_OK;
    uint64_t begin = tp_comm_now_ns(c);
    tp_waiting w = {0};
    tp_status status = tp_comm_listen(c, err);
    while (status == TP_OK && !r->is_done) {
        status = go_on(c, err);
        if (status == TP_OK && !r->is_done)
            status = tp_comm_pause(c, &w, waits_for(r), err);
    }
    if (!r->is_done && r->receiving >= 0) /* into memory that the caller takes back */
        c->transport->cancel(c->transport->context, r->receiving);
    unlink_request(c, r);
    free(r);
    expose(c, begin);
    return status;
}

tp_status tp_comm_exchange(tp_comm *c, const tp_exchange_spec *collective, tp_error *err)
{
    tp_exchange *request;
    TP_TRY(tp_comm_start(c, collective, &request, err));
    return tp_comm_wait(c, request, err);
}

tp_comm_stats tp_comm_get_stats(const tp_comm *c)
{
    if (!c)
        return (tp_comm_stats){0};
    tp_comm_stats s = c->stats;
    s.exposed_s = (double)c->exposed_ns * 1e-9;
    s.hidden_s = c->busy_ns > c->exposed_ns ? (double)(c->busy_ns - c->exposed_ns) * 1e-9 : 0;
    return s;
}
