#include "engine/generate/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

/* log of the sum of exp, in double. */
static double log_sum_exp(const float *logits, size_t n, double scale)
{
    double top = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++)
        top = fmax(top, (double)logits[i] * scale);
    for (size_t i = 0; i < n; i++)
        sum += exp((double)logits[i] * scale - top);
    return top + log(sum);
}

static size_t arg_max(const float *logits, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

/* Sort key: larger logit first, lower id among equals. */
static uint64_t key_of(float logit, uint32_t id)
{
    uint32_t bits;
    memcpy(&bits, &logit, sizeof bits);
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u; /* order of floats as unsigned */
    return (uint64_t)bits << 32 | (0xffffffffu - id);
}

static int descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static uint32_t id_of(uint64_t key)
{
    return 0xffffffffu - (uint32_t)key;
}

/* How many of the sorted candidates top-k and top-p leave. */
static size_t cut(const float *logits, const uint64_t *keys, size_t n, const tp_sampling *s,
                  double scale)
{
    if (s->top_k > 0 && (size_t)s->top_k < n)
        n = (size_t)s->top_k;
    if (s->top_p <= 0 || s->top_p >= 1)
        return n;
    double top = (double)logits[id_of(keys[0])] * scale, total = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        total += exp((double)logits[id_of(keys[i])] * scale - top);
    for (size_t i = 0; i < n; i++) {
        sum += exp((double)logits[id_of(keys[i])] * scale - top);
        if (sum >= s->top_p * total)
            return i + 1;
    }
    return n;
}

static size_t draw(const float *logits, const uint64_t *keys, size_t n, double scale, double u)
{
    double top = -INFINITY, total = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        top = fmax(top, (double)logits[keys ? id_of(keys[i]) : i] * scale);
    for (size_t i = 0; i < n; i++)
        total += exp((double)logits[keys ? id_of(keys[i]) : i] * scale - top);
    for (size_t i = 0; i < n; i++) {
        size_t id = keys ? id_of(keys[i]) : i;
        sum += exp((double)logits[id] * scale - top);
        if (sum > u * total)
            return id;
    }
    return keys ? id_of(keys[n - 1]) : n - 1;
}

int32_t tp_sample(const float *logits, size_t n, size_t n_tokens, const tp_sampling *s,
                  uint64_t position, uint64_t *scratch, float *ret_logp)
{
    size_t allowed = n_tokens && n_tokens < n ? n_tokens : n, id;
    if (s->temperature <= 0) {
        id = arg_max(logits, allowed);
    } else {
        double scale = 1.0 / s->temperature;
        tp_rng rng = tp_rng_make(s->seed, s->stream);
        rng.counter = position;
        double u = tp_rng_uniform(&rng);
        if (s->top_k > 0 || (s->top_p > 0 && s->top_p < 1)) {
            for (size_t i = 0; i < allowed; i++)
                scratch[i] = key_of(logits[i], (uint32_t)i);
            qsort(scratch, allowed, sizeof *scratch, descending);
            id = draw(logits, scratch, cut(logits, scratch, allowed, s, scale), scale, u);
        } else
            id = draw(logits, NULL, allowed, scale, u);
    }
    *ret_logp = (float)((double)logits[id] - log_sum_exp(logits, n, 1.0));
    return (int32_t)id;
}
