/* parts.c - ranges of sharded tensors, gathered for rank 0. */
#include "engine/train/parts.h"

#include <string.h>

#include "base/platform.h"

typedef struct {
    char name[512]; /* "": done */
    uint64_t n;     /* elements of the whole */
    uint64_t first, count;
} range;

size_t tp_parts_count(const tp_states *states, const tp_tensor *part)
{
    const tp_tensor *weight = tp_states_find(states, part->of);
    TP_ASSERT(weight);
    return (size_t)weight->dim[0] * (size_t)(weight->rank == 2 ? weight->dim[1] : 1);
}

/* Each rank puts what it has of the range at its place in `data`; then all is there. */
static tp_status gather(tp_comm *comm, const range *r, const tp_tensor *own, char *data,
                        tp_error *err)
{
    int n = tp_comm_size(comm);
    size_t size = own ? tp_dtype_size(own->dtype) : sizeof(float);
    size_t *starts = calloc((size_t)n + 1, sizeof *starts);
    TP_HAVE(starts);
    for (int i = 0; i < n; i++) {
        size_t begin, end;
        tp_shard_part(r->n, (tp_shard){i, n}, &begin, &end);
        begin = TP_MAX(begin, r->first);
        end = TP_MAX(TP_MIN(end, r->first + r->count), begin);
        starts[i + 1] = starts[i] + (end - begin);
    }
    int rank = tp_comm_rank(comm);
    size_t mine = starts[rank + 1] - starts[rank], begin, end;
    tp_shard_part(r->n, (tp_shard){rank, n}, &begin, &end);
    tp_status status = TP_OK;
    if (mine)
        status = tp_tensor_read(own, (TP_MAX(begin, r->first) - begin) * size,
                                data + starts[rank] * size, mine * size, err);
    tp_exchange *exchange;
    const tp_exchange_spec c = {
        .kind = TP_ALL_GATHER, .element = size, .data = data, .starts = starts};
    if (status == TP_OK)
        status = tp_comm_start(comm, &c, &exchange, err);
    if (status == TP_OK)
        status = tp_comm_wait(comm, exchange, err);
    free(starts);
    return status;
}

tp_status tp_parts_read(const void *source, size_t offset, void *to, size_t bytes, tp_error *err)
{
    const tp_parts *p = source;
    size_t size = tp_dtype_size(p->own->dtype);
    range r = {.n = p->n, .first = offset / size, .count = bytes / size};
    snprintf(r.name, sizeof r.name, "%s", p->own->name);
    TP_TRY(tp_comm_broadcast(p->comm, &r, sizeof r, 0, err));
    return gather(p->comm, &r, p->own, to, err);
}

tp_status tp_parts_serve(tp_comm *comm, const tp_states *states, tp_error *err)
{
    range r;
    tp_status status = TP_OK;
    char *data = NULL;
    size_t room = 0;
    while (status == TP_OK) {
        status = tp_comm_broadcast(comm, &r, sizeof r, 0, err);
        if (status != TP_OK || !r.name[0])
            break;
        const tp_tensor *own = tp_states_find(states, r.name); /* NULL: its part is empty */
        if (r.count * sizeof(double) > room) {
            room = r.count * sizeof(double);
            free(data);
            data = malloc(room);
            TP_HAVE(data);
        }
        status = gather(comm, &r, own, data, err);
    }
    free(data);
    return status;
}

tp_status tp_parts_done(tp_comm *comm, tp_error *err)
{
    range none = {.name = ""};
    return tp_comm_broadcast(comm, &none, sizeof none, 0, err);
}
