/* adamw_8bit.c - AdamW with moments in 8 bits: see the op. */
#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"
#include "engine/device/dynamic_map.h"

typedef struct {
    const tp_launch *launch;
    const tp_dynamic_map *map[2]; /* of m, of v */
    double scalar[8];
    double weight_decay;
    double moment[2][TP_DYNAMIC_BLOCK]; /* of a block */
} adamw;

static double decode(const adamw *a, int which, int64_t i)
{
    const tp_operand *codes = &a->launch->in[3], *absmax = &a->launch->in[4];
    double value = (double)a->map[which]->value[(int)ref_load(codes, which, i)];
    return value * ref_load(absmax, which, i / TP_DYNAMIC_BLOCK);
}

static void update_one(adamw *a, int64_t i)
{
    const tp_launch *launch = a->launch;
    const tp_operand *p = &launch->in[0], *shadow = &launch->out[3];
    const double *s = a->scalar;
    int64_t r = i / p->dim[1], c = i % p->dim[1];
    double gradient = ref_load(&launch->in[1], r, c) * s[7];
    double first = s[1] * decode(a, 0, i) + (1 - s[1]) * gradient;
    double second = s[2] * decode(a, 1, i) + (1 - s[2]) * gradient * gradient;
    double step = s[0] / s[5] * first / (sqrt(second / s[6]) + s[3]);
    double decayed = ref_load(p, r, c) * (1 - s[0] * a->weight_decay);
    double updated = ref_round(p->dtype, decayed - step);
    ref_store(&launch->out[0], r, c, updated);
    if (is_bound(shadow))
        ref_store(shadow, r, c, updated);
    a->moment[0][i % TP_DYNAMIC_BLOCK] = first;
    a->moment[1][i % TP_DYNAMIC_BLOCK] = second;
}

/* NaN where one of them is. */
static double largest(const double *x, int64_t n)
{
    double most = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs(x[i]));
        sum += 0 * x[i];
    }
    return isnan(sum) ? NAN : most;
}

static void encode(const adamw *a, int which, int64_t begin, int64_t n)
{
    const tp_operand *codes = &a->launch->out[1], *absmax = &a->launch->out[2];
    double most = largest(a->moment[which], n);
    ref_store(absmax, which, begin / TP_DYNAMIC_BLOCK, most);
    for (int64_t i = 0; i < n; i++) {
        double part = most == 0 ? 0 : a->moment[which][i] / most;
        ref_store(codes, which, begin + i, tp_dynamic_code(a->map[which], (float)part));
    }
}

TP_REF_KERNEL(adamw_8bit)
{
    const tp_operand *p = &launch->in[0];
    adamw a = {.launch = launch, .map = {tp_dynamic_map_signed(), tp_dynamic_map_unsigned()}};
    for (int i = 0; i < 8; i++)
        a.scalar[i] = ref_load(&launch->in[2], i, 0);
    a.weight_decay = a.scalar[4] * (double)launch->attrs.decay;
    int64_t count = p->dim[0] * p->dim[1];
    for (int64_t begin = 0; begin < count; begin += TP_DYNAMIC_BLOCK) {
        int64_t n = count - begin < TP_DYNAMIC_BLOCK ? count - begin : TP_DYNAMIC_BLOCK;
        for (int64_t i = begin; i < begin + n; i++)
            update_one(&a, i);
        encode(&a, 0, begin, n);
        encode(&a, 1, begin, n);
    }
}
