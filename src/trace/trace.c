#include "trace/trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"

enum { THREAD_NAME = 32 };

typedef struct {
    uint64_t start_ns, end_ns;
    const char *category, *name, *args;
} event;

typedef struct ring ring;
struct ring {
    ring *next;
    event *events;
    uint32_t cap;       /* a power of two */
    _Atomic uint64_t n; /* written so far; the owner alone adds */
    long tid;
    char thread_name[THREAD_NAME];
};

static _Atomic bool enabled;
static _Atomic uint32_t generation; /* rings of an older start are abandoned */
static uint32_t ring_cap = 1 << 16;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ring *rings;
static _Thread_local ring *my_ring;
static _Thread_local char my_name[THREAD_NAME]; /* may be given before recording starts */
static _Thread_local uint32_t my_generation;

#ifndef TEMPER_TRACE_OFF
bool tp_trace_enabled(void) { return atomic_load_explicit(&enabled, memory_order_relaxed); }
#endif

void tp_trace_release(void)
{
    pthread_mutex_lock(&lock);
    atomic_store(&enabled, false);
    atomic_fetch_add(&generation, 1);
    while (rings) {
        ring *r = rings;
        rings = r->next;
        free(r->events);
        free(r);
    }
    pthread_mutex_unlock(&lock);
}

tp_status tp_trace_start(uint32_t events_per_thread, tp_error *err)
{
    if (events_per_thread == 0 || events_per_thread > 1u << 26)
        return tp_fail(err, TP_ERR_ARG, "a trace ring of %u events is out of range",
                       events_per_thread);
    tp_trace_release();
    uint32_t cap = 64;
    while (cap < events_per_thread)
        cap *= 2;
    ring_cap = cap;
    atomic_store(&enabled, true);
    return TP_OK;
}

void tp_trace_stop(void) { atomic_store(&enabled, false); }

static ring *ring_of_thread(void)
{
    uint32_t now = atomic_load(&generation);
    if (my_ring && my_generation == now)
        return my_ring;
    ring *r = calloc(1, sizeof *r);
    event *events = calloc(ring_cap, sizeof *events);
    TP_ASSERT(r && events);
    r->events = events;
    r->cap = ring_cap;
    r->tid = syscall(SYS_gettid);
    memcpy(r->thread_name, my_name, sizeof my_name);
    pthread_mutex_lock(&lock);
    r->next = rings;
    rings = r;
    pthread_mutex_unlock(&lock);
    my_ring = r;
    my_generation = now;
    return r;
}

void tp_trace_complete(const char *category, const char *name, uint64_t start_ns, uint64_t end_ns,
                       const char *args)
{
    if (!atomic_load_explicit(&enabled, memory_order_relaxed))
        return;
    ring *r = ring_of_thread();
    uint64_t n = atomic_load_explicit(&r->n, memory_order_relaxed);
    r->events[n & (r->cap - 1)] = (event){start_ns, end_ns, category, name, args};
    atomic_store_explicit(&r->n, n + 1, memory_order_release);
}

void tp_trace_thread_name(const char *name)
{
    snprintf(my_name, sizeof my_name, "%s", name);
    if (atomic_load_explicit(&enabled, memory_order_relaxed))
        memcpy(ring_of_thread()->thread_name, my_name, sizeof my_name);
}

uint64_t tp_trace_dropped(void)
{
    uint64_t dropped = 0;
    pthread_mutex_lock(&lock);
    for (const ring *r = rings; r; r = r->next) {
        uint64_t n = atomic_load(&r->n);
        dropped += n > r->cap ? n - r->cap : 0;
    }
    pthread_mutex_unlock(&lock);
    return dropped;
}

static void write_event(const event *e, const ring *r, tp_buf *out)
{
    uint64_t dur = e->end_ns - e->start_ns;
    tp_buf_adds(out, ",\n{\"ph\":\"X\",\"cat\":");
    tp_json_quote(out, e->category, strlen(e->category));
    tp_buf_adds(out, ",\"name\":");
    tp_json_quote(out, e->name, strlen(e->name));
    tp_buf_addf(out, ",\"pid\":%d,\"tid\":%ld,\"ts\":%llu.%03llu,\"dur\":%llu.%03llu", getpid(),
                r->tid, (unsigned long long)(e->start_ns / 1000),
                (unsigned long long)(e->start_ns % 1000), (unsigned long long)(dur / 1000),
                (unsigned long long)(dur % 1000));
    if (e->args)
        tp_buf_addf(out, ",\"args\":%s", e->args);
    tp_buf_addc(out, '}');
}

static void write_ring(const ring *r, tp_buf *out)
{
    uint64_t n = atomic_load_explicit(&r->n, memory_order_acquire);
    if (r->thread_name[0]) {
        tp_buf_addf(out,
                    ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%ld,"
                    "\"args\":{\"name\":",
                    getpid(), r->tid);
        tp_json_quote(out, r->thread_name, strlen(r->thread_name));
        tp_buf_adds(out, "}}");
    }
    for (uint64_t i = n > r->cap ? n - r->cap : 0; i < n; i++)
        write_event(&r->events[i & (r->cap - 1)], r, out);
}

tp_status tp_trace_write_chrome(const char *path, const char *process_name, tp_error *err)
{
    tp_buf out = {0};
    uint64_t dropped = tp_trace_dropped();
    tp_buf_addf(&out,
                "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"temper %s\","
                "\"dropped_events\":\"%llu\"},\"traceEvents\":[\n",
                TEMPER_VERSION, (unsigned long long)dropped);
    tp_buf_addf(&out,
                "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":", getpid());
    tp_json_quote(&out, process_name, strlen(process_name));
    tp_buf_adds(&out, "}}");
    pthread_mutex_lock(&lock);
    for (const ring *r = rings; r; r = r->next)
        write_ring(r, &out);
    pthread_mutex_unlock(&lock);
    tp_buf_adds(&out, "\n]}\n");
    tp_status status = tp_file_write_atomic(path, out.data, out.len, err);
    tp_buf_release(&out);
    return status;
}
