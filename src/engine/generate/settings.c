/* settings.c - what is asked of a text: the caller's word, else the model's file, else a default.
 */
#include "engine/generate/settings.h"

#include <float.h>
#include <math.h>

#include "base/platform.h"

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
    if (isnan(s->temperature) && !g->do_sample)
        return;
    if (isnan(s->temperature)) {
        s->temperature = isnan(g->temperature) ? 1 : g->temperature;
        add_number(said, "temperature", s->temperature);
    }
    if (s->temperature == 0)
        return;
    int64_t top_k = g->top_k >= 0 ? g->top_k : g->do_sample ? TP_USUAL_TOP_K : 0;
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

void tp_text_settle(const tp_generation_config *g, const tp_text_settings *usual,
                    tp_text_settings *s, tp_buf *said)
{
    if (g) {
        take_sampling(g, s, said);
        take_rules(g, s, said);
    }
    bool samples = g && g->do_sample; /* then the file is silent on purpose */
    s->temperature = isnan(s->temperature) ? usual->temperature : s->temperature;
    s->top_k = s->top_k < 0 ? 0 : s->top_k;
    /* However small it is, the likeliest is left; to the engine 0 is all. */
    s->top_p = !isnan(s->top_p) ? fmax(s->top_p, (double)FLT_MIN) : samples ? 0 : usual->top_p;
    s->min_p = isnan(s->min_p) ? 0 : s->min_p;
    if (s->max_new_tokens == 0 && (!g || g->max_length <= 0))
        s->max_new_tokens = usual->max_new_tokens;
}

tp_request tp_text_request_of(const tp_generation_config *g, const tp_text_settings *s,
                              const int32_t *prompt, size_t n_prompt)
{
    tp_request r = {.prompt = prompt,
                    .n_prompt = n_prompt,
                    .max_new_tokens = s->max_new_tokens,
                    .sampling = {.temperature = s->temperature,
                                 .top_k = s->top_k,
                                 .top_p = s->top_p,
                                 .min_p = s->min_p}};
    if (!g)
        return r;
    if (r.max_new_tokens == 0) /* what max_length leaves */
        r.max_new_tokens = g->max_length - (int64_t)n_prompt;
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
