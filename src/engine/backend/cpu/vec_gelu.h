/* vec_gelu.h - GELU and its derivative, of a vector of f32.
 *
 * GELU is x f(x) with f the normal distribution, or a sigmoid of a cubic.  Of that f and of the
 * derivative alike f(x) + f(-x) = 1, so that f(-|x|) is all there is to compute.
 *
 * Where the result is rounded to a half, f(-|x|) is a cubic for every quarter of |x|, off by 4e-6
 * at most, a five-hundredth of what rounding loses: half as many instructions, no division. */
#ifndef TP_ENGINE_BACKEND_CPU_VEC_GELU_H
#define TP_ENGINE_BACKEND_CPU_VEC_GELU_H

#include "engine/backend/cpu/vec_math.h"

#if defined(VF_HAS_PICK)
#include "engine/backend/cpu/gelu_quarters.h"

VF_INLINE vf vf_by_quarters(const vf_quarters *table, vf x)
{
    const vf shifter = vf_set(0x1p21f); /* a quarter is the unit in its last place */
    vf u = vf_min(vf_set(7.75f), vf_abs(x));
    vf place = u + shifter, d = u - (place - shifter);
    vf y = vf_pick(table->of[3], place);
    y = vf_fma(y, d, vf_pick(table->of[2], place));
    y = vf_fma(y, d, vf_pick(table->of[1], place));
    y = vf_fma(y, d, vf_pick(table->of[0], place));
    return vf_select(vm_lt(x, vf_zero()), y, 1.0f - y);
}
#endif

/* f(x) = (1 + tanh u) / 2 = sigmoid(2u) with u = sqrt(2/pi) (x + 0.044715 x^3) */
VF_INLINE vf vf_gelu_tanh_share(vf x)
{
    return vf_sigmoid(x * vf_fma(x * x, vf_set(0.07135481628f), vf_set(1.595769122f)));
}

/* f + x f' = f + x (2u)' f (1 - f) with e = exp(-2u), f = 1 / (1 + e).  Behind 10 it is 0 or 1 in
 * f32. */
VF_INLINE vf vf_gelu_tanh_slope(vf x)
{
    x = vf_max(vf_set(-10.0f), vf_min(vf_set(10.0f), x));
    vf square = x * x;
    vf y = -x * vf_fma(square, vf_set(0.1029432396f), vf_set(2.302208198f)); /* -2u / ln 2 */
    vf n = vf_round(y);
    vf e = vf_exp2_reduced(y - n, n), f = 1.0f / (1.0f + e);
    vf inner_slope = vf_fma(square, vf_set(0.2140644488f), vf_set(1.595769122f));
    return vf_fma(x * inner_slope * f, e * f, f);
}

/* `to_half`: the result will be rounded. */
VF_INLINE vf vf_gelu(vf x, const bool tanh, const bool to_half)
{
#if defined(VF_HAS_PICK)
    if (to_half)
        return x * vf_by_quarters(tanh ? &vf_gelu_tanh_quarters : &vf_gelu_erf_quarters, x);
#endif
    (void)to_half;
    return x * (tanh ? vf_gelu_tanh_share(x) : vf_normal_cdf(x, NULL));
}

VF_INLINE vf vf_gelu_slope(vf x, const bool tanh, const bool to_half)
{
#if defined(VF_HAS_PICK)
    if (to_half)
        return vf_by_quarters(tanh ? &vf_gelu_tanh_slope_quarters : &vf_gelu_erf_slope_quarters, x);
#endif
    (void)to_half;
    if (tanh)
        return vf_gelu_tanh_slope(x);
    vf density, cdf = vf_normal_cdf(x, &density);
    return vf_fma(x, density, cdf);
}

#endif
