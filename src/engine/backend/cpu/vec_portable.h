/* vec_portable.h - vec.h in the compiler's vector extensions: 4 lanes, which
 * every 64-bit processor has; masks are vectors of all-ones lanes. */
#ifndef TP_ENGINE_BACKEND_CPU_VEC_PORTABLE_H
#define TP_ENGINE_BACKEND_CPU_VEC_PORTABLE_H

#include <math.h>

enum { VF_N = 4 };
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef vi vm;
typedef uint32_t vf_bits __attribute__((vector_size(16)));
typedef uint16_t vf_halves __attribute__((vector_size(8)));

VF_INLINE vm vm_first(int64_t n)
{
    vi lane = {0, 1, 2, 3};
    int32_t count = (int32_t)n;
    return lane < (vi){count, count, count, count};
}

VF_INLINE vf vf_set(float x) { return (vf){x, x, x, x}; }
VF_INLINE vf vf_zero(void) { return vf_set(0); }

VF_INLINE vf vf_load(const float *p)
{
    vf x;
    memcpy(&x, p, sizeof x);
    return x;
}

VF_INLINE void vf_store(float *p, vf x) { memcpy(p, &x, sizeof x); }

VF_INLINE vf vf_load_n(const float *p, int64_t n)
{
    vf x = vf_zero();
    memcpy(&x, p, (size_t)n * sizeof *p);
    return x;
}

VF_INLINE void vf_store_n(float *p, int64_t n, vf x) { memcpy(p, &x, (size_t)n * sizeof *p); }

VF_INLINE vf vf_select(vm m, vf yes, vf no) { return (vf)((m & (vi)yes) | (~m & (vi)no)); }

#if defined(TP_CPU_F16)
VF_INLINE vf vf_load_half(const vf_half *p)
{
    vf x;
    for (int i = 0; i < VF_N; i++)
        x[i] = tp_f16_to_f32(p[i]);
    return x;
}

VF_INLINE void vf_store_half(vf_half *p, vf x)
{
    for (int i = 0; i < VF_N; i++)
        p[i] = tp_f32_to_f16(x[i]);
}
#else
VF_INLINE vf vf_load_half(const vf_half *p)
{
    vf_halves h;
    memcpy(&h, p, sizeof h);
    return (vf)(__builtin_convertvector(h, vf_bits) << 16);
}

VF_INLINE void vf_store_half(vf_half *p, vf x)
{
    vf_bits bits = (vf_bits)x;
    vf_bits rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    vf_bits chosen = (vf_bits)vf_select(x != x, (vf)(bits | 0x400000u), (vf)rounded);
    vf_halves h = __builtin_convertvector(chosen >> 16, vf_halves);
    memcpy(p, &h, sizeof h);
}
#endif

VF_INLINE void vf_stream_half(vf_half *p, vf x) { vf_store_half(p, x); }
VF_INLINE void vf_stream_end(void) {}

VF_INLINE vf vf_load_half_n(const vf_half *p, int64_t n)
{
    vf_half lanes[VF_N] = {0};
    memcpy(lanes, p, (size_t)n * sizeof *p);
    return vf_load_half(lanes);
}

VF_INLINE void vf_store_half_n(vf_half *p, int64_t n, vf x)
{
    vf_half lanes[VF_N];
    vf_store_half(lanes, x);
    memcpy(p, lanes, (size_t)n * sizeof *p);
}

VF_INLINE vf vf_fma(vf a, vf b, vf c) { return a * b + c; }

/* Of a NaN and a number, `b` is returned. */
VF_INLINE vf vf_max(vf a, vf b) { return vf_select(a > b, a, b); }
VF_INLINE vf vf_min(vf a, vf b) { return vf_select(a < b, a, b); }
VF_INLINE vf vf_abs(vf a) { return (vf)((vi)a & 0x7fffffff); }
VF_INLINE vf vf_sqrt(vf a) { return (vf){sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3])}; }

/* To the nearest integer, for |a| < 2^22: the sum has no room for a fraction. */
VF_INLINE vf vf_round(vf a) { return (a + 0x1.8p23f) - 0x1.8p23f; }

/* x * 2^n for integral n in -252 .. 254: two factors, as 2^n itself may not be normal */
VF_INLINE vf vf_ldexp(vf x, vf n)
{
    vi whole = __builtin_convertvector(n, vi);
    vi half = whole >> 1;
    return x * (vf)((half + 127) << 23) * (vf)((whole - half + 127) << 23);
}

VF_INLINE vm vm_lt(vf a, vf b) { return a < b; }
VF_INLINE vm vm_eq(vf a, vf b) { return a == b; }
VF_INLINE vm vm_and(vm a, vm b) { return a & b; }
VF_INLINE bool vm_any(vm m) { return (m[0] | m[1] | m[2] | m[3]) != 0; }

/* x = mantissa * 2^exponent with the mantissa in [sqrt(1/2), sqrt(2)); x > 0 and normal */
VF_INLINE vf vf_frexp(vf x, vf *ret_exponent)
{
    vi exponent = ((vi)x - 0x3f3504f3) >> 23;
    *ret_exponent = __builtin_convertvector(exponent, vf);
    return (vf)((vi)x - (exponent << 23));
}

VF_INLINE float vf_sum(vf a) { return (a[0] + a[2]) + (a[1] + a[3]); }

VF_INLINE float vf_largest(vf a)
{
    float low = a[0] > a[2] ? a[0] : a[2], high = a[1] > a[3] ? a[1] : a[3];
    return low > high ? low : high;
}

VF_INLINE vi vi_set(int32_t x) { return (vi){x, x, x, x}; }

VF_INLINE vi vi_load(const int32_t *p)
{
    vi x;
    memcpy(&x, p, sizeof x);
    return x;
}

VF_INLINE vm vi_le(vi a, vi b) { return a <= b; }

/* Sum of squares of the lanes, in double. */
VF_INLINE double vf_sum_squares(vf a, double sum)
{
    double x0 = (double)a[0], x1 = (double)a[1], x2 = (double)a[2], x3 = (double)a[3];
    return sum + ((x0 * x0 + x2 * x2) + (x1 * x1 + x3 * x3));
}

#endif
