/* batch.c - units packed first-fit decreasing, and written into a micro-batch. */
#include "engine/train/batch.h"
#include "base/order.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int32_t n_tokens;
    uint32_t index;
} unit;

TP_ORDER(longest_first, unit,
         TP_COMPARE(y->n_tokens, x->n_tokens) ?: TP_COMPARE(x->index, y->index))

void tp_batch_release(tp_batch *b)
{
    free(b->places);
    free(b->order);
    free(b->starts);
    b->places = NULL;
    b->order = b->starts = NULL;
    b->n = b->n_micro = 0;
}

static int32_t aligned(const tp_batch *b, int32_t at)
{
    return b->align ? (at + b->align - 1) / b->align * b->align : at;
}

/* Where a unit ends that begins at the first possible place from `at` on. */
static int64_t end_of(const tp_batch *b, const tp_batch_sequence *sequences, uint32_t u, int32_t at)
{
    int64_t end = at;
    for (uint32_t k = 0; k < b->unit; k++) {
        if (end > b->capacity)
            return end;
        end = (int64_t)aligned(b, (int32_t)end) + sequences[u * b->unit + k].n;
    }
    return end;
}

static tp_status measure(const tp_batch *b, const tp_batch_sequence *sequences, uint32_t n_units,
                         unit *units, tp_error *err)
{
    for (uint32_t u = 0; u < n_units; u++) {
        int64_t tokens = end_of(b, sequences, u, 0);
        if (tokens > b->capacity)
            return tp_fail(err, TP_ERR_CONFIG,
                           "%s of %lld tokens does not fit a micro-batch of %d; raise "
                           "policy.sequence_packing.train_mb_tokens",
                           b->unit == 2 ? "a pair" : "a sequence", (long long)tokens, b->capacity);
        units[u] = (unit){(int32_t)tokens, u};
    }
    qsort(units, n_units, sizeof *units, longest_first);
    return TP_OK;
}

/* Into the first micro-batch with room; ret_micro[u] is that of unit u.  Inside a
 * micro-batch sequences lie in the order in which they got there. */
static void assign(tp_batch *b, const tp_batch_sequence *sequences, const unit *units,
                   uint32_t n_units)
{
    TP_FREED int32_t *end = tp_new(n_units, sizeof *end);
    TP_FREED uint32_t *count = tp_new(n_units, sizeof *count);
    for (uint32_t i = 0; i < n_units; i++) {
        uint32_t m = 0, u = units[i].index;
        while (m < b->n_micro && (end_of(b, sequences, u, end[m]) > b->capacity ||
                                  (b->max_units && count[m] == b->max_units)))
            m++;
        b->n_micro += m == b->n_micro;
        count[m]++;
        for (uint32_t k = u * b->unit; k < (u + 1) * b->unit; k++) {
            b->places[k] = (tp_batch_place){m, aligned(b, end[m])};
            end[m] = b->places[k].at + sequences[k].n;
        }
    }
}

/* Sequences by micro-batch and place. */
static void list(tp_batch *b, const unit *units, uint32_t n_units)
{
    b->starts = tp_new(b->n_micro + 2, sizeof *b->starts);
    for (uint32_t i = 0; i < b->n; i++)
        b->starts[b->places[i].micro + 2]++;
    for (uint32_t m = 0; m < b->n_micro; m++)
        b->starts[m + 2] += b->starts[m + 1];
    for (uint32_t i = 0; i < n_units; i++)
        for (uint32_t k = 0; k < b->unit; k++) {
            uint32_t s = units[i].index * b->unit + k;
            b->order[b->starts[b->places[s].micro + 1]++] = s;
        }
}

tp_status tp_batch_arrange(tp_batch *b, const tp_batch_sequence *sequences, uint32_t n,
                           tp_error *err)
{
    uint32_t n_units = n / b->unit;
    tp_batch_release(b);
    TP_FREED unit *units = tp_new(n_units, sizeof *units);
    TP_TRY(measure(b, sequences, n_units, units, err));
    b->n = n_units * b->unit;
    b->places = tp_new(b->n, sizeof *b->places);
    b->order = tp_new(b->n, sizeof *b->order);
    assign(b, sequences, units, n_units);
    list(b, units, n_units);
    return TP_OK;
}

static int32_t put(tp_microbatch *mb, int32_t at, const tp_batch_sequence *s)
{
    int32_t trained = 0;
    memcpy(mb->tokens + at, s->ids, (size_t)s->n * sizeof *s->ids);
    tp_microbatch_place(mb, at, s->n);
    for (int32_t k = 1; k < s->n; k++) {
        bool counts = k >= s->first && (!s->mask || s->mask[k]);
        mb->loss_weights[at + k - 1] = counts ? 1 : 0;
        trained += counts;
    }
    mb->loss_weights[at + s->n - 1] = 0;
    return trained;
}

void tp_batch_fill(const tp_batch *b, const tp_batch_sequence *sequences, uint32_t m,
                   tp_microbatch *mb)
{
    int32_t end = 0, n_cu = 0;
    mb->n_trained = mb->n_sequences = mb->n_tokens = 0;
    mb->sum_of_squares = 0;
    mb->cu[0] = 0;
    for (uint32_t i = b->starts[m]; i < b->starts[m + 1]; i++) {
        const tp_batch_sequence *s = &sequences[b->order[i]];
        int32_t at = b->places[b->order[i]].at;
        if (at > end) {
            tp_microbatch_clear(mb, end, at);
            mb->cu[++n_cu] = at;
        }
        mb->n_trained += put(mb, at, s);
        mb->sum_of_squares += (uint64_t)s->n * (uint64_t)s->n;
        mb->n_tokens += s->n;
        mb->n_sequences++;
        end = at + s->n;
        mb->cu[++n_cu] = end;
    }
    mb->index = m;
    mb->n_in_step = b->n_micro;
    tp_microbatch_end(mb, n_cu, end);
}
