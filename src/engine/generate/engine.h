/* engine.h - many texts at once from one model.
 *
 * Requests (a prompt and how many samples of it) are submitted; every step runs one
 * graph over the next tokens of whatever is in flight: pieces of prompts and one token
 * of each answer, packed together.  Weights are read once per step.  Keys and values lie
 * in blocks of a cache of fixed size; the samples of a prompt share its blocks, and what
 * does not fit waits.  A sample that runs out of blocks is put back and computed again
 * later, with the same result.
 *
 *     tp_engine_create(model, &options, states, &engine, &err);   plans, declares states
 *     tp_engine_alloc(engine, &err);                              memory
 *     ... weights into the states ...
 *     tp_engine_weights_changed(engine);
 *     tp_engine_submit(engine, &request, &id, &err);              as many as wanted
 *     tp_engine_run(engine, &err);                                or tp_engine_step()
 *     tp_engine_sample(engine, id, j)->ids ...
 *     tp_engine_forget(engine, id);
 *
 * What a sample is depends on the weights, its adapter, its prompt, its sampling parameters and its
 * (seed, stream) alone: not on what else runs, on threads, on the size of the cache or of
 * a step.  Weights may be shared with a training session: states are found by name.
 * One thread at a time per engine. */
#ifndef TP_ENGINE_GENERATE_ENGINE_H
#define TP_ENGINE_GENERATE_ENGINE_H

#include "engine/comm/comm.h"
#include "engine/exec/program.h"
#include "engine/model/model.h"
#include "text/tokenizer/tokenizer.h"

enum { TP_ENGINE_STEP_TOKENS = 512, TP_ENGINE_BLOCK_TOKENS = 32 }; /* defaults */

/* Speculative decoding by prompt lookup: where the last ids of a text stood in it before, what
 * followed them there is tried as what follows now.  Changes no text.  Zeroed: none. */
typedef struct {
    int64_t tokens;                 /* tried at a time, for an answer; 0: none */
    int64_t lookup_max, lookup_min; /* last ids that must agree: the longest run that is looked
                                       for, and the shortest; 0: the defaults */
    int64_t rows;                   /* of answers in a step, with what is tried, at most; answers
                                       that are more try nothing.  0: the default */
} tp_drafting;

typedef struct {
    tp_program *program;    /* to add to, compiled by the caller; NULL: one of its own ... */
    tp_device *device;      /* ... on this device, which outlives the engine */
    tp_dtype compute_dtype; /* f32 or bf16: activations and products */
    tp_dtype cache_dtype;   /* f32 or bf16: keys and values */
    int64_t max_length;     /* prompt and answer, in tokens; 0: what the model allows */
    int64_t step_tokens;    /* rows of a step at most; 0: the default */
    int64_t max_running;    /* samples in flight at most; 0: 64 */
    int64_t block_tokens;   /* tokens of a block of the cache, a multiple of 16; 0: default */
    size_t cache_bytes;     /* of all keys and values at most; 0: what max_running samples of
                               max_length need, at most 1 GiB */
    int32_t n_tokens;       /* ids from here on have no token and are never drawn; 0: all may be */
    const tp_tokenizer *tokenizer; /* needed for stop strings only; may be NULL */
    tp_drafting drafting;
    /* Weights of which ranks keep parts are gathered in every step, not in copies that stay: each
     * rank calls tp_engine_step() until nobody is busy, with requests of its own or without. */
    bool gathers;
    tp_comm *comm;
} tp_engine_options;

typedef struct tp_engine tp_engine;

/* `states` holds (or will hold) the weights; what the engine needs more is declared in
 * it.  `model`, `states` and the tokenizer must outlive the engine.  Nothing large is
 * allocated.  TP_ERR_CONFIG when not even one block per layer fits cache_bytes. */
TP_CHECKED tp_status tp_engine_create(const tp_model *model, const tp_engine_options *options,
                                      tp_states *states, tp_engine **ret, tp_error *err);
/* Memory for the states that have none yet, and for the steps. */
TP_CHECKED tp_status tp_engine_alloc(tp_engine *engine, tp_error *err);
void tp_engine_free(tp_engine *engine); /* NULL is a no-op */

/* After weights were loaded or updated, before the next step.  No sample may be in
 * flight: what was computed before would be mixed with what comes (asserted). */
TP_CHECKED tp_status tp_engine_weights_changed(tp_engine *engine, tp_error *err);

/* Temperature first, then top-k, then top-p on what is left, then min-p; ties at a cut go
 * to the lower id.  A zeroed one is greedy. */
typedef struct {
    double temperature; /* 0: greedy, the lowest id among equals */
    int64_t top_k;      /* <= 0: all */
    double top_p;       /* <= 0 or >= 1: all */
    double min_p;       /* keep ids at least this fraction as likely as the likeliest; 0: all */
} tp_sampling;

/* Rules about which ids may come next, as transformers' generate() has them.  Zeroed: none. */
typedef struct {
    double repetition_penalty; /* of ids that prompt and answer have; 0 or 1: none */
    int64_t no_repeat_ngram;   /* no so many ids in a row appear again; 0: any may */
    int64_t min_new_tokens;    /* stop ids are not drawn before */
    const int32_t *suppressed; /* never drawn */
    size_t n_suppressed;
    const int32_t *suppressed_first; /* not drawn as the first of an answer */
    size_t n_suppressed_first;
} tp_logit_rules;

typedef enum {
    TP_FINISH_NONE,      /* waiting or running */
    TP_FINISH_STOP,      /* a stop id (the last of ids) or a stop string */
    TP_FINISH_LENGTH,    /* max_new_tokens, or max_length of the engine */
    TP_FINISH_CAPACITY,  /* the cache cannot hold this sample even alone */
    TP_FINISH_NONFINITE, /* NaN or infinite logits: the weights are broken */
    TP_FINISH_CANCELLED, /* by on_token or tp_engine_cancel() */
    TP_FINISH_RULED_OUT, /* the rules leave no id */
    TP_FINISH_KINDS
} tp_finish;
const char *tp_finish_name(tp_finish finish); /* "stop", "length", ...; NONE: "running" */

/* One new token of a sample. */
typedef struct {
    int64_t request, sample; /* id of the request, which of its samples */
    int32_t id;
    float logp;         /* under softmax(logits) */
    float sampled_logp; /* under the distribution it was drawn from (0 when greedy) */
    bool is_stop;       /* a stop id: not part of the text */
} tp_engine_token;

typedef struct {
    const int32_t *prompt; /* n_prompt >= 1 ids, copied */
    size_t n_prompt;
    int64_t n_samples;      /* 0: 1 */
    int64_t max_new_tokens; /* 0: as many as max_length leaves */
    tp_sampling sampling;
    tp_logit_rules rules;    /* lists are copied */
    int32_t adapter;         /* of those beside the model, from 1; 0: none */
    uint64_t seed;           /* sample j at position p draws from (seed, stream + j, p) */
    uint64_t stream;         /* number the samples of a batch: prompt i of n samples each, i * n */
    const int32_t *stop_ids; /* copied */
    size_t n_stop_ids;
    const char *const *stop_strings; /* copied; none empty */
    size_t n_stop_strings;
    /* (optional) each new token, in the order of a sample's text; false cancels the sample */
    bool (*on_token)(void *user, const tp_engine_token *token);
    void *user;
} tp_request;

/* TP_ERR_CONFIG: an empty prompt, one that leaves no room in max_length, stop strings
 * without a tokenizer; TP_ERR_FORMAT: an id outside the vocabulary.  *ret_id names the
 * request until it is forgotten. */
TP_CHECKED tp_status tp_engine_submit(tp_engine *engine, const tp_request *request, int64_t *ret_id,
                                      tp_error *err);

/* Run one step; *ret_is_busy is false when nothing is left to do.  An error is the device's:
 * the engine is of no more use then. */
TP_CHECKED tp_status tp_engine_step(tp_engine *engine, bool *ret_is_busy, tp_error *err);
/* Step until nothing is in flight. */
TP_CHECKED tp_status tp_engine_run(tp_engine *engine, tp_error *err);

typedef struct {
    tp_finish finish;
    int32_t stop_string; /* which of the stop strings ended it, or -1 */
    size_t n;            /* new tokens, a stop id included */
    const int32_t *ids;
    const float *logp, *sampled_logp; /* of each id: see tp_engine_token */
} tp_sample_result;
/* Valid until the next step or tp_engine_forget(). */
tp_sample_result tp_engine_sample(const tp_engine *engine, int64_t request, int64_t sample);
/* Its text once it has ended, as it is judged: without a stop id, with the stop string that ended
 * it and what the last token has behind that. */
void tp_sample_text(const tp_tokenizer *tokenizer, const tp_sample_result *sample, tp_buf *out);
/* The ids that end an answer: the model's and the tokenizer's (or NULL). */
void tp_stop_ids_find(const tp_model *model, const tp_tokenizer *tokenizer, tp_ids *out);
/* Samples that do not run any more keep what they have (finish = cancelled). */
void tp_engine_cancel(tp_engine *engine, int64_t request);
/* Free a request; what is still in flight is cancelled. */
void tp_engine_forget(tp_engine *engine, int64_t request);

/* Since creation or the last reset; bytes and counts of now are marked. */
typedef struct {
    int64_t steps;
    int64_t prefill_tokens;    /* rows of prompts that were computed */
    int64_t shared_tokens;     /* rows of prompts that other samples had computed already */
    int64_t recomputed_tokens; /* rows computed again after a sample had been put back */
    int64_t decode_tokens;     /* new tokens */
    int64_t drafted_tokens;    /* tried, see tp_drafting ... */
    int64_t accepted_tokens;   /* ... and found to be what comes: of decode_tokens */
    int64_t preemptions;       /* samples put back for want of blocks */
    int64_t running, waiting;  /* samples, now */
    int64_t peak_running;
    double seconds;                /* in steps */
    double prefill_s, decode_s;    /* steps with rows of prompts, steps without */
    size_t cache_bytes;            /* of the cache (fixed) */
    size_t used_bytes, peak_bytes; /* of blocks in use, now and at most */
} tp_engine_stats;
tp_engine_stats tp_engine_get_stats(const tp_engine *engine);
void tp_engine_reset_stats(tp_engine *engine);

/* The plan of a step: for reports and for the operator table. */
const tp_exec *tp_engine_exec(const tp_engine *engine);

#endif
