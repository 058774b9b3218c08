/* generator.h - text from a model: weights, tokenizer and KV cache as one object.
 *
 *     tp_text_generator_open("folder", NULL, &gen, &err);
 *     tp_text_request request = {.size = sizeof request, .on_piece = print};
 *     tp_text_generator_continue(gen, "Once", 4, &request, NULL, &err);
 *     tp_text_generator_free(gen);
 *
 * One sequence at a time, and one call at a time per generator; threads bring a generator
 * each.  The same request gives the same ids, always. */
#ifndef TEMPER_GENERATOR_H
#define TEMPER_GENERATOR_H

#include "temper/model.h"
#include "temper/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tp_text_generator tp_text_generator;

typedef struct {
    size_t size;           /* sizeof(tp_text_generator_options) */
    const char *precision; /* of products and cache: "bfloat16" (also NULL) or "float32" */
    int threads;           /* 0: one per core */
    int64_t max_length;    /* prompt and answer, in tokens; the cache is made for it.  0: what
                              the model allows, at most 2048 */
} tp_text_generator_options;

/* `path` is a Hugging Face folder, a checkpoint, or the folder of a run (then its newest
 * checkpoint that verifies).  A folder without tokenizer.json opens too: it takes and gives
 * ids only.  Reads all weights; `options` may be NULL.
 * TP_ERR_IO, TP_ERR_FORMAT, TP_ERR_UNSUPPORTED, TP_ERR_CONFIG, TP_ERR_NOMEM, TP_ERR_ARG. */
TP_API TP_CHECKED tp_status tp_text_generator_open(const char *path,
                                                   const tp_text_generator_options *options,
                                                   tp_text_generator **ret, tp_error *err);
TP_API void tp_text_generator_free(tp_text_generator *gen); /* NULL is a no-op */

/* Owned by the generator. */
TP_API const tp_model *tp_text_generator_model(const tp_text_generator *gen);
TP_API const tp_tokenizer *tp_text_generator_tokenizer(const tp_text_generator *gen); /* or NULL */

/* "The file" below is the folder's generation_config.json, obeyed as `temper generate` does: what
 * it asks beyond length and sampling (repetition_penalty, suppress_tokens ...) counts as well, and
 * opening refuses by name what would change a text and is not done. */

/* One new token.  `text` is what it completes: whole characters, n_text bytes, no NUL, valid
 * during the call; a token inside a character completes nothing yet, and special tokens have
 * no text.  When an answer ends inside a character, a last piece with id -1 brings the rest. */
typedef struct {
    int32_t id;
    float logp; /* under the model's distribution, before temperature and cuts */
    const char *text;
    size_t n_text;
} tp_text_piece;

typedef struct {
    size_t size;            /* sizeof(tp_text_request) */
    int64_t max_new_tokens; /* 0: the file's, else 128; what max_length leaves if that is less */
    double temperature;     /* 0: greedy; NaN: the file's, else greedy */
    int64_t top_k;          /* draw from the k likeliest; 0: the file's, else all; -1: all */
    double
        top_p; /* draw from the likeliest that make up p, 0..1; 0: the file's, else all; 1: all */
    uint64_t seed;
    const int32_t *stop_ids; /* end the answer and are not part of it, n_stop_ids of them */
    size_t n_stop_ids;
    bool ignore_eos; /* otherwise the ids that the model and the tokenizer name stop too */
    bool (*on_piece)(void *user, const tp_text_piece *piece); /* false stops; may be NULL */
    void *user;
    bool ignore_generation_config; /* only the request counts */
} tp_text_request;

typedef struct {
    size_t size; /* sizeof(tp_text_result), set by the caller */
    int64_t prompt_tokens, new_tokens;
    bool hit_stop; /* else it ended by length or by the callback */
    double prefill_s, decode_s;
} tp_text_result;

/* Continue a text of n bytes: the tokenizer's bos is added, special tokens in it count.
 * `request` may be NULL (as the file says; else 128 tokens, greedy), `ret` too.
 * TP_ERR_CONFIG: no tokenizer, or the prompt does not fit max_length; TP_ERR_ARG. */
TP_API TP_CHECKED tp_status tp_text_generator_continue(tp_text_generator *gen, const char *text,
                                                       size_t n, const tp_text_request *request,
                                                       tp_text_result *ret, tp_error *err);
/* The same from ids, each in [0, vocab), at least one; they are taken as they are. */
TP_API TP_CHECKED tp_status tp_text_generator_continue_ids(tp_text_generator *gen,
                                                           const int32_t *ids, size_t n,
                                                           const tp_text_request *request,
                                                           tp_text_result *ret, tp_error *err);
/* Answer a conversation, JSON text as in chat.h, with the tokenizer's chat template. */
TP_API TP_CHECKED tp_status tp_text_generator_answer(tp_text_generator *gen,
                                                     const char *conversation, size_t n,
                                                     const tp_text_request *request,
                                                     tp_text_result *ret, tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
