/* states.c - persistent tensors by name, in an open-addressing index. */
#include "engine/device/states.h"

#include <string.h>

enum { ARENA_BYTES = 256 << 20 };

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

tp_state *tp_states_find(const tp_states *states, const char *name)
{
    if (states->n_slots == 0)
        return NULL;
    uint32_t slot = *slot_of(states, name);
    return slot ? &states->items[slot - 1] : NULL;
}

static void make_room(tp_states *states)
{
    if (states->n < states->cap)
        return;
    size_t cap = states->cap ? states->cap * 2 : 256;
    tp_state *items = tp_arena_array(&states->arena, tp_state, cap);
    if (states->n)
        memcpy(items, states->items, states->n * sizeof *items);
    states->items = items;
    states->cap = cap;
    states->n_slots = cap * 4;
    states->slots = tp_arena_array(&states->arena, uint32_t, states->n_slots);
    for (size_t i = 0; i < states->n; i++)
        *slot_of(states, states->items[i].name) = (uint32_t)i + 1;
}

tp_status tp_states_declare(tp_states *states, const char *name, tp_dtype dtype, uint8_t rank,
                            const int64_t *dim, tp_mem_kind kind, tp_error *err)
{
    int64_t d1 = rank == 2 ? dim[1] : 1;
    const tp_state *old = tp_states_find(states, name);
    if (old) {
        if (old->dtype != dtype || old->rank != rank || old->dim[0] != dim[0] || old->dim[1] != d1)
            return tp_fail(err, TP_ERR_ARG, "tensor '%s' is declared with two different types",
                           name);
        return TP_OK;
    }
    size_t count, bytes;
    if (rank < 1 || rank > 2 || dim[0] < 1 || d1 < 1 ||
        __builtin_mul_overflow((size_t)dim[0], (size_t)d1, &count) ||
        __builtin_mul_overflow(count, tp_dtype_size(dtype), &bytes))
        return tp_fail(err, TP_ERR_FORMAT, "tensor '%s' has an impossible shape %lldx%lld", name,
                       (long long)dim[0], (long long)d1);
    make_room(states);
    uint32_t *slot = slot_of(states, name);
    states->items[states->n] = (tp_state){.name = tp_arena_strdup(&states->arena, name),
                                          .dtype = dtype,
                                          .kind = kind,
                                          .rank = rank,
                                          .dim = {dim[0], d1},
                                          .bytes = bytes};
    *slot = (uint32_t)++states->n;
    return TP_OK;
}

enum { LINE = 64 };
static size_t in_block(const tp_state *s) { return (s->bytes + LINE - 1) / LINE * LINE; }

/* Shadows share one block.  They are streamed once per step of generation, and a tensor
 * smaller than a huge page would lie in small ones: those read at half the speed. */
static tp_status alloc_shadows(tp_states *states, tp_device *device, tp_error *err)
{
    size_t total = 0, at = 0;
    const char *first = NULL;
    for (size_t i = 0; i < states->n; i++) {
        const tp_state *s = &states->items[i];
        if (s->span.buffer || s->kind != TP_MEM_SHADOW)
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
        tp_state *s = &states->items[i];
        if (s->span.buffer || s->kind != TP_MEM_SHADOW)
            continue;
        s->span = (tp_span){block, at};
        s->is_inside = at > 0;
        at += in_block(s);
    }
    return TP_OK;
}

tp_status tp_states_alloc(tp_states *states, tp_device *device, tp_error *err)
{
    TP_TRY(alloc_shadows(states, device, err));
    for (size_t i = 0; i < states->n; i++) {
        tp_state *s = &states->items[i];
        if (s->span.buffer)
            continue;
        tp_status status = tp_buffer_alloc(device, s->kind, s->bytes, &s->span.buffer, err);
        if (status != TP_OK)
            return tp_error_prefix(err, status, "tensor '%s': ", s->name);
    }
    return TP_OK;
}

static tp_span part_of(const tp_state *state, size_t offset)
{
    return (tp_span){state->span.buffer, state->span.offset + offset};
}

tp_status tp_state_read(const void *source, size_t offset, void *to, size_t bytes, tp_error *err)
{
    return tp_span_read(to, part_of(source, offset), bytes, err);
}

tp_status tp_state_write(const tp_state *state, size_t offset, const void *from, size_t bytes,
                         tp_error *err)
{
    return tp_span_write(part_of(state, offset), from, bytes, err);
}

void tp_states_bytes(const tp_states *states, size_t ret_bytes[TP_MEM_KINDS])
{
    memset(ret_bytes, 0, TP_MEM_KINDS * sizeof *ret_bytes);
    for (size_t i = 0; i < states->n; i++) {
        const tp_state *s = &states->items[i];
        ret_bytes[s->kind] += s->kind == TP_MEM_SHADOW ? in_block(s) : s->bytes;
    }
}
