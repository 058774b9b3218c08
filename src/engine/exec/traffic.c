/* traffic.c - tensors that ranks exchange, through a staging buffer. */
#include "engine/exec/traffic.h"

#include <string.h>

#include "base/platform.h"

enum { SLOTS = 3, LINE = 64 };

/* What of an op's tensor goes in and comes out, by whose part it is. */
typedef enum { OWN = 1, OTHERS = 2, ALL = 3 } whose;

typedef struct {
    tp_collective_kind kind;
    whose in, out;
    bool from_part, to_part; /* its operand, its result is kept in parts: the own one is there */
    bool is_across;          /* among the ranks that keep the same part */
} manner;

static manner manner_of(tp_op op)
{
    switch ((int)op) {
    case TP_OP_all_reduce:
        return (manner){.kind = TP_ALL_REDUCE, .in = ALL, .out = ALL};
    case TP_OP_all_reduce_part:
        return (manner){.kind = TP_ALL_REDUCE, .in = ALL, .out = ALL, .is_across = true};
    case TP_OP_reduce_scatter:
        return (manner){.kind = TP_REDUCE_SCATTER, .in = ALL, .out = OWN};
    case TP_OP_reduce_scatter_part:
        return (manner){.kind = TP_REDUCE_SCATTER, .in = ALL, .out = OWN, .to_part = true};
    case TP_OP_all_gather_part:
        return (manner){.kind = TP_ALL_GATHER, .in = OWN, .out = ALL, .from_part = true};
    default:
        return (manner){.kind = TP_ALL_GATHER, .in = OWN, .out = OTHERS};
    }
}

/* Launches that go together.  Elements of a tensor lie in the staging buffer by whose they are:
 * part 0 of every tensor, then part 1 of every tensor ... */
typedef struct {
    tp_op op;
    manner how;
    size_t element;      /* bytes */
    tp_comm_group group; /* that exchanges it */
    int parts, own;      /* ranks of the group, and which of them this one is */
    size_t unit;         /* elements of a piece that are a rank's */
    size_t *launches;
    size_t n, n_begun;
    size_t *lengths; /* [parts]: elements of each rank's part */
    size_t longest;
} bucket;

/* A piece of a bucket on its way. */
typedef struct {
    const bucket *of; /* NULL: free */
    size_t piece;
    char *data, *temp;
    size_t *starts; /* [parts + 1] */
    tp_exchange *request;
} slot;

struct tp_traffic {
    tp_ranks ranks;
    const tp_launch *launches;
    bucket *buckets;
    size_t n_buckets;
    int *bucket_of;                /* per launch; -1: none */
    size_t data_bytes, temp_bytes; /* of a slot */
    slot slots[SLOTS];
    int next;           /* the slots are filled and emptied in turn */
    double rehearsed_s; /* to copy a byte, in a rehearsal; else 0 */
};

static int node_size(const tp_ranks *r) { return r->node ? r->node : TP_MAX(r->ranks, 1); }

tp_shard tp_ranks_shard(const tp_ranks *r)
{
    return (tp_shard){r->rank % node_size(r), node_size(r)};
}

static bool begins(const tp_launch *l)
{
    return (tp_ops[l->op]->traits & TP_OP_COMMUNICATES) && l->op != TP_OP_wait;
}

static size_t elements_of(const tp_launch *l)
{
    return (size_t)l->in[0].dim[0] * (size_t)(l->in[0].rank == 2 ? l->in[0].dim[1] : 1);
}

/* The part of a launch's tensor (of what is held of it, across) that is a rank's of the group. */
static void part_of(const tp_traffic *t, const bucket *b, const tp_launch *l, int rank,
                    size_t *begin, size_t *end)
{
    size_t n = elements_of(l);
    if (l->op == TP_OP_broadcast) {
        *begin = rank == 0 ? 0 : n;
        *end = n;
        return;
    }
    if (b->how.is_across) {
        tp_shard_part(n, tp_ranks_shard(&t->ranks), begin, end);
        n = *end - *begin;
    }
    tp_shard_part(n, (tp_shard){rank, b->parts}, begin, end);
}

/* ---- planning ---- */

static void find_group(const tp_ranks *r, bucket *b)
{
    int node = node_size(r), first = r->rank / node * node;
    bool is_part = b->how.from_part || b->how.to_part;
    if (b->how.is_across)
        b->group = (tp_comm_group){r->rank % node, node, r->ranks / node};
    else if (is_part)
        b->group = (tp_comm_group){first, 1, node};
    else
        b->group = (tp_comm_group){0, 1, r->ranks};
    b->parts = b->group.count;
    b->own = (r->rank - b->group.first) / b->group.stride;
}

static void add_launch(const tp_traffic *t, size_t i, bucket *b, tp_arena *arena, size_t n)
{
    const tp_launch *l = &t->launches[i];
    if (!b->launches) {
        b->op = l->op;
        b->how = manner_of(l->op);
        b->element = tp_dtype_size(l->in[0].dtype);
        find_group(&t->ranks, b);
        b->launches = tp_arena_array(arena, size_t, n);
        b->lengths = tp_arena_array(arena, size_t, (size_t)b->parts);
    }
    b->launches[b->n++] = i;
    for (int r = 0; r < b->parts; r++) {
        size_t begin, end;
        part_of(t, b, l, r, &begin, &end);
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

static bool sums(const bucket *b) { return b->how.kind != TP_ALL_GATHER; }

static size_t in_lines(size_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

static void find_sizes(tp_traffic *t)
{
    for (size_t i = 0; i < t->n_buckets; i++) {
        bucket *b = &t->buckets[i];
        size_t n = (size_t)b->parts, most = 2 * t->ranks.bucket_bytes / sizeof(float) / n;
        b->unit = TP_MIN(b->longest, TP_MAX(most, 16));
        t->data_bytes = TP_MAX(t->data_bytes, in_lines(b->unit * n * b->element));
        if (sums(b)) /* half of it comes in at a time */
            t->temp_bytes = TP_MAX(t->temp_bytes, in_lines(b->unit * ((n + 1) / 2) * b->element));
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
    find_sizes(t);
    for (int s = 0; s < SLOTS; s++)
        t->slots[s].starts = tp_arena_array(arena, size_t, (size_t)ranks->ranks + 1);
    return t;
}

size_t tp_traffic_staging_bytes(const tp_traffic *t)
{
    return t ? SLOTS * (t->data_bytes + t->temp_bytes) : 0;
}

void tp_traffic_bind(tp_traffic *t, void *staging)
{
    for (int s = 0; t && s < SLOTS; s++) {
        t->slots[s].data = (char *)staging + (size_t)s * (t->data_bytes + t->temp_bytes);
        t->slots[s].temp = t->slots[s].data + t->data_bytes;
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
    for (size_t i = 0; i < t->n_buckets; i++)
        find_group(&t->ranks, &t->buckets[i]);
    for (int s = 0; s < SLOTS; s++)
        t->slots[s] = (slot){.starts = tp_arena_array(arena, size_t, (size_t)t->ranks.ranks + 1)};
    t->rehearsed_s = 2 / how->bytes_per_s;
    tp_traffic_bind(t, how->nothing);
    return t;
}

static size_t n_pieces(const bucket *b)
{
    return b->longest ? (b->longest + b->unit - 1) / b->unit : 0;
}

static double sent_of(const bucket *b)
{
    double all = 0, n = b->parts;
    for (int r = 0; r < b->parts; r++)
        all += (double)(b->lengths[r] * b->element);
    return (b->how.kind == TP_ALL_REDUCE ? 2 : 1) * all * (n - 1) / n;
}

static double rounds_of(const bucket *b)
{
    int n = b->parts;
    double each = (n & (n - 1)) == 0 ? __builtin_ctz((unsigned)n) : n - 1;
    return (b->how.kind == TP_ALL_REDUCE ? 2 : 1) * each * (double)n_pieces(b);
}

double tp_traffic_begun_bytes(const tp_traffic *t, size_t i, double *ret_rounds)
{
    const bucket *b = t->bucket_of[i] < 0 ? NULL : &t->buckets[t->bucket_of[i]];
    bool is_last = b && begins(&t->launches[i]) && b->launches[b->n - 1] == i;
    *ret_rounds = is_last ? rounds_of(b) : 0;
    return is_last ? sent_of(b) : 0;
}

/* ---- running ---- */

/* Of what is kept in parts the own one is all there is. */
static tp_span place_of(const bucket *b, const tp_launch *l, bool in, size_t begin, size_t at)
{
    bool is_part = in ? b->how.from_part : b->how.to_part;
    tp_span place = in ? l->in[0].span : l->out[0].span;
    place.offset += ((is_part ? 0 : begin) + at) * b->element;
    return place;
}

/* Gradients of a step's micro-batches add up in the part. */
static tp_status add_to_part(const slot *s, tp_span place, char *staged, size_t bytes,
                             tp_error *err)
{
    TP_TRY(tp_span_read(s->temp, place, bytes, err));
    tp_add_f32(staged, s->temp, bytes / sizeof(float));
    return TP_OK;
}

/* What of a rank's part is in the piece of a slot, to or from the tensors. */
static tp_status copy_part(const tp_traffic *t, const slot *s, int rank, bool in, tp_error *err)
{
    const bucket *b = s->of;
    size_t first = s->piece * b->unit, last = first + (s->starts[rank + 1] - s->starts[rank]);
    size_t at = 0; /* in the rank's part of the bucket */
    for (size_t k = 0; k < b->n; k++) {
        const tp_launch *l = &t->launches[b->launches[k]];
        size_t begin, end;
        part_of(t, b, l, rank, &begin, &end);
        size_t from = TP_MAX(first, at), to = TP_MIN(last, at + (end - begin));
        if (from < to) {
            char *staged = s->data + (s->starts[rank] + (from - first)) * b->element;
            tp_span place = place_of(b, l, in, begin, from - at);
            size_t bytes = (to - from) * b->element;
            if (!in && b->how.to_part && l->accumulate)
                TP_TRY(add_to_part(s, place, staged, bytes, err));
            TP_TRY(in ? tp_span_read(staged, place, bytes, err)
                      : tp_span_write(place, staged, bytes, err));
        }
        at += end - begin;
    }
    return TP_OK;
}

/* In a rehearsal they are not there: what it would take passes. */
static tp_status copy_parts(const tp_traffic *t, const slot *s, whose which, bool in, tp_error *err)
{
    size_t n = 0;
    for (int r = 0; r < s->of->parts; r++) {
        if (!(which & (r == s->of->own ? OWN : OTHERS)))
            continue;
        n += s->starts[r + 1] - s->starts[r];
        if (t->rehearsed_s == 0)
            TP_TRY(copy_part(t, s, r, in, err));
    }
    tp_comm_pass(t->ranks.comm, (double)(n * s->of->element) * t->rehearsed_s);
    return TP_OK;
}

static tp_status retire(tp_traffic *t, slot *s, tp_error *err)
{
    if (!s->of)
        return TP_OK;
    const bucket *b = s->of;
    tp_exchange *request = s->request;
    s->request = NULL;
    TP_TRY(tp_comm_wait(t->ranks.comm, request, err));
    TP_TRY(copy_parts(t, s, b->how.out, false, err));
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
    for (int r = 0; r < b->parts; r++) {
        size_t left = b->lengths[r] - TP_MIN(piece * b->unit, b->lengths[r]);
        s->starts[r + 1] = s->starts[r] + TP_MIN(left, b->unit);
    }
    TP_TRY(copy_parts(t, s, b->how.in, true, err));
    const tp_exchange_spec c = {.kind = b->how.kind,
                                .group = b->group,
                                .element = b->element,
                                .add = t->rehearsed_s == 0 ? tp_add_f32 : NULL,
                                .add_s = 1.5 * (double)b->element * t->rehearsed_s,
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

static bool is_told(const bucket *b, tp_talk talk)
{
    return talk == TP_TALK_ALL || b->how.from_part || (talk == TP_TALK_PARTS && b->how.to_part);
}

int tp_traffic_bucket(const tp_traffic *t, size_t i) { return t->bucket_of[i]; }

tp_collective_kind tp_traffic_kind(const tp_traffic *t, size_t i)
{
    return t->buckets[t->bucket_of[i]].how.kind;
}

bool tp_traffic_is_told(const tp_traffic *t, size_t i, tp_talk talk)
{
    return is_told(&t->buckets[t->bucket_of[i]], talk);
}

tp_status tp_traffic_run(tp_traffic *t, size_t i, tp_talk talk, tp_error *err)
{
    bucket *b = &t->buckets[t->bucket_of[i]];
    if (tp_comm_size(t->ranks.comm) < 2 || !is_told(b, talk))
        return TP_OK;
    if (t->launches[i].op == TP_OP_wait)
        return wait_for(t, b, err);
    if (++b->n_begun < b->n)
        return TP_OK;
    b->n_begun = 0;
    for (size_t piece = 0; piece < n_pieces(b); piece++)
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
