/* traffic.c - tensors that ranks exchange, through a staging buffer. */
#include "engine/exec/traffic.h"

#include <string.h>

#include "base/platform.h"
#include "engine/device/tensor.h"

enum { SLOTS = 3 };

/* Launches that go together.  Elements of a tensor lie in the staging buffer by whose they are:
 * part 0 of every tensor, then part 1 of every tensor ... */
typedef struct {
    tp_op op;
    size_t *launches;
    size_t n, n_begun;
    size_t *lengths; /* [ranks]: elements of each rank's part */
    size_t longest;
} bucket;

/* A piece of a bucket on its way. */
typedef struct {
    const bucket *of; /* NULL: free */
    size_t piece;
    float *data, *temp;
    size_t *starts; /* [ranks + 1] */
    tp_exchange *request;
} slot;

struct tp_traffic {
    tp_ranks ranks;
    const tp_launch *launches;
    bucket *buckets;
    size_t n_buckets;
    int *bucket_of; /* per launch; -1: none */
    size_t unit;    /* elements of a piece that are a rank's */
    slot slots[SLOTS];
    int next;           /* the slots are filled and emptied in turn */
    double rehearsed_s; /* to copy a byte, in a rehearsal; else 0 */
};

static bool begins(const tp_launch *l)
{
    return (tp_ops[l->op]->traits & TP_OP_COMMUNICATES) && l->op != TP_OP_wait;
}

static size_t elements_of(const tp_launch *l)
{
    return (size_t)l->in[0].dim[0] * (size_t)(l->in[0].rank == 2 ? l->in[0].dim[1] : 1);
}

/* The part of a launch's tensor that is a rank's. */
static void part_of(const tp_traffic *t, const tp_launch *l, int rank, size_t *begin, size_t *end)
{
    size_t n = elements_of(l);
    if (l->op == TP_OP_broadcast) {
        *begin = rank == 0 ? 0 : n;
        *end = n;
        return;
    }
    tp_shard_part(n, (tp_shard){rank, t->ranks.ranks}, begin, end);
}

/* ---- planning ---- */

static void add_launch(tp_traffic *t, size_t i, bucket *b, tp_arena *arena, size_t n)
{
    if (!b->launches) {
        b->op = t->launches[i].op;
        b->launches = tp_arena_array(arena, size_t, n);
        b->lengths = tp_arena_array(arena, size_t, (size_t)t->ranks.ranks);
    }
    b->launches[b->n++] = i;
    for (int r = 0; r < t->ranks.ranks; r++) {
        size_t begin, end;
        part_of(t, &t->launches[i], r, &begin, &end);
        b->lengths[r] += end - begin;
        b->longest = TP_MAX(b->longest, b->lengths[r]);
    }
}

/* One bucket for each number, and one for each launch without. */
static void find_buckets(tp_traffic *t, size_t n, tp_arena *arena)
{
    int *known = tp_arena_array(arena, int, n + 1);
    for (size_t i = 0; i < n; i++) {
        const tp_launch *l = &t->launches[i];
        t->bucket_of[i] = -1;
        if (!begins(l))
            continue;
        int32_t number = l->attrs.bucket;
        TP_ASSERT(number >= 0 && (size_t)number <= n);
        if (!number || !known[number]) {
            t->n_buckets++;
            known[number] = (int)t->n_buckets;
        }
        t->bucket_of[i] = (number ? known[number] : (int)t->n_buckets) - 1;
        add_launch(t, i, &t->buckets[t->bucket_of[i]], arena, n);
    }
}

/* A wait is for what began last on its memory. */
static void find_waits(tp_traffic *t, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = i; t->launches[i].op == TP_OP_wait && k-- > 0;)
            if (begins(&t->launches[k]) &&
                t->launches[k].attrs.bucket == t->launches[i].attrs.bucket &&
                (t->launches[i].attrs.bucket || k + 1 == i)) {
                t->bucket_of[i] = t->bucket_of[k];
                break;
            }
}

tp_traffic *tp_traffic_plan(const tp_ranks *ranks, const tp_launch *launches, size_t n,
                            tp_arena *arena)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= begins(&launches[i]);
    if (!any || ranks->ranks < 2)
        return NULL;
    tp_traffic *t = tp_arena_array(arena, tp_traffic, 1);
    t->ranks = *ranks;
    t->launches = launches;
    t->buckets = tp_arena_array(arena, bucket, n);
    t->bucket_of = tp_arena_array(arena, int, n);
    find_buckets(t, n, arena);
    find_waits(t, n);
    size_t most = 2 * ranks->bucket_bytes / sizeof(float) / (size_t)ranks->ranks;
    for (size_t i = 0; i < t->n_buckets; i++)
        t->unit = TP_MAX(t->unit, t->buckets[i].longest);
    t->unit = TP_MIN(t->unit, TP_MAX(most, 16));
    for (int s = 0; s < SLOTS; s++)
        t->slots[s].starts = tp_arena_array(arena, size_t, (size_t)ranks->ranks + 1);
    return t;
}

static size_t slot_elements(const tp_traffic *t)
{
    size_t n = (size_t)t->ranks.ranks;
    return t->unit * (n + (n + 1) / 2); /* data, and half of it for what is added */
}

size_t tp_traffic_staging_bytes(const tp_traffic *t)
{
    return t ? SLOTS * slot_elements(t) * sizeof(float) : 0;
}

void tp_traffic_bind(tp_traffic *t, void *staging)
{
    for (int s = 0; t && s < SLOTS; s++) {
        t->slots[s].data = (float *)staging + (size_t)s * slot_elements(t);
        t->slots[s].temp = t->slots[s].data + t->unit * (size_t)t->ranks.ranks;
    }
}

tp_traffic *tp_traffic_rehearse(const tp_traffic *plan, const tp_rehearsal *how, tp_arena *arena)
{
    if (!plan)
        return NULL;
    tp_traffic *t = tp_arena_array(arena, tp_traffic, 1);
    *t = *plan;
    t->ranks.comm = how->comm;
    t->ranks.rank = tp_comm_rank(how->comm);
    t->buckets = tp_arena_array(arena, bucket, t->n_buckets);
    memcpy(t->buckets, plan->buckets, t->n_buckets * sizeof *t->buckets);
    for (int s = 0; s < SLOTS; s++)
        t->slots[s] = (slot){.starts = tp_arena_array(arena, size_t, (size_t)t->ranks.ranks + 1)};
    t->rehearsed_s = 2 / how->bytes_per_s;
    tp_traffic_bind(t, how->nothing);
    return t;
}

static size_t n_pieces(const tp_traffic *t, const bucket *b)
{
    return (b->longest + t->unit - 1) / t->unit;
}

static double sent_of(const tp_traffic *t, const bucket *b)
{
    double all = 0, n = t->ranks.ranks;
    for (int r = 0; r < t->ranks.ranks; r++)
        all += (double)b->lengths[r] * sizeof(float);
    return (b->op == TP_OP_all_reduce ? 2 : 1) * all * (n - 1) / n;
}

static double rounds_of(const tp_traffic *t, const bucket *b)
{
    int n = t->ranks.ranks;
    double each = (n & (n - 1)) == 0 ? __builtin_ctz((unsigned)n) : n - 1;
    return (b->op == TP_OP_all_reduce ? 2 : 1) * each * (double)n_pieces(t, b);
}

double tp_traffic_sent_bytes(const tp_traffic *t, tp_op op)
{
    double bytes = 0;
    for (size_t i = 0; t && i < t->n_buckets; i++)
        bytes += t->buckets[i].op == op ? sent_of(t, &t->buckets[i]) : 0;
    return bytes;
}

double tp_traffic_rounds(const tp_traffic *t)
{
    double rounds = 0;
    for (size_t i = 0; t && i < t->n_buckets; i++)
        rounds += rounds_of(t, &t->buckets[i]);
    return rounds;
}

double tp_traffic_begun_bytes(const tp_traffic *t, size_t i, double *ret_rounds)
{
    const bucket *b = t->bucket_of[i] < 0 ? NULL : &t->buckets[t->bucket_of[i]];
    bool is_last = b && begins(&t->launches[i]) && b->launches[b->n - 1] == i;
    *ret_rounds = is_last ? rounds_of(t, b) : 0;
    return is_last ? sent_of(t, b) : 0;
}

/* ---- running ---- */

/* What of a rank's part is in the piece of a slot, to or from the tensors. */
static tp_status copy_part(const tp_traffic *t, const slot *s, int rank, bool in, tp_error *err)
{
    const bucket *b = s->of;
    size_t first = s->piece * t->unit, last = first + (s->starts[rank + 1] - s->starts[rank]);
    size_t at = 0; /* in the rank's part of the bucket */
    for (size_t k = 0; k < b->n; k++) {
        const tp_launch *l = &t->launches[b->launches[k]];
        size_t begin, end;
        part_of(t, l, rank, &begin, &end);
        size_t from = TP_MAX(first, at), to = TP_MIN(last, at + (end - begin));
        if (from < to) {
            float *staged = s->data + s->starts[rank] + (from - first);
            tp_span place = l->in[0].span;
            place.offset += (begin + (from - at)) * sizeof(float);
            size_t bytes = (to - from) * sizeof(float);
            TP_TRY(in ? tp_span_read(staged, place, bytes, err)
                      : tp_span_write(place, staged, bytes, err));
        }
        at += end - begin;
    }
    return TP_OK;
}

/* Parts of all ranks, or this rank's, or those of the others. */
static tp_status copy_parts(const tp_traffic *t, const slot *s, bool own, bool others, bool in,
                            tp_error *err)
{
    size_t n = 0; /* elements that are not there */
    for (int r = 0; r < t->ranks.ranks; r++) {
        if (!(r == t->ranks.rank ? own : others))
            continue;
        n += s->starts[r + 1] - s->starts[r];
        if (t->rehearsed_s == 0)
            TP_TRY(copy_part(t, s, r, in, err));
    }
    tp_comm_pass(t->ranks.comm, (double)(n * sizeof(float)) * t->rehearsed_s);
    return TP_OK;
}

static tp_status retire(tp_traffic *t, slot *s, tp_error *err)
{
    if (!s->of)
        return TP_OK;
    tp_exchange *request = s->request;
    s->request = NULL;
    TP_TRY(tp_comm_wait(t->ranks.comm, request, err));
    tp_op op = s->of->op;
    bool own = op == TP_OP_all_reduce || op == TP_OP_reduce_scatter;
    TP_TRY(copy_parts(t, s, own, op != TP_OP_reduce_scatter, false, err));
    s->of = NULL;
    return TP_OK;
}

static tp_status send_piece(tp_traffic *t, const bucket *b, size_t piece, tp_error *err)
{
    slot *s = &t->slots[t->next];
    t->next = (t->next + 1) % SLOTS;
    TP_TRY(retire(t, s, err));
    s->of = b;
    s->piece = piece;
    for (int r = 0; r < t->ranks.ranks; r++) {
        size_t left = b->lengths[r] - TP_MIN(piece * t->unit, b->lengths[r]);
        s->starts[r + 1] = s->starts[r] + TP_MIN(left, t->unit);
    }
    bool sums = b->op == TP_OP_all_reduce || b->op == TP_OP_reduce_scatter;
    TP_TRY(copy_parts(t, s, true, sums, true, err));
    const tp_exchange_spec c = {.kind = b->op == TP_OP_all_reduce       ? TP_ALL_REDUCE
                                        : b->op == TP_OP_reduce_scatter ? TP_REDUCE_SCATTER
                                                                        : TP_ALL_GATHER,
                                .element = sizeof(float),
                                .add = t->rehearsed_s == 0 ? tp_add_f32 : NULL,
                                .add_s = 1.5 * sizeof(float) * t->rehearsed_s,
                                .data = s->data,
                                .temp = s->temp,
                                .starts = s->starts};
    return tp_comm_start(t->ranks.comm, &c, &s->request, err);
}

/* The oldest first: slots are taken in turn. */
static tp_status wait_for(tp_traffic *t, const bucket *b, tp_error *err)
{
    for (int k = 0; k < SLOTS; k++) {
        slot *s = &t->slots[(t->next + k) % SLOTS];
        if (s->of == b)
            TP_TRY(retire(t, s, err));
    }
    return TP_OK;
}

tp_status tp_traffic_run(tp_traffic *t, size_t i, tp_error *err)
{
    if (tp_comm_size(t->ranks.comm) < 2)
        return TP_OK;
    bucket *b = &t->buckets[t->bucket_of[i]];
    if (t->launches[i].op == TP_OP_wait)
        return wait_for(t, b, err);
    if (++b->n_begun < b->n)
        return TP_OK;
    b->n_begun = 0;
    for (size_t piece = 0; piece < n_pieces(t, b); piece++)
        TP_TRY(send_piece(t, b, piece, err));
    return TP_OK;
}

void tp_traffic_progress(tp_traffic *t)
{
    if (t)
        tp_comm_progress(t->ranks.comm);
}

bool tp_traffic_is_busy(const tp_traffic *t) { return tp_comm_is_busy(t->ranks.comm); }

void tp_traffic_pass(tp_traffic *t, double seconds)
{
    if (t)
        tp_comm_pass(t->ranks.comm, seconds);
}
