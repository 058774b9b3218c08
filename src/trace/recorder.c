/* recorder.c - start and stop, the flushing thread, what a fork leaves. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/platform.h"
#include "base/threads.h"
#include "trace/internal.h"

enum { DEFAULT_EVENTS = 1 << 16, MOST_EVENTS = 1 << 26, DEFAULT_FLUSH_MS = 200 };

static void wake_flusher(void);

tp_recorder tp_the_recorder = {.io = PTHREAD_MUTEX_INITIALIZER,
                               .lock = PTHREAD_MUTEX_INITIALIZER,
                               .memory_lock = PTHREAD_MUTEX_INITIALIZER,
                               .reserved = -1,
                               .wake_flusher = wake_flusher};

static struct {
    pthread_t thread;
    bool is_running;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop, hurry;
    uint32_t period_ms;
} flusher = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void set_mode(uint32_t mode) { __atomic_store_n(&tp_trace_mode, mode, __ATOMIC_RELEASE); }

static uint32_t get_mode(void) { return __atomic_load_n(&tp_trace_mode, __ATOMIC_RELAXED); }

/* ---- fork ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&tp_the_recorder.io);
    pthread_mutex_lock(&tp_the_recorder.lock);
    pthread_mutex_lock(&tp_the_recorder.memory_lock);
    pthread_mutex_lock(&flusher.lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&flusher.lock);
    pthread_mutex_unlock(&tp_the_recorder.memory_lock);
    pthread_mutex_unlock(&tp_the_recorder.lock);
    pthread_mutex_unlock(&tp_the_recorder.io);
}

/* The file is the parent's; the child records nothing until it starts by itself. */
static void in_child(void)
{
    set_mode(get_mode() & TP_MODE_NVTX);
    tp_the_recorder.is_running = false;
    if (tp_the_recorder.stream)
        tp_chrome_abandon(tp_the_recorder.stream);
    tp_the_recorder.stream = NULL;
    flusher.is_running = false;
    tp_rings_after_fork(&tp_the_recorder);
    in_parent();
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
    tp_cond_init(&flusher.wake);
}

/* ---- rings, all of them ---- */

typedef struct {
    tp_ring *ring;
    uint64_t n;
} part;

/* Under `io`: the rings of this recording and how far they are.  *ret is malloced. */
static size_t snapshot(tp_recorder *r, part **ret)
{
    size_t n = 0, k = 0;
    pthread_mutex_lock(&r->lock);
    for (const tp_ring *ring = r->rings; ring; ring = ring->next)
        n += ring->generation == r->generation;
    part *parts = malloc((n + 1) * sizeof *parts);
    for (tp_ring *ring = r->rings; parts && ring; ring = ring->next)
        if (ring->generation == r->generation && ring->records)
            parts[k++] = (part){ring, atomic_load_explicit(&ring->n, memory_order_acquire)};
    pthread_mutex_unlock(&r->lock);
    TP_HAVE(parts);
    *ret = parts;
    return k;
}

/* Under `io`: the stream gets what is new. */
static tp_status flush_rings(tp_recorder *r, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_FREED part *parts = NULL;
    size_t n = snapshot(r, &parts);
    tp_timeline_extend(&r->line);
    for (size_t i = 0; i < n; i++) {
        tp_ring *ring = parts[i].ring;
        tp_chrome_ring(r->stream, ring, atomic_load(&ring->tail), parts[i].n);
        atomic_store(&ring->tail, parts[i].n);
    }
    return tp_chrome_flush(r->stream, err);
}

/* ---- the flushing thread ---- */

static bool sleep_until_due(void)
{
    double due_s = tp_clock_s() + (double)flusher.period_ms * 1e-3;
    pthread_mutex_lock(&flusher.lock);
    while (!flusher.stop && !flusher.hurry)
        if (!tp_cond_wait_until(&flusher.wake, &flusher.lock, due_s))
            break;
    flusher.hurry = false;
    bool stop = flusher.stop;
    pthread_mutex_unlock(&flusher.lock);
    return !stop;
}

/* A disk that is full ends the file where it is; whoever finishes the trace is told. */
static void *flush_always(void *recorder)
{
    tp_recorder *r = recorder;
    while (sleep_until_due()) {
        pthread_mutex_lock(&r->io);
        if (r->stream && r->stream_status == TP_OK)
            r->stream_status = flush_rings(r, &r->stream_error);
        pthread_mutex_unlock(&r->io);
    }
    return NULL;
}

static void wake_flusher(void)
{
    pthread_mutex_lock(&flusher.lock);
    if (flusher.is_running && !flusher.hurry) {
        flusher.hurry = true;
        pthread_cond_signal(&flusher.wake);
    }
    pthread_mutex_unlock(&flusher.lock);
}

static tp_status start_flusher(uint32_t period_ms, tp_error *err)
{
    sigset_t before;
    flusher.stop = flusher.hurry = false;
    flusher.period_ms = period_ms ? period_ms : DEFAULT_FLUSH_MS;
    tp_signals_hold(&before);
    int why = pthread_create(&flusher.thread, NULL, flush_always, &tp_the_recorder);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (why)
        return tp_fail(err, TP_ERR_IO, "the thread that flushes the trace cannot start: %s",
                       strerror(why));
    flusher.is_running = true;
    return TP_OK;
}

static void stop_flusher(void)
{
    if (!flusher.is_running)
        return;
    pthread_mutex_lock(&flusher.lock);
    flusher.stop = true;
    pthread_cond_signal(&flusher.wake);
    pthread_mutex_unlock(&flusher.lock);
    pthread_join(flusher.thread, NULL);
    flusher.is_running = false;
}

/* ---- start and stop ---- */

/* Under `io`. */
static tp_status close_stream(tp_recorder *r, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    return tp_chrome_close(r->stream, err);
}

static void finish_stream(tp_recorder *r)
{
    stop_flusher();
    pthread_mutex_lock(&r->io);
    if (r->stream) {
        if (r->stream_status == TP_OK)
            r->stream_status = flush_rings(r, &r->stream_error);
        if (r->stream_status == TP_OK)
            r->stream_status = close_stream(r, &r->stream_error);
        else
            tp_chrome_abandon(r->stream);
        r->stream = NULL;
    }
    pthread_mutex_unlock(&r->io);
}

/* A caller with an older header gives less; one with a newer one may not want more. */
static tp_status read_options(const tp_trace_options *theirs, tp_trace_options *o, tp_error *err)
{
    *o = (tp_trace_options){.size = sizeof *o};
    if (!theirs)
        return TP_OK;
    if (theirs->size < sizeof theirs->size)
        return tp_fail(err, TP_ERR_ARG,
                       "tp_trace_options: size is %zu; set it to sizeof(tp_trace_options)",
                       theirs->size);
    for (size_t i = sizeof *o; i < theirs->size; i++)
        if (((const char *)theirs)[i])
            return tp_fail(err, TP_ERR_UNSUPPORTED,
                           "tp_trace_options: a member that this version of the library (%s) does "
                           "not know is set; leave it zero or use a newer library",
                           TEMPER_VERSION);
    memcpy(o, theirs, TP_MIN(theirs->size, sizeof *o));
    return TP_OK;
}

static tp_status check(const tp_trace_options *o, tp_error *err)
{
    if (o->events_per_thread > MOST_EVENTS)
        return tp_fail(err, TP_ERR_ARG, "a trace ring of %u events is out of range; %d is the most",
                       o->events_per_thread, MOST_EVENTS);
    if ((unsigned)o->overflow > TP_TRACE_FLUSH || (unsigned)o->clock > TP_TRACE_CLOCK_MONOTONIC)
        return tp_fail(err, TP_ERR_ARG, "unknown overflow policy or clock of a trace");
    if (o->overflow != TP_TRACE_FLUSH)
        return TP_OK;
    if (!o->path)
        return tp_fail(err, TP_ERR_ARG, "a trace that is flushed needs a path");
    if (tp_str_ends(o->path, ".gz"))
        return tp_fail(err, TP_ERR_ARG,
                       "%s: a trace that is flushed stays plain JSON; name it "
                       "without .gz, or keep the newest events and write them compressed",
                       o->path);
    return TP_OK;
}

static void free_members(tp_recorder *r)
{
    for (size_t i = 0; i < r->n_members; i++) {
        free(r->members[i].key);
        free(r->members[i].json);
    }
    free(r->members);
    r->members = NULL;
    r->n_members = 0;
}

static void configure(tp_recorder *r, const tp_trace_options *o)
{
    uint64_t events = o->events_per_thread ? o->events_per_thread : DEFAULT_EVENTS;
    r->capacity = TP_RING_LEAST;
    while (r->capacity < events)
        r->capacity *= 2;
    r->overflow = o->overflow;
    free(r->path);
    free(r->process_name);
    r->path = o->path ? strdup(o->path) : NULL;
    r->process_name = strdup(o->process_name ? o->process_name : program_invocation_short_name);
    free_members(r);
    r->allocated = 0;
    r->reserved = -1;
    r->stream_status = TP_OK;
}

static void start_clock(tp_recorder *r, bool is_tsc)
{
    struct timespec wall;
    tp_timeline_start(&r->line, is_tsc);
    clock_gettime(CLOCK_REALTIME, &wall);
    r->base_unix_ns = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec;
    r->start_ticks = r->line.anchors[0].ticks;
}

/* Measures what a zone costs in an empty ring, then begins anew. */
static void begin(tp_recorder *r, uint32_t clock_mode)
{
    bool is_tsc = clock_mode == TP_MODE_TSC;
    pthread_mutex_lock(&r->lock);
    tp_rings_invalidate(r);
    pthread_mutex_unlock(&r->lock);
    r->cost.clock = is_tsc ? "tsc" : "CLOCK_MONOTONIC_RAW";
    start_clock(r, is_tsc);
    set_mode(clock_mode);
    tp_ring_measure(r);
    set_mode(0);
    pthread_mutex_lock(&r->lock);
    tp_rings_invalidate(r);
    pthread_mutex_unlock(&r->lock);
    start_clock(r, is_tsc);
}

/* Whole from its first moment on. */
static tp_status open_stream(tp_recorder *r, tp_error *err)
{
    TP_TRY(tp_chrome_open(r, r->path, false, &r->stream, err));
    tp_status status = tp_chrome_flush(r->stream, err);
    if (status != TP_OK) {
        tp_chrome_abandon(r->stream);
        r->stream = NULL;
    }
    return status;
}

/* Under `io`. */
static tp_status begin_as(tp_recorder *r, const tp_trace_options *o, uint32_t clock_mode,
                          tp_error *err)
{
    TP_MEMORY_GUARD(err);
    configure(r, o);
    begin(r, clock_mode);
    return o->overflow == TP_TRACE_FLUSH ? open_stream(r, err) : TP_OK;
}

tp_status tp_trace_start(const tp_trace_options *options, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    tp_trace_options own, *o = &own;
    tp_recorder *r = &tp_the_recorder;
    TP_TRY(read_options(options, o, err));
    TP_TRY(check(o, err));
    pthread_once(&once, watch_forks);
    tp_trace_stop();
    uint32_t clock_mode = o->clock == TP_TRACE_CLOCK_AUTO && !tp_clock_flaw_of_tsc()
                              ? TP_MODE_TSC
                              : TP_MODE_MONOTONIC;
    uint32_t nvtx = tp_nvtx_attach() ? TP_MODE_NVTX : 0;
    pthread_mutex_lock(&r->io);
    tp_status status = begin_as(r, o, clock_mode, err);
    pthread_mutex_unlock(&r->io);
    if (status == TP_OK && r->stream)
        status = start_flusher(o->flush_ms, err);
    r->is_running = status == TP_OK;
    if (status != TP_OK)
        r->overflow = TP_TRACE_KEEP_NEWEST;
    r->clock_mode = clock_mode;
    set_mode(status == TP_OK ? clock_mode | nvtx : nvtx);
    return status;
}

void tp_trace_stop(void)
{
    set_mode(get_mode() & TP_MODE_NVTX);
    tp_the_recorder.is_running = false;
    finish_stream(&tp_the_recorder);
}

void tp_trace_pause(bool pause)
{
    tp_recorder *r = &tp_the_recorder;
    uint32_t mode = get_mode();
    if (!r->is_running || pause == !(mode & TP_MODE_RECORDING))
        return;
    set_mode(pause ? mode & TP_MODE_NVTX : mode | r->clock_mode);
}

bool tp_trace_attach_nvtx(void)
{
    if (!tp_nvtx_attach())
        return false;
    __atomic_fetch_or(&tp_trace_mode, TP_MODE_NVTX, __ATOMIC_RELEASE);
    return true;
}

/* What ran until the program ended is in its file. */
__attribute__((destructor)) static void at_exit(void)
{
    if (tp_the_recorder.stream)
        tp_trace_stop();
}

void tp_trace_release(void)
{
    tp_recorder *r = &tp_the_recorder;
    tp_trace_stop();
    pthread_mutex_lock(&r->io);
    pthread_mutex_lock(&r->lock);
    tp_rings_invalidate(r);
    for (tp_ring **at = &r->rings; *at;) {
        tp_ring *ring = *at;
        tp_ring_release(ring);
        if (ring->is_orphan) {
            *at = ring->next;
            free(ring);
        } else
            at = &ring->next;
    }
    free_members(r);
    free(r->path);
    free(r->process_name);
    r->path = r->process_name = NULL;
    tp_timeline_release(&r->line);
    pthread_mutex_unlock(&r->lock);
    pthread_mutex_unlock(&r->io);
}

/* ---- reading ---- */

/* Under `io`. */
static tp_status see_each(tp_recorder *r, void (*see)(void *user, const tp_trace_event *event),
                          void *user)
{
    TP_MEMORY_GUARD(NULL);
    TP_FREED part *parts = NULL;
    size_t n = snapshot(r, &parts);
    if (n > 0)
        tp_timeline_extend(&r->line);
    for (size_t i = 0; i < n; i++)
        tp_ring_events(r, parts[i].ring, tp_ring_oldest(parts[i].ring), parts[i].n, see, user);
    return TP_OK;
}

void tp_trace_each(void (*see)(void *user, const tp_trace_event *event), void *user)
{
    tp_recorder *r = &tp_the_recorder;
    pthread_mutex_lock(&r->io);
    tp_status status = see_each(r, see, user);
    pthread_mutex_unlock(&r->io);
    if (status != TP_OK)
        tp_no_memory(0);
}

int64_t tp_trace_unix_ns(void)
{
    const tp_recorder *r = &tp_the_recorder;
    return r->base_unix_ns + (int64_t)(tp_ticks_monotonic() - r->line.raw_start_ns);
}

tp_trace_cost tp_trace_get_cost(void) { return tp_the_recorder.cost; }

tp_status tp_trace_metadata(const char *key, const char *json, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_recorder *r = &tp_the_recorder;
    TP_NEED(key, err);
    TP_NEED(json, err);
    if (tp_chrome_owns(key))
        return tp_fail(err, TP_ERR_ARG,
                       "\"%s\" is a member that a trace has itself; choose another key", key);
    TP_OWN(tp_buf) quoted = {0};
    if (!tp_trace_is_json(json, false))
        tp_json_quote(&quoted, json, strlen(json));
    char *own_key = strdup(key), *own_json = strdup(quoted.data ? quoted.data : json);
    TP_HAVE(own_key && own_json);
    pthread_mutex_lock(&r->io);
    size_t i = 0;
    while (i < r->n_members && strcmp(r->members[i].key, key) != 0)
        i++;
    if (i == r->n_members) {
        tp_trace_member *more = realloc(r->members, (i + 1) * sizeof *more);
        if (!more)
            pthread_mutex_unlock(&r->io);
        TP_HAVE(more);
        r->members = more;
        r->members[r->n_members++] = (tp_trace_member){.key = own_key};
    } else {
        free(r->members[i].json);
        free(own_key);
    }
    r->members[i].json = own_json;
    pthread_mutex_unlock(&r->io);
    return TP_OK;
}

/* Under `io`. */
static tp_status write_rings(tp_recorder *r, const char *path, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_FREED part *parts = NULL;
    tp_chrome *out;
    TP_TRY(tp_chrome_open(r, path, true, &out, err));
    size_t n = snapshot(r, &parts);
    if (n > 0)
        tp_timeline_extend(&r->line);
    for (size_t i = 0; i < n; i++)
        tp_chrome_ring(out, parts[i].ring, tp_ring_oldest(parts[i].ring), parts[i].n);
    return tp_chrome_close(out, err);
}

tp_status tp_trace_write(const char *path, tp_error *err)
{
    tp_recorder *r = &tp_the_recorder;
    if (!path) {
        if (r->overflow != TP_TRACE_FLUSH || !r->path)
            return tp_fail(err, TP_ERR_ARG, "a trace needs a path to be written to");
        tp_trace_stop();
        if (r->stream_status != TP_OK && err)
            *err = r->stream_error;
        return r->stream_status;
    }
    pthread_mutex_lock(&r->io);
    tp_status status = write_rings(r, path, err);
    pthread_mutex_unlock(&r->io);
    return status;
}
