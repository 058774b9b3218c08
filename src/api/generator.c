/* generator.c - a model folder as one object that continues text: opening it, and one answer.
 * text_batch.c has many. */
#include "temper/generator.h"

#include <math.h>
#include <string.h>

#include "api/text_generator.h"
#include "base/platform.h"
#include "base/sized.h"
#include "engine/model/adapter.h"

enum { DEFAULT_MAX_LENGTH = 2048, DEFAULT_NEW_TOKENS = 128, LOOKUP_MAX = 5, LOOKUP_MIN = 2 };

/* ---- opening ---- */

static tp_status read_precision(const char *what, const char *word, tp_dtype *ret, tp_error *err)
{
    bool is_f32 = word && strcmp(word, "float32") == 0;
    if (word && !is_f32 && strcmp(word, "bfloat16") != 0)
        return tp_fail(err, TP_ERR_ARG, "%s is '%.40s'; expected bfloat16 or float32", what, word);
    *ret = is_f32 ? TP_DTYPE_F32 : TP_DTYPE_BF16;
    return TP_OK;
}

static tp_status read_options(const tp_text_generator_options *options, tp_text_generator *gen,
                              tp_error *err)
{
    tp_text_generator_options *o = &gen->o;
    TP_TRY(tp_sized_read(o, sizeof *o, options, "tp_text_generator_options", err));
    if (o->threads < 0 || o->threads > 4096)
        return tp_fail(err, TP_ERR_ARG, "threads is %d; expected 1 to 4096, or 0 for one per core",
                       o->threads);
    if (o->max_length < TP_TEXT_AS_NEEDED || o->max_length == 1)
        return tp_fail(err, TP_ERR_ARG, "max_length is %lld; expected 2 or more, or 0",
                       (long long)o->max_length);
    for (size_t i = 0; i < o->n_adapters; i++)
        TP_NEED(o->adapters && o->adapters[i].name && o->adapters[i].path, err);
    if (o->most_length < 0 || o->max_running < 0 || o->prompt_lookup < 0)
        return tp_fail(err, TP_ERR_ARG, "tp_text_generator_options: a number is negative");
    TP_TRY(read_precision("precision", o->precision, &gen->engine.compute_dtype, err));
    TP_TRY(read_precision("kv_precision", o->kv_precision ? o->kv_precision : o->precision,
                          &gen->engine.cache_dtype, err));
    gen->engine.cache_bytes = o->kv_bytes;
    gen->engine.drafting = (tp_drafting){
        .tokens = o->prompt_lookup, .lookup_max = LOOKUP_MAX, .lookup_min = LOOKUP_MIN};
    return TP_OK;
}

void tp_text_generator_notice(void *generator, const char *text)
{
    const tp_text_generator *gen = generator;
    if (gen->o.notice)
        gen->o.notice(gen->o.user, text);
}

tp_status tp_text_generator_start(tp_text_generator *gen, int64_t max_length, int64_t max_running,
                                  tp_error *err)
{
    tp_text_model *m = &gen->m;
    int64_t longest = tp_model_get_info(m->model)->max_positions;
    if (m->engine)
        return TP_OK;
    gen->engine.max_length = TP_MAX(TP_MIN(max_length, longest), 2);
    gen->engine.max_running = max_running;
    TP_TRY(
        tp_text_model_start(m, &gen->engine, gen->o.threads, tp_text_generator_notice, gen, err));
    if (m->nonfinite[0]) {
        TP_OWN(tp_buf) text = {0};
        tp_buf_addf(&text, "'%s' holds numbers that are not finite in %s", m->folder.data,
                    m->nonfinite);
        tp_text_generator_notice(gen, text.data);
    }
    return TP_OK;
}

static tp_status open_parts(tp_text_generator *gen, const char *path, tp_error *err)
{
    TP_TRY(tp_text_model_open(&gen->m, path, NULL, err));
    TP_TRY(tp_text_model_keep_base(&gen->m, gen->o.base, gen->engine.compute_dtype, err));
    for (size_t i = 0; i < gen->o.n_adapters; i++)
        TP_TRY(tp_text_model_add_adapter(&gen->m, gen->o.adapters[i].name, gen->o.adapters[i].path,
                                         err));
    gen->refused = tp_text_model_read_defaults(&gen->m, &gen->why_refused);
    int64_t longest = tp_model_get_info(gen->m.model)->max_positions, length = gen->o.max_length;
    if (length > longest)
        return tp_fail(err, TP_ERR_CONFIG, "max_length is %lld, '%s' has %lld positions",
                       (long long)length, gen->m.folder.data, (long long)longest);
    if (length == TP_TEXT_AS_NEEDED)
        return TP_OK;
    return tp_text_generator_start(gen, length ? length : DEFAULT_MAX_LENGTH,
                                   gen->o.max_running ? gen->o.max_running : 1, err);
}

tp_status tp_text_generator_open(const char *path, const tp_text_generator_options *options,
                                 tp_text_generator **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(path && ret, err);
    tp_text_generator *gen = tp_new(1, sizeof *gen);
    tp_status status = read_options(options, gen, err);
    if (status == TP_OK)
        status = open_parts(gen, path, err);
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
    tp_text_model_close(&gen->m);
    free(gen);
}

const char *tp_text_generator_folder(const tp_text_generator *gen) { return gen->m.folder.data; }

const tp_model *tp_text_generator_model(const tp_text_generator *gen) { return gen->m.model; }

const tp_tokenizer *tp_text_generator_tokenizer(const tp_text_generator *gen)
{
    return gen->m.tokenizer;
}

/* ---- requests ---- */

tp_status tp_text_request_read(const tp_text_request *theirs, tp_text_request *r, tp_error *err)
{
    const char *wrong = NULL;
    TP_TRY(tp_sized_read(r, sizeof *r, theirs, "tp_text_request", err));
    if (!theirs)
        r->temperature = NAN;
    if (r->max_new_tokens < 0)
        wrong = "max_new_tokens is negative";
    else if (r->temperature < 0 || isinf(r->temperature))
        wrong = "temperature is not a number from 0";
    else if (!(r->top_p >= 0 && r->top_p <= 1))
        wrong = "top_p is not between 0 and 1";
    else if (!(r->min_p == -1 || (r->min_p >= 0 && r->min_p <= 1)))
        wrong = "min_p is not between 0 and 1";
    else if (r->n_stop_ids && !r->stop_ids)
        wrong = "n_stop_ids is set and stop_ids is NULL";
    else if (r->n_stop_strings && !r->stop_strings)
        wrong = "n_stop_strings is set and stop_strings is NULL";
    else if (r->samples < 0)
        wrong = "samples is negative";
    return wrong ? tp_fail(err, TP_ERR_ARG, "tp_text_request: %s", wrong) : TP_OK;
}

tp_status tp_text_generator_adapter(const tp_text_generator *gen, const char *name, int32_t *ret,
                                    tp_error *err)
{
    *ret = 0;
    return name ? tp_model_find_adapter(gen->m.model, tp_slice_of(name), ret, err) : TP_OK;
}

static const tp_generation_config *config_of(const tp_text_generator *gen, const tp_text_request *r)
{
    return r->ignore_generation_config ? NULL : &gen->m.defaults;
}

/* `what` of the file with the defaults; nothing where there is nothing to say. */
static void tell(tp_text_generator *gen, const char *before, const char *behind, const char *what)
{
    TP_OWN(tp_buf) text = {0};
    if (!*what)
        return;
    tp_buf_addf(&text, "%s%s%s%s", before, tp_text_model_defaults_path(&gen->m).text, behind, what);
    tp_text_generator_notice(gen, text.data);
}

tp_status tp_text_generator_settle(tp_text_generator *gen, const tp_text_request *r,
                                   const tp_text_settings *usual, tp_text_settings *ret,
                                   tp_error *err)
{
    const tp_generation_config *config = config_of(gen, r);
    TP_OWN(tp_buf) said = {0};
    if (config && gen->refused != TP_OK)
        return tp_fail(err, gen->refused, "%s", gen->why_refused.message);
    *ret = (tp_text_settings){.max_new_tokens = r->max_new_tokens,
                              .temperature = r->temperature,
                              .top_k = r->top_k < 0    ? 0
                                       : r->top_k == 0 ? -1
                                                       : r->top_k,
                              .top_p = r->top_p > 0 ? r->top_p : NAN,
                              .min_p = r->min_p < 0   ? 0
                                       : r->min_p > 0 ? r->min_p
                                                      : NAN};
    tp_text_settle(config, usual, ret, &said);
    tell(gen, "", ": not used: ", config ? config->unknown : "");
    tell(gen, "from ", ": ", tp_buf_str(&said));
    return TP_OK;
}

/* The same refusal that --max-length brings. */
static tp_status check_length(const tp_text_generator *gen, const tp_text_settings *settings,
                              const tp_ids *prompt, tp_error *err)
{
    int64_t most = gen->m.defaults.max_length;
    if (settings->max_new_tokens > 0 || (int64_t)prompt->len < most)
        return TP_OK;
    return tp_fail(err, TP_ERR_CONFIG,
                   "the prompt has %zu tokens, \"max_length\" of '%s' is %lld; --max-new-tokens "
                   "goes before it",
                   prompt->len, tp_text_model_defaults_path(&gen->m).text, (long long)most);
}

tp_status tp_text_generator_request(const tp_text_generator *gen, const tp_text_request *r,
                                    const tp_text_settings *settings, const tp_ids *prompt,
                                    tp_ids *stops, tp_request *ret, tp_error *err)
{
    TP_TRY(check_length(gen, settings, prompt, err));
    for (size_t i = 0; i < r->n_stop_ids; i++)
        tp_ids_add(stops, r->stop_ids[i]);
    for (size_t i = 0; i < gen->m.stops.len && !r->ignore_eos; i++)
        tp_ids_add(stops, gen->m.stops.data[i]);
    *ret = tp_text_request_of(config_of(gen, r), settings, prompt->data, prompt->len);
    ret->seed = r->seed;
    ret->stop_ids = stops->data;
    ret->n_stop_ids = stops->len;
    ret->stop_strings = r->stop_strings;
    ret->n_stop_strings = r->n_stop_strings;
    return TP_OK;
}

/* ---- one answer ---- */

typedef struct {
    tp_text_generator *gen;
    const tp_text_request *request;
    tp_streamed_answer answer; /* without a tokenizer its text stays empty */
    size_t n_given, n_pieces;  /* bytes of it, and tokens, that went out */
    bool is_over;              /* the caller has enough */
} following;

static bool give(following *f, int32_t id, float logp)
{
    const tp_text_request *r = f->request;
    tp_text_piece piece = {.id = id,
                           .logp = logp,
                           .text = tp_buf_str(&f->answer.text) + f->n_given,
                           .n_text = f->answer.ready - f->n_given};
    f->n_given = f->answer.ready;
    return !r->on_piece || r->on_piece(r->user, &piece);
}

static void update(following *f, const tp_sample_result *r, bool last_is_stop)
{
    if (f->gen->m.tokenizer)
        tp_streamed_answer_update(&f->answer, r, last_is_stop);
}

static bool should_stop(const tp_text_request *r)
{
    return r->should_stop && r->should_stop(r->user);
}

/* What a step drew behind the token at which the caller had enough was never said. */
static tp_sample_result heard(const following *f, tp_sample_result r)
{
    if (f->is_over && f->n_pieces < r.n) {
        r.n = f->n_pieces;
        r.finish = TP_FINISH_CANCELLED;
        r.stop_string = -1;
    }
    return r;
}

/* The new tokens of an answer; false: enough. */
static bool follow(following *f, tp_sample_result r)
{
    r = heard(f, r);
    bool ends_with_id = r.finish == TP_FINISH_STOP && r.stop_string < 0;
    size_t n = r.n - (ends_with_id && r.n > 0);
    tp_sample_result so_far = r;
    so_far.finish = TP_FINISH_NONE;
    while (f->n_pieces < n && !f->is_over) {
        so_far.n = f->n_pieces + 1;
        if (so_far.n == n && r.stop_string >= 0)
            so_far.finish = r.finish;
        update(f, &so_far, false);
        f->is_over = !give(f, r.ids[f->n_pieces], r.logp[f->n_pieces]);
        f->n_pieces++;
        f->is_over |= f->n_pieces < n && should_stop(f->request);
    }
    r = heard(f, r);
    if (r.finish != so_far.finish)
        update(f, &r, ends_with_id);
    if (f->n_given < f->answer.ready && r.finish != TP_FINISH_NONE)
        (void)give(f, -1, 0); /* the rest of a character that the answer ends in */
    return !f->is_over && !should_stop(f->request);
}

static tp_text_result result_of(const tp_text_generator *gen, size_t n_prompt,
                                const tp_sample_result *r)
{
    tp_engine_stats stats = tp_engine_get_stats(gen->m.engine);
    bool has_stop_id = r->finish == TP_FINISH_STOP && r->stop_string < 0;
    return (tp_text_result){.prompt_tokens = (int64_t)n_prompt,
                            .new_tokens = (int64_t)r->n - has_stop_id,
                            .hit_stop = r->finish == TP_FINISH_STOP,
                            .prefill_s = stats.prefill_s,
                            .decode_s = stats.decode_s,
                            .finish = tp_finish_name(r->finish)};
}

tp_status tp_text_generator_check_finish(const tp_text_generator *gen, tp_finish finish,
                                         tp_error *err)
{
    const char *folder = gen->m.folder.data;
    if (finish == TP_FINISH_NONFINITE)
        return tp_fail(err, TP_ERR_NUMERIC,
                       "the logits of '%s' are no numbers: its weights are broken", folder);
    if (finish == TP_FINISH_RULED_OUT)
        return tp_fail(err, TP_ERR_CONFIG,
                       "the rules of '%s' leave no id to draw; --ignore-generation-config leaves "
                       "them out",
                       tp_text_model_defaults_path(&gen->m).text);
    return TP_OK;
}

/* One request to its end; the engine is left as it was. */
static tp_status run_request(following *f, const tp_request *request, tp_text_result *ret,
                             tp_error *err)
{
    tp_engine *engine = f->gen->m.engine;
    tp_sample_result r;
    int64_t id;
    TP_TRY(tp_engine_submit(engine, request, &id, err));
    tp_engine_reset_stats(engine);
    tp_status status = TP_OK;
    do {
        bool is_busy;
        status = tp_engine_step(engine, &is_busy, err);
        r = tp_engine_sample(engine, id, 0);
        if (status == TP_OK && follow(f, r))
            continue;
        tp_engine_cancel(engine, id);
        r = tp_engine_sample(engine, id, 0);
        (void)follow(f, r); /* what waited for the end of a stop string */
    } while (r.finish == TP_FINISH_NONE);
    r = heard(f, r);
    tp_finish finish = r.finish;
    *ret = result_of(f->gen, request->n_prompt, &r);
    tp_engine_forget(engine, id);
    TP_TRY(status);
    return tp_text_generator_check_finish(f->gen, finish, err);
}

tp_status tp_text_generator_answer_ids(tp_text_generator *gen, const tp_ids *prompt,
                                       const tp_text_request *r, const tp_text_settings *settings,
                                       uint64_t stream, tp_text_result *ret, tp_buf *text,
                                       tp_error *err)
{
    TP_OWN(tp_ids) stops = {0};
    int32_t adapter;
    TP_TRY(tp_text_generator_adapter(gen, r->adapter, &adapter, err));
    following f = {.gen = gen, .request = r};
    tp_request request;
    TP_TRY(tp_text_generator_request(gen, r, settings, prompt, &stops, &request, err));
    request.stream = stream;
    request.adapter = adapter;
    tp_streamed_answer_begin(&f.answer, gen->m.tokenizer, r->stop_strings, (int)r->n_stop_strings);
    tp_status status = run_request(&f, &request, ret, err);
    if (text)
        tp_buf_add(text, tp_buf_str(&f.answer.text), f.answer.text.len);
    tp_streamed_answer_release(&f.answer);
    return status;
}

static tp_status continue_ids(tp_text_generator *gen, const tp_ids *prompt,
                              const tp_text_request *request, tp_text_result *ret, tp_error *err)
{
    const tp_text_settings usual = {.max_new_tokens = DEFAULT_NEW_TOKENS};
    tp_text_request r;
    tp_text_settings settings;
    tp_text_result own;
    TP_TRY(tp_text_request_read(request, &r, err));
    TP_TRY(tp_sized_check(ret, "tp_text_result", err));
    TP_TRY(tp_text_generator_settle(gen, &r, &usual, &settings, err));
    TP_TRY(tp_text_generator_start(gen, (int64_t)prompt->len + settings.max_new_tokens, 1, err));
    TP_TRY(tp_text_generator_answer_ids(gen, prompt, &r, &settings, 0, &own, NULL, err));
    tp_sized_write(ret, &own, sizeof own);
    return TP_OK;
}

tp_status tp_text_generator_continue_ids(tp_text_generator *gen, const int32_t *ids, size_t n,
                                         const tp_text_request *request, tp_text_result *ret,
                                         tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_OWN(tp_ids) prompt = {0};
    if (!gen || (!ids && n))
        return tp_fail(err, TP_ERR_ARG, "tp_text_generator_continue_ids: an argument is NULL");
    for (size_t i = 0; i < n; i++)
        tp_ids_add(&prompt, ids[i]);
    return continue_ids(gen, &prompt, request, ret, err);
}

static tp_status need_tokenizer(const tp_text_generator *gen, tp_error *err)
{
    if (gen->m.tokenizer)
        return TP_OK;
    return tp_fail(err, TP_ERR_CONFIG, "'%s' has no tokenizer.json: it takes ids, not text",
                   gen->m.folder.data);
}

tp_status tp_text_generator_continue(tp_text_generator *gen, const char *text, size_t n,
                                     const tp_text_request *request, tp_text_result *ret,
                                     tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_OWN(tp_ids) ids = {0};
    if (!gen || (!text && n))
        return tp_fail(err, TP_ERR_ARG, "tp_text_generator_continue: an argument is NULL");
    if (n > INT32_MAX)
        return tp_fail(err, TP_ERR_ARG, "the text has %zu bytes; less than 2 GiB can be encoded",
                       n);
    TP_TRY(need_tokenizer(gen, err));
    tp_text_model_encode(&gen->m, n ? text : "", n, &ids);
    return continue_ids(gen, &ids, request, ret, err);
}

tp_status tp_text_generator_answer(tp_text_generator *gen, const char *conversation, size_t n,
                                   const tp_text_request *request, tp_text_result *ret,
                                   tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_OWN(tp_ids) ids = {0};
    TP_NEED(gen && conversation, err);
    TP_TRY(need_tokenizer(gen, err));
    TP_TRY(tp_text_model_encode_chat(&gen->m, conversation, n, &ids, NULL, err));
    return continue_ids(gen, &ids, request, ret, err);
}
