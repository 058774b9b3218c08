/* memory_usage.c - memory over time, its peak, and the pairing of allocations with frees, per
 * device. */
#include "instrument/analyze/memory_usage.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/platform.h"
#include "base/vec.h"
#include "instrument/analyze/sort.h"

enum { GONE = TP_NO_ROW - 1 };

static bool is_host(int16_t device_type) { return device_type == 0; }

/* Instants in the order of device, time and index. */
static uint32_t *order_instants(const tp_events *e)
{
    TP_FREED tp_keyed *keyed = tp_vec_new(e->n_memory, sizeof *keyed);
    uint32_t *order = tp_vec_new(e->n_memory, sizeof *order);
    for (size_t i = 0; i < e->n_memory; i++)
        keyed[i] = (tp_keyed){tp_key_of(e->memory[i].index), (uint32_t)i};
    tp_sort_keyed(keyed, e->n_memory);
    for (size_t i = 0; i < e->n_memory; i++)
        keyed[i].key = tp_key_of(e->memory[keyed[i].index].ts);
    tp_sort_keyed(keyed, e->n_memory);
    for (size_t i = 0; i < e->n_memory; i++) {
        const tp_memory_instant *m = &e->memory[keyed[i].index];
        uint64_t host_last = is_host(m->device_type) ? (uint64_t)1 << 60 : 0;
        keyed[i].key = host_last | (uint64_t)(uint16_t)m->device_type << 32 | (uint32_t)m->device;
    }
    tp_sort_keyed(keyed, e->n_memory);
    for (size_t i = 0; i < e->n_memory; i++)
        order[i] = keyed[i].index;
    return order;
}

static void label(tp_memory_device *d)
{
    /* c10::DeviceType */
    static const char *const types[] = {"CPU", "CUDA", "MKLDNN",     "OPENGL", "OPENCL", "IDEEP",
                                        "HIP", "FPGA", "MAIA",       "XLA",    "Vulkan", "Metal",
                                        "XPU", "MPS",  "Meta",       "HPU",    "VE",     "Lazy",
                                        "IPU", "MTIA", "PrivateUse1"};
    int known = d->device_type >= 0 && d->device_type < (int)TP_COUNTOF(types);
    const char *type = known ? types[d->device_type] : "device";
    if (!known && d->device_type >= 0)
        snprintf(d->label, sizeof d->label, "type %d device %d", d->device_type, d->device);
    else if (d->device < 0)
        snprintf(d->label, sizeof d->label, "%s", type);
    else
        snprintf(d->label, sizeof d->label, "%s %d", type, d->device);
}

/* ---- one device ---- */

typedef struct {
    const tp_events *e;
    const tp_operators *ops;
    const uint32_t *order; /* of the device's instants */
    size_t n;
    tp_number_map live; /* address -> place in `order` that allocated it, or GONE */
    int64_t *lifetimes;
    size_t n_lifetimes, cap_lifetimes;
    tp_memory_device *d;
} walk;

static const tp_memory_instant *at(const walk *w, size_t i) { return &w->e->memory[w->order[i]]; }

static void pair_up(walk *w, size_t i)
{
    const tp_memory_instant *m = at(w, i);
    if (m->bytes == 0)
        return;
    if (m->bytes > 0) {
        w->d->allocs++;
        w->d->alloc_bytes = tp_add_saturating(w->d->alloc_bytes, m->bytes);
        uint32_t there = tp_number_map_get(&w->live, m->addr);
        if (w->d->has_addresses)
            tp_allocation_made(&w->d->allocations, m->bytes);
        if (w->d->has_addresses && there != TP_NO_ROW && there != GONE) /* its free is lost */
            tp_allocation_freed(&w->d->allocations, at(w, there)->bytes, TP_UNKNOWN);
        tp_number_map_set(&w->live, m->addr, (uint32_t)i);
        return;
    }
    uint32_t from = tp_number_map_get(&w->live, m->addr);
    int64_t bytes = m->bytes == INT64_MIN ? INT64_MAX : -m->bytes;
    w->d->frees++;
    w->d->free_bytes = tp_add_saturating(w->d->free_bytes, bytes);
    if (!w->d->has_addresses)
        return;
    if (from == TP_NO_ROW || from == GONE) {
        w->d->older_frees++;
        w->d->older_free_bytes = tp_add_saturating(w->d->older_free_bytes, bytes);
        return;
    }
    tp_number_map_set(&w->live, m->addr, GONE);
    w->lifetimes =
        tp_vec_room(w->lifetimes, &w->cap_lifetimes, w->n_lifetimes + 1, sizeof *w->lifetimes);
    int64_t lived = tp_subtract_saturating(m->ts, at(w, from)->ts);
    w->lifetimes[w->n_lifetimes++] = lived;
    tp_allocation_freed(&w->d->allocations, at(w, from)->bytes, lived);
}

static void follow(walk *w)
{
    tp_memory_device *d = w->d;
    const tp_memory_instant *first = at(w, 0);
    int64_t running = 0;
    d->has_totals = first->allocated != TP_UNKNOWN;
    if (d->has_totals)
        running = tp_subtract_saturating(first->allocated, first->bytes);
    d->first_bytes = d->has_totals ? running : TP_UNKNOWN;
    d->peak_bytes = running;
    d->peak_ts = first->ts;
    d->peak_reserved = TP_UNKNOWN;
    d->has_addresses = true;
    for (size_t i = 0; i < w->n; i++)
        d->has_addresses &= at(w, i)->addr != 0 || at(w, i)->bytes == 0;
    d->points = tp_vec_new(w->n, sizeof *d->points);
    for (size_t i = 0; i < w->n; i++) {
        const tp_memory_instant *m = at(w, i);
        running = m->allocated != TP_UNKNOWN ? m->allocated : tp_add_saturating(running, m->bytes);
        d->points[i] = (tp_memory_point){m->ts, running, m->reserved};
        if (running > d->peak_bytes) {
            d->peak_bytes = running;
            d->peak_ts = m->ts;
        }
        if (m->reserved != TP_UNKNOWN && m->reserved > d->peak_reserved)
            d->peak_reserved = m->reserved;
        pair_up(w, i);
    }
    d->last_bytes = d->has_totals ? running : TP_UNKNOWN;
    d->lifetime_p50_ns = d->lifetime_p90_ns = TP_UNKNOWN;
    if (w->n_lifetimes) {
        tp_sort_i64(w->lifetimes, w->n_lifetimes);
        d->lifetime_p50_ns = tp_rank_quantile(w->lifetimes, w->n_lifetimes, 0.5);
        d->lifetime_p90_ns = tp_rank_quantile(w->lifetimes, w->n_lifetimes, 0.9);
    }
}

/* ---- owners ---- */

static uint32_t owner_of(const walk *w, const tp_memory_instant *m)
{
    uint32_t span = tp_spans_at(w->ops->spans, w->ops->n_spans, w->ops->parent, m->track, m->ts);
    return span == TP_NO_PARENT ? TP_NO_ROW : w->e->name[w->ops->spans[span].event];
}

TP_ORDER(most_first, tp_memory_owner, TP_COMPARE(y->bytes, x->bytes) ?: TP_COMPARE(x->op, y->op))

typedef struct {
    tp_memory_owner *list;
    size_t n, cap;
    tp_number_map row_of;
} owners;

static void add_owned(const walk *w, const tp_memory_instant *m, owners *o)
{
    uint32_t op = owner_of(w, m), row = tp_number_map_get(&o->row_of, op);
    if (row == TP_NO_ROW) {
        o->list = tp_vec_room(o->list, &o->cap, o->n + 1, sizeof *o->list);
        o->list[o->n] = (tp_memory_owner){.op = op};
        row = (uint32_t)o->n++;
        tp_number_map_add(&o->row_of, op, row);
    }
    o->list[row].bytes = tp_add_saturating(o->list[row].bytes, m->bytes);
    o->list[row].count++;
}

static size_t close_owners(owners *o, tp_memory_owner **ret)
{
    if (o->n)
        qsort(o->list, o->n, sizeof *o->list, most_first);
    tp_number_map_release(&o->row_of);
    *ret = o->list;
    return o->n;
}

static size_t list_owners(const walk *w, const tp_number_map *live, tp_memory_owner **ret,
                          int64_t *ret_count, int64_t *ret_bytes)
{
    owners o = {0};
    for (size_t slot = 0; slot < live->n_slots; slot++) {
        uint32_t from = live->slots[slot].value;
        if (from == TP_NO_ROW || from == GONE)
            continue;
        const tp_memory_instant *m = at(w, from);
        add_owned(w, m, &o);
        *ret_count += 1;
        *ret_bytes = tp_add_saturating(*ret_bytes, m->bytes);
    }
    return close_owners(&o, ret);
}

static void attribute_allocations(const tp_selection *sel, walk *w)
{
    owners o = {0};
    for (size_t i = 0; i < w->n; i++)
        if (at(w, i)->bytes > 0 && tp_selection_has_time(sel, at(w, i)->ts))
            add_owned(w, at(w, i), &o);
    w->d->n_allocated = close_owners(&o, &w->d->allocated);
}

static void attribute_peak(walk *w)
{
    TP_OWN(tp_number_map) live = {0};
    int64_t count = 0, bytes = 0, best = INT64_MIN;
    size_t peak = 0;
    for (size_t i = 0; i < w->n; i++)
        if (w->d->points[i].allocated > best) {
            best = w->d->points[i].allocated;
            peak = i;
        }
    for (size_t i = 0; i <= peak; i++)
        tp_number_map_set(&live, at(w, i)->addr, at(w, i)->bytes > 0 ? (uint32_t)i : GONE);
    w->d->n_at_peak = list_owners(w, &live, &w->d->at_peak, &count, &bytes);
}

/* In use at the end of every step: the last value before it. */
static tp_status follow_steps(walk *w, const tp_steps *steps, double limit, tp_error *err)
{
    tp_memory_device *d = w->d;
    size_t k = 0;
    d->step_bytes = tp_vec_new(steps->n, sizeof *d->step_bytes);
    for (size_t s = 0; s < steps->n; s++) {
        while (k < w->n && d->points[k].ts <= steps->v[s].end)
            k++;
        if (k == 0)
            continue;
        d->step_bytes[d->n_steps++] = (double)d->points[k - 1].allocated;
    }
    const tp_leak_options options = {.limit_bytes = limit};
    return tp_leak_test(d->step_bytes, d->n_steps, &options, &d->leak, err);
}

/* What is in use has to be known for it to fill a device. */
static double limit_of(const tp_events *e, const tp_memory_device *d)
{
    for (size_t i = 0; i < e->info.n_devices && !is_host(d->device_type) && d->has_totals; i++)
        if (e->info.devices[i].id == d->device && e->info.devices[i].memory_bytes > 0)
            return (double)e->info.devices[i].memory_bytes;
    return 0;
}

static tp_status analyze_device(const tp_selection *sel, walk *w, tp_error *err)
{
    tp_memory_device *d = w->d;
    follow(w);
    if (d->has_addresses) {
        d->n_kept = list_owners(w, &w->live, &d->kept, &d->never_freed, &d->never_freed_bytes);
        attribute_peak(w);
    } else {
        d->never_freed = d->never_freed_bytes = d->older_frees = d->older_free_bytes = TP_UNKNOWN;
    }
    attribute_allocations(sel, w);
    tp_status status = follow_steps(w, &sel->steps, limit_of(w->e, d), err);
    tp_number_map_release(&w->live);
    free(w->lifetimes);
    return status;
}

tp_status tp_memory_usage_make(const tp_selection *sel, const tp_operators *ops,
                               tp_memory_usage *ret, tp_error *err)
{
    const tp_events *e = sel->events;
    tp_memory_usage u = {0};
    tp_status status = TP_OK;
    size_t cap = 0;
    TP_FREED uint32_t *order = order_instants(e);
    for (size_t from = 0, to; from < e->n_memory && status == TP_OK; from = to) {
        const tp_memory_instant *first = &e->memory[order[from]];
        for (to = from + 1; to < e->n_memory; to++) {
            const tp_memory_instant *m = &e->memory[order[to]];
            if (m->device_type != first->device_type || m->device != first->device)
                break;
        }
        u.devices = tp_vec_room(u.devices, &cap, u.n + 1, sizeof *u.devices);
        tp_memory_device *d = &u.devices[u.n++];
        *d = (tp_memory_device){
            .device_type = first->device_type, .device = first->device, .n = to - from};
        label(d);
        walk w = {.e = e, .ops = ops, .order = order + from, .n = to - from, .d = d};
        status = analyze_device(sel, &w, err);
    }
    if (status != TP_OK) {
        tp_memory_usage_release(&u);
        return status;
    }
    *ret = u;
    return TP_OK;
}

void tp_memory_usage_release(tp_memory_usage *u)
{
    for (size_t i = 0; i < u->n; i++) {
        free(u->devices[i].at_peak);
        free(u->devices[i].kept);
        free(u->devices[i].allocated);
        free(u->devices[i].points);
        free(u->devices[i].step_bytes);
    }
    free(u->devices);
    *u = (tp_memory_usage){0};
}
