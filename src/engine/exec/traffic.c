/* traffic.c - tensors that ranks exchange, through a staging buffer. */
#include "base/platform.h"
#include "engine/exec/traffic_internal.h"

/* ---- to and from the staging buffer ---- */

static tp_status copy_in(const tp_parcel *s, int rank, const tp_stretch *x, tp_error *err)
{
    tp_span place = tp_stretch_place(s->of, x, true, 0);
    return tp_span_read(tp_parcel_staged(s, rank, x), place, x->n * s->of->element, err);
}

/* Gradients of a step's micro-batches add up in the part. */
static tp_status add_to_part(const tp_parcel *s, tp_span place, char *staged, size_t bytes,
                             tp_error *err)
{
    TP_TRY(tp_span_read(s->temp, place, bytes, err));
    tp_add_f32(staged, s->temp, bytes / sizeof(float));
    return TP_OK;
}

static tp_status copy_out(const tp_parcel *s, int rank, const tp_stretch *x, tp_error *err)
{
    const tp_bucket *b = s->of;
    char *staged = tp_parcel_staged(s, rank, x);
    size_t bytes = x->n * b->element;
    tp_span place = tp_stretch_place(b, x, false, 0);
    if (b->how.adds && x->launch->accumulate)
        TP_TRY(add_to_part(s, place, staged, bytes, err));
    return tp_span_write(place, staged, bytes, err);
}

static tp_stretch_fn *copier_of(const tp_parcel *s, int rank, bool in)
{
    if (s->of->wire.kind)
        return tp_encoded_copier(s, rank, in);
    return in ? copy_in : copy_out;
}

/* In a rehearsal they are not there: what it would take passes. */
static tp_status copy_parts(const tp_traffic *t, const tp_parcel *s, tp_whose which, bool in,
                            tp_error *err)
{
    size_t n = 0;
    for (int r = 0; r < s->of->parts; r++) {
        if (!(which & (r == s->of->own ? TP_OWN : TP_OTHERS)))
            continue;
        n += s->starts[r + 1] - s->starts[r];
        if (t->rehearsed_s == 0)
            TP_TRY(tp_parcel_walk(s, r, copier_of(s, r, in), err));
    }
    if (s->of->wire.kind)
        tp_encoded_rehearse(s, n);
    else
        tp_comm_pass(t->ranks.comm, (double)(n * s->of->element) * t->rehearsed_s);
    return TP_OK;
}

static tp_status retire(tp_traffic *t, tp_parcel *s, tp_error *err)
{
    if (!s->of)
        return TP_OK;
    const tp_bucket *b = s->of;
    tp_exchange *request = s->request;
    s->request = NULL;
    TP_TRY(tp_comm_wait(t->ranks.comm, request, err));
    TP_TRY(copy_parts(t, s, b->how.out, false, err));
    s->of = NULL;
    return TP_OK;
}

static tp_status send_piece(tp_traffic *t, const tp_bucket *b, size_t piece, tp_error *err)
{
    tp_parcel *s = &t->slots[t->next];
    t->next = (t->next + 1) % TP_TRAFFIC_SLOTS;
    TP_TRY(retire(t, s, err));
    s->of = b;
    s->piece = piece;
    s->traffic = t;
    s->coder = tp_encoded_coder(s);
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
                                .starts = s->starts,
                                .coder = b->wire.kind ? &s->coder : NULL};
    return tp_comm_start(t->ranks.comm, &c, &s->request, err);
}

/* The oldest first: slots are taken in turn. */
static tp_status wait_for(tp_traffic *t, const tp_bucket *b, tp_error *err)
{
    for (int k = 0; k < TP_TRAFFIC_SLOTS; k++) {
        tp_parcel *s = &t->slots[(t->next + k) % TP_TRAFFIC_SLOTS];
        if (s->of == b)
            TP_TRY(retire(t, s, err));
    }
    return TP_OK;
}

/* Ranks that share the layers compute nothing alone. */
static bool is_told(const tp_bucket *b, tp_talk talk)
{
    if (b->how.is_inside)
        return true;
    return talk == TP_TALK_ALL || b->how.from_part ||
           (talk == TP_TALK_PARTS && (b->how.to_part || b->how.is_each));
}

tp_wire_stats tp_traffic_wire_stats(const tp_traffic *t)
{
    return t ? t->stats : (tp_wire_stats){0};
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
    tp_bucket *b = &t->buckets[t->bucket_of[i]];
    if (tp_comm_size(t->ranks.comm) < 2 || !is_told(b, talk))
        return TP_OK;
    if (t->launches[i].op == TP_OP_wait)
        return wait_for(t, b, err);
    if (++b->n_begun < b->n)
        return TP_OK;
    b->n_begun = 0;
    t->stats.plain_bytes += b->wire.kind ? tp_bucket_plain_bytes(b) : 0;
    for (size_t piece = 0; piece < tp_bucket_pieces(b); piece++)
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
