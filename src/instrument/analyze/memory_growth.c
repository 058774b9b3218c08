/* memory_growth.c - allocations assigned to steps, and which groups survive them, in traces and
 * in snapshots. */
#include "instrument/analyze/memory_growth.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "instrument/analyze/sort.h"

/* How many ends lie before `at`: the number of the step that `at` is in. */
static uint32_t step_of(const int64_t *ends, size_t n, int64_t at)
{
    size_t low = 0, high = n;
    TP_BISECT(low, high, i, ends[i] < at);
    return (uint32_t)low;
}

typedef struct {
    tp_allocation *v;
    size_t n, cap;
    tp_number_map live; /* address -> allocation */
} lifetimes;

static void begin(lifetimes *l, uint64_t addr, uint32_t group, uint32_t step, size_t n_steps,
                  int64_t bytes)
{
    l->v = tp_vec_room(l->v, &l->cap, l->n + 1, sizeof *l->v);
    l->v[l->n] = (tp_allocation){group, step, (uint32_t)n_steps, bytes};
    tp_number_map_set(&l->live, addr, (uint32_t)l->n++);
}

static void end(lifetimes *l, uint64_t addr, uint32_t step, size_t n_steps)
{
    uint32_t at = tp_number_map_get(&l->live, addr);
    if (at != TP_NO_ROW && l->v[at].to == n_steps)
        l->v[at].to = step;
}

static void release(lifetimes *l)
{
    free(l->v);
    tp_number_map_release(&l->live);
}

/* ---- traces ---- */

static uint32_t operator_at(const tp_events *e, const tp_operators *o, const tp_memory_instant *m)
{
    uint32_t span = tp_spans_at(o->spans, o->n_spans, o->parent, m->track, m->ts);
    return span == TP_NO_PARENT ? 0 : e->name[o->spans[span].event];
}

tp_status tp_growth_of_trace(const tp_selection *sel, const tp_operators *o, tp_survivors *ret,
                             tp_error *err)
{
    const tp_events *e = sel->events;
    size_t n_steps = sel->steps.n;
    lifetimes l = {0};
    TP_FREED int64_t *ends = tp_vec_new(n_steps, sizeof *ends);
    TP_FREED tp_keyed *order = tp_vec_new(e->n_memory, sizeof *order);
    for (size_t i = 0; i < n_steps; i++)
        ends[i] = sel->steps.v[i].end;
    tp_sort_i64(ends, n_steps);
    bool has_device = false;
    for (size_t i = 0; i < e->n_memory; i++) {
        order[i] = (tp_keyed){tp_key_of(e->memory[i].index), (uint32_t)i};
        has_device = has_device || e->memory[i].device_type != 0;
    }
    tp_sort_keyed(order, e->n_memory);
    for (size_t i = 0; i < e->n_memory; i++)
        order[i].key = tp_key_of(e->memory[order[i].index].ts);
    tp_sort_keyed(order, e->n_memory);
    for (size_t i = 0; i < e->n_memory; i++) {
        const tp_memory_instant *m = &e->memory[order[i].index];
        uint32_t step = step_of(ends, n_steps, m->ts);
        if (m->device_type == 0 && has_device)
            continue; /* the host's memory is not what runs out */
        if (m->addr == 0 || m->bytes == 0)
            continue; /* which free belongs to which allocation is not known */
        if (m->bytes > 0)
            begin(&l, m->addr, operator_at(e, o, m), step, n_steps, m->bytes);
        else
            end(&l, m->addr, step, n_steps);
    }
    tp_status status = tp_survivors_make(l.v, l.n, e->strings.n + 1, n_steps, ret, err);
    release(&l);
    return status;
}

/* ---- snapshots ---- */

static bool is_end(const tp_snapshot *s, const tp_mem_annotation *a, uint32_t device)
{
    return strcmp(tp_snapshot_str(s, a->stage), "END") == 0 && a->time_us != TP_UNKNOWN &&
           (a->device < 0 || a->device == (int64_t)device);
}

/* Ends of the annotation that occurs most often; NULL when there is none. */
static int64_t *find_ends(const tp_snapshot *s, uint32_t device, uint32_t *ret_name, size_t *ret_n)
{
    size_t *count = tp_vec_new(s->strings.n + 1, sizeof *count), n = 0;
    uint32_t best = 0;
    for (size_t i = 0; i < s->n_annotations; i++)
        if (is_end(s, &s->annotations[i], device) && ++count[s->annotations[i].name] > count[best])
            best = s->annotations[i].name;
    int64_t *ends = tp_vec_new(count[best], sizeof *ends);
    for (size_t i = 0; i < s->n_annotations; i++)
        if (is_end(s, &s->annotations[i], device) && s->annotations[i].name == best)
            ends[n++] = s->annotations[i].time_us;
    tp_sort_i64(ends, n);
    free(count);
    *ret_name = best;
    *ret_n = n;
    return ends;
}

tp_status tp_growth_of_snapshot(const tp_snapshot *s, uint32_t device, int64_t initial_bytes,
                                tp_snapshot_growth *ret, tp_error *err)
{
    tp_snapshot_growth g = {0};
    lifetimes l = {0};
    int64_t *ends = find_ends(s, device, &g.annotation, &g.n_steps), net = initial_bytes;
    TP_FREED double *in_use = tp_vec_new(g.n_steps, sizeof *in_use);
    size_t passed = 0;
    for (size_t i = s->device_first[device]; i < s->device_first[device + 1]; i++) {
        const tp_mem_entry *e = &s->entries[i];
        int64_t bytes = e->size == TP_UNKNOWN ? 0 : e->size;
        uint32_t step = e->time_us == TP_UNKNOWN ? 0 : step_of(ends, g.n_steps, e->time_us);
        for (; passed < step; passed++)
            in_use[passed] = (double)net;
        if (e->action == TP_MEM_ALLOC) {
            net = tp_add_saturating(net, bytes);
            begin(&l, e->addr, e->stack, step, g.n_steps, bytes);
        } else if (e->action == TP_MEM_FREE_COMPLETED) {
            net = tp_subtract_saturating(net, bytes);
            end(&l, e->addr, step, g.n_steps);
        }
    }
    for (; passed < g.n_steps; passed++)
        in_use[passed] = (double)net;
    tp_status status = tp_leak_test(in_use, g.n_steps, &TP_LEAK_DEFAULTS, &g.leak, err);
    if (status == TP_OK)
        status = tp_survivors_make(l.v, l.n, s->n_stacks + 1, g.n_steps, &g.survivors, err);
    release(&l);
    free(ends);
    if (status == TP_OK)
        *ret = g;
    return status;
}

void tp_snapshot_growth_release(tp_snapshot_growth *g)
{
    tp_survivors_release(&g->survivors);
    *g = (tp_snapshot_growth){0};
}
