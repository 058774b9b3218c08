/* tokenizer_to_gguf.c - a loaded tokenizer as the keys that llama.cpp reads. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/platform.h"
#include "base/vec.h"
#include "text/tokenizer/tokenizer_gguf.h"
#include "text/tokenizer/tokenizer_internal.h"

static tp_status find_pre(const tp_tokenizer *tok, const tp_gguf_pre **ret, tp_error *err)
{
    const tp_pretokenizer *p = &tok->pretokenizer;
    const tp_cut *cut = &p->cuts[0];
    bool is_plain = p->n == 1 && cut->kind == TP_CUT_BYTE_LEVEL && !cut->add_prefix_space;
    for (size_t i = 0; is_plain && i < tp_gguf_pre_count; i++)
        if (tp_gguf_pres[i].scan == cut->scan &&
            tp_gguf_pres[i].ignore_merges == tok->bpe.ignore_merges) {
            *ret = &tp_gguf_pres[i];
            return TP_OK;
        }
    return tp_fail(err, TP_ERR_UNSUPPORTED,
                   "%s: its pre-tokenizer%s has no name in llama.cpp that is known here; those of "
                   "GPT-2, SmolLM2, Llama 3 and Qwen2 have",
                   tok->name, is_plain && tok->bpe.ignore_merges ? " with 'ignore_merges'" : "");
}

/* The convert script's rule for added tokens that nobody marked as special. */
static bool looks_special(const char *text)
{
    static const char *const names[] = {"<pad>", "<mask>", "<2mass>", "[@BOS@]"};
    for (size_t i = 0; i < TP_COUNTOF(names); i++)
        if (strcmp(text, names[i]) == 0)
            return true;
    return (tp_str_starts(text, "<|") && tp_str_ends(text, "|>")) ||
           (tp_str_starts(text, "<｜") && tp_str_ends(text, "｜>")) ||
           (tp_str_starts(text, "<unused") && tp_str_ends(text, ">"));
}

static const tp_token *token_of(const tp_tokenizer *tok, int64_t id)
{
    const tp_token *t = id < tok->bpe.n_ids ? &tok->bpe.tokens[id] : NULL;
    return t && t->spelling ? t : NULL;
}

static void put_tokens(const tp_tokenizer *tok, int64_t vocab, tp_gguf_keys *k)
{
    char padding[32];
    tp_gguf_put_array(k, "tokenizer.ggml.tokens", TP_GGUF_STRING, (uint64_t)vocab);
    for (int64_t id = 0; id < vocab; id++) {
        const tp_token *t = token_of(tok, id);
        snprintf(padding, sizeof padding, "[PAD%lld]", (long long)id);
        tp_gguf_item_string(k, t ? (tp_slice){t->spelling, t->spelling_len} : tp_slice_of(padding));
    }
    tp_gguf_put_array(k, "tokenizer.ggml.token_type", TP_GGUF_I32, (uint64_t)vocab);
    for (int64_t id = 0; id < vocab; id++) {
        const tp_token *t = token_of(tok, id);
        tp_gguf_item_i32(k, !t          ? TP_GGUF_TOKEN_UNUSED
                            : !t->added ? TP_GGUF_TOKEN_NORMAL
                            : t->special || looks_special(t->spelling)
                                ? TP_GGUF_TOKEN_CONTROL
                                : TP_GGUF_TOKEN_USER_DEFINED);
    }
}

/* ---- merges, in the order of their ranks ---- */

TP_ORDER(by_rank, struct tp_bpe_pair, TP_COMPARE(x->rank, y->rank))

/* A space within a piece would end it: it is written as byte-level BPE spells one. */
static void add_piece(tp_buf *out, const tp_token *t)
{
    for (uint32_t i = 0; i < t->spelling_len; i++)
        if (t->spelling[i] == ' ')
            tp_buf_adds(out, "Ġ");
        else
            tp_buf_addc(out, t->spelling[i]);
}

static void put_merges(const tp_tokenizer *tok, tp_gguf_keys *k)
{
    const tp_bpe *bpe = &tok->bpe;
    TP_FREED struct tp_bpe_pair *pairs = NULL;
    size_t n = 0, cap = 0;
    TP_OWN(tp_buf) text = {0};
    for (size_t i = 0; i <= bpe->pair_mask; i++)
        if (bpe->pairs[i].rank != UINT32_MAX)
            *TP_VEC_PUSH(pairs, n, cap) = bpe->pairs[i];
    if (n)
        qsort(pairs, n, sizeof *pairs, by_rank);
    tp_gguf_put_array(k, "tokenizer.ggml.merges", TP_GGUF_STRING, n);
    for (size_t i = 0; i < n; i++) {
        tp_buf_clear(&text);
        add_piece(&text, &bpe->tokens[pairs[i].left]);
        tp_buf_addc(&text, ' ');
        add_piece(&text, &bpe->tokens[pairs[i].right]);
        tp_gguf_item_string(k, (tp_slice){text.data, text.len});
    }
}

/* ---- special tokens ---- */

/* llama.cpp has room for three that end a text: eos, eot and eom. */
static tp_status put_ends(const tp_tokenizer *tok, const tp_gguf_vocab *v, tp_gguf_keys *k,
                          tp_buf *notes, tp_error *err)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    int64_t ends[16];
    int n = 0;
    if (tok->eos >= 0)
        ends[n++] = tok->eos;
    for (int i = 0; i < v->n_eos && n < (int)TP_COUNTOF(ends); i++) {
        bool is_new = v->eos[i] >= 0 && v->eos[i] < v->vocab;
        for (int j = 0; j < n; j++)
            is_new &= ends[j] != v->eos[i];
        if (is_new)
            ends[n++] = v->eos[i];
    }
    if (n == 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s: no token ends a text, and llama.cpp would take id 11 for it; name one: "
                       "\"eos_token\" in tokenizer_config.json",
                       tok->name);
    for (int i = 0; i < n; i++)
        if (i < (int)TP_COUNTOF(keys))
            tp_gguf_put_u32(k, keys[i], (uint32_t)ends[i]);
        else
            tp_buf_addf(notes,
                        "id %lld ends a text here; GGUF has room for three such, and llama.cpp "
                        "will go on after it unless it knows its name\n",
                        (long long)ends[i]);
    return TP_OK;
}

static tp_status put_special(const tp_tokenizer *tok, const tp_gguf_vocab *v, tp_gguf_keys *k,
                             tp_buf *notes, tp_error *err)
{
    int64_t bos = tok->bos >= 0 ? tok->bos : v->bos, pad = tok->pad >= 0 ? tok->pad : v->pad;
    bool adds_bos = tok->n_prefix == 1, adds_eos = tok->n_suffix == 1;
    if (adds_bos)
        bos = tok->prefix[0];
    if (bos >= 0 && bos < v->vocab)
        tp_gguf_put_u32(k, "tokenizer.ggml.bos_token_id", (uint32_t)bos);
    TP_TRY(put_ends(tok, v, k, notes, err));
    if (pad >= 0 && pad < v->vocab)
        tp_gguf_put_u32(k, "tokenizer.ggml.padding_token_id", (uint32_t)pad);
    if (tok->n_prefix > 1 || tok->n_suffix > 1 || (adds_eos && tok->suffix[0] != tok->eos))
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "%s: its post-processor puts more around a text than one token before it "
                       "and eos behind it, which GGUF cannot say",
                       tok->name);
    tp_gguf_put_bool(k, "tokenizer.ggml.add_bos_token", adds_bos);
    if (adds_eos)
        tp_gguf_put_bool(k, "tokenizer.ggml.add_eos_token", true);
    return TP_OK;
}

static void note_differences(const tp_tokenizer *tok, const tp_gguf_pre *pre, tp_buf *notes)
{
    const tp_normalizer *n = &tok->normalizer;
    bool has_nfc = n->n == 1 && n->steps[0].kind == TP_NORMALIZE_NFC;
    size_t stripping = 0;
    for (int set = 0; set < 2; set++) {
        const tp_added_set *s = set ? &tok->normalized_added : &tok->added;
        for (uint32_t i = 0; i < s->n_tokens; i++)
            stripping += s->tokens[i].lstrip || s->tokens[i].rstrip || s->tokens[i].single_word;
    }
    if (stripping)
        tp_buf_addf(notes,
                    "%zu added tokens take the white space around them or stand only between "
                    "words (lstrip, rstrip, single_word); llama.cpp finds them anywhere\n",
                    stripping);
    if (n->n && has_nfc)
        tp_buf_adds(notes, "the tokenizer brings text into the form NFC; llama.cpp does not: text "
                           "in another form may get other tokens there\n");
    else if (n->n)
        tp_buf_adds(notes, "the tokenizer normalises text; llama.cpp does not\n");
    if (n->n > 0 && has_nfc != pre->nfc)
        tp_buf_addf(notes, "an import of the file will not normalise either\n");
}

static void put_templates(const tp_tokenizer *tok, tp_gguf_keys *k)
{
    if (tok->tool_template) {
        tp_gguf_put_string(k, TP_GGUF_TOOL_TEMPLATE, tp_slice_of(tok->tool_template));
        tp_gguf_put_array(k, "tokenizer.chat_templates", TP_GGUF_STRING, 1);
        tp_gguf_item_string(k, TP_SLICE("tool_use"));
    }
    if (tok->default_template)
        tp_gguf_put_string(k, "tokenizer.chat_template", tp_slice_of(tok->default_template));
}

tp_status tp_tokenizer_put_gguf(const tp_tokenizer *tok, const tp_gguf_vocab *v, tp_gguf_keys *k,
                                tp_buf *notes, tp_error *err)
{
    const tp_gguf_pre *pre = NULL;
    TP_TRY(find_pre(tok, &pre, err));
    if (tok->bpe.n_ids > v->vocab)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s: the tokenizer has %d ids, the model's vocabulary is %lld: they do not "
                       "belong together",
                       tok->name, tok->bpe.n_ids, (long long)v->vocab);
    tp_gguf_put_string(k, "tokenizer.ggml.model", TP_SLICE("gpt2"));
    tp_gguf_put_string(k, "tokenizer.ggml.pre", tp_slice_of(pre->name));
    put_tokens(tok, v->vocab, k);
    put_merges(tok, k);
    TP_TRY(put_special(tok, v, k, notes, err));
    put_templates(tok, k);
    note_differences(tok, pre, notes);
    return TP_OK;
}
