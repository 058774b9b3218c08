/* traffic_plan.c - what goes together, in how many pieces, and what that sends. */
#include <string.h>

#include "base/platform.h"
#include "engine/exec/traffic_internal.h"

enum { LINE = 64 };

static tp_manner manner_of(tp_op op)
{
    switch ((int)op) {
    case TP_OP_all_reduce:
        return (tp_manner){.kind = TP_ALL_REDUCE, .in = TP_ALL, .out = TP_ALL};
    case TP_OP_all_reduce_part:
        return (tp_manner){.kind = TP_ALL_REDUCE, .in = TP_ALL, .out = TP_ALL, .is_across = true};
    case TP_OP_all_reduce_tensor:
        return (tp_manner){.kind = TP_ALL_REDUCE, .in = TP_ALL, .out = TP_ALL, .is_tensor = true};
    case TP_OP_sum_tensor:
        return (tp_manner){.kind = TP_ALL_REDUCE,
                           .in = TP_ALL,
                           .out = TP_ALL,
                           .is_tensor = true,
                           .is_inside = true};
    case TP_OP_scatter_rows:
        return (tp_manner){.kind = TP_REDUCE_SCATTER,
                           .in = TP_ALL,
                           .out = TP_OWN,
                           .to_part = true,
                           .is_tensor = true,
                           .is_inside = true,
                           .by_rows = true};
    case TP_OP_gather_rows:
        return (tp_manner){.kind = TP_ALL_GATHER,
                           .in = TP_OWN,
                           .out = TP_ALL,
                           .from_part = true,
                           .is_tensor = true,
                           .is_inside = true,
                           .by_rows = true};
    case TP_OP_reduce_scatter:
        return (tp_manner){.kind = TP_REDUCE_SCATTER, .in = TP_ALL, .out = TP_OWN};
    case TP_OP_reduce_scatter_part:
        return (tp_manner){
            .kind = TP_REDUCE_SCATTER, .in = TP_ALL, .out = TP_OWN, .to_part = true, .adds = true};
    case TP_OP_all_gather_part:
        return (tp_manner){.kind = TP_ALL_GATHER, .in = TP_OWN, .out = TP_ALL, .from_part = true};
    default:
        return (tp_manner){.kind = TP_ALL_GATHER, .in = TP_OWN, .out = TP_OTHERS};
    }
}

static int sharers(const tp_ranks *r) { return TP_MAX(r->tensor.count, 1); }

int tp_ranks_processes(const tp_ranks *r) { return TP_MAX(r->ranks, 1) * sharers(r); }

static int process_of(const tp_ranks *r) { return r->rank * sharers(r) + r->tensor.index; }

static int node_size(const tp_ranks *r) { return r->node ? r->node : TP_MAX(r->ranks, 1); }

tp_shard tp_ranks_row(const tp_ranks *r)
{
    return (tp_shard){process_of(r), tp_ranks_processes(r)};
}

/* Those that have this one's part of the layers, counted as in `ranks`. */
static tp_comm_group group_of(const tp_ranks *r, int first, int stride, int count)
{
    return (tp_comm_group){first * sharers(r) + r->tensor.index, stride * sharers(r), count};
}

tp_shard tp_ranks_shard(const tp_ranks *r)
{
    return (tp_shard){r->rank % node_size(r), node_size(r)};
}

static bool begins(const tp_launch *l)
{
    return (tp_ops[l->op]->traits & TP_OP_COMMUNICATES) && l->op != TP_OP_wait;
}

/* The whole of what a launch is about. */
static const tp_operand *whole_of(const tp_launch *l)
{
    return l->op == TP_OP_gather_rows ? &l->out[0] : &l->in[0];
}

static size_t numbers_of(const tp_launch *l)
{
    const tp_operand *x = whole_of(l);
    return (size_t)x->dim[0] * (size_t)(x->rank == 2 ? x->dim[1] : 1);
}

static void part_of_rows(const tp_operand *x, int rank, int parts, size_t *begin, size_t *end)
{
    int64_t first, last;
    const tp_tensor_slice slice = {.index = rank, .count = parts};
    tp_slice_part(slice, x->dim[0], &first, &last);
    *begin = (size_t)(first * x->dim[1]);
    *end = (size_t)(last * x->dim[1]);
}

void tp_bucket_held(const tp_traffic *t, const tp_bucket *b, const tp_launch *l, size_t *begin,
                    size_t *end)
{
    *begin = 0;
    *end = numbers_of(l);
    if (b->how.is_across)
        tp_shard_part(*end, tp_ranks_shard(&t->ranks), begin, end);
}

void tp_bucket_part(const tp_traffic *t, const tp_bucket *b, const tp_launch *l, int rank,
                    size_t *begin, size_t *end)
{
    size_t first, last;
    tp_bucket_held(t, b, l, &first, &last);
    if (l->op == TP_OP_broadcast) {
        *begin = rank == 0 ? 0 : last;
        *end = last;
    } else if (b->how.by_rows)
        part_of_rows(whole_of(l), rank, b->parts, begin, end);
    else
        tp_shard_part(last - first, (tp_shard){rank, b->parts}, begin, end);
}

size_t tp_bucket_elements(const tp_bucket *b, size_t begin, size_t end)
{
    return (end - begin + b->block - 1) / b->block;
}

static void find_group(const tp_ranks *r, tp_bucket *b)
{
    int node = node_size(r), first = r->rank / node * node;
    bool is_part = b->how.from_part || b->how.to_part;
    if (b->how.is_tensor)
        b->group = (tp_comm_group){r->rank * sharers(r), 1, sharers(r)};
    else if (b->how.is_across)
        b->group = group_of(r, r->rank % node, node, r->ranks / node);
    else
        b->group = group_of(r, is_part ? first : 0, 1, is_part ? node : r->ranks);
    b->parts = b->group.count;
    b->own = (process_of(r) - b->group.first) / b->group.stride;
}

static void add_launch(const tp_traffic *t, size_t i, tp_bucket *b, tp_arena *arena, size_t n)
{
    const tp_launch *l = &t->launches[i];
    if (!b->launches) {
        b->how = manner_of(l->op);
        b->wire = (tp_wire){(tp_wire_kind)l->attrs.wire, l->attrs.keep};
        b->block = b->wire.kind ? tp_wire_block(&b->wire) : 1;
        b->element = b->wire.kind ? tp_wire_block_bytes(&b->wire) : tp_dtype_size(l->in[0].dtype);
        find_group(&t->ranks, b);
        b->launches = tp_arena_array(arena, size_t, n);
        b->lengths = tp_arena_array(arena, size_t, (size_t)b->parts);
    }
    b->launches[b->n++] = i;
    for (int r = 0; r < b->parts; r++) {
        size_t begin, end;
        tp_bucket_part(t, b, l, r, &begin, &end);
        b->lengths[r] += tp_bucket_elements(b, begin, end);
        b->longest = TP_MAX(b->longest, b->lengths[r]);
        b->numbers += end - begin;
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

/* Of a gradient that is kept in parts no more is left behind a micro-batch. */
static void sum_in_every_micro_batch(tp_traffic *t)
{
    bool adds = false;
    for (size_t i = 0; i < t->n_buckets; i++)
        adds |= t->buckets[i].how.adds;
    for (size_t i = 0; i < t->n_buckets; i++)
        t->buckets[i].how.is_each |= adds && t->buckets[i].how.is_tensor;
}

static bool sums(const tp_bucket *b) { return b->how.kind != TP_ALL_GATHER; }

static size_t in_lines(size_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

static void find_sizes(tp_traffic *t)
{
    for (size_t i = 0; i < t->n_buckets; i++) {
        tp_bucket *b = &t->buckets[i];
        size_t n = (size_t)b->parts, most = 2 * t->ranks.bucket_bytes / sizeof(float) / n;
        b->unit = TP_MIN(b->longest, TP_MAX(TP_MAX(most, 16) / b->block, 1));
        t->data_bytes = TP_MAX(t->data_bytes, in_lines(b->unit * n * b->element));
        if (sums(b)) /* half of it comes in at a time */
            t->temp_bytes = TP_MAX(t->temp_bytes, in_lines(b->unit * ((n + 1) / 2) * b->element));
        if (b->wire.kind)
            t->sum_bytes = TP_MAX(t->sum_bytes, in_lines(b->unit * b->block * sizeof(float)));
    }
}

tp_traffic *tp_traffic_plan(const tp_ranks *ranks, const tp_launch *launches, size_t n,
                            tp_arena *arena)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= begins(&launches[i]);
    if (!any || tp_ranks_processes(ranks) < 2)
        return NULL;
    tp_traffic *t = tp_arena_array(arena, tp_traffic, 1);
    t->ranks = *ranks;
    t->launches = launches;
    t->buckets = tp_arena_array(arena, tp_bucket, n);
    t->bucket_of = tp_arena_array(arena, int, n);
    find_buckets(t, n, arena);
    sum_in_every_micro_batch(t);
    find_waits(t, n);
    find_sizes(t);
    for (int s = 0; s < TP_TRAFFIC_SLOTS; s++)
        t->slots[s].starts = tp_arena_array(arena, size_t, (size_t)tp_ranks_processes(ranks) + 1);
    return t;
}

size_t tp_traffic_staging_bytes(const tp_traffic *t)
{
    return t ? TP_TRAFFIC_SLOTS * (t->data_bytes + t->temp_bytes + t->sum_bytes) : 0;
}

void tp_traffic_bind(tp_traffic *t, void *staging)
{
    size_t each = t ? tp_traffic_staging_bytes(t) / TP_TRAFFIC_SLOTS : 0;
    for (int s = 0; t && s < TP_TRAFFIC_SLOTS; s++) {
        t->slots[s].data = (char *)staging + (size_t)s * each;
        t->slots[s].temp = t->slots[s].data + t->data_bytes;
        t->slots[s].sum = (float *)(void *)(t->slots[s].temp + t->temp_bytes);
    }
}

tp_traffic *tp_traffic_rehearse(const tp_traffic *plan, const tp_rehearsal *how, tp_arena *arena)
{
    if (!plan)
        return NULL;
    tp_traffic *t = tp_arena_array(arena, tp_traffic, 1);
    *t = *plan;
    t->ranks.comm = how->comm;
    t->ranks.rank = tp_comm_rank(how->comm) / sharers(&t->ranks);
    t->ranks.tensor.index = tp_comm_rank(how->comm) % sharers(&t->ranks);
    t->buckets = tp_arena_array(arena, tp_bucket, t->n_buckets);
    memcpy(t->buckets, plan->buckets, t->n_buckets * sizeof *t->buckets);
    for (size_t i = 0; i < t->n_buckets; i++)
        find_group(&t->ranks, &t->buckets[i]);
    for (int s = 0; s < TP_TRAFFIC_SLOTS; s++)
        t->slots[s] = (tp_parcel){
            .starts = tp_arena_array(arena, size_t, (size_t)tp_ranks_processes(&t->ranks) + 1)};
    t->rehearsed_s = 2 / how->bytes_per_s;
    tp_traffic_bind(t, how->nothing);
    return t;
}

size_t tp_bucket_pieces(const tp_bucket *b)
{
    return b->longest ? (b->longest + b->unit - 1) / b->unit : 0;
}

static double sent_of(const tp_bucket *b)
{
    double all = 0, n = b->parts;
    for (int r = 0; r < b->parts; r++)
        all += (double)(b->lengths[r] * b->element);
    return (b->how.kind == TP_ALL_REDUCE ? 2 : 1) * all * (n - 1) / n;
}

static double rounds_of(const tp_bucket *b)
{
    return tp_comm_rounds(b->how.kind, b->parts, b->wire.kind) * (double)tp_bucket_pieces(b);
}

/* What a rank sends of the bucket, on average, and what that would be in f32. */
double tp_bucket_plain_bytes(const tp_bucket *b)
{
    double times = (b->how.kind == TP_ALL_REDUCE ? 2 : 1) * (b->parts - 1.0) / b->parts;
    return b->wire.kind ? times * (double)b->numbers * sizeof(float) : sent_of(b);
}

tp_begun tp_traffic_begun(const tp_traffic *t, size_t i)
{
    const tp_bucket *b = t->bucket_of[i] < 0 ? NULL : &t->buckets[t->bucket_of[i]];
    bool is_last = b && begins(&t->launches[i]) && b->launches[b->n - 1] == i;
    return is_last ? (tp_begun){.bytes = sent_of(b),
                                .plain_bytes = tp_bucket_plain_bytes(b),
                                .rounds = rounds_of(b),
                                .ranks = b->parts,
                                .stride = b->group.stride,
                                .is_encoded = b->wire.kind}
                   : (tp_begun){0};
}
