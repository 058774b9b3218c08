/* tokenizer_load.c - tokenizer.json checked and taken in. */
#include <string.h>

#include "base/files.h"
#include "base/platform.h"
#include "text/json/json.h"
#include "text/tokenizer/tokenizer_gguf.h"
#include "text/tokenizer/tokenizer_internal.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    MAX_FILE_BYTES = 256 << 20,
    SPARE_IDS = 65536 /* the model's ids may have gaps, but not many more than tokens */
};

typedef struct {
    tp_tokenizer *tok;
    const tp_json *root, *vocab, *merges, *added;
    size_t n_tokens, n_merges; /* in the model */
    int32_t next_id;           /* what the tokenizers library gives the next added token */
    XXH3_state_t *hash;        /* of everything that decides how text becomes ids */
    tp_error *err;
} loader;

static const char *name_of(const loader *l) { return l->tok->name; }

static void hash_text(loader *l, const char *text, size_t n)
{
    XXH3_128bits_update(l->hash, &n, sizeof n);
    XXH3_128bits_update(l->hash, text, n);
}

static void hash_number(loader *l, int64_t number)
{
    XXH3_128bits_update(l->hash, &number, sizeof number);
}

static void hash_value(loader *l, const tp_json *value)
{
    TP_OWN(tp_buf) text = {0};
    tp_json_text(value, &text);
    hash_text(l, tp_buf_str(&text), text.len);
}

static bool is_unset(const tp_json *v)
{
    return !v || v->type == TP_JSON_NULL || (v->type == TP_JSON_STRING && v->text.len == 0);
}

/* The members of "model" that would change what the merges mean. */
static tp_status check_model(loader *l, const tp_json *model)
{
    const char *type = tp_json_str(tp_json_get(model, "type"));
    const tp_json *dropout = tp_json_get(model, "dropout");
    double p = 0;
    if (!model || model->type != TP_JSON_OBJECT)
        return tp_fail(l->err, TP_ERR_FORMAT, "%s: has no 'model' object", name_of(l));
    if (type && strcmp(type, "BPE") != 0)
        return tp_fail(l->err, TP_ERR_UNSUPPORTED,
                       "%s:%u: model type '%s' is not supported; byte-level BPE is", name_of(l),
                       (unsigned)model->line, type);
    if (!is_unset(dropout) && (!tp_json_f64(dropout, &p) || p != 0))
        return tp_fail(l->err, TP_ERR_UNSUPPORTED,
                       "%s:%u: BPE dropout is not supported; set 'dropout' to null", name_of(l),
                       (unsigned)dropout->line);
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (size_t i = 0; i < TP_COUNTOF(affixes); i++) {
        const tp_json *v = tp_json_get(model, affixes[i]);
        if (!is_unset(v))
            return tp_fail(l->err, TP_ERR_UNSUPPORTED, "%s:%u: '%s' is not supported", name_of(l),
                           (unsigned)v->line, affixes[i]);
    }
    l->vocab = tp_json_get(model, "vocab");
    l->merges = tp_json_get(model, "merges");
    if (!l->vocab || l->vocab->type != TP_JSON_OBJECT || !l->vocab->n)
        return tp_fail(l->err, TP_ERR_FORMAT, "%s: 'model.vocab' is not an object with tokens",
                       name_of(l));
    if (!l->merges || l->merges->type != TP_JSON_ARRAY)
        return tp_fail(l->err, TP_ERR_FORMAT, "%s: 'model.merges' is not an array", name_of(l));
    l->n_tokens = l->vocab->n;
    l->n_merges = l->merges->n;
    return TP_OK;
}

/* One more than the highest id of model and added tokens. */
static tp_status count_ids(loader *l, int32_t *ret)
{
    size_t n_added = l->added ? l->added->n : 0;
    int64_t limit = 4 * (int64_t)(l->n_tokens + n_added) + SPARE_IDS, highest = -1;
    for (int list = 0; list < 2; list++) {
        const tp_json *v = list ? (l->added ? l->added->child : NULL) : l->vocab->child;
        for (; v; v = v->next) {
            int64_t id = -1;
            const tp_json *number = list ? tp_json_get(v, "id") : v;
            const char *token = list ? tp_json_str(tp_json_get(v, "content")) : v->key.data;
            if (!tp_json_i64(number, &id) || id < 0 || id >= limit)
                return tp_fail(l->err, TP_ERR_FORMAT,
                               "%s:%u: token '%.100s' has id %s; ids of %zu tokens must be whole "
                               "numbers from 0 to %lld",
                               name_of(l), (unsigned)v->line, token ? token : "(without content)",
                               number && number->text.data ? number->text.data : "(missing)",
                               l->n_tokens + n_added, (long long)limit - 1);
            highest = TP_MAX(highest, id);
        }
    }
    *ret = (int32_t)(highest + 1);
    return TP_OK;
}

static tp_status load_vocab(loader *l)
{
    tp_bpe *bpe = &l->tok->bpe;
    for (const tp_json *v = l->vocab->child; v; v = v->next) {
        int64_t id = -1;
        if (!tp_json_i64(v, &id))
            continue; /* count_ids() has checked */
        if (bpe->tokens[id].spelling)
            return tp_fail(l->err, TP_ERR_FORMAT, "%s:%u: tokens '%.100s' and '%.100s' share id %d",
                           name_of(l), (unsigned)v->line, bpe->tokens[id].spelling, v->key.data,
                           (int)id);
        tp_bpe_set_token(bpe, &l->tok->arena, (int32_t)id, v->key.data, v->key.len, false);
        if (!tp_bpe_index_token(bpe, (int32_t)id))
            return tp_fail(l->err, TP_ERR_FORMAT, "%s:%u: token '%.100s' appears twice", name_of(l),
                           (unsigned)v->line, v->key.data);
        hash_number(l, id);
        hash_text(l, v->key.data, v->key.len);
    }
    tp_bpe_finish(bpe);
    return TP_OK;
}

/* "a b" or ["a", "b"]. */
static tp_status split_merge(loader *l, const tp_json *v, size_t rank, tp_slice *left,
                             tp_slice *right)
{
    const tp_json *a = tp_json_at(v, 0), *b = tp_json_at(v, 1);
    if (v->type == TP_JSON_ARRAY && v->n == 2 && tp_json_str(a) && tp_json_str(b)) {
        *left = a->text;
        *right = b->text;
        return TP_OK;
    }
    const char *space =
        v->type == TP_JSON_STRING && v->text.len ? memchr(v->text.data, ' ', v->text.len) : NULL;
    if (space) {
        *left = (tp_slice){v->text.data, (size_t)(space - v->text.data)};
        *right = (tp_slice){space + 1, v->text.len - left->len - 1};
        if (!memchr(right->data, ' ', right->len))
            return TP_OK;
    }
    return tp_fail(l->err, TP_ERR_FORMAT, "%s:%u: merge %zu is neither \"a b\" nor [\"a\", \"b\"]",
                   name_of(l), (unsigned)v->line, rank);
}

static tp_status find_token(loader *l, const tp_json *v, size_t rank, const char *spelling,
                            size_t n, uint32_t *ret)
{
    int32_t id = tp_bpe_find(&l->tok->bpe, spelling, n);
    if (id < 0)
        return tp_fail(l->err, TP_ERR_FORMAT,
                       "%s:%u: merge %zu needs the token '%.*s', which is not in the vocabulary",
                       name_of(l), (unsigned)v->line, rank, (int)TP_MIN(n, 100), spelling);
    *ret = (uint32_t)id;
    return TP_OK;
}

static tp_status load_merge(loader *l, const tp_json *v, uint32_t rank, tp_buf *joined)
{
    tp_slice left = {0}, right = {0};
    uint32_t left_id, right_id, merged;
    TP_TRY(split_merge(l, v, rank, &left, &right));
    TP_TRY(find_token(l, v, rank, left.data, left.len, &left_id));
    TP_TRY(find_token(l, v, rank, right.data, right.len, &right_id));
    tp_buf_clear(joined);
    tp_buf_add(joined, left.data, left.len);
    tp_buf_add(joined, right.data, right.len);
    TP_TRY(find_token(l, v, rank, tp_buf_str(joined), joined->len, &merged));
    tp_bpe_add_merge(&l->tok->bpe, left_id, right_id, rank, merged);
    hash_number(l, (int64_t)((uint64_t)left_id << 32 | right_id));
    return TP_OK;
}

static tp_status load_merges(loader *l)
{
    TP_OWN(tp_buf) joined = {0};
    uint32_t rank = 0;
    for (const tp_json *v = l->merges->child; v; v = v->next) {
        const char *text = tp_json_str(v);
        if (text && tp_str_starts(text, "#version"))
            continue; /* the first line of the old merges.txt */
        TP_TRY(load_merge(l, v, rank++, &joined));
    }
    return TP_OK;
}

static bool flag(const tp_json *object, const char *key)
{
    bool value = false;
    tp_json_bool(tp_json_get(object, key), &value);
    return value;
}

/* An added token is a token of the model under the same id, or a new one.  The tokenizers library
 * does not look at the id of a new one: it counts on. */
static tp_status place_added(loader *l, const tp_json *v, const tp_json *content, int32_t id)
{
    tp_bpe *bpe = &l->tok->bpe;
    int32_t in_model = tp_bpe_find(bpe, content->text.data, content->text.len);
    if (in_model >= 0 && in_model != id)
        return tp_fail(l->err, TP_ERR_FORMAT,
                       "%s:%u: added token '%.100s' has id %d here and %d in the vocabulary",
                       name_of(l), (unsigned)v->line, content->text.data, (int)id, (int)in_model);
    tp_token *token = &bpe->tokens[id];
    if (token->added || (token->spelling && in_model < 0))
        return tp_fail(l->err, TP_ERR_FORMAT,
                       "%s:%u: added token '%.100s' takes id %d, which '%.100s' has", name_of(l),
                       (unsigned)v->line, content->text.data, (int)id, token->spelling);
    if (in_model < 0 && id != l->next_id && content->text.len)
        return tp_fail(
            l->err, TP_ERR_UNSUPPORTED,
            "%s:%u: added token '%.100s' has id %d, but the tokenizers library counts on "
            "from the vocabulary's %zu tokens and gives it %d; list added tokens in "
            "that order, or give this one its id in 'model.vocab' too",
            name_of(l), (unsigned)v->line, content->text.data, (int)id, l->n_tokens,
            (int)l->next_id);
    if (in_model < 0)
        tp_bpe_set_token(bpe, &l->tok->arena, id, content->text.data, content->text.len, true);
    if (in_model < 0 && content->text.len)
        l->next_id = TP_MAX(l->next_id, id + 1);
    token->added = true;
    token->special = flag(v, "special");
    return TP_OK;
}

/* What a token is looked for as: its content, normalised where it asks for it. */
static const tp_buf *pattern_of(loader *l, const tp_json *v, const tp_json *content,
                                tp_norm_space *space, tp_buf *pattern)
{
    tp_buf_clear(pattern);
    if (flag(v, "normalized") && l->tok->normalizer.n)
        tp_normalize(&l->tok->normalizer, space, content->text.data, content->text.len, pattern,
                     NULL);
    else
        tp_buf_add(pattern, content->text.data, content->text.len);
    return pattern;
}

static tp_status put_added(loader *l, const tp_json *v, const tp_json *content,
                           const tp_buf *pattern)
{
    int64_t id = -1;
    if (!tp_json_i64(tp_json_get(v, "id"), &id))
        return TP_OK; /* count_ids() has checked */
    bool normalized = flag(v, "normalized");
    tp_added_token token = {.id = (int32_t)id,
                            .single_word = flag(v, "single_word"),
                            .lstrip = flag(v, "lstrip"),
                            .rstrip = flag(v, "rstrip"),
                            .special = flag(v, "special")};
    TP_TRY(place_added(l, v, content, token.id));
    if (pattern->len == 0 && content->text.len)
        return tp_fail(l->err, TP_ERR_UNSUPPORTED,
                       "%s:%u: the normalizer leaves nothing of the added token '%s', which would "
                       "be found everywhere; set its 'normalized' to false",
                       name_of(l), (unsigned)v->line, content->text.data);
    if (pattern->len == 0)
        return TP_OK; /* never found */
    tp_added_set *set = normalized ? &l->tok->normalized_added : &l->tok->added;
    if (!tp_added_put(set, token, pattern->data, pattern->len) && !normalized)
        return tp_fail(l->err, TP_ERR_FORMAT, "%s:%u: added token '%.100s' is listed twice",
                       name_of(l), (unsigned)v->line, content->text.data);
    hash_value(l, v);
    return TP_OK;
}

static tp_status load_added(loader *l)
{
    if (!l->added)
        return TP_OK;
    TP_OWN(tp_norm_space) space = {0};
    TP_OWN(tp_buf) pattern = {0};
    size_t n_tokens[2] = {0}, n_bytes[2] = {0}; /* as given; normalised */
    for (const tp_json *v = l->added->child; v; v = v->next) {
        const tp_json *content = tp_json_get(v, "content");
        bool normalized = flag(v, "normalized");
        if (!tp_json_str(content))
            return tp_fail(l->err, TP_ERR_FORMAT, "%s:%u: an added token without 'content'",
                           name_of(l), (unsigned)v->line);
        n_tokens[normalized]++;
        n_bytes[normalized] += pattern_of(l, v, content, &space, &pattern)->len;
    }
    tp_added_init(&l->tok->added, &l->tok->arena, n_tokens[0], n_bytes[0]);
    tp_added_init(&l->tok->normalized_added, &l->tok->arena, n_tokens[1], n_bytes[1]);
    for (const tp_json *v = l->added->child; v; v = v->next) {
        const tp_json *content = tp_json_get(v, "content");
        TP_TRY(put_added(l, v, content, pattern_of(l, v, content, &space, &pattern)));
    }
    return TP_OK;
}

/* A byte that the vocabulary cannot spell is dropped, unless the file asks for
 * something else to happen to it. */
static tp_status check_missing_bytes(loader *l, const tp_json *model)
{
    int n = l->tok->bpe.n_missing_bytes;
    const char *wish = flag(model, "byte_fallback")                 ? "byte_fallback"
                       : !is_unset(tp_json_get(model, "unk_token")) ? "unk_token"
                                                                    : NULL;
    if (n == 0 || !wish)
        return TP_OK;
    return tp_fail(l->err, TP_ERR_UNSUPPORTED,
                   "%s: the vocabulary lacks %d of the 256 bytes and '%s' is set; that is not "
                   "supported",
                   name_of(l), n, wish);
}

/* PCRE2's properties are of the version of Unicode that this machine's library has. */
static void hash_regex_version(loader *l)
{
    char version[TP_REGEX_VERSION_MAX];
    if (!tp_pretokenizer_has_regex(&l->tok->pretokenizer))
        return;
    tp_regex_unicode_version(version);
    hash_text(l, version, strlen(version));
}

static tp_status load_parts(loader *l)
{
    tp_tokenizer *tok = l->tok;
    const tp_json *model = tp_json_get(l->root, "model");
    int32_t n_ids = 0;
    TP_TRY(check_model(l, model));
    l->added = tp_json_get(l->root, "added_tokens");
    if (l->added && l->added->type != TP_JSON_ARRAY)
        l->added = NULL;
    TP_TRY(count_ids(l, &n_ids));
    TP_TRY(tp_normalizer_parse(tok, tp_json_get(l->root, "normalizer"), l->err));
    TP_TRY(tp_pretokenizer_parse(&tok->arena, tok->name, tp_json_get(l->root, "pre_tokenizer"),
                                 &tok->pretokenizer, l->err));
    tp_bpe_init(&tok->bpe, &tok->arena, l->n_tokens, n_ids, l->n_merges);
    tok->bpe.ignore_merges = flag(model, "ignore_merges");
    hash_number(l, tok->bpe.ignore_merges);
    TP_TRY(load_vocab(l));
    TP_TRY(load_merges(l));
    l->next_id = (int32_t)l->n_tokens;
    TP_TRY(load_added(l));
    TP_TRY(check_missing_bytes(l, model));
    TP_TRY(tp_postprocessor_parse(tok, tp_json_get(l->root, "post_processor"), l->err));
    TP_TRY(tp_decoder_check(tok, tp_json_get(l->root, "decoder"), l->err));
    hash_value(l, tp_json_get(l->root, "normalizer"));
    hash_value(l, tp_json_get(l->root, "pre_tokenizer"));
    hash_value(l, tp_json_get(l->root, "post_processor"));
    hash_regex_version(l);
    return TP_OK;
}

static void write_fingerprint(loader *l)
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(l->hash));
    for (int i = 0; i < 16; i++)
        snprintf(l->tok->fingerprint + 2 * i, 3, "%02x", canonical.digest[i]);
}

static tp_status tokenizer_read(tp_tokenizer *tok, const char *json, size_t n, tp_error *err)
{
    TP_OWN(tp_arena) document = {0};
    tp_json_options options = {.max_bytes = MAX_FILE_BYTES};
    TP_TRY(tp_arena_init(&document, 64 * n + 4096, err));
    loader l = {.tok = tok, .hash = XXH3_createState(), .err = err};
    TP_HAVE(l.hash);
    XXH3_128bits_reset(l.hash);
    tp_status status = tp_json_parse(&document, tok->name, json, n, &options, &l.root, err);
    if (status == TP_OK)
        status = load_parts(&l);
    if (status == TP_OK)
        write_fingerprint(&l);
    XXH3_freeState(l.hash);
    return status;
}

static tp_status parse_into(const char *name, const char *json, size_t n, tp_tokenizer **ret,
                            tp_error *err)
{
    if (n > MAX_FILE_BYTES)
        return tp_fail(err, TP_ERR_FORMAT, "%s: %zu bytes; the limit is %d", name, n,
                       MAX_FILE_BYTES);
    tp_tokenizer *tok = tp_new(1, sizeof *tok);
    /* Per byte of text: at most a sixth of a token, whose id, spelling and table
     * entries take less than 256 bytes. */
    tp_status status = tp_arena_init(&tok->arena, 128 * n + (40 << 20), err);
    if (status == TP_OK) {
        tok->bos = tok->eos = tok->pad = -1;
        tok->name = tp_arena_strdup(&tok->arena, name);
        status = tokenizer_read(tok, json, n, err);
    }
    if (status != TP_OK) {
        tp_tokenizer_free(tok);
        return status;
    }
    *ret = tok;
    return TP_OK;
}

tp_status tp_tokenizer_parse(const char *name, const char *json, size_t n, tp_tokenizer **ret,
                             tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(name && json && ret, err);
    return parse_into(name, json, n, ret, err);
}

/* The files that a folder would hold, from the keys of a GGUF file. */
static tp_status load_gguf(const char *path, tp_tokenizer **ret, tp_error *err)
{
    tp_gguf *g = NULL;
    tp_tokenizer *tok = NULL;
    TP_OWN(tp_buf) text = {0}, config = {0};
    TP_TRY(tp_gguf_open(path, &g, err));
    tp_status status = tp_tokenizer_json_of_gguf(g, &text, err);
    if (status == TP_OK)
        status = parse_into(path, tp_buf_str(&text), text.len, &tok, err);
    if (status == TP_OK)
        status = tp_tokenizer_config_of_gguf(g, &config, err);
    if (status == TP_OK)
        status = tp_tokenizer_take_settings(tok, path, &config, err);
    if (status == TP_OK)
        tok->folder = tp_arena_strdup(&tok->arena, path);
    tp_buf_release(&text);
    tp_gguf_close(g);
    if (status != TP_OK) {
        tp_tokenizer_free(tok);
        return status;
    }
    *ret = tok;
    return TP_OK;
}

/* A folder of a model without its tokenizer, or with one in another form. */
static tp_status no_tokenizer(const char *folder, tp_error *err)
{
    static const char *const others[] = {"tokenizer.model", "vocab.json"};
    for (size_t i = 0; i < TP_COUNTOF(others); i++)
        if (tp_file_exists(tp_path_of("%s/%s", folder, others[i]).text))
            return tp_fail(err, TP_ERR_UNSUPPORTED,
                           "%s has its tokenizer in %s; convert it: python -c \"from transformers "
                           "import AutoTokenizer as T; "
                           "T.from_pretrained('%s').save_pretrained('%s')\"",
                           folder, others[i], folder, folder);
    return tp_fail(err, TP_ERR_IO, "%s has no tokenizer.json; fetch all files of the model",
                   folder);
}

tp_status tp_tokenizer_load(const char *folder, tp_tokenizer **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_OWN(tp_buf) path = {0}, text = {0};
    tp_tokenizer *tok = NULL;
    if (tp_gguf_is_file(folder))
        return load_gguf(folder, ret, err);
    tp_buf_addf(&path, "%s/tokenizer.json", folder);
    if (tp_dir_exists(folder) && !tp_file_exists(path.data))
        return no_tokenizer(folder, err);
    tp_status status = tp_file_read(path.data, MAX_FILE_BYTES, &text, err);
    if (status == TP_OK)
        status = parse_into(path.data, tp_buf_str(&text), text.len, &tok, err);
    if (status == TP_OK)
        tok->folder = tp_arena_strdup(&tok->arena, folder);
    if (status == TP_OK)
        status = tp_tokenizer_read_settings(tok, err);
    tp_buf_release(&text);
    if (status != TP_OK) {
        tp_tokenizer_free(tok);
        return status;
    }
    *ret = tok;
    return TP_OK;
}
