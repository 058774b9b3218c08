/* collective.c - collectives as rounds of messages between two ranks.
 *
 * With 2^k ranks, recursive halving: in each round a group of ranks splits into halves, and each
 * rank sends the other half's parts to its partner there and adds what it gets to its own half's.
 * A part is the sum of a tree over the ranks, the same tree for every part, as a + b = b + a.
 * Recursive doubling gathers, the same way back.  Other numbers of ranks: in round k a rank gets
 * its part from the rank k behind it and adds it, and gathering is a ring; the order of a sum
 * follows from who owns the part.  So are sums of what is encoded, with any number of ranks. */
#include "engine/comm/comm_internal.h"

void tp_add_f32(void *into, const void *from, size_t n)
{
    float *restrict x = into;
    const float *restrict y = from;
    for (size_t i = 0; i < n; i++)
        x[i] += y[i];
}

/* Parts [first, end) as bytes. */
typedef struct {
    int first, end;
} parts;

static char *place_of(const tp_exchange *r, parts p)
{
    return (char *)r->c.data + r->c.starts[p.first] * r->c.element;
}

static size_t elements_of(const tp_exchange *r, parts p)
{
    return r->c.starts[p.end] - r->c.starts[p.first];
}

typedef struct {
    parts send, receive;
    int to, from;
} exchange;

static bool is_power_of_two(int n) { return (n & (n - 1)) == 0; }

static int size_of(const tp_comm *c, const tp_exchange *r)
{
    return r->c.group.count ? r->c.group.count : c->size;
}

/* This rank's place among those of the exchange. */
static int place_in(const tp_comm *c, const tp_exchange *r)
{
    const tp_comm_group *g = &r->c.group;
    return g->count ? (c->rank - g->first) / g->stride : c->rank;
}

static int rank_at(const tp_exchange *r, int place)
{
    const tp_comm_group *g = &r->c.group;
    return g->count ? g->first + place * g->stride : place;
}

/* 2^k ranks, in a round in which groups of 2 * half ranks split or join. */
static exchange in_halves(int rank, int half, bool is_gathering)
{
    int mine = rank & ~(half - 1), other = mine ^ half;
    parts own = {mine, mine + half}, theirs = {other, other + half};
    int partner = rank ^ half;
    return is_gathering ? (exchange){own, theirs, partner, partner}
                        : (exchange){theirs, own, partner, partner};
}

static parts part(int i, int n)
{
    int p = (i % n + n) % n;
    return (parts){p, p + 1};
}

static exchange in_a_ring(int r, int n, int round, bool is_gathering)
{
    if (is_gathering)
        return (exchange){part(r - round, n), part(r - round - 1, n), (r + 1) % n, (r + n - 1) % n};
    int to = (r + n - 1 - round) % n;
    return (exchange){part(to, n), part(r, n), to, (r + 1 + round) % n};
}

/* What is encoded is decoded where it is summed, so that it goes there at once. */
static bool is_in_halves(const tp_comm *c, const tp_exchange *r)
{
    return is_power_of_two(size_of(c, r)) && (r->is_gathering || !r->c.coder);
}

static int rounds_among(int n, bool in_halves)
{
    return in_halves ? __builtin_ctz((unsigned)n) : n - 1;
}

static int rounds_of(const tp_comm *c, const tp_exchange *r)
{
    return rounds_among(size_of(c, r), is_in_halves(c, r));
}

int tp_comm_rounds(tp_collective_kind kind, int ranks, bool is_encoded)
{
    bool is_even = is_power_of_two(ranks);
    int summing = kind == TP_ALL_GATHER ? 0 : rounds_among(ranks, is_even && !is_encoded);
    return summing + (kind == TP_REDUCE_SCATTER ? 0 : rounds_among(ranks, is_even));
}

static exchange exchange_of(const tp_comm *c, const tp_exchange *r)
{
    int n = size_of(c, r), rank = place_in(c, r);
    int half = r->is_gathering ? 1 << r->round : n >> (r->round + 1);
    exchange x = is_in_halves(c, r) ? in_halves(rank, half, r->is_gathering)
                                    : in_a_ring(rank, n, r->round, r->is_gathering);
    x.to = rank_at(r, x.to);
    x.from = rank_at(r, x.from);
    return x;
}

static tp_status lost(tp_comm *c, int rank, tp_error *err)
{
    return tp_fail(err, TP_ERR_IO, "a message between rank %d and rank %d (%s) failed", c->rank,
                   rank, c->places ? c->places[rank].host : "unknown");
}

static tp_status begin_round(tp_comm *c, tp_exchange *r, tp_error *err)
{
    exchange x = exchange_of(c, r);
    tp_transport *t = c->transport;
    size_t out = elements_of(r, x.send) * r->c.element;
    size_t n = elements_of(r, x.receive), in = n * r->c.element;
    r->sending = r->receiving = -1;
    r->to = x.to;
    r->from = x.from;
    r->add_to = r->is_gathering ? NULL : place_of(r, x.receive);
    r->n_add = n;
    if (in) {
        void *into = r->is_gathering ? place_of(r, x.receive) : r->c.temp;
        r->receiving = t->receive(t->context, into, in, x.from, r->tag);
        if (r->receiving < 0)
            return lost(c, x.from, err);
    }
    if (out) {
        r->sending = t->send(t->context, place_of(r, x.send), out, x.to, r->tag);
        if (r->sending < 0)
            return lost(c, x.to, err);
        c->stats.bytes_sent += out;
        c->stats.encoded_bytes += r->c.coder ? out : 0;
        c->stats.messages++;
    }
    return TP_OK;
}

/* The next round, or the next half, or the end. */
static tp_status next_round(tp_comm *c, tp_exchange *r, tp_error *err)
{
    if (++r->round == rounds_of(c, r)) {
        if (r->is_gathering || r->c.kind == TP_REDUCE_SCATTER) {
            r->is_done = true;
            return TP_OK;
        }
        if (r->c.coder)
            TP_TRY(r->c.coder->turn(r->c.coder->user, err));
        r->is_gathering = true;
        r->round = 0;
    }
    return begin_round(c, r, err);
}

tp_status tp_exchange_begin(tp_comm *c, tp_exchange *r, tp_error *err)
{
    r->is_gathering = r->c.kind == TP_ALL_GATHER;
    r->round = 0;
    return begin_round(c, r, err);
}

static void add_what_came(tp_comm *c, const tp_exchange *r)
{
    if (!r->add_to || !r->n_add)
        return;
    if (r->c.coder)
        r->c.coder->add(r->c.coder->user, r->c.temp, r->n_add);
    else if (r->c.add)
        r->c.add(r->add_to, r->c.temp, r->n_add);
    else
        tp_comm_pass(c, r->c.add_s * (double)r->n_add);
}

static tp_status test(tp_comm *c, int *request, int rank, tp_error *err)
{
    int done = *request < 0 ? 1 : c->transport->test(c->transport->context, *request);
    if (done < 0)
        return lost(c, rank, err);
    if (done)
        *request = -1;
    return TP_OK;
}

tp_status tp_exchange_go_on(tp_comm *c, tp_exchange *r, tp_error *err)
{
    while (!r->is_done) {
        TP_TRY(test(c, &r->receiving, r->from, err));
        TP_TRY(test(c, &r->sending, r->to, err));
        if (r->receiving >= 0 || r->sending >= 0)
            return TP_OK;
        add_what_came(c, r);
        TP_TRY(next_round(c, r, err));
    }
    return TP_OK;
}
