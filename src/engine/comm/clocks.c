/* clocks.c - how far the clocks of ranks are apart.
 *
 * A rank asks rank 0 for its time, again and again.  Where the answer took rtt, rank 0 read its
 * clock at some moment of that: in the middle of it, give or take rtt / 2.  The fastest answer
 * counts. */
#include "engine/comm/comm_internal.h"

enum { ROUNDS = 64, SPINS = 5000 };

typedef struct {
    tp_comm *comm;
    int tag;
    int64_t (*now)(void *user);
    void *user;
} clocks;

/* Waits in a loop at first: a nap would be part of the answer's way. */
static tp_status finish(const clocks *k, int request, int rank, tp_error *err)
{
    tp_comm *c = k->comm;
    tp_transport *t = c->transport;
    tp_waiting w = {0};
    for (int i = 0;; i++) {
        int done = request < 0 ? -1 : t->test(t->context, request);
        if (done < 0)
            return tp_fail(err, TP_ERR_IO, "a message between rank %d and rank %d failed", c->rank,
                           rank);
        if (done)
            return TP_OK;
        tp_status status = i < SPINS ? TP_OK : tp_comm_pause(c, &w, rank, err);
        if (status != TP_OK) {
            t->cancel(t->context, request);
            return status;
        }
    }
}

static tp_status ask(const clocks *k, tp_clock_offset *best, tp_error *err)
{
    tp_transport *t = k->comm->transport;
    char ping = 0;
    int64_t there;
    int answer = t->receive(t->context, &there, sizeof there, 0, k->tag);
    int64_t before = k->now(k->user);
    int question = t->send(t->context, &ping, 1, 0, k->tag);
    TP_TRY(finish(k, answer, 0, err));
    int64_t after = k->now(k->user);
    TP_TRY(finish(k, question, 0, err));
    int64_t error = (after - before + 1) / 2;
    if (error < best->error_ns)
        *best = (tp_clock_offset){before + (after - before) / 2 - there, error};
    return TP_OK;
}

static tp_status answer(const clocks *k, int rank, tp_error *err)
{
    tp_transport *t = k->comm->transport;
    char ping;
    TP_TRY(finish(k, t->receive(t->context, &ping, 1, rank, k->tag), rank, err));
    int64_t here = k->now(k->user);
    return finish(k, t->send(t->context, &here, sizeof here, rank, k->tag), rank, err);
}

tp_status tp_comm_compare_clocks(tp_comm *c, int64_t (*now)(void *user), void *user,
                                 tp_clock_offset *ret, tp_error *err)
{
    tp_clock_offset best = {0, c && c->rank > 0 ? INT64_MAX : 0};
    if (tp_comm_size(c) > 1) {
        clocks k = {c, tp_exchange_tag(c, &(tp_comm_group){0}), now, user};
        TP_TRY(tp_comm_listen(c, err));
        for (int i = 0; i < ROUNDS && c->rank > 0; i++)
            TP_TRY(ask(&k, &best, err));
        for (int i = 0; i < ROUNDS * (c->size - 1) && c->rank == 0; i++)
            TP_TRY(answer(&k, 1 + i / ROUNDS, err));
    }
    *ret = best;
    return TP_OK;
}
