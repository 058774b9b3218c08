/* summary.c - one sweep over the zones of each thread with a stack, in order of their start. */
#include "trace/summary.h"

#include <string.h>

#include "base/order.h"
#include "base/platform.h"
#include "base/vec.h"

typedef struct {
    int64_t tid, start_ns, end_ns;
    const tp_trace_site *site;
    double flops, bytes;
    uint32_t row;
    int64_t inside_ns; /* of zones directly in it */
} zone;

typedef struct {
    int64_t tid, at_ns, bytes;
    uint64_t order;
    const tp_trace_site *site;
} change;

typedef struct {
    tp_trace_summary *out;
    zone *zones;
    size_t n_zones, cap_zones;
    change *changes;
    size_t n_changes, cap_changes;
    uint32_t *open; /* per row: zones of the name on the stack */
    size_t cap_rows;
} sweep;

/* Work that is another each time is said with the event, the way exec/ writes it. */
static void find_work(const tp_trace_event *e, zone *z)
{
    z->flops = e->site->flops;
    z->bytes = e->site->bytes;
    if (e->text && sscanf(e->text, "{\"flops\":%lf,\"bytes\":%lf}", &z->flops, &z->bytes) == 1)
        z->bytes = e->site->bytes;
}

static void collect(void *user, const tp_trace_event *e)
{
    sweep *s = user;
    s->out->n_events++;
    if (e->kind == TP_TRACE_ZONE) {
        zone *z = TP_VEC_PUSH(s->zones, s->n_zones, s->cap_zones);
        *z = (zone){.tid = e->tid, .start_ns = e->start_ns, .end_ns = e->end_ns, .site = e->site};
        find_work(e, z);
    }
    if (e->kind == TP_TRACE_MEMORY) {
        uint64_t order = s->n_changes;
        *TP_VEC_PUSH(s->changes, s->n_changes, s->cap_changes) =
            (change){e->tid, e->start_ns, e->bytes, .order = order, .site = e->site};
        s->out->peak_allocated = TP_MAX(s->out->peak_allocated, e->allocated);
        s->out->peak_reserved = TP_MAX(s->out->peak_reserved, e->reserved);
    }
}

TP_ORDER(by_start, zone,
         TP_COMPARE(x->tid, y->tid)
                 ?: TP_COMPARE(x->start_ns, y->start_ns)
                 ?: TP_COMPARE(y->end_ns, x->end_ns))

TP_ORDER(by_time, change,
         TP_COMPARE(x->tid, y->tid)
                 ?: TP_COMPARE(x->at_ns, y->at_ns)
                 ?: TP_COMPARE(x->order, y->order))

static const char *category_of(const tp_trace_site *site)
{
    return site->category ? site->category : "user_annotation";
}

static uint32_t row_of(sweep *s, const tp_trace_site *site)
{
    tp_trace_summary *out = s->out;
    for (size_t i = 0; i < out->n_rows; i++)
        if (strcmp(out->rows[i].name, site->name) == 0 &&
            strcmp(out->rows[i].category, category_of(site)) == 0)
            return (uint32_t)i;
    size_t cap = tp_vec_next(s->cap_rows, out->n_rows + 1, sizeof *out->rows);
    if (cap > s->cap_rows) { /* both arrays have this one */
        out->rows = tp_vec_resize(out->rows, cap, sizeof *out->rows);
        s->open = tp_vec_resize(s->open, cap, sizeof *s->open);
        s->cap_rows = cap;
    }
    s->open[out->n_rows] = 0;
    out->rows[out->n_rows] =
        (tp_trace_row){.category = category_of(site), .name = site->name, .least_ns = INT64_MAX};
    return (uint32_t)out->n_rows++;
}

/* A site's row, remembered by its address. */
enum { SLOTS = 4096 };
typedef struct {
    const tp_trace_site *site;
    uint32_t row;
} slot;

static void find_rows(sweep *s)
{
    TP_FREED slot *slots = tp_new(SLOTS, sizeof *slots);
    for (size_t i = 0; i < s->n_zones; i++) {
        const tp_trace_site *site = s->zones[i].site;
        slot *at = &slots[((uintptr_t)site / 8 * 2654435761u) % SLOTS];
        if (at->site != site)
            *at = (slot){site, row_of(s, site)};
        s->zones[i].row = at->row;
    }
}

typedef struct {
    size_t *zones; /* indices */
    size_t depth, cap;
} stack;

static void pop(sweep *s, stack *open)
{
    const zone *z = &s->zones[open->zones[--open->depth]];
    tp_trace_row *row = &s->out->rows[z->row];
    int64_t ns = z->end_ns - z->start_ns;
    row->count++;
    row->self_ns += ns - z->inside_ns;
    row->least_ns = TP_MIN(row->least_ns, ns);
    row->most_ns = TP_MAX(row->most_ns, ns);
    row->flops += z->flops;
    row->bytes += z->bytes;
    if (--s->open[z->row] == 0)
        row->total_ns += ns;
}

/* Leave what ended before (tid, ns). */
static void leave(sweep *s, stack *open, int64_t tid, int64_t ns)
{
    while (open->depth > 0) {
        const zone *top = &s->zones[open->zones[open->depth - 1]];
        if (top->tid == tid && top->end_ns > ns)
            return;
        pop(s, open);
    }
}

static void enter(sweep *s, stack *open, size_t i)
{
    const zone *z = &s->zones[i];
    if (open->depth > 0) {
        zone *parent = &s->zones[open->zones[open->depth - 1]];
        parent->inside_ns += TP_MIN(z->end_ns, parent->end_ns) - z->start_ns;
    }
    open->zones = tp_vec_room(open->zones, &open->cap, open->depth + 1, sizeof *open->zones);
    open->zones[open->depth++] = i;
    s->open[z->row]++;
}

/* Memory belongs to the innermost zone that it was taken in. */
static void note_change(sweep *s, stack *open, const change *c)
{
    leave(s, open, c->tid, c->at_ns);
    if (open->depth == 0 || c->bytes <= 0)
        return;
    tp_trace_row *row = &s->out->rows[s->zones[open->zones[open->depth - 1]].row];
    row->n_taken++;
    row->taken_bytes += c->bytes;
}

static void add_up(sweep *s)
{
    stack open = {0};
    size_t k = 0;
    for (size_t i = 0; i < s->n_zones; i++) {
        const zone *z = &s->zones[i];
        for (; k < s->n_changes &&
               (s->changes[k].tid < z->tid ||
                (s->changes[k].tid == z->tid && s->changes[k].at_ns < z->start_ns));
             k++)
            note_change(s, &open, &s->changes[k]);
        leave(s, &open, z->tid, z->start_ns);
        enter(s, &open, i);
    }
    for (; k < s->n_changes; k++)
        note_change(s, &open, &s->changes[k]);
    while (open.depth > 0)
        pop(s, &open);
    free(open.zones);
}

/* ---- memory by kind ---- */

static tp_trace_memory_row *memory_row(tp_trace_summary *out, const char *kind)
{
    for (size_t i = 0; i < out->n_memory; i++)
        if (strcmp(out->memory[i].kind, kind) == 0)
            return &out->memory[i];
    out->memory = tp_grow(out->memory, out->n_memory + 1, sizeof *out->memory);
    out->memory[out->n_memory] = (tp_trace_memory_row){.kind = kind};
    return &out->memory[out->n_memory++];
}

TP_ORDER(by_moment, change, TP_COMPARE(x->at_ns, y->at_ns) ?: TP_COMPARE(x->order, y->order))

static void add_up_memory(sweep *s)
{
    qsort(s->changes, s->n_changes, sizeof *s->changes, by_moment);
    for (size_t i = 0; i < s->n_changes; i++) {
        const change *c = &s->changes[i];
        tp_trace_memory_row *row = memory_row(s->out, category_of(c->site));
        row->n_taken += c->bytes > 0;
        row->n_given += c->bytes < 0;
        row->taken_bytes += c->bytes > 0 ? c->bytes : 0;
        row->given_bytes += c->bytes < 0 ? -c->bytes : 0;
        row->peak_bytes = TP_MAX(row->peak_bytes, row->taken_bytes - row->given_bytes);
    }
}

TP_ORDER(by_self, tp_trace_row, TP_COMPARE(y->self_ns, x->self_ns) ?: strcmp(x->name, y->name))

TP_ORDER(by_taken, tp_trace_memory_row,
         TP_COMPARE(y->taken_bytes, x->taken_bytes) ?: strcmp(x->kind, y->kind))

void tp_trace_summarize(tp_trace_summary *ret)
{
    *ret = (tp_trace_summary){.peak_allocated = -1, .peak_reserved = -1};
    sweep s = {.out = ret};
    tp_trace_each(collect, &s);
    ret->n_dropped = tp_trace_dropped();
    if (s.n_zones > 0)
        qsort(s.zones, s.n_zones, sizeof *s.zones, by_start);
    if (s.n_changes > 0)
        qsort(s.changes, s.n_changes, sizeof *s.changes, by_time);
    find_rows(&s);
    add_up(&s);
    if (s.n_changes > 0)
        add_up_memory(&s);
    if (ret->n_rows > 0)
        qsort(ret->rows, ret->n_rows, sizeof *ret->rows, by_self);
    if (ret->n_memory > 0)
        qsort(ret->memory, ret->n_memory, sizeof *ret->memory, by_taken);
    free(s.zones);
    free(s.changes);
    free(s.open);
}

void tp_trace_summary_release(tp_trace_summary *summary)
{
    free(summary->rows);
    free(summary->memory);
    *summary = (tp_trace_summary){0};
}
