/* sample.h - from logits to one id.
 *
 * Temperature first, then top-k, then top-p on what is left; temperature 0 is greedy
 * (the lowest id among equals).  The draw is a function of (seed, stream, position):
 * the same text whatever else runs. */
#ifndef TP_ENGINE_GENERATE_SAMPLE_H
#define TP_ENGINE_GENERATE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    double temperature; /* 0: greedy */
    int64_t top_k;      /* <= 0: all */
    double top_p;       /* >= 1 or <= 0: all */
    uint64_t seed, stream;
} tp_sampling;

/* `scratch` holds 2 * n floats' worth of bytes for sorting (n uint64).  Ids from n_tokens
 * on are never chosen.  *ret_logp: log-probability of the id under softmax(logits). */
int32_t tp_sample(const float *logits, size_t n, size_t n_tokens, const tp_sampling *sampling,
                  uint64_t position, uint64_t *scratch, float *ret_logp);

#endif
