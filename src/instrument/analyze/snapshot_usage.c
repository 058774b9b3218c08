/* snapshot_usage.c - figures of a PyTorch memory snapshot: fragmentation, lifetimes, peak and
 * its owners. */
#include "instrument/analyze/snapshot_usage.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/vec.h"
#include "instrument/analyze/kernels.h"
#include "instrument/analyze/sort.h"
#include "instrument/ingest/number_map.h"

enum { GONE = TP_NO_ROW - 1 }; /* the address was freed */

static int64_t known(int64_t v) { return v == TP_UNKNOWN ? 0 : v; }

/* From one counter per string to a list of those that occurred. */
static tp_text_count *list_counts(const int64_t *of_text, size_t n_texts, size_t *ret_n)
{
    tp_text_count *list = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < n_texts; i++)
        if (of_text[i]) {
            list = tp_vec_room(list, &cap, n + 1, sizeof *list);
            list[n++] = (tp_text_count){(uint32_t)i, of_text[i]};
        }
    *ret_n = n;
    return list;
}

/* ---- the ring of one device ---- */

typedef struct {
    const tp_snapshot *snapshot;
    tp_number_map at; /* address -> entry that allocated it, or GONE */
    int64_t *lifetimes;
    size_t n_lifetimes, cap_lifetimes;
    tp_snapshot_device *d;
} ring;

static void on_alloc(ring *r, size_t i)
{
    const tp_mem_entry *e = &r->snapshot->entries[i];
    r->d->alloc_bytes = tp_add_saturating(r->d->alloc_bytes, known(e->size));
    r->d->net_bytes = tp_add_saturating(r->d->net_bytes, known(e->size));
    tp_allocation_made(&r->d->allocations, known(e->size));
    tp_number_map_set(&r->at, e->addr, (uint32_t)i);
}

static void on_free(ring *r, size_t i)
{
    const tp_mem_entry *e = &r->snapshot->entries[i];
    uint32_t from = tp_number_map_get(&r->at, e->addr);
    r->d->freed_bytes = tp_add_saturating(r->d->freed_bytes, known(e->size));
    r->d->net_bytes = tp_subtract_saturating(r->d->net_bytes, known(e->size));
    if (from == TP_NO_ROW || from == GONE) {
        r->d->unmatched_frees++;
        r->d->unmatched_bytes = tp_add_saturating(r->d->unmatched_bytes, known(e->size));
        return;
    }
    tp_number_map_set(&r->at, e->addr, GONE);
    const tp_mem_entry *a = &r->snapshot->entries[from];
    bool has_times = a->time_us != TP_UNKNOWN && e->time_us != TP_UNKNOWN;
    int64_t lived = has_times ? tp_subtract_saturating(e->time_us, a->time_us) : TP_UNKNOWN;
    tp_allocation_freed(&r->d->allocations, known(a->size),
                        lived >= 0 && lived < INT64_MAX / 1000 ? lived * 1000 : TP_UNKNOWN);
    if (!has_times)
        return;
    r->lifetimes =
        tp_vec_room(r->lifetimes, &r->cap_lifetimes, r->n_lifetimes + 1, sizeof *r->lifetimes);
    r->lifetimes[r->n_lifetimes++] = lived;
}

static void count_live(ring *r)
{
    for (size_t slot = 0; slot < r->at.n_slots; slot++) {
        uint32_t from = r->at.slots[slot].value;
        if (from == TP_NO_ROW || from == GONE)
            continue;
        r->d->live++;
        r->d->live_bytes =
            tp_add_saturating(r->d->live_bytes, known(r->snapshot->entries[from].size));
    }
}

static int64_t active_at_end(const tp_snapshot *s, uint32_t device)
{
    int64_t sum = 0;
    for (size_t i = 0; i < s->n_blocks; i++) {
        const tp_mem_block *b = &s->blocks[i];
        bool is_active = b->state == TP_BLOCK_ALLOCATED || b->state == TP_BLOCK_PENDING;
        if (is_active && s->segments[b->segment].device == (int64_t)device)
            sum = tp_add_saturating(
                sum, b->requested != TP_UNKNOWN && b->requested > 0 ? b->requested : b->size);
    }
    return sum;
}

static void summarize_lifetimes(ring *r)
{
    tp_snapshot_device *d = r->d;
    d->lifetime_us_median = d->lifetime_us_p90 = TP_UNKNOWN;
    if (r->n_lifetimes == 0)
        return;
    tp_sort_i64(r->lifetimes, r->n_lifetimes);
    d->lifetime_us_median = r->lifetimes[r->n_lifetimes / 2];
    d->lifetime_us_p90 = tp_rank_quantile(r->lifetimes, r->n_lifetimes, 0.9);
}

static void read_ring(const tp_snapshot *s, uint32_t device, tp_snapshot_device *d)
{
    size_t first = s->device_first[device], end = s->device_first[device + 1];
    ring r = {.snapshot = s, .d = d};
    int64_t largest = INT64_MIN, *actions = tp_vec_new(s->strings.n, sizeof *actions);
    *d = (tp_snapshot_device){.device = device, .entries = (int64_t)(end - first)};
    for (size_t i = first; i < end; i++) {
        const tp_mem_entry *e = &s->entries[i];
        actions[e->action_text]++;
        if (e->action == TP_MEM_ALLOC)
            on_alloc(&r, i);
        if (e->action == TP_MEM_FREE_COMPLETED)
            on_free(&r, i);
        if (e->action == TP_MEM_OOM) {
            d->ooms++;
            d->last_oom = i;
        }
        if (d->net_bytes > d->peak_net_bytes)
            d->peak_net_bytes = d->net_bytes;
        if (d->net_bytes > largest) {
            largest = d->net_bytes;
            d->peak_entry = i;
        }
    }
    d->actions = list_counts(actions, s->strings.n, &d->n_actions);
    free(actions);
    count_live(&r);
    summarize_lifetimes(&r);
    int64_t from = s->entries[first].time_us, to = s->entries[end - 1].time_us;
    d->duration_us =
        from == TP_UNKNOWN || to == TP_UNKNOWN ? TP_UNKNOWN : tp_subtract_saturating(to, from);
    d->initial_bytes = tp_subtract_saturating(active_at_end(s, device), d->net_bytes);
    d->peak_bytes = tp_add_saturating(d->initial_bytes, largest > 0 ? largest : 0);
    tp_number_map_release(&r.at);
    free(r.lifetimes);
}

/* ---- the state at the end ---- */

static void count_bytes(tp_stack_bytes *to, int64_t bytes)
{
    to->bytes = tp_add_saturating(to->bytes, bytes);
    to->count++;
}

TP_ORDER(by_bytes, tp_stack_bytes, TP_COMPARE(y->bytes, x->bytes) ?: TP_COMPARE(x->stack, y->stack))

/* From one counter per stack to a list, most bytes first. */
static size_t gather(tp_stack_bytes *by_stack, size_t n, tp_stack_bytes **ret)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (by_stack[i].count > 0)
            by_stack[kept++] = by_stack[i];
    if (kept)
        qsort(by_stack, kept, sizeof *by_stack, by_bytes);
    *ret = by_stack;
    return kept;
}

static tp_stack_bytes *new_counters(const tp_snapshot *s)
{
    tp_stack_bytes *v = tp_vec_new(s->n_stacks + 1, sizeof *v);
    for (size_t i = 0; i <= s->n_stacks; i++)
        v[i].stack = (uint32_t)i;
    return v;
}

static void add_blocks(const tp_snapshot *s, tp_snapshot_usage *u)
{
    tp_stack_bytes *by_stack = new_counters(s);
    TP_FREED int64_t *states = tp_vec_new(s->strings.n, sizeof *states);
    for (size_t i = 0; i < s->n_blocks; i++) {
        const tp_mem_block *b = &s->blocks[i];
        states[b->state_text]++;
        if (b->state == TP_BLOCK_INACTIVE) {
            u->inactive_bytes = tp_add_saturating(u->inactive_bytes, known(b->size));
            if (b->size > u->largest_inactive)
                u->largest_inactive = b->size;
            continue;
        }
        if (b->requested != TP_UNKNOWN && b->requested > 0)
            u->rounding_bytes = tp_add_saturating(
                u->rounding_bytes, tp_subtract_saturating(known(b->size), b->requested));
        count_bytes(&by_stack[b->stack], known(b->size));
    }
    u->states = list_counts(states, s->strings.n, &u->n_states);
    u->n_final = gather(by_stack, s->n_stacks, &u->final);
}

static void add_segments(const tp_snapshot *s, tp_snapshot_usage *u)
{
    for (size_t i = 0; i < s->n_segments; i++) {
        const tp_mem_segment *g = &s->segments[i];
        u->reserved = tp_add_saturating(u->reserved, known(g->total));
        u->allocated = tp_add_saturating(u->allocated, known(g->allocated));
        u->active = tp_add_saturating(u->active, known(g->active));
        u->requested = u->requested == TP_UNKNOWN || g->requested == TP_UNKNOWN
                           ? TP_UNKNOWN
                           : tp_add_saturating(u->requested, g->requested);
        if (known(g->active) == 0)
            u->free_segment_bytes = tp_add_saturating(u->free_segment_bytes, known(g->total));
    }
}

void tp_snapshot_usage_make(const tp_snapshot *s, tp_snapshot_usage *ret)
{
    tp_snapshot_usage u = {.devices = tp_vec_new(s->n_devices, sizeof *u.devices)};
    add_segments(s, &u);
    add_blocks(s, &u);
    for (size_t d = 0; d < s->n_devices; d++)
        if (s->device_first[d + 1] > s->device_first[d])
            read_ring(s, (uint32_t)d, &u.devices[u.n_devices++]);
    *ret = u;
}

void tp_snapshot_usage_release(tp_snapshot_usage *u)
{
    for (size_t i = 0; i < u->n_devices; i++)
        free(u->devices[i].actions);
    free(u->devices);
    free(u->states);
    free(u->final);
    *u = (tp_snapshot_usage){0};
}

/* ---- the peak ---- */

size_t tp_snapshot_at_peak(const tp_snapshot *s, const tp_snapshot_device *d, tp_stack_bytes **ret)
{
    tp_stack_bytes *by_stack = new_counters(s);
    TP_OWN(tp_number_map) live = {0};
    int64_t older = d->initial_bytes;
    size_t first = s->device_first[d->device];
    for (size_t i = first; i <= d->peak_entry; i++) {
        const tp_mem_entry *e = &s->entries[i];
        if (e->action == TP_MEM_ALLOC) {
            tp_number_map_set(&live, e->addr, (uint32_t)i);
        } else if (e->action == TP_MEM_FREE_COMPLETED) {
            uint32_t from = tp_number_map_get(&live, e->addr);
            if (from == TP_NO_ROW || from == GONE)
                older = tp_subtract_saturating(older, known(e->size));
            tp_number_map_set(&live, e->addr, GONE);
        }
    }
    for (size_t slot = 0; slot < live.n_slots; slot++) {
        uint32_t from = live.slots[slot].value;
        if (from == TP_NO_ROW || from == GONE)
            continue;
        count_bytes(&by_stack[s->entries[from].stack], known(s->entries[from].size));
    }
    /* Blocks of the end that the ring neither made nor freed lived at the peak too. */
    TP_OWN(tp_number_map) made = {0};
    for (size_t i = first; i < s->device_first[d->device + 1]; i++)
        if (s->entries[i].action == TP_MEM_ALLOC)
            tp_number_map_add(&made, s->entries[i].addr, 1);
    for (size_t i = 0; i < s->n_blocks; i++) {
        const tp_mem_block *b = &s->blocks[i];
        if (b->state == TP_BLOCK_INACTIVE || s->segments[b->segment].device != d->device ||
            tp_number_map_get(&made, b->addr) != TP_NO_ROW)
            continue;
        int64_t bytes = b->requested > 0 ? b->requested : known(b->size);
        count_bytes(&by_stack[b->stack], bytes);
        older = tp_subtract_saturating(older, bytes);
    }
    if (older > 0)
        count_bytes(&by_stack[0], older);
    return gather(by_stack, s->n_stacks, ret);
}

/* ---- stacks ---- */

/* Frames of the recording itself and of the allocator say nothing about who asked. */
static bool is_plumbing(const char *function)
{
    static const char *const words[] = {
        "torch::unwind", "CapturedTraceback",    "gatherTraceback", "gather_with_cpp",
        "c10::",         "CUDACachingAllocator", "at::detail::",    "TensorBase at::"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(function, words[i]))
            return true;
    return false;
}

void tp_snapshot_stack_text(const tp_snapshot *s, uint32_t stack, size_t depth, tp_buf *ret)
{
    if (stack >= s->n_stacks || s->stacks[stack].n == 0) {
        tp_buf_adds(ret, "(no stack recorded)");
        return;
    }
    const tp_mem_stack *k = &s->stacks[stack];
    size_t n_python = 0, shown = 0;
    for (uint32_t i = 0; i < k->n; i++)
        n_python +=
            tp_str_ends(tp_snapshot_str(s, s->frames[s->stack_frames[k->first + i]].file), ".py");
    for (uint32_t i = 0; i < k->n && shown < depth; i++) {
        const tp_mem_frame *f = &s->frames[s->stack_frames[k->first + i]];
        const char *file = tp_snapshot_str(s, f->file), *function = tp_snapshot_str(s, f->function);
        bool is_last = i + 1 == k->n && shown == 0;
        if (!is_last && (n_python ? !tp_str_ends(file, ".py") : is_plumbing(function)))
            continue;
        if (shown++)
            tp_buf_adds(ret, " < ");
        if (tp_str_ends(file, ".py"))
            tp_buf_addf(ret, "%s:%lld ", tp_str_after(file, '/'), (long long)f->line);
        tp_buf_adds(ret, function);
    }
}
