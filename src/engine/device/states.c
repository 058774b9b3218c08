/* states.c - persistent tensors by name, in an open-addressing index. */
#include "engine/device/states.h"

#include <string.h>

#include "base/platform.h"

enum { ARENA_BYTES = 256 << 20, LINE = 64 };

tp_status tp_states_init(tp_states *states, tp_error *err)
{
    tp_states fresh = {0};
    TP_TRY(tp_arena_init(&fresh.arena, ARENA_BYTES, err));
    *states = fresh;
    return TP_OK;
}

void tp_states_release(tp_states *states)
{
    if (!states)
        return;
    for (size_t i = 0; i < states->n; i++)
        if (!states->items[i].is_inside)
            tp_buffer_free(states->items[i].span.buffer);
    tp_arena_release(&states->arena);
    *states = (tp_states){0};
}

static uint64_t hash(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}

/* The slot that holds `name`, or the free one where it would go. */
static uint32_t *slot_of(const tp_states *states, const char *name)
{
    size_t i = hash(name) & (states->n_slots - 1);
    while (states->slots[i] && strcmp(states->items[states->slots[i] - 1].name, name) != 0)
        i = (i + 1) & (states->n_slots - 1);
    return &states->slots[i];
}

tp_tensor *tp_states_find(const tp_states *states, const char *name)
{
    if (states->n_slots == 0)
        return NULL;
    uint32_t slot = *slot_of(states, name);
    return slot ? &states->items[slot - 1] : NULL;
}

void tp_states_keep_parts(tp_states *states, tp_shard shard, tp_shard rows, uint32_t roles)
{
    states->shard = shard;
    states->rows = rows;
    states->parts = shard.count > 1 ? roles : 0;
}

/* What has no owner and is no weight is of the step, not of a tensor: the norm's sum. */
static bool keeps_part(const tp_states *states, const tp_tensor *t)
{
    return (states->parts >> t->role & 1) && !t->within && t->layout == TP_LAYOUT_ROWS &&
           t->shard.count == 0 && (t->of || t->role == TP_ROLE_WEIGHT);
}

static void make_room(tp_states *states)
{
    if (states->n < states->cap)
        return;
    size_t cap = states->cap ? states->cap * 2 : 256;
    tp_tensor *items = tp_arena_array(&states->arena, tp_tensor, cap);
    if (states->n)
        memcpy(items, states->items, states->n * sizeof *items);
    states->items = items;
    states->cap = cap;
    states->n_slots = cap * 4;
    states->slots = tp_arena_array(&states->arena, uint32_t, states->n_slots);
    for (size_t i = 0; i < states->n; i++)
        *slot_of(states, states->items[i].name) = (uint32_t)i + 1;
}

static bool is_same_whole(const tp_tensor *a, const tp_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           tp_tensor_dim(a, 0) == tp_tensor_dim(b, 0) &&
           tp_tensor_dim(a, 1) == tp_tensor_dim(b, 1) && a->role == b->role &&
           a->layout == b->layout;
}

static bool is_same_type(const tp_tensor *a, const tp_tensor *b)
{
    return is_same_whole(a, b) && a->dim[0] == b->dim[0] && a->dim[1] == b->dim[1];
}

/* What was declared whole is sliced as long as it has no memory. */
static bool becomes_slice(const tp_tensor *old, const tp_tensor *t)
{
    return tp_is_sliced(t) && !tp_is_sliced(old) && !old->span.buffer && is_same_whole(old, t);
}

/* A part of what is too small for all ranks may be empty. */
static size_t bytes_held(const tp_tensor *t)
{
    size_t begin, end;
    tp_tensor_held(t, &begin, &end);
    return end > begin ? (end - begin) * tp_dtype_size(t->dtype) : LINE;
}

static void slice(tp_states *states, tp_tensor *old, const tp_tensor *t)
{
    old->slice = t->slice;
    memcpy(old->dim, t->dim, sizeof old->dim);
    old->bytes = bytes_held(old);
    old->reader = &states->reader;
}

tp_status tp_states_declare(tp_states *states, const tp_tensor *tensor, tp_error *err)
{
    tp_tensor t = *tensor;
    t.dim[1] = t.rank == 2 ? t.dim[1] : 1;
    tp_tensor *old = tp_states_find(states, t.name);
    if (old && becomes_slice(old, &t)) {
        slice(states, old, &t);
        return TP_OK;
    }
    if (old)
        return is_same_type(old, &t)
                   ? TP_OK
                   : tp_fail(err, TP_ERR_ARG, "tensor '%s' is declared with two different types",
                             t.name);
    size_t count;
    if (t.rank < 1 || t.rank > 2 || t.dim[0] < 1 || t.dim[1] < 1 ||
        __builtin_mul_overflow((size_t)t.dim[0], (size_t)t.dim[1], &count) ||
        __builtin_mul_overflow(count, tp_dtype_size(t.dtype), &t.bytes))
        return tp_fail(err, TP_ERR_FORMAT, "tensor '%s' has an impossible shape %lldx%lld", t.name,
                       (long long)t.dim[0], (long long)t.dim[1]);
    t.keeps_part = keeps_part(states, &t);
    t.reader = tp_is_sliced(&t) ? &states->reader : NULL;
    if (t.keeps_part) {
        t.shard = t.role == TP_ROLE_ERROR ? states->rows : states->shard;
        t.reader = &states->reader;
        t.copies = t.role == TP_ROLE_ERROR ? 0 : states->copies;
        t.bytes = bytes_held(&t);
    }
    make_room(states);
    uint32_t *slot = slot_of(states, t.name);
    t.name = tp_arena_strdup(&states->arena, t.name);
    t.of = t.of ? tp_arena_strdup(&states->arena, t.of) : NULL;
    t.within = t.within ? tp_arena_strdup(&states->arena, t.within) : NULL;
    t.span = (tp_span){0};
    t.is_inside = false;
    states->items[states->n] = t;
    *slot = (uint32_t)++states->n;
    return TP_OK;
}

/* Copies of weights lie in one block, which is the first one's. */
void tp_states_drop(tp_states *states, tp_role role)
{
    size_t kept = 0;
    TP_ASSERT(role != TP_ROLE_COPY);
    if (states->n == 0)
        return;
    for (size_t i = 0; i < states->n; i++) {
        tp_tensor *s = &states->items[i];
        if (s->role != role)
            states->items[kept++] = *s;
        else if (!s->is_inside)
            tp_buffer_free(s->span.buffer);
    }
    states->n = kept;
    memset(states->slots, 0, states->n_slots * sizeof *states->slots);
    for (size_t i = 0; i < kept; i++)
        *slot_of(states, states->items[i].name) = (uint32_t)i + 1;
}

static size_t in_block(const tp_tensor *s) { return (s->bytes + LINE - 1) / LINE * LINE; }

size_t tp_tensor_room(const tp_tensor *tensor)
{
    if (tensor->within)
        return 0;
    return tensor->role == TP_ROLE_COPY ? in_block(tensor) : tensor->bytes;
}

/* Copies of weights share one block.  They are streamed once per step of generation, and a tensor
 * smaller than a huge page would lie in small ones: those read at half the speed. */
static tp_status alloc_shadows(tp_states *states, tp_device *device, tp_error *err)
{
    size_t total = 0, at = 0;
    const char *first = NULL;
    for (size_t i = 0; i < states->n; i++) {
        const tp_tensor *s = &states->items[i];
        if (s->span.buffer || s->role != TP_ROLE_COPY)
            continue;
        first = first ? first : s->name;
        total += in_block(s);
    }
    if (!first)
        return TP_OK;
    tp_buffer *block;
    tp_status status = tp_buffer_alloc(device, TP_MEM_SHADOW, total, &block, err);
    if (status != TP_OK)
        return tp_error_prefix(err, status, "tensor '%s' and other shadows: ", first);
    for (size_t i = 0; i < states->n; i++) {
        tp_tensor *s = &states->items[i];
        if (s->span.buffer || s->role != TP_ROLE_COPY)
            continue;
        s->span = (tp_span){block, at};
        s->is_inside = at > 0;
        at += in_block(s);
    }
    return TP_OK;
}

static tp_status place_part(const tp_states *states, tp_tensor *part, tp_error *err)
{
    const tp_tensor *whole = tp_states_find(states, part->within);
    if (!whole || !whole->span.buffer)
        return tp_fail(err, TP_ERR_ARG, "tensor '%s' is a part of '%s', which is not there",
                       part->name, part->within);
    size_t begin, end;
    tp_tensor_held(whole, &begin, &end);
    TP_ASSERT(part->within_at >= begin);
    size_t at = (part->within_at - begin) * tp_dtype_size(part->dtype);
    TP_ASSERT(at + part->bytes <= whole->bytes);
    part->span = (tp_span){whole->span.buffer, whole->span.offset + at};
    part->is_inside = true;
    return TP_OK;
}

tp_status tp_states_alloc(tp_states *states, tp_device *device, tp_error *err)
{
    TP_TRY(alloc_shadows(states, device, err));
    for (size_t i = 0; i < states->n; i++) {
        tp_tensor *s = &states->items[i];
        if (s->span.buffer || s->within)
            continue;
        tp_status status =
            tp_buffer_alloc(device, tp_role_memory(s->role), s->bytes, &s->span.buffer, err);
        if (status != TP_OK)
            return tp_error_prefix(err, status, "tensor '%s': ", s->name);
    }
    for (size_t i = 0; i < states->n; i++)
        if (states->items[i].within && !states->items[i].span.buffer)
            TP_TRY(place_part(states, &states->items[i], err));
    return TP_OK;
}

static tp_span part_of(const tp_tensor *state, size_t offset)
{
    return (tp_span){state->span.buffer, state->span.offset + offset};
}

tp_status tp_tensor_read(const void *source, size_t offset, void *to, size_t bytes, tp_error *err)
{
    const tp_tensor *state = source;
    size_t size = tp_dtype_size(state->dtype);
    if ((state->keeps_part || tp_is_sliced(state)) && state->reader && state->reader->read)
        return state->reader->read(state->reader->user, state, offset / size, bytes / size, to,
                                   err);
    return tp_tensor_read_held(state, offset, to, bytes, err);
}

tp_status tp_tensor_read_held(const void *source, size_t offset, void *to, size_t bytes,
                              tp_error *err)
{
    const tp_tensor *state = source;
    size_t begin, end, size = tp_dtype_size(state->dtype);
    tp_tensor_held(state, &begin, &end);
    TP_ASSERT(offset >= begin * size && offset + bytes <= end * size);
    return tp_span_read(to, part_of(state, offset - begin * size), bytes, err);
}

tp_status tp_tensor_write(const tp_tensor *state, size_t offset, const void *from, size_t bytes,
                          tp_error *err)
{
    size_t size = tp_dtype_size(state->dtype), first = offset / size, begin, end;
    tp_slice_run run;
    tp_tensor_held(state, &begin, &end);
    for (size_t at = first; tp_slice_next_held(state, &at, first + bytes / size, &run);)
        TP_TRY(tp_span_write(part_of(state, (run.own - begin) * size),
                             (const char *)from + (run.at - first) * size, run.n * size, err));
    return TP_OK;
}

void tp_states_bytes(const tp_states *states, size_t ret_bytes[TP_MEM_KINDS])
{
    memset(ret_bytes, 0, TP_MEM_KINDS * sizeof *ret_bytes);
    for (size_t i = 0; i < states->n; i++) {
        const tp_tensor *s = &states->items[i];
        ret_bytes[tp_role_memory(s->role)] += tp_tensor_room(s);
    }
}
