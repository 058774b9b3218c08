/* Which call of NCCL launched which kernel, and how much it moved.
 *
 * NCCL opens a range around each call of its interface.  A kernel belongs to the range of
 * its launching thread that contains the launch: the range of the call itself, or that of
 * ncclGroupEnd(), which launches what was called since ncclGroupStart():
 *
 *     ncclGroupStart | ncclSend | ncclRecv | ncclSend | ncclRecv | ncclGroupEnd
 *                      4 MiB      4 MiB      4 MiB      4 MiB       launches one kernel
 *
 * One kernel then serves several calls, and moves the sum of their messages.  Where the
 * calls of a group cannot be told apart the kernel stays without a size. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "instrument/ingest/nsight_payload.h"

typedef enum { CALL_PLAIN, CALL_GROUP_START, CALL_GROUP_END } call_kind;

typedef struct {
    int64_t start, end, thread; /* thread: the process above, as TP_NSIGHT_THREAD */
    uint32_t name;
    call_kind kind;
    bool has_payload;
    tp_nsight_payload payload;
} call;

/* ncclCommInitRank(): who is who in a communicator. */
typedef struct {
    int64_t communicator, pid, device, ranks, rank;
} member;

struct tp_nsight_calls {
    const tp_nsight *nsight;
    tp_nsight_schemas schemas;
    call *v;
    member *members;
    size_t n, cap, n_members, members_cap;
    size_t n_ranges; /* of NCCL, with a payload or without */
    uint64_t n_payloads, n_odd;
};

typedef struct {
    uint32_t event;      /* row of the kernel */
    int64_t correlation; /* then its launch: */
    int64_t launched, thread;
    size_t owner; /* call whose range contains the launch; SIZE_MAX: none */
    bool is_launched;
} kernel;

enum { GROUP_CALLS = 1024, STEPS_BACK = 8192 };

static int64_t thread_of(int64_t pid, int64_t tid) { return (int64_t)((uint64_t)pid << 24) | tid; }

tp_nsight_calls *tp_nsight_calls_new(tp_nsight *n)
{
    tp_nsight_calls *calls = calloc(1, sizeof *calls);
    if (!calls)
        return NULL;
    calls->nsight = n;
    tp_nsight_schemas_read(n, &calls->schemas);
    return calls;
}

void tp_nsight_calls_free(tp_nsight_calls *calls)
{
    if (!calls)
        return;
    tp_nsight_schemas_release(&calls->schemas);
    free(calls->v);
    free(calls->members);
    free(calls);
}

/* ---- the ranges ---- */

static call_kind kind_of(const char *name)
{
    if (strcmp(name, "ncclGroupStart") == 0)
        return CALL_GROUP_START;
    return strcmp(name, "ncclGroupEnd") == 0 ? CALL_GROUP_END : CALL_PLAIN;
}

static void add_member(tp_nsight_calls *c, const call *init)
{
    const tp_nsight_payload *p = &init->payload;
    if (!p->has[TP_PAYLOAD_COMMUNICATOR] || !p->has[TP_PAYLOAD_RANKS])
        return;
    int64_t pid = init->thread >> 24;
    int64_t device = p->has[TP_PAYLOAD_DEVICE] ? p->v[TP_PAYLOAD_DEVICE] : TP_UNKNOWN;
    *TP_VEC_PUSH(c->members, c->n_members, c->members_cap) =
        (member){.communicator = p->v[TP_PAYLOAD_COMMUNICATOR],
                 .pid = pid,
                 .device = tp_nsight_device(c->nsight, pid, device),
                 .ranks = p->v[TP_PAYLOAD_RANKS],
                 .rank = p->has[TP_PAYLOAD_RANK] ? p->v[TP_PAYLOAD_RANK] : TP_UNKNOWN};
}

void tp_nsight_calls_add(tp_nsight_calls *c, const tp_nsight_range *range, const char *name)
{
    if (strncmp(name, "nccl", 4) != 0 || range->start == TP_UNKNOWN || range->end == TP_UNKNOWN)
        return;
    call one = {.start = range->start,
                .end = range->end,
                .thread = thread_of(tp_nsight_pid(range->thread), tp_nsight_tid(range->thread)),
                .name = range->name,
                .kind = kind_of(name)};
    c->n_ranges++;
    if (range->n_payload) {
        one.has_payload = tp_nsight_payload_decode(&c->schemas, range->domain, range->payload,
                                                   range->n_payload, &one.payload);
        *(one.has_payload ? &c->n_payloads : &c->n_odd) += 1;
    }
    if (one.has_payload)
        add_member(c, &one);
    if (one.kind == CALL_PLAIN && !(one.has_payload && one.payload.has[TP_PAYLOAD_BYTES]))
        return;
    *TP_VEC_PUSH(c->v, c->n, c->cap) = one;
}

TP_ORDER(by_thread, call,
         TP_COMPARE(x->thread, y->thread)
                 ?: TP_COMPARE(x->start, y->start)
                 ?: TP_COMPARE(y->end, x->end))

TP_ORDER(by_communicator, member,
         TP_COMPARE(x->communicator, y->communicator)
                 ?: TP_COMPARE(x->pid, y->pid)
                 ?: TP_COMPARE(x->device, y->device))

/* ---- kernels and their launches ---- */

TP_ORDER(by_correlation, kernel, TP_COMPARE(x->correlation, y->correlation))

TP_ORDER(by_owner, kernel,
         TP_COMPARE(x->owner, y->owner)
                 ?: TP_COMPARE(x->launched, y->launched)
                 ?: TP_COMPARE(x->event, y->event))

static kernel *find_kernels(const tp_events *e, size_t *ret_n)
{
    kernel *v = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < e->n; i++)
        if (e->kind[i] == TP_EVENT_KERNEL && strstr(tp_events_str(e, e->name[i]), "nccl"))
            *TP_VEC_PUSH(v, n, cap) =
                (kernel){.event = (uint32_t)i, .correlation = e->correlation[i], .owner = SIZE_MAX};
    if (n)
        qsort(v, n, sizeof *v, by_correlation);
    *ret_n = n;
    return v;
}

static void find_launches(const tp_events *e, kernel *v, size_t n)
{
    for (size_t i = 0; i < e->n && n; i++) {
        if ((e->kind[i] != TP_EVENT_RUNTIME && e->kind[i] != TP_EVENT_DRIVER) ||
            e->correlation[i] == TP_UNKNOWN)
            continue;
        const kernel key = {.correlation = e->correlation[i]};
        kernel *found = bsearch(&key, v, n, sizeof *v, by_correlation);
        if (!found || found->is_launched)
            continue;
        const tp_event_track *track = &e->tracks[e->track[i]];
        found->is_launched = true;
        found->launched = e->start[i];
        found->thread = thread_of(track->pid, track->tid);
    }
}

/* The innermost range of the thread that contains the time. */
static size_t owner_of(const tp_nsight_calls *c, int64_t thread, int64_t time)
{
    size_t low = 0, high = c->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const call *m = &c->v[middle];
        if (m->thread < thread || (m->thread == thread && m->start <= time))
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t steps = 0; low > 0 && steps < 64; steps++) {
        const call *one = &c->v[--low];
        if (one->thread != thread)
            break;
        if (one->end >= time)
            return one->kind == CALL_GROUP_START ? SIZE_MAX : low;
    }
    return SIZE_MAX;
}

/* ---- what a kernel served ---- */

/* The calls that the range launched, oldest last; 0 when the group's start is not there. */
static size_t calls_of(const tp_nsight_calls *c, size_t owner, size_t *ret)
{
    size_t n = 0, depth = 1;
    if (c->v[owner].kind == CALL_PLAIN) {
        ret[0] = owner;
        return 1;
    }
    for (size_t i = owner, steps = 0; i-- > 0 && steps < STEPS_BACK; steps++) {
        const call *one = &c->v[i];
        if (one->thread != c->v[owner].thread)
            return 0;
        depth += one->kind == CALL_GROUP_END;
        if (one->kind == CALL_GROUP_START && --depth == 0)
            return n;
        if (one->kind == CALL_PLAIN) {
            if (n == GROUP_CALLS)
                return 0;
            ret[n++] = i;
        }
    }
    return 0;
}

static bool is_point_to_point(const char *call_name)
{
    return strcmp(call_name, "ncclSend") == 0 || strcmp(call_name, "ncclRecv") == 0;
}

/* "ncclDevKernel_AllReduce_Sum_f32_RING_LL" serves ncclAllReduce(). */
static bool serves(const char *kernel_name, const char *call_name)
{
    const char *word = is_point_to_point(call_name) ? "SendRecv" : call_name + 4;
    size_t len = strlen(word);
    if (strstr(kernel_name, "Generic"))
        return true; /* RCCL */
    for (const char *p = kernel_name; (p = strstr(p, word)); p += len) {
        char after = p[len];
        bool ends = !((after >= 'a' && after <= 'z') || (after >= 'A' && after <= 'Z'));
        if (p > kernel_name && p[-1] == '_' && ends)
            return true;
    }
    return false;
}

typedef struct {
    const char *name; /* of the calls together */
    int64_t bytes, communicator;
    size_t n;
} message;

static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;
    return a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum) ? -1 : sum;
}

/* Several calls as one message; false when they do not belong together. */
static bool sum_up(const tp_nsight_calls *c, const tp_events *e, const size_t *list, size_t n,
                   message *ret)
{
    const call *first = &c->v[list[0]];
    const char *name = tp_events_str(e, first->name);
    int64_t sent = 0, received = 0;
    bool sends = false, receives = false;
    *ret =
        (message){.name = name, .communicator = first->payload.v[TP_PAYLOAD_COMMUNICATOR], .n = n};
    for (size_t i = 0; i < n; i++) {
        const call *one = &c->v[list[i]];
        const char *other = tp_events_str(e, one->name);
        bool is_receive = strcmp(other, "ncclRecv") == 0;
        if (one->payload.v[TP_PAYLOAD_COMMUNICATOR] != ret->communicator ||
            (strcmp(other, name) != 0 && !(is_point_to_point(other) && is_point_to_point(name))))
            return false;
        int64_t *sum = is_receive ? &received : &sent;
        *sum = add(*sum, one->payload.v[TP_PAYLOAD_BYTES]);
        *(is_receive ? &receives : &sends) = true;
    }
    if (sends && receives)
        ret->name = "ncclSendRecv";
    /* Both directions run at once: the longer one is what a link has to carry. */
    ret->bytes = sent < 0 || received < 0 ? -1 : sent > received ? sent : received;
    return ret->bytes >= 0;
}

static void look_up_member(const tp_nsight_calls *c, const tp_event_track *track,
                           tp_event_collective *ret)
{
    size_t low = 0, high = c->n_members;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->members[middle].communicator < ret->comms_id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == c->n_members || c->members[low].communicator != ret->comms_id)
        return;
    ret->group_size = c->members[low].ranks;
    const member key = {.communicator = ret->comms_id, .pid = track->pid, .device = track->device};
    const member *own = bsearch(&key, c->members, c->n_members, sizeof key, by_communicator);
    if (own)
        ret->rank = own->rank;
}

static void add_collective(tp_nsight *n, const tp_nsight_calls *c, uint32_t event, const message *m)
{
    tp_events *e = n->events;
    tp_event_collective *row =
        TP_VEC_PUSH(e->collectives, e->n_collectives, n->builder.collective_cap);
    char id[24];
    snprintf(id, sizeof id, "0x%llx", (unsigned long long)m->communicator);
    row->in_elements = row->out_elements = row->group_size = row->sequence = TP_UNKNOWN;
    row->rank = TP_UNKNOWN;
    row->comms_id = m->communicator;
    row->message_bytes = m->bytes;
    row->message_calls = (int64_t)m->n;
    row->has_message = true;
    row->name = tp_string_add(&e->strings, m->name, strlen(m->name));
    row->group = tp_string_add(&e->strings, id, strlen(id));
    look_up_member(c, &e->tracks[e->track[event]], row);
    e->detail[event] = (uint32_t)e->n_collectives;
}

/* The kernels v[0..k) were launched by one range.  Returns how many stay without a size. */
static uint64_t match_group(tp_nsight *n, const tp_nsight_calls *c, const kernel *v, size_t k,
                            size_t *list)
{
    const tp_events *e = n->events;
    size_t n_calls = calls_of(c, v[0].owner, list), served[GROUP_CALLS];
    uint64_t n_lost = 0;
    if (k > GROUP_CALLS)
        return k;
    for (size_t i = 0; i < k; i++) {
        const char *kernel_name = tp_events_str(e, e->name[v[i].event]);
        size_t n_served = 0, n_rivals = 0, ordinal = 0;
        for (size_t j = n_calls; j-- > 0;) /* oldest first */
            if (n_calls == 1 || serves(kernel_name, tp_events_str(e, c->v[list[j]].name)))
                served[n_served++] = list[j];
        for (size_t j = 0; j < k && n_served; j++) {
            bool is_rival = n_calls == 1 || serves(tp_events_str(e, e->name[v[j].event]),
                                                   tp_events_str(e, c->v[served[0]].name));
            n_rivals += is_rival;
            ordinal += is_rival && j < i;
        }
        message m;
        bool one_each = n_rivals == n_served && ordinal < n_served;
        bool found = false;
        if (n_served && n_rivals == 1)
            found = sum_up(c, e, served, n_served, &m);
        else if (n_served && one_each)
            found = sum_up(c, e, &served[ordinal], 1, &m);
        if (found)
            add_collective(n, c, v[i].event, &m);
        n_lost += !found;
    }
    return n_lost;
}

static void tell(tp_nsight *n, const tp_nsight_calls *c, uint64_t n_lost, size_t n_kernels)
{
    if (c->n_odd)
        tp_notes_add(n->notes, TP_NOTE_WARNING,
                     "payloads of NCCL's ranges without the layout that the file declares for "
                     "them: %llu; left out",
                     (unsigned long long)c->n_odd);
    if (n_kernels && c->n_ranges && !c->n_payloads && !c->n_odd)
        tp_notes_add(n->notes, TP_NOTE_INFO,
                     "NCCL's ranges carry no payloads in this export: message sizes are unknown");
    if (n_lost && c->n_payloads)
        tp_notes_add(n->notes, TP_NOTE_INFO,
                     "%llu of %zu NCCL kernels could not be matched with one call (launched by a "
                     "graph, outside the recording, or one of several in a group): their sizes "
                     "are unknown",
                     (unsigned long long)n_lost, n_kernels);
}

void tp_nsight_calls_match(tp_nsight *n, tp_nsight_calls *c)
{
    size_t n_kernels, list[GROUP_CALLS];
    uint64_t n_lost = 0;
    TP_FREED kernel *v = find_kernels(n->events, &n_kernels);
    if (c->n)
        qsort(c->v, c->n, sizeof *c->v, by_thread);
    if (c->n_members)
        qsort(c->members, c->n_members, sizeof *c->members, by_communicator);
    if (c->n_payloads)
        find_launches(n->events, v, n_kernels);
    for (size_t i = 0; i < n_kernels; i++)
        if (v[i].is_launched)
            v[i].owner = owner_of(c, v[i].thread, v[i].launched);
    if (n_kernels)
        qsort(v, n_kernels, sizeof *v, by_owner);
    for (size_t from = 0, to; from < n_kernels; from = to) {
        for (to = from; to < n_kernels && v[to].owner == v[from].owner;)
            to++;
        n_lost +=
            v[from].owner == SIZE_MAX ? to - from : match_group(n, c, &v[from], to - from, list);
    }
    tell(n, c, n_lost, n_kernels);
}
