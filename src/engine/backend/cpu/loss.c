/* loss.c - weighted cross-entropy of logits[T,V] and its gradient, row by row. */
#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/loss_rows.h"

static void loss_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *z = &launch->in[0];
    const int32_t *targets = launch->in[1].data;
    const float *weights = launch->in[2].data;
    float *logp = launch->out[1].data, *lse = launch->out[2].data;
    double *terms = launch->workspace;
    bool bf16 = is_half(z);
    int64_t n = z->dim[1];
    for (int64_t t = begin; t < end; t++) {
        const void *row = row_at(z, t);
        float largest = row_largest(row, bf16, n);
        double row_lse = (double)largest + log(row_exp_sum(row, bf16, NULL, n, largest));
        double value = weights[t] != 0 ? row_logp(row, bf16, n, targets[t], row_lse) : 0;
        terms[t] = weights[t] != 0 ? -(double)weights[t] * value : 0;
        if (logp)
            logp[t] = (float)value;
        if (lse)
            lse[t] = (float)row_lse;
    }
}

static size_t workspace(const tp_launch *launch)
{
    return (size_t)launch->in[0].dim[0] * sizeof(double);
}

static void cross_entropy(const tp_launch *launch)
{
    const tp_operand *z = &launch->in[0];
    const double *terms = launch->workspace;
    tp_cpu_static(launch, z->dim[0], z->dim[0] * z->dim[1] * 8, loss_range, launch);
    double sum = 0;
    for (int64_t t = 0; t < z->dim[0]; t++)
        sum += terms[t];
    if (is_bound(&launch->out[0]))
        *(float *)launch->out[0].data = (float)sum;
}

static void part_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *z = &launch->in[0], *stats = &launch->out[0];
    const int32_t *targets = launch->in[1].data;
    const float *weights = launch->in[2].data;
    bool bf16 = is_half(z);
    int64_t n = z->dim[1], ranks = launch->attrs.n0, own = launch->attrs.n1;
    for (int64_t t = begin; t < end; t++) {
        const void *row = row_at(z, t);
        float *s = row_at(stats, t), largest = row_largest(row, bf16, n);
        bool known = weights[t] != 0 && targets[t] >= 0 && targets[t] < n;
        memset(s, 0, (size_t)stats->dim[1] * sizeof *s);
        s[2 * own + 1] = (float)row_exp_sum(row, bf16, NULL, n, largest);
        s[2 * own] = isnan(s[2 * own + 1]) ? NAN : largest; /* which one depends on the order */
        s[2 * ranks] = known ? vf_get_one(row, bf16, targets[t]) : 0;
        s[2 * ranks + 1] = known;
    }
}

static void cross_entropy_part(const tp_launch *launch)
{
    const tp_operand *z = &launch->in[0];
    if (is_bound(&launch->out[0]))
        tp_cpu_static(launch, z->dim[0], z->dim[0] * z->dim[1] * 8, part_range, launch);
}

/* scale * weight * (e^(z - lse) - [v is the target]) */
static void gradient_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *z = &launch->in[0], *d = &launch->out[0];
    const int32_t *targets = launch->in[1].data;
    const float *weights = launch->in[2].data, *lse = launch->in[3].data;
    float scale = *(const float *)launch->in[4].data;
    bool z_bf16 = is_half(z), d_bf16 = is_half(d);
    int64_t n = z->dim[1];
    for (int64_t t = begin; t < end; t++) {
        const void *from = row_at(z, t);
        void *to = row_at(d, t);
        float factor = scale * weights[t];
        if (weights[t] == 0) {
            memset(to, 0, (size_t)n * (d_bf16 ? 2 : 4));
            continue;
        }
        bool known = targets[t] >= 0 && targets[t] < n;
        float at_target = known ? vf_get_one(from, z_bf16, targets[t]) : 0;
        if (!known && !launch->attrs.part)
            factor = NAN;
        int64_t i = 0;
        for (; i + VF_N <= n; i += VF_N)
            vf_put(to, d_bf16, i, vf_exp(vf_get(from, z_bf16, i) - lse[t]) * factor);
        if (i < n) {
            vf e = vf_exp(vf_get_n(from, z_bf16, i, n - i) - lse[t]);
            vf_put_n(to, d_bf16, i, n - i, e * factor);
        }
        if (known) {
            float value = factor * (expf(at_target - lse[t]) - 1);
            vf_put_n(to, d_bf16, targets[t], 1, vf_set(value));
        }
    }
}

static bool has_plain_labels(const tp_launch *launch, int targets)
{
    return is_i32(&launch->in[targets]) && launch->in[targets + 1].dtype == TP_DTYPE_F32;
}

/* The fused head has temperatures; here the reference kernel does. */
static bool accepts(const tp_launch *launch)
{
    return launch->attrs.temperature == 0 && are_floats(launch, 1, 0) &&
           has_plain_labels(launch, 1) && is_f32_if_present(&launch->out[0]) &&
           is_f32_if_present(&launch->out[1]) && is_f32_if_present(&launch->out[2]);
}

static bool accepts_part(const tp_launch *launch)
{
    return launch->attrs.temperature == 0 && are_floats(launch, 1, 0) &&
           has_plain_labels(launch, 1) && is_f32_if_present(&launch->out[0]);
}

/* In place only where an element's place does not move. */
static bool accepts_grad(const tp_launch *launch)
{
    return launch->attrs.temperature == 0 && are_floats(launch, 1, 1) &&
           has_plain_labels(launch, 1) && launch->in[3].dtype == TP_DTYPE_F32 &&
           launch->in[4].dtype == TP_DTYPE_F32;
}

TP_CPU_KERNEL(cross_entropy, .accepts = accepts, .workspace = workspace, .run = cross_entropy);
TP_CPU_KERNEL(cross_entropy_part, .accepts = accepts_part, .run = cross_entropy_part);
TP_CPU_ROWS_KERNEL(cross_entropy_grad, gradient_range, accepts_grad);
