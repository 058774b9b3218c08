/* parts.c - ranges of tensors that are kept in parts, gathered. */
#include "engine/train/parts.h"

#include "base/platform.h"

typedef struct {
    uint64_t n; /* elements of the whole */
    uint64_t first, count;
} range;

size_t tp_parts_count(const tp_states *states, const tp_tensor *part)
{
    const tp_tensor *weight = tp_states_find(states, part->of);
    TP_ASSERT(weight);
    return tp_tensor_count(weight);
}

/* What of a range is in a part, and where it begins. */
static size_t overlap_of(const range *r, tp_shard shard, size_t *ret_begin)
{
    size_t begin, end;
    tp_shard_part(r->n, shard, &begin, &end);
    *ret_begin = TP_MAX(begin, r->first);
    end = TP_MIN(end, r->first + r->count);
    return end > *ret_begin ? end - *ret_begin : 0;
}

static tp_status read_own(const range *r, const tp_tensor *own, tp_shard shard, char *to,
                          tp_error *err)
{
    size_t first, end, begin, count = overlap_of(r, shard, &begin);
    if (!count)
        return TP_OK;
    size_t size = tp_dtype_size(own->dtype);
    tp_shard_part(r->n, shard, &first, &end);
    size_t at = own->keeps_part ? begin : begin - first;
    return tp_tensor_read_held(own, at * size, to, count * size, err);
}

/* Each rank puts what it has of the range at its place in `data`; then all is there. */
static tp_status gather(const tp_ranks *ranks, const range *r, const tp_tensor *own, char *data,
                        tp_error *err)
{
    if (own && tp_is_sliced(own))
        return tp_slices_gather(ranks, own, r->first, r->count, data, err);
    tp_shard shard = tp_ranks_shard(ranks);
    int n = shard.count;
    size_t begin, size = own ? tp_dtype_size(own->dtype) : sizeof(float);
    size_t *starts = calloc((size_t)n + 1, sizeof *starts);
    TP_HAVE(starts);
    for (int i = 0; i < n; i++)
        starts[i + 1] = starts[i] + overlap_of(r, (tp_shard){i, n}, &begin);
    tp_exchange *exchange;
    const tp_exchange_spec c = {.kind = TP_ALL_GATHER,
                                .element = size,
                                .data = data,
                                .starts = starts,
                                .group = {ranks->rank - shard.index, 1, n}};
    tp_status status = read_own(r, own, shard, data + starts[shard.index] * size, err);
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
    const range r = {.n = tp_tensor_count(tensor), .first = first, .count = count};
    return gather(ranks, &r, tensor, to, err);
}
