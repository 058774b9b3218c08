/* slices.c - ranges of tensors that ranks share, gathered for whoever wants the whole. */
#include <stdlib.h>
#include <string.h>

#include "engine/train/parts.h"

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

tp_status tp_slices_gather(const tp_ranks *ranks, const tp_tensor *tensor, size_t first,
                           size_t count, char *to, tp_error *err)
{
    int n = tensor->slice.count, own = tensor->slice.index;
    size_t size = tp_dtype_size(tensor->dtype);
    TP_FREED char *packed = malloc(count * size + 1);
    size_t *starts = calloc((size_t)n + 1, sizeof *starts);
    TP_HAVE(packed && starts);
    for (int i = 0; i < n; i++)
        starts[i + 1] = starts[i] + tp_slice_count(tensor, i, first, count);
    tp_exchange *exchange;
    const tp_exchange_spec c = {.kind = TP_ALL_GATHER,
                                .element = size,
                                .data = packed,
                                .starts = starts,
                                .group = {ranks->rank * n, 1, n}};
    tp_status status = pack_own(tensor, first, count, packed + starts[own] * size, err);
    if (status == TP_OK)
        status = tp_comm_start(ranks->comm, &c, &exchange, err);
    if (status == TP_OK)
        status = tp_comm_wait(ranks->comm, exchange, err);
    for (int i = 0; i < n && status == TP_OK; i++)
        unpack(tensor, i, first, count, packed + starts[i] * size, to);
    free(starts);
    return status;
}
