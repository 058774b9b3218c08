/* trace.h - what ran when, on which thread, in any C or C++ program.
 *
 *     #include <temper/trace.h>
 *
 *     void work(void)
 *     {
 *         TP_ZONE("work");                 // the rest of the block, by name
 *         TP_COUNTER("queue length", n);
 *     }
 *
 *     tp_trace_start(NULL, &err);          // from here on it is recorded
 *     work();
 *     tp_trace_write("trace.json", &err);  // opens in Perfetto; `temper trace` reads it
 *
 * Every thread writes into a ring of its own and nobody waits for anybody.  A zone costs two
 * reads of the time stamp counter and a few stores; while nothing is recorded, one load.
 * With -DTEMPER_TRACE_OFF the macros and functions of this header vanish from the object
 * (tp_trace_start() and the writing calls then say TP_ERR_UNSUPPORTED); counters stay.
 *
 * Texts given as "static" are kept by address: string literals, or memory that outlives the
 * trace.  Everything else is copied.
 *
 * Link with `pkg-config --libs temper-trace`; a program that links libtemper has it already.
 *
 * Threads: everything that records, any, at once. tp_trace_start(), tp_trace_stop(),
 * tp_trace_pause(), tp_trace_write() and tp_trace_each() by one at a time, while others may
 * record; tp_trace_release() when no thread is inside a call of this header. A counter is
 * anybody's; tp_counter_stop() by the thread that started it. */
#ifndef TEMPER_TRACE_H
#define TEMPER_TRACE_H

#include "temper/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A place in the code.  The macros make one static object per use. */
typedef struct {
    const char *name;
    const char *category; /* NULL: "user_annotation" */
    const char *args;     /* a JSON object that goes with every event, or NULL */
    const char *file;     /* NULL: not a place in a file */
    double flops, bytes;  /* work of one event; 0: not stated */
    int line;
    int track; /* 1 ...: a row of its own, for what goes on beside the thread's own work */
} tp_trace_site;

/* What a full ring does. */
typedef enum {
    TP_TRACE_KEEP_NEWEST, /* overwrites the oldest events */
    TP_TRACE_KEEP_OLDEST, /* takes no more */
    TP_TRACE_FLUSH        /* is written to a file as it fills: a crash leaves that file readable,
                             with everything up to the last flush */
} tp_trace_overflow;

typedef enum {
    TP_TRACE_CLOCK_AUTO,     /* the time stamp counter where it is constant and never stops */
    TP_TRACE_CLOCK_MONOTONIC /* CLOCK_MONOTONIC_RAW */
} tp_trace_clock;

typedef struct {
    size_t size;                /* sizeof(tp_trace_options) */
    uint32_t events_per_thread; /* 0: 65536; of 32 bytes, used only as far as they fill */
    tp_trace_overflow overflow;
    tp_trace_clock clock;
    const char *path;         /* TP_TRACE_FLUSH: the file */
    uint32_t flush_ms;        /* TP_TRACE_FLUSH: time between flushes; 0: 200 */
    const char *process_name; /* NULL: the program's */
} tp_trace_options;

typedef enum {
    TP_TRACE_ZONE,
    TP_TRACE_MARK,
    TP_TRACE_COUNTER,
    TP_TRACE_MEMORY,
    TP_TRACE_FLOW_BEGIN,
    TP_TRACE_FLOW_END
} tp_trace_kind;

/* One recorded event; pointers are valid during the call that hands it out. */
typedef struct {
    tp_trace_kind kind;
    const tp_trace_site *site;
    const char *text; /* metadata of this event alone, or NULL */
    const char *thread_name;
    int64_t tid;
    int64_t start_ns, end_ns;           /* since recording began; equal unless a zone */
    double value;                       /* counter */
    uint64_t id;                        /* flow: its number; memory: the address */
    int64_t bytes, allocated, reserved; /* memory: + taken, - given back; totals after it,
                                           reserved -1 = unknown */
} tp_trace_event;

#ifndef TEMPER_TRACE_OFF

/* ---- recording ---- */

/* Forget what was recorded and begin; NULL means defaults.  TP_ERR_ARG for sizes out of
 * range, TP_ERR_OUTPUT when `path` cannot be written. */
TP_API TP_CHECKED tp_status tp_trace_start(const tp_trace_options *options, tp_error *err);
/* Record no more; what is there stays until the next start.  A flushed file is complete. */
TP_API void tp_trace_stop(void);
/* Record nothing until it is called again with false; time goes on. */
TP_API void tp_trace_pause(bool pause);
/* Everything recorded so far as one file, plain or ("....gz") compressed, written beside and
 * renamed.  Recording goes on.  After TP_TRACE_FLUSH the file is already there: `path` NULL
 * completes it. */
TP_API TP_CHECKED tp_status tp_trace_write(const char *path, tp_error *err);
/* Hand every event that is still in the rings to `see`, thread by thread, in the order in
 * which they ended.  `see` must not record. */
TP_API void tp_trace_each(void (*see)(void *user, const tp_trace_event *event), void *user);
/* Stop and free everything.  No thread may be inside a call of this header. */
TP_API void tp_trace_release(void);

/* Events that were overwritten or not taken, of all threads. */
TP_API uint64_t tp_trace_dropped(void);
/* Hand zones to Nsight Systems or another NVTX tool as push/pop ranges, recording or not:
 * the library in NVTX_INJECTION64_PATH, else libnvToolsExt.so.1.  tp_trace_start() does it
 * too.  False: there is none. */
TP_API bool tp_trace_attach_nvtx(void);
/* A further member of the written file; `json` is a JSON value, or it is kept as a text.
 * TP_ERR_ARG for a key that the file has itself, as "traceEvents". */
TP_API TP_CHECKED tp_status tp_trace_metadata(const char *key, const char *json, tp_error *err);
/* Names the calling thread, in this trace and later ones (31 bytes of it). */
TP_API void tp_trace_thread_name(const char *name);

/* What the recorder costs on this machine, measured when recording began. */
typedef struct {
    const char *clock;    /* "tsc" or "CLOCK_MONOTONIC_RAW" */
    double zone_ns;       /* an empty zone */
    double clock_read_ns; /* one read of the clock */
} tp_trace_cost;
TP_API tp_trace_cost tp_trace_get_cost(void);

/* ---- zones ---- */

typedef struct {
    const tp_trace_site *site;
    uint64_t start; /* 0: nothing was recorded when it began */
} tp_zone;

/* 0: off.  1: recording by time stamp counter.  Else: the long way round.  Read it through
 * tp_trace_enabled(). */
TP_API extern uint32_t tp_trace_mode;

TP_API uint64_t tp_zone_enter(const tp_trace_site *site);
TP_API void tp_zone_leave(const tp_trace_site *site, uint64_t start);

static inline bool tp_trace_enabled(void)
{
    return __atomic_load_n(&tp_trace_mode, __ATOMIC_RELAXED) != 0;
}

static inline tp_zone tp_zone_begin(const tp_trace_site *site)
{
    tp_zone zone = {site, 0};
    uint32_t mode = __atomic_load_n(&tp_trace_mode, __ATOMIC_RELAXED);
#if defined(__x86_64__)
    if (__builtin_expect(mode == 1, 0))
        zone.start = __builtin_ia32_rdtsc();
    else
#endif
        if (__builtin_expect(mode != 0, 0))
        zone.start = tp_zone_enter(site);
    return zone;
}

static inline void tp_zone_end(const tp_zone *zone)
{
    if (__builtin_expect(zone->start != 0, 0))
        tp_zone_leave(zone->site, zone->start);
}

/* The same with metadata of this one event: a JSON object, up to 1000 bytes. */
TP_API void tp_zone_end_with(const tp_zone *zone, const char *json);

/* A range that ends elsewhere than in its block: push and pop nest per thread, 64 deep. */
TP_API void tp_range_push(const tp_trace_site *site);
TP_API void tp_range_pop(void);

/* A site whose texts are not known at compile time: copied, one object per content, kept
 * until the process ends.  `args` that is no JSON object is kept as {"text": args}. */
TP_API const tp_trace_site *tp_trace_site_make(const char *category, const char *name,
                                               const char *args);

/* ---- other events ---- */

/* A moment; `json` (a JSON object of up to 1000 bytes, or NULL) is copied. */
TP_API void tp_trace_mark(const tp_trace_site *site, const char *json);
/* A value over time. */
TP_API void tp_trace_value(const tp_trace_site *site, double value);
/* `bytes` were taken at `address` (or, negative, given back) by the owner site->name, of the
 * kind site->category.  Totals are kept by the recorder. */
TP_API void tp_trace_memory(const tp_trace_site *site, const void *address, int64_t bytes);
/* What is in use now, from which those totals go on; `reserved` -1: unknown. */
TP_API void tp_trace_memory_totals(int64_t allocated, int64_t reserved);
TP_API void tp_trace_memory_reserved(int64_t reserved); /* of the two, this one alone */
/* An arrow from where this is called to where the other is, on another thread. */
TP_API uint64_t tp_trace_flow_new(void);
TP_API void tp_trace_flow_begin(const tp_trace_site *site, uint64_t flow);
TP_API void tp_trace_flow_end(const tp_trace_site *site, uint64_t flow);

#define TP_TRACE_JOIN2(a, b) a##b
#define TP_TRACE_JOIN(a, b) TP_TRACE_JOIN2(a, b)
#define TP_TRACE_SITE(variable, category, name) \
    static const tp_trace_site variable = {(name), (category), 0, __FILE__, 0, 0, __LINE__, 0}

#define TP_ZONE_IN(category, name)                                        \
    TP_TRACE_SITE(TP_TRACE_JOIN(tp_site_, __LINE__), (category), (name)); \
    const tp_zone TP_TRACE_JOIN(tp_zone_, __LINE__)                       \
        __attribute__((cleanup(tp_zone_end), unused)) =                   \
            tp_zone_begin(&TP_TRACE_JOIN(tp_site_, __LINE__))

#define TP_TRACE_EVENT(category, name, call)         \
    do {                                             \
        TP_TRACE_SITE(tp_site_, (category), (name)); \
        if (tp_trace_enabled())                      \
            call;                                    \
    } while (0)

#define TP_MARK(name, json) TP_TRACE_EVENT(0, name, tp_trace_mark(&tp_site_, (json)))
#define TP_COUNTER(name, value) TP_TRACE_EVENT(0, name, tp_trace_value(&tp_site_, (value)))
#define TP_MEMORY(kind, owner, address, bytes) \
    TP_TRACE_EVENT(kind, owner, tp_trace_memory(&tp_site_, (address), (bytes)))
#define TP_PUSH(name)                       \
    do {                                    \
        TP_TRACE_SITE(tp_site_, 0, (name)); \
        tp_range_push(&tp_site_);           \
    } while (0)
#define TP_POP() tp_range_pop()

#else /* TEMPER_TRACE_OFF: the same names, and nothing behind them */

typedef struct {
    const tp_trace_site *site;
} tp_zone;
typedef struct {
    const char *clock;
    double zone_ns, clock_read_ns;
} tp_trace_cost;

static inline tp_status tp_trace_refuse(tp_error *err)
{
    static const char message[] = "tracing was left out of this program (TEMPER_TRACE_OFF)";
    if (err) {
        err->status = TP_ERR_UNSUPPORTED;
        err->file = __FILE__;
        err->line = __LINE__;
        __builtin_memcpy(err->message, message, sizeof message);
    }
    return TP_ERR_UNSUPPORTED;
}
static inline tp_status tp_trace_start(const tp_trace_options *options, tp_error *err)
{
    (void)options;
    return tp_trace_refuse(err);
}
static inline tp_status tp_trace_write(const char *path, tp_error *err)
{
    (void)path;
    return tp_trace_refuse(err);
}
static inline void tp_trace_stop(void) {}
static inline void tp_trace_pause(bool pause) { (void)pause; }
static inline void tp_trace_each(void (*see)(void *, const tp_trace_event *), void *user)
{
    (void)see;
    (void)user;
}
static inline void tp_trace_release(void) {}
static inline bool tp_trace_attach_nvtx(void) { return false; }
static inline uint64_t tp_trace_dropped(void) { return 0; }
static inline tp_status tp_trace_metadata(const char *key, const char *json, tp_error *err)
{
    (void)key;
    (void)json;
    (void)err;
    return TP_OK;
}
static inline void tp_trace_thread_name(const char *name) { (void)name; }
static inline tp_trace_cost tp_trace_get_cost(void)
{
    tp_trace_cost cost = {"none", 0, 0};
    return cost;
}
static inline bool tp_trace_enabled(void) { return false; }
static inline tp_zone tp_zone_begin(const tp_trace_site *site)
{
    tp_zone zone = {site};
    return zone;
}
static inline void tp_zone_end(const tp_zone *zone) { (void)zone; }
static inline void tp_zone_end_with(const tp_zone *zone, const char *json)
{
    (void)zone;
    (void)json;
}
static inline void tp_range_push(const tp_trace_site *site) { (void)site; }
static inline void tp_range_pop(void) {}
static inline const tp_trace_site *tp_trace_site_make(const char *category, const char *name,
                                                      const char *args)
{
    (void)category;
    (void)name;
    (void)args;
    return 0;
}
static inline void tp_trace_mark(const tp_trace_site *site, const char *json)
{
    (void)site;
    (void)json;
}
static inline void tp_trace_value(const tp_trace_site *site, double value)
{
    (void)site;
    (void)value;
}
static inline void tp_trace_memory(const tp_trace_site *site, const void *address, int64_t bytes)
{
    (void)site;
    (void)address;
    (void)bytes;
}
static inline void tp_trace_memory_totals(int64_t allocated, int64_t reserved)
{
    (void)allocated;
    (void)reserved;
}
static inline void tp_trace_memory_reserved(int64_t reserved) { (void)reserved; }
static inline uint64_t tp_trace_flow_new(void) { return 0; }
static inline void tp_trace_flow_begin(const tp_trace_site *site, uint64_t flow)
{
    (void)site;
    (void)flow;
}
static inline void tp_trace_flow_end(const tp_trace_site *site, uint64_t flow)
{
    (void)site;
    (void)flow;
}
#define TP_ZONE_IN(category, name) ((void)0)
/* Arguments are named, never evaluated. */
#define TP_MARK(name, json) ((void)sizeof(json))
#define TP_COUNTER(name, value) ((void)sizeof(value))
#define TP_MEMORY(kind, owner, address, bytes) ((void)sizeof(address), (void)sizeof(bytes))
#define TP_PUSH(name) ((void)0)
#define TP_POP() ((void)0)

#endif

/* The rest of the enclosing block, by a static name. */
#define TP_ZONE(name) TP_ZONE_IN(0, name)

/* ---- named counters ---- */

/* Sums and timers by name, kept whether or not anything is recorded, safe to use from any
 * thread.  A counter keeps its history when it is started again.  A timer that is started
 * inside itself on the same thread counts every call but the time only once; threads add up. */
typedef struct tp_counter tp_counter;

typedef struct {
    const char *name;
    uint64_t count; /* samples added, or calls of a timer that ended */
    double total;   /* of samples; of a timer, seconds inside */
    /* Of samples; of a timer, of its calls from outside: those inside another take no time.  NaN
     * when nothing was counted. */
    double mean, least, most;
    uint64_t active; /* a timer's starts that have not ended */
} tp_counter_stats;

/* The counter of this name, made when there is none; never NULL. */
TP_API tp_counter *tp_counter_get(const char *name);
TP_API void tp_counter_add(tp_counter *counter, double amount);
TP_API void tp_counter_start(tp_counter *counter);
/* TP_ERR_ARG when this thread has not started it. */
TP_API tp_status tp_counter_stop(tp_counter *counter, tp_error *err);
TP_API tp_counter_stats tp_counter_read(const tp_counter *counter);
/* Number of counters; *ret (n entries at most) in the order they were made. */
TP_API size_t tp_counter_list(tp_counter_stats *ret, size_t n);
TP_API void tp_counter_reset(tp_counter *counter);

#ifdef __cplusplus
}
#endif

#endif
