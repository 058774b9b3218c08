/* generator.h - text from a model: weights, tokenizer and KV cache as one object.
 *
 *     tp_text_generator_open("folder", NULL, &gen, &err);
 *     tp_text_request request = {.size = sizeof request, .on_piece = print};
 *     tp_text_generator_continue(gen, "Once", 4, &request, NULL, &err);
 *     tp_text_generator_free(gen);
 *
 * One call at a time per generator; threads bring a generator each.  The same request gives the
 * same ids, always.  Many prompts, with several answers each, run together:
 *
 *     tp_text_prompts_new(gen, &prompts, &err);
 *     tp_text_prompts_add_file(prompts, "prompts.jsonl", NULL, false, &err);
 *     tp_text_generator_run(gen, prompts, &request, take, NULL, NULL, &err);
 *
 * Each of them may have an adapter of its own (LoRA, DoRA) on the model that all share.
 *
 * Threads: a generator, and the prompts made for it, by one thread at a time; several generators
 * at once. What a generator lends (tp_text_generator_model(), tp_text_generator_tokenizer()) is
 * read-only and may be shared while it lives. */
#ifndef TEMPER_GENERATOR_H
#define TEMPER_GENERATOR_H

#include "temper/model.h"
#include "temper/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tp_text_generator tp_text_generator;

/* An adapter on the model of a generator: what requests and prompts call it, and the folder of
 * PEFT, checkpoint or run that it is in. */
typedef struct {
    const char *name, *path;
} tp_text_adapter;

typedef struct {
    size_t size;              /* sizeof(tp_text_generator_options) */
    const char *precision;    /* of products and cache: "bfloat16" (also NULL) or "float32" */
    int threads;              /* 0: one per core */
    int64_t max_length;       /* prompt and answer, in tokens; the cache is made for it.  0: what
                                 the model allows, at most 2048; TP_TEXT_AS_NEEDED: what the first
                                 tp_text_generator_run() needs; weights are read there, not in open */
    const char *kv_precision; /* of keys and values; NULL: as precision */
    uint64_t kv_bytes;        /* for keys and values at most; what does not fit waits.  0: what is
                                 needed, at most 1 GiB */
    int64_t max_running;      /* answers at the same time; 0: 1, and 64 with TP_TEXT_AS_NEEDED */
    int64_t most_length;      /* with TP_TEXT_AS_NEEDED: not more than that; 0: no such bound */
    void (*notice)(void *user, const char *text); /* what a user should know; may be NULL */
    void *user;
    const char *base; /* "int8", "nf4": the matrices of the blocks in 8 or 4 bits; NULL: as they
                         are */
    /* On the model, which has none of its own: n_adapters.  Answers with different ones run
     * together, and each is what it is alone, bit for bit. */
    const tp_text_adapter *adapters;
    size_t n_adapters;
    /* Speculative decoding by prompt lookup: where the last two ids or more stood in a text before,
     * up to so many that followed there are tried at once while few answers run.  Texts are the
     * same, those that repeat themselves or their prompt come sooner.  0: not */
    int64_t prompt_lookup;
} tp_text_generator_options;

enum { TP_TEXT_AS_NEEDED = -1 };

/* `path` is a Hugging Face folder, a checkpoint, or the folder of a run (then its newest
 * checkpoint that verifies).  A folder without tokenizer.json opens too: it takes and gives
 * ids only.  Reads all weights; `options` may be NULL.
 * TP_ERR_IO, TP_ERR_FORMAT, TP_ERR_UNSUPPORTED, TP_ERR_CONFIG, TP_ERR_NOMEM, TP_ERR_ARG. */
TP_API TP_CHECKED tp_status tp_text_generator_open(const char *path,
                                                   const tp_text_generator_options *options,
                                                   tp_text_generator **ret, tp_error *err);
TP_API void tp_text_generator_free(tp_text_generator *gen); /* NULL is a no-op */

/* Owned by the generator. */
TP_API const char *tp_text_generator_folder(const tp_text_generator *gen); /* with config.json */
TP_API const tp_model *tp_text_generator_model(const tp_text_generator *gen);
TP_API const tp_tokenizer *tp_text_generator_tokenizer(const tp_text_generator *gen); /* or NULL */

/* "The file" below is the folder's generation_config.json, obeyed as `temper generate` does: what
 * it asks beyond length and sampling (repetition_penalty, suppress_tokens ...) counts as well, and
 * a request that does not ignore it is refused by name where it asks for what would change a text
 * and is not done. */

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
    double min_p; /* draw from ids at least so many times as likely as the likeliest; 0: the
                     file's, else all; -1: all */
    const char *const *stop_strings; /* end the answer and are not part of it; none empty */
    size_t n_stop_strings;
    int64_t samples;                 /* tp_text_generator_run(): answers to each prompt; 0: 1 */
    bool (*should_stop)(void *user); /* asked before each token; may be NULL */
    const char *adapter; /* of those of the generator, where a prompt has none named; NULL: the
                            model itself */
} tp_text_request;

typedef struct {
    size_t size; /* sizeof(tp_text_result), set by the caller */
    int64_t prompt_tokens, new_tokens;
    bool hit_stop; /* else it ended by length or by the callback */
    double prefill_s, decode_s;
    const char *finish; /* "stop", "length", "capacity" (of the cache), "cancelled" */
} tp_text_result;

/* Continue a text of n bytes: the tokenizer's bos is added, special tokens in it count.
 * `request` may be NULL (as the file says; else 128 tokens, greedy), `ret` too.
 * TP_ERR_CONFIG: no tokenizer, the prompt does not fit max_length, or the folder's rules leave no
 * id; TP_ERR_NUMERIC: the weights are broken; TP_ERR_ARG. */
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

/* ---- many prompts ---- */

typedef struct tp_text_prompts tp_text_prompts;

/* Prompts for this generator, which has a tokenizer.  TP_ERR_IO: it has none. */
TP_API TP_CHECKED tp_status tp_text_prompts_new(tp_text_generator *gen, tp_text_prompts **ret,
                                                tp_error *err);
TP_API void tp_text_prompts_free(tp_text_prompts *prompts); /* NULL is a no-op */
/* A text of n bytes; `chat`: it is a user's message, for the chat template.  `place` is what
 * errors call it.  TP_ERR_CONFIG: it is empty, or there is no template; TP_ERR_FORMAT. */
TP_API TP_CHECKED tp_status tp_text_prompts_add(tp_text_prompts *prompts, const char *place,
                                                const char *text, size_t n, bool chat,
                                                tp_error *err);
/* JSON lines, each a text or an object; `key` names the member of it, NULL: messages, prompt,
 * question or text.  A member "adapter" names one of the generator's, or is null for the model
 * itself.  "-" is standard input.  TP_ERR_IO, TP_ERR_FORMAT, TP_ERR_CONFIG. */
TP_API TP_CHECKED tp_status tp_text_prompts_add_file(tp_text_prompts *prompts, const char *path,
                                                     const char *key, bool chat, tp_error *err);
/* All of standard input as one text. */
TP_API TP_CHECKED tp_status tp_text_prompts_add_input(tp_text_prompts *prompts, bool chat,
                                                      tp_error *err);
/* The adapter of prompt `index`, from 0; NULL: the model itself.  TP_ERR_CONFIG: there is none of
 * that name. */
TP_API TP_CHECKED tp_status tp_text_prompts_set_adapter(tp_text_prompts *prompts, size_t index,
                                                        const char *adapter, tp_error *err);
TP_API size_t tp_text_prompts_count(const tp_text_prompts *prompts);

/* How far a run is. */
typedef struct {
    int64_t done, n, running, waiting; /* answers */
    int64_t prompt_tokens, new_tokens;
    double seconds, prefill_s, elapsed_s; /* in steps; of them with prompts; since the beginning */
    uint64_t kv_peak_bytes;
    int64_t drafted_tokens, accepted_tokens, steps; /* by prompt lookup: tried, found right */
} tp_text_work;

/* An answer as far as it is: the first that is not complete, or one that just became so, in the
 * order of prompts and samples.  Valid during the call. */
typedef struct {
    int64_t prompt, sample;  /* which of the prompts, which of its answers */
    const char *text;        /* so far: whole characters, nothing that may be a stop string */
    size_t n_text, n_new;    /* bytes; those at the end that the last call had not */
    const char *finish;      /* as in tp_text_result, "nonfinite", "ruled_out"; NULL: it goes on */
    const char *stop_string; /* that ended it, or NULL */
    const char *prompt_text; /* as the ids spell it, n_prompt_text bytes */
    size_t n_prompt_text;
    const int32_t *prompt_ids, *ids; /* n_prompt_ids, n_ids; a stop id is the last */
    size_t n_prompt_ids, n_ids;
    const float *logps, *sampled_logps; /* n_ids: under the model's distribution, and under the one
                                           that was drawn from */
    const tp_text_work *work;
    const char *adapter; /* that it has; NULL: the model itself */
} tp_text_answer;
typedef bool tp_text_take(void *user, const tp_text_answer *answer); /* false stops */

/* Answer all prompts; `take` gets each answer as it grows.  (optional) *ret_work.
 * TP_ERR_CONFIG: a prompt does not fit; TP_ERR_NOMEM.  Behind the last answer: TP_ERR_NUMERIC, some
 * ended because the weights are broken; TP_ERR_CONFIG, because the folder's rules leave no id. */
TP_API TP_CHECKED tp_status tp_text_generator_run(tp_text_generator *gen,
                                                  const tp_text_prompts *prompts,
                                                  const tp_text_request *request,
                                                  tp_text_take *take, void *user,
                                                  tp_text_work *ret_work, tp_error *err);
/* An answer as one line of JSON: text, ids, log-probabilities, why it ended.  tp_free(). */
TP_API void tp_text_answer_json(const tp_text_answer *answer, char **ret_text, size_t *ret_n);

#ifdef __cplusplus
}
#endif

#endif
