/* generator.c - a model folder as one object that continues text.
 *
 * engine/generate works on ids with weights that somebody else holds; here is that
 * somebody, together with the tokenizer. */
#include "temper/generator.h"

#include <math.h>
#include <string.h>

#include "api/sized.h"
#include "base/files.h"
#include "engine/generate/settings.h"
#include "engine/train/checkpoint.h"
#include "temper/chat.h"
#include "text/gguf/gguf.h"
#include "text/tokenizer/tokenizer.h"

enum { DEFAULT_MAX_LENGTH = 2048, DEFAULT_NEW_TOKENS = 128 };

struct tp_text_generator {
    tp_buf folder;
    tp_model *model;
    tp_tokenizer *tokenizer;       /* NULL when the folder has none */
    tp_generation_config defaults; /* of generation_config.json */
    tp_tokenizer_scratch *scratch;
    tp_device *device;
    tp_states states;
    tp_engine *engine; /* refers to model and states */
};

static tp_status open_tokenizer(tp_text_generator *gen, tp_error *err)
{
    tp_buf path = {0};
    tp_buf_addf(&path, "%s/tokenizer.json", gen->folder.data);
    bool has_one = tp_file_exists(path.data) || tp_gguf_is_file(gen->folder.data);
    tp_buf_release(&path);
    if (!has_one)
        return TP_OK;
    TP_TRY(tp_tokenizer_load(gen->folder.data, &gen->tokenizer, err));
    gen->scratch = tp_tokenizer_scratch_new(gen->tokenizer);
    int64_t vocab = tp_model_get_info(gen->model)->vocab;
    int32_t n_ids = tp_tokenizer_vocab_size(gen->tokenizer);
    if (n_ids > vocab)
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s': the tokenizer has %d ids, the model's vocabulary is %lld: they do "
                       "not belong together",
                       gen->folder.data, n_ids, (long long)vocab);
    return TP_OK;
}

static tp_status read_options(const tp_text_generator_options *options, tp_device_options *device,
                              tp_engine_options *ret, tp_error *err)
{
    tp_text_generator_options o;
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_text_generator_options", err));
    if (o.threads < 0 || o.threads > 4096)
        return tp_fail(err, TP_ERR_ARG, "threads is %d; expected 1 to 4096, or 0 for one per core",
                       o.threads);
    if (o.max_length < 0 || o.max_length == 1)
        return tp_fail(err, TP_ERR_ARG, "max_length is %lld; expected 2 or more, or 0",
                       (long long)o.max_length);
    bool is_f32 = o.precision && strcmp(o.precision, "float32") == 0;
    if (o.precision && !is_f32 && strcmp(o.precision, "bfloat16") != 0)
        return tp_fail(err, TP_ERR_ARG, "precision is '%.40s'; expected bfloat16 or float32",
                       o.precision);
    tp_dtype dtype = is_f32 ? TP_DTYPE_F32 : TP_DTYPE_BF16;
    device->threads = o.threads ? o.threads : tp_cpu_count();
    *ret = (tp_engine_options){
        .compute_dtype = dtype, .cache_dtype = dtype, .max_running = 1, .max_length = o.max_length};
    return TP_OK;
}

static tp_status open_parts(tp_text_generator *gen, const char *path, tp_engine_options *options,
                            tp_error *err)
{
    tp_load_report report;
    TP_TRY(tp_checkpoint_find_model(path, &gen->folder, err));
    TP_TRY(tp_model_open(gen->folder.data, &gen->model, err));
    TP_TRY(open_tokenizer(gen, err));
    const tp_model_info *info = tp_model_get_info(gen->model);
    TP_TRY(
        tp_generation_config_read(gen->folder.data, info->eos, info->n_eos, &gen->defaults, err));
    int64_t longest = info->max_positions;
    if (options->max_length > longest)
        return tp_fail(err, TP_ERR_CONFIG, "max_length is %lld, '%s' has %lld positions",
                       (long long)options->max_length, gen->folder.data, (long long)longest);
    if (options->max_length == 0)
        options->max_length = longest < DEFAULT_MAX_LENGTH ? longest : DEFAULT_MAX_LENGTH;
    options->n_tokens = gen->tokenizer ? tp_tokenizer_vocab_size(gen->tokenizer) : 0;
    TP_TRY(tp_engine_create(gen->model, options, &gen->states, &gen->engine, err));
    TP_TRY(tp_engine_alloc(gen->engine, err));
    TP_TRY(tp_model_load(gen->model, &gen->states, &report, err));
    return tp_engine_weights_changed(gen->engine, err);
}

tp_status tp_text_generator_open(const char *path, const tp_text_generator_options *options,
                                 tp_text_generator **ret, tp_error *err)
{
    tp_device_options device;
    tp_engine_options o;
    if (!path || !ret)
        return tp_fail(err, TP_ERR_ARG, "tp_text_generator_open: an argument is NULL");
    TP_TRY(read_options(options, &device, &o, err));
    tp_text_generator *gen = calloc(1, sizeof *gen);
    if (!gen)
        return tp_fail(err, TP_ERR_NOMEM, "cannot open a generator: out of memory");
    tp_status status = tp_states_init(&gen->states, err);
    if (status == TP_OK)
        status = tp_device_open(&tp_backend_cpu, &device, &gen->device, err);
    o.device = gen->device;
    if (status == TP_OK)
        status = open_parts(gen, path, &o, err);
    if (status != TP_OK) {
        tp_text_generator_free(gen);
        return status;
    }
    *ret = gen;
    return TP_OK;
}

void tp_text_generator_free(tp_text_generator *gen)
{
    if (!gen)
        return;
    tp_engine_free(gen->engine);
    tp_states_release(&gen->states);
    tp_device_close(gen->device);
    tp_tokenizer_scratch_free(gen->scratch);
    tp_tokenizer_free(gen->tokenizer);
    tp_model_free(gen->model);
    tp_buf_release(&gen->folder);
    free(gen);
}

const tp_model *tp_text_generator_model(const tp_text_generator *gen) { return gen->model; }

const tp_tokenizer *tp_text_generator_tokenizer(const tp_text_generator *gen)
{
    return gen->tokenizer;
}

/* ---- one answer ---- */

typedef struct {
    const tp_text_request *request;
    const tp_tokenizer *tokenizer;
    tp_decode_stream stream;
    tp_buf text; /* of the current piece */
} answer;

static bool on_token(void *user, const tp_engine_token *token)
{
    answer *a = user;
    tp_buf_clear(&a->text);
    if (token->is_stop)
        return true;
    if (a->tokenizer)
        tp_tokenizer_decode_next(a->tokenizer, &a->stream, token->id, true, &a->text);
    tp_text_piece piece = {
        .id = token->id, .logp = token->logp, .text = tp_buf_str(&a->text), .n_text = a->text.len};
    return a->request->on_piece(a->request->user, &piece);
}

/* What is left of a character that the answer ends in. */
static void flush(answer *a)
{
    tp_buf_clear(&a->text);
    if (!a->tokenizer)
        return;
    tp_tokenizer_decode_next(a->tokenizer, &a->stream, -1, true, &a->text);
    tp_text_piece piece = {.id = -1, .text = tp_buf_str(&a->text), .n_text = a->text.len};
    if (a->text.len)
        a->request->on_piece(a->request->user, &piece);
}

static tp_status check_request(const tp_text_request *r, tp_error *err)
{
    const char *wrong = NULL;
    if (r->max_new_tokens < 0)
        wrong = "max_new_tokens is negative";
    else if (r->temperature < 0 || isinf(r->temperature))
        wrong = "temperature is not a number from 0";
    else if (!(r->top_p >= 0 && r->top_p <= 1))
        wrong = "top_p is not between 0 and 1";
    else if (r->n_stop_ids && !r->stop_ids)
        wrong = "n_stop_ids is set and stop_ids is NULL";
    return wrong ? tp_fail(err, TP_ERR_ARG, "tp_text_request: %s", wrong) : TP_OK;
}

static void gather_stops(const tp_text_generator *gen, const tp_text_request *r, tp_ids *out)
{
    for (size_t i = 0; i < r->n_stop_ids; i++)
        tp_ids_add(out, r->stop_ids[i]);
    if (r->ignore_eos)
        return;
    const tp_model_info *info = tp_model_get_info(gen->model);
    for (int i = 0; i < info->n_eos; i++)
        tp_ids_add(out, (int32_t)info->eos[i]);
    if (gen->tokenizer && tp_tokenizer_eos(gen->tokenizer) >= 0)
        tp_ids_add(out, tp_tokenizer_eos(gen->tokenizer));
}

/* What the request leaves open the folder's generation_config.json says; NULL: all. */
static tp_request settle(const tp_text_generator *gen, const tp_text_request *r, const int32_t *ids,
                         size_t n)
{
    const tp_text_settings usual = {.max_new_tokens = DEFAULT_NEW_TOKENS};
    const tp_generation_config *config = r && r->ignore_generation_config ? NULL : &gen->defaults;
    tp_text_settings s = {.temperature = NAN, .top_k = -1, .top_p = NAN, .min_p = NAN};
    tp_buf said = {0};
    if (r)
        s = (tp_text_settings){.max_new_tokens = r->max_new_tokens,
                               .temperature = r->temperature,
                               .top_k = r->top_k < 0    ? 0
                                        : r->top_k == 0 ? -1
                                                        : r->top_k,
                               .top_p = r->top_p > 0 ? r->top_p : NAN,
                               .min_p = NAN};
    tp_text_settle(config, &usual, &s, &said);
    tp_buf_release(&said);
    return tp_text_request_of(config, &s, ids, n);
}

/* One request to its end; the engine is left as it was. */
static tp_status run_request(tp_text_generator *gen, const tp_request *request, tp_text_result *ret,
                             tp_error *err)
{
    int64_t id;
    TP_TRY(tp_engine_submit(gen->engine, request, &id, err));
    tp_engine_reset_stats(gen->engine);
    tp_status status = tp_engine_run(gen->engine, err);
    tp_engine_stats stats = tp_engine_get_stats(gen->engine);
    tp_sample_result r = tp_engine_sample(gen->engine, id, 0);
    bool hit_stop = r.finish == TP_FINISH_STOP;
    *ret = (tp_text_result){.prompt_tokens = (int64_t)request->n_prompt,
                            .new_tokens = (int64_t)r.n - hit_stop,
                            .hit_stop = hit_stop,
                            .prefill_s = stats.prefill_s,
                            .decode_s = stats.decode_s};
    tp_engine_forget(gen->engine, id);
    TP_TRY(status);
    if (r.finish == TP_FINISH_NONFINITE)
        return tp_fail(err, TP_ERR_FORMAT,
                       "'%s' gives logits that are no numbers: its weights are broken",
                       gen->folder.data);
    return TP_OK;
}

tp_status tp_text_generator_continue_ids(tp_text_generator *gen, const int32_t *ids, size_t n,
                                         const tp_text_request *request, tp_text_result *ret,
                                         tp_error *err)
{
    tp_text_request r;
    tp_text_result own;
    tp_ids stops = {0};
    if (!gen || (!ids && n))
        return tp_fail(err, TP_ERR_ARG, "tp_text_generator_continue_ids: an argument is NULL");
    TP_TRY(tp_sized_read(&r, sizeof r, request, "tp_text_request", err));
    TP_TRY(tp_sized_check(ret, "tp_text_result", err));
    TP_TRY(check_request(&r, err));
    gather_stops(gen, &r, &stops);
    answer a = {.request = &r, .tokenizer = gen->tokenizer};
    tp_request engine_request = settle(gen, request ? &r : NULL, ids, n);
    engine_request.seed = r.seed;
    engine_request.stop_ids = stops.data;
    engine_request.n_stop_ids = stops.len;
    engine_request.on_token = r.on_piece ? on_token : NULL;
    engine_request.user = &a;
    tp_status status = run_request(gen, &engine_request, &own, err);
    if (status == TP_OK) {
        if (r.on_piece)
            flush(&a);
        tp_sized_write(ret, &own, sizeof own);
    }
    tp_buf_release(&a.text);
    tp_ids_release(&stops);
    return status;
}

static tp_status continue_text(tp_text_generator *gen, const char *text, size_t n, unsigned flags,
                               const tp_text_request *request, tp_text_result *ret, tp_error *err)
{
    int32_t *ids;
    size_t n_ids;
    TP_TRY(tp_tokenizer_to_ids(gen->tokenizer, gen->scratch, text, n, flags, &ids, &n_ids, err));
    tp_status status = tp_text_generator_continue_ids(gen, ids, n_ids, request, ret, err);
    tp_free(ids);
    return status;
}

static tp_status need_tokenizer(const tp_text_generator *gen, tp_error *err)
{
    if (gen->tokenizer)
        return TP_OK;
    return tp_fail(err, TP_ERR_CONFIG, "'%s' has no tokenizer.json: it takes ids, not text",
                   gen->folder.data);
}

tp_status tp_text_generator_continue(tp_text_generator *gen, const char *text, size_t n,
                                     const tp_text_request *request, tp_text_result *ret,
                                     tp_error *err)
{
    if (!gen || (!text && n))
        return tp_fail(err, TP_ERR_ARG, "tp_text_generator_continue: an argument is NULL");
    TP_TRY(need_tokenizer(gen, err));
    return continue_text(gen, text, n, TP_ENCODE_SPECIAL, request, ret, err);
}

tp_status tp_text_generator_answer(tp_text_generator *gen, const char *conversation, size_t n,
                                   const tp_text_request *request, tp_text_result *ret,
                                   tp_error *err)
{
    char *text;
    size_t n_text;
    tp_chat_options options = {.size = sizeof options, .add_generation_prompt = true};
    if (!gen || !conversation)
        return tp_fail(err, TP_ERR_ARG, "tp_text_generator_answer: an argument is NULL");
    TP_TRY(need_tokenizer(gen, err));
    TP_TRY(tp_chat_render(gen->tokenizer, conversation, n, &options, &text, &n_text, err));
    tp_status status = continue_text(gen, text, n_text, TP_ENCODE_PARSE_SPECIAL, request, ret, err);
    tp_free(text);
    return status;
}
