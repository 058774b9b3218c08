/* frozen.c - parameters in few bits: their parts, and numbers into them and back. */
#include "engine/model/frozen.h"

#include <stdlib.h>

#include "engine/device/quantised.h"

bool tp_param_is_packed(const tp_param *p)
{
    return p->storage == TP_BASE_INT8 || p->storage == TP_BASE_NF4;
}

static tp_tensor part(const tp_param *p, tp_arena *arena, const char *suffix, tp_dtype dtype,
                      int64_t n)
{
    return (tp_tensor){.name = tp_arena_printf(arena, "%s.%s", p->name, suffix),
                       .of = p->name,
                       .role = TP_ROLE_WEIGHT,
                       .dtype = dtype,
                       .rank = 1,
                       .dim = {n, 1}};
}

int tp_param_parts(const tp_param *p, tp_arena *arena, tp_tensor ret[TP_PARAM_PARTS])
{
    int64_t n = p->dim[0] * p->dim[1];
    if (!tp_param_is_packed(p)) {
        ret[0] = tp_param_tensor(p);
        return 1;
    }
    if (p->storage == TP_BASE_INT8) {
        ret[0] = part(p, arena, "int8", TP_DTYPE_U8, n);
        ret[1] = part(p, arena, "int8.scales", TP_DTYPE_F32, tp_int8_scales(n));
        return 2;
    }
    ret[0] = part(p, arena, "nf4", TP_DTYPE_U8, tp_nf4_bytes(n));
    ret[1] = part(p, arena, "nf4.absmax", TP_DTYPE_U8, tp_nf4_sizes(n));
    ret[2] = part(p, arena, "nf4.nested", TP_DTYPE_F32, tp_nf4_groups(n));
    return 3;
}

/* The parts in the host's memory. */
typedef struct {
    tp_arena names;
    int n;
    tp_tensor part[TP_PARAM_PARTS];
    void *data[TP_PARAM_PARTS];
} parts;

static size_t bytes_of(const tp_tensor *t) { return (size_t)t->dim[0] * tp_dtype_size(t->dtype); }

static void release(parts *x)
{
    for (int i = 0; i < x->n; i++)
        free(x->data[i]);
    tp_arena_release(&x->names);
}

static tp_status open(const tp_param *p, parts *ret, tp_error *err)
{
    parts x = {0};
    TP_TRY(tp_arena_init(&x.names, 64 << 10, err));
    x.n = tp_param_parts(p, &x.names, x.part);
    tp_status status = TP_OK;
    for (int i = 0; i < x.n; i++) {
        x.data[i] = malloc(bytes_of(&x.part[i]));
        if (!x.data[i] && status == TP_OK)
            status = tp_fail(err, TP_ERR_NOMEM, "cannot keep '%s': out of memory", p->name);
    }
    TP_HAND_OVER(status, ret, x, release(&x));
}

static tp_status find(const tp_states *states, const tp_tensor *part, const tp_tensor **ret,
                      tp_error *err)
{
    *ret = tp_states_find(states, part->name);
    return *ret && (*ret)->span.buffer
               ? TP_OK
               : tp_fail(err, TP_ERR_ARG, "tensor '%s' is not in memory", part->name);
}

/* to[k][i] = from[i][k] */
static void turn(const float *from, int64_t rows, int64_t columns, float *to)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            to[k * rows + i] = from[i * columns + k];
}

static float *room_to_turn(const tp_param *p)
{
    return p->is_transposed ? tp_new((size_t)(p->dim[0] * p->dim[1]), sizeof(float)) : NULL;
}

static void encode(const tp_param *p, const float *x, parts *to)
{
    int64_t n = p->dim[0] * p->dim[1];
    TP_FREED float *turned = room_to_turn(p);
    if (turned)
        turn(x, p->dim[0], p->dim[1], turned);
    const float *from = turned ? turned : x;
    if (p->storage == TP_BASE_INT8)
        tp_int8_encode(from, n, to->data[0], to->data[1]);
    else
        tp_nf4_encode(from, n, to->data[0], to->data[1], to->data[2]);
}

static void decode(const tp_param *p, const parts *from, float *x)
{
    int64_t n = p->dim[0] * p->dim[1];
    TP_FREED float *turned = room_to_turn(p);
    float *to = turned ? turned : x;
    if (p->storage == TP_BASE_INT8)
        tp_int8_decode(from->data[0], from->data[1], n, to);
    else
        tp_nf4_decode(from->data[0], from->data[1], from->data[2], n, to);
    if (turned)
        turn(turned, p->dim[1], p->dim[0], x);
}

tp_status tp_param_pack(const tp_param *p, tp_states *states, const float *x, tp_error *err)
{
    parts to;
    TP_TRY(open(p, &to, err));
    encode(p, x, &to);
    tp_status status = TP_OK;
    for (int i = 0; i < to.n && status == TP_OK; i++) {
        const tp_tensor *state;
        status = find(states, &to.part[i], &state, err);
        if (status == TP_OK)
            status = tp_tensor_write(state, 0, to.data[i], bytes_of(&to.part[i]), err);
    }
    release(&to);
    return status;
}

tp_status tp_param_unpack(const tp_param *p, const tp_states *states, float *x, tp_error *err)
{
    parts from;
    TP_TRY(open(p, &from, err));
    tp_status status = TP_OK;
    for (int i = 0; i < from.n && status == TP_OK; i++) {
        const tp_tensor *state;
        status = find(states, &from.part[i], &state, err);
        if (status == TP_OK)
            status = tp_tensor_read(state, 0, from.data[i], bytes_of(&from.part[i]), err);
    }
    if (status == TP_OK)
        decode(p, &from, x);
    release(&from);
    return status;
}

tp_status tp_param_round(const tp_param *p, tp_base_storage storage, float *x, tp_error *err)
{
    parts packed;
    tp_param as = *p;
    as.storage = storage;
    TP_ASSERT(tp_param_is_packed(&as));
    TP_TRY(open(&as, &packed, err));
    encode(&as, x, &packed);
    decode(&as, &packed, x);
    release(&packed);
    return TP_OK;
}
