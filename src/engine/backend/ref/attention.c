/* attention.c - causal attention over packed sequences.  H query heads share G key/value heads of D
 * dimensions: query head h reads key/value head h / (H / G). */
#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"

/* One query against `n_keys` keys: rows first..first+n_keys-1 of k and v. */
typedef struct {
    const tp_operand *q, *k, *v, *o;
    int64_t row, query_column; /* of q and o */
    int64_t first, n_keys, key_column;
    int64_t head_dim;
    double scale;
} query;

static double logit(const query *a, int64_t j)
{
    double sum = 0;
    for (int64_t d = 0; d < a->head_dim; d++) {
        sum += ref_load(a->q, a->row, a->query_column + d) *
               ref_load(a->k, a->first + j, a->key_column + d);
    }
    return a->scale * sum;
}

/* Writes the row of o; returns the log of the sum of exponentials of the logits.
 * `p` has room for n_keys values. */
static double attend(const query *a, double *p)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < a->n_keys; j++) {
        p[j] = logit(a, j);
        largest = p[j] > largest ? p[j] : largest;
    }
    for (int64_t j = 0; j < a->n_keys; j++) {
        p[j] = exp(p[j] - largest);
        sum += p[j];
    }
    for (int64_t d = 0; is_bound(a->o) && d < a->head_dim; d++) {
        double mean = 0;
        for (int64_t j = 0; j < a->n_keys; j++)
            mean += p[j] / sum * ref_load(a->v, a->first + j, a->key_column + d);
        ref_store(a->o, a->row, a->query_column + d, mean);
    }
    return largest + log(sum);
}

static void zero_row(const tp_operand *o, int64_t row)
{
    for (int64_t c = 0; is_bound(o) && c < o->dim[1]; c++)
        ref_store(o, row, c, 0);
}

static size_t workspace_attention(const tp_launch *launch)
{
    return (size_t)launch->in[0].dim[0] * sizeof(double);
}

TP_REF_KERNEL(attention, .workspace = workspace_attention)
{
    const tp_operand *cu = &launch->in[3], *o = &launch->out[0], *lse = &launch->out[1];
    const tp_attrs *attrs = &launch->attrs;
    for (int64_t t = 0; t < launch->in[0].dim[0]; t++) {
        zero_row(o, t);
        for (int64_t h = 0; is_bound(lse) && h < attrs->heads; h++)
            ref_store(lse, h, t, 0);
    }
    query a = {.q = &launch->in[0],
               .k = &launch->in[1],
               .v = &launch->in[2],
               .o = o,
               .head_dim = attrs->head_dim,
               .scale = (double)attrs->scale};
    for (int64_t s = 0; s + 1 < cu->dim[0]; s++) {
        a.first = ref_index(cu, s);
        for (a.row = a.first; a.row < ref_index(cu, s + 1); a.row++) {
            a.n_keys = a.row - a.first + 1;
            for (int64_t h = 0; h < attrs->heads; h++) {
                a.query_column = h * a.head_dim;
                a.key_column = h / (attrs->heads / attrs->kv_heads) * a.head_dim;
                double row_lse = attend(&a, launch->workspace);
                if (is_bound(lse))
                    ref_store(lse, h, a.row, row_lse);
            }
        }
    }
}
