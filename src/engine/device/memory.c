/* memory.c - large buffers, counted by kind, within a limit. */
#include "engine/device/memory.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "base/huge_pages.h"
#include "base/limits.h"
#include "base/locked_memory.h"
#include "base/platform.h"
#include "base/strings.h"
#include "trace/trace.h"

enum { HUGE_PAGE = 2 << 20, HEADER = 64 };

typedef struct {
    void *mapping;
    size_t mapped, bytes;
    tp_mem_kind kind;
    bool is_locked;
} header;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tp_mem_stats stats;
static size_t limit; /* 0: none */
static char limit_source[200];
static bool limit_is_set;

static const char *const kind_names[TP_MEM_KINDS] = {"weights",   "shadow",      "gradients",
                                                     "optimizer", "activations", "kv_cache",
                                                     "workspace", "constants",   "data"};

const char *tp_mem_kind_name(tp_mem_kind kind)
{
    return (unsigned)kind < TP_MEM_KINDS ? kind_names[kind] : "unknown";
}

const char *tp_mem_kind_title(tp_mem_kind kind)
{
    return kind == TP_MEM_SHADOW     ? "second copy"
           : kind == TP_MEM_KV_CACHE ? "KV cache"
                                     : tp_mem_kind_name(kind);
}

/* ---- in a trace ---- */

/* The arena of the activations is reserved memory; what lives in it is recorded by exec/. */
static int64_t alive(const tp_mem_stats *s)
{
    return (int64_t)(s->total_current - s->current[TP_MEM_ACTIVATIONS]);
}

void tp_mem_trace_totals(void)
{
    tp_mem_stats now = tp_mem_get_stats();
    tp_trace_memory_totals(alive(&now), (int64_t)now.total_current);
}

static void trace_change(tp_mem_kind kind, const void *p, int64_t bytes)
{
    tp_mem_stats now = tp_mem_get_stats();
    const tp_trace_site *site =
        tp_trace_site_make(tp_mem_kind_name(kind), tp_mem_kind_name(kind), NULL);
    tp_trace_memory_reserved((int64_t)now.total_current);
    if (kind != TP_MEM_ACTIVATIONS)
        tp_trace_memory(site, p, bytes);
}

/* ---- accounts ---- */

/* Until somebody says less: what this process may have at all.  Held: lock. */
static void find_limit(void)
{
    tp_limits limits;
    if (limit_is_set)
        return;
    tp_limits_memory(&limits);
    const tp_limit *least = tp_limits_least(&limits);
    limit = TP_MAX((size_t)least->value, (size_t)1);
    snprintf(limit_source, sizeof limit_source, "%s", least->source);
    limit_is_set = true;
}

static bool charge(tp_mem_kind kind, size_t bytes)
{
    pthread_mutex_lock(&lock);
    size_t total;
    find_limit();
    bool fits =
        !__builtin_add_overflow(stats.total_current, bytes, &total) && (!limit || total <= limit);
    if (fits) {
        stats.current[kind] += bytes;
        stats.total_current = total;
    }
    pthread_mutex_unlock(&lock);
    return fits;
}

/* The charge has become memory. */
static void record(tp_mem_kind kind)
{
    pthread_mutex_lock(&lock);
    stats.n_allocs++;
    stats.peak[kind] = TP_MAX(stats.peak[kind], stats.current[kind]);
    stats.total_peak = TP_MAX(stats.total_peak, stats.total_current);
    pthread_mutex_unlock(&lock);
}

static void refund(tp_mem_kind kind, size_t bytes)
{
    pthread_mutex_lock(&lock);
    stats.current[kind] -= bytes;
    stats.total_current -= bytes;
    pthread_mutex_unlock(&lock);
}

static tp_status no_memory(tp_mem_kind kind, size_t bytes, const char *why, tp_error *err)
{
    pthread_mutex_lock(&lock);
    size_t in_use = stats.total_current, allowed = limit;
    pthread_mutex_unlock(&lock);
    return tp_fail(err, TP_ERR_NOMEM, "cannot allocate %s for %s (%s in use, limit %s): %s",
                   tp_human_bytes((double)bytes, TP_ROOM), tp_mem_kind_title(kind),
                   tp_human_bytes((double)in_use, TP_ROOM),
                   allowed ? tp_human_bytes((double)allowed, TP_ROOM) : "none", why);
}

static tp_status over_limit(tp_mem_kind kind, size_t bytes, tp_error *err)
{
    char why[256];
    pthread_mutex_lock(&lock);
    snprintf(why, sizeof why, "over the limit: %s", limit_source);
    pthread_mutex_unlock(&lock);
    return no_memory(kind, bytes, why, err);
}

tp_status tp_mem_alloc(tp_mem_kind kind, size_t bytes, void **ret, tp_error *err)
{
    if (bytes == 0)
        bytes = 64;
    size_t mapped;
    /* The header sits just below the block, which is aligned to a huge page when it has one. */
    uintptr_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : HEADER;
    if (__builtin_add_overflow(bytes, (size_t)align + HEADER, &mapped))
        return no_memory(kind, bytes, "size overflows", err);
    if (!charge(kind, bytes))
        return over_limit(kind, bytes, err);
    void *m = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) {
        int why = errno;
        refund(kind, bytes);
        return no_memory(kind, bytes, strerror(why), err);
    }
    record(kind);
    uintptr_t user = ((uintptr_t)m + HEADER + align - 1) & ~(align - 1);
    if (bytes >= HUGE_PAGE)
        tp_huge_pages_ask((void *)user, bytes);
    bool is_locked = kind == TP_MEM_DATA && tp_locked_memory_ask((void *)user, bytes);
    *((header *)user - 1) = (header){
        .mapping = m, .mapped = mapped, .bytes = bytes, .kind = kind, .is_locked = is_locked};
    TP_POISON((char *)user + bytes, (uintptr_t)m + mapped - user - bytes);
    *ret = (void *)user;
    if (tp_trace_enabled())
        trace_change(kind, *ret, (int64_t)bytes);
    return TP_OK;
}

void tp_mem_free(void *p)
{
    if (!p)
        return;
    header h = *((header *)p - 1);
    refund(h.kind, h.bytes);
    if (tp_trace_enabled())
        trace_change(h.kind, p, -(int64_t)h.bytes);
    if (h.is_locked)
        tp_locked_memory_end(h.bytes);
    TP_UNPOISON(h.mapping, h.mapped);
    munmap(h.mapping, h.mapped);
}

void tp_mem_set_limit(size_t bytes, const char *source)
{
    pthread_mutex_lock(&lock);
    limit = bytes;
    limit_is_set = true;
    snprintf(limit_source, sizeof limit_source, "%s", source);
    pthread_mutex_unlock(&lock);
}

tp_mem_stats tp_mem_get_stats(void)
{
    pthread_mutex_lock(&lock);
    tp_mem_stats copy = stats;
    pthread_mutex_unlock(&lock);
    return copy;
}

void tp_mem_reset_peak(void)
{
    pthread_mutex_lock(&lock);
    memcpy(stats.peak, stats.current, sizeof stats.peak);
    stats.total_peak = stats.total_current;
    pthread_mutex_unlock(&lock);
}
