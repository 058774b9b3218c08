/* ring.c - recording.  See internal.h for what a record holds. */
#include "trace/internal.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/order.h"
#include "base/platform.h"

enum { RANGES = 64, LARGE_RING = 16 << 20 };

uint32_t tp_trace_mode;

/* Not of the initial-exec model, which would save the shared library a call per zone: all of its
 * thread-local memory would have to fit the reserve that the dynamic linker keeps for libraries
 * loaded late, and Python could not load it. */
static _Thread_local tp_ring *my_ring;
static _Thread_local char my_name[TP_THREAD_NAME]; /* may be given before recording starts */
static _Thread_local struct {
    uint32_t depth;
    tp_zone zone[RANGES];
} ranges;

static pthread_key_t end_of_thread;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void on_thread_end(void *ring)
{
    pthread_mutex_lock(&tp_the_recorder.lock);
    ((tp_ring *)ring)->is_orphan = true;
    pthread_mutex_unlock(&tp_the_recorder.lock);
}

static void make_key(void) { pthread_key_create(&end_of_thread, on_thread_end); }

static uint32_t mode_now(void) { return __atomic_load_n(&tp_trace_mode, __ATOMIC_RELAXED); }

static uint64_t ticks_now(void)
{
    return mode_now() & TP_MODE_TSC ? tp_ticks_raw() : tp_ticks_monotonic();
}

/* ---- rings ---- */

static tp_ring *find_orphan(tp_recorder *r)
{
    for (tp_ring *ring = r->rings; ring; ring = ring->next)
        if (ring->is_orphan && ring->generation != r->generation)
            return ring;
    return NULL;
}

/* The calling thread's ring, empty and of this recording; NULL when there is no memory. */
static tp_ring *attach(tp_recorder *r)
{
    tp_ring *ring = my_ring ? my_ring : find_orphan(r);
    if (!ring) {
        ring = aligned_alloc(_Alignof(tp_ring), sizeof *ring);
        if (!ring)
            return NULL;
        memset(ring, 0, sizeof *ring);
        ring->next = r->rings;
        r->rings = ring;
    }
    if (!ring->records || ring->mask + 1 != r->capacity) {
        if (ring->records)
            munmap(ring->records, (ring->mask + 1) * sizeof *ring->records);
        ring->records = NULL;
        void *memory = mmap(NULL, r->capacity * sizeof *ring->records, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            return NULL;
        if (r->capacity * sizeof *ring->records >= LARGE_RING)
            madvise(memory, r->capacity * sizeof *ring->records, MADV_HUGEPAGE);
        ring->records = memory;
        ring->mask = r->capacity - 1;
    }
    atomic_store(&ring->n, 0);
    atomic_store(&ring->reserved, 0);
    atomic_store(&ring->tail, 0);
    atomic_store(&ring->n_more, 0);
    atomic_store(&ring->refused, 0);
    ring->generation = r->generation;
    ring->tid = syscall(SYS_gettid);
    ring->is_orphan = ring->name_is_written = false;
    memcpy(ring->thread_name, my_name, sizeof my_name);
    pthread_setspecific(end_of_thread, ring);
    my_ring = ring;
    return ring;
}

/* Under `lock`: may `need` records be written?  Sets how far until the next question. */
static bool has_room(tp_recorder *r, tp_ring *ring, uint64_t need)
{
    uint64_t n = atomic_load_explicit(&ring->n, memory_order_relaxed), limit = UINT64_MAX;
    uint64_t tail = 0;
    if (r->overflow == TP_TRACE_KEEP_OLDEST)
        limit = r->capacity;
    if (r->overflow == TP_TRACE_FLUSH) {
        tail = atomic_load(&ring->tail);
        bool is_half_full = n + need - tail > r->capacity / 2;
        limit = tail + (is_half_full ? r->capacity : r->capacity / 2);
        if (is_half_full)
            r->wake_flusher();
    }
    atomic_store(&ring->limit, limit);
    return n + need <= limit;
}

/* Off the fast path: a thread's first event, a full ring. */
static tp_ring *make_room(uint64_t need)
{
    tp_recorder *r = &tp_the_recorder;
    pthread_once(&once, make_key);
    pthread_mutex_lock(&r->lock);
    tp_ring *ring = my_ring;
    if (mode_now() & TP_MODE_RECORDING) {
        if (!ring || ring->generation != r->generation)
            ring = attach(r);
        if (ring && !has_room(r, ring, need)) {
            atomic_fetch_add(&ring->refused, 1);
            ring = NULL;
        }
    } else
        ring = NULL;
    pthread_mutex_unlock(&r->lock);
    return ring;
}

static inline tp_ring *ring_for(uint64_t need)
{
    tp_ring *ring = my_ring;
    if (TP_LIKELY(ring && atomic_load_explicit(&ring->n, memory_order_relaxed) + need <=
                              atomic_load_explicit(&ring->limit, memory_order_relaxed)))
        return ring;
    return make_room(need);
}

/* Stores are released one by one so that a reader that sees any of them sees `reserved`;
 * on x86 they are plain stores. */
static inline void put(tp_ring *ring, uint64_t at, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    tp_ring_record *record = &ring->records[at & ring->mask];
    atomic_store_explicit(&record->word[0], a, memory_order_release);
    atomic_store_explicit(&record->word[1], b, memory_order_release);
    atomic_store_explicit(&record->word[2], c, memory_order_release);
    atomic_store_explicit(&record->word[3], d, memory_order_release);
}

static inline void put_one(tp_ring *ring, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    uint64_t n = atomic_load_explicit(&ring->n, memory_order_relaxed);
    atomic_store_explicit(&ring->reserved, n + 1, memory_order_relaxed);
    put(ring, n, a, b, c, d);
    atomic_store_explicit(&ring->n, n + 1, memory_order_release);
}

static uint64_t site_word(const tp_trace_site *site, tp_trace_kind kind)
{
    return (uint64_t)(uintptr_t)site | kind;
}

/* An event with text behind it. */
static void put_with_text(uint64_t a, uint64_t b, uint64_t c, const char *text)
{
    size_t len = text ? strnlen(text, TP_RING_TEXT + 1) : 0;
    if (len > TP_RING_TEXT)
        len = 0; /* half a JSON object is none */
    uint64_t need = 1 + (len + 23) / 24;
    tp_ring *ring = ring_for(need);
    if (!ring)
        return;
    uint64_t n = atomic_load_explicit(&ring->n, memory_order_relaxed);
    atomic_store_explicit(&ring->reserved, n + need, memory_order_relaxed);
    put(ring, n, a, b, c, len);
    for (uint64_t k = 1; k < need; k++) {
        uint64_t words[3] = {0};
        size_t at = (size_t)(k - 1) * 24;
        memcpy(words, text + at, TP_MIN(len - at, 24));
        put(ring, n + k, words[0], words[1], TP_RING_MORE, words[2]);
    }
    atomic_fetch_add(&ring->n_more, need - 1);
    atomic_store_explicit(&ring->n, n + need, memory_order_release);
}

/* ---- zones ---- */

/* With an NVTX tool the lowest bit of the start says that a range was pushed. */
uint64_t tp_zone_enter(const tp_trace_site *site)
{
    uint32_t mode = mode_now();
    uint64_t now = mode & TP_MODE_RECORDING ? ticks_now() : 2;
    if (!(mode & TP_MODE_NVTX))
        return now;
    tp_nvtx_push(site->name);
    return now | 1;
}

/* Returns whether there is still something to record. */
static bool leave_slowly(uint32_t mode, uint64_t *start)
{
    if (mode & TP_MODE_NVTX) {
        if (*start & 1)
            tp_nvtx_pop();
        *start &= ~(uint64_t)1;
    }
    return (mode & TP_MODE_RECORDING) && *start > 2;
}

void tp_zone_leave(const tp_trace_site *site, uint64_t start)
{
    uint32_t mode = mode_now();
    uint64_t end;
    if (TP_LIKELY(mode == TP_MODE_TSC))
        end = tp_ticks_raw();
    else {
        if (!leave_slowly(mode, &start))
            return;
        end = ticks_now();
    }
    tp_ring *ring = ring_for(1);
    if (TP_LIKELY(ring))
        put_one(ring, start, end, (uint64_t)(uintptr_t)site, 0);
}

void tp_zone_end_with(const tp_zone *zone, const char *json)
{
    uint64_t start = zone->start;
    uint32_t mode = mode_now();
    if (start && leave_slowly(mode, &start))
        put_with_text(start, ticks_now(), site_word(zone->site, TP_TRACE_ZONE), json);
}

void tp_range_push(const tp_trace_site *site)
{
    if (ranges.depth < RANGES)
        ranges.zone[ranges.depth] = tp_zone_begin(site);
    ranges.depth++;
}

void tp_range_pop(void)
{
    if (ranges.depth == 0)
        return;
    if (--ranges.depth < RANGES)
        tp_zone_end(&ranges.zone[ranges.depth]);
}

/* ---- other events ---- */

void tp_trace_mark(const tp_trace_site *site, const char *json)
{
    uint32_t mode = mode_now();
    if (mode & TP_MODE_NVTX)
        tp_nvtx_mark(site->name);
    if (mode & TP_MODE_RECORDING)
        put_with_text(ticks_now(), 0, site_word(site, TP_TRACE_MARK), json);
}

static void put_simple(const tp_trace_site *site, tp_trace_kind kind, uint64_t value)
{
    if (!(mode_now() & TP_MODE_RECORDING))
        return;
    uint64_t now = ticks_now();
    tp_ring *ring = ring_for(1);
    if (ring)
        put_one(ring, now, value, site_word(site, kind), 0);
}

void tp_trace_value(const tp_trace_site *site, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_simple(site, TP_TRACE_COUNTER, bits);
}

uint64_t tp_trace_flow_new(void)
{
    static _Atomic uint64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

void tp_trace_flow_begin(const tp_trace_site *site, uint64_t flow)
{
    put_simple(site, TP_TRACE_FLOW_BEGIN, flow);
}

void tp_trace_flow_end(const tp_trace_site *site, uint64_t flow)
{
    put_simple(site, TP_TRACE_FLOW_END, flow);
}

/* The lock makes the order of the totals that of the times. */
void tp_trace_memory(const tp_trace_site *site, const void *address, int64_t bytes)
{
    tp_recorder *r = &tp_the_recorder;
    if (!(mode_now() & TP_MODE_RECORDING))
        return;
    tp_ring *ring = ring_for(2);
    pthread_mutex_lock(&r->memory_lock);
    r->allocated += bytes;
    uint64_t now = ticks_now();
    int64_t allocated = r->allocated, reserved = r->reserved;
    pthread_mutex_unlock(&r->memory_lock);
    if (!ring)
        return;
    uint64_t n = atomic_load_explicit(&ring->n, memory_order_relaxed);
    atomic_store_explicit(&ring->reserved, n + 2, memory_order_relaxed);
    put(ring, n, now, (uint64_t)(uintptr_t)address, site_word(site, TP_TRACE_MEMORY),
        (uint64_t)bytes);
    put(ring, n + 1, (uint64_t)allocated, (uint64_t)reserved, TP_RING_MORE, 0);
    atomic_fetch_add(&ring->n_more, 1);
    atomic_store_explicit(&ring->n, n + 2, memory_order_release);
}

void tp_trace_memory_totals(int64_t allocated, int64_t reserved)
{
    tp_recorder *r = &tp_the_recorder;
    pthread_mutex_lock(&r->memory_lock);
    r->allocated = allocated;
    r->reserved = reserved;
    pthread_mutex_unlock(&r->memory_lock);
}

void tp_trace_memory_reserved(int64_t reserved)
{
    tp_recorder *r = &tp_the_recorder;
    pthread_mutex_lock(&r->memory_lock);
    r->reserved = reserved;
    pthread_mutex_unlock(&r->memory_lock);
}

void tp_trace_thread_name(const char *name)
{
    tp_recorder *r = &tp_the_recorder;
    snprintf(my_name, sizeof my_name, "%s", name);
    if (!(mode_now() & TP_MODE_RECORDING) || !ring_for(1))
        return;
    pthread_mutex_lock(&r->lock);
    memcpy(my_ring->thread_name, my_name, sizeof my_name);
    my_ring->name_is_written = false;
    pthread_mutex_unlock(&r->lock);
}

/* ---- for the recorder ---- */

void tp_rings_invalidate(tp_recorder *r)
{
    r->generation++;
    for (tp_ring *ring = r->rings; ring; ring = ring->next)
        atomic_store(&ring->limit, 0);
}

void tp_ring_release(tp_ring *ring)
{
    if (ring->records)
        munmap(ring->records, (ring->mask + 1) * sizeof *ring->records);
    ring->records = NULL;
    ring->mask = 0;
}

/* Only the thread that forked lives on in the child. */
void tp_rings_after_fork(tp_recorder *r)
{
    ranges.depth = 0;
    for (tp_ring *ring = r->rings; ring; ring = ring->next)
        ring->is_orphan = ring != my_ring;
    tp_rings_invalidate(r);
}

static uint64_t ring_dropped(const tp_ring *ring)
{
    uint64_t n = atomic_load(&ring->n), refused = atomic_load(&ring->refused);
    if (n <= ring->mask + 1 || tp_the_recorder.overflow != TP_TRACE_KEEP_NEWEST)
        return refused;
    uint64_t kept = 0;
    for (uint64_t i = tp_ring_oldest(ring); i < n; i++)
        kept +=
            (atomic_load(&ring->records[i & ring->mask].word[2]) & TP_RING_KIND) != TP_RING_MORE;
    return refused + n - atomic_load(&ring->n_more) - kept;
}

TP_ORDER(compare_ticks, uint64_t, TP_COMPARE(*x, *y))

/* Median over rounds of zones in this thread's own ring, which is emptied again. */
void tp_ring_measure(tp_recorder *r)
{
    enum { ROUNDS = 15, ZONES = 64 };
    static const tp_trace_site site = {.name = "empty"};
    uint64_t zones[ROUNDS], reads[ROUNDS];
    uint32_t overflow = r->overflow;
    r->overflow = TP_TRACE_KEEP_NEWEST;
    for (int i = 0; i < ROUNDS; i++) {
        if (my_ring) { /* the same memory again: page faults are not the recorder's */
            atomic_store(&my_ring->n, 0);
            atomic_store(&my_ring->reserved, 0);
        }
        uint64_t t0 = ticks_now();
        for (int k = 0; k < ZONES; k++) {
            tp_zone zone = tp_zone_begin(&site);
            tp_zone_end(&zone);
        }
        uint64_t t1 = ticks_now(), sink = 0;
        for (int k = 0; k < ZONES; k++)
            sink |= ticks_now();
        uint64_t t2 = ticks_now();
        zones[i] = t1 - t0;
        reads[i] = sink ? t2 - t1 : 0;
    }
    r->overflow = overflow;
    qsort(zones, ROUNDS, sizeof *zones, compare_ticks);
    qsort(reads, ROUNDS, sizeof *reads, compare_ticks);
    tp_timeline_extend(&r->line);
    tp_anchor a = r->line.anchors[0], b = r->line.anchors[r->line.n - 1];
    double scale = b.ticks > a.ticks ? (double)(b.ns - a.ns) / (double)(b.ticks - a.ticks) : 0;
    r->cost.zone_ns = (double)zones[ROUNDS / 2] * scale / ZONES;
    r->cost.clock_read_ns = (double)reads[ROUNDS / 2] * scale / ZONES;
}

uint64_t tp_trace_dropped(void)
{
    tp_recorder *r = &tp_the_recorder;
    uint64_t dropped = 0;
    pthread_mutex_lock(&r->lock);
    for (const tp_ring *ring = r->rings; ring; ring = ring->next)
        if (ring->generation == r->generation && ring->records)
            dropped += ring_dropped(ring);
    pthread_mutex_unlock(&r->lock);
    return dropped;
}
