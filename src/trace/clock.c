/* clock.c - ticks of the time stamp counter, and what they are in nanoseconds.
 *
 * The scale comes from pairs (ticks, CLOCK_MONOTONIC_RAW) taken when recording begins and
 * whenever it is read: between two pairs time is a line, so it runs on without a jump and
 * agrees with the kernel's clock at both ends.  A counter that cannot be trusted is not used:
 * the kernel's clock is, and the trace says so. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/platform.h"
#include "base/vec.h"
#include "trace/internal.h"

enum { SHORT_NS = 1000000, PAIRS = 9, TRIES = 5 };

uint64_t tp_ticks_monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
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

/* ---- may the counter be used? ---- */

bool tp_clock_is_listed(const char *sources, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = sources; (at = strstr(at, name)) != NULL; at += n)
        if ((at == sources || at[-1] == ' ') && strchr(" \n", at[n]))
            return true;
    return false;
}

bool tp_clock_is_steady(const tp_anchor pairs[3])
{
    double first = slope(pairs[0], pairs[1]), second = slope(pairs[1], pairs[2]);
    bool forward = pairs[0].ticks < pairs[1].ticks && pairs[1].ticks < pairs[2].ticks;
    /* 20 GHz to 1 MHz */
    return forward && first > 0.05 && first < 1000 && fabs(first - second) < 0.001 * first;
}

/* "Invariant TSC": same rate in all P-, C- and T-states. */
static bool is_invariant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
#else
    return false;
#endif
}

/* Linux compares the counters of all sockets, watches them, and strikes from this list the one
 * that cannot be trusted.  Without the list nothing is known against it. */
static bool is_trusted_by_linux(void)
{
    char sources[256];
    FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/available_clocksource", "re");
    bool has_list = f && fgets(sources, sizeof sources, f);
    if (f)
        fclose(f);
    return !has_list || tp_clock_is_listed(sources, "tsc");
}

static struct {
    pthread_once_t once;
    const char *flaw; /* NULL: it may be used */
    double scale;     /* nanoseconds per tick over a millisecond or two: good enough for less */
} counter = {.once = PTHREAD_ONCE_INIT};

static tp_anchor pair_after(tp_anchor from)
{
    tp_anchor to;
    do
        to = read_pair(true);
    while (to.ns - from.ns < SHORT_NS);
    return to;
}

static void look_at_counter(void)
{
    counter.flaw = !is_invariant()          ? "it may change its rate"
                   : !is_trusted_by_linux() ? "Linux found it unstable"
                                            : "it disagrees with the system's clock";
    if (!is_invariant() || !is_trusted_by_linux())
        return;
    for (int i = 0; i < TRIES && counter.flaw; i++) { /* a busy machine may spoil one */
        tp_anchor pairs[3] = {read_pair(true)};
        pairs[1] = pair_after(pairs[0]);
        pairs[2] = pair_after(pairs[1]);
        counter.scale = slope(pairs[0], pairs[2]);
        if (tp_clock_is_steady(pairs))
            counter.flaw = NULL;
    }
}

const char *tp_clock_flaw_of_tsc(void)
{
    pthread_once(&counter.once, look_at_counter);
    return counter.flaw;
}

static double rough_scale(void)
{
    (void)tp_clock_flaw_of_tsc();
    return counter.scale;
}

static void add(tp_timeline *line, tp_anchor anchor)
{
    *TP_VEC_PUSH(line->anchors, line->n, line->cap) = anchor;
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
