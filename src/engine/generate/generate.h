/* generate.h - text from a model, one sequence at a time.
 *
 * Two plans over the same weights and a KV cache: one takes a chunk of the prompt and
 * only fills the cache; the other takes one token and gives the logits of the next.
 * Weights may be shared with a training session: the states are found by name. */
#ifndef TP_ENGINE_GENERATE_GENERATE_H
#define TP_ENGINE_GENERATE_GENERATE_H

#include "engine/exec/exec.h"
#include "engine/generate/sample.h"
#include "engine/model/model.h"

typedef struct {
    const tp_backend *backend;
    int threads;
    tp_dtype compute_dtype; /* of activations, shadows and cache */
    int64_t max_length;     /* prompt and answer; rows of the cache and of the rope table */
    int64_t prefill_chunk;  /* tokens of the prompt at once; 0 = 64 */
} tp_generator_options;

typedef struct tp_generator tp_generator;

/* `states` holds (or will hold) the weights; the generator declares what it needs more
 * and allocates it.  `states` and `model` must outlive it. */
TP_CHECKED tp_status tp_generator_create(const tp_model *model,
                                         const tp_generator_options *options, tp_states *states,
                                         tp_generator **ret, tp_error *err);
void tp_generator_free(tp_generator *gen); /* NULL is a no-op */

/* After weights were loaded into the states (not needed when a session keeps them). */
void tp_generator_weights_changed(tp_generator *gen);

typedef struct {
    int64_t max_new_tokens;
    tp_sampling sampling;
    const int32_t *stop; /* ids that end the answer (and are not part of it) */
    size_t n_stop;
    int32_t n_tokens; /* ids >= this have no token and are never sampled; 0 = all may be */
    /* called with each new id and its log-probability under the untempered distribution;
     * returning false stops */
    bool (*on_token)(void *user, int32_t id, float logp);
    void *user;
} tp_generate_options;

typedef struct {
    int64_t prompt_tokens, new_tokens;
    double prefill_s, decode_s;
    bool hit_stop; /* else: length or the callback */
} tp_generate_result;

/* `prompt` has at least one id and fewer than max_length. */
TP_CHECKED tp_status tp_generate(tp_generator *gen, const int32_t *prompt, size_t n,
                                 const tp_generate_options *options, tp_generate_result *ret,
                                 tp_error *err);

/* Logits (f32, [vocab]) after the whole prompt: for tests and scoring. */
TP_CHECKED tp_status tp_generator_logits(tp_generator *gen, const int32_t *prompt, size_t n,
                                         const float **ret_logits, tp_error *err);

#endif
