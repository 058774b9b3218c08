/* attention_grad.c - the gradient of causal attention over packed sequences.
 *
 * For a query i and a key j that it sees, with p = exp(scale * q.k - lse_i):
 *     ds = p * (do_i . v_j - delta_i) * scale       delta_i = do_i . o_i
 *     dq_i = sum_j ds k_j     dk_j = sum_i ds q_i     dv_j = sum_i p do_i
 * Each sum is formed on its own, so nothing of the size of T by T exists. */
#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"

typedef struct {
    const tp_operand *q, *k, *v, *o, *lse, *dout;
    int64_t n_heads, heads_per_group, head_dim;
    double scale;
} gradient;

static double dot(const tp_operand *a, int64_t row_a, int64_t column_a, const tp_operand *b,
                  int64_t row_b, int64_t column_b, int64_t n)
{
    double sum = 0;
    for (int64_t d = 0; d < n; d++)
        sum += ref_load(a, row_a, column_a + d) * ref_load(b, row_b, column_b + d);
    return sum;
}

/* p and ds of query i of head h, and key j. */
static void pair(const gradient *g, int64_t h, int64_t i, int64_t j, double delta, double *ret_p,
                 double *ret_ds)
{
    int64_t D = g->head_dim, query_column = h * D, key_column = h / g->heads_per_group * D;
    double logit = g->scale * dot(g->q, i, query_column, g->k, j, key_column, D);
    double dp = dot(g->dout, i, query_column, g->v, j, key_column, D);
    *ret_p = exp(logit - ref_load(g->lse, h, i));
    *ret_ds = *ret_p * (dp - delta) * g->scale;
}

static void store_row(const tp_operand *out, int64_t row, int64_t column, const double *values,
                      int64_t n)
{
    for (int64_t d = 0; is_bound(out) && d < n; d++)
        ref_store(out, row, column + d, values ? values[d] : 0);
}

static void query_gradient(const gradient *g, int64_t first, int64_t i, const double *delta,
                           double *sum, const tp_operand *dq)
{
    int64_t D = g->head_dim;
    for (int64_t h = 0; h < g->n_heads; h++) {
        for (int64_t d = 0; d < D; d++)
            sum[d] = 0;
        for (int64_t j = first; j <= i; j++) {
            double p, ds;
            pair(g, h, i, j, delta[i * g->n_heads + h], &p, &ds);
            for (int64_t d = 0; d < D; d++)
                sum[d] += ds * ref_load(g->k, j, h / g->heads_per_group * D + d);
        }
        store_row(dq, i, h * D, sum, D);
    }
}

static void key_gradient(const gradient *g, int64_t j, int64_t end, const double *delta,
                         double *sum, const tp_operand *dk, const tp_operand *dv)
{
    int64_t D = g->head_dim;
    for (int64_t group = 0; group < g->n_heads / g->heads_per_group; group++) {
        for (int64_t d = 0; d < 2 * D; d++)
            sum[d] = 0;
        for (int64_t n = 0; n < g->heads_per_group; n++) {
            int64_t h = group * g->heads_per_group + n;
            for (int64_t i = j; i < end; i++) {
                double p, ds;
                pair(g, h, i, j, delta[i * g->n_heads + h], &p, &ds);
                for (int64_t d = 0; d < D; d++) {
                    sum[d] += ds * ref_load(g->q, i, h * D + d);
                    sum[D + d] += p * ref_load(g->dout, i, h * D + d);
                }
            }
        }
        store_row(dk, j, group * D, sum, D);
        store_row(dv, j, group * D, sum + D, D);
    }
}

static size_t workspace_attention_grad(const tp_launch *launch)
{
    size_t n_deltas = (size_t)launch->in[0].dim[0] * (size_t)launch->attrs.heads;
    return (n_deltas + 2 * (size_t)launch->attrs.head_dim) * sizeof(double);
}

TP_REF_KERNEL(attention_grad, .workspace = workspace_attention_grad)
{
    const tp_operand *cu = &launch->in[6];
    const tp_operand *dq = &launch->out[0], *dk = &launch->out[1], *dv = &launch->out[2];
    gradient g = {.q = &launch->in[0],
                  .k = &launch->in[1],
                  .v = &launch->in[2],
                  .o = &launch->in[3],
                  .lse = &launch->in[4],
                  .dout = &launch->in[5],
                  .n_heads = launch->attrs.heads,
                  .heads_per_group = launch->attrs.heads / launch->attrs.kv_heads,
                  .head_dim = launch->attrs.head_dim,
                  .scale = (double)launch->attrs.scale};
    int64_t n_tokens = g.q->dim[0], D = g.head_dim;
    double *delta = launch->workspace, *sum = delta + n_tokens * g.n_heads;
    for (int64_t t = 0; t < n_tokens; t++) {
        for (int64_t h = 0; h < g.n_heads; h++)
            delta[t * g.n_heads + h] = dot(g.dout, t, h * D, g.o, t, h * D, D);
        store_row(dq, t, 0, NULL, g.q->dim[1]);
        store_row(dk, t, 0, NULL, g.k->dim[1]);
        store_row(dv, t, 0, NULL, g.v->dim[1]);
    }
    for (int64_t s = 0; s + 1 < cu->dim[0]; s++) {
        int64_t first = ref_index(cu, s), end = ref_index(cu, s + 1);
        for (int64_t t = first; t < end; t++) {
            query_gradient(&g, first, t, delta, sum, dq);
            key_gradient(&g, t, end, delta, sum, dk, dv);
        }
    }
}
