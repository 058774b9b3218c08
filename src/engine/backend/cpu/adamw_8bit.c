/* adamw_8bit.c - AdamW with moments in 8 bits: a block at a time is decoded into the cache, stepped
 * and encoded.  Decoding is a look-up, encoding one by the upper half of the number and a
 * comparison or two; with AVX-512 a search in registers. */
#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/vec.h"

#include <math.h>

#include "engine/device/dynamic_map.h"
#if defined(__AVX512F__)
#include "engine/backend/cpu/codes_avx512.h"
#endif

enum { BLOCK = TP_DYNAMIC_BLOCK, BLOCKS_OF_ITEM = 64 };

typedef struct {
    const tp_launch *launch;
    const tp_dynamic_map *m_map, *v_map;
    int64_t n, n_blocks;
    float keep1, take1, keep2, take2; /* beta and 1 - beta */
    float factor, shrink, rate, root_correction, eps;
} adamw;

typedef struct {
    float m[BLOCK], v[BLOCK];
} moments;

static adamw adamw_of(const tp_launch *launch)
{
    const double *s = launch->in[2].data;
    int64_t n = n_rows(&launch->in[0]) * row_width(&launch->in[0]);
    return (adamw){.launch = launch,
                   .m_map = tp_dynamic_map_signed(),
                   .v_map = tp_dynamic_map_unsigned(),
                   .n = n,
                   .n_blocks = ceil_div(n, BLOCK),
                   .keep1 = (float)s[1],
                   .take1 = (float)(1 - s[1]),
                   .keep2 = (float)s[2],
                   .take2 = (float)(1 - s[2]),
                   .eps = (float)s[3],
                   .factor = (float)s[7],
                   .shrink = (float)(1 - s[0] * s[4] * (double)launch->attrs.decay),
                   .rate = (float)(s[0] / s[5]),
                   .root_correction = (float)(1 / sqrt(s[6]))};
}

#if !defined(__AVX512F__)
static inline void codes_decode(float *to, const tp_dynamic_map *map, const uint8_t *codes,
                                float size, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = map->value[codes[i]] * size;
}

static inline void codes_encode(uint8_t *codes, const tp_dynamic_map *map, const float *x,
                                int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        codes[i] = tp_dynamic_code(map, x[i]);
}
#endif

/* Returns their largest size, NaN where one of them is; they become parts of it. */
VF_INLINE float encode(float *x, const tp_dynamic_map *map, uint8_t *codes, int64_t n)
{
    vf most = vf_zero(), sum = vf_zero();
    for (int64_t i = 0; i < n; i += VF_N) {
        int64_t rest = n - i < VF_N ? n - i : VF_N;
        vf value = rest == VF_N ? vf_load(x + i) : vf_load_n(x + i, rest);
        most = vf_max(vf_abs(value), most);
        sum = vf_fma(value, vf_zero(), sum);
    }
    float size = vf_largest(most), nothing = vf_sum(sum);
    size = nothing == 0 ? size : nothing;
    for (int64_t i = 0; i < n && size != 0; i += VF_N) {
        int64_t rest = n - i < VF_N ? n - i : VF_N;
        vf_store_n(x + i, rest, vf_load_n(x + i, rest) / vf_set(size));
    }
    codes_encode(codes, map, x, n);
    return size;
}

VF_INLINE vf advance(const adamw *a, vf p, vf g, float *m, float *v, int64_t n)
{
    g *= a->factor;
    vf first = vf_fma(vf_load_n(m, n), vf_set(a->keep1), g * a->take1);
    vf second = vf_fma(vf_load_n(v, n), vf_set(a->keep2), g * g * a->take2);
    vf size = vf_fma(vf_sqrt(second), vf_set(a->root_correction), vf_set(a->eps));
    vf_store_n(m, n, first);
    vf_store_n(v, n, second);
    return p * a->shrink - first * a->rate / size;
}

static void step_block(const adamw *a, int64_t block)
{
    const tp_launch *l = a->launch;
    int64_t begin = block * BLOCK, n = a->n - begin < BLOCK ? a->n - begin : BLOCK;
    uint8_t *m_codes = (uint8_t *)l->out[1].data + begin, *v_codes = m_codes + a->n;
    float *m_size = (float *)l->out[2].data + block, *v_size = m_size + a->n_blocks;
    float *p = (float *)l->out[0].data + begin;
    const float *g = (const float *)l->in[1].data + begin;
    const tp_operand *shadow = &l->out[3];
    moments x;
    codes_decode(x.m, a->m_map, m_codes, *m_size, n);
    codes_decode(x.v, a->v_map, v_codes, *v_size, n);
    for (int64_t i = 0; i < n; i += VF_N) {
        int64_t rest = n - i < VF_N ? n - i : VF_N;
        vf next =
            advance(a, vf_load_n(p + i, rest), vf_load_n(g + i, rest), x.m + i, x.v + i, rest);
        vf_store_n(p + i, rest, next);
        if (is_bound(shadow))
            vf_store_half_n((vf_half *)shadow->data + begin + i, rest, next);
    }
    *m_size = encode(x.m, a->m_map, m_codes, n);
    *v_size = encode(x.v, a->v_map, v_codes, n);
}

static void step_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const adamw *a = context;
    int64_t last = end * BLOCKS_OF_ITEM < a->n_blocks ? end * BLOCKS_OF_ITEM : a->n_blocks;
    for (int64_t block = begin * BLOCKS_OF_ITEM; block < last; block++)
        step_block(a, block);
}

static void adamw_8bit(const tp_launch *launch)
{
    adamw a = adamw_of(launch);
    tp_cpu_static(launch, ceil_div(a.n_blocks, BLOCKS_OF_ITEM), a.n * 16, step_range, &a);
}

/* State is updated where it is: in and out are the same memory. */
static bool accepts_adamw_8bit(const tp_launch *launch)
{
    bool ok = launch->in[0].dtype == TP_DTYPE_F32 && launch->in[1].dtype == TP_DTYPE_F32 &&
              launch->in[2].dtype == TP_DTYPE_F64 && launch->in[3].dtype == TP_DTYPE_U8 &&
              launch->in[4].dtype == TP_DTYPE_F32 &&
              (!is_present(&launch->out[3]) || is_half(&launch->out[3]));
    for (int i = 0; i < launch->n_in; i++)
        ok = ok && has_no_gaps(&launch->in[i]);
    return ok;
}

TP_CPU_KERNEL(adamw_8bit, .accepts = accepts_adamw_8bit, .run = adamw_8bit);
