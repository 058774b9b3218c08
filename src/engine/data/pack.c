/* pack.c - sequences assigned to rows and micro-batches of a step. */
#include "engine/data/pack.h"

#include <string.h>

#include "base/platform.h"
#include "engine/data/bins.h"
#include "engine/data/order.h"
#include "engine/device/memory.h"

enum { MAX_BATCH = 1 << 24 };

tp_status tp_pack_check(const tp_pack_options *o, tp_error *err)
{
    if (o->batch_size < 1 || o->batch_size > MAX_BATCH)
        return tp_fail(err, TP_ERR_CONFIG, "the batch has %llu sequences; 1 to %d are possible",
                       (unsigned long long)o->batch_size, MAX_BATCH);
    if (o->packing && o->budget < 2)
        return tp_fail(err, TP_ERR_CONFIG,
                       "policy.sequence_packing.train_mb_tokens is %d; at least 2 are needed",
                       o->budget);
    if (o->packing)
        return TP_OK;
    int32_t n;
    if (o->micro_batch_size < 1 || o->row_length < 2 ||
        __builtin_mul_overflow(o->micro_batch_size, o->row_length, &n))
        return tp_fail(err, TP_ERR_CONFIG,
                       "a micro-batch of %d sequences of %d tokens is not possible",
                       o->micro_batch_size, o->row_length);
    return TP_OK;
}

int32_t tp_pack_capacity(const tp_pack_options *o)
{
    return o->packing ? o->budget : o->micro_batch_size * o->row_length;
}

uint64_t tp_pack_steps_per_epoch(const tp_pack_options *o, uint64_t n_samples)
{
    return n_samples / o->batch_size + (!o->drop_last && n_samples % o->batch_size != 0);
}

size_t tp_microbatch_bytes(int32_t capacity)
{
    size_t n = ((size_t)capacity + 16) & ~(size_t)15; /* cache lines of 4-byte numbers */
    return 5 * n * sizeof(int32_t);
}

tp_status tp_microbatch_init(tp_microbatch *mb, int32_t capacity, tp_error *err)
{
    void *block;
    TP_TRY(tp_mem_alloc(TP_MEM_DATA, tp_microbatch_bytes(capacity), &block, err));
    size_t n = tp_microbatch_bytes(capacity) / 5 / sizeof(int32_t);
    int32_t *p = block;
    *mb = (tp_microbatch){.tokens = p,
                          .positions = p + n,
                          .targets = p + 2 * n,
                          .loss_weights = (float *)(p + 3 * n),
                          .cu = p + 4 * n,
                          .capacity = capacity};
    return TP_OK;
}

void tp_microbatch_release(tp_microbatch *mb)
{
    tp_mem_free(mb->tokens);
    *mb = (tp_microbatch){0};
}

void tp_microbatch_place(tp_microbatch *mb, int32_t at, int32_t n)
{
    memcpy(mb->targets + at, mb->tokens + at + 1, (size_t)(n - 1) * sizeof *mb->targets);
    mb->targets[at + n - 1] = 0;
    for (int32_t k = 0; k < n; k++)
        mb->positions[at + k] = k;
}

void tp_microbatch_clear(tp_microbatch *mb, int32_t at, int32_t end)
{
    size_t n = (size_t)(end - at) * sizeof(int32_t);
    memset(mb->tokens + at, 0, n);
    memset(mb->positions + at, 0, n);
    memset(mb->targets + at, 0, n);
    memset(mb->loss_weights + at, 0, n);
}

void tp_microbatch_end(tp_microbatch *mb, int32_t n_starts, int32_t end)
{
    mb->n_used = end;
    tp_microbatch_clear(mb, end, mb->capacity);
    for (int32_t k = n_starts + 1; k <= mb->capacity; k++)
        mb->cu[k] = end;
}

/* Arrays one behind the other, each on its own cache line. */
static void *carve(char **at, size_t count, size_t size)
{
    char *p = *at;
    *at += (count * size + 63) & ~(size_t)63;
    return p;
}

static size_t ranks_of(const tp_pack_options *o) { return o->ranks > 1 ? (size_t)o->ranks : 1; }

/* Of a plan's micro-batches, most of which hold a sequence. */
static size_t most_starts(const tp_pack_options *o)
{
    return o->batch_size + ranks_of(o) + (ranks_of(o) == 1 ? 0 : 1);
}

size_t tp_pack_plan_bytes(const tp_pack_options *options)
{
    return options->batch_size * (2 * sizeof(tp_pack_item) + 8 + 2 * 4) + most_starts(options) * 4 +
           7 * 64;
}

tp_status tp_pack_plan_init(tp_pack_plan *plan, const tp_pack_options *options, tp_error *err)
{
    size_t n = options->batch_size, bytes = tp_pack_plan_bytes(options);
    void *block;
    TP_TRY(tp_mem_alloc(TP_MEM_DATA, bytes, &block, err));
    char *at = block;
    *plan = (tp_pack_plan){0};
    plan->items = carve(&at, n, sizeof *plan->items);
    plan->drawn = carve(&at, n, sizeof *plan->drawn);
    plan->order = carve(&at, n, sizeof *plan->order);
    plan->starts = carve(&at, most_starts(options), sizeof *plan->starts);
    plan->bin = carve(&at, n, sizeof *plan->bin);
    plan->end = carve(&at, n, sizeof *plan->end);
    TP_ASSERT((size_t)(at - (char *)block) <= bytes);
    return TP_OK;
}

void tp_pack_plan_release(tp_pack_plan *plan)
{
    tp_mem_free(plan->items);
    *plan = (tp_pack_plan){0};
}

static uint64_t example_of(const tp_sample_set *set, uint64_t sample)
{
    return set->index ? set->index[sample] : sample;
}

/* The sequence at a place of the epoch's order, cut to `longest` tokens. */
static tp_status draw(tp_pack_plan *plan, const tp_pack_options *o, const tp_sample_set *set,
                      uint64_t place, int32_t longest, tp_pack_item *ret, tp_error *err)
{
    uint64_t sample = tp_epoch_row(o->shuffle, o->seed, plan->epoch, set->n, place);
    tp_sample s;
    TP_TRY(tp_cache_peek(set->cache, example_of(set, sample), &s, err));
    *ret = (tp_pack_item){
        .sample = sample, .n_tokens = (int32_t)s.n_tokens, .n_targets = (int32_t)s.n_targets};
    if (ret->n_tokens <= longest)
        return TP_OK;
    if (o->refuse_overlong)
        return tp_fail(err, TP_ERR_CONFIG,
                       "the example of line %llu has %d tokens, a micro-batch holds %d; raise "
                       "policy.sequence_packing.train_mb_tokens or lower data.max_input_seq_length",
                       (unsigned long long)s.line, ret->n_tokens, longest);
    ret->n_tokens = longest;
    ret->n_targets = 0;
    for (int32_t k = 1; k < longest; k++)
        ret->n_targets += tp_sample_mask(&s, (size_t)k);
    plan->n_truncated++;
    return TP_OK;
}

/* As few micro-batches as there can be, and as many for every rank. */
static void pack(tp_pack_plan *plan, const tp_pack_options *o)
{
    const tp_bins bins = {.capacity = o->budget, .ranks = (uint32_t)ranks_of(o)};
    for (uint32_t i = 0; i < plan->n_items; i++) /* ties in the order of the epoch */
        plan->order[i] = tp_bin_unit(plan->drawn[i].n_tokens, i);
    plan->n_micro = tp_bins_assign(&bins, plan->order, plan->n_items, plan->bin, plan->end, NULL);
}

static void assign_rows(tp_pack_plan *plan, uint32_t rows)
{
    plan->n_micro = (plan->n_items + rows - 1) / rows;
    for (uint32_t i = 0; i < plan->n_items; i++) {
        plan->order[i] = i;
        plan->bin[i] = i / rows;
    }
}

/* Sort the sequences by bin, keeping the order in which they were put there. */
static void group_by_bin(tp_pack_plan *plan)
{
    memset(plan->starts, 0, (plan->n_micro + 1) * sizeof *plan->starts);
    for (uint32_t i = 0; i < plan->n_items; i++)
        plan->starts[plan->bin[i] + 1]++;
    for (uint32_t m = 0; m < plan->n_micro; m++)
        plan->starts[m + 1] += plan->starts[m];
    for (uint32_t k = 0; k < plan->n_items; k++) {
        uint32_t i = tp_bin_unit_index(plan->order[k]);
        plan->items[plan->starts[plan->bin[i]]++] = plan->drawn[i];
    }
    for (uint32_t m = plan->n_micro; m > 0; m--) /* starts moved on to the ends */
        plan->starts[m] = plan->starts[m - 1];
    plan->starts[0] = 0;
}

/* Rank r takes micro-batches r, r + ranks ... of the step's, which are as many for each. */
static void keep_own(tp_pack_plan *plan, const tp_pack_options *o)
{
    uint32_t ranks = (uint32_t)ranks_of(o), kept = 0, n_own = 0;
    uint32_t each = (plan->n_micro + ranks - 1) / ranks;
    for (uint32_t m = plan->n_micro; m < each * ranks; m++)
        plan->starts[m + 1] = plan->starts[m];
    for (uint32_t m = (uint32_t)o->rank; m < each * ranks; m += ranks) {
        uint32_t first = plan->starts[m], n = plan->starts[m + 1] - first;
        memmove(plan->items + kept, plan->items + first, n * sizeof *plan->items);
        plan->starts[n_own++] = kept; /* what stood there was read: n_own <= m */
        kept += n;
    }
    plan->starts[n_own] = kept;
    plan->n_micro = n_own;
    plan->n_items = kept;
}

tp_status tp_pack_plan_step(tp_pack_plan *plan, const tp_pack_options *o, const tp_sample_set *set,
                            uint64_t step, tp_error *err)
{
    uint64_t per_epoch = tp_pack_steps_per_epoch(o, set->n);
    TP_ASSERT(per_epoch > 0);
    plan->step = step;
    plan->epoch = step / per_epoch;
    uint64_t first = step % per_epoch * o->batch_size;
    int32_t longest = o->packing ? o->budget : o->row_length;
    plan->n_items = (uint32_t)TP_MIN(o->batch_size, set->n - first);
    plan->n_tokens = plan->n_trained = plan->n_truncated = 0;
    for (uint32_t i = 0; i < plan->n_items; i++) {
        TP_TRY(draw(plan, o, set, first + i, longest, &plan->drawn[i], err));
        plan->n_tokens += (uint64_t)plan->drawn[i].n_tokens;
        plan->n_trained += (uint64_t)plan->drawn[i].n_targets;
    }
    if (o->packing)
        pack(plan, o);
    else
        assign_rows(plan, (uint32_t)o->micro_batch_size);
    group_by_bin(plan);
    plan->n_sequences = plan->n_items;
    if (ranks_of(o) > 1)
        keep_own(plan, o);
    return TP_OK;
}

void tp_pack_label(const tp_pack_plan *plan, uint32_t m, tp_microbatch *mb)
{
    mb->step = plan->step;
    mb->epoch = plan->epoch;
    mb->index = m;
    mb->n_in_step = plan->n_micro;
    mb->step_sequences = plan->n_sequences;
    mb->step_tokens = plan->n_tokens;
    mb->step_trained = plan->n_trained;
}

/* One sequence at `at`; returns how many of its tokens are learned. */
static int32_t put_sequence(tp_microbatch *mb, int32_t at, const tp_cache *cache,
                            const tp_sample *s, int32_t n, float weight)
{
    int32_t n_trained = 0;
    tp_sample_tokens(cache, s, mb->tokens + at, (size_t)n);
    tp_microbatch_place(mb, at, n);
    for (int32_t k = 0; k < n - 1; k++) {
        bool learned = tp_sample_mask(s, (size_t)k + 1);
        mb->loss_weights[at + k] = learned ? weight : 0;
        n_trained += learned;
    }
    mb->loss_weights[at + n - 1] = 0;
    return n_trained;
}

static tp_status check_ids(const tp_pack_options *o, const tp_cache *cache, const int32_t *tokens,
                           int32_t n, uint64_t line, tp_error *err)
{
    uint32_t highest = 0; /* as unsigned, so that a negative id is too high as well */
    for (int32_t k = 0; k < n; k++)
        highest = TP_MAX(highest, (uint32_t)tokens[k]);
    if (highest >= (uint32_t)o->vocab_size)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s: the example of line %llu has token id %u, the vocabulary has %d; "
                       "delete the cache, it will be made again",
                       cache->name, (unsigned long long)line, highest, o->vocab_size);
    return TP_OK;
}

tp_status tp_pack_fill(const tp_pack_options *o, const tp_sample_set *set,
                       const tp_pack_item *items, uint32_t n, tp_microbatch *mb, tp_error *err)
{
    /* A step without anything to learn weighs nothing; it is not divided by zero. */
    float weight = mb->step_trained ? (float)(1.0 / (double)mb->step_trained) : 0;
    int32_t at = 0;
    mb->n_tokens = mb->n_trained = mb->n_sequences = 0;
    mb->sum_of_squares = 0;
    mb->cu[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        tp_sample s;
        int32_t length = items[i].n_tokens;
        int32_t taken = o->packing ? length : o->row_length;
        TP_TRY(tp_cache_get(set->cache, example_of(set, items[i].sample), &s, err));
        TP_ASSERT((uint32_t)length <= s.n_tokens && taken <= mb->capacity - at);
        mb->n_trained += put_sequence(mb, at, set->cache, &s, length, weight);
        TP_TRY(check_ids(o, set->cache, mb->tokens + at, length, s.line, err));
        tp_microbatch_clear(mb, at + length, at + taken);
        for (int32_t k = length; k < taken; k++)
            mb->positions[at + k] = k;
        at += taken;
        mb->cu[++mb->n_sequences] = at;
        mb->n_tokens += length;
        mb->sum_of_squares += (uint64_t)taken * (uint64_t)taken;
    }
    tp_microbatch_end(mb, mb->n_sequences, at);
    return TP_OK;
}
