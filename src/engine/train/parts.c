/* parts.c - ranges of tensors that ranks keep in parts, or share the layers of, or both, gathered:
 * each rank tells what it has of a range, one run behind the other. */
#include "engine/train/parts.h"

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

static int slices_of(const tp_tensor *t) { return tp_is_sliced(t) ? t->slice.count : 1; }

/* Which of those this rank is that have all of it together: every slice of a part, then of the
 * next one. */
static tp_shard holder_of(const tp_tensor *t)
{
    int slices = slices_of(t), part = t->keeps_part ? t->shard.index : 0;
    return (tp_shard){part * slices + (slices > 1 ? t->slice.index : 0),
                      slices * (t->keeps_part ? t->shard.count : 1)};
}

/* The record as another of them has it. */
static tp_tensor of_holder(const tp_tensor *own, int i)
{
    tp_tensor t = *own;
    t.shard.index = i / slices_of(own);
    if (!tp_is_sliced(own))
        return t;
    t.slice.index = i % slices_of(own);
    t.dim[t.slice.axis] = tp_slice_length(t.slice);
    return t;
}

static size_t count_held(const tp_tensor *t, range r)
{
    tp_slice_run run;
    size_t n = 0;
    for (size_t at = r.begin; tp_slice_next_held(t, &at, r.end, &run);)
        n += run.n;
    return n;
}

static tp_status pack(const tp_tensor *own, range r, char *packed, tp_error *err)
{
    size_t size = tp_dtype_size(own->dtype);
    tp_slice_run run;
    for (size_t at = r.begin; tp_slice_next_held(own, &at, r.end, &run);) {
        TP_TRY(tp_tensor_read_held(own, run.own * size, packed, run.n * size, err));
        packed += run.n * size;
    }
    return TP_OK;
}

static void unpack(const tp_tensor *t, range r, const char *packed, char *whole)
{
    size_t size = tp_dtype_size(t->dtype);
    tp_slice_run run;
    for (size_t at = r.begin; tp_slice_next_held(t, &at, r.end, &run);) {
        memcpy(whole + (run.at - r.begin) * size, packed, run.n * size);
        packed += run.n * size;
    }
}

/* Those who share the layers follow one another; of what each of them has the same, one part is
 * with every so-many-th rank. */
static tp_comm_group group_of(const tp_ranks *ranks, const tp_tensor *t)
{
    tp_shard own = holder_of(t);
    int stride = tp_is_sliced(t) ? 1 : TP_MAX(ranks->tensor.count, 1);
    return (tp_comm_group){tp_ranks_row(ranks).index - own.index * stride, stride, own.count};
}

static tp_status exchange(const tp_ranks *ranks, const tp_tensor *own, range r, char *packed,
                          const size_t *starts, tp_error *err)
{
    size_t size = tp_dtype_size(own->dtype);
    const tp_exchange_spec c = {.kind = TP_ALL_GATHER,
                                .element = size,
                                .data = packed,
                                .starts = starts,
                                .group = group_of(ranks, own)};
    TP_TRY(pack(own, r, packed + starts[holder_of(own).index] * size, err));
    return tp_comm_exchange(ranks->comm, &c, err);
}

tp_status tp_parts_read_together(void *ranks, const tp_tensor *tensor, size_t first, size_t count,
                                 void *to, tp_error *err)
{
    const range r = {first, first + count};
    const int n = holder_of(tensor).count;
    size_t size = tp_dtype_size(tensor->dtype);
    TP_FREED size_t *starts = tp_new((size_t)n + 1, sizeof *starts);
    TP_FREED char *packed = malloc(count * size + 1);
    TP_HAVE(packed);
    for (int i = 0; i < n; i++) {
        tp_tensor its = of_holder(tensor, i);
        starts[i + 1] = starts[i] + count_held(&its, r);
    }
    TP_ASSERT(starts[n] == count);
    TP_TRY(exchange(ranks, tensor, r, packed, starts, err));
    for (int i = 0; i < n; i++) {
        tp_tensor its = of_holder(tensor, i);
        unpack(&its, r, packed + starts[i] * size, to);
    }
    return TP_OK;
}
