/* tokenizer_settings.c - what transformers takes from tokenizer_config.json and
 * special_tokens_map.json where there is a tokenizer.json.
 *
 * used     bos_token, eos_token, pad_token, chat_template; the other tokens with a name are
 *          variables of the template; special_tokens_map.json goes before, and
 *          is not read where added_tokens_decoder is given; the class, which may name tokens
 *          where none is named
 * refused  what would change ids or text: tokens that transformers would add, or take white space
 *          with; split_special_tokens; classes that build another tokenizer than tokenizer.json
 *          says, add_prefix_space of them, added_tokens_decoder without a token of tokenizer.json;
 *          the clean-up of byte-level text; tokenizer_padding, which names another pad_token
 * others   change nothing: docs/guide/model-files.md, tests/reference/tokenizer_settings.json */
#include <string.h>

#include "base/files.h"
#include "base/platform.h"
#include "text/json/json.h"
#include "text/tokenizer/tokenizer_internal.h"

enum { MAX_CONFIG_BYTES = 64 << 20 };

/* A class of transformers that takes the vocabulary, the merges and the added tokens of
 * tokenizer.json and builds the rest anew. */
typedef struct {
    const char *name;                  /* the same with Fast behind it */
    const char *bos, *eos, *pad, *unk; /* where none is named; NULL: none */
    bool nfc, no_ends; /* its normalizer; it puts nothing around a text, whatever the file does */
    tp_word_scanner scan;
} builder;

#define END "<|endoftext|>"
static const builder builders[] = {
    {"GPT2Tokenizer", END, END, NULL, END, false, false, tp_scan_gpt2},
    {"CodeGenTokenizer", END, END, NULL, END, false, false, tp_scan_gpt2},
    {"GPTNeoXTokenizer", END, END, "<|padding|>", END, true, true, tp_scan_gpt2},
    {"Qwen2Tokenizer", NULL, END, END, END, true, false, tp_scan_qwen2},
};

/* Those whose tokenizers are not built here: they put tokens around a text, cut it otherwise, or
 * are not BPE. */
static const char *const foreign[] = {
    "BartTokenizer",    "BlenderbotTokenizer", "ByT5Tokenizer",       "CanineTokenizer",
    "CohereTokenizer",  "ConvBertTokenizer",   "DebertaTokenizer",    "DiaTokenizer",
    "EsmcTokenizer",    "LEDTokenizer",        "LongformerTokenizer", "LukeTokenizer",
    "MBart50Tokenizer", "MvpTokenizer",        "NougatTokenizer",     "PerceiverTokenizer",
    "Qwen3_5Tokenizer", "RagTokenizer",        "RobertaTokenizer",    "Tipsv2Tokenizer",
    "WhisperTokenizer"};

/* Of a folder; what is not there has no members. */
typedef struct {
    const char *config_path, *map_path;
    const tp_json *config, *map;
    const char *class;      /* of transformers; "" when nothing says */
    const char *class_path; /* of the file that says so */
    const builder *builder; /* which it is; NULL: it takes tokenizer.json as it is */
} settings;

static bool is_class(const char *class, const char *name)
{
    size_t n = strlen(name);
    return strncmp(class, name, n) == 0 && (!class[n] || strcmp(class + n, "Fast") == 0);
}

static const builder *builder_of(const char *class)
{
    for (size_t i = 0; i < TP_COUNTOF(builders); i++)
        if (is_class(class, builders[i].name))
            return &builders[i];
    return NULL;
}

/* ---- tokens ---- */

static const char *token_text(const tp_json *v)
{
    return tp_json_str(v) ? tp_json_str(v) : tp_json_str(tp_json_get(v, "content"));
}

/* The added token of that text, and in which set; NULL: there is none. */
static const tp_added_token *find_added(const tp_tokenizer *tok, const char *text,
                                        bool *ret_normalized)
{
    int32_t id = tp_tokenizer_id(tok, text);
    const tp_added_set *sets[] = {&tok->added, &tok->normalized_added};
    for (int k = 0; k < 2 && id >= 0; k++)
        for (uint32_t i = 0; i < sets[k]->n_tokens; i++)
            if (sets[k]->tokens[i].id == id) {
                *ret_normalized = k == 1;
                return &sets[k]->tokens[i];
            }
    return NULL;
}

static tp_status need_added(const tp_tokenizer *tok, const char *path, const tp_json *key,
                            const char *name, const char *text, tp_error *err)
{
    bool normalized;
    if (!text || find_added(tok, text, &normalized))
        return TP_OK;
    return tp_fail(err, TP_ERR_UNSUPPORTED,
                   "%s:%u: \"%s\" is '%.60s', which is no added token of tokenizer.json; "
                   "transformers would add it: add it there or remove it",
                   path, (unsigned)key->line, name, text);
}

/* Tokens as texts or as {"content"}, in a list or an object. */
static tp_status need_all_added(const tp_tokenizer *tok, const char *path, const tp_json *document,
                                const char *key, tp_error *err)
{
    const tp_json *all = tp_json_get(document, key);
    bool has_many = all && (all->type == TP_JSON_ARRAY || all->type == TP_JSON_OBJECT);
    for (const tp_json *v = has_many ? all->child : NULL; v; v = v->next)
        TP_TRY(need_added(tok, path, v, key, token_text(v), err));
    return TP_OK;
}

/* Every "..._token", whoever made it up, is a token to transformers. */
static bool names_token(const tp_json *v) { return tp_str_ends(v->key.data, "_token"); }

static tp_status check_named(const tp_tokenizer *tok, const char *path, const tp_json *document,
                             tp_error *err)
{
    for (const tp_json *v = document ? document->child : NULL; v; v = v->next)
        if (names_token(v))
            TP_TRY(need_added(tok, path, v, v->key.data, token_text(v), err));
    TP_TRY(need_all_added(tok, path, document, "additional_special_tokens", err));
    TP_TRY(need_all_added(tok, path, document, "extra_special_tokens", err));
    return need_all_added(tok, path, document, "model_specific_special_tokens", err);
}

/* ---- added_tokens_decoder ---- */

static bool flag_of(const tp_json *token, const char *key, bool by_default)
{
    bool v;
    return tp_json_bool(tp_json_get(token, key), &v) ? v : by_default;
}

static tp_status check_decoder_entry(const tp_tokenizer *tok, const char *path, const tp_json *v,
                                     tp_error *err)
{
    bool normalized = false;
    int64_t id;
    const char *text = token_text(v);
    TP_TRY(need_added(tok, path, v, "added_tokens_decoder", text, err));
    if (!text)
        return TP_OK;
    const tp_added_token *known = find_added(tok, text, &normalized);
    const struct {
        const char *key;
        bool here, there;
    } flags[] = {{"lstrip", flag_of(v, "lstrip", false), known->lstrip},
                 {"rstrip", flag_of(v, "rstrip", false), known->rstrip},
                 {"single_word", flag_of(v, "single_word", false), known->single_word},
                 {"normalized", flag_of(v, "normalized", normalized), normalized}};
    if (!tp_str_to_i64(v->key.data, &id) || id != known->id)
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "%s:%u: \"added_tokens_decoder\" gives '%.60s' the id %.20s, tokenizer.json "
                       "%d; make them agree",
                       path, (unsigned)v->line, text, v->key.data, known->id);
    for (size_t i = 0; i < TP_COUNTOF(flags); i++)
        if (flags[i].here != flags[i].there)
            return tp_fail(err, TP_ERR_UNSUPPORTED,
                           "%s:%u: \"added_tokens_decoder\" has another %s for '%.60s' than "
                           "tokenizer.json, and transformers takes it; make them agree",
                           path, (unsigned)v->line, flags[i].key, text);
    return TP_OK;
}

static tp_status check_decoder(const tp_tokenizer *tok, const settings *s, tp_error *err)
{
    const tp_json *decoder = tp_json_get(s->config, "added_tokens_decoder");
    size_t n = 0, n_known = tok->added.n_tokens + tok->normalized_added.n_tokens;
    if (!decoder || decoder->type != TP_JSON_OBJECT)
        return TP_OK;
    for (const tp_json *v = decoder->child; v; v = v->next, n++)
        TP_TRY(check_decoder_entry(tok, s->config_path, v, err));
    if (s->builder && n < n_known)
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "%s:%u: \"added_tokens_decoder\" has %zu of the %zu added tokens of "
                       "tokenizer.json; %s knows no others: complete it or remove it",
                       s->config_path, (unsigned)decoder->line, n, n_known, s->class);
    return TP_OK;
}

/* ---- other settings ---- */

static tp_status refuse_flag(const settings *s, const char *key, const char *why, tp_error *err)
{
    const tp_json *v = tp_json_get(s->config, key);
    if (!v || v->type != TP_JSON_TRUE)
        return TP_OK;
    return tp_fail(err, TP_ERR_UNSUPPORTED, "%s:%u: \"%s\" is true: %s; only false is supported",
                   s->config_path, (unsigned)v->line, key, why);
}

/* Single digits in front are kept: models with GPT2Tokenizer were trained so, though transformers 5
 * leaves them out. */
static bool is_built_so(const tp_tokenizer *tok, const builder *b)
{
    const tp_normalizer *n = &tok->normalizer;
    const tp_cut *cut = &tok->pretokenizer.cuts[0];
    bool has_nfc = n->n == 1 && n->steps[0].kind == TP_NORMALIZE_NFC;
    bool has_scan = tok->pretokenizer.n == 1 && cut->kind == TP_CUT_BYTE_LEVEL &&
                    (cut->scan == b->scan ||
                     (b->scan == tp_scan_gpt2 && !b->nfc && cut->scan == tp_scan_smollm2));
    return has_scan && !cut->add_prefix_space && (b->nfc ? has_nfc : n->n == 0) &&
           !tok->bpe.ignore_merges && !(b->no_ends && tok->n_prefix + tok->n_suffix);
}

static tp_status check_class(const tp_tokenizer *tok, const settings *s, tp_error *err)
{
    static const char remedy[] =
        "\"tokenizer_class\": \"PreTrainedTokenizerFast\" in tokenizer_config.json stands for "
        "tokenizer.json as it is, and has only the bos_token and eos_token that are named";
    for (size_t i = 0; i < TP_COUNTOF(foreign); i++)
        if (is_class(s->class, foreign[i]))
            return tp_fail(err, TP_ERR_UNSUPPORTED,
                           "%s: transformers' %s is not supported: it may make other ids of a "
                           "text than tokenizer.json says; %s",
                           s->class_path, s->class, remedy);
    if (!s->builder || is_built_so(tok, s->builder))
        return TP_OK;
    return tp_fail(err, TP_ERR_UNSUPPORTED,
                   "%s: transformers' %s has its own in place of normalizer, pre_tokenizer, "
                   "ignore_merges%s of tokenizer.json, which are others; %s",
                   s->class_path, s->class, s->builder->no_ends ? " and post_processor" : "",
                   remedy);
}

static tp_status check_settings(const tp_tokenizer *tok, const settings *s, tp_error *err)
{
    const tp_json *padding = tp_json_get(s->config, "tokenizer_padding");
    TP_TRY(refuse_flag(s, "split_special_tokens", "special tokens would be cut up", err));
    if (s->builder)
        TP_TRY(refuse_flag(s, "add_prefix_space", "this class puts a space before each text", err));
    if (flag_of(s->config, "clean_up_tokenization_spaces", false))
        TP_TRY(refuse_flag(
            s, "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output",
            "spaces would be taken out of answers", err));
    TP_TRY(check_class(tok, s, err));
    if (padding && padding->type == TP_JSON_OBJECT && !s->builder)
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "%s:%u: \"tokenizer_padding\" names another pad_token; remove it",
                       s->config_path, (unsigned)padding->line);
    TP_TRY(check_named(tok, s->config_path, s->config, err));
    TP_TRY(check_named(tok, s->map_path, s->map, err));
    return check_decoder(tok, s, err);
}

/* Of special_tokens_map.json, else of the configuration, else of the class; null is none. */
static int32_t token_of(const tp_tokenizer *tok, const settings *s, const char *key)
{
    const tp_json *v = tp_json_get(s->map, key);
    v = v ? v : tp_json_get(s->config, key);
    if (v)
        return token_text(v) ? tp_tokenizer_id(tok, token_text(v)) : -1;
    const builder none = {0}, *b = s->builder ? s->builder : &none;
    const char *text = strcmp(key, "bos_token") == 0   ? b->bos
                       : strcmp(key, "eos_token") == 0 ? b->eos
                       : strcmp(key, "pad_token") == 0 ? b->pad
                                                       : b->unk;
    return text ? tp_tokenizer_id(tok, text) : -1;
}

static void add_named(tp_tokenizer *tok, const char *name, const char *text)
{
    static const char *const others[] = {"bos_token", "eos_token", "pad_token"};
    tp_named_token **end = &tok->named;
    for (size_t i = 0; i < TP_COUNTOF(others); i++)
        if (strcmp(name, others[i]) == 0)
            return;
    while (*end && strcmp((*end)->name, name) != 0)
        end = &(*end)->next;
    if (*end || !text)
        return;
    *end = tp_arena_new(&tok->arena, tp_named_token);
    **end = (tp_named_token){tp_arena_strdup(&tok->arena, name), tp_arena_strdup(&tok->arena, text),
                             NULL};
}

/* The first of a name counts. */
static void take_named(tp_tokenizer *tok, const settings *s)
{
    static const char *const objects[] = {"extra_special_tokens", "model_specific_special_tokens"};
    const tp_json *documents[] = {s->map, s->config};
    for (size_t k = 0; k < TP_COUNTOF(documents); k++) {
        for (const tp_json *v = documents[k] ? documents[k]->child : NULL; v; v = v->next)
            if (names_token(v) && (k == 0 || !tp_json_get(s->map, v->key.data)))
                add_named(tok, v->key.data, token_text(v));
        for (size_t i = 0; i < TP_COUNTOF(objects); i++) {
            const tp_json *object = tp_json_get(documents[k], objects[i]);
            bool has_names = object && object->type == TP_JSON_OBJECT;
            for (const tp_json *v = has_names ? object->child : NULL; v; v = v->next)
                add_named(tok, v->key.data, token_text(v));
        }
    }
    int32_t unknown = token_of(tok, s, "unk_token"); /* that of the class */
    if (unknown >= 0)
        add_named(tok, "unk_token", tp_tokenizer_token(tok, unknown));
}

static tp_status take(tp_tokenizer *tok, const settings *s, tp_error *err)
{
    TP_TRY(check_settings(tok, s, err));
    tok->bos = token_of(tok, s, "bos_token");
    tok->eos = token_of(tok, s, "eos_token");
    tok->pad = token_of(tok, s, "pad_token");
    take_named(tok, s);
    return tp_tokenizer_take_templates(tok, s->config, err);
}

/* ---- files ---- */

/* *ret stays NULL where there is no file. */
static tp_status read_document(const char *path, tp_arena *arena, const tp_json **ret,
                               tp_error *err)
{
    return tp_file_exists(path)
               ? tp_json_read(arena, path, MAX_CONFIG_BYTES, &TP_JSON_TOLERANT, ret, err)
               : TP_OK;
}

/* The class of transformers: where the configuration names none, that of the model. */
static const char *class_of(const tp_json *config, const tp_json *model)
{
    const char *class = tp_json_str(tp_json_get(config, "tokenizer_class"));
    class = class ? class : tp_json_str(tp_json_get(model, "tokenizer_class"));
    const char *type = tp_json_str(tp_json_get(model, "model_type"));
    if (class)
        return class;
    if (!type)
        return "";
    return strcmp(type, "gpt2") == 0                                      ? "GPT2Tokenizer"
           : tp_str_starts(type, "qwen2") || tp_str_starts(type, "qwen3") ? "Qwen2Tokenizer"
                                                                          : "";
}

tp_status tp_tokenizer_read_settings(tp_tokenizer *tok, tp_error *err)
{
    TP_OWN(tp_arena) of_config = {0}, of_map = {0}, of_model = {0};
    const tp_json *config = NULL, *map = NULL, *model = NULL;
    char *config_path = tp_arena_printf(&tok->arena, "%s/tokenizer_config.json", tok->folder);
    char *map_path = tp_arena_printf(&tok->arena, "%s/special_tokens_map.json", tok->folder);
    char *model_path = tp_arena_printf(&tok->arena, "%s/config.json", tok->folder);
    TP_TRY(read_document(config_path, &of_config, &config, err));
    if (!tp_json_get(config, "added_tokens_decoder"))
        TP_TRY(read_document(map_path, &of_map, &map, err));
    if (read_document(model_path, &of_model, &model, NULL) != TP_OK)
        model = NULL; /* whoever reads the model will say so */
    const char *class = class_of(config, model);
    bool is_own = tp_json_str(tp_json_get(config, "tokenizer_class"));
    return take(tok,
                &(settings){.config_path = config_path,
                            .map_path = map_path,
                            .config = config,
                            .map = map,
                            .class = class,
                            .class_path = is_own ? config_path : model_path,
                            .builder = builder_of(class)},
                err);
}

tp_status tp_tokenizer_take_settings(tp_tokenizer *tok, const char *path, const tp_buf *config,
                                     tp_error *err)
{
    TP_OWN(tp_arena) arena = {0};
    const tp_json *root;
    TP_TRY(tp_arena_init(&arena, 64 * config->len + 4096, err));
    TP_TRY(tp_json_parse(&arena, path, tp_buf_str(config), config->len, &TP_JSON_TOLERANT, &root,
                         err));
    const char *class = class_of(root, NULL);
    return take(tok,
                &(settings){.config_path = path,
                            .config = root,
                            .class = class,
                            .class_path = path,
                            .builder = builder_of(class)},
                err);
}
