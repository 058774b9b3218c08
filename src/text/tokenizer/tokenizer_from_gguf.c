/* tokenizer_from_gguf.c - the files of a tokenizer's folder, written from the keys of a GGUF file.
 */
#include <string.h>

#include "base/platform.h"
#include "text/json/json.h"
#include "text/tokenizer/pretokenize.h"
#include "text/tokenizer/tokenizer_gguf.h"

enum { MAX_TOKENS = 1 << 22, MAX_TOKEN_BYTES = 1 << 16 };

#define NAME(text)             \
    {                          \
        text, sizeof(text) - 1 \
    }
const tp_gguf_pre tp_gguf_pres[] = {
    {"gpt-2", {NAME("phi-2"), NAME("mellum")}, tp_scan_gpt2, false, false, false},
    {"smollm", {{0}}, tp_scan_smollm2, false, false, false},
    {"llama-bpe",
     {NAME("llama3"), NAME("llama-v3"), NAME("falcon3"), NAME("pixtral")},
     tp_scan_llama3,
     true,
     true,
     false},
    {"smaug-bpe", {NAME("dbrx")}, tp_scan_llama3, false, false, false},
    {"qwen2", {NAME("deepseek-r1-qwen")}, tp_scan_qwen2, false, false, true},
};
const size_t tp_gguf_pre_count = TP_COUNTOF(tp_gguf_pres);

/* What is read of the file before anything is written. */
typedef struct {
    const tp_gguf *g;
    const tp_gguf_pre *pre;
    const tp_gguf_value *tokens, *types, *merges;
    int64_t bos, eos, pad; /* -1: none */
    bool add_bos, add_eos;
    tp_slice chat_template, tool_template;
    tp_error *err;
} source;

static bool is_named(const tp_gguf_pre *pre, tp_slice name)
{
    for (size_t i = 0; i < TP_COUNTOF(pre->others); i++)
        if (pre->others[i].len && tp_slice_eq(pre->others[i], name))
            return true;
    return tp_slice_is(name, pre->name);
}

static tp_status find_pre(source *s)
{
    static const char key[] = "tokenizer.ggml.pre";
    tp_slice name = {0};
    TP_TRY(tp_gguf_get_string(s->g, key, &name, s->err));
    for (size_t i = 0; i < tp_gguf_pre_count; i++)
        if (is_named(&tp_gguf_pres[i], name))
            s->pre = &tp_gguf_pres[i];
    if (s->pre)
        return TP_OK;
    if (!tp_gguf_find(s->g, key))
        return tp_fail(s->err, TP_ERR_UNSUPPORTED,
                       "%s: has no 'tokenizer.ggml.pre', so how text is cut into words is unknown; "
                       "export the model again",
                       tp_gguf_name(s->g));
    return tp_gguf_fail(s->g, tp_gguf_find(s->g, key), TP_ERR_UNSUPPORTED, s->err,
                        "is \"%.*s\"; gpt-2, smollm, llama-bpe, smaug-bpe and qwen2 are supported",
                        (int)TP_MIN(name.len, 60), name.data);
}

static tp_status read_model(source *s)
{
    static const char key[] = "tokenizer.ggml.model";
    tp_slice model = {0};
    TP_TRY(tp_gguf_get_string(s->g, key, &model, s->err));
    if (!tp_gguf_find(s->g, key))
        return tp_fail(s->err, TP_ERR_FORMAT, "%s: has no tokenizer ('tokenizer.ggml.model')",
                       tp_gguf_name(s->g));
    if (!tp_slice_is(model, "gpt2"))
        return tp_gguf_fail(s->g, tp_gguf_find(s->g, key), TP_ERR_UNSUPPORTED, s->err,
                            "is \"%.*s\"; byte-level BPE, \"gpt2\", is supported (\"llama\" is "
                            "SentencePiece)",
                            (int)TP_MIN(model.len, 60), model.data);
    return find_pre(s);
}

static tp_status read_lists(source *s)
{
    const tp_gguf *g = s->g;
    TP_TRY(tp_gguf_get_array(g, "tokenizer.ggml.tokens", TP_GGUF_STRING, &s->tokens, s->err));
    TP_TRY(tp_gguf_get_array(g, "tokenizer.ggml.merges", TP_GGUF_STRING, &s->merges, s->err));
    TP_TRY(tp_gguf_get_array(g, "tokenizer.ggml.token_type", TP_GGUF_I32, &s->types, s->err));
    if (!s->tokens || !s->merges)
        return tp_fail(s->err, TP_ERR_FORMAT, "%s: has no '%s'", tp_gguf_name(g),
                       s->tokens ? "tokenizer.ggml.merges" : "tokenizer.ggml.tokens");
    if (s->types && s->types->n != s->tokens->n)
        return tp_gguf_fail(g, s->types, TP_ERR_FORMAT, s->err, "has %llu values for %llu tokens",
                            (unsigned long long)s->types->n, (unsigned long long)s->tokens->n);
    if (s->tokens->n > MAX_TOKENS || !s->tokens->n || s->merges->n > MAX_TOKENS)
        return tp_gguf_fail(g, s->tokens, TP_ERR_FORMAT, s->err,
                            "has %llu tokens, and there are %llu merges; 1 to %d are expected",
                            (unsigned long long)s->tokens->n, (unsigned long long)s->merges->n,
                            MAX_TOKENS);
    return TP_OK;
}

static tp_status read_special(source *s)
{
    const tp_gguf *g = s->g;
    int64_t last = (int64_t)s->tokens->n - 1;
    s->bos = s->eos = s->pad = -1;
    s->add_bos = s->pre->adds_bos;
    TP_TRY(tp_gguf_get_int(g, "tokenizer.ggml.bos_token_id", 0, last, &s->bos, s->err));
    TP_TRY(tp_gguf_get_int(g, "tokenizer.ggml.eos_token_id", 0, last, &s->eos, s->err));
    TP_TRY(tp_gguf_get_int(g, "tokenizer.ggml.padding_token_id", 0, last, &s->pad, s->err));
    TP_TRY(tp_gguf_get_bool(g, "tokenizer.ggml.add_bos_token", &s->add_bos, s->err));
    TP_TRY(tp_gguf_get_bool(g, "tokenizer.ggml.add_eos_token", &s->add_eos, s->err));
    TP_TRY(tp_gguf_get_string(g, "tokenizer.chat_template", &s->chat_template, s->err));
    TP_TRY(tp_gguf_get_string(g, TP_GGUF_TOOL_TEMPLATE, &s->tool_template, s->err));
    s->add_bos &= s->bos >= 0;
    s->add_eos &= s->eos >= 0;
    return TP_OK;
}

static int64_t type_of(const source *s, uint64_t id)
{
    return s->types ? tp_gguf_int_at(s->types, id) : TP_GGUF_TOKEN_NORMAL;
}

static tp_status check_strings(const source *s, const tp_gguf_value *list, const char *what)
{
    size_t at = 0;
    for (uint64_t i = 0; i < list->n; i++) {
        tp_slice text = tp_gguf_next_string(list, &at);
        if (text.len > MAX_TOKEN_BYTES)
            return tp_gguf_fail(s->g, list, TP_ERR_FORMAT, s->err,
                                "has a %s %llu of %zu bytes; %d are allowed", what,
                                (unsigned long long)i, text.len, MAX_TOKEN_BYTES);
        if (!tp_utf8_valid(text.data, text.len) || memchr(text.data, 0, text.len))
            return tp_gguf_fail(s->g, list, TP_ERR_FORMAT, s->err,
                                "has a %s %llu that is no UTF-8 "
                                "text",
                                what, (unsigned long long)i);
    }
    return TP_OK;
}

static tp_status check_types(const source *s)
{
    for (uint64_t i = 0; s->types && i < s->types->n; i++) {
        int64_t type = type_of(s, i);
        if (type < TP_GGUF_TOKEN_NORMAL || type >= TP_GGUF_TOKEN_BYTE)
            return tp_gguf_fail(s->g, s->types, TP_ERR_UNSUPPORTED, s->err,
                                "gives token %llu the type %lld; byte-level BPE has 1 to 5",
                                (unsigned long long)i, (long long)type);
    }
    return TP_OK;
}

static tp_status gather(const tp_gguf *g, source *s, tp_error *err)
{
    *s = (source){.g = g, .err = err};
    TP_TRY(read_model(s));
    TP_TRY(read_lists(s));
    TP_TRY(check_strings(s, s->tokens, "token"));
    TP_TRY(check_strings(s, s->merges, "merge"));
    TP_TRY(check_types(s));
    return read_special(s);
}

/* ---- tokenizer.json ---- */

static bool is_added(int64_t type)
{
    return type == TP_GGUF_TOKEN_CONTROL || type == TP_GGUF_TOKEN_UNKNOWN ||
           type == TP_GGUF_TOKEN_USER_DEFINED;
}

/* Do the ids of added tokens go on from the number of the others?  Readers count them so. */
static bool added_count_on(const source *s)
{
    uint64_t next = 0;
    for (uint64_t i = 0; i < s->tokens->n; i++)
        next += type_of(s, i) == TP_GGUF_TOKEN_NORMAL;
    for (uint64_t i = 0; i < s->tokens->n; i++)
        if (is_added(type_of(s, i)) && i != next++)
            return false;
    return true;
}

static void write_added(const source *s, tp_json_w *w)
{
    static const char *const flags[] = {"single_word", "lstrip", "rstrip", "normalized"};
    size_t at = 0;
    tp_json_w_put_begin(w, "added_tokens", '[');
    for (uint64_t i = 0; i < s->tokens->n; i++) {
        tp_slice text = tp_gguf_next_string(s->tokens, &at);
        if (!is_added(type_of(s, i)))
            continue;
        tp_json_w_begin(w, '{');
        tp_json_w_put_i64(w, "id", (int64_t)i);
        tp_json_w_put_strn(w, "content", text.data, text.len);
        for (size_t f = 0; f < TP_COUNTOF(flags); f++)
            tp_json_w_put_bool(w, flags[f], false);
        tp_json_w_put_bool(w, "special", type_of(s, i) != TP_GGUF_TOKEN_USER_DEFINED);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}

static void write_model(const source *s, tp_json_w *w)
{
    size_t at = 0;
    bool with_added = !added_count_on(s); /* which keeps their ids */
    TP_OWN(tp_buf) key = {0};
    tp_json_w_put_begin(w, "model", '{');
    tp_json_w_put_str(w, "type", "BPE");
    tp_json_w_put_null(w, "dropout");
    tp_json_w_put_null(w, "unk_token");
    tp_json_w_put_bool(w, "fuse_unk", false);
    tp_json_w_put_bool(w, "byte_fallback", false);
    tp_json_w_put_bool(w, "ignore_merges", s->pre->ignore_merges);
    tp_json_w_put_begin(w, "vocab", '{');
    for (uint64_t i = 0; i < s->tokens->n; i++) {
        tp_slice text = tp_gguf_next_string(s->tokens, &at);
        int64_t type = type_of(s, i);
        if (type != TP_GGUF_TOKEN_NORMAL && !(with_added && is_added(type)))
            continue;
        tp_buf_clear(&key);
        tp_buf_add(&key, text.data, text.len);
        tp_json_w_put_i64(w, tp_buf_str(&key), (int64_t)i);
    }
    tp_json_w_end(w, '}');
    tp_json_w_put_begin(w, "merges", '[');
    at = 0;
    for (uint64_t i = 0; i < s->merges->n; i++) {
        tp_slice text = tp_gguf_next_string(s->merges, &at);
        tp_json_w_strn(w, text.data, text.len);
    }
    tp_json_w_end(w, ']');
    tp_json_w_end(w, '}');
}

static tp_slice token(const source *s, int64_t id)
{
    size_t at = 0;
    tp_slice text = {0};
    for (int64_t i = 0; i <= id; i++)
        text = tp_gguf_next_string(s->tokens, &at);
    return text;
}

static void write_piece(tp_json_w *w, const char *kind, tp_slice id)
{
    tp_json_w_begin(w, '{');
    tp_json_w_put_begin(w, kind, '{');
    tp_json_w_put_strn(w, "id", id.data, id.len);
    tp_json_w_put_i64(w, "type_id", 0);
    tp_json_w_end(w, '}');
    tp_json_w_end(w, '}');
}

/* What stands around a text. */
static void write_processor(const source *s, tp_json_w *w)
{
    const int64_t ids[] = {s->add_bos ? s->bos : -1, s->add_eos ? s->eos : -1};
    tp_json_w_key(w, "post_processor");
    if (!s->add_bos && !s->add_eos) {
        tp_json_w_raw(w, TP_BYTE_LEVEL("true", "true"));
        return;
    }
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, "type", "TemplateProcessing");
    tp_json_w_put_begin(w, "single", '[');
    if (s->add_bos)
        write_piece(w, "SpecialToken", token(s, s->bos));
    write_piece(w, "Sequence", TP_SLICE("A"));
    if (s->add_eos)
        write_piece(w, "SpecialToken", token(s, s->eos));
    tp_json_w_end(w, ']');
    tp_json_w_put_begin(w, "pair", '[');
    write_piece(w, "Sequence", TP_SLICE("A"));
    write_piece(w, "Sequence", TP_SLICE("B"));
    tp_json_w_end(w, ']');
    tp_json_w_put_begin(w, "special_tokens", '{');
    for (int i = 0; i < 2; i++) {
        TP_OWN(tp_buf) name = {0};
        if (ids[i] < 0 || (i && ids[0] == ids[1]))
            continue;
        tp_slice text = token(s, ids[i]);
        tp_buf_add(&name, text.data, text.len);
        tp_json_w_put_begin(w, tp_buf_str(&name), '{');
        tp_json_w_put_str(w, "id", tp_buf_str(&name));
        tp_json_w_put_begin(w, "ids", '[');
        tp_json_w_i64(w, ids[i]);
        tp_json_w_end(w, ']');
        tp_json_w_put_begin(w, "tokens", '[');
        tp_json_w_str(w, tp_buf_str(&name));
        tp_json_w_end(w, ']');
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, '}');
    tp_json_w_end(w, '}');
}

tp_status tp_tokenizer_json_of_gguf(const tp_gguf *g, tp_buf *out, tp_error *err)
{
    source s;
    TP_TRY(gather(g, &s, err));
    tp_json_w w = tp_json_w_open(out, 1, '{');
    tp_json_w_put_str(&w, "version", "1.0");
    tp_json_w_put_null(&w, "truncation");
    tp_json_w_put_null(&w, "padding");
    write_added(&s, &w);
    tp_json_w_put_raw(&w, "normalizer", s.pre->nfc ? "{\"type\": \"NFC\"}" : "null");
    tp_json_w_key(&w, "pre_tokenizer");
    tp_pretokenizer_write(&w, s.pre->scan);
    write_processor(&s, &w);
    tp_json_w_put_raw(&w, "decoder", TP_BYTE_LEVEL("true", "true"));
    write_model(&s, &w);
    tp_json_w_close(&w, '}');
    return TP_OK;
}

static void write_template(tp_json_w *w, const char *name, tp_slice text)
{
    if (!text.len)
        return;
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, "name", name);
    tp_json_w_put_strn(w, "template", text.data, text.len);
    tp_json_w_end(w, '}');
}

static void write_templates(const source *s, tp_json_w *w)
{
    tp_slice only = s->chat_template;
    if (s->tool_template.len) {
        tp_json_w_put_begin(w, "chat_template", '[');
        write_template(w, "default", s->chat_template);
        write_template(w, "tool_use", s->tool_template);
        tp_json_w_end(w, ']');
    } else if (only.len) {
        tp_json_w_put_strn(w, "chat_template", only.data, only.len);
    }
}

tp_status tp_tokenizer_config_of_gguf(const tp_gguf *g, tp_buf *out, tp_error *err)
{
    static const char *const keys[] = {"bos_token", "eos_token", "pad_token"};
    source s;
    TP_TRY(gather(g, &s, err));
    const int64_t ids[] = {s.bos, s.eos, s.pad};
    tp_json_w w = tp_json_w_open(out, 2, '{');
    for (size_t i = 0; i < TP_COUNTOF(keys); i++) {
        /* A name makes a token special, an ordinary one as well: config.json has its id. */
        if (ids[i] < 0 || !is_added(type_of(&s, (uint64_t)ids[i])))
            continue;
        tp_slice text = token(&s, ids[i]);
        tp_json_w_put_strn(&w, keys[i], text.data, text.len);
    }
    write_templates(&s, &w);
    tp_json_w_put_bool(&w, "clean_up_tokenization_spaces", false);
    tp_json_w_put_str(&w, "tokenizer_class", "PreTrainedTokenizerFast");
    tp_json_w_close(&w, '}');
    return TP_OK;
}
