/* Random weights.  Element i of a parameter depends on the seed, the parameter's name
 * and i alone: four come from one Philox block through two Box-Muller pairs. */
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "base/platform.h"
#include "base/rng.h"
#include "engine/model/family.h"

static void normal_pair(uint32_t a, uint32_t b, float std, float out[2])
{
    float u = ((float)(a >> 8) + 1.0f) * 0x1p-24f; /* (0, 1] */
    float radius = std * sqrtf(-2.0f * logf(u));
    float angle = (float)(2 * M_PI) * ((float)(b >> 8) * 0x1p-24f);
    out[0] = radius * cosf(angle);
    out[1] = radius * sinf(angle);
}

static void fill_normal(float *x, size_t n, uint64_t seed, uint64_t stream, float std)
{
    for (size_t i = 0; i < n; i += 4) {
        uint32_t random[4];
        float values[4];
        tp_philox(seed, stream, i / 4, random);
        normal_pair(random[0], random[1], std, values);
        normal_pair(random[2], random[3], std, values + 2);
        memcpy(x + i, values, TP_MIN(n - i, (size_t)4) * sizeof *x);
    }
}

void tp_model_init_random(const tp_model *model, tp_states *states, uint64_t seed, double std)
{
    if (std == 0)
        std = model->initializer_range;
    double residual_factor = 1 / sqrt(2.0 * (double)model->info.layers);
    for (size_t i = 0; i < model->n_params; i++) {
        const tp_param *p = &model->params[i];
        const tp_state *s = tp_states_find(states, p->name);
        TP_ASSERT(s && s->data);
        float *x = s->data;
        size_t n = s->bytes / sizeof *x;
        if (p->init == TP_INIT_NORMAL)
            fill_normal(x, n, seed, XXH3_64bits(p->name, strlen(p->name)),
                        (float)(p->is_residual_out ? std * residual_factor : std));
        else
            for (size_t k = 0; k < n; k++)
                x[k] = p->init == TP_INIT_ONE ? 1.0f : 0.0f;
    }
}
