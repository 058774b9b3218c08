/* gguf_generation.c - sampling and suppressed ids: the keys of a GGUF file that stand for a
 * generation_config.json, and back.  llama.cpp takes them as its defaults. */
#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "engine/model/gguf_config.h"
#include "text/json/json.h"

#define PREFIX "general.sampling."
#define LAST_N PREFIX "penalty_last_n"
#define TOP_K PREFIX "top_k"
#define SUPPRESSED "tokenizer.ggml.suppress_tokens"

/* Numbers with a fraction: their keys, and their names in generation_config.json. */
typedef struct {
    const char *key, *name;
    double most, usual; /* usual: what transformers draws with where the file is silent */
    double *value;
} real;

enum { REALS = 4, DRAWS = 3 /* of them say how to draw */ };

static void reals_of(tp_generation_config *c, real out[REALS])
{
    out[0] = (real){PREFIX "temp", "temperature", 1000, 1, &c->temperature};
    out[1] = (real){PREFIX "top_p", "top_p", 1, 1, &c->top_p};
    out[2] = (real){PREFIX "min_p", "min_p", 1, 0, &c->min_p};
    out[3] = (real){PREFIX "penalty_repeat", "repetition_penalty", 1000, 1, &c->repetition_penalty};
}

/* ---- read ---- */

static tp_status read_reals(const tp_gguf *g, tp_generation_config *c, tp_error *err)
{
    real reals[REALS];
    reals_of(c, reals);
    for (size_t i = 0; i < REALS; i++) {
        const real *r = &reals[i];
        const tp_gguf_value *v = tp_gguf_find(g, r->key);
        if (!v)
            continue;
        TP_TRY(tp_gguf_get_number(g, r->key, r->value, err));
        if (*r->value < 0 || *r->value > r->most || (i >= DRAWS && *r->value == 0))
            return tp_gguf_fail(g, v, TP_ERR_FORMAT, err, "is %g; expected a number %s 0 to %g",
                                *r->value, i >= DRAWS ? "above" : "from", r->most);
        *r->value = tp_gguf_as_written(*r->value);
        c->do_sample |= i < DRAWS;
    }
    int64_t top_k = -1;
    TP_TRY(tp_gguf_get_int(g, TOP_K, INT32_MIN, INT32_MAX, &top_k, err));
    if (tp_gguf_find(g, TOP_K)) {
        c->top_k = TP_MAX(top_k, 0);
        c->do_sample = true;
    }
    return TP_OK;
}

static tp_status read_suppressed(const tp_gguf *g, tp_generation_config *c, tp_error *err)
{
    const tp_gguf_value *ids = NULL;
    TP_TRY(tp_gguf_get_array(g, SUPPRESSED, TP_GGUF_I32, &ids, err));
    if (ids && ids->n > TP_GENERATION_IDS)
        return tp_gguf_fail(g, ids, TP_ERR_FORMAT, err, "has %llu ids; %d are supported",
                            (unsigned long long)ids->n, TP_GENERATION_IDS);
    for (uint64_t i = 0; ids && i < ids->n; i++)
        if (tp_gguf_int_at(ids, i) >= 0)
            c->suppressed[c->n_suppressed++] = (int32_t)tp_gguf_int_at(ids, i);
    return TP_OK;
}

/* The penalty looks at all that stands before; 0 switches it off, and so does a key without it. */
static tp_status check_last_n(const tp_gguf *g, tp_generation_config *c, tp_error *err)
{
    int64_t n = -1;
    TP_TRY(tp_gguf_get_int(g, LAST_N, INT32_MIN, INT32_MAX, &n, err));
    if (n == 0)
        c->repetition_penalty = NAN;
    if (n <= 0 || isnan(c->repetition_penalty) || c->repetition_penalty == 1)
        return TP_OK;
    return tp_gguf_fail(g, tp_gguf_find(g, LAST_N), TP_ERR_UNSUPPORTED, err,
                        "is %lld: a penalty on the last ids alone is not supported; write the file "
                        "without the key",
                        (long long)n);
}

static tp_status refuse_others(const tp_gguf *g, tp_error *err)
{
    static const char *const known[] = {TOP_K,
                                        PREFIX "temp",
                                        PREFIX "top_p",
                                        PREFIX "min_p",
                                        PREFIX "penalty_repeat",
                                        LAST_N,
                                        PREFIX "xtc_threshold", /* of a probability that is not 0 */
                                        PREFIX "mirostat_tau",
                                        PREFIX "mirostat_eta"};
    for (size_t i = 0; i < tp_gguf_key_count(g); i++) {
        const tp_gguf_value *v = tp_gguf_key_at(g, i);
        size_t n = strlen(PREFIX);
        bool is_known = v->key.len < n || strncmp(v->key.data, PREFIX, n) != 0;
        for (size_t k = 0; k < TP_COUNTOF(known); k++)
            is_known |= tp_slice_is(v->key, known[k]);
        if (!is_known && !tp_gguf_is_zero(v))
            return tp_gguf_fail(g, v, TP_ERR_UNSUPPORTED, err,
                                "may change what is drawn and is not supported; write the file "
                                "without the key");
    }
    return TP_OK;
}

static tp_status read_keys(const tp_gguf *g, tp_generation_config *c, tp_error *err)
{
    TP_TRY(refuse_others(g, err));
    TP_TRY(read_reals(g, c, err));
    TP_TRY(read_suppressed(g, c, err));
    TP_TRY(check_last_n(g, c, err));
    c->is_there = c->do_sample || c->n_suppressed || !isnan(c->repetition_penalty);
    return TP_OK;
}

tp_status tp_gguf_generation_read(const char *path, tp_generation_config *ret, tp_error *err)
{
    tp_gguf *g;
    TP_TRY(tp_gguf_open(path, &g, err));
    tp_status status = read_keys(g, ret, err);
    tp_gguf_close(g);
    return status;
}

/* Greedy, as temperature 0 is in llama.cpp, is the want of do_sample in transformers, which takes
 * neither that temperature nor cuts beside it.  The ids are there because it takes none of
 * config.json's once there is such a file. */
static void write_text(tp_generation_config *c, const tp_gguf_ids *ids, tp_buf *out)
{
    real reals[REALS];
    bool draws = c->do_sample && c->temperature != 0;
    reals_of(c, reals);
    tp_json_w w = tp_json_w_open(out, 2, '{');
    tp_gguf_ids_write(ids, &w);
    tp_json_w_put_bool(&w, "do_sample", draws);
    for (size_t i = draws ? 0 : DRAWS; i < REALS; i++)
        if (!isnan(*reals[i].value))
            tp_json_w_put_f64(&w, reals[i].name, *reals[i].value);
    if (draws && c->top_k >= 0)
        tp_json_w_put_i64(&w, "top_k", c->top_k);
    if (c->n_suppressed) {
        tp_json_w_put_begin(&w, "suppress_tokens", '[');
        for (int i = 0; i < c->n_suppressed; i++)
            tp_json_w_i64(&w, c->suppressed[i]);
        tp_json_w_end(&w, ']');
    }
    tp_json_w_close(&w, '}');
}

tp_status tp_gguf_generation_text(const char *path, tp_generation_config *c, tp_buf *out,
                                  tp_error *err)
{
    tp_gguf *g;
    tp_gguf_ids ids;
    if (!c->is_there)
        return TP_OK;
    TP_TRY(tp_gguf_open(path, &g, err));
    tp_status status = tp_gguf_ids_read(g, INT32_MAX, &ids, err);
    if (status == TP_OK)
        write_text(c, &ids, out);
    tp_gguf_close(g);
    return status;
}

/* ---- written ---- */

static void note_dropped(const tp_generation_config *c, tp_buf *notes)
{
    const struct {
        const char *name;
        bool is_there;
    } dropped[] = {{"max_new_tokens", c->max_new_tokens > 0},
                   {"max_length", c->max_length > 0},
                   {"min_new_tokens", c->min_new_tokens > 0},
                   {"min_length", c->min_length > 0},
                   {"no_repeat_ngram_size", c->no_repeat_ngram > 0},
                   {"begin_suppress_tokens", c->n_suppressed_first > 0}};
    const char *file = c->is_of_model ? "config.json: " : "generation_config.json: ";
    size_t n = 0;
    for (size_t i = 0; i < TP_COUNTOF(dropped); i++)
        if (dropped[i].is_there)
            tp_buf_addf(notes, "%s%s", n++ ? ", " : file, dropped[i].name);
    if (n)
        tp_buf_adds(notes, ": GGUF has no key for that, the file does not ask for it\n");
}

/* Who draws draws alike: where the file is silent, llama.cpp and transformers differ. */
void tp_gguf_put_generation(tp_generation_config *c, tp_gguf_keys *k, tp_buf *notes)
{
    real reals[REALS];
    reals_of(c, reals);
    for (size_t i = 0; i < DRAWS && c->do_sample; i++)
        tp_gguf_put_f32(k, reals[i].key,
                        (float)(isnan(*reals[i].value) ? reals[i].usual : *reals[i].value));
    if (c->do_sample)
        tp_gguf_put_i32(k, TOP_K, (int32_t)(c->top_k >= 0 ? c->top_k : TP_USUAL_TOP_K));
    if (!isnan(c->repetition_penalty) && c->repetition_penalty != 1) {
        tp_gguf_put_f32(k, PREFIX "penalty_repeat", (float)c->repetition_penalty);
        tp_gguf_put_i32(k, LAST_N, -1);
    }
    if (c->n_suppressed) {
        tp_gguf_put_array(k, SUPPRESSED, TP_GGUF_I32, (uint64_t)c->n_suppressed);
        for (int i = 0; i < c->n_suppressed; i++)
            tp_gguf_item_i32(k, c->suppressed[i]);
    }
    note_dropped(c, notes);
}
