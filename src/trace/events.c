/* events.c - rings read back as events, while their threads may go on writing. */
#include <string.h>

#include "base/platform.h"
#include "trace/internal.h"

/* Copy record i; false when it is no longer that one. */
static bool take(const tp_ring *ring, uint64_t i, uint64_t out[4])
{
    const tp_ring_record *record = &ring->records[i & ring->mask];
    for (int k = 0; k < 4; k++)
        out[k] = atomic_load_explicit(&record->word[k], memory_order_acquire);
    return atomic_load_explicit(&ring->reserved, memory_order_relaxed) <= i + ring->mask + 1;
}

uint64_t tp_ring_oldest(const tp_ring *ring)
{
    uint64_t reserved = atomic_load(&ring->reserved), capacity = ring->mask + 1;
    return reserved > capacity ? reserved - capacity : 0;
}

/* The text of `len` bytes from record i on; false when part of it is gone. */
static bool take_text(const tp_ring *ring, uint64_t i, size_t len, char *out)
{
    for (size_t at = 0; at < len; at += 24, i++) {
        uint64_t word[4];
        if (!take(ring, i, word))
            return false;
        uint64_t bytes[3] = {word[0], word[1], word[3]};
        memcpy(out + at, bytes, TP_MIN(len - at, 24));
    }
    out[len] = 0;
    return true;
}

static bool take_rest(const tp_ring *ring, uint64_t i, const uint64_t head[4], tp_trace_event *e,
                      char *text)
{
    uint64_t word[4];
    switch (e->kind) {
    case TP_TRACE_COUNTER:
        memcpy(&e->value, &head[1], sizeof e->value);
        return true;
    case TP_TRACE_FLOW_BEGIN:
    case TP_TRACE_FLOW_END:
        e->id = head[1];
        return true;
    case TP_TRACE_MEMORY:
        e->id = head[1];
        e->bytes = (int64_t)head[3];
        if (!take(ring, i + 1, word))
            return false;
        e->allocated = (int64_t)word[0];
        e->reserved = (int64_t)word[1];
        return true;
    case TP_TRACE_ZONE:
    case TP_TRACE_MARK:
        if (head[3] == 0)
            return true;
        if (head[3] > TP_RING_TEXT || !take_text(ring, i + 1, head[3], text))
            return false;
        e->text = text;
        return true;
    }
    return false;
}

uint64_t tp_ring_events(const tp_recorder *r, const tp_ring *ring, uint64_t from, uint64_t to,
                        void (*see)(void *user, const tp_trace_event *event), void *user)
{
    char text[TP_RING_TEXT + 24 + 1];
    for (uint64_t i = from; i < to; i++) {
        uint64_t head[4];
        if (!take(ring, i, head) || (head[2] & TP_RING_KIND) == TP_RING_MORE)
            continue;
        /* A zone that began in an earlier recording has no place in this one. */
        if (head[0] < r->start_ticks)
            continue;
        tp_trace_event e = {
            .kind = (tp_trace_kind)(head[2] & TP_RING_KIND),
            .site = (const tp_trace_site *)(uintptr_t)(head[2] & ~(uint64_t)TP_RING_KIND),
            .thread_name = ring->thread_name,
            .tid = ring->tid,
            .start_ns = tp_timeline_ns(&r->line, head[0])};
        e.end_ns = e.kind == TP_TRACE_ZONE ? tp_timeline_ns(&r->line, head[1]) : e.start_ns;
        if (take_rest(ring, i, head, &e, text))
            see(user, &e);
    }
    return to;
}
