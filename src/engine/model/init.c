/* Random weights.  Element i of a parameter depends on the seed, the parameter's name
 * and i alone: four come from one Philox block through two Box-Muller pairs.  The
 * functions are short series in plain arithmetic, so that the loop is vectorised and
 * every machine draws the same bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/platform.h"
#include "base/rng.h"
#include "engine/model/adapter_internal.h"
#include "engine/model/frozen.h"

enum { BLOCK = 512 }; /* pairs at a time */

/* ln x for normal x > 0: x = m 2^e with m in [sqrt(1/2), sqrt(2)), ln m = 2 atanh(s),
 * s = (m - 1) / (m + 1), |s| < 0.172; what the series leaves out is below 1e-9. */
static inline float natural_log(float x)
{
    const int32_t sqrt_half = 0x3f3504f3;
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int32_t e = (bits - sqrt_half) >> 23;
    bits -= e * (1 << 23);
    float m;
    memcpy(&m, &bits, sizeof m);
    float s = (m - 1) / (m + 1), z = s * s;
    float series = 1 + z * (1.0f / 3 + z * (1.0f / 5 + z * (1.0f / 7 + z * (1.0f / 9))));
    return 2 * s * series + (float)e * (float)M_LN2;
}

/* One point of the plane from two words: the radius from 24 bits of `a`; from `b` 24
 * bits of an angle within a quadrant, and two signs that choose the quadrant.  With y
 * the angle less pi/4: cos = (cos y - sin y) / sqrt 2, sin = (cos y + sin y) / sqrt 2. */
static inline void normal_pair(uint32_t a, uint32_t b, float std, float *ret_x, float *ret_y)
{
    float u = (float)(int32_t)((a >> 8) + 1) * 0x1p-24f; /* (0, 1] */
    float radius = std * (float)M_SQRT1_2 * sqrtf(-2 * natural_log(u));
    float y = ((float)(int32_t)(b >> 8) + 0.5f - 0x1p23f) * (float)(M_PI_2 * 0x1p-24);
    float z = y * y;
    float sine = y * (1 - z / 6 * (1 - z / 20 * (1 - z / 42 * (1 - z / 72))));
    float cosine = 1 - z / 2 * (1 - z / 12 * (1 - z / 30 * (1 - z / 56 * (1 - z / 90))));
    float sign_x = (float)((int32_t)(b << 1 & 2) - 1), sign_y = (float)((int32_t)(b & 2) - 1);
    *ret_x = sign_x * radius * (cosine - sine);
    *ret_y = sign_y * radius * (cosine + sine);
}

/* Elements begin .. begin + count - 1, of which at most 2 BLOCK are asked for. */
static void draw_normal(float *values, size_t begin, size_t count, uint64_t seed, uint64_t stream,
                        float std)
{
    uint32_t words[2 * BLOCK];
    for (size_t k = 0; k < count; k += 4)
        tp_philox(seed, stream, (begin + k) / 4, words + k);
    for (size_t k = 0; k < (count + 1) / 2; k++)
        normal_pair(words[2 * k], words[2 * k + 1], std, &values[2 * k], &values[2 * k + 1]);
}

static void draw_uniform(float *values, size_t begin, size_t count, uint64_t seed, uint64_t stream,
                         float bound)
{
    uint32_t words[2 * BLOCK];
    for (size_t k = 0; k < count; k += 4)
        tp_philox(seed, stream, (begin + k) / 4, words + k);
    for (size_t k = 0; k < count; k++) /* 24 bits, in the middle of their interval */
        values[k] = bound * (((float)(words[k] >> 8) + 0.5f) * 0x1p-23f - 1);
}

static tp_status write_values(const tp_tensor *s, size_t first, const float *values, size_t n,
                              tp_error *err)
{
    tp_bf16 narrow[2 * BLOCK];
    if (s->dtype == TP_DTYPE_F32)
        return tp_tensor_write(s, first * sizeof *values, values, n * sizeof *values, err);
    TP_ASSERT(s->dtype == TP_DTYPE_BF16);
    for (size_t k = 0; k < n; k++)
        narrow[k] = tp_f32_to_bf16(values[k]);
    return tp_tensor_write(s, first * sizeof *narrow, narrow, n * sizeof *narrow, err);
}

static tp_status init_param(const tp_param *p, const tp_tensor *s, bool is_uniform, uint64_t seed,
                            float std, tp_error *err)
{
    float values[2 * BLOCK];
    size_t n = tp_tensor_count(s);
    uint64_t stream = XXH3_64bits(p->name, strlen(p->name));
    for (size_t k = 0; k < 2 * BLOCK; k++)
        values[k] = p->init == TP_INIT_ONE ? 1.0f : 0.0f;
    for (size_t i = 0; i < n; i += 2 * BLOCK) {
        size_t count = TP_MIN(n - i, (size_t)2 * BLOCK);
        if (p->init == TP_INIT_NORMAL)
            (is_uniform ? draw_uniform : draw_normal)(values, i, count, seed, stream, std);
        TP_TRY(write_values(s, i, values, count, err));
    }
    return TP_OK;
}

/* The numbers that it would have in f32, in few bits. */
static tp_status init_packed(const tp_param *p, tp_states *states, uint64_t seed, float std,
                             tp_error *err)
{
    uint64_t stream = XXH3_64bits(p->name, strlen(p->name));
    size_t n = (size_t)(p->dim[0] * p->dim[1]);
    TP_FREED float *values = malloc((n + 3) * sizeof *values); /* drawn by fours */
    if (!values)
        return tp_fail(err, TP_ERR_NOMEM, "cannot draw '%s': out of memory", p->name);
    for (size_t i = 0; i < n; i += 2 * BLOCK)
        draw_normal(values + i, i, TP_MIN(n - i, (size_t)2 * BLOCK), seed, stream, std);
    return tp_param_pack(p, states, values, err);
}

tp_status tp_model_init_random(const tp_model *model, tp_states *states, uint64_t seed, double std,
                               tp_error *err)
{
    if (std == 0)
        std = model->initializer_range;
    double residual_factor = 1 / sqrt(2.0 * (double)model->info.layers);
    for (size_t i = 0; i < model->n_params; i++) {
        const tp_param *p = &model->params[i];
        const tp_tensor *s = tp_states_find(states, p->name);
        float own_std = (float)(p->is_residual_out ? std * residual_factor : std);
        TP_ASSERT(tp_param_is_packed(p) || (s && s->span.buffer));
        TP_TRY(tp_param_is_packed(p) ? init_packed(p, states, seed, own_std, err)
                                     : init_param(p, s, false, seed, own_std, err));
    }
    return TP_OK;
}

tp_status tp_param_draw(const tp_param *p, bool is_uniform, tp_states *states, uint64_t seed,
                        double spread, tp_error *err)
{
    const tp_tensor *s = tp_states_find(states, p->name);
    if (!s || !s->span.buffer)
        return tp_fail(err, TP_ERR_ARG, "tensor '%s' is not in memory", p->name);
    return init_param(p, s, is_uniform, seed, (float)spread, err);
}
