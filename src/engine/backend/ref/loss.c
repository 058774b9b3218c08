/* loss.c - weighted cross-entropy of T tokens over a vocabulary of V, from
 * logits or from what they are a product of: x[T,C] w[V,C]^T.  A token of weight
 * 0 contributes nothing, whatever its logits and its target are; a target
 * outside the vocabulary is not a number. */
#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"

/* Where logits come from: `logits`, or a product formed anew for every use. */
typedef struct {
    const tp_operand *logits, *x, *w;
    int64_t n_tokens, n_vocabulary;
    double temperature;
    bool is_part; /* of the vocabulary */
} source;

static double temperature_of(const tp_launch *launch)
{
    return launch->attrs.temperature > 0 ? (double)launch->attrs.temperature : 1;
}

static source from_logits(const tp_launch *launch, const tp_operand *logits)
{
    return (source){.logits = logits,
                    .n_tokens = logits->dim[0],
                    .n_vocabulary = logits->dim[1],
                    .temperature = temperature_of(launch)};
}

static source from_product(const tp_launch *launch, const tp_operand *x, const tp_operand *w)
{
    return (source){.x = x,
                    .w = w,
                    .n_tokens = x->dim[0],
                    .n_vocabulary = w->dim[0],
                    .temperature = temperature_of(launch)};
}

static double logit(const source *from, int64_t t, int64_t v)
{
    if (from->logits)
        return ref_load(from->logits, t, v) / from->temperature;
    double sum = 0;
    for (int64_t c = 0; c < from->x->dim[1]; c++)
        sum += ref_load(from->x, t, c) * ref_load(from->w, v, c);
    return sum / from->temperature;
}

/* log(sum of exp), with the sum held relative to the largest logit so far. */
static double log_sum_exp(const source *from, int64_t t)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t v = 0; v < from->n_vocabulary; v++) {
        double z = logit(from, t, v);
        if (z == -INFINITY)
            continue;
        if (z > largest) {
            sum = sum * exp(largest - z) + 1;
            largest = z;
        } else {
            sum += exp(z - largest);
        }
    }
    return largest + log(sum);
}

static bool is_target_known(const source *from, int64_t target)
{
    return target >= 0 && target < from->n_vocabulary;
}

/* `ret_lse` (optional, n_tokens values) receives what the operand lse receives, unrounded. */
static void loss(const source *from, const tp_operand *targets, const tp_operand *weights,
                 const tp_operand *ret_loss, const tp_operand *logp, const tp_operand *lse,
                 double *ret_lse)
{
    double sum = 0;
    for (int64_t t = 0; t < from->n_tokens; t++) {
        double row_lse = log_sum_exp(from, t), row_logp = 0;
        double weight = ref_load(weights, t, 0);
        if (weight != 0) {
            int64_t target = ref_index(targets, t);
            row_logp = is_target_known(from, target) ? logit(from, t, target) - row_lse : NAN;
            sum -= weight * row_logp;
        }
        if (is_bound(logp))
            ref_store(logp, t, 0, row_logp);
        if (lse && is_bound(lse))
            ref_store(lse, t, 0, row_lse);
        if (ret_lse)
            ret_lse[t] = row_lse;
    }
    if (is_bound(ret_loss))
        ref_store(ret_loss, 0, 0, sum);
}

/* Relative to the largest, which is 0 where there is none, and NaN where a logit is. */
static double exp_sum(const source *from, int64_t t, double *ret_largest)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t v = 0; v < from->n_vocabulary; v++)
        largest = fmax(largest, logit(from, t, v));
    largest = largest == -INFINITY ? 0 : largest;
    for (int64_t v = 0; v < from->n_vocabulary; v++)
        sum += exp(logit(from, t, v) - largest);
    *ret_largest = isnan(sum) ? NAN : largest;
    return sum;
}

TP_REF_KERNEL(cross_entropy_part)
{
    source from = from_logits(launch, &launch->in[0]);
    const tp_operand *stats = &launch->out[0];
    int64_t n = launch->attrs.n0, own = launch->attrs.n1;
    for (int64_t t = 0; is_bound(stats) && t < from.n_tokens; t++) {
        double largest, sum = exp_sum(&from, t, &largest);
        int64_t target = ref_index(&launch->in[1], t);
        bool known = ref_load(&launch->in[2], t, 0) != 0 && is_target_known(&from, target);
        for (int64_t c = 0; c < 2 * n; c++)
            ref_store(stats, t, c, c == 2 * own ? largest : c == 2 * own + 1 ? sum : 0);
        ref_store(stats, t, 2 * n, known ? logit(&from, t, target) : 0);
        ref_store(stats, t, 2 * n + 1, known);
    }
}

static double joined_lse(const tp_operand *stats, int64_t t, int64_t n)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (ref_load(stats, t, 2 * i + 1) != 0)
            largest = fmax(largest, ref_load(stats, t, 2 * i));
    for (int64_t i = 0; i < n; i++)
        if (ref_load(stats, t, 2 * i + 1) != 0)
            sum += ref_load(stats, t, 2 * i + 1) * exp(ref_load(stats, t, 2 * i) - largest);
    return largest + log(sum);
}

TP_REF_KERNEL(cross_entropy_join)
{
    const tp_operand *stats = &launch->in[0], *weights = &launch->in[1];
    int64_t n = launch->attrs.n0;
    double loss = 0;
    for (int64_t t = 0; t < stats->dim[0]; t++) {
        double lse = joined_lse(stats, t, n), logp = 0, weight = ref_load(weights, t, 0);
        if (weight != 0) {
            logp = ref_load(stats, t, 2 * n + 1) == 1 ? ref_load(stats, t, 2 * n) - lse : NAN;
            loss -= weight * logp;
        }
        if (is_bound(&launch->out[1]))
            ref_store(&launch->out[1], t, 0, logp);
        if (is_bound(&launch->out[2]))
            ref_store(&launch->out[2], t, 0, lse);
    }
    if (is_bound(&launch->out[0]))
        ref_store(&launch->out[0], 0, 0, loss);
}

/* d(scale * loss) / d(logit v of token t). */
static double logit_gradient(const source *from, int64_t t, int64_t v, double lse, int64_t target,
                             double weight, double scale)
{
    if (weight == 0)
        return 0;
    if (!is_target_known(from, target) && !from->is_part)
        return NAN;
    return scale * weight * (exp(logit(from, t, v) - lse) - (v == target ? 1 : 0)) /
           from->temperature;
}

TP_REF_KERNEL(cross_entropy)
{
    source from = from_logits(launch, &launch->in[0]);
    loss(&from, &launch->in[1], &launch->in[2], &launch->out[0], &launch->out[1], &launch->out[2],
         NULL);
}

TP_REF_KERNEL(linear_ce)
{
    source from = from_product(launch, &launch->in[0], &launch->in[1]);
    loss(&from, &launch->in[2], &launch->in[3], &launch->out[0], &launch->out[1], &launch->out[2],
         NULL);
}

TP_REF_KERNEL(cross_entropy_grad)
{
    source from = from_logits(launch, &launch->in[0]);
    from.is_part = launch->attrs.part != 0;
    const tp_operand *targets = &launch->in[1], *weights = &launch->in[2];
    const tp_operand *lse = &launch->in[3], *scale = &launch->in[4], *dlogits = &launch->out[0];
    if (!is_bound(dlogits))
        return;
    for (int64_t t = 0; t < from.n_tokens; t++) {
        for (int64_t v = 0; v < from.n_vocabulary; v++) {
            ref_store(dlogits, t, v,
                      logit_gradient(&from, t, v, ref_load(lse, t, 0), ref_index(targets, t),
                                     ref_load(weights, t, 0), ref_load(scale, 0, 0)));
        }
    }
}

/* What the gradient of any logit of linear_ce_train needs. */
typedef struct {
    source from;
    const tp_operand *targets, *weights, *scale;
    const double *lse;
} train;

static double train_gradient(const train *a, int64_t t, int64_t v)
{
    return logit_gradient(&a->from, t, v, a->lse[t], ref_index(a->targets, t),
                          ref_load(a->weights, t, 0), ref_load(a->scale, 0, 0));
}

/* sum[C] += factor * a row of x or w. */
static void add_scaled(double *sum, double factor, const tp_operand *from, int64_t row)
{
    for (int64_t c = 0; c < from->dim[1]; c++)
        sum[c] += factor * ref_load(from, row, c);
}

static size_t workspace_linear_ce_train(const tp_launch *launch)
{
    return (size_t)(launch->in[0].dim[0] + launch->in[0].dim[1]) * sizeof(double);
}

TP_REF_KERNEL(linear_ce_train, .workspace = workspace_linear_ce_train)
{
    const tp_operand *x = &launch->in[0], *w = &launch->in[1];
    const tp_operand *dx = &launch->out[2], *dw = &launch->out[3];
    double *lse = launch->workspace, *sum = lse + x->dim[0];
    train a = {.from = from_product(launch, x, w),
               .targets = &launch->in[2],
               .weights = &launch->in[3],
               .scale = &launch->in[4],
               .lse = lse};
    loss(&a.from, a.targets, a.weights, &launch->out[0], &launch->out[1], NULL, lse);

    for (int64_t t = 0; is_bound(dx) && t < a.from.n_tokens; t++) {
        for (int64_t c = 0; c < x->dim[1]; c++)
            sum[c] = 0;
        for (int64_t v = 0; v < a.from.n_vocabulary && ref_load(a.weights, t, 0) != 0; v++)
            add_scaled(sum, train_gradient(&a, t, v), w, v);
        for (int64_t c = 0; c < x->dim[1]; c++)
            ref_store(dx, t, c, sum[c]);
    }
    for (int64_t v = 0; is_bound(dw) && v < a.from.n_vocabulary; v++) {
        for (int64_t c = 0; c < x->dim[1]; c++)
            sum[c] = ref_accumulated(launch, 5, v, c);
        for (int64_t t = 0; t < a.from.n_tokens; t++) {
            if (ref_load(a.weights, t, 0) != 0)
                add_scaled(sum, train_gradient(&a, t, v), x, t);
        }
        for (int64_t c = 0; c < x->dim[1]; c++)
            ref_store(dw, v, c, sum[c]);
    }
    if (launch->op == TP_OP_linear_ce_train && is_bound(&launch->out[4]))
        ref_store(&launch->out[4], 0, 0, ref_sum_of_squares(dw));
}

/* Its dw is not bound. */
TP_REF_KERNEL(linear_ce_dx, .workspace = workspace_linear_ce_train) { run_linear_ce_train(launch); }
