/* dpo_batch.c - pairs in micro-batches, and the log-probabilities of their answers. */
#include "engine/algorithms/dpo_internal.h"
#include "engine/train/graphs.h"

void tp_dpo_batch_begin(dpo_batch *b, uint32_t n)
{
    b->n = 0;
    if (n <= b->cap)
        return;
    b->pairs = tp_grow(b->pairs, n, sizeof *b->pairs);
    b->sequences = tp_grow(b->sequences, 2 * (size_t)n, sizeof *b->sequences);
    b->cap = n;
}

static tp_batch_sequence sequence(const tp_preference_answer *a)
{
    return (tp_batch_sequence){.ids = a->ids, .mask = a->mask, .n = a->n, .first = 1};
}

void tp_dpo_batch_add(dpo_batch *b, const dpo_pair *pair)
{
    b->sequences[2 * b->n] = sequence(&pair->pair->chosen);
    b->sequences[2 * b->n + 1] = sequence(&pair->pair->rejected);
    b->pairs[b->n++] = pair;
}

tp_status tp_dpo_batch_arrange(trainer *t, dpo_batch *b, uint32_t ranks, tp_error *err)
{
    b->arrangement.ranks = ranks;
    b->arrangement.capacity = (int32_t)tp_trainer_token_budget(t->o);
    b->arrangement.unit = 2;
    b->arrangement.align = tp_trainer_alignment(t->o);
    b->arrangement.max_units =
        tp_trainer_is_packed(t->o) ? 0 : (uint32_t)t->o->policy.train_micro_batch_size;
    return tp_batch_arrange(&b->arrangement, b->sequences, 2 * b->n, err);
}

static tp_preference_side side_of(const dpo_batch *b, uint32_t sequence_index, const float *logp)
{
    const tp_batch_sequence *s = &b->sequences[sequence_index];
    const float *at = logp + b->arrangement.places[sequence_index].at;
    tp_preference_side side = {0};
    for (int32_t k = 1; k < s->n; k++)
        if (s->mask[k]) {
            side.logp += (double)at[k - 1];
            side.n++;
        }
    return side;
}

void tp_dpo_sides(const dpo_batch *b, uint32_t i, const float *logp, tp_preference_side *chosen,
                  tp_preference_side *rejected)
{
    *chosen = side_of(b, 2 * i, logp);
    *rejected = side_of(b, 2 * i + 1, logp);
    chosen->ref = b->pairs[i]->ref_chosen;
    rejected->ref = b->pairs[i]->ref_rejected;
}
