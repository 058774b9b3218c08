/* counters.c - named sums and timers.
 *
 * A counter has a lock of its own, so that count, total and extremes belong together.  Which
 * timers a thread is inside of is the thread's own small table. */
#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "trace/internal.h"

enum { OPEN = 32 }; /* different timers one thread may be inside of */

struct tp_counter {
    tp_counter *next;
    char *name;
    pthread_mutex_t lock;
    uint64_t count, active;
    uint64_t amounts; /* of them those that have one: not a timer's calls inside another */
    double total, least, most;
    uint64_t total_ns; /* of a timer: exact, however many calls */
    uint64_t reset_ns; /* when it was reset: a timer that ran then counts from there */
};

typedef struct {
    tp_counter *counter;
    uint32_t depth;
    uint64_t start_ns;
} open_timer;

static tp_counter *first, **last = &first;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local open_timer open_timers[OPEN];

tp_counter *tp_counter_get(const char *name)
{
    pthread_mutex_lock(&list_lock);
    tp_counter *c = first;
    while (c && strcmp(c->name, name) != 0)
        c = c->next;
    if (!c) {
        char *own_name = strdup(name);
        c = own_name ? calloc(1, sizeof *c) : NULL;
        if (!c)
            pthread_mutex_unlock(&list_lock);
        TP_HAVE(c);
        c->name = own_name;
        pthread_mutex_init(&c->lock, NULL);
        c->least = INFINITY;
        c->most = -INFINITY;
        *last = c;
        last = &c->next;
    }
    pthread_mutex_unlock(&list_lock);
    return c;
}

static void count(tp_counter *c, double amount)
{
    c->count++;
    c->amounts++;
    c->least = fmin(c->least, amount); /* whatever a NaN is, it is neither */
    c->most = fmax(c->most, amount);
}

void tp_counter_add(tp_counter *c, double amount)
{
    pthread_mutex_lock(&c->lock);
    count(c, amount);
    c->total += amount;
    pthread_mutex_unlock(&c->lock);
}

static open_timer *find_open(const tp_counter *c)
{
    for (int i = 0; i < OPEN; i++)
        if (open_timers[i].counter == c)
            return &open_timers[i];
    return NULL;
}

void tp_counter_start(tp_counter *c)
{
    open_timer *open = find_open(c);
    if (!open)
        open = find_open(NULL);
    pthread_mutex_lock(&c->lock);
    c->active += open != NULL;
    pthread_mutex_unlock(&c->lock);
    if (!open)
        return; /* stop will say that it was not started */
    open->counter = c;
    if (open->depth++ == 0)
        open->start_ns = tp_ticks_monotonic();
}

tp_status tp_counter_stop(tp_counter *c, tp_error *err)
{
    TP_NEED(c, err);
    uint64_t now = tp_ticks_monotonic();
    open_timer *open = find_open(c);
    if (!open)
        return tp_fail(err, TP_ERR_ARG,
                       "counter '%s' is not running on this thread; start it before stopping it, "
                       "and at most %d different ones at once",
                       c->name, OPEN);
    bool is_outermost = --open->depth == 0;
    uint64_t start = open->start_ns;
    if (is_outermost)
        *open = (open_timer){0};
    pthread_mutex_lock(&c->lock);
    start = TP_MIN(TP_MAX(start, c->reset_ns), now);
    uint64_t ns = is_outermost ? now - start : 0;
    c->active--;
    if (is_outermost)
        count(c, (double)ns * 1e-9);
    else
        c->count++;
    c->total_ns += ns;
    pthread_mutex_unlock(&c->lock);
    return TP_OK;
}

static tp_counter_stats stats_of(const tp_counter *c)
{
    double total = c->total + (double)c->total_ns * 1e-9;
    bool any = c->amounts > 0;
    return (tp_counter_stats){.name = c->name,
                              .count = c->count,
                              .total = total,
                              .mean = any ? total / (double)c->amounts : NAN,
                              .least = any ? c->least : NAN,
                              .most = any ? c->most : NAN,
                              .active = c->active};
}

tp_counter_stats tp_counter_read(const tp_counter *counter)
{
    tp_counter *c = (tp_counter *)(uintptr_t)counter; /* the lock is no part of its value */
    pthread_mutex_lock(&c->lock);
    tp_counter_stats stats = stats_of(c);
    pthread_mutex_unlock(&c->lock);
    return stats;
}

size_t tp_counter_list(tp_counter_stats *ret, size_t n)
{
    size_t k = 0;
    pthread_mutex_lock(&list_lock);
    for (const tp_counter *c = first; c; c = c->next, k++)
        if (k < n)
            ret[k] = tp_counter_read(c);
    pthread_mutex_unlock(&list_lock);
    return k;
}

void tp_counter_reset(tp_counter *c)
{
    pthread_mutex_lock(&c->lock);
    c->count = c->amounts = c->total_ns = 0;
    c->reset_ns = tp_ticks_monotonic();
    c->total = 0;
    c->least = INFINITY;
    c->most = -INFINITY;
    pthread_mutex_unlock(&c->lock);
}

void tp_counters_write(tp_json_w *w)
{
    tp_json_w_begin(w, '[');
    pthread_mutex_lock(&list_lock);
    for (const tp_counter *c = first; c; c = c->next) {
        tp_counter_stats s = tp_counter_read(c);
        tp_json_w_begin(w, '{');
        tp_json_w_put_str(w, "name", s.name);
        tp_json_w_put_i64(w, "count", (int64_t)s.count);
        tp_json_w_put_known(w, "total", s.total);
        tp_json_w_put_known(w, "mean", s.mean);
        tp_json_w_put_known(w, "least", s.least);
        tp_json_w_put_known(w, "most", s.most);
        tp_json_w_end(w, '}');
    }
    pthread_mutex_unlock(&list_lock);
    tp_json_w_end(w, ']');
}
