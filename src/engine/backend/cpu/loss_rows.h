/* loss_rows.h - the softmax of one row of V logits and what a loss takes from it. */
#ifndef TP_ENGINE_BACKEND_CPU_LOSS_ROWS_H
#define TP_ENGINE_BACKEND_CPU_LOSS_ROWS_H

#include <math.h>

#include "engine/backend/cpu/vec_math.h"

enum { LOSS_RUN = 64 * VF_N }; /* elements summed in f32 before they go into a double */

VF_INLINE float row_largest(const void *z, bool bf16, int64_t n)
{
    vf most0 = vf_set(-INFINITY), most1 = most0;
    int64_t i = 0;
    for (; i + 2 * VF_N <= n; i += 2 * VF_N) {
        most0 = vf_max(most0, vf_get(z, bf16, i));
        most1 = vf_max(most1, vf_get(z, bf16, i + VF_N));
    }
    for (; i + VF_N <= n; i += VF_N)
        most0 = vf_max(most0, vf_get(z, bf16, i));
    float largest = vf_largest(vf_max(most0, most1));
    for (; i < n; i++) {
        float last = vf_get_one(z, bf16, i);
        largest = last > largest ? last : largest;
    }
    /* A row of nothing but -infinity has the sum 0, not a NaN. */
    return largest == -INFINITY ? 0 : largest;
}

/* The sum of e^(z - largest); the exponentials go to `e` unless it is NULL (z itself will do). */
VF_INLINE double row_exp_sum(const void *z, bool bf16, float *e, int64_t n, float largest)
{
    double sum = 0;
    int64_t i = 0;
    while (i + VF_N <= n) {
        vf part0 = vf_zero(), part1 = vf_zero();
        int64_t stop = i + LOSS_RUN < n ? i + LOSS_RUN : n;
        for (; i + 2 * VF_N <= stop; i += 2 * VF_N) {
            vf e0 = vf_exp(vf_get(z, bf16, i) - largest);
            vf e1 = vf_exp(vf_get(z, bf16, i + VF_N) - largest);
            part0 += e0;
            part1 += e1;
            if (e) {
                vf_store(e + i, e0);
                vf_store(e + i + VF_N, e1);
            }
        }
        for (; i + VF_N <= stop; i += VF_N) {
            vf e0 = vf_exp(vf_get(z, bf16, i) - largest);
            part0 += e0;
            if (e)
                vf_store(e + i, e0);
        }
        sum += (double)vf_sum(part0 + part1);
    }
    if (i < n) {
        vf e0 = vf_exp(vf_get_n(z, bf16, i, n - i) - largest);
        e0 = vf_select(vm_first(n - i), e0, vf_zero());
        sum += (double)vf_sum(e0);
        if (e)
            vf_store_n(e + i, n - i, e0);
    }
    return sum;
}

/* A token of weight 0 has no target; a target outside the vocabulary is not a number. */
VF_INLINE double row_logp(const void *z, bool bf16, int64_t n, int32_t target, double lse)
{
    return target >= 0 && target < n ? (double)vf_get_one(z, bf16, target) - lse : (double)NAN;
}

/* d[n] = factor * e[n]; the target's place is the caller's.  bf16 results may lie over e: they are
 * written behind what is still to be read. */
VF_INLINE void row_gradient(const float *e, void *d, bool d_bf16, int64_t n, float factor)
{
    int64_t i = 0;
    for (; i + VF_N <= n; i += VF_N)
        vf_put(d, d_bf16, i, vf_load(e + i) * factor);
    if (i < n)
        vf_put_n(d, d_bf16, i, n - i, vf_load_n(e + i, n - i) * factor);
}

#endif
