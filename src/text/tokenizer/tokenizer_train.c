/* tokenizer_train.c - from texts to the files of a tokenizer folder. */
#include <string.h>

#include "base/files.h"
#include "base/output.h"
#include "base/platform.h"
#include "text/json/json.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/bpe.h"
#include "text/tokenizer/bpe_train.h"
#include "text/tokenizer/normalize.h"
#include "text/tokenizer/pretokenize.h"
#include "text/tokenizer/tokenizer.h"

typedef struct {
    const char *name;
    tp_word_scanner scan;
    bool nfc;
} word_style;

static const word_style styles[] = {
    {"gpt2", tp_scan_gpt2, false},
    {"smollm2", tp_scan_smollm2, false},
    {"llama3", tp_scan_llama3, false},
    {"qwen2", tp_scan_qwen2, true},
};

typedef struct {
    const word_style *style;
    const tp_bpe_train_options *options;
    tp_bpe_trainer *trainer;
    tp_normalizer normalizer;
    tp_norm_space norm;
    tp_buf normalized;
    const char *text;
} training;

static bool is_special(const tp_bpe_train_options *o, const char *name)
{
    for (size_t i = 0; name && i < o->n_special; i++)
        if (strcmp(o->special[i], name) == 0)
            return true;
    return !name;
}

static tp_status check_options(const tp_bpe_train_options *o, const word_style **ret, tp_error *err)
{
    const word_style *found = NULL;
    for (size_t i = 0; i < TP_COUNTOF(styles) && o->pre_tokenizer; i++)
        if (strcmp(o->pre_tokenizer, styles[i].name) == 0)
            found = &styles[i];
    if (!found)
        return tp_fail(err, TP_ERR_CONFIG,
                       "pre-tokenizer '%s' is none of gpt2, smollm2, llama3, qwen2",
                       o->pre_tokenizer ? o->pre_tokenizer : "(none)");
    int64_t least = 256 + (int64_t)o->n_special;
    if (o->vocab_size < least)
        return tp_fail(err, TP_ERR_CONFIG,
                       "a vocabulary of %d tokens is too small: 256 bytes and %zu special tokens "
                       "need %lld",
                       (int)o->vocab_size, o->n_special, (long long)least);
    for (size_t i = 0; i < o->n_special; i++) {
        if (!o->special[i][0] || !tp_utf8_valid(o->special[i], strlen(o->special[i])))
            return tp_fail(err, TP_ERR_CONFIG, "special token %zu is empty or not UTF-8", i);
        for (size_t j = 0; j < i; j++)
            if (strcmp(o->special[i], o->special[j]) == 0)
                return tp_fail(err, TP_ERR_CONFIG, "special token '%s' is given twice",
                               o->special[i]);
    }
    const char *const named[] = {o->bos, o->eos, o->pad};
    for (size_t i = 0; i < TP_COUNTOF(named); i++)
        if (!is_special(o, named[i]))
            return tp_fail(err, TP_ERR_CONFIG, "'%s' is not one of the special tokens", named[i]);
    *ret = found;
    return TP_OK;
}

/* Count the words of a part of a text; special tokens teach nothing. */
static void count_part(void *context, const tp_added_token *token, size_t begin, size_t end)
{
    training *t = context;
    if (token)
        return;
    const char *text = t->text + begin;
    size_t n = end - begin;
    if (!tp_normalize_is_identity(&t->normalizer, text, n)) {
        tp_normalize(&t->normalizer, &t->norm, text, n, &t->normalized, NULL);
        text = t->normalized.data;
        n = t->normalized.len;
    }
    for (size_t at = 0, next; at < n; at = next) {
        next = t->style->scan(text, n, at);
        tp_bpe_trainer_add(t->trainer, text + at, next - at);
    }
}

static void count_texts(training *t, const tp_added_set *special, const char *const *texts,
                        const size_t *lengths, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        t->text = texts[i];
        tp_added_split(special, texts[i], lengths[i], true, count_part, t);
    }
    tp_norm_space_release(&t->norm);
    tp_buf_release(&t->normalized);
}

static void spell(const tp_bpe_trainer *trainer, uint32_t id, tp_buf *out)
{
    tp_slice bytes = tp_bpe_trainer_token(trainer, id);
    tp_buf_clear(out);
    for (size_t i = 0; i < bytes.len; i++) {
        char c[2];
        tp_buf_add(out, c, tp_byte_spell((uint8_t)bytes.data[i], c));
    }
}

static void write_added_token(tp_json_w *w, int64_t id, const char *content)
{
    static const char *const flags[] = {"single_word", "lstrip", "rstrip", "normalized"};
    tp_json_w_begin(w, '{');
    if (id >= 0)
        tp_json_w_put_i64(w, "id", id);
    tp_json_w_put_str(w, "content", content);
    for (size_t i = 0; i < TP_COUNTOF(flags); i++)
        tp_json_w_put_bool(w, flags[i], false);
    tp_json_w_put_bool(w, "special", true);
    tp_json_w_end(w, '}');
}

static void write_model(tp_json_w *w, const tp_bpe_trainer *trainer)
{
    static const char *const unset[] = {"dropout", "unk_token", "continuing_subword_prefix",
                                        "end_of_word_suffix"};
    static const char *const no[] = {"fuse_unk", "byte_fallback", "ignore_merges"};
    TP_OWN(tp_buf) token = {0};
    tp_json_w_put_begin(w, "model", '{');
    tp_json_w_put_str(w, "type", "BPE");
    for (size_t i = 0; i < TP_COUNTOF(unset); i++) {
        tp_json_w_put_null(w, unset[i]);
    }
    for (size_t i = 0; i < TP_COUNTOF(no); i++)
        tp_json_w_put_bool(w, no[i], false);
    tp_json_w_put_begin(w, "vocab", '{');
    for (uint32_t id = 0; id < tp_bpe_trainer_n_tokens(trainer); id++) {
        spell(trainer, id, &token);
        tp_json_w_put_i64(w, tp_buf_str(&token), id);
    }
    tp_json_w_end(w, '}');
    tp_json_w_put_begin(w, "merges", '[');
    for (size_t rank = 0; rank < tp_bpe_trainer_n_merges(trainer); rank++) {
        tp_bpe_merge merge = tp_bpe_trainer_merge(trainer, rank);
        tp_json_w_begin(w, '[');
        spell(trainer, merge.left, &token);
        tp_json_w_str(w, tp_buf_str(&token));
        spell(trainer, merge.right, &token);
        tp_json_w_str(w, tp_buf_str(&token));
        tp_json_w_end(w, ']');
    }
    tp_json_w_end(w, ']');
    tp_json_w_end(w, '}');
}

static void write_tokenizer(const training *t, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, 1, '{');
    tp_json_w_put_str(&w, "version", "1.0");
    tp_json_w_put_null(&w, "truncation");
    tp_json_w_put_null(&w, "padding");
    tp_json_w_put_begin(&w, "added_tokens", '[');
    for (size_t i = 0; i < t->options->n_special; i++)
        write_added_token(&w, (int64_t)(tp_bpe_trainer_n_tokens(t->trainer) + i),
                          t->options->special[i]);
    tp_json_w_end(&w, ']');
    tp_json_w_put_raw(&w, "normalizer", t->style->nfc ? "{\"type\": \"NFC\"}" : "null");
    tp_json_w_key(&w, "pre_tokenizer");
    tp_pretokenizer_write(&w, t->style->scan);
    tp_json_w_put_raw(&w, "post_processor",
                      "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                      "\"trim_offsets\": false, \"use_regex\": true}");
    tp_json_w_put_raw(&w, "decoder", TP_BYTE_LEVEL("true", "true"));
    write_model(&w, t->trainer);
    tp_json_w_close(&w, '}');
}

static void write_names(tp_json_w *w, const tp_bpe_train_options *o)
{
    const char *const keys[] = {"bos_token", "eos_token", "pad_token"};
    const char *const names[] = {o->bos, o->eos, o->pad};
    for (size_t i = 0; i < TP_COUNTOF(keys); i++) {
        if (!names[i])
            continue;
        tp_json_w_put_str(w, keys[i], names[i]);
    }
}

static void write_config(const training *t, tp_buf *out)
{
    const tp_bpe_train_options *o = t->options;
    tp_json_w w = tp_json_w_open(out, 2, '{');
    tp_json_w_put_begin(&w, "added_tokens_decoder", '{');
    for (size_t i = 0; i < o->n_special; i++) {
        char id[24];
        snprintf(id, sizeof id, "%zu", tp_bpe_trainer_n_tokens(t->trainer) + i);
        tp_json_w_key(&w, id);
        write_added_token(&w, -1, o->special[i]);
    }
    tp_json_w_end(&w, '}');
    write_names(&w, o);
    if (o->chat_template)
        tp_json_w_put_str(&w, "chat_template", o->chat_template);
    tp_json_w_put_bool(&w, "clean_up_tokenization_spaces", false);
    tp_json_w_key(&w, "model_max_length"); /* transformers' word for "no limit" */
    tp_json_w_raw(&w, "1000000000000000019884624838656");
    tp_json_w_put_str(&w, "tokenizer_class", "PreTrainedTokenizerFast");
    tp_json_w_close(&w, '}');
}

static void write_special_map(const training *t, tp_buf *out)
{
    const tp_bpe_train_options *o = t->options;
    tp_json_w w = tp_json_w_open(out, 2, '{');
    write_names(&w, o);
    tp_json_w_put_begin(&w, "additional_special_tokens", '[');
    for (size_t i = 0; i < o->n_special; i++) {
        const char *s = o->special[i];
        bool is_named = (o->bos && strcmp(s, o->bos) == 0) || (o->eos && strcmp(s, o->eos) == 0) ||
                        (o->pad && strcmp(s, o->pad) == 0);
        if (!is_named)
            tp_json_w_str(&w, s);
    }
    tp_json_w_end(&w, ']');
    tp_json_w_close(&w, '}');
}

/* A special token that is spelled like a token of the model would be that token. */
static tp_status check_collisions(const training *t, tp_error *err)
{
    TP_OWN(tp_buf) token = {0};
    for (uint32_t id = 0; id < tp_bpe_trainer_n_tokens(t->trainer); id++) {
        spell(t->trainer, id, &token);
        for (size_t i = 0; i < t->options->n_special; i++)
            if (strcmp(t->options->special[i], tp_buf_str(&token)) == 0)
                return tp_fail(err, TP_ERR_CONFIG,
                               "special token '%s' is an ordinary token of this text; choose "
                               "another, as in '<|%s|>'",
                               t->options->special[i], t->options->special[i]);
    }
    return TP_OK;
}

static tp_status write_folder(const training *t, const char *folder, tp_error *err)
{
    static const struct {
        const char *name;
        void (*write)(const training *t, tp_buf *out);
    } files[] = {{"tokenizer.json", write_tokenizer},
                 {"tokenizer_config.json", write_config},
                 {"special_tokens_map.json", write_special_map}};
    TP_TRY(check_collisions(t, err));
    TP_TRY(tp_dir_make(folder, err));
    for (size_t i = 0; i < TP_COUNTOF(files); i++) {
        TP_OWN(tp_buf) path = {0}, text = {0};
        tp_buf_addf(&path, "%s/%s", folder, files[i].name);
        files[i].write(t, &text);
        tp_status status = tp_output_put(path.data, text.data, text.len, err);
        tp_buf_release(&text);
        TP_TRY(status);
    }
    return TP_OK;
}

tp_status tp_tokenizer_train(const char *const *texts, const size_t *lengths, size_t n,
                             const tp_bpe_train_options *options, const char *folder, tp_error *err)
{
    static const tp_normalize_step nfc = {.kind = TP_NORMALIZE_NFC};
    training t = {.options = options};
    TP_TRY(check_options(options, &t.style, err));
    size_t special_bytes = 0;
    for (size_t i = 0; i < options->n_special; i++)
        special_bytes += strlen(options->special[i]);
    TP_OWN(tp_arena) arena = {0};
    TP_TRY(tp_arena_init(&arena, 32 * (special_bytes + options->n_special) + 4096, err));
    tp_added_set special = {0};
    tp_added_init(&special, &arena, options->n_special, special_bytes);
    for (size_t i = 0; i < options->n_special; i++)
        tp_added_put(&special, (tp_added_token){.id = (int32_t)i, .special = true},
                     options->special[i], strlen(options->special[i]));

    t.trainer = tp_bpe_trainer_new();
    if (t.style->nfc)
        t.normalizer = (tp_normalizer){&nfc, 1};
    count_texts(&t, &special, texts, lengths, n);
    tp_bpe_trainer_run(t.trainer, (uint32_t)options->vocab_size - (uint32_t)options->n_special);
    tp_status status = write_folder(&t, folder, err);
    tp_bpe_trainer_free(t.trainer);
    return status;
}
