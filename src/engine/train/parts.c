/* parts.c - ranges of tensors that are kept in parts, gathered. */
#include "engine/train/session.h"

#include <stdlib.h>
#include <string.h>

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

/* ---- of a tensor that ranks share the layers of: all of them do this together ---- */

/* What a slice has of the range, one run behind the other in `packed`, to its places in `whole`. */
static void unpack(const tp_tensor *tensor, int index, size_t first, size_t count,
                   const char *packed, char *whole)
{
    size_t size = tp_dtype_size(tensor->dtype);
    tp_slice_run run;
    for (size_t at = first; tp_slice_next(tensor, index, &at, first + count, &run);) {
        memcpy(whole + (run.at - first) * size, packed, run.n * size);
        packed += run.n * size;
    }
}

static tp_status pack_own(const tp_tensor *tensor, size_t first, size_t count, char *packed,
                          tp_error *err)
{
    size_t size = tp_dtype_size(tensor->dtype);
    tp_slice_run run;
    int own = tensor->slice.index;
    for (size_t at = first; tp_slice_next(tensor, own, &at, first + count, &run);) {
        TP_TRY(tp_tensor_read_held(tensor, run.own * size, packed, run.n * size, err));
        packed += run.n * size;
    }
    return TP_OK;
}

static tp_status gather_slices(const tp_ranks *ranks, const tp_tensor *tensor, size_t first,
                               size_t count, char *to, tp_error *err)
{
    int n = tensor->slice.count, own = tensor->slice.index;
    size_t size = tp_dtype_size(tensor->dtype);
    TP_FREED char *packed = malloc(count * size + 1);
    TP_FREED size_t *starts = tp_new((size_t)n + 1, sizeof *starts);
    TP_HAVE(packed);
    for (int i = 0; i < n; i++)
        starts[i + 1] = starts[i] + tp_slice_count(tensor, i, first, count);
    tp_exchange *exchange;
    const tp_exchange_spec c = {.kind = TP_ALL_GATHER,
                                .element = size,
                                .data = packed,
                                .starts = starts,
                                .group = {ranks->rank * n, 1, n}};
    TP_TRY(pack_own(tensor, first, count, packed + starts[own] * size, err));
    TP_TRY(tp_comm_start(ranks->comm, &c, &exchange, err));
    TP_TRY(tp_comm_wait(ranks->comm, exchange, err));
    for (int i = 0; i < n; i++)
        unpack(tensor, i, first, count, packed + starts[i] * size, to);
    return TP_OK;
}

/* ---- of a tensor whose elements are divided ---- */

/* Each rank puts what it has of the range at its place in `data`; then all is there. */
static tp_status gather(const tp_ranks *ranks, const tp_tensor *own, range r, char *data,
                        tp_error *err)
{
    TP_ASSERT(!tp_is_sliced(own) || !own->keeps_part); /* moments, which nobody reads together */
    if (tp_is_sliced(own))
        return gather_slices(ranks, own, r.begin, r.end - r.begin, data, err);
    tp_shard shard = own->shard;
    size_t n = tp_tensor_count(own), size = tp_dtype_size(own->dtype);
    TP_FREED size_t *starts = tp_new((size_t)shard.count + 1, sizeof *starts);
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
    if (mine.end > mine.begin)
        TP_TRY(tp_tensor_read_held(own, mine.begin * size, data + starts[shard.index] * size,
                                   (mine.end - mine.begin) * size, err));
    TP_TRY(tp_comm_start(ranks->comm, &c, &exchange, err));
    return tp_comm_wait(ranks->comm, exchange, err);
}

tp_status tp_parts_read_together(void *ranks, const tp_tensor *tensor, size_t first, size_t count,
                                 void *to, tp_error *err)
{
    return gather(ranks, tensor, (range){first, first + count}, to, err);
}
