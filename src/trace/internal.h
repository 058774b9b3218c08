/* internal.h - what the files of the recorder share.
 *
 * A ring belongs to one thread, which alone writes records and publishes them by `n`.
 * Readers look at any time: they copy a record and then check by `reserved`, which the
 * writer raises first, that it was not being overwritten.
 *
 *     words of a record   0            1         2             3
 *     zone                start        end       site          bytes of text
 *     mark                when         -         site + kind   bytes of text
 *     value               when         double    site + kind   -
 *     flow                when         number    site + kind   -
 *     memory              when         address   site + kind   bytes
 *       and one more      allocated    reserved  MORE          -
 *     text, 24 bytes each  text         text      MORE          text
 *
 * Locks: `io` (whoever reads rings or writes files) is taken before `lock` (the list of
 * rings, limits, options), which is held for moments only. */
#ifndef TP_TRACE_INTERNAL_H
#define TP_TRACE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/strings.h"
#include "text/json/json.h"
#include "trace/trace.h"

enum {
    TP_RING_MORE = 7, /* low bits of a record that continues the one before */
    TP_RING_KIND = 7,
    TP_RING_TEXT = 1000, /* most bytes of one event's text */
    TP_RING_TEXT_RECORDS = (TP_RING_TEXT + 23) / 24,
    TP_RING_LEAST = 128, /* records */
    TP_THREAD_NAME = 32
};

enum { TP_MODE_TSC = 1, TP_MODE_MONOTONIC = 2, TP_MODE_RECORDING = 3, TP_MODE_NVTX = 4 };

typedef struct {
    _Atomic uint64_t word[4];
} tp_ring_record;

typedef struct tp_ring tp_ring;
struct tp_ring {
    /* the writer's */
    _Atomic uint64_t n, reserved; /* published; about to be */
    _Atomic uint64_t limit;       /* up to here without looking around; 0: ask first */
    tp_ring_record *records;
    uint64_t mask; /* records - 1 */
    _Atomic uint64_t n_more;
    _Atomic uint64_t refused; /* events not taken */
    /* the readers' */
    _Alignas(64) _Atomic uint64_t tail; /* flushed so far */
    uint32_t generation;                /* of the recording it belongs to */
    long tid;
    char thread_name[TP_THREAD_NAME];
    bool name_is_written, is_orphan; /* orphan: its thread has ended */
    tp_ring *next;
};

/* ---- clock.c ---- */

/* A recording's ticks in nanoseconds since it began: lines between anchors, so that what
 * was converted once stays what it is as anchors are added. */
typedef struct {
    uint64_t ticks;
    int64_t ns;
} tp_anchor;

typedef struct {
    tp_anchor *anchors;
    size_t n, cap;
    uint64_t raw_start_ns;
    bool is_tsc;
} tp_timeline;

bool tp_clock_is_listed(const char *sources, const char *name); /* in words of a line */
/* Do both clocks run alike from the first pair to the second and from there to the third? */
bool tp_clock_is_steady(const tp_anchor pairs[3]);
static inline uint64_t tp_ticks_raw(void);
uint64_t tp_ticks_monotonic(void);
void tp_timeline_start(tp_timeline *line, bool is_tsc);
/* Ticks up to now can be converted after this. */
void tp_timeline_extend(tp_timeline *line);
int64_t tp_timeline_ns(const tp_timeline *line, uint64_t ticks);
void tp_timeline_release(tp_timeline *line);

static inline uint64_t tp_ticks_raw(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return tp_ticks_monotonic();
#endif
}

/* ---- recorder.c ---- */

typedef struct {
    char *key, *json;
} tp_trace_member;

typedef struct tp_chrome tp_chrome;

typedef struct {
    pthread_mutex_t io, lock;
    tp_ring *rings;
    uint32_t generation;
    uint64_t capacity; /* of a ring, records */
    tp_trace_overflow overflow;
    tp_timeline line;
    uint64_t start_ticks;
    int64_t base_unix_ns;
    tp_trace_member *members;
    size_t n_members;
    char *path, *process_name;
    tp_chrome *stream; /* TP_TRACE_FLUSH while recording */
    void (*wake_flusher)(void);
    bool is_running; /* perhaps paused */
    uint32_t clock_mode;
    tp_status stream_status;
    tp_error stream_error;
    tp_trace_cost cost;
    pthread_mutex_t memory_lock;
    int64_t allocated, reserved;
} tp_recorder;

extern tp_recorder tp_the_recorder;

/* Append `text` as a JSON value: as it is when it is one (an object, if asked), else quoted. */
bool tp_trace_is_json(const char *text, bool object);

/* ---- ring.c ---- */

void tp_ring_release(tp_ring *ring);
/* Under `lock`: every thread asks before it records again. */
void tp_rings_invalidate(tp_recorder *r);
/* Of an empty zone, nanoseconds; recording must be on, its events are taken back. */
void tp_ring_measure(tp_recorder *r);
void tp_rings_after_fork(tp_recorder *r);

/* ---- events.c ---- */

/* Events with records in [from, to) of one ring; returns where it stopped. */
uint64_t tp_ring_events(const tp_recorder *r, const tp_ring *ring, uint64_t from, uint64_t to,
                        void (*see)(void *user, const tp_trace_event *event), void *user);
/* The oldest record that is still there. */
uint64_t tp_ring_oldest(const tp_ring *ring);

/* ---- chrome.c ---- */

TP_CHECKED tp_status tp_chrome_open(tp_recorder *r, const char *path, bool is_atomic,
                                    tp_chrome **ret, tp_error *err);
void tp_chrome_ring(tp_chrome *c, tp_ring *ring, uint64_t from, uint64_t to);
/* What was added so far is in the file, which is whole. */
TP_CHECKED tp_status tp_chrome_flush(tp_chrome *c, tp_error *err);
TP_CHECKED tp_status tp_chrome_close(tp_chrome *c, tp_error *err); /* frees it in any case */
/* Is it a member that every file has? */
bool tp_chrome_owns(const char *key);
void tp_chrome_abandon(tp_chrome *c); /* after fork */

/* ---- nvtx.c ---- */

bool tp_nvtx_attach(void); /* once; later calls return the same */
void tp_nvtx_push(const char *name);
void tp_nvtx_pop(void);
void tp_nvtx_mark(const char *name);

/* ---- counters.c ---- */

void tp_counters_write(tp_json_w *w);

#endif
