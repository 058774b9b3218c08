/* loader.c - worker threads that fill slots ahead of the trainer. */
#include "engine/data/loader.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/platform.h"
#include "base/threads.h"
#include "engine/device/memory.h"
#include "trace/trace.h"

enum { MAX_WORKERS = 1024, MAX_PREFETCH = 1024 };

/* Micro-batch number k of the run since the last seek uses slot k % n_slots. */
typedef struct {
    tp_microbatch mb;
    tp_pack_item *items;
    uint32_t n_items;
    uint64_t n_truncated; /* of the step, told with its first micro-batch */
    bool ready;
    uint64_t flow; /* in a trace, from who filled it to who takes it; 0: none */
    tp_status status;
    tp_error error;
} slot;

/* Invariant: released <= taken <= claimed <= released + n_slots.  Numbers below
 * released are free again; [taken, claimed) are being filled or ready. */
struct tp_loader {
    tp_sample_set set;
    tp_loader_options options;
    uint64_t steps_per_epoch;

    pthread_mutex_t lock;
    pthread_cond_t may_fill, is_ready, is_idle;
    pthread_t *threads;
    int n_threads;
    bool stopping, paused;
    int n_filling;

    slot *slots;
    uint64_t n_slots, claimed, taken, released;
    tp_pack_plan plan; /* of the step that is being handed to the slots */
    uint32_t next_in_plan;
    uint64_t next_step;
    bool ended; /* no step follows */

    tp_loader_stats stats;
};

static bool may_claim(const tp_loader *l)
{
    return !l->paused && !l->ended && l->claimed < l->released + l->n_slots;
}

/* The plan of the next step; false behind the last one. */
static bool plan_next_step(tp_loader *l, slot *s)
{
    if (l->options.epochs && l->next_step >= l->options.epochs * l->steps_per_epoch) {
        l->ended = true;
        return false;
    }
    s->status = tp_pack_plan_step(&l->plan, &l->options.pack, &l->set, l->next_step, &s->error);
    l->next_step++;
    l->next_in_plan = 0;
    return true;
}

/* Bind the next micro-batch to its slot.  Held: lock.  NULL behind the last one. */
static slot *claim(tp_loader *l)
{
    slot *s = &l->slots[l->claimed % l->n_slots];
    s->status = TP_OK;
    s->ready = false;
    s->n_truncated = 0;
    s->n_items = 0;
    if (l->next_in_plan == l->plan.n_micro && !plan_next_step(l, s))
        return NULL;
    l->claimed++;
    if (s->status != TP_OK) {
        l->ended = true;
        return s;
    }
    uint32_t m = l->next_in_plan++;
    uint32_t first = l->plan.starts[m];
    s->n_items = l->plan.starts[m + 1] - first;
    memcpy(s->items, l->plan.items + first, s->n_items * sizeof *s->items);
    s->n_truncated = m == 0 ? l->plan.n_truncated : 0;
    tp_pack_label(&l->plan, m, &s->mb);
    return s;
}

static const tp_trace_site handed_over = {.name = "micro-batch"};

/* By a worker, or by the caller, who holds the lock. */
static tp_status fill_in(const tp_loader *l, slot *s)
{
    TP_MEMORY_GUARD(&s->error);
    return tp_pack_fill(&l->options.pack, &l->set, s->items, s->n_items, &s->mb, &s->error);
}

static void fill(const tp_loader *l, slot *s)
{
    TP_ZONE("fill micro-batch");
    s->flow = tp_trace_enabled() ? tp_trace_flow_new() : 0;
    if (s->flow)
        tp_trace_flow_begin(&handed_over, s->flow);
    if (s->status == TP_OK)
        s->status = fill_in(l, s);
}

static void *work(void *user)
{
    tp_loader *l = user;
    tp_trace_thread_name("data worker");
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->stopping && !may_claim(l))
            pthread_cond_wait(&l->may_fill, &l->lock);
        if (l->stopping)
            break;
        slot *s = claim(l);
        if (!s) {
            pthread_cond_broadcast(&l->is_ready); /* the caller may be waiting for the end */
            continue;
        }
        l->n_filling++;
        pthread_mutex_unlock(&l->lock);
        fill(l, s);
        pthread_mutex_lock(&l->lock);
        s->ready = true;
        l->n_filling--;
        pthread_cond_broadcast(&l->is_ready);
        if (l->n_filling == 0)
            pthread_cond_broadcast(&l->is_idle);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static uint64_t count_slots(const tp_loader_options *o)
{
    int ahead = o->prefetch_factor ? o->prefetch_factor : 2;
    return (uint64_t)o->num_workers * (uint64_t)ahead + 1;
}

/* Sequences of a micro-batch at most: a token each. */
static size_t items_bytes(const tp_pack_options *pack)
{
    uint64_t most = TP_MIN(pack->batch_size, (uint64_t)tp_pack_capacity(pack));
    return (size_t)most * sizeof(tp_pack_item);
}

size_t tp_loader_bytes(const tp_loader_options *o)
{
    size_t each = tp_microbatch_bytes(tp_pack_capacity(&o->pack)) + items_bytes(&o->pack);
    return (size_t)count_slots(o) * each + tp_pack_plan_bytes(&o->pack);
}

static tp_status init_slots(tp_loader *l, tp_error *err)
{
    const tp_pack_options *pack = &l->options.pack;
    int32_t capacity = tp_pack_capacity(pack);
    l->slots = tp_new(l->n_slots, sizeof *l->slots);
    for (uint64_t i = 0; i < l->n_slots; i++) {
        void *items;
        TP_TRY(tp_microbatch_init(&l->slots[i].mb, capacity, err));
        TP_TRY(tp_mem_alloc(TP_MEM_DATA, items_bytes(pack), &items, err));
        l->slots[i].items = items;
    }
    return tp_pack_plan_init(&l->plan, pack, err);
}

/* Threads inherit the mask: signals go to the thread that started the program. */
static tp_status start_threads(tp_loader *l, tp_error *err)
{
    sigset_t before;
    int wanted = l->options.num_workers;
    l->threads = tp_grow(NULL, (size_t)wanted + 1, sizeof *l->threads);
    tp_signals_hold(&before);
    while (l->n_threads < wanted && pthread_create(&l->threads[l->n_threads], NULL, work, l) == 0)
        l->n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (l->n_threads < wanted)
        return tp_fail(err, TP_ERR_IO, "cannot start data worker %d of %d; lower data.num_workers",
                       l->n_threads + 1, wanted);
    return TP_OK;
}

static tp_status check_options(const tp_sample_set *set, const tp_loader_options *o, tp_error *err)
{
    TP_TRY(tp_pack_check(&o->pack, err));
    if (o->num_workers < 0 || o->num_workers > MAX_WORKERS)
        return tp_fail(err, TP_ERR_CONFIG, "data.num_workers is %d; 0 to %d are possible",
                       o->num_workers, MAX_WORKERS);
    if (o->prefetch_factor < 0 || o->prefetch_factor > MAX_PREFETCH)
        return tp_fail(err, TP_ERR_CONFIG, "data.prefetch_factor is %d; 0 to %d are possible",
                       o->prefetch_factor, MAX_PREFETCH);
    if (tp_pack_steps_per_epoch(&o->pack, set->n) == 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%llu examples do not make a batch of %llu; lower the batch size",
                       (unsigned long long)set->n, (unsigned long long)o->pack.batch_size);
    return TP_OK;
}

tp_status tp_loader_open(const tp_sample_set *set, const tp_loader_options *options,
                         tp_loader **ret, tp_error *err)
{
    TP_TRY(check_options(set, options, err));
    tp_loader *l = tp_grow(NULL, 1, sizeof *l);
    *l = (tp_loader){.set = *set,
                     .options = *options,
                     .steps_per_epoch = tp_pack_steps_per_epoch(&options->pack, set->n)};
    l->n_slots = count_slots(options);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->may_fill, NULL);
    pthread_cond_init(&l->is_ready, NULL);
    pthread_cond_init(&l->is_idle, NULL);
    tp_status status = init_slots(l, err);
    if (status == TP_OK)
        status = start_threads(l, err);
    TP_HAND_OVER(status, ret, l, tp_loader_close(l));
}

void tp_loader_close(tp_loader *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_cond_broadcast(&l->may_fill);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->n_threads; i++)
        pthread_join(l->threads[i], NULL);
    for (uint64_t i = 0; i < l->n_slots; i++) {
        tp_microbatch_release(&l->slots[i].mb);
        tp_mem_free(l->slots[i].items);
    }
    tp_pack_plan_release(&l->plan);
    pthread_cond_destroy(&l->may_fill);
    pthread_cond_destroy(&l->is_ready);
    pthread_cond_destroy(&l->is_idle);
    pthread_mutex_destroy(&l->lock);
    free(l->threads);
    free(l->slots);
    free(l);
}

void tp_loader_seek(tp_loader *l, uint64_t step)
{
    pthread_mutex_lock(&l->lock);
    l->paused = true;
    while (l->n_filling > 0)
        pthread_cond_wait(&l->is_idle, &l->lock);
    l->claimed = l->taken = l->released = 0;
    l->plan.n_micro = l->next_in_plan = 0;
    l->next_step = step;
    l->ended = l->paused = false;
    pthread_cond_broadcast(&l->may_fill);
    pthread_mutex_unlock(&l->lock);
}

/* Wait for the next slot; NULL behind the last.  Held: lock. */
static slot *await(tp_loader *l)
{
    slot *s = &l->slots[l->taken % l->n_slots];
    if (l->n_threads == 0) {
        if (l->taken == l->claimed) {
            if (l->ended || !claim(l))
                return NULL;
            fill(l, s);
        }
        return s;
    }
    for (;;) {
        if (l->taken < l->claimed && s->ready)
            return s;
        if (l->taken == l->claimed && l->ended)
            return NULL;
        pthread_cond_wait(&l->is_ready, &l->lock);
    }
}

static void count(tp_loader_stats *stats, const slot *s)
{
    stats->n_micro++;
    stats->n_tokens += (uint64_t)s->mb.n_tokens;
    stats->n_padding += (uint64_t)(s->mb.capacity - s->mb.n_tokens);
    stats->n_sequences += (uint64_t)s->mb.n_sequences;
    stats->n_truncated += s->n_truncated;
}

tp_status tp_loader_next(tp_loader *l, const tp_microbatch **ret, tp_error *err)
{
    TP_ZONE("next micro-batch");
    tp_status status = TP_OK;
    double begin = tp_clock_s();
    pthread_mutex_lock(&l->lock);
    l->released = l->taken;
    pthread_cond_broadcast(&l->may_fill);
    slot *s = await(l);
    if (!s) {
        *ret = NULL;
    } else if (s->status != TP_OK) {
        status = s->status;
        if (err)
            *err = s->error;
    } else {
        l->taken++;
        count(&l->stats, s);
        if (s->flow)
            tp_trace_flow_end(&handed_over, s->flow);
        *ret = &s->mb;
    }
    l->stats.last_waited_s = tp_clock_s() - begin;
    l->stats.waited_s += l->stats.last_waited_s;
    pthread_mutex_unlock(&l->lock);
    return status;
}

void tp_loader_count_on(tp_loader *l, const tp_loader_stats *before) { l->stats = *before; }

uint64_t tp_loader_steps_per_epoch(const tp_loader *l) { return l->steps_per_epoch; }
tp_loader_stats tp_loader_get_stats(const tp_loader *l) { return l->stats; }
