/* traffic_encoded.c - gradients that are encoded on their way (wire.h), and what that loses.
 *
 * Of a tensor's part that is another rank's, a rank sends v = g + e, encoded once, and keeps
 * e = v - decoded(v), which it adds the next time: error feedback.  Whose part it is sums its own
 * g as it is, then what it decodes from the ranks behind it, in turn, in f32.  Where all ranks need
 * the sum it is encoded once more, with an e of its own, and is what everybody decodes, itself
 * too: replicas stay the same.  Where it stays with its owner it is not encoded again.
 *
 * So a rank has one e for every number of the tensor, in its own part that of the sum: of all
 * ranks, or of those that have the same part in other nodes. */
#include <math.h>

#include "base/platform.h"
#include "engine/exec/traffic_internal.h"

enum { CHUNK = 2048 }; /* numbers at a time: whole blocks of every format */
_Static_assert(CHUNK % TP_WIRE_LARGEST_BLOCK == 0, "a chunk has whole blocks");

/* NULL: none are kept. */
static const tp_operand *errors_of(const tp_bucket *b, const tp_launch *l)
{
    const tp_operand *errors = &l->in[b->how.to_part ? 2 : 1];
    return errors->rank ? errors : NULL;
}

static tp_span error_place(const tp_parcel *s, const tp_operand *errors, const tp_stretch *x,
                           size_t at)
{
    size_t first, end;
    tp_span place = errors->span;
    tp_bucket_held(s->traffic, s->of, x->launch, &first, &end);
    place.offset += (first + x->begin + x->at + at) * sizeof(float);
    return place;
}

/* What is kept of the own part is of a sum that comes later. */
static bool is_summed_again(const tp_parcel *s)
{
    const tp_ranks *r = &s->traffic->ranks;
    return s->of->how.to_part && r->node && r->node < r->ranks;
}

static tp_status add_from(tp_span place, float *v, size_t n, tp_error *err)
{
    float more[CHUNK];
    TP_TRY(tp_span_read(more, place, n * sizeof *more, err));
    tp_add_f32(v, more, n);
    return TP_OK;
}

/* v becomes what the encoding of it lost.  Of what is not finite nothing is kept: it was sent. */
static void find_errors(tp_wire_stats *stats, const float *decoded, float *v, size_t n)
{
    double square = 0, lost = 0;
    for (size_t i = 0; i < n; i++) {
        float error = v[i] - decoded[i];
        error = isfinite(error) ? error : 0;
        square += isfinite(v[i]) ? (double)v[i] * (double)v[i] : 0;
        lost += (double)error * (double)error;
        v[i] = error;
    }
    stats->square += square;
    stats->lost += lost;
}

/* At most a chunk, and what was kept of it before, to the staging buffer. */
static tp_status encode(const tp_parcel *s, int rank, const tp_stretch *x, size_t at, float *v,
                        size_t n, tp_error *err)
{
    const tp_bucket *b = s->of;
    const tp_operand *errors = errors_of(b, x->launch);
    float decoded[CHUNK];
    char *to = tp_parcel_staged(s, rank, x) + at / b->block * b->element;
    if (errors)
        TP_TRY(add_from(error_place(s, errors, x, at), v, n, err));
    tp_wire_encode(&b->wire, v, n, to);
    tp_wire_decode(&b->wire, to, decoded, n);
    find_errors(&s->traffic->stats, decoded, v, n);
    return errors ? tp_span_write(error_place(s, errors, x, at), v, n * sizeof *v, err) : TP_OK;
}

static tp_status encode_in(const tp_parcel *s, int rank, const tp_stretch *x, tp_error *err)
{
    float v[CHUNK];
    for (size_t at = 0; at < x->n; at += CHUNK) {
        size_t n = TP_MIN(x->n - at, (size_t)CHUNK);
        TP_TRY(tp_span_read(v, tp_stretch_place(s->of, x, true, at), n * sizeof *v, err));
        TP_TRY(encode(s, rank, x, at, v, n, err));
    }
    return TP_OK;
}

static tp_status decode_out(const tp_parcel *s, int rank, const tp_stretch *x, tp_error *err)
{
    float v[CHUNK];
    const tp_bucket *b = s->of;
    const char *from = tp_parcel_staged(s, rank, x);
    for (size_t at = 0; at < x->n; at += CHUNK) {
        size_t n = TP_MIN(x->n - at, (size_t)CHUNK);
        tp_wire_decode(&b->wire, from + at / b->block * b->element, v, n);
        TP_TRY(tp_span_write(tp_stretch_place(b, x, false, at), v, n * sizeof *v, err));
    }
    return TP_OK;
}

/* ---- the own part ---- */

static float *summed(const tp_parcel *s, const tp_stretch *x)
{
    return s->sum + x->from * s->of->block;
}

static tp_status sum_in(const tp_parcel *s, int rank, const tp_stretch *x, tp_error *err)
{
    (void)rank;
    tp_span from = tp_stretch_place(s->of, x, true, 0);
    return tp_span_read(summed(s, x), from, x->n * sizeof(float), err);
}

static tp_status encode_sum(const tp_parcel *s, int rank, const tp_stretch *x, tp_error *err)
{
    for (size_t at = 0; at < x->n; at += CHUNK)
        TP_TRY(encode(s, rank, x, at, summed(s, x) + at, TP_MIN(x->n - at, (size_t)CHUNK), err));
    return TP_OK;
}

/* What is kept of the own part here is of another number of ranks, or another strategy. */
static tp_status take_errors(const tp_parcel *s, const tp_stretch *x, size_t at, float *v, size_t n,
                             tp_error *err)
{
    static const float nothing[CHUNK];
    const tp_operand *errors = errors_of(s->of, x->launch);
    if (!errors || is_summed_again(s))
        return TP_OK;
    TP_TRY(add_from(error_place(s, errors, x, at), v, n, err));
    return tp_span_write(error_place(s, errors, x, at), nothing, n * sizeof *v, err);
}

static tp_status sum_out(const tp_parcel *s, int rank, const tp_stretch *x, tp_error *err)
{
    (void)rank;
    const tp_bucket *b = s->of;
    for (size_t at = 0; at < x->n; at += CHUNK) {
        size_t n = TP_MIN(x->n - at, (size_t)CHUNK);
        float *v = summed(s, x) + at;
        tp_span place = tp_stretch_place(b, x, false, at);
        TP_TRY(take_errors(s, x, at, v, n, err));
        if (b->how.adds && x->launch->accumulate)
            TP_TRY(add_from(place, v, n, err));
        TP_TRY(tp_span_write(place, v, n * sizeof *v, err));
    }
    return TP_OK;
}

/* ---- on its way ---- */

/* Gradient, errors and code are read or written. */
void tp_encoded_rehearse(const tp_parcel *s, size_t elements)
{
    const tp_bucket *b = s->of;
    double bytes = (double)(elements * (3 * sizeof(float) * b->block + b->element));
    tp_comm_pass(s->traffic->ranks.comm, bytes / 2 * s->traffic->rehearsed_s);
}

static void add_part(void *user, const void *from, size_t elements)
{
    float v[TP_WIRE_LARGEST_BLOCK];
    const tp_parcel *s = user;
    const tp_bucket *b = s->of;
    if (s->traffic->rehearsed_s > 0) {
        tp_encoded_rehearse(s, elements);
        return;
    }
    for (size_t i = 0; i < elements; i++) {
        tp_wire_decode(&b->wire, (const char *)from + i * b->element, v, b->block);
        tp_add_f32(s->sum + i * b->block, v, b->block);
    }
}

static tp_status turn(void *user, tp_error *err)
{
    const tp_parcel *s = user;
    int own = s->of->own;
    if (s->traffic->rehearsed_s == 0)
        return tp_parcel_walk(s, own, encode_sum, err);
    tp_encoded_rehearse(s, s->starts[own + 1] - s->starts[own]);
    return TP_OK;
}

tp_exchange_coder tp_encoded_coder(tp_parcel *slot)
{
    return (tp_exchange_coder){.add = add_part, .turn = turn, .user = slot};
}

tp_stretch_fn *tp_encoded_copier(const tp_parcel *s, int rank, bool in)
{
    if (in)
        return rank == s->of->own ? sum_in : encode_in;
    return s->of->how.kind == TP_ALL_REDUCE ? decode_out : sum_out;
}
