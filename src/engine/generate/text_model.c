/* text_model.c - a folder opened to generate, and its generation settings with those of the
 * user. */
#include "engine/generate/text_model.h"

#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/platform.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "text/template/chat_context.h"

/* ---- opening ---- */

static bool has_file(const tp_text_model *m, const char *name)
{
    tp_buf path = {0};
    tp_buf_addf(&path, "%s/%s", m->folder.data, name);
    bool has_one = tp_file_exists(path.data);
    tp_buf_release(&path);
    return has_one;
}

static tp_status open_tokenizer(tp_text_model *m, const char *other, tp_error *err)
{
    int64_t vocab = tp_model_get_info(m->model)->vocab;
    if (!other && !has_file(m, "tokenizer.json"))
        return TP_OK;
    TP_TRY(tp_tokenizer_load(other ? other : m->folder.data, &m->tokenizer, err));
    m->scratch = tp_tokenizer_scratch_new(m->tokenizer);
    int32_t n_ids = tp_tokenizer_vocab_size(m->tokenizer);
    if (n_ids > vocab)
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s': the tokenizer has %d ids, the model's vocabulary is %lld: they do "
                       "not belong together",
                       m->folder.data, n_ids, (long long)vocab);
    return TP_OK;
}

tp_status tp_text_model_open(tp_text_model *m, const char *path, const char *tokenizer,
                             tp_error *err)
{
    TP_TRY(tp_checkpoint_find_model(path, &m->folder, err));
    TP_TRY(tp_model_open(m->folder.data, &m->model, err));
    TP_TRY(open_tokenizer(m, tokenizer, err));
    const tp_model_info *info = tp_model_get_info(m->model);
    for (int i = 0; i < info->n_eos; i++)
        tp_ids_add(&m->stops, (int32_t)info->eos[i]);
    if (m->tokenizer && tp_tokenizer_eos(m->tokenizer) >= 0)
        tp_ids_add(&m->stops, tp_tokenizer_eos(m->tokenizer));
    return TP_OK;
}

tp_status tp_text_model_need_tokenizer(tp_text_model *m, tp_error *err)
{
    return m->tokenizer ? TP_OK : tp_tokenizer_load(m->folder.data, &m->tokenizer, err);
}

tp_status tp_text_model_read_defaults(tp_text_model *m, tp_error *err)
{
    const tp_model_info *info = tp_model_get_info(m->model);
    return tp_generation_config_read(m->folder.data, info->eos, info->n_eos, &m->defaults, err);
}

tp_status tp_text_model_start(tp_text_model *m, const tp_engine_options *options, int threads,
                              tp_model_note say, void *user, tp_error *err)
{
    tp_load_report report;
    const tp_device_options device = {.threads = threads > 0 ? threads : tp_cpu_count()};
    tp_engine_options o = *options;
    TP_TRY(tp_device_open(&tp_backend_cpu, &device, &m->device, err));
    o.device = m->device;
    o.tokenizer = m->tokenizer;
    o.n_tokens = m->tokenizer ? tp_tokenizer_vocab_size(m->tokenizer) : 0;
    TP_TRY(tp_states_init(&m->states, err));
    TP_TRY(tp_engine_create(m->model, &o, &m->states, &m->engine, err));
    TP_TRY(tp_engine_alloc(m->engine, err));
    TP_TRY(tp_model_load(m->model, &m->states, &report, err));
    TP_TRY(tp_engine_weights_changed(m->engine, err));
    if (say)
        tp_model_say(m->model, &report, say, user);
    if (report.has_nonfinite)
        snprintf(m->nonfinite, sizeof m->nonfinite, "%s", report.nonfinite_name);
    return TP_OK;
}

void tp_text_model_close(tp_text_model *m)
{
    tp_engine_free(m->engine);
    tp_states_release(&m->states);
    tp_device_close(m->device);
    tp_template_free(m->chat_template);
    tp_tokenizer_scratch_free(m->scratch);
    tp_tokenizer_free(m->tokenizer);
    tp_model_free(m->model);
    tp_ids_release(&m->stops);
    tp_buf_release(&m->folder);
    *m = (tp_text_model){0};
}

/* ---- what is asked of a text ---- */

static void add_number(tp_buf *out, const char *name, double value)
{
    tp_buf_addf(out, "%s%s %g", out->len ? ", " : "", name, value);
}

/* The file's value where nothing was said; true when it decides. */
static bool take_real(double *to, double from)
{
    bool decides = isnan(*to) && !isnan(from);
    *to = decides ? from : *to;
    return decides;
}

/* transformers draws only with do_sample, then from 50 ids unless the file says otherwise. */
static void take_sampling(const tp_generation_config *g, tp_text_settings *s, tp_buf *said)
{
    enum { USUAL_TOP_K = 50 };
    if (isnan(s->temperature) && !g->do_sample)
        return;
    if (isnan(s->temperature)) {
        s->temperature = isnan(g->temperature) ? 1 : g->temperature;
        add_number(said, "temperature", s->temperature);
    }
    if (s->temperature == 0)
        return;
    int64_t top_k = g->top_k >= 0 ? g->top_k : g->do_sample ? USUAL_TOP_K : 0;
    if (s->top_k < 0 && top_k > 0)
        add_number(said, "top_k", (double)top_k);
    s->top_k = s->top_k < 0 ? top_k : s->top_k;
    if (take_real(&s->top_p, g->top_p))
        add_number(said, "top_p", s->top_p);
    if (take_real(&s->min_p, g->min_p))
        add_number(said, "min_p", s->min_p);
}

static void take_rules(const tp_generation_config *g, tp_text_settings *s, tp_buf *said)
{
    if (s->max_new_tokens == 0 && g->max_new_tokens > 0)
        add_number(said, "max_new_tokens", (double)(s->max_new_tokens = g->max_new_tokens));
    else if (s->max_new_tokens == 0 && g->max_length > 0)
        add_number(said, "max_length", (double)g->max_length);
    if (g->repetition_penalty != 1 && !isnan(g->repetition_penalty))
        add_number(said, "repetition_penalty", g->repetition_penalty);
    if (g->no_repeat_ngram > 0)
        add_number(said, "no_repeat_ngram_size", (double)g->no_repeat_ngram);
    if (g->min_new_tokens > 0)
        add_number(said, "min_new_tokens", (double)g->min_new_tokens);
    if (g->min_length > 0)
        add_number(said, "min_length", (double)g->min_length);
    if (g->n_suppressed + g->n_suppressed_first > 0)
        add_number(said, "ids not to be drawn", g->n_suppressed + g->n_suppressed_first);
}

/* Nothing where there is nothing to say. */
static void tell(tp_model_note say, void *user, const char *before, const char *what)
{
    tp_buf text = {0};
    if (!say || !*what)
        return;
    tp_buf_addf(&text, "%s%s", before, what);
    say(user, text.data);
    tp_buf_release(&text);
}

void tp_text_model_settle(const tp_text_model *m, bool ignore, const tp_text_settings *usual,
                          tp_text_settings *s, tp_model_note say, void *user)
{
    const tp_generation_config *g = &m->defaults;
    tp_buf said = {0};
    if (!ignore) {
        take_sampling(g, s, &said);
        take_rules(g, s, &said);
        tell(say, user, "generation_config.json: not used: ", g->unknown);
    }
    tell(say, user, "from generation_config.json: ", tp_buf_str(&said));
    tp_buf_release(&said);
    bool samples = !ignore && g->do_sample; /* then the file is silent on purpose */
    s->temperature = isnan(s->temperature) ? usual->temperature : s->temperature;
    s->top_k = s->top_k < 0 ? 0 : s->top_k;
    s->top_p = !isnan(s->top_p) ? s->top_p : samples ? 0 : usual->top_p;
    s->min_p = isnan(s->min_p) ? 0 : s->min_p;
    if (s->max_new_tokens == 0 && (ignore || g->max_length <= 0))
        s->max_new_tokens = usual->max_new_tokens;
}

tp_request tp_text_model_request(const tp_text_model *m, const tp_text_settings *s, bool ignore,
                                 const int32_t *prompt, size_t n_prompt)
{
    const tp_generation_config *g = &m->defaults;
    tp_request r = {.prompt = prompt,
                    .n_prompt = n_prompt,
                    .max_new_tokens = s->max_new_tokens,
                    .sampling = {.temperature = s->temperature,
                                 .top_k = s->top_k,
                                 .top_p = s->top_p,
                                 .min_p = s->min_p}};
    if (r.max_new_tokens == 0) /* what max_length leaves */
        r.max_new_tokens = TP_MAX(g->max_length - (int64_t)n_prompt, 1);
    if (ignore)
        return r;
    r.rules = (tp_logit_rules){
        .repetition_penalty = isnan(g->repetition_penalty) ? 0 : g->repetition_penalty,
        .no_repeat_ngram = TP_MAX(g->no_repeat_ngram, 0),
        .min_new_tokens = TP_MAX(g->min_new_tokens, g->min_length - (int64_t)n_prompt),
        .suppressed = g->suppressed,
        .n_suppressed = (size_t)g->n_suppressed,
        .suppressed_first = g->suppressed_first,
        .n_suppressed_first = (size_t)g->n_suppressed_first};
    return r;
}

/* ---- prompts ---- */

void tp_text_model_encode(tp_text_model *m, const char *text, size_t n, tp_ids *out)
{
    tp_encode_options options = {.add_special = true, .parse_special = true};
    tp_tokenizer_encode(m->tokenizer, m->scratch, text, n, options, out, NULL);
}

static tp_status need_template(tp_text_model *m, tp_error *err)
{
    const char *source = tp_tokenizer_chat_template(m->tokenizer);
    if (m->chat_template)
        return TP_OK;
    if (!source)
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' has no chat template: give plain text instead of a conversation",
                       m->folder.data);
    return tp_template_parse("chat template", source, strlen(source), &m->chat_template, err);
}

tp_status tp_text_model_encode_chat(tp_text_model *m, const char *conversation, size_t n,
                                    tp_ids *out, tp_buf *ret_text, tp_error *err)
{
    const tp_json_options tolerant = TP_JSON_TOLERANT;
    tp_buf text = {0};
    TP_TRY(need_template(m, err));
    tp_status status = tp_chat_render_json(m->chat_template, m->tokenizer, conversation, n,
                                           &tolerant, true, &text, err);
    if (status == TP_OK) { /* the template writes the special tokens itself */
        tp_encode_options options = {.parse_special = true};
        tp_tokenizer_encode(m->tokenizer, m->scratch, tp_buf_str(&text), text.len, options, out,
                            NULL);
        if (ret_text)
            tp_buf_add(ret_text, tp_buf_str(&text), text.len);
    }
    tp_buf_release(&text);
    return status;
}
