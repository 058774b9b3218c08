/* sample.c - from logits to one id per row. */
#include <stdlib.h>

#include "base/order.h"
#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"

typedef struct {
    double value;
    int64_t id;
} candidate;

/* Larger logit first, lower id among equals. */
static int by_rank(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? 1 : -1;
    return x->id < y->id ? -1 : x->id > y->id;
}

TP_ORDER(by_id, candidate, TP_COMPARE(x->id, y->id))

static double log_sum_exp(const candidate *c, int64_t n, double temperature)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, c[i].value / temperature);
    if (largest == -INFINITY)
        return largest;
    for (int64_t i = 0; i < n; i++)
        sum += exp(c[i].value / temperature - largest);
    return largest + log(sum);
}

/* How many of the ranked candidates are left. */
static int64_t cut(const candidate *c, int64_t n, double temperature, int64_t top_k, double top_p,
                   double min_p)
{
    if (top_k > 0 && top_k < n)
        n = top_k;
    if (top_p > 0 && top_p < 1) {
        double lse = log_sum_exp(c, n, temperature), sum = 0;
        int64_t i = 0;
        while (i < n && sum < top_p)
            sum += exp(c[i++].value / temperature - lse);
        n = i;
    }
    while (n > 1 && exp((c[n - 1].value - c[0].value) / temperature) < min_p)
        n--;
    return n;
}

/* The id of one row; *ret_drawn is the log of its probability among those left. */
static int64_t draw(const tp_launch *launch, int64_t row, candidate *c, int64_t n,
                    double *ret_drawn)
{
    const tp_operand *params = &launch->in[1];
    double temperature = ref_load(params, row, 0), sum = 0;
    qsort(c, (size_t)n, sizeof *c, by_rank);
    *ret_drawn = 0;
    if (temperature <= 0)
        return c[0].id;
    n = cut(c, n, temperature, (int64_t)ref_load(params, row, 1), ref_load(params, row, 2),
            ref_load(params, row, 3));
    qsort(c, (size_t)n, sizeof *c, by_id);
    double lse = log_sum_exp(c, n, temperature);
    double u = ((const double *)launch->in[2].data)[row];
    int64_t chosen = -1;
    for (int64_t i = 0; i < n; i++) {
        double p = exp(c[i].value / temperature - lse);
        sum += p;
        if (p > 0)
            chosen = i; /* the last one with a share, should the shares not add up to u */
        if (p > 0 && sum > u)
            break;
    }
    *ret_drawn = c[chosen].value / temperature - lse;
    return c[chosen].id;
}

static size_t workspace_sample(const tp_launch *launch)
{
    return (size_t)launch->in[0].dim[1] * sizeof(candidate);
}

TP_REF_KERNEL(sample, .workspace = workspace_sample)
{
    const tp_operand *logits = &launch->in[0], *ids = &launch->out[0], *logp = &launch->out[1];
    const tp_operand *drawn = &launch->out[2];
    int64_t V = logits->dim[1], n0 = launch->attrs.n0, n = n0 > 0 && n0 < V ? n0 : V;
    candidate *c = launch->workspace;
    for (int64_t r = 0; r < logits->dim[0]; r++) {
        bool is_broken = false, is_empty = true;
        for (int64_t i = 0; i < V; i++) {
            c[i] = (candidate){ref_load(logits, r, i), i};
            is_broken |= isnan(c[i].value) || c[i].value == INFINITY;
            is_empty &= i >= n || c[i].value == -INFINITY;
        }
        double lse = log_sum_exp(c, V, 1), row_drawn = NAN;
        int64_t id = is_broken || is_empty ? -1 : draw(launch, r, c, n, &row_drawn);
        if (is_bound(ids))
            ((int32_t *)ids->data)[r] = (int32_t)id;
        if (is_bound(logp))
            ref_store(logp, r, 0, id < 0 ? NAN : ref_load(logits, r, id) - lse);
        if (is_bound(drawn))
            ref_store(drawn, r, 0, row_drawn);
    }
}
