/* traffic_parcel.c - where the numbers of a piece lie: in its tensors, in the staging buffer. */
#include "base/platform.h"
#include "engine/exec/traffic_internal.h"

/* Of what is kept in parts the own one is all there is. */
tp_span tp_stretch_place(const tp_bucket *b, const tp_stretch *x, bool in, size_t at)
{
    const tp_launch *l = x->launch;
    bool is_part = in ? b->how.from_part : b->how.to_part;
    tp_span place = in ? l->in[0].span : l->out[0].span;
    place.offset += ((is_part ? 0 : x->begin) + x->at + at) * tp_dtype_size(l->in[0].dtype);
    return place;
}

tp_status tp_parcel_walk(const tp_parcel *s, int rank, tp_stretch_fn *fn, tp_error *err)
{
    const tp_bucket *b = s->of;
    const tp_traffic *t = s->traffic;
    size_t first = s->piece * b->unit, last = first + (s->starts[rank + 1] - s->starts[rank]);
    size_t at = 0; /* in the rank's part of the bucket */
    for (size_t k = 0; k < b->n; k++) {
        const tp_launch *l = &t->launches[b->launches[k]];
        size_t begin, end;
        tp_bucket_part(t, b, l, rank, &begin, &end);
        size_t n = tp_bucket_elements(b, begin, end);
        size_t from = TP_MAX(first, at), to = TP_MIN(last, at + n);
        if (from < to) {
            tp_stretch x = {l, begin, (from - at) * b->block, 0, from - first};
            x.n = TP_MIN((to - at) * b->block, end - begin) - x.at;
            TP_TRY(fn(s, rank, &x, err));
        }
        at += n;
    }
    return TP_OK;
}

char *tp_parcel_staged(const tp_parcel *s, int rank, const tp_stretch *x)
{
    return s->data + (s->starts[rank] + x->from) * s->of->element;
}
