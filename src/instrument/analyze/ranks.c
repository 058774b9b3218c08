/* ranks.c - matches collectives over ranks, aligns the clocks by their common ends, and names
 * who is waited for. */
#include "instrument/analyze/ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/vec.h"
#include "instrument/analyze/communication.h"
#include "instrument/analyze/sort.h"

/* One collective on one rank. */
typedef struct {
    int64_t start, end; /* Unix time where the file says so */
    bool is_there;
} visit;

typedef struct {
    tp_collective collective;
    int64_t bytes, group_size;
} meeting;

typedef struct {
    tp_string_table keys; /* "group/collective/number" */
    meeting *meetings;    /* by number of the key, from 1 */
    visit *visits;        /* meeting * n_ranks + rank */
    size_t n, cap_meetings, cap_visits, n_ranks;
    int64_t with_sequence, without_sequence;
} table;

static uint32_t meeting_of(table *t, const char *key)
{
    uint32_t id = tp_string_add(&t->keys, key, strlen(key));
    if (id < t->n)
        return id;
    t->meetings = tp_vec_room(t->meetings, &t->cap_meetings, (size_t)id + 1, sizeof *t->meetings);
    t->visits =
        tp_vec_room(t->visits, &t->cap_visits, ((size_t)id + 1) * t->n_ranks, sizeof *t->visits);
    for (; t->n <= id; t->n++) {
        t->meetings[t->n] = (meeting){.bytes = -1, .group_size = TP_UNKNOWN};
        memset(t->visits + t->n * t->n_ranks, 0, t->n_ranks * sizeof *t->visits);
    }
    return id;
}

/* How often each (group, collective) was seen on the rank at hand. */
static int64_t next_ordinal(tp_string_table *kinds, int64_t **counts, size_t *cap, const char *kind)
{
    uint32_t id = tp_string_add(kinds, kind, strlen(kind));
    size_t had = *cap;
    *counts = tp_vec_room(*counts, cap, (size_t)id + 1, sizeof **counts);
    for (size_t i = had; i < *cap; i++)
        (*counts)[i] = 0;
    return (*counts)[id]++;
}

enum { KIND = 200 };

/* PyTorch names the other end alone: "Dst Rank" of a send, "Src Rank" of a receive. */
static bool find_ends(const tp_events *e, const tp_event_collective *c, int64_t own,
                      int64_t *ret_source, int64_t *ret_target)
{
    const char *name = tp_events_str(e, c->name);
    bool sends = strcasestr(name, "send"), receives = strcasestr(name, "recv");
    *ret_source = c->source != TP_UNKNOWN ? c->source : sends && !receives ? own : TP_UNKNOWN;
    *ret_target = c->target != TP_UNKNOWN ? c->target : receives && !sends ? own : TP_UNKNOWN;
    return *ret_source != TP_UNKNOWN && *ret_target != TP_UNKNOWN;
}

/* Collectives of a group have one count on all of its ranks.  What goes from one rank to one
 * other is counted by each rank for itself: the k-th from the one to the other meet.
 * False: which one it meets cannot be told. */
static bool kind_of(const tp_events *e, const tp_event_collective *c, tp_collective what,
                    int64_t own, char kind[KIND], bool *ret_has_sequence)
{
    bool has_name = c && c->name, is_pair = has_name && what == TP_COLLECTIVE_SEND_RECV;
    const char *group = has_name ? tp_events_str(e, c->group) : "";
    int64_t source, target;
    *ret_has_sequence = has_name && !is_pair && c->sequence != TP_UNKNOWN && c->group;
    if (is_pair && find_ends(e, c, own, &source, &target))
        snprintf(kind, KIND, "%.120s/%lld>%lld", group, (long long)source, (long long)target);
    else
        snprintf(kind, KIND, "%.120s/%s", group, *ret_has_sequence ? "" : tp_collective_name(what));
    return !is_pair || c->group_size == 2 || strchr(kind, '>');
}

static void add_rank(table *t, const tp_selection *sel, size_t rank, tp_rank_row *row)
{
    const tp_events *e = sel->events;
    int64_t base = e->info.base_ns == TP_UNKNOWN ? 0 : e->info.base_ns, *counts = NULL;
    TP_OWN(tp_string_table) kinds = {0};
    size_t cap = 0;
    tp_string_table_init(&kinds);
    for (size_t i = 0; i < sel->n; i++) {
        const tp_activity *a = &sel->v[i];
        char kind[KIND], key[KIND + 32];
        bool has_sequence;
        if (a->work != TP_WORK_COMM)
            continue;
        const tp_event_collective *c = tp_events_collective(e, a->event);
        bool has_name = c && c->name;
        tp_collective what = has_name ? tp_collective_of_metadata(tp_events_name_text(e, c->name))
                                      : tp_collective_of_kernel(tp_events_name_text(e, a->name));
        row->collectives++;
        if (!kind_of(e, c, what, row->rank, kind, &has_sequence)) {
            row->pairs_unknown++;
            continue;
        }
        int64_t number = has_sequence ? c->sequence : next_ordinal(&kinds, &counts, &cap, kind);
        snprintf(key, sizeof key, "%s/%lld", kind, (long long)number);
        *(has_sequence ? &t->with_sequence : &t->without_sequence) += 1;
        uint32_t id = meeting_of(t, key);
        meeting *m = &t->meetings[id];
        m->collective = what;
        if (has_name) {
            m->group_size = c->group_size;
            m->bytes = tp_comm_bytes(e, c);
        }
        t->visits[id * t->n_ranks + rank] =
            (visit){tp_add_saturating(base, a->start), tp_add_saturating(base, a->end), true};
    }
    free(counts);
}

/* ---- clocks ---- */

static int64_t median_of(int64_t *v, size_t n)
{
    tp_sort_i64(v, n);
    return v[n / 2];
}

static bool have_clocks(const tp_selection *const *selections, size_t n)
{
    bool all = n > 1;
    for (size_t r = 0; r < n; r++)
        all &= selections[r]->events->info.clock_offset_ns != TP_UNKNOWN;
    return all;
}

/* Both are against the clock of rank 0, which need not be among the files. */
static void take_offset(const tp_selection *const *selections, size_t rank, tp_rank_row *row)
{
    const tp_trace_info *first = &selections[0]->events->info;
    const tp_trace_info *own = &selections[rank]->events->info;
    row->offset_ns = tp_subtract_saturating(own->clock_offset_ns, first->clock_offset_ns);
    row->offset_spread_ns =
        rank == 0 ? 0 : tp_add_saturating(own->clock_error_ns, first->clock_error_ns);
}

/* Of `rank` against `other`, by what both took part in; false: nothing. */
static bool compare_clocks(const table *t, size_t rank, size_t other, int64_t *ret_offset,
                           int64_t *ret_spread)
{
    TP_FREED int64_t *differences = tp_vec_new(t->n, sizeof *differences);
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const visit *v = &t->visits[i * t->n_ranks];
        if (v[other].is_there && v[rank].is_there)
            differences[n++] = tp_subtract_saturating(v[rank].end, v[other].end);
    }
    if (n == 0)
        return false;
    *ret_offset = median_of(differences, n);
    for (size_t i = 0; i < n; i++) {
        int64_t d = tp_subtract_saturating(differences[i], *ret_offset);
        differences[i] = d < 0 ? -d : d;
    }
    *ret_spread = median_of(differences, n);
    return true;
}

/* All that share a collective with an aligned rank are aligned by it, and so on; what is left
 * begins a set of its own.  The first rank of a set has offset 0. */
static void find_offsets(const table *t, tp_rank_table *ret)
{
    TP_FREED size_t *queue = tp_vec_new(t->n_ranks, sizeof *queue);
    tp_rank_row *rows = ret->ranks;
    for (size_t r = 0; r < t->n_ranks; r++)
        rows[r].offset_ns = rows[r].offset_spread_ns = TP_UNKNOWN;
    for (size_t first = 0; first < t->n_ranks; first++) {
        size_t n = 0;
        if (rows[first].offset_ns != TP_UNKNOWN ||
            !compare_clocks(t, first, first, &rows[first].offset_ns, &rows[first].offset_spread_ns))
            continue;
        queue[n++] = first;
        for (size_t at = 0; at < n; at++)
            for (size_t r = 0; r < t->n_ranks; r++) {
                const tp_rank_row *by = &rows[queue[at]];
                int64_t offset, spread;
                if (rows[r].offset_ns != TP_UNKNOWN ||
                    !compare_clocks(t, r, queue[at], &offset, &spread))
                    continue;
                rows[r].offset_ns = tp_add_saturating(by->offset_ns, offset);
                rows[r].offset_spread_ns = tp_add_saturating(by->offset_spread_ns, spread);
                queue[n++] = r;
            }
        if (n == 1 && t->n_ranks > 1) { /* alone */
            rows[first].offset_ns = rows[first].offset_spread_ns = TP_UNKNOWN;
            continue;
        }
        for (size_t i = 0; i < n; i++)
            rows[queue[i]].set = ret->n_sets;
        ret->n_sets++;
    }
}

/* Of the set that lost most, the rank that waits least. */
static void find_straggler(tp_rank_table *ret)
{
    TP_FREED int64_t *lost = tp_vec_new(ret->n_sets + 1, sizeof *lost);
    size_t worst = 0;
    for (size_t r = 0; r < ret->n_ranks; r++) {
        int64_t *of_set = &lost[ret->ranks[r].set];
        *of_set = tp_add_saturating(*of_set, ret->ranks[r].wait_ns);
        ret->lost_ns = tp_add_saturating(ret->lost_ns, ret->ranks[r].wait_ns);
    }
    for (size_t s = 1; s < ret->n_sets; s++)
        worst = lost[s] > lost[worst] ? s : worst;
    for (size_t r = 0; r < ret->n_ranks; r++) {
        const tp_rank_row *row = &ret->ranks[r];
        bool is_least =
            ret->straggler == ret->n_ranks || row->wait_ns < ret->ranks[ret->straggler].wait_ns;
        if (row->matched && row->set == worst && is_least)
            ret->straggler = r;
    }
}

/* ---- waiting ---- */

typedef struct {
    tp_rank_collective row;
    int64_t *transfers, *skews;
    size_t n, cap_transfers, cap_skews;
} pile;

static pile *pile_of(pile **piles, size_t *n, size_t *cap, const meeting *m)
{
    for (size_t i = 0; i < *n; i++) {
        const tp_rank_collective *r = &(*piles)[i].row;
        if (r->collective == m->collective && r->bytes == m->bytes &&
            r->group_size == m->group_size)
            return &(*piles)[i];
    }
    *piles = tp_vec_room(*piles, cap, *n + 1, sizeof **piles);
    (*piles)[*n] = (pile){
        .row = {.collective = m->collective, .bytes = m->bytes, .group_size = m->group_size}};
    return &(*piles)[(*n)++];
}

/* Earliest and latest aligned start, shortest duration; false with fewer than two ranks. */
static bool look_at(const table *t, size_t meeting_id, tp_rank_row *rows, int64_t *ret_skew,
                    int64_t *ret_transfer)
{
    const visit *v = &t->visits[meeting_id * t->n_ranks];
    int64_t first = INT64_MAX, latest = INT64_MIN, shortest = INT64_MAX;
    size_t present = 0, last = 0;
    for (size_t r = 0; r < t->n_ranks; r++) {
        if (!v[r].is_there || rows[r].offset_ns == TP_UNKNOWN)
            continue;
        int64_t start = tp_subtract_saturating(v[r].start, rows[r].offset_ns);
        int64_t duration = v[r].end - v[r].start;
        present++;
        first = start < first ? start : first;
        shortest = duration < shortest ? duration : shortest;
        if (start > latest) {
            latest = start;
            last = r;
        }
    }
    if (present < 2)
        return false;
    for (size_t r = 0; r < t->n_ranks; r++) {
        if (!v[r].is_there || rows[r].offset_ns == TP_UNKNOWN)
            continue;
        rows[r].matched++;
        int64_t start = tp_subtract_saturating(v[r].start, rows[r].offset_ns);
        rows[r].wait_ns = tp_add_saturating(rows[r].wait_ns, tp_subtract_saturating(latest, start));
        rows[r].comm_ns = tp_add_saturating(rows[r].comm_ns, v[r].end - v[r].start);
    }
    rows[last].last_to_arrive += latest > first;
    *ret_skew = tp_subtract_saturating(latest, first);
    *ret_transfer = shortest;
    return true;
}

static void finish(pile *p, tp_rank_collective *ret)
{
    *ret = p->row;
    ret->count = (int64_t)p->n;
    tp_sort_i64(p->transfers, p->n);
    tp_sort_i64(p->skews, p->n);
    ret->transfer_p50_ns = tp_rank_quantile(p->transfers, p->n, 0.5);
    ret->skew_p50_ns = tp_rank_quantile(p->skews, p->n, 0.5);
    ret->skew_max_ns = p->skews[p->n - 1];
    ret->algbw = ret->busbw = (double)NAN;
    if (ret->bytes > 0 && ret->transfer_p50_ns > 0) {
        ret->algbw = (double)ret->bytes / (double)ret->transfer_p50_ns * 1e9;
        ret->busbw = ret->algbw * tp_collective_factor(ret->collective, ret->group_size);
    }
    free(p->transfers);
    free(p->skews);
}

TP_ORDER(by_skew, tp_rank_collective, TP_COMPARE(y->skew_sum_ns, x->skew_sum_ns))

static void add_up(const table *t, tp_rank_table *ret)
{
    TP_FREED pile *piles = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < t->n; i++) {
        int64_t skew, transfer;
        if (!look_at(t, i, ret->ranks, &skew, &transfer))
            continue;
        pile *p = pile_of(&piles, &n, &cap, &t->meetings[i]);
        p->transfers = tp_vec_room(p->transfers, &p->cap_transfers, p->n + 1, sizeof *p->transfers);
        p->skews = tp_vec_room(p->skews, &p->cap_skews, p->n + 1, sizeof *p->skews);
        p->transfers[p->n] = transfer;
        p->skews[p->n++] = skew;
        p->row.skew_sum_ns = tp_add_saturating(p->row.skew_sum_ns, skew);
        ret->matched++;
    }
    ret->collectives = tp_vec_new(n, sizeof *ret->collectives);
    for (size_t i = 0; i < n; i++)
        finish(&piles[i], &ret->collectives[ret->n_collectives++]);
    if (n)
        qsort(ret->collectives, n, sizeof *ret->collectives, by_skew);
}

void tp_ranks_make(const tp_selection *const *selections, const int64_t *ranks, size_t n,
                   tp_rank_table *ret)
{
    tp_rank_table out = {.ranks = tp_vec_new(n, sizeof *out.ranks), .n_ranks = n, .straggler = n};
    table t = {.n_ranks = n};
    tp_string_table_init(&t.keys);
    for (size_t r = 0; r < n; r++) {
        out.ranks[r] = (tp_rank_row){.rank = ranks[r]};
        out.ranks[r].has_work =
            tp_breakdown_add_up(selections[r]->v, selections[r]->n, selections[r]->n_devices, NULL,
                                &out.ranks[r].sum) > 0;
        out.ranks[r].n_devices = selections[r]->n_devices;
        out.ranks[r].by_gloo = (int64_t)selections[r]->n_gloo;
        add_rank(&t, selections[r], r, &out.ranks[r]);
    }
    out.by_message = have_clocks(selections, n);
    for (size_t r = 0; r < n && out.by_message; r++)
        take_offset(selections, r, &out.ranks[r]);
    if (!out.by_message)
        find_offsets(&t, &out);
    add_up(&t, &out);
    find_straggler(&out);
    out.by_sequence = t.with_sequence > 0 && t.with_sequence >= t.without_sequence;
    tp_string_table_release(&t.keys);
    free(t.meetings);
    free(t.visits);
    *ret = out;
}

void tp_ranks_release(tp_rank_table *t)
{
    free(t->ranks);
    free(t->collectives);
    *t = (tp_rank_table){0};
}
