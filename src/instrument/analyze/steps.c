/* steps.c - recognises the annotations that mark steps, and joins those of several threads. */
#include "instrument/analyze/steps.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/order.h"
#include "base/platform.h"
#include "base/strings.h"
#include "base/vec.h"
#include "instrument/analyze/kernels.h"
#include "instrument/analyze/sort.h"

static bool ends_in(const char *s, size_t n, const char *word)
{
    size_t k = strlen(word);
    return n >= k && strncasecmp(s + n - k, word, k) == 0;
}

bool tp_step_number(const char *name, size_t len, int64_t *ret)
{
    size_t digits = len;
    int64_t number = 0;
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
        digits--;
    if (digits == len || len - digits > 15 || digits == 0)
        return false;
    for (size_t i = digits; i < len; i++)
        number = number * 10 + (name[i] - '0');
    size_t word = digits;
    while (word > 0 && strchr("#_: =-", name[word - 1]))
        word--;
    if (word == digits && !ends_in(name, word, "step"))
        return false; /* "iteration7" is a name, "step7" a step */
    if (!ends_in(name, word, "step") && !ends_in(name, word, "iteration"))
        return false;
    *ret = number;
    return true;
}

/* Of those that start together the one that ends last comes first. */
TP_ORDER(by_start, tp_step,
         TP_COMPARE(x->start, y->start) ?: TP_COMPARE(y->end, x->end)
                                        ?: TP_COMPARE(x->number, y->number))

/* The profiler's own mark. */
static bool is_profiler_step(const char *name) { return tp_str_starts(name, TP_PROFILER_STEP); }

TP_ORDER(by_process, tp_step, TP_COMPARE(x->pid, y->pid) ?: by_start(x, y))

/* Those of one process by themselves, or all. */
static bool is_apart(const tp_step *a, const tp_step *b, bool by_pid)
{
    return by_pid && a->pid != b->pid;
}

/* A step inside another, such as a micro-step, is a part of it. */
static void drop_nested(tp_steps *steps, bool by_pid)
{
    size_t n = 0;
    for (size_t i = 0; i < steps->n; i++)
        if (n == 0 || is_apart(&steps->v[n - 1], &steps->v[i], by_pid) ||
            steps->v[i].end > steps->v[n - 1].end)
            steps->v[n++] = steps->v[i];
    steps->n = n;
}

/* Equal numbers next to each other or overlapping: threads of a process, or processes, of one
 * step. */
static void merge(tp_steps *steps, bool by_pid)
{
    size_t n = 0;
    for (size_t i = 0; i < steps->n; i++) {
        const tp_step one = steps->v[i];
        tp_step *last = n ? &steps->v[n - 1] : NULL;
        if (!last || last->number != one.number || is_apart(last, &one, by_pid)) {
            steps->v[n++] = one;
            continue;
        }
        last->end = TP_MAX(last->end, one.end);
        last->host_ns = by_pid ? tp_subtract_saturating(last->end, last->start)
                               : TP_MAX(last->host_ns, one.host_ns);
    }
    steps->n = n;
}

/* First what a process has of them, which is how long each takes there; then all together. */
static void join(tp_steps *steps)
{
    for (int by_pid = 1; by_pid >= 0; by_pid--) {
        if (steps->n)
            qsort(steps->v, steps->n, sizeof *steps->v, by_pid ? by_process : by_start);
        drop_nested(steps, by_pid);
        merge(steps, by_pid);
    }
}

void tp_steps_find(const tp_events *events, tp_steps *ret)
{
    tp_steps steps = {0};
    size_t cap = 0, n_names = events->strings.n;
    bool has_profiler_steps = false;
    /* Names repeat: each is looked at once.  0 unknown, 1 no step, 2 step. */
    TP_FREED uint8_t *seen = tp_vec_new(n_names + 1, 1);
    for (size_t i = 0; i < events->n; i++) {
        int64_t number;
        uint32_t name = events->name[i];
        if (events->kind[i] != TP_EVENT_ANNOTATION || events->phase[i] != 'X' || seen[name] == 1)
            continue;
        const char *text = tp_events_str(events, name);
        if (!tp_step_number(text, tp_string_len(&events->strings, name), &number)) {
            seen[name] = 1;
            continue;
        }
        if (is_profiler_step(text) != has_profiler_steps) {
            if (has_profiler_steps) {
                seen[name] = 1;
                continue;
            }
            has_profiler_steps = true;
            steps.n = 0;
        }
        int64_t start = events->start[i], end, dur = events->dur[i] > 0 ? events->dur[i] : 0;
        if (__builtin_add_overflow(start, dur, &end))
            continue;
        steps.v = tp_vec_room(steps.v, &cap, steps.n + 1, sizeof *steps.v);
        steps.v[steps.n++] = (tp_step){.number = number,
                                       .start = start,
                                       .end = end,
                                       .host_ns = tp_subtract_saturating(end, start),
                                       .pid = events->tracks[events->track[i]].pid};
    }
    join(&steps);
    *ret = steps;
}

void tp_steps_release(tp_steps *steps)
{
    free(steps->v);
    *steps = (tp_steps){0};
}

int64_t tp_steps_at(const tp_steps *steps, int64_t at)
{
    size_t low = 0, high = steps->n;
    /* the first that starts after `at` */
    TP_BISECT(low, high, i, steps->v[i].start <= at);
    return low > 0 && at < steps->v[low - 1].end ? (int64_t)(low - 1) : -1;
}
