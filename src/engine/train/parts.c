/* parts.c - ranges of tensors that are kept in parts, gathered. */
#include "engine/train/parts.h"

#include "base/platform.h"

typedef struct {
    size_t begin, end;
} range;

size_t tp_parts_count(const tp_states *states, const tp_tensor *part)
{
    const tp_tensor *weight = tp_states_find(states, part->of);
    TP_ASSERT(weight);
    return tp_tensor_count(weight);
}

/* What of a range of n elements is in a part. */
static range in_part(range r, size_t n, tp_shard shard)
{
    range part;
    tp_shard_part(n, shard, &part.begin, &part.end);
    part.begin = TP_MAX(part.begin, r.begin);
    part.end = TP_MAX(TP_MIN(part.end, r.end), part.begin);
    return part;
}

/* Each rank puts what it has of the range at its place in `data`; then all is there. */
static tp_status gather(const tp_ranks *ranks, const tp_tensor *own, range r, char *data,
                        tp_error *err)
{
    TP_ASSERT(!tp_is_sliced(own) || !own->keeps_part); /* moments, which nobody reads together */
    if (tp_is_sliced(own))
        return tp_slices_gather(ranks, own, r.begin, r.end - r.begin, data, err);
    tp_shard shard = own->shard;
    size_t n = tp_tensor_count(own), size = tp_dtype_size(own->dtype);
    size_t *starts = tp_new((size_t)shard.count + 1, sizeof *starts);
    for (int i = 0; i < shard.count; i++) {
        range part = in_part(r, n, (tp_shard){i, shard.count});
        starts[i + 1] = starts[i] + (part.end - part.begin);
    }
    tp_exchange *exchange;
    const tp_exchange_spec c = {.kind = TP_ALL_GATHER,
                                .element = size,
                                .data = data,
                                .starts = starts,
                                .group = {ranks->rank - shard.index, 1, shard.count}};
    range mine = in_part(r, n, shard);
    tp_status status = TP_OK;
    if (mine.end > mine.begin)
        status = tp_tensor_read_held(own, mine.begin * size, data + starts[shard.index] * size,
                                     (mine.end - mine.begin) * size, err);
    if (status == TP_OK)
        status = tp_comm_start(ranks->comm, &c, &exchange, err);
    if (status == TP_OK)
        status = tp_comm_wait(ranks->comm, exchange, err);
    free(starts);
    return status;
}

tp_status tp_parts_read_together(void *ranks, const tp_tensor *tensor, size_t first, size_t count,
                                 void *to, tp_error *err)
{
    return gather(ranks, tensor, (range){first, first + count}, to, err);
}
