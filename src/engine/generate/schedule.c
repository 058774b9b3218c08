/* schedule.c - who runs.
 *
 * Samples start in the order of submission, but a request's other samples let later
 * requests pass while its first computes their common prefix.  A sample starts when all
 * its known tokens fit and every running one keeps a spare block.  When blocks run out
 * nevertheless, the youngest running sample is put back: its blocks are freed and its
 * tokens, which are kept, will be computed again. */
#include <string.h>

#include "base/platform.h"
#include "engine/generate/engine_internal.h"

static int64_t blocks_for(const tp_engine *e, int64_t tokens)
{
    return (tokens + e->options.block_tokens - 1) / e->options.block_tokens;
}

static bool is_older(const sample *a, const sample *b)
{
    return a->request->id != b->request->id ? a->request->id < b->request->id : a->index < b->index;
}

static void insert(sample **list, int64_t *n, sample *s)
{
    int64_t i = (*n)++;
    for (; i > 0 && is_older(s, list[i - 1]); i--)
        list[i] = list[i - 1];
    list[i] = s;
}

static void erase(sample **list, int64_t *n, const sample *s)
{
    int64_t i = 0;
    while (list[i] != s)
        i++;
    memmove(list + i, list + i + 1, (size_t)(--*n - i) * sizeof *list);
}

/* ---- the queue of requests ---- */

void tp_schedule_add(tp_engine *e, request *r)
{
    r->next_waiting = NULL;
    if (e->last_waiting)
        e->last_waiting->next_waiting = r;
    else
        e->first_waiting = r;
    e->last_waiting = r;
    e->n_waiting += r->n_samples;
}

void tp_schedule_remove(tp_engine *e, request *r)
{
    request *before = NULL;
    for (request *i = e->first_waiting; i && i != r; i = i->next_waiting)
        before = i;
    request *at = before ? before->next_waiting : e->first_waiting;
    if (at != r)
        return;
    if (before)
        before->next_waiting = r->next_waiting;
    else
        e->first_waiting = r->next_waiting;
    if (e->last_waiting == r)
        e->last_waiting = before;
    e->n_waiting -= r->n_samples - r->n_started;
}

/* ---- prefixes ---- */

static int64_t prefix_tokens(const request *r) { return r->n_prompt - 1; }

/* Samples that will want the prefix: those that never started and those put back. */
static bool is_wanted(const tp_engine *e, const request *r)
{
    if (r->n_started < r->n_samples)
        return true;
    for (int64_t i = 0; i < e->n_returned; i++)
        if (e->returned[i]->request == r)
            return true;
    return false;
}

void tp_schedule_drop_prefix(tp_engine *e, request *r)
{
    for (int32_t i = 0; i < r->n_prefix_blocks; i++)
        tp_blocks_drop(&e->blocks, r->prefix_blocks[i]);
    r->n_prefix_blocks = 0;
    r->prefix = PREFIX_NONE;
    r->builder = NULL;
}

void tp_schedule_note_prefix(tp_engine *e, const sample *s)
{
    request *r = s->request;
    if (r->builder != s || r->prefix != PREFIX_BUILDING || s->n_cached < prefix_tokens(r))
        return;
    r->builder = NULL;
    r->prefix = PREFIX_NONE;
    if (!is_wanted(e, r))
        return;
    r->n_prefix_blocks = (int32_t)blocks_for(e, prefix_tokens(r));
    memcpy(r->prefix_blocks, sample_table(e, s), (size_t)r->n_prefix_blocks * sizeof(int32_t));
    for (int32_t i = 0; i < r->n_prefix_blocks; i++)
        tp_blocks_keep(&e->blocks, r->prefix_blocks[i]);
    r->prefix = PREFIX_READY;
}

/* Whole blocks of the prefix are shared; the sample will write into the last one, which it
 * therefore gets as a copy. */
static void take_prefix(tp_engine *e, sample *s)
{
    const request *r = s->request;
    int32_t *table = sample_table(e, s);
    int64_t n_shared = prefix_tokens(r) / e->options.block_tokens;
    for (int64_t i = 0; i < n_shared; i++) {
        table[i] = r->prefix_blocks[i];
        tp_blocks_keep(&e->blocks, table[i]);
    }
    s->n_blocks = (int32_t)n_shared;
    if (r->n_prefix_blocks > n_shared) {
        table[n_shared] = tp_blocks_take(&e->blocks);
        e->copies[e->n_copies].from = r->prefix_blocks[n_shared];
        e->copies[e->n_copies++].to = table[n_shared];
        s->n_blocks++;
    }
    s->n_cached = prefix_tokens(r);
    if (s->n_computed == 0)
        e->stats.shared_tokens += s->n_cached;
}

/* ---- starting ---- */

static bool fits(const tp_engine *e, const sample *s)
{
    const request *r = s->request;
    int64_t need = blocks_for(e, sample_length(s));
    if (r->prefix == PREFIX_READY)
        need -= prefix_tokens(r) / e->options.block_tokens;
    return need + e->n_running <= e->blocks.n_free;
}

static int32_t free_slot(const tp_engine *e)
{
    int32_t slot = 0;
    while (e->slot_in_use[slot])
        slot++;
    return slot;
}

static void start(tp_engine *e, sample *s)
{
    request *r = s->request;
    s->slot = free_slot(e);
    e->slot_in_use[s->slot] = true;
    s->state = SAMPLE_RUNNING;
    s->n_cached = 0;
    s->n_blocks = 0;
    if (r->prefix == PREFIX_READY)
        take_prefix(e, s);
    else if (r->prefix == PREFIX_NONE && prefix_tokens(r) > 0 && !r->builder) {
        r->prefix = PREFIX_BUILDING;
        r->builder = s;
    }
    int64_t need = blocks_for(e, sample_length(s));
    while (s->n_blocks < need)
        sample_table(e, s)[s->n_blocks++] = tp_blocks_take(&e->blocks);
    insert(e->running, &e->n_running, s);
    e->stats.peak_running =
        e->n_running > e->stats.peak_running ? e->n_running : e->stats.peak_running;
    if (r->prefix == PREFIX_READY && !is_wanted(e, r))
        tp_schedule_drop_prefix(e, r);
}

/* What stands in the way when nothing runs are prefixes that others wait with. */
static bool make_room(tp_engine *e, const request *keep)
{
    bool any = false;
    for (int64_t i = e->first_live; i < e->n_requests; i++) {
        request *r = e->requests[i];
        if (r && r != keep && r->prefix == PREFIX_READY) {
            tp_schedule_drop_prefix(e, r);
            any = true;
        }
    }
    return any;
}

/* True when it started or ended; false when it has to wait. */
static bool try_start(tp_engine *e, sample *s)
{
    bool is_first = e->n_running == 0;
    if (is_first && !fits(e, s))
        make_room(e, s->request);
    if (is_first && !fits(e, s) && s->request->prefix == PREFIX_READY)
        tp_schedule_drop_prefix(e, s->request);
    if (fits(e, s))
        start(e, s);
    else if (is_first)
        tp_schedule_end(e, s, TP_FINISH_CAPACITY);
    else
        return false;
    return true;
}

static sample *start_returned(tp_engine *e)
{
    sample *s = e->returned[0];
    erase(e->returned, &e->n_returned, s);
    if (!try_start(e, s)) {
        insert(e->returned, &e->n_returned, s);
        return NULL;
    }
    e->n_waiting--;
    return s;
}

/* A prefix in the making is worth waiting for. */
static request *next_request(const tp_engine *e)
{
    request *r = e->first_waiting;
    while (r && r->prefix == PREFIX_BUILDING)
        r = r->next_waiting;
    return r;
}

sample *tp_schedule_start(tp_engine *e)
{
    if (e->n_running == e->options.max_running)
        return NULL;
    if (e->n_returned > 0)
        return start_returned(e);
    request *r = next_request(e);
    if (!r)
        return NULL;
    sample *s = &r->samples[r->n_started];
    r->n_started++; /* before it starts, so that the last one does not keep the prefix */
    if (!try_start(e, s)) {
        r->n_started--;
        return NULL;
    }
    e->n_waiting--;
    if (r->n_started == r->n_samples)
        tp_schedule_remove(e, r);
    return s;
}

/* ---- stopping ---- */

static void leave(tp_engine *e, sample *s)
{
    request *r = s->request;
    for (int32_t i = 0; i < s->n_blocks; i++)
        tp_blocks_drop(&e->blocks, sample_table(e, s)[i]);
    e->slot_in_use[s->slot] = false;
    s->n_blocks = 0;
    s->slot = -1;
    erase(e->running, &e->n_running, s);
    if (r->builder == s) {
        r->builder = NULL;
        r->prefix = PREFIX_NONE;
    }
}

void tp_schedule_put_back(tp_engine *e, sample *s)
{
    leave(e, s);
    s->state = SAMPLE_WAITING;
    insert(e->returned, &e->n_returned, s);
    e->n_waiting++;
    e->stats.preemptions++;
}

void tp_schedule_end(tp_engine *e, sample *s, tp_finish finish)
{
    request *r = s->request;
    if (s->state == SAMPLE_RUNNING)
        leave(e, s);
    s->state = SAMPLE_DONE;
    s->finish = finish;
    r->n_done++;
    if (r->n_done == r->n_samples && r->prefix == PREFIX_READY)
        tp_schedule_drop_prefix(e, r);
}

/* A block for the next token of s.  False when s does not run any more. */
static bool grow(tp_engine *e, sample *s)
{
    int64_t need = blocks_for(e, sample_length(s));
    while (s->n_blocks < need) {
        if (e->blocks.n_free > 0) {
            sample_table(e, s)[s->n_blocks++] = tp_blocks_take(&e->blocks);
            continue;
        }
        if (make_room(e, NULL))
            continue;
        sample *youngest = e->running[e->n_running - 1];
        if (e->n_running == 1) {
            tp_schedule_end(e, s, TP_FINISH_CAPACITY);
            return false;
        }
        tp_schedule_put_back(e, youngest);
        if (youngest == s)
            return false;
    }
    return true;
}

void tp_schedule_grow(tp_engine *e)
{
    for (int64_t i = 0; i < e->n_running;)
        i += grow(e, e->running[i]);
}

/* ---- room for tokens ---- */

void tp_sample_reserve(sample *s, int64_t n)
{
    if (n <= s->cap)
        return;
    s->cap = TP_MAX(n, s->cap ? 2 * s->cap : 32);
    s->ids = tp_grow(s->ids, (size_t)s->cap, sizeof *s->ids);
    s->logp = tp_grow(s->logp, (size_t)s->cap, sizeof *s->logp);
    s->drawn = tp_grow(s->drawn, (size_t)s->cap, sizeof *s->drawn);
}

int64_t tp_schedule_reserve(tp_engine *e, sample *s, int64_t n)
{
    int64_t length = sample_length(s), need = blocks_for(e, length + n);
    while (s->n_blocks < need && e->blocks.n_free > e->n_running)
        sample_table(e, s)[s->n_blocks++] = tp_blocks_take(&e->blocks);
    n = TP_MIN(n, s->n_blocks * e->options.block_tokens - length);
    tp_sample_reserve(s, s->n + n);
    return n;
}
