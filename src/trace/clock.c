/* clock.c - ticks of the time stamp counter, and what they are in nanoseconds.
 *
 * The scale comes from pairs (ticks, CLOCK_MONOTONIC_RAW) taken when recording begins and
 * whenever it is read: between two pairs time is a line, so it runs on without a jump and
 * agrees with the kernel's clock at both ends. */
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/platform.h"
#include "trace/internal.h"

enum { SHORT_NS = 1000000, PAIRS = 9 };

uint64_t tp_ticks_monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool tp_clock_has_tsc(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    /* "Invariant TSC": same rate in all P-, C- and T-states. */
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
#else
    return false;
#endif
}

/* Both clocks at once: of several tries the one with the least time in between. */
static tp_anchor read_pair(bool is_tsc)
{
    tp_anchor best = {0};
    uint64_t least = UINT64_MAX;
    if (!is_tsc) {
        uint64_t now = tp_ticks_monotonic();
        return (tp_anchor){now, (int64_t)now};
    }
    for (int i = 0; i < PAIRS; i++) {
        uint64_t before = tp_ticks_raw(), ns = tp_ticks_monotonic(), after = tp_ticks_raw();
        if (after - before < least) {
            least = after - before;
            best = (tp_anchor){before + least / 2, (int64_t)ns};
        }
    }
    return best;
}

static double slope(tp_anchor a, tp_anchor b)
{
    return (double)(b.ns - a.ns) / (double)(b.ticks - a.ticks);
}

/* Nanoseconds per tick over one millisecond: good enough for what is shorter than that. */
static double rough_scale(void)
{
    static double scale;
    if (scale == 0) {
        tp_anchor from = read_pair(true), to;
        do
            to = read_pair(true);
        while (to.ns - from.ns < SHORT_NS);
        scale = slope(from, to);
    }
    return scale;
}

static void add(tp_timeline *line, tp_anchor anchor)
{
    if (line->n == line->cap) {
        line->cap = line->cap ? line->cap * 2 : 16;
        line->anchors = realloc(line->anchors, line->cap * sizeof *line->anchors);
        TP_ASSERT(line->anchors);
    }
    line->anchors[line->n++] = anchor;
}

void tp_timeline_start(tp_timeline *line, bool is_tsc)
{
    line->n = 0;
    line->is_tsc = is_tsc;
    if (is_tsc)
        (void)rough_scale();
    tp_anchor first = read_pair(is_tsc);
    line->raw_start_ns = (uint64_t)first.ns;
    first.ns = 0;
    add(line, first);
}

void tp_timeline_extend(tp_timeline *line)
{
    tp_anchor last = line->anchors[line->n - 1], now = read_pair(line->is_tsc);
    now.ns -= (int64_t)line->raw_start_ns;
    if (now.ticks <= last.ticks)
        return;
    /* The pair's own error would bend a short line. */
    if (line->is_tsc && now.ns - last.ns < SHORT_NS)
        now.ns = last.ns + (int64_t)((double)(now.ticks - last.ticks) * rough_scale());
    add(line, now);
}

int64_t tp_timeline_ns(const tp_timeline *line, uint64_t ticks)
{
    const tp_anchor *a = line->anchors;
    size_t low = 0, high = line->n - 1; /* a[low].ticks <= ticks, if any is */
    if (line->n < 2 || ticks <= a[0].ticks)
        return a[0].ns;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (a[middle].ticks <= ticks)
            low = middle;
        else
            high = middle;
    }
    int64_t ns = a[low].ns + (int64_t)((double)(ticks - a[low].ticks) * slope(a[low], a[high]));
    return ticks <= a[high].ticks ? TP_MIN(ns, a[high].ns) : ns;
}

void tp_timeline_release(tp_timeline *line)
{
    free(line->anchors);
    memset(line, 0, sizeof *line);
}
