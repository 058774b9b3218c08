/* critical_path.c - walked backwards from the last end, over launches, waits and streams. */
#include "instrument/analyze/critical_path.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/vec.h"
#include "instrument/analyze/sort.h"

const char *tp_path_part_name(tp_path_part part)
{
    static const char *const names[] = {"compute",    "communication", "memory", "launch",
                                        "kernel gap", "sync gap",      "host",   "unknown"};
    return names[part];
}

/* "Stream `stream` waits for what was on `other` when the event was recorded."  A stream is one of
 * a device: place_of(). */
typedef struct {
    int64_t stream, other;
    int64_t called, recorded; /* on the host */
} wait;

typedef enum {
    FOR_WORK,   /* that it launched itself: a copy */
    FOR_STREAM, /* for all that was launched on it before `recorded` */
    FOR_DEVICE,
    FOR_ANY
} wait_scope;

/* A call on the host that can wait for the device. */
typedef struct {
    int64_t start, end;
    uint32_t track;
    wait_scope scope;
    uint32_t work;
    int64_t stream, recorded; /* FOR_DEVICE: the device */
} call;

typedef struct {
    const tp_selection *sel;
    const tp_operators *ops;
    tp_critical_path *path;
    uint32_t *before;    /* per work: the work before it on its stream */
    uint32_t *by_end;    /* works in order of their ends */
    uint32_t *by_launch; /* works with their call, in order of the calls */
    size_t n_by_launch;
    tp_keyed *launched; /* works in order of (stream, launch) */
    wait *waits;        /* by (stream, called) */
    size_t n_waits, cap_waits;
    call *calls; /* by (track, end) */
    size_t n_calls, cap_calls;
    tp_number_map host_calls, sync_rows; /* by correlation */
    tp_number_map row_of;
    size_t cap_rows;
    int64_t now;
} walker;

/* Streams of different devices have the same numbers. */
static int64_t place_of(int64_t device, int64_t stream)
{
    uint64_t of_device = device == TP_UNKNOWN ? 0 : (uint64_t)device << 32;
    return (int64_t)(of_device + (uint64_t)stream);
}

static const tp_event_track *track_of(const walker *w, size_t event)
{
    return &w->sel->events->tracks[w->sel->events->track[event]];
}

static int64_t stream_of(const walker *w, uint32_t work)
{
    const tp_event_track *t = track_of(w, w->sel->v[work].event);
    return place_of(t->device, t->stream);
}

/* ---- preparation ---- */

static void order_works(walker *w)
{
    const tp_selection *sel = w->sel;
    TP_FREED uint32_t *last = tp_vec_new(sel->events->n_tracks, sizeof *last);
    TP_FREED tp_keyed *order = tp_vec_new(sel->n, sizeof *order);
    memset(last, 0xFF, sel->events->n_tracks * sizeof *last);
    w->before = tp_vec_new(sel->n, sizeof *w->before);
    w->by_end = tp_vec_new(sel->n, sizeof *w->by_end);
    w->launched = tp_vec_new(sel->n, sizeof *w->launched);
    for (size_t i = 0; i < sel->n; i++) {
        uint32_t track = sel->events->track[sel->v[i].event];
        w->before[i] = last[track];
        last[track] = (uint32_t)i;
        order[i] = (tp_keyed){tp_key_of(sel->v[i].end), (uint32_t)i};
        w->launched[i] = (tp_keyed){tp_key_of(tp_launch_time(sel, i)), (uint32_t)i};
    }
    tp_sort_keyed(order, sel->n);
    tp_sort_keyed(w->launched, sel->n);
    w->by_launch = tp_vec_new(sel->n, sizeof *w->by_launch);
    for (size_t i = 0; i < sel->n; i++)
        if (sel->launch[w->launched[i].index] != TP_NO_ROW)
            w->by_launch[w->n_by_launch++] = w->launched[i].index;
    for (size_t i = 0; i < sel->n; i++) {
        w->by_end[i] = order[i].index;
        w->launched[i].key = tp_key_of(stream_of(w, w->launched[i].index));
    }
    tp_sort_keyed(w->launched, sel->n);
}

TP_ORDER(by_stream_and_call, wait,
         TP_COMPARE(x->stream, y->stream) ?: TP_COMPARE(x->called, y->called))

TP_ORDER(by_track_and_end, call, TP_COMPARE(x->track, y->track) ?: TP_COMPARE(x->end, y->end))

static bool is_host_call(uint8_t kind)
{
    return kind == TP_EVENT_RUNTIME || kind == TP_EVENT_DRIVER;
}

static void index_correlations(walker *w)
{
    const tp_events *e = w->sel->events;
    for (size_t i = 0; i < e->n; i++) {
        if (e->correlation[i] == TP_UNKNOWN)
            continue;
        if (is_host_call(e->kind[i]))
            tp_number_map_add(&w->host_calls, (uint64_t)e->correlation[i], (uint32_t)i);
        else if (e->kind[i] == TP_EVENT_SYNC)
            tp_number_map_add(&w->sync_rows, (uint64_t)e->correlation[i], (uint32_t)i);
    }
}

static call *add_call(walker *w, size_t event)
{
    const tp_events *e = w->sel->events;
    w->calls = tp_vec_room(w->calls, &w->cap_calls, w->n_calls + 1, sizeof *w->calls);
    w->calls[w->n_calls] = (call){.start = e->start[event],
                                  .end = tp_event_end(e, event),
                                  .track = e->track[event],
                                  .scope = FOR_ANY,
                                  .recorded = e->start[event]};
    return &w->calls[w->n_calls++];
}

/* What a synchronising call waits for, as the device's side of it says. */
static void read_scope(const walker *w, size_t event, call *c)
{
    static const int64_t all_streams = 0xFFFFFFFF; /* or -1 */
    const tp_events *e = w->sel->events;
    uint32_t row = e->correlation[event] == TP_UNKNOWN
                       ? TP_NO_ROW
                       : tp_number_map_get(&w->sync_rows, (uint64_t)e->correlation[event]);
    if (row == TP_NO_ROW)
        return;
    const tp_event_sync *s = tp_events_sync(e, row);
    const tp_event_track *t = track_of(w, row);
    uint32_t record = s && s->wait_correlation != TP_UNKNOWN
                          ? tp_number_map_get(&w->host_calls, (uint64_t)s->wait_correlation)
                          : TP_NO_ROW;
    if (s && s->wait_stream != TP_UNKNOWN && record != TP_NO_ROW) {
        c->scope = FOR_STREAM;
        c->stream = place_of(t->device, s->wait_stream);
        c->recorded = e->start[record];
    } else if (t->stream >= 0 && t->stream < all_streams) {
        c->scope = FOR_STREAM;
        c->stream = place_of(t->device, t->stream);
    } else if (t->device != TP_UNKNOWN) {
        c->scope = FOR_DEVICE;
        c->stream = t->device;
    }
}

/* Calls that wait: synchronising ones, and copies that return after the copy ended. */
static void find_calls(walker *w)
{
    const tp_selection *sel = w->sel;
    const tp_events *e = sel->events;
    TP_FREED uint8_t *names = tp_vec_new(e->strings.n + 1, 1);
    for (size_t i = 0; i < e->n; i++) {
        uint32_t name = e->name[i];
        if (!is_host_call(e->kind[i]) || e->phase[i] != 'X')
            continue;
        if (!names[name])
            names[name] = tp_name_matches(tp_events_name_text(e, name), "Synchronize") ? 2 : 1;
        if (names[name] != 2)
            continue;
        read_scope(w, i, add_call(w, i));
    }
    for (size_t i = 0; i < sel->n; i++) {
        uint32_t launch = sel->launch[i];
        bool is_copy = e->kind[sel->v[i].event] == TP_EVENT_MEMCPY ||
                       e->kind[sel->v[i].event] == TP_EVENT_MEMSET;
        if (!is_copy || launch == TP_NO_ROW || sel->v[i].end > tp_event_end(e, launch))
            continue;
        call *c = add_call(w, launch);
        c->scope = FOR_WORK;
        c->work = (uint32_t)i;
    }
    if (w->n_calls)
        qsort(w->calls, w->n_calls, sizeof *w->calls, by_track_and_end);
}

static void find_waits(walker *w)
{
    const tp_events *e = w->sel->events;
    for (size_t i = 0; i < e->n && e->n_syncs > 0; i++) {
        const tp_event_sync *s = e->kind[i] == TP_EVENT_SYNC ? tp_events_sync(e, i) : NULL;
        if (!s || s->wait_stream == TP_UNKNOWN || s->wait_correlation == TP_UNKNOWN)
            continue;
        uint32_t at = tp_number_map_get(&w->host_calls, (uint64_t)e->correlation[i]);
        uint32_t record = tp_number_map_get(&w->host_calls, (uint64_t)s->wait_correlation);
        if (at == TP_NO_ROW || record == TP_NO_ROW)
            continue;
        w->waits = tp_vec_room(w->waits, &w->cap_waits, w->n_waits + 1, sizeof *w->waits);
        int64_t device = track_of(w, i)->device;
        w->waits[w->n_waits++] =
            (wait){place_of(device, track_of(w, i)->stream), place_of(device, s->wait_stream),
                   e->start[at], e->start[record]};
    }
    if (w->n_waits)
        qsort(w->waits, w->n_waits, sizeof *w->waits, by_stream_and_call);
}

/* ---- charging ---- */

static void charge(walker *w, tp_path_part part, uint32_t name, int64_t to)
{
    int64_t ns = w->now - to;
    if (ns < 0)
        return;
    uint64_t key = (uint64_t)part << 32 | name;
    uint32_t row = tp_number_map_get(&w->row_of, key);
    tp_critical_path *p = w->path;
    if (row == TP_NO_ROW) {
        p->rows = tp_vec_room(p->rows, &w->cap_rows, p->n + 1, sizeof *p->rows);
        p->rows[p->n] = (tp_path_row){.part = part, .name = name};
        row = (uint32_t)p->n++;
        tp_number_map_add(&w->row_of, key, row);
    }
    p->ns[part] += ns;
    p->rows[row].ns += ns;
    p->rows[row].count++;
    w->now = to;
}

/* The first span of the thread that starts after `at`, as a time; `limit` when none. */
static int64_t next_start(const tp_operators *o, uint32_t track, int64_t at, int64_t limit)
{
    size_t low = 0, high = o->n_spans;
    TP_BISECT(low, high, i,
              o->spans[i].thread < track ||
                  (o->spans[i].thread == track && o->spans[i].start <= at));
    bool is_there = low < o->n_spans && o->spans[low].thread == track;
    return is_there && o->spans[low].start < limit ? o->spans[low].start : limit;
}

/* The time of a thread from `from` to now, by the operators it was in. */
static void charge_host(walker *w, uint32_t track, int64_t from)
{
    const tp_operators *o = w->ops;
    int64_t until = w->now;
    if (from >= until)
        return;
    for (int64_t at = from; at < until;) {
        uint32_t span = tp_spans_at(o->spans, o->n_spans, o->parent, track, at);
        int64_t stop = next_start(o, track, at, until);
        if (span != TP_NO_PARENT && o->spans[span].end < stop)
            stop = o->spans[span].end;
        uint32_t name =
            span == TP_NO_PARENT ? TP_NO_ROW : w->sel->events->name[o->spans[span].event];
        w->now = stop;
        charge(w, TP_PATH_HOST, name, at);
        at = stop;
    }
    w->now = from;
}

/* ---- walking ---- */

/* The last work of `stream` that was launched before `recorded`. */
static uint32_t work_before(const walker *w, int64_t stream, int64_t recorded)
{
    size_t low = 0, high = w->sel->n;
    TP_BISECT(low, high, i,
              stream_of(w, w->launched[i].index) < stream ||
                  (stream_of(w, w->launched[i].index) == stream &&
                   tp_launch_time(w->sel, w->launched[i].index) < recorded));
    if (low == 0 || stream_of(w, w->launched[low - 1].index) != stream)
        return TP_NO_ROW;
    return w->launched[low - 1].index;
}

/* The work that an event made `work` wait for, or TP_NO_ROW. */
static uint32_t awaited(const walker *w, uint32_t work)
{
    int64_t stream = stream_of(w, work), launched = tp_launch_time(w->sel, work);
    uint32_t before = w->before[work], best = TP_NO_ROW;
    int64_t since = before == TP_NO_ROW ? INT64_MIN : tp_launch_time(w->sel, before);
    size_t low = 0, high = w->n_waits;
    /* behind the last wait of the stream up to the launch */
    TP_BISECT(low, high, i,
              w->waits[i].stream < stream ||
                  (w->waits[i].stream == stream && w->waits[i].called <= launched));
    for (; low > 0 && w->waits[low - 1].stream == stream && w->waits[low - 1].called > since;
         low--) {
        uint32_t i = work_before(w, w->waits[low - 1].other, w->waits[low - 1].recorded);
        if (i != TP_NO_ROW && i != work &&
            (best == TP_NO_ROW || w->sel->v[i].end > w->sel->v[best].end))
            best = i;
    }
    return best;
}

/* The last work that ended during the call, of its device if it says which; or TP_NO_ROW. */
static uint32_t ended_during(const walker *w, const call *c)
{
    size_t low = 0, high = w->sel->n;
    TP_BISECT(low, high, i, w->sel->v[w->by_end[i]].end <= c->end);
    for (; low > 0 && w->sel->v[w->by_end[low - 1]].end > c->start; low--) {
        uint32_t work = w->by_end[low - 1];
        if (c->scope == FOR_ANY || track_of(w, w->sel->v[work].event)->device == c->stream)
            return work;
    }
    return TP_NO_ROW;
}

/* The work whose end let the call return, or TP_NO_ROW: there was nothing to wait for. */
static uint32_t waited_for(const walker *w, const call *c)
{
    uint32_t work = c->scope == FOR_WORK     ? c->work
                    : c->scope == FOR_STREAM ? work_before(w, c->stream, c->recorded)
                                             : ended_during(w, c);
    bool is_during =
        work != TP_NO_ROW && w->sel->v[work].end > c->start && w->sel->v[work].end <= c->end;
    return is_during ? work : TP_NO_ROW;
}

/* The last call of `track` that ended at or before now and during which the device work ended
 * that it waited for; NULL when there is none after `since`. */
static const call *find_call(const walker *w, uint32_t track, int64_t since, uint32_t *ret_work)
{
    size_t low = 0, high = w->n_calls;
    TP_BISECT(low, high, i,
              w->calls[i].track < track ||
                  (w->calls[i].track == track && w->calls[i].end <= w->now));
    for (; low > 0 && w->calls[low - 1].track == track && w->calls[low - 1].end > since; low--) {
        const call *c = &w->calls[low - 1];
        *ret_work = waited_for(w, c);
        if (*ret_work != TP_NO_ROW)
            return c;
    }
    return NULL;
}

/* The work whose call began last before `now`, on any thread, or TP_NO_ROW. */
static uint32_t launched_before(const walker *w, int64_t now)
{
    size_t low = 0, high = w->n_by_launch;
    TP_BISECT(low, high, i, tp_launch_time(w->sel, w->by_launch[i]) < now);
    return low ? w->by_launch[low - 1] : TP_NO_ROW;
}

/* On a thread at `now`: back from launch to launch, which may be on another thread (a
 * backward pass has one of its own), to the last call that waited for device work.
 * Returns that work, or TP_NO_ROW when the walk is over. */
static uint32_t walk_host(walker *w, uint32_t track)
{
    while (w->now > w->path->start) {
        uint32_t earlier = launched_before(w, w->now), work;
        int64_t since = earlier == TP_NO_ROW ? w->path->start : tp_launch_time(w->sel, earlier);
        if (since < w->path->start) {
            since = w->path->start;
            earlier = TP_NO_ROW;
        }
        const call *c = find_call(w, track, since, &work);
        if (c) {
            charge_host(w, track, c->end);
            charge(w, TP_PATH_SYNC_GAP, TP_NO_ROW, w->sel->v[work].end);
            return work;
        }
        charge_host(w, track, since);
        if (earlier == TP_NO_ROW)
            break;
        track = w->sel->events->track[w->sel->launch[earlier]];
    }
    return TP_NO_ROW;
}

/* From the end of a work to what it waited for. */
static uint32_t walk_work(walker *w, uint32_t work)
{
    const tp_activity *a = &w->sel->v[work];
    uint32_t launch = w->sel->launch[work], before = w->before[work], other = awaited(w, work);
    charge(w, (tp_path_part)a->work, a->name, a->start < w->now ? a->start : w->now);
    if (other != TP_NO_ROW && w->sel->v[other].start < w->now &&
        (before == TP_NO_ROW || w->sel->v[other].end > w->sel->v[before].end))
        before = other;
    int64_t ended = before == TP_NO_ROW ? INT64_MIN : w->sel->v[before].end;
    int64_t called = launch == TP_NO_ROW ? INT64_MIN : w->sel->events->start[launch];
    if (ended > w->now) /* overlapping works: go on inside the earlier one */
        ended = w->now;
    if (called > w->now)
        called = w->now;
    if (launch == TP_NO_ROW && before == TP_NO_ROW)
        return TP_NO_ROW;
    if (ended >= called) {
        charge(w, launch == TP_NO_ROW ? TP_PATH_UNKNOWN : TP_PATH_KERNEL_GAP, TP_NO_ROW, ended);
        return before;
    }
    if (called < w->path->start)
        called = w->path->start;
    charge(w, TP_PATH_LAUNCH, TP_NO_ROW, called);
    return walk_host(w, w->sel->events->track[launch]);
}

TP_ORDER(by_time, tp_path_row, TP_COMPARE(y->ns, x->ns) ?: TP_COMPARE(x->name, y->name))

void tp_critical_path_find(const tp_selection *sel, const tp_operators *ops, tp_critical_path *ret)
{
    tp_breakdown all;
    tp_critical_path path = {0};
    walker w = {.sel = sel, .ops = ops, .path = &path};
    if (!tp_breakdown_make(sel->v, sel->n, TP_ALL_DEVICES, &all)) {
        *ret = path;
        return;
    }
    path.is_known = true;
    path.start = all.start;
    path.end = w.now = all.end;
    order_works(&w);
    index_correlations(&w);
    find_calls(&w);
    find_waits(&w);
    uint32_t work = w.by_end[sel->n - 1];
    /* Each move goes back in time or to an earlier work; works of no length could circle. */
    for (size_t moves = 0; work != TP_NO_ROW && moves < 4 * sel->n + 16 && w.now > path.start;
         moves++)
        work = walk_work(&w, work);
    if (w.now > path.start)
        charge(&w, TP_PATH_UNKNOWN, TP_NO_ROW, path.start);
    if (path.n)
        qsort(path.rows, path.n, sizeof *path.rows, by_time);
    free(w.before);
    free(w.by_end);
    free(w.by_launch);
    free(w.launched);
    free(w.waits);
    free(w.calls);
    tp_number_map_release(&w.host_calls);
    tp_number_map_release(&w.sync_rows);
    tp_number_map_release(&w.row_of);
    *ret = path;
}

void tp_critical_path_release(tp_critical_path *path)
{
    free(path->rows);
    *path = (tp_critical_path){0};
}
