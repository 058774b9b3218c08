/* tokenizer.c - normalise, split, merge; and ids back to text, also as a stream. */
#include "text/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "text/tokenizer/tokenizer_internal.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Text repeats its words, so their ids are remembered: a direct-mapped table over
 * a pool of (word, ids), emptied when the pool is full. */
enum { CACHE_SLOTS = 1 << 15, CACHE_WORD_MAX = 64, CACHE_POOL_MAX = 4 << 20 };

struct cached_word {
    uint64_t hash;
    uint32_t at;             /* in the pool: the word's bytes, then its ids */
    uint16_t n_bytes, n_ids; /* n_bytes 0: empty slot */
};

struct tp_tokenizer_scratch {
    tp_bpe_space bpe;
    tp_cut_space cut;
    tp_norm_space norm;
    tp_norm_map map;
    tp_buf normalized;
    struct cached_word *cache;
    tp_buf pool;
};

/* One call of tp_tokenizer_encode(). */
typedef struct {
    const tp_tokenizer *tok;
    tp_tokenizer_scratch *scratch;
    bool parse_special;
    tp_ids *ids, *offsets; /* offsets may be NULL */
    const char *text;      /* the whole text; in encode_normalized_part() the normalised part */
    size_t base;           /* where the part being encoded begins in the whole text */
    size_t part;           /* where the piece being cut begins in the part */
    bool is_mapped;        /* scratch->map leads from the normalised to the given part */
} encoding;

void tp_tokenizer_free(tp_tokenizer *tok)
{
    if (!tok)
        return;
    tp_pretokenizer_release(&tok->pretokenizer);
    tp_arena_release(&tok->arena);
    free(tok);
}

tp_tokenizer_scratch *tp_tokenizer_scratch_new(const tp_tokenizer *tok)
{
    (void)tok;
    tp_tokenizer_scratch *scratch = tp_grow(NULL, 1, sizeof *scratch);
    *scratch = (tp_tokenizer_scratch){0};
    scratch->cache = tp_grow(NULL, CACHE_SLOTS, sizeof *scratch->cache);
    memset(scratch->cache, 0, CACHE_SLOTS * sizeof *scratch->cache);
    tp_buf_reserve(&scratch->pool, 1);
    return scratch;
}

void tp_tokenizer_scratch_free(tp_tokenizer_scratch *scratch)
{
    if (!scratch)
        return;
    tp_bpe_space_release(&scratch->bpe);
    tp_cut_space_release(&scratch->cut);
    tp_norm_space_release(&scratch->norm);
    tp_norm_map_release(&scratch->map);
    tp_buf_release(&scratch->normalized);
    tp_buf_release(&scratch->pool);
    free(scratch->cache);
    free(scratch);
}

static void remember(tp_tokenizer_scratch *scratch, struct cached_word *slot, uint64_t hash,
                     const char *word, size_t n, const int32_t *ids, size_t n_ids)
{
    if (scratch->pool.len > CACHE_POOL_MAX) {
        tp_buf_clear(&scratch->pool);
        memset(scratch->cache, 0, CACHE_SLOTS * sizeof *scratch->cache);
    }
    *slot = (struct cached_word){hash, (uint32_t)scratch->pool.len, (uint16_t)n, (uint16_t)n_ids};
    tp_buf_add(&scratch->pool, word, n);
    tp_buf_add(&scratch->pool, ids, n_ids * sizeof *ids);
}

static void add_word_ids(encoding *e, const char *word, size_t n)
{
    tp_tokenizer_scratch *scratch = e->scratch;
    if (n > CACHE_WORD_MAX) {
        tp_bpe_encode(&e->tok->bpe, &scratch->bpe, word, n, e->ids, NULL, 0);
        return;
    }
    uint64_t hash = XXH3_64bits(word, n);
    struct cached_word *slot = &scratch->cache[hash & (CACHE_SLOTS - 1)];
    const char *known = scratch->pool.data + slot->at;
    if (slot->hash == hash && slot->n_bytes == n && memcmp(known, word, n) == 0) {
        memcpy(tp_ids_extend(e->ids, slot->n_ids), known + n, slot->n_ids * sizeof(int32_t));
        return;
    }
    size_t first = e->ids->len;
    tp_bpe_encode(&e->tok->bpe, &scratch->bpe, word, n, e->ids, NULL, 0);
    size_t n_ids = e->ids->len - first;
    if (n_ids) /* else there may be no array yet */
        remember(scratch, slot, hash, word, n, e->ids->data + first, n_ids);
}

/* Turn offsets within a word into offsets within the whole text. */
static int32_t text_offset(const encoding *e, size_t at, size_t start, size_t inserted)
{
    size_t offset = at + (start > inserted ? start - inserted : 0);
    return (int32_t)(e->base +
                     (e->is_mapped ? tp_norm_map_find(&e->scratch->map, offset) : offset));
}

static void encode_word(void *context, const char *word, size_t n, size_t at, size_t inserted)
{
    encoding *e = context;
    const tp_bpe *bpe = &e->tok->bpe;
    size_t first = e->ids->len;
    at += e->part;
    if (!e->offsets) {
        add_word_ids(e, word, n);
    } else if (bpe->n_missing_bytes == 0) { /* the ids' bytes are the word */
        add_word_ids(e, word, n);
        for (size_t i = first, start = 0; i < e->ids->len; i++) {
            tp_ids_add(e->offsets, text_offset(e, at, start, inserted));
            start += bpe->tokens[e->ids->data[i]].n_bytes;
        }
    } else {
        size_t first_offset = e->offsets->len;
        tp_bpe_encode(bpe, &e->scratch->bpe, word, n, e->ids, e->offsets, 0);
        for (size_t i = first_offset; i < e->offsets->len; i++)
            e->offsets->data[i] = text_offset(e, at, (size_t)e->offsets->data[i], inserted);
    }
}

static void add_id(encoding *e, int32_t id, size_t offset)
{
    tp_ids_add(e->ids, id);
    if (e->offsets)
        tp_ids_add(e->offsets, (int32_t)offset);
}

/* A part of the normalised text: an added token, or text to be cut into words. */
static void encode_normalized_part(void *context, const tp_added_token *token, size_t begin,
                                   size_t end)
{
    encoding *e = context;
    if (token) {
        e->part = 0;
        add_id(e, token->id, (size_t)text_offset(e, begin, 0, 0));
        return;
    }
    e->part = begin;
    tp_pretokenize(&e->tok->pretokenizer, &e->scratch->cut, e->text + begin, end - begin,
                   encode_word, e);
}

/* A part of the text as given: an added token, or text to be normalised. */
static void encode_part(void *context, const tp_added_token *token, size_t begin, size_t end)
{
    encoding *e = context;
    if (token) {
        add_id(e, token->id, begin);
        return;
    }
    const tp_tokenizer *tok = e->tok;
    tp_tokenizer_scratch *scratch = e->scratch;
    encoding inner = *e;
    inner.text = e->text + begin;
    inner.base = begin;
    size_t n = end - begin;
    if (!tp_normalize_is_identity(&tok->normalizer, inner.text, n)) {
        inner.is_mapped = e->offsets != NULL;
        tp_normalize(&tok->normalizer, &scratch->norm, inner.text, n, &scratch->normalized,
                     inner.is_mapped ? &scratch->map : NULL);
        inner.text = scratch->normalized.data;
        n = scratch->normalized.len;
    }
    if (tok->normalized_added.n_tokens)
        tp_added_split(&tok->normalized_added, inner.text, n, e->parse_special,
                       encode_normalized_part, &inner);
    else if (n)
        encode_normalized_part(&inner, NULL, 0, n);
}

void tp_tokenizer_encode(const tp_tokenizer *tok, tp_tokenizer_scratch *scratch, const char *text,
                         size_t n, tp_encode_options options, tp_ids *ids, tp_ids *ret_offsets)
{
    TP_ASSERT(n < INT32_MAX);
    encoding e = {.tok = tok,
                  .scratch = scratch,
                  .parse_special = options.parse_special,
                  .ids = ids,
                  .offsets = ret_offsets,
                  .text = text};
    for (size_t i = 0; options.add_special && i < tok->n_prefix; i++)
        add_id(&e, tok->prefix[i], 0);
    if (tok->added.n_tokens)
        tp_added_split(&tok->added, text, n, options.parse_special, encode_part, &e);
    else if (n)
        encode_part(&e, NULL, 0, n);
    for (size_t i = 0; options.add_special && i < tok->n_suffix; i++)
        add_id(&e, tok->suffix[i], n);
}

static const tp_token *token_of(const tp_tokenizer *tok, int32_t id)
{
    if (id < 0 || id >= tok->bpe.n_ids || !tok->bpe.tokens[id].spelling)
        return NULL;
    return &tok->bpe.tokens[id];
}

void tp_tokenizer_decode(const tp_tokenizer *tok, const int32_t *ids, size_t n, bool skip_special,
                         tp_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        const tp_token *token = token_of(tok, ids[i]);
        if (token && !(skip_special && token->special))
            tp_buf_add(out, token->bytes, token->n_bytes);
    }
}

/* Bytes at the start of `s` that may be the beginning of a code point whose end has
 * not arrived: 1 to 3, or 0. */
static size_t incomplete(const char *s, size_t n)
{
    uint8_t lead = (uint8_t)s[0];
    size_t need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || n >= need)
        return 0;
    for (size_t i = 1; i < n; i++)
        if (((uint8_t)s[i] & 0xc0) != 0x80)
            return 0;
    if (n == 1)
        return 1;
    /* Overlong forms, surrogates and what lies beyond U+10FFFF never complete. */
    uint8_t second = (uint8_t)s[1];
    bool dead = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
                (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
    return dead ? 0 : n;
}

static void stream_bytes(tp_decode_stream *state, const char *bytes, size_t n, tp_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        state->bytes[state->n++] = bytes[i];
        while (state->n) {
            uint32_t cp;
            size_t len = tp_utf8_decode(state->bytes, state->n, &cp);
            if (len == 0 && incomplete(state->bytes, state->n))
                break;
            len = len ? len : 1; /* a byte that cannot become text passes as it is */
            tp_buf_add(out, state->bytes, len);
            state->n = (uint8_t)(state->n - len);
            memmove(state->bytes, state->bytes + len, state->n);
        }
    }
}

void tp_tokenizer_decode_next(const tp_tokenizer *tok, tp_decode_stream *state, int32_t id,
                              bool skip_special, tp_buf *out)
{
    if (id == -1) {
        tp_buf_add(out, state->bytes, state->n);
        state->n = 0;
        return;
    }
    const tp_token *token = token_of(tok, id);
    if (token && !(skip_special && token->special))
        stream_bytes(state, token->bytes, token->n_bytes, out);
}

int32_t tp_tokenizer_vocab_size(const tp_tokenizer *tok) { return tok->bpe.n_ids; }

bool tp_tokenizer_has_id(const tp_tokenizer *tok, int32_t id) { return token_of(tok, id) != NULL; }

int32_t tp_tokenizer_id(const tp_tokenizer *tok, const char *token)
{
    size_t n = strlen(token);
    int32_t id = tp_bpe_find(&tok->bpe, token, n);
    if (id >= 0)
        return id;
    for (id = 0; id < tok->bpe.n_ids; id++) {
        const tp_token *t = &tok->bpe.tokens[id];
        if (t->added && t->spelling_len == n && memcmp(t->spelling, token, n) == 0)
            return id;
    }
    return -1;
}

const char *tp_tokenizer_token(const tp_tokenizer *tok, int32_t id)
{
    const tp_token *token = token_of(tok, id);
    return token ? token->spelling : NULL;
}

bool tp_tokenizer_is_special(const tp_tokenizer *tok, int32_t id)
{
    const tp_token *token = token_of(tok, id);
    return token && token->special;
}

int32_t tp_tokenizer_bos(const tp_tokenizer *tok) { return tok->bos; }

int32_t tp_tokenizer_eos(const tp_tokenizer *tok) { return tok->eos; }

const char *tp_tokenizer_named(const tp_tokenizer *tok, size_t i, const char **ret_name)
{
    const tp_named_token *named = tok->named;
    for (; named && i; i--)
        named = named->next;
    if (named)
        *ret_name = named->name;
    return named ? named->text : NULL;
}

int32_t tp_tokenizer_pad(const tp_tokenizer *tok) { return tok->pad; }

const char *tp_tokenizer_chat_template(const tp_tokenizer *tok) { return tok->chat_template; }

const char *tp_tokenizer_fingerprint(const tp_tokenizer *tok) { return tok->fingerprint; }
