/* vec_math.h - functions of a vector of f32.
 *
 * Each is a reduction to a small interval and a polynomial fitted there (Remez,
 * relative error), good to one or two units in the last place. */
#ifndef TP_ENGINE_BACKEND_CPU_VEC_MATH_H
#define TP_ENGINE_BACKEND_CPU_VEC_MATH_H

#include "engine/backend/cpu/vec.h"

/* 2^r for |r| <= 1/2, scaled by 2^n */
VF_INLINE vf vf_exp2_reduced(vf r, vf n)
{
    vf p = vf_set(0.0001535332791f);
    p = vf_fma(p, r, vf_set(0.001339890003f));
    p = vf_fma(p, r, vf_set(0.009618437656f));
    p = vf_fma(p, r, vf_set(0.05550332411f));
    p = vf_fma(p, r, vf_set(0.2402264791f));
    p = vf_fma(p, r, vf_set(0.6931472029f));
    p = vf_fma(p, r, vf_set(1.0f));
    return vf_ldexp(p, n);
}

/* 2^x; 0 below x = -150, so that -infinity is fine */
VF_INLINE vf vf_exp2(vf x)
{
    x = vf_max(vf_set(-151.0f), vf_min(vf_set(129.0f), x));
    vf n = vf_round(x);
    return vf_exp2_reduced(x - n, n);
}

/* e^x: ln 2 in two pieces keeps the reduction exact */
VF_INLINE vf vf_exp(vf x)
{
    x = vf_max(vf_set(-104.0f), vf_min(vf_set(89.0f), x));
    vf n = vf_round(x * 1.442695041f);
    vf r = vf_fma(n, vf_set(-0x1.62e4p-1f), x);
    r = vf_fma(n, vf_set(-0x1.7f7d1cp-20f), r);
    vf p = vf_set(0.001381447123f);
    p = vf_fma(p, r, vf_set(0.00836878069f));
    p = vf_fma(p, r, vf_set(0.04166839415f));
    p = vf_fma(p, r, vf_set(0.166665201f));
    p = vf_fma(p, r, vf_set(0.4999999341f));
    p = vf_fma(p, r * r, r + 1.0f);
    return vf_ldexp(p, n);
}

/* ln x for normal x > 0: 2 atanh(s) with s = (m - 1) / (m + 1); infinity and NaN stay */
VF_INLINE vf vf_log(vf x)
{
    vf n;
    vf m = vf_frexp(x, &n);
    vf s = (m - 1.0f) / (m + 1.0f);
    vf s2 = s * s;
    vf p = vf_set(0.235963331f);
    p = vf_fma(p, s2, vf_set(0.2853660288f));
    p = vf_fma(p, s2, vf_set(0.4000034557f));
    p = vf_fma(p, s2, vf_set(0.666666656f));
    vf tail = vf_fma(p * s2, s, n * 0x1.7f7d1cp-20f);
    vf y = vf_fma(n, vf_set(0x1.62e4p-1f), vf_fma(s, vf_set(2.0f), tail));
    return vf_select(vm_lt(x, vf_set(__builtin_inff())), y, x);
}

VF_INLINE vf vf_sigmoid(vf x) { return 1.0f / (1.0f + vf_exp(-x)); }

typedef struct {
    vf sigmoid, rest; /* of 1 */
} vf_shares;

#if defined(VF_HAS_RECIPROCAL) && !defined(TP_CPU_F16)
/* For results that are rounded to bf16: 2^r of fourth degree and a reciprocal without division
 * are off by 7e-5 of the value at most, a thirtieth of what rounding loses. */
VF_INLINE vf_shares vf_shares_for_half(vf x)
{
    vf y = vf_min(vf_set(127.5f), x * -1.442695041f); /* 2^y stays finite */
    vf n = vf_round(y), r = y - n;
    vf p = vf_set(0.009570102015f);
    p = vf_fma(p, r, vf_set(0.05591786031f));
    p = vf_fma(p, r, vf_set(0.2402474482f));
    p = vf_fma(p, r, vf_set(0.6931218147f));
    p = vf_fma(p, r, vf_set(0.9999992614f));
    vf e = vf_ldexp(p, n), s = vf_reciprocal(1.0f + e);
    return (vf_shares){s, e * s};
}
#endif

/* sigmoid(x) and sigmoid(-x).  `to_half`: what becomes of them will be rounded. */
VF_INLINE vf_shares vf_shares_of(vf x, const bool to_half)
{
#if defined(VF_HAS_RECIPROCAL) && !defined(TP_CPU_F16)
    if (to_half)
        return vf_shares_for_half(x);
#endif
    (void)to_half;
    vf s = vf_sigmoid(x);
    return (vf_shares){s, 1.0f - s};
}

/* The normal distribution: Phi(x) and, when asked, its density.  With z = |x| / sqrt(2) the
 * tail is erfc(z) / 2 = exp(-z^2) t P(t) / 2 where t = 1 / (1 + 0.4 z). */
VF_INLINE vf vf_normal_cdf(vf x, vf *ret_density)
{
    vf z = vf_abs(x) * 0.7071067812f;
    vf bell = vf_exp(-(z * z));
    vf t = 1.0f / vf_fma(z, vf_set(0.4f), vf_set(1.0f));
    vf p = vf_set(-0.02959396918f);
    p = vf_fma(p, t, vf_set(0.1980112766f));
    p = vf_fma(p, t, vf_set(-0.4988070861f));
    p = vf_fma(p, t, vf_set(0.5474297755f));
    p = vf_fma(p, t, vf_set(-0.2843621581f));
    p = vf_fma(p, t, vf_set(0.2720639061f));
    p = vf_fma(p, t, vf_set(0.1296803712f));
    p = vf_fma(p, t, vf_set(0.2149189436f));
    p = vf_fma(p, t, vf_set(0.2249520397f));
    p = vf_fma(p, t, vf_set(0.2257069084f));
    vf tail = bell * t * p * 0.5f;
    if (ret_density)
        *ret_density = bell * 0.3989422804f;
    return vf_select(vm_lt(x, vf_zero()), tail, 1.0f - tail);
}

/* s + x s (1 - s) with s = sigmoid(x) */
VF_INLINE vf vf_silu_slope(vf x, vf_shares of_x)
{
    return vf_fma(x * of_x.sigmoid, of_x.rest, of_x.sigmoid);
}

#endif
